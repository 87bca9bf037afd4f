//! The files of a commit, as the `git` program reports them.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use super::{Program, limit};
use crate::git::answer::{Fields, blob};
use crate::git::{
    CommitId, GitError, RecordedFile, RecordedMode, TreeScope, blob_id, project_path,
    repository_path,
};
use crate::path::ProjectPath;
use crate::project::discover::TreeEntry;

impl Program {
    /// Returns the files and links of a commit in the project.
    fn tree(&self, commit: &CommitId, prefix: &str) -> Result<Vec<TreeEntry>, GitError> {
        let mut entries = Vec::new();
        self.list(commit, prefix, |listed| {
            entries.extend(tree_entry(listed, prefix));
        })?;
        Ok(entries)
    }

    pub(in crate::git) fn recorded(
        &self,
        commit: &CommitId,
        prefix: &str,
        directories: &[ProjectPath],
    ) -> Result<Vec<RecordedFile>, GitError> {
        let mut files = Vec::new();
        self.list(commit, prefix, |listed| {
            files.extend(recorded_file(listed, prefix));
        })?;
        let wanted: HashSet<&str> = directories.iter().map(ProjectPath::as_str).collect();
        if !wanted.contains("/") {
            files.retain(|file| file.path.ancestors().any(|above| wanted.contains(above)));
        }
        Ok(files)
    }

    fn list(
        &self,
        commit: &CommitId,
        prefix: &str,
        mut add: impl FnMut(&ListedEntry<'_>),
    ) -> Result<(), GitError> {
        let mut arguments = vec!["ls-tree", "-r", "-z", "--full-tree", commit.as_str()];
        arguments.extend(limit(prefix));
        let answer = self.ask(&arguments)?;
        let mut fields = Fields::new(&answer, &arguments);
        while let Some(record) = fields.next() {
            let listed = ListedEntry::parse(record);
            add(&listed.ok_or_else(|| fields.unexpected(record))?);
        }
        Ok(())
    }

    pub(in crate::git) fn entries(
        &self,
        commit: &CommitId,
        prefix: &str,
        scope: Option<&TreeScope>,
    ) -> Result<Vec<TreeEntry>, GitError> {
        let mut entries = self.tree(commit, prefix)?;
        let Some(scope) = scope else {
            return Ok(entries);
        };
        let of = |directories: &[ProjectPath]| -> HashSet<Vec<u8>> {
            let paths = directories.iter();
            paths.map(|path| path.relative().into()).collect()
        };
        let (directories, trees) = (of(&scope.directories), of(&scope.trees));
        entries.retain(|entry| {
            let mut above = above(&entry.path);
            let own = above.next().unwrap_or_default();
            directories.contains(own)
                || trees.contains(own)
                || above.any(|directory| trees.contains(directory))
        });
        Ok(entries)
    }

    pub(in crate::git) fn contents(
        &self,
        ids: &[&str],
        max_bytes: u32,
    ) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        let requests: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
        let sizes = self.batch("--batch-check", &requests)?;
        let sizes = String::from_utf8_lossy(&sizes);
        // `id blob size` on each line.
        let is_small: Vec<bool> = sizes
            .lines()
            .map(|line| {
                let size = line.rsplit(' ').next().and_then(|size| size.parse().ok());
                size.is_none_or(|size: u64| size <= u64::from(max_bytes))
            })
            .collect();
        let wanted: Vec<String> = requests
            .into_iter()
            .zip(&is_small)
            .filter_map(|(id, &is_small)| is_small.then_some(id))
            .collect();
        let answer = self.batch("--batch", &wanted)?;
        let mut rest = &answer[..];
        let contents = is_small.into_iter().map(|is_small| {
            if !is_small {
                return Ok(None);
            }
            let content = blob(&mut rest).map(<[u8]>::to_vec);
            let unexpected = || Fields::new(rest, &["cat-file", "--batch"]).unexpected(rest);
            content.map(Some).ok_or_else(unexpected)
        });
        contents.collect()
    }

    /// Returns the output of `git cat-file` for objects.
    pub(super) fn batch(&self, option: &str, requests: &[String]) -> Result<Vec<u8>, GitError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        self.ask_about(&["cat-file", option], requests, "\n")
    }

    pub(in crate::git) fn place(&self, prefix: &str, file: &ProjectPath) -> PathBuf {
        self.directory.join(repository_path(file, prefix))
    }

    pub(in crate::git) fn ids_on_disk(
        &self,
        prefix: &str,
        files: &[ProjectPath],
    ) -> Result<Vec<Option<String>>, GitError> {
        // A request is a line. One that began with a quote would be unquoted.
        let can_ask = |file: &ProjectPath| !file.as_str().contains(['\n', '\r']);
        let requests: Vec<String> = files
            .iter()
            .filter(|file| can_ask(file))
            .map(|file| format!("./{}", repository_path(file, prefix)))
            .collect();
        let asked = ["hash-object", "--stdin-paths"];
        let answer = self.ask_about(&asked, &requests, "\n")?;
        let answer = String::from_utf8_lossy(&answer);
        let mut answers = answer.lines();
        let id = |file: &ProjectPath| {
            if can_ask(file) {
                let unexpected = || Fields::new(&[], &asked).unexpected(answer.as_bytes());
                let id = answers.next().ok_or_else(unexpected)?;
                Ok(Some(id.to_owned()))
            } else {
                blob_id(&self.place(prefix, file))
            }
        };
        files.iter().map(id).collect()
    }

    pub(in crate::git) fn files_in(
        &self,
        commit: &CommitId,
        prefix: &str,
        directories: &[ProjectPath],
    ) -> Result<Vec<Vec<String>>, GitError> {
        let mut names: BTreeMap<&ProjectPath, Vec<String>> = BTreeMap::new();
        for directory in directories {
            names.entry(directory).or_default();
        }
        for entry in self.tree(commit, prefix)? {
            // A name that is not UTF-8 cannot be requested, and no stack has one.
            let Ok(file) = str::from_utf8(&entry.path) else {
                continue;
            };
            if entry.is_link {
                continue;
            }
            let file = ProjectPath::from_normal(&format!("/{file}"));
            let directory = file.parent().unwrap_or_else(ProjectPath::root);
            if let Some(names) = names.get_mut(&directory) {
                names.push(file.basename().to_owned());
            }
        }
        for names in names.values_mut() {
            names.sort_unstable();
        }
        Ok(directories
            .iter()
            .map(|directory| names[directory].clone())
            .collect())
    }

    pub(in crate::git) fn read(
        &self,
        commit: &CommitId,
        prefix: &str,
        files: &[ProjectPath],
    ) -> Result<Vec<Vec<u8>>, GitError> {
        // The batch form ends requests with line feeds, which a name may contain, so files are requested by id.
        let ids = files.iter().map(|file| {
            let name = format!("{commit}:{}", repository_path(file, prefix));
            if name.contains('\n') {
                return self.ask_line(&["rev-parse", "--verify", "--end-of-options", &name]);
            }
            Ok(name)
        });
        let requests: Vec<String> = ids.collect::<Result<_, _>>()?;
        let arguments = ["cat-file", "--batch"];
        let answer = self.ask_about(&arguments, &requests, "\n")?;
        let mut rest = &answer[..];
        let mut contents = Vec::with_capacity(files.len());
        // `id blob size`, a line feed, the content, a line feed.
        for _ in files {
            let content = blob(&mut rest);
            let unexpected = || Fields::new(rest, &arguments).unexpected(rest);
            contents.push(content.ok_or_else(unexpected)?.to_vec());
        }
        Ok(contents)
    }
}

/// An entry that `git ls-tree` lists.
struct ListedEntry<'a> {
    mode: &'a str,
    id: &'a str,
    path: &'a [u8],
}

impl<'a> ListedEntry<'a> {
    /// Parses `100644 blob id`, a tab and the path. Returns `None` if it is something else.
    fn parse(record: &'a [u8]) -> Option<Self> {
        let tab = record.iter().position(|&byte| byte == b'\t')?;
        let head = str::from_utf8(&record[..tab]).ok()?;
        let [mode, _, id] = head.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let path = &record[tab + 1..];
        Some(ListedEntry { mode, id, path })
    }
}

/// Returns an entry of a commit if it is a file or link in the project.
fn tree_entry(listed: &ListedEntry<'_>, prefix: &str) -> Option<TreeEntry> {
    let ListedEntry { mode, id, path } = *listed;
    let is_link = mode == "120000";
    if !is_link && !mode.starts_with("100") {
        return None;
    }
    let inside = match prefix {
        "" => path,
        prefix => path.strip_prefix(prefix.as_bytes())?.strip_prefix(b"/")?,
    };
    Some(TreeEntry {
        path: inside.to_vec(),
        id: id.to_owned(),
        is_link,
    })
}

/// Returns an entry of a commit if it is a file, link or submodule in the project.
fn recorded_file(listed: &ListedEntry<'_>, prefix: &str) -> Option<RecordedFile> {
    let ListedEntry { mode, id, path } = *listed;
    let mode = match mode {
        "120000" => RecordedMode::Link,
        "160000" => RecordedMode::Repository,
        "100755" => RecordedMode::Executable,
        mode if mode.starts_with("100") => RecordedMode::File,
        _ => return None,
    };
    Some(RecordedFile {
        path: project_path(path, prefix)?,
        mode,
        id: id.to_owned(),
    })
}

/// Returns the directories above a file, nearest first; the root is empty.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = (0..path.len()).rev().filter(|&at| path[at] == b'/');
    slashes.map(|at| &path[..at]).chain([&[][..]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_entry_of_a_tree_is_not_left_out() {
        let entry = ListedEntry::parse(b"120000 blob abc\ta\tb \xff").unwrap();
        assert_eq!((entry.mode, entry.id), ("120000", "abc"));
        assert_eq!(entry.path, b"a\tb \xff");
        for line in [
            "",
            "nonsense",
            "100644 blob abc a",
            "100644 abc\ta",
            "100644  blob abc\ta",
        ] {
            assert!(ListedEntry::parse(line.as_bytes()).is_none(), "{line}");
        }
    }
}
