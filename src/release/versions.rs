//! The versions of a module, and the step from one to the next.

use std::fmt;

use semver::Version;

use crate::diagnostic::closest;
use crate::error::{Error, ErrorContext as _, Refusal, Result};
use crate::git::{CommitId, GitError, Repository};
use crate::project::Project;
use crate::project::module::ModuleBlock;
use crate::version::{Constraint, parse_version};

/// A release as a user names it: `vpc@1.3.0..1.4.0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseName {
    module: String,
    old: String,
    new: String,
}

impl ReleaseName {
    /// Parses `MODULE@OLD..NEW`.
    pub fn parse(written: &str) -> Result<Self, String> {
        const SHAPE: &str = "write the module, its old version and its new one: `vpc@1.3.0..1.4.0`";
        let parts = written.split_once('@').and_then(|(module, versions)| {
            let (old, new) = versions.split_once("..")?;
            (!module.is_empty()).then_some((module, old, new))
        });
        let Some((module, old, new)) = parts else {
            return Err(SHAPE.to_owned());
        };
        let version = |text: &str| {
            let parsed = parse_version(text).map(|(version, _)| version);
            parsed.ok_or_else(|| format!("`{text}` is not a version; {SHAPE}"))
        };
        let is_newer = version(old)?.cmp_precedence(&version(new)?).is_lt();
        if !is_newer {
            return Err(format!(
                "`{new}` is not newer than `{old}`: write the old version first"
            ));
        }
        Ok(ReleaseName {
            module: module.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
        })
    }
}

/// As the user writes it.
impl fmt::Display for ReleaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}..{}", self.module, self.old, self.new)
    }
}

/// A version of a module, and its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasedVersion {
    pub version: Version,
    pub tag: String,
    pub commit: CommitId,
}

/// The step of a module from one version to a newer one.
#[derive(Debug, Clone)]
pub struct Release {
    pub module: ModuleBlock,
    pub old: ReleasedVersion,
    pub new: ReleasedVersion,
    pub(super) versions: Vec<Version>,
    /// The remotes of the repository, as addresses.
    pub(super) remotes: Vec<String>,
    /// The project root, relative to the top level of the repository.
    pub(super) prefix: String,
}

const FETCH_TAGS: &str = "git fetch --tags";
const UNREAD_TAGS: &str = "failed to read the tags of the repository";

/// How many versions an error lists.
const MAX_SHOWN: usize = 5;

impl Release {
    /// Finds a release: its module in the project, and its versions among the tags of the
    /// repository. Fails if there is no such module or version, or git fails.
    pub fn find(name: &ReleaseName, project: &Project, repository: &Repository) -> Result<Self> {
        let module = project.modules.get(&name.module);
        let module = module.ok_or_else(|| no_module(&name.module, project))?;
        let mut tags: Vec<(Version, String)> = repository
            .tags()
            .context(UNREAD_TAGS)?
            .into_iter()
            .filter_map(|tag| Some((module.tag.version(&tag)?, tag)))
            .collect();
        tags.sort();
        let version = |written: &str| {
            let exact = module.tag.tag(written);
            let parsed = parse_version(written).map(|(version, _)| version);
            let is_it = |version: &Version| {
                let parsed = parsed.as_ref();
                parsed.is_some_and(|parsed| parsed.cmp_precedence(version).is_eq())
            };
            let found = tags
                .iter()
                .filter(|(version, _)| is_it(version))
                .max_by_key(|(_, tag)| *tag == exact);
            let commit = |tag: &str| repository.commit(&format!("refs/tags/{tag}^{{commit}}"));
            if let Some((version, tag)) = found
                && let Some(commit) = commit(tag).context(UNREAD_TAGS)?
            {
                return Ok(ReleasedVersion {
                    version: version.clone(),
                    tag: tag.clone(),
                    commit,
                });
            }
            Err(no_tag(module, written, &exact, &tags))
        };
        let (old, new) = (version(&name.old)?, version(&name.new)?);
        let mut remotes = Vec::new();
        for remote in repository.remotes().context(UNREAD_TAGS)? {
            let url = repository.config(&format!("remote.{remote}.url"));
            remotes.extend(url.context(UNREAD_TAGS)?);
        }
        Ok(Release {
            module: module.clone(),
            old,
            new,
            versions: tags.into_iter().map(|(version, _)| version).collect(),
            remotes,
            prefix: repository.prefix().to_owned(),
        })
    }

    /// Returns the version to which a constraint resolved before the new one was released: the newest older one
    /// that it allows.
    pub(super) fn resolves_to(&self, constraint: Option<&Constraint>) -> Option<&Version> {
        newest(&self.versions, &self.new.version, constraint)
    }
}

fn no_module(name: &str, project: &Project) -> Error {
    let known = || project.modules.keys().map(String::as_str);
    let hint = match closest(name, known()) {
        Some(closest) => format!("did you mean `{closest}`?"),
        None if project.modules.is_empty() => {
            "the project has no `module` block; see `orch help releases`".to_owned()
        }
        None => {
            let known: Vec<String> = known().map(|it| format!("`{it}`")).collect();
            format!("the modules are {}", known.join(", "))
        }
    };
    Error::usage(format!("no module `{name}`")).hint(hint)
}

fn no_tag(module: &ModuleBlock, version: &str, tag: &str, tags: &[(Version, String)]) -> Error {
    let known = tags.iter().rev().take(MAX_SHOWN);
    let known: Vec<String> = known.map(|(version, _)| version.to_string()).collect();
    let hint = if known.is_empty() {
        "no tag looks like a version: check `tag` in the `module` block".to_owned()
    } else {
        format!("its newest versions here are {}", known.join(", "))
    };
    let module = &module.name.value;
    let problem = format!("the module `{module}` has no version {version}: no tag `{tag}`");
    Error::refused(problem.clone())
        .hint(format!("if the tag exists elsewhere, run `{FETCH_TAGS}`"))
        .hint(hint)
        .with_refusal(Refusal {
            problem,
            command: Some(FETCH_TAGS.to_owned()),
        })
}

/// Opens the repository with the tags of a module.
pub fn open_repository(project: &Project) -> Result<Repository> {
    Repository::open(&project.root).map_err(|error| match error {
        GitError::NoRepository(_) | GitError::NoWorkingTree(_) => {
            let hint = "the versions of a module are tags: run `orch` in its git repository";
            Error::refused(error.to_string()).hint(hint).documented()
        }
        error => Error::described(UNREAD_TAGS, error),
    })
}

/// Returns whether a constraint allows a version; without one, any version that is no prerelease.
pub(super) fn allows(constraint: Option<&Constraint>, version: &Version) -> bool {
    match constraint {
        Some(constraint) => constraint.allows(version, false),
        None => version.pre.is_empty(),
    }
}

/// Returns the newest of some versions that is older than another one and that a constraint allows.
fn newest<'v>(
    versions: &'v [Version],
    than: &Version,
    constraint: Option<&Constraint>,
) -> Option<&'v Version> {
    let older = versions.iter().filter(|version| *version < than);
    older
        .filter(|version| allows(constraint, version))
        .max_by(|a, b| a.cmp_precedence(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constraint_resolves_to_the_newest_older_version_that_it_allows() {
        let versions: Vec<Version> = ["1.2.9", "1.3.0", "1.3.1", "1.4.0-rc1", "1.4.0", "2.0.0"]
            .map(|it| it.parse().unwrap())
            .into();
        let table = [
            // released, constraint, resolves to, allows the new one
            ("1.4.0", None, Some("1.3.1"), true),
            ("1.4.0", Some("~> 1.3"), Some("1.3.1"), true),
            ("1.4.0", Some("~> 1.3.0"), Some("1.3.1"), false),
            ("1.4.0", Some("1.3.0"), Some("1.3.0"), false),
            ("1.4.0", Some("= 1.3.1"), Some("1.3.1"), false),
            ("1.4.0", Some("~> 1.2.0"), Some("1.2.9"), false),
            ("1.4.0", Some(">= 1.0, < 1.3"), Some("1.2.9"), false),
            ("1.4.0", Some(">= 1.0, != 1.3.1"), Some("1.3.0"), true),
            ("1.4.0", Some("~> 2.0"), None, false),
            ("1.4.0", Some("1.4.0-rc1"), Some("1.4.0-rc1"), false),
            ("1.4.0", Some("1.4.0"), None, true),
            ("1.3.0", None, Some("1.2.9"), true),
            ("1.3.0", Some(">= 1.3"), None, true),
            ("2.0.0", None, Some("1.4.0"), true),
            ("2.0.0", Some("~> 1.0"), Some("1.4.0"), false),
            ("2.0.0", Some(">= 1.0"), Some("1.4.0"), true),
            ("1.4.0-rc1", None, Some("1.3.1"), false),
            ("1.2.0", None, None, true),
        ];
        for (released, written, resolved, is_allowed) in table {
            let released: Version = released.parse().unwrap();
            let constraint = written.map(|text| Constraint::parse(text).unwrap());
            let found = newest(&versions, &released, constraint.as_ref()).map(ToString::to_string);
            assert_eq!(found.as_deref(), resolved, "{written:?} before {released}");
            let allows = allows(constraint.as_ref(), &released);
            assert_eq!(allows, is_allowed, "{written:?} with {released}");
        }
    }

    #[test]
    fn a_release_is_named_by_a_module_and_two_versions() {
        let name = ReleaseName::parse("vpc@1.3..v1.4.0-rc.1").unwrap();
        assert_eq!(name.to_string(), "vpc@1.3..v1.4.0-rc.1");
        for wrong in [
            "",
            "vpc",
            "vpc@",
            "vpc@1.3.0",
            "vpc@1.3.0..",
            "vpc@..1.3.0",
            "vpc@1.3.0-1.4.0",
            "@1.3.0..1.4.0",
            "vpc@1.3.0..1.3.0",
            "vpc@1.3.0..1.3",
            "vpc@1.4.0..1.3.0",
            "vpc@1.3.0...1.4.0",
            "vpc@a..b",
        ] {
            assert!(ReleaseName::parse(wrong).is_err(), "{wrong}");
        }
    }
}
