//! The stacks whose calls resolve to the old version of a release.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::versions::{Release, allows};
use crate::change::{CallVersion, ChangeError, FoundCall, ModuleCall, calls_of};
use crate::diagnostic::{Code, Diagnostic};
use crate::printable::printable;
use crate::project::discover::Listing;
use crate::project::module::{Address, AddressKind, CallSource, ModuleSource};
use crate::project::stack::StackIndex;
use crate::project::{Problems, Project};
use crate::version::Constraint;

/// The call with which a stack uses a module at its old version. Of several, the first one that does not allow the
/// new version, else the first of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    pub call: FoundCall,
    pub asked: RequestedVersion,
    pub allows_new: bool,
}

/// Returns the stacks with a call of the module, of their own or in local modules that they use,
/// that resolves to the old version. Warns of calls with an unknown version. Fails if no thread can
/// be started.
pub fn consumers(
    release: &Release,
    project: &Project,
    listing: &Listing,
    problems: &mut Problems,
) -> Result<BTreeMap<StackIndex, Consumer>, ChangeError> {
    let sources = Sources::of(release);
    let calls = calls_of(project, listing, |call| sources.may_be(call), problems)?;
    let mut warned = BTreeSet::new();
    let mut found = BTreeMap::new();
    for (stack, calls) in calls {
        let mut consumed: Option<Consumer> = None;
        for call in calls {
            match resolve(&call.call, release) {
                Ok(None) => {}
                Ok(Some((asked, allows_new))) => {
                    if consumed
                        .as_ref()
                        .is_none_or(|it| it.allows_new && !allows_new)
                    {
                        consumed = Some(Consumer {
                            call,
                            asked,
                            allows_new,
                        });
                    }
                }
                Err(why) => {
                    let ModuleCall { location, name, .. } = &call.call;
                    let place = (location.file.clone(), location.line, name.clone());
                    if warned.insert(place) {
                        problems
                            .diagnostics
                            .push(unknown(&call.call, &why, release));
                    }
                }
            }
        }
        found.extend(consumed.map(|consumer| (stack, consumer)));
    }
    Ok(found)
}

fn unknown(call: &ModuleCall, why: &str, release: &Release) -> Diagnostic {
    let ModuleCall { name, location, .. } = call;
    let file = printable(location.file.relative());
    let place = match location.line {
        Some(line) => format!("{file}:{line}"),
        None => file.into_owned(),
    };
    let message = format!("the call `{}` in `{place}` {why}", printable(name));
    let note = format!(
        "it may resolve to {} of `{}`, but does not count",
        release.old.version, release.module.name.value
    );
    Diagnostic::warning(Code::UnknownModule, message)
        .file(location.file.clone())
        .note(note)
}

struct Sources {
    addresses: Vec<Address>,
    /// A directory of the repository, at any address: there are no remotes to compare with.
    anywhere: Option<String>,
}

impl Sources {
    fn of(release: &Release) -> Self {
        let mut sources = Sources {
            addresses: Vec::new(),
            anywhere: None,
        };
        match &release.module.source.value {
            ModuleSource::Address(address) => sources.addresses.push(address.clone()),
            ModuleSource::Directory(path) => {
                let names: Vec<&str> = [release.prefix.as_str(), path.relative()]
                    .into_iter()
                    .filter(|name| !name.is_empty())
                    .collect();
                let directory = names.join("/");
                if release.remotes.is_empty() {
                    sources.anywhere = Some(directory);
                } else {
                    let remotes = release.remotes.iter();
                    sources.addresses.extend(remotes.map(|remote| Address {
                        directory: directory.clone(),
                        ..Address::git(remote)
                    }));
                }
            }
        }
        sources
    }

    fn has(&self, address: &Address) -> bool {
        let is_there = |directory: &String| {
            address.kind == AddressKind::Git
                && (directory.is_empty() || address.directory == *directory)
        };
        self.addresses.iter().any(|own| own.has(address))
            || self.anywhere.as_ref().is_some_and(is_there)
    }

    fn may_be(&self, call: &ModuleCall) -> bool {
        is_unknown(call)
            || CallSource::parse(&call.source).is_some_and(|source| self.has(&source.address))
    }
}

/// Returns the version in a call and whether it allows the new version, if it resolves to the old
/// one. The error says why it is unknown.
fn resolve(
    call: &ModuleCall,
    release: &Release,
) -> Result<Option<(RequestedVersion, bool)>, String> {
    let only_terraform = |what: &str| format!("has a {what} that only Terraform can compute");
    if is_unknown(call) {
        return Err(only_terraform("source"));
    }
    let Some(source) = CallSource::parse(&call.source) else {
        return Ok(None);
    };
    let Some(asked) = asked(call, &source).map_err(only_terraform)? else {
        return Ok(None);
    };
    let new = &release.new.version;
    let (resolved, allows_new) = match &asked {
        RequestedVersion::Ref(name) => {
            (release.tagged(name).then_some(&release.old.version), false)
        }
        RequestedVersion::Newest => (release.resolves_to(None), allows(None, new)),
        RequestedVersion::Constraint(written) => {
            let constraint = Constraint::parse(written)
                .map_err(|why| format!("has an invalid version constraint: {why}"))?;
            let resolved = release.resolves_to(Some(&constraint));
            (resolved, allows(Some(&constraint), new))
        }
    };
    let old = &release.old.version;
    let is_old = resolved.is_some_and(|resolved| resolved.cmp_precedence(old).is_eq());
    Ok(is_old.then_some((asked, allows_new)))
}

/// Returns whether only Terraform knows the source: more follows before the place is complete.
fn is_unknown(call: &ModuleCall) -> bool {
    call.is_open && !call.source.contains('?')
}

impl Release {
    /// Returns whether a ref is the old version: its tag, or its commit.
    fn tagged(&self, name: &str) -> bool {
        let tag = name.strip_prefix("refs/tags/").unwrap_or(name);
        tag == self.old.tag || name == self.old.commit.as_str()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedVersion {
    Newest,
    /// A constraint, as written.
    Constraint(String),
    /// This tag, branch or commit of a repository.
    Ref(String),
}

/// As in a call.
impl fmt::Display for RequestedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestedVersion::Newest => f.write_str("no version"),
            RequestedVersion::Constraint(constraint) => f.write_str(constraint),
            RequestedVersion::Ref(name) => write!(f, "?ref={name}"),
        }
    }
}

/// Returns the version in a call: `None` for the default branch of a repository. The error is the
/// part that only Terraform can evaluate.
pub(super) fn asked(
    call: &ModuleCall,
    source: &CallSource,
) -> Result<Option<RequestedVersion>, &'static str> {
    match (source.address.kind, &call.version, &source.asked) {
        (AddressKind::Git, ..) if call.is_open => Err("`?ref=`"),
        (AddressKind::Git, _, name) => Ok(name.clone().map(RequestedVersion::Ref)),
        (AddressKind::Registry, CallVersion::Unknown, _) => Err("`version`"),
        (AddressKind::Registry, CallVersion::Constraint(constraint), _) => {
            Ok(Some(RequestedVersion::Constraint(constraint.to_string())))
        }
        (AddressKind::Registry, CallVersion::Any, _) if call.is_open => Err("`?version=`"),
        (AddressKind::Registry, CallVersion::Any, Some(version)) => {
            Ok(Some(RequestedVersion::Constraint(version.clone())))
        }
        (AddressKind::Registry, CallVersion::Any, None) => Ok(Some(RequestedVersion::Newest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::CallVersion;
    use crate::git::CommitId;
    use crate::path::ProjectPath;
    use crate::project::module::{ModuleBlock, TagPattern};
    use crate::release::ReleasedVersion;
    use crate::source::{FileId, Span, Spanned};

    const COMMIT: &str = "0123456789012345678901234567890123456789";

    fn release(source: &str, remotes: &[&str], prefix: &str) -> Release {
        let span = Span {
            file: FileId::UNPLACED,
            start: 0,
            end: 0,
        };
        let value = match source.strip_prefix('/') {
            Some(_) => ModuleSource::Directory(ProjectPath::root().resolve(source).unwrap()),
            None => ModuleSource::Address(CallSource::parse(source).unwrap().address),
        };
        let version = |version: &str| ReleasedVersion {
            version: version.parse().unwrap(),
            tag: format!("vpc/v{version}"),
            commit: CommitId::new(COMMIT).unwrap(),
        };
        let module = ModuleBlock {
            name: Spanned {
                value: "vpc".to_owned(),
                span,
            },
            source: Spanned { value, span },
            tag: TagPattern::parse("vpc/v*").unwrap(),
            labels: Vec::new(),
            span,
        };
        let versions = ["1.2.0", "1.3.0", "1.4.0"].map(|it| it.parse().unwrap());
        let remotes = remotes.iter().map(|remote| (*remote).to_owned());
        Release {
            module,
            old: version("1.3.0"),
            new: version("1.4.0"),
            versions: versions.into(),
            remotes: remotes.collect(),
            prefix: prefix.to_owned(),
        }
    }

    fn call(source: &str, version: CallVersion) -> ModuleCall {
        let (source, is_open) = match source.strip_suffix('…') {
            Some(source) => (source, true),
            None => (source, false),
        };
        ModuleCall {
            name: "a".into(),
            source: source.into(),
            is_open,
            version,
            location: crate::change::Location {
                file: ProjectPath::root(),
                line: None,
            },
        }
    }

    /// The result of a call: `yes` and `no` mean whether the new version is allowed.
    fn outcome(release: &Release, call: &ModuleCall) -> String {
        if !Sources::of(release).may_be(call) {
            return "another module".to_owned();
        }
        match resolve(call, release) {
            Ok(None) => "another version".to_owned(),
            Ok(Some((_, true))) => "yes".to_owned(),
            Ok(Some((_, false))) => "no".to_owned(),
            Err(why) => why,
        }
    }

    #[test]
    fn calls_of_a_registry_resolve_by_their_version() {
        let release = release("acme/vpc/aws", &[], "");
        let constraint = |text: &str| CallVersion::Constraint(text.into());
        let table = [
            ("acme/vpc/aws", constraint("1.3.0"), "no"),
            ("acme/vpc/aws", constraint("~> 1.3"), "yes"),
            ("acme/vpc/aws//modules/a", constraint("~> 1.3.0"), "no"),
            (
                "registry.terraform.io/acme/vpc/aws",
                CallVersion::Any,
                "yes",
            ),
            ("acme/vpc/aws", constraint("~> 1.2.0"), "another version"),
            ("acme/vpc/aws", constraint("1.4.0"), "another version"),
            ("acme/vpc/google", constraint("1.3.0"), "another module"),
            (
                "app.acme.io/acme/vpc/aws",
                constraint("1.3.0"),
                "another module",
            ),
            ("tfr:///acme/vpc/aws?version=1.3.0", CallVersion::Any, "no"),
            (
                "acme/vpc/aws",
                CallVersion::Unknown,
                "has a `version` that only Terraform can compute",
            ),
            (
                "acme/vpc/aws",
                constraint("latest"),
                "has an invalid version constraint: `latest` is not a comparison with a version",
            ),
            (
                "acme/…",
                CallVersion::Any,
                "has a source that only Terraform can compute",
            ),
        ];
        for (source, version, expected) in table {
            let call = call(source, version);
            assert_eq!(outcome(&release, &call), expected, "{call:?}");
        }
    }

    #[test]
    fn calls_through_git_resolve_by_their_ref() {
        let release = release("git::https://x.org/acme/infra.git//modules/vpc", &[], "");
        let table = [
            (
                "git::https://x.org/acme/infra.git//modules/vpc?ref=vpc/v1.3.0",
                "no",
            ),
            (
                "git@x.org:acme/infra.git//modules/vpc?ref=refs/tags/vpc/v1.3.0",
                "no",
            ),
            (
                "git::ssh://git@x.org/acme/infra//modules/vpc/?depth=1&ref=vpc%2Fv1.3.0",
                "no",
            ),
            (
                "git::https://x.org/acme/infra//modules/vpc?ref=0123456789012345678901234567890123456789",
                "no",
            ),
            (
                "git::https://x.org/acme/infra//modules/vpc?ref=vpc/v1.2.0",
                "another version",
            ),
            (
                "git::https://x.org/acme/infra//modules/vpc?ref=main",
                "another version",
            ),
            (
                "git::https://x.org/acme/infra//modules/vpc",
                "another version",
            ),
            (
                "git::https://x.org/acme/infra//modules/dns?ref=vpc/v1.3.0",
                "another module",
            ),
            (
                "git::https://y.org/acme/infra//modules/vpc?ref=vpc/v1.3.0",
                "another module",
            ),
            (
                "git::https://x.org/acme/infra//modules/vpc?ref=…",
                "has a `?ref=` that only Terraform can compute",
            ),
            (
                "git::https://x.org/acme/infra//modules/dns?ref=…",
                "another module",
            ),
        ];
        for (source, expected) in table {
            let call = call(source, CallVersion::Any);
            assert_eq!(outcome(&release, &call), expected, "{source}");
        }
    }

    #[test]
    fn calls_of_a_directory_name_a_remote_of_its_repository_if_there_is_one() {
        let of_fork = "git::https://x.org/fork/infra.git//live/modules/vpc?ref=vpc/v1.3.0";
        let of_origin = "git::https://x.org/acme/infra.git//live/modules/vpc?ref=vpc/v1.3.0";
        let elsewhere = "git::https://x.org/acme/infra.git//modules/vpc?ref=vpc/v1.3.0";
        let of_registry = "acme/infra/aws//live/modules/vpc?ref=vpc/v1.3.0";
        let none = release("/modules/vpc", &[], "live");
        let one = release("/modules/vpc", &["git@x.org:acme/infra.git"], "live");
        let table = [
            (&none, of_fork, "no"),
            (&none, of_origin, "no"),
            (&none, elsewhere, "another module"),
            (&none, of_registry, "another module"),
            (&one, of_fork, "another module"),
            (&one, of_origin, "no"),
            (&one, elsewhere, "another module"),
        ];
        for (release, source, expected) in table {
            let call = call(source, CallVersion::Any);
            assert_eq!(outcome(release, &call), expected, "{source}");
        }
    }
}
