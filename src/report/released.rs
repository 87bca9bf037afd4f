//! The status of a stack at the release of a module, as text and JSON.
//!
//! The source of a call is not shown: it may contain a password.

use serde::Serialize;

use super::changes::{UseJson, chain_text, location_text};
use crate::release::{Consumer, RequestedVersion};
use crate::selection::select::Released;

/// Returns the policies that select a stack, and whether its call allows the new version.
pub(super) fn released_text(released: &Released) -> String {
    let Released {
        module, old, new, ..
    } = released;
    let policies = released.policies.join(", ");
    let word = if released.policies.len() == 1 {
        "policy"
    } else {
        "policies"
    };
    let call = call_text(released);
    format!("{word} {policies}, release of {module} {old}..{new}: {call}")
}

/// Returns why a release leaves out a stack.
pub(super) fn unreleased_text(released: &Released) -> String {
    let Released {
        module, old, new, ..
    } = released;
    let call = call_text(released);
    format!("no policy names it at the release of {module} {old}..{new}: {call}")
}

fn call_text(released: &Released) -> String {
    let Released {
        old, new, consumer, ..
    } = released;
    let Some(Consumer {
        call,
        asked,
        allows_new,
    }) = consumer
    else {
        return format!("none of its calls resolves to {old}");
    };
    let place = location_text(&call.call.location);
    let via = match chain_text(&call.chain) {
        chain if chain.is_empty() => chain,
        chain => format!(", {chain}"),
    };
    let allows = match (allows_new, asked) {
        (true, _) => format!("allows {new}"),
        (false, RequestedVersion::Ref(_)) => format!("keeps {old}"),
        (false, _) => format!("does not allow {new}"),
    };
    format!("its call in {place} ({asked}{via}) resolves to {old} and {allows}")
}

/// The status of a stack at the release of a module.
#[derive(Serialize)]
pub(super) struct ReleasedJson<'a> {
    module: &'a str,
    from: &'a str,
    to: &'a str,
    policies: &'a [String],
    /// Absent if none of the stack's calls resolves to the old version.
    call: Option<CallJson<'a>>,
}

#[derive(Serialize)]
struct CallJson<'a> {
    name: &'a str,
    file: &'a str,
    line: Option<usize>,
    /// The modules from the stack to it.
    via: Vec<UseJson<'a>>,
    version: Option<&'a str>,
    #[serde(rename = "ref")]
    git_ref: Option<&'a str>,
    /// Whether it allows the new version.
    allows: bool,
}

impl<'a> ReleasedJson<'a> {
    pub(super) fn new(released: &'a Released) -> Self {
        ReleasedJson {
            module: &released.module,
            from: &released.old,
            to: &released.new,
            policies: &released.policies,
            call: released.consumer.as_ref().map(CallJson::new),
        }
    }
}

impl<'a> CallJson<'a> {
    fn new(consumer: &'a Consumer) -> Self {
        let Consumer {
            call,
            asked,
            allows_new,
        } = consumer;
        let (version, git_ref) = match asked {
            RequestedVersion::Newest => (None, None),
            RequestedVersion::Constraint(constraint) => (Some(constraint.as_str()), None),
            RequestedVersion::Ref(name) => (None, Some(name.as_str())),
        };
        CallJson {
            name: &call.call.name,
            file: call.call.location.file.relative(),
            line: call.call.location.line,
            via: call.chain.iter().map(UseJson::new).collect(),
            version,
            git_ref,
            allows: *allows_new,
        }
    }
}
