//! What a walk met besides configuration: the files that Terraform and Terragrunt read, and links.
//!
//! Kept only for whoever asks, by directory and by name, since a large project has tens of thousands.
//! What the files say is not known here.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};

use super::files::FileKind;
use crate::path::ProjectPath;

/// Endings of the files of Terraform and its fork.
const ENDINGS: [&str; 4] = [".tf", ".tofu", ".tf.json", ".tofu.json"];

/// The file that makes a directory a unit of Terragrunt.
pub(crate) const TERRAGRUNT_FILE: &str = "terragrunt.hcl";

/// What makes a directory a unit in JSON, unless the other file does.
pub(crate) const TERRAGRUNT_JSON_FILE: &str = "terragrunt.hcl.json";

/// Directories that git and others keep things in that nobody wrote.
const CACHES: [&str; 3] = [".git", ".terraform", ".terragrunt-cache"];

/// The directories that a walk went through, dot directories and other projects left out.
#[derive(Debug, Default)]
pub struct Listing {
    pub(super) directories: HashMap<ProjectPath, DirectoryListing>,
    /// The dot directories and those with a mark, by path; without caches.
    pub(super) left_out: Vec<ProjectPath>,
}

/// What one directory has, by name.
#[derive(Debug, Default)]
pub(crate) struct DirectoryListing {
    /// The files of Terraform and Terragrunt, each with whether it is a plain file, not a
    /// link or worse.
    pub(crate) files: Vec<(OsString, bool)>,
    /// The symbolic links, to whatever.
    pub(crate) links: Vec<OsString>,
}

impl Listing {
    /// Returns what a directory has; `None` if the walk did not go through it.
    pub(crate) fn get(&self, directory: &str) -> Option<&DirectoryListing> {
        self.directories.get(directory)
    }

    /// Returns the directories of the project that the walk did not enter, by path, save caches.
    pub(crate) fn left_out(&self) -> &[ProjectPath] {
        &self.left_out
    }

    /// Returns the directories that have links, by path.
    pub(crate) fn with_links(&self) -> Vec<(&ProjectPath, &DirectoryListing)> {
        let all = self.directories.iter();
        let mut found: Vec<_> = all.filter(|(_, listed)| !listed.links.is_empty()).collect();
        found.sort_unstable_by_key(|&(path, _)| path);
        found
    }
}

impl DirectoryListing {
    /// Takes an entry that is no directory in, if it is of interest.
    pub(super) fn add(&mut self, name: &OsStr, kind: FileKind) {
        if is_terraform(name) || name == TERRAGRUNT_FILE || name == TERRAGRUNT_JSON_FILE {
            self.files.push((name.to_owned(), kind == FileKind::File));
        }
        if kind == FileKind::Link {
            self.links.push(name.to_owned());
        }
    }

    /// Sorts by name.
    pub(crate) fn sort(&mut self) {
        self.files.sort_unstable();
        self.links.sort_unstable();
    }

    /// Says whether there is a link of that name.
    pub(crate) fn has_link(&self, name: &str) -> bool {
        let name = OsStr::new(name);
        let found = self.links.binary_search_by(|link| (**link).cmp(name));
        found.is_ok()
    }
}

/// Says whether a directory of that name has nothing that anybody wrote.
pub(crate) fn is_cache(name: &OsStr) -> bool {
    CACHES.iter().any(|cache| name == OsStr::new(cache))
}

/// Says whether Terraform or its fork reads a file of that name.
pub(crate) fn is_terraform(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let mut endings = ENDINGS.iter().map(|ending| ending.as_bytes());
    !name.starts_with(b".") && endings.any(|ending| name.ends_with(ending))
}
