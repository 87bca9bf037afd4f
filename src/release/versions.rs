//! The versions of a module, and the step from one to the next.

use std::fmt;

use semver::Version;

use crate::diagnostic::closest;
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

/// Why a release cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    #[error("no module `{name}`")]
    UnknownModule {
        name: String,
        /// A module of nearly this name.
        closest: Option<String>,
    },
    #[error("the module `{module}` has no version {version}: no tag `{tag}`")]
    NoTag {
        module: String,
        /// The version, as the user writes it.
        version: String,
        tag: String,
        /// The newest versions that have tags, the newest first.
        known: Vec<Version>,
    },
    /// Git cannot answer.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// How many versions an error lists.
const MAX_SHOWN: usize = 5;

impl Release {
    /// Finds a release: its module in the project, and its versions among the tags of the
    /// repository. Fails if there is no such module or version, or git fails.
    pub fn find(
        name: &ReleaseName,
        project: &Project,
        repository: &Repository,
    ) -> Result<Self, ReleaseError> {
        let Some(module) = project.modules.get(&name.module) else {
            let known = project.modules.keys().map(String::as_str);
            return Err(ReleaseError::UnknownModule {
                name: name.module.clone(),
                closest: closest(&name.module, known).map(str::to_owned),
            });
        };
        let mut tags: Vec<(Version, String)> = repository
            .tags()?
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
            match found {
                Some((version, tag)) => match commit(tag)? {
                    Some(commit) => Ok(ReleasedVersion {
                        version: version.clone(),
                        tag: tag.clone(),
                        commit,
                    }),
                    None => Err(no_tag(module, written, exact, &tags)),
                },
                None => Err(no_tag(module, written, exact, &tags)),
            }
        };
        let (old, new) = (version(&name.old)?, version(&name.new)?);
        let mut remotes = Vec::new();
        for remote in repository.remotes()? {
            remotes.extend(repository.config(&format!("remote.{remote}.url"))?);
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

fn no_tag(
    module: &ModuleBlock,
    version: &str,
    tag: String,
    tags: &[(Version, String)],
) -> ReleaseError {
    let known = tags.iter().rev().take(MAX_SHOWN);
    ReleaseError::NoTag {
        module: module.name.value.clone(),
        version: version.to_owned(),
        tag,
        known: known.map(|(version, _)| version.clone()).collect(),
    }
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
