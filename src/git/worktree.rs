//! Commits that are checked out outside of the working tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::answer::Fields;
use super::program::Program;
use super::{CommitId, GitError, Repository};

/// Disables hooks and fetches of the user's configuration in a checkout.
const ALONE: [&str; 6] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "submodule.recurse=false",
    // The stack may lie in a part that is not checked out here.
    "-c",
    "core.sparseCheckout=false",
];

/// The mode of an entry of the index that is a submodule.
const SUBMODULE: &[u8] = b"160000 ";

/// A commit that is checked out in a directory of its own. The directory is removed when this is dropped.
pub struct Worktree {
    path: PathBuf,
    /// The files that git knows, from the top.
    files: Vec<String>,
    repository: Program,
    own: Program,
}

impl Repository {
    /// Checks out a commit in a directory that does not exist yet, without any branch, and fills its
    /// submodules. No hooks run.
    pub fn check_out(&self, commit: &CommitId, path: &Path) -> Result<Worktree, GitError> {
        let text = path.to_string_lossy();
        let add = ["worktree", "add", "--quiet", "--detach", &text];
        let mut worktree = Worktree {
            path: path.to_owned(),
            files: Vec::new(),
            repository: self.program.clone(),
            own: Program::new(path),
        };
        (self.program).ask(&[&ALONE[..], &add, &[commit.as_str()]].concat())?;
        let (files, n_submodules) = worktree.own.files()?;
        worktree.files = files;
        if n_submodules > 0 {
            let fill = ["submodule", "--quiet", "update", "--init", "--recursive"];
            worktree.own.ask(&[&ALONE[..2], &fill].concat())?;
        }
        Ok(worktree)
    }

    /// Removes the checkouts that a killed process has left in a folder, even those whose directories are not
    /// there any more. The folder stays.
    pub fn remove_checkouts(&self, folder: &Path) {
        let Ok(folder) = dunce::canonicalize(folder) else {
            return;
        };
        match self.program.ask(&["worktree", "list", "--porcelain"]) {
            Ok(list) => {
                let list = String::from_utf8_lossy(&list);
                let paths = list.lines().filter_map(|it| it.strip_prefix("worktree "));
                for path in paths.map(Path::new).filter(|it| it.starts_with(&folder)) {
                    remove(&self.program, path);
                }
            }
            Err(error) => tracing::debug!(%error, "git cannot list checkouts"),
        }
    }
}

/// Removes a checkout, even one that was not finished. Links in it are not followed.
fn remove(program: &Program, path: &Path) {
    // git only removes a directory with `.git`, which it lacks while it is created, but prunes missing ones. A failed
    // removal is repeated by the next command.
    _ = fs::remove_dir_all(path);
    let text = path.to_string_lossy();
    // Twice: git locks a checkout while it is being made.
    let force = ["worktree", "remove", "--force", "--force", &text];
    if let Err(error) = program.ask(&force) {
        tracing::debug!(%error, "git cannot remove a checkout");
    }
}

impl Worktree {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the files whose content needs a filter that this machine lacks, such as that for large files: paths
    /// from the top of the checkout, each with the name of the filter.
    pub fn unfilled(&self) -> Result<BTreeMap<String, String>, GitError> {
        let is_attributes = |file: &String| file.rsplit('/').next() == Some(".gitattributes");
        if !self.files.iter().any(is_attributes) {
            return Ok(BTreeMap::new());
        }
        let attributes = self.own.attributes("filter", &self.files)?;
        let names: BTreeSet<&String> = attributes.iter().map(|(_, filter)| filter).collect();
        let mut missing = BTreeSet::new();
        for name in names {
            let is_set = |what: &str| {
                let value = self.own.config(&format!("filter.{name}.{what}"))?;
                Ok::<_, GitError>(value.is_some())
            };
            if !is_set("smudge")? && !is_set("process")? {
                missing.insert(name.clone());
            }
        }
        let attributes = attributes.into_iter();
        Ok(attributes
            .filter(|(_, filter)| missing.contains(filter))
            .collect())
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        remove(&self.repository, &self.path);
    }
}

impl Program {
    /// Returns the paths of all files that git knows, and how many submodules there are besides.
    fn files(&self) -> Result<(Vec<String>, usize), GitError> {
        let arguments = ["ls-files", "--stage", "-z"];
        let answer = self.ask(&arguments)?;
        let mut fields = Fields::new(&answer, &arguments);
        let (mut files, mut n_submodules) = (Vec::new(), 0);
        while let Some(entry) = fields.next() {
            if entry.starts_with(SUBMODULE) {
                n_submodules += 1;
                continue;
            }
            let Some(path) = entry.splitn(2, |&byte| byte == b'\t').nth(1) else {
                return Err(fields.unexpected(entry));
            };
            files.push(String::from_utf8_lossy(path).into_owned());
        }
        Ok((files, n_submodules))
    }

    fn attributes(&self, name: &str, files: &[String]) -> Result<Vec<(String, String)>, GitError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = ["check-attr", "-z", "--stdin", name];
        let answer = self.ask_about(&arguments, files, "\0")?;
        let mut fields = Fields::new(&answer, &arguments);
        let mut found = Vec::new();
        // The file, the attribute, its value.
        while let (Some(file), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next())
        {
            if !matches!(value, b"unspecified" | b"unset" | b"set") {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                found.push((text(file), text(value)));
            }
        }
        Ok(found)
    }
}
