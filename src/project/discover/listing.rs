//! The other files of a walk: those that Terraform and Terragrunt read, and links.
//!
//! The listing is optional, because a large project has tens of thousands of these files. This module doesn't read
//! them.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};

use super::ParsedFile;
use super::files::FileKind;
use crate::language::parse::is_whole;
use crate::language::syntax::Body;
use crate::path::ProjectPath;

/// Endings of the files of Terraform and its fork.
const ENDINGS: [&str; 4] = [".tf", ".tofu", ".tf.json", ".tofu.json"];

/// The file that makes a directory a Terragrunt unit.
pub(crate) const TERRAGRUNT_FILE: &str = "terragrunt.hcl";

/// The JSON file that makes a directory a unit, unless it has the other file.
pub(crate) const TERRAGRUNT_JSON_FILE: &str = "terragrunt.hcl.json";

/// Directories in which git and other tools keep generated files.
const CACHES: [&str; 3] = [".git", ".terraform", ".terragrunt-cache"];

/// The directories that a walk went through, dot directories and other projects left out.
#[derive(Debug, Default)]
pub struct Listing {
    pub(super) directories: HashMap<ProjectPath, DirectoryListing>,
    /// The dot directories and those with a mark, by path; without caches.
    pub(super) left_out: Vec<ProjectPath>,
    /// The parsed configuration files, without empty and invalid ones.
    pub(super) parsed: Vec<ParsedFile>,
}

/// The listed files of one directory, by name.
#[derive(Debug, Default)]
pub(crate) struct DirectoryListing {
    /// The files of Terraform and Terragrunt, each with whether it is a plain file rather than a
    /// link or a special file.
    pub(crate) files: Vec<(OsString, bool)>,
    /// The symbolic links, to any target.
    pub(crate) links: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolFiles {
    /// `terragrunt.hcl`.
    pub terragrunt: bool,
    /// `.tf` and `.tf.json`.
    pub terraform: bool,
    /// `.tofu` and `.tofu.json`.
    pub tofu: bool,
}

impl Listing {
    /// Returns the configuration files with a complete syntax tree.
    pub(crate) fn whole_files(&self) -> impl Iterator<Item = (&ProjectPath, &Body)> {
        let files = self.parsed.iter().map(|file| (&file.path, &*file.body));
        files.filter(|(_, body)| is_whole(body))
    }

    /// Returns the listing of a directory; `None` if the walk did not enter it.
    pub(crate) fn get(&self, directory: &str) -> Option<&DirectoryListing> {
        self.directories.get(directory)
    }

    pub fn tool_files(&self, directory: &ProjectPath) -> ToolFiles {
        let mut found = ToolFiles::default();
        let files = self.get(directory.as_str());
        for (name, _) in files.into_iter().flat_map(|listed| &listed.files) {
            let is_unit = is_terragrunt(name);
            let name = name.as_encoded_bytes();
            let is_tofu = name.ends_with(b".tofu") || name.ends_with(b".tofu.json");
            found.terragrunt |= is_unit;
            found.tofu |= is_tofu;
            found.terraform |= !is_unit && !is_tofu;
        }
        found
    }

    /// Returns how many directories are Terragrunt units, and how many others have Terraform files.
    pub fn guests(&self) -> (usize, usize) {
        let has = |directory: &DirectoryListing, is_it: fn(&OsStr) -> bool| {
            directory.files.iter().any(|(name, _)| is_it(name))
        };
        let is_unit = |directory: &&DirectoryListing| has(directory, is_terragrunt);
        let all = self.directories.values();
        let units = all.clone().filter(is_unit);
        let others = all.filter(|&directory| !is_unit(&directory) && has(directory, is_terraform));
        (units.count(), others.count())
    }

    /// Returns the directories with files of Terraform, by path.
    pub(crate) fn with_terraform(&self) -> Vec<(&ProjectPath, &DirectoryListing)> {
        let all = self.directories.iter();
        let has =
            |listed: &DirectoryListing| listed.files.iter().any(|(name, _)| is_terraform(name));
        let mut found: Vec<_> = all.filter(|(_, listed)| has(listed)).collect();
        found.sort_unstable_by_key(|&(path, _)| path);
        found
    }

    /// Returns the directories with a Terragrunt file, by path.
    pub(crate) fn with_terragrunt(&self) -> Vec<ProjectPath> {
        let directories = self.directories.keys();
        let is_unit = |path: &&ProjectPath| self.tool_files(path).terragrunt;
        let mut found: Vec<ProjectPath> = directories.filter(is_unit).cloned().collect();
        found.sort_unstable();
        found
    }

    /// Returns the directories of the project that the walk did not enter, by path, except caches.
    pub(crate) fn left_out(&self) -> &[ProjectPath] {
        &self.left_out
    }

    pub(crate) fn with_links(&self) -> Vec<(&ProjectPath, &DirectoryListing)> {
        let all = self.directories.iter();
        let mut found: Vec<_> = all.filter(|(_, listed)| !listed.links.is_empty()).collect();
        found.sort_unstable_by_key(|&(path, _)| path);
        found
    }
}

impl DirectoryListing {
    pub(super) fn add(&mut self, name: &OsStr, kind: FileKind) {
        if is_terraform(name) || is_terragrunt(name) {
            self.files.push((name.to_owned(), kind == FileKind::File));
        }
        if kind == FileKind::Link {
            self.links.push(name.to_owned());
        }
    }

    pub(crate) fn sort(&mut self) {
        self.files.sort_unstable();
        self.links.sort_unstable();
    }

    pub(crate) fn has_link(&self, name: &str) -> bool {
        let name = OsStr::new(name);
        let found = self.links.binary_search_by(|link| (**link).cmp(name));
        found.is_ok()
    }
}

/// Returns whether a directory of that name holds only generated files.
pub(crate) fn is_cache(name: &OsStr) -> bool {
    CACHES.iter().any(|cache| name == OsStr::new(cache))
}

/// Returns whether a file of that name makes its directory a unit of Terragrunt.
pub(crate) fn is_terragrunt(name: &OsStr) -> bool {
    name == TERRAGRUNT_FILE || name == TERRAGRUNT_JSON_FILE
}

/// Returns whether Terraform or its fork reads a file of that name.
pub(crate) fn is_terraform(name: &OsStr) -> bool {
    terraform_stem(name).is_some()
}

/// Returns whether Terraform merges a file of that name into the others.
pub(crate) fn is_override(name: &OsStr) -> bool {
    terraform_stem(name).is_some_and(|stem| stem == b"override" || stem.ends_with(b"_override"))
}

/// Returns the name of a Terraform file without its ending.
fn terraform_stem(name: &OsStr) -> Option<&[u8]> {
    let name = name.as_encoded_bytes();
    let mut endings = ENDINGS.iter().map(|ending| ending.as_bytes());
    let stem = endings.find_map(|ending| name.strip_suffix(ending))?;
    (!name.starts_with(b".")).then_some(stem)
}
