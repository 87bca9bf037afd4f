//! `orch state`, and the configuration of the state.

#[cfg(unix)]
mod adopted;
#[cfg(unix)]
mod applied;
mod buckets;
mod commands;
mod configuration;
#[cfg(unix)]
mod evidence;
#[cfg(unix)]
mod expired;
#[cfg(unix)]
mod history;
#[cfg(unix)]
mod killed;
mod locked;
#[cfg(unix)]
mod moves;
#[cfg(unix)]
mod rollback;
#[cfg(unix)]
mod rolled_back;
#[cfg(unix)]
mod runs;
#[cfg(unix)]
mod statuses;
mod timelines;
#[cfg(unix)]
mod unknown;
#[cfg(unix)]
mod waiting;

use crate::support::Sandbox;

/// A project with the stacks `/a`, `/a/b` and `/c`, whose state has this configuration besides its
/// project.
fn project(configuration: &str) -> Sandbox {
    let sandbox = Sandbox::layout(
        "a [base]
         a/b after tag:base
         c after /a",
    );
    sandbox.write("/state.orch.hcl", block(configuration));
    sandbox
}

/// The block with this configuration besides the project.
fn block(configuration: &str) -> String {
    format!(
        "orch {{\n  config {{\n    state {{\n      project = \"acme\"\n{configuration}\n    }}\n  }}\n}}\n"
    )
}

/// A project with a document in which `/a`, `/a/b` and `/c` are recorded.
fn recorded() -> Sandbox {
    let sandbox = project("");
    assert_eq!(sandbox.orch("state init").code(), 0);
    sandbox.write("/graph.json", r#"{"a": [], "b": ["a"], "c": ["a", "b"]}"#);
    let imported = sandbox.orch("state import graph.json");
    assert_eq!(imported.code(), 0, "{imported:?}");
    sandbox
}

/// The document.
fn document(sandbox: &Sandbox) -> serde_json::Value {
    serde_json::from_str(&sandbox.read("/.orch/state/default.json")).unwrap()
}

/// Writes the document after a change to it.
fn change_document(sandbox: &Sandbox, change: impl FnOnce(&mut serde_json::Value)) {
    let mut document = document(sandbox);
    change(&mut document);
    sandbox.write("/.orch/state/default.json", document.to_string());
}
