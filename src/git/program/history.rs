//! Questions about the history that the `git` program answers.

use std::collections::{BTreeMap, BTreeSet};

use super::Program;
use crate::git::answer::{Fields, object};
use crate::git::history::{Departure, RENAME_LIMIT, SIMILARITY};
use crate::git::{
    BranchWith, CommitId, CommitText, GitError, HistoryCommit, project_path, repository_path,
};
use crate::path::ProjectPath;

/// How many objects one process is asked for: their contents are held at the same time.
const BATCH: usize = 256;

/// The maximum number of commits of one process: they are on its command line.
const MAX_NAMED: usize = 1000;

/// The maximum number of directories of one command: they are on its command line.
const MAX_LIMITS: usize = 2000;

impl Program {
    pub(in crate::git) fn branches_with(
        &self,
        commits: &BTreeSet<CommitId>,
    ) -> Result<BTreeMap<CommitId, BranchWith>, GitError> {
        let mut found = BTreeMap::new();
        let mut open: Vec<&CommitId> = commits.iter().collect();
        for (refs, is_remote) in [("refs/remotes/*", true), ("refs/heads/*", false)] {
            let refs = format!("--refs={refs}");
            let mut left = Vec::new();
            for part in open.chunks(MAX_NAMED) {
                let mut arguments = vec!["name-rev", "--name-only", &refs];
                arguments.push("--exclude=refs/remotes/*/HEAD");
                arguments.extend(part.iter().map(|commit| commit.as_str()));
                let answer = self.ask(&arguments)?;
                let answer = String::from_utf8_lossy(&answer);
                let mut names = answer.lines();
                for &commit in part {
                    let Some(name) = names.next() else {
                        return Err(Fields::new(&[], &arguments).unexpected(b""));
                    };
                    // `remotes/origin/main~3^2`, or `undefined`.
                    let branch = name.split(['~', '^']).next().unwrap_or(name);
                    let remote = branch.strip_prefix("remotes/");
                    match (is_remote, remote) {
                        (true, Some(branch)) => {
                            found.insert(commit.clone(), BranchWith::Remote(branch.to_owned()));
                        }
                        (false, _) if name != "undefined" => {
                            found.insert(commit.clone(), BranchWith::Local(branch.to_owned()));
                        }
                        _ => left.push(commit),
                    }
                }
            }
            open = left;
        }
        found.extend(open.into_iter().map(|it| (it.clone(), BranchWith::None)));
        Ok(found)
    }

    pub(in crate::git) fn commit_texts(
        &self,
        commits: &BTreeSet<CommitId>,
    ) -> Result<BTreeMap<CommitId, CommitText>, GitError> {
        // Missing commits are neither fetched nor an error.
        let requests: Vec<String> = commits.iter().map(CommitId::to_string).collect();
        let present = self.batch("--batch-check", &requests)?;
        let present: Vec<String> = String::from_utf8_lossy(&present)
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(_, rest)| rest.starts_with("commit "))
            .map(|(id, _)| id.to_owned())
            .collect();
        if present.is_empty() {
            return Ok(BTreeMap::new());
        }
        let arguments = [
            "log",
            "--no-walk=unsorted",
            "--no-show-signature",
            "--encoding=UTF-8",
            "--format=%H%x00%an%x00%ct%x00%B%x00",
            "--stdin",
        ];
        let answer = self.ask_about(&arguments, &present, "\n")?;
        let mut fields = Fields::new(&answer, &arguments);
        let mut texts = BTreeMap::new();
        // The line break after each commit precedes the id of the next.
        while let Some(id) = fields.next() {
            let known = CommitId::new(String::from_utf8_lossy(id).trim());
            let rest = (fields.next(), fields.next(), fields.next());
            let (Some(known), (Some(author), Some(at), Some(message))) = (known, rest) else {
                return Err(fields.unexpected(id));
            };
            let [author, at, message] = [author, at, message].map(String::from_utf8_lossy);
            let unexpected = |_| fields.unexpected(at.as_bytes());
            let text = CommitText {
                author: author.into_owned(),
                committed_at: at.parse().map_err(unexpected)?,
                message: message.trim().to_owned(),
            };
            texts.insert(known, text);
        }
        Ok(texts)
    }

    /// Returns the commits that are reachable from some commits and not from another one.
    pub(in crate::git) fn reachable(
        &self,
        from: &[CommitId],
        without: &CommitId,
    ) -> Result<Vec<CommitId>, GitError> {
        let found = self.revisions(&["rev-list", "--stdin"], from, Some(without))?;
        Ok(found.into_iter().map(|commit| commit.id).collect())
    }

    pub(in crate::git) fn history(
        &self,
        tip: &CommitId,
        base: Option<&CommitId>,
    ) -> Result<Vec<HistoryCommit>, GitError> {
        let arguments = ["rev-list", "--parents", "--stdin"];
        self.revisions(&arguments, std::slice::from_ref(tip), base)
    }

    pub(in crate::git) fn earliest(
        &self,
        commits: &[CommitId],
    ) -> Result<Option<CommitId>, GitError> {
        let arguments = ["rev-list", "--no-walk=sorted", "--stdin"];
        let sorted = self.revisions(&arguments, commits, None)?;
        Ok(sorted.into_iter().next_back().map(|commit| commit.id))
    }

    /// Returns the output of `git rev-list`: commits, with their parents if requested.
    fn revisions(
        &self,
        arguments: &[&str],
        from: &[CommitId],
        without: Option<&CommitId>,
    ) -> Result<Vec<HistoryCommit>, GitError> {
        let from = from.iter().map(CommitId::to_string);
        let without = without.map(|commit| format!("^{commit}"));
        let requests: Vec<String> = from.chain(without).collect();
        let answer = self.ask_about(arguments, &requests, "\n")?;
        let answer = String::from_utf8_lossy(&answer);
        let commit = |line: &str| {
            let mut ids = line.split(' ').map(CommitId::new);
            let id = ids.next().flatten();
            let parents = ids.collect::<Option<Vec<CommitId>>>();
            let commit = id.zip(parents);
            let unexpected = || Fields::new(&[], arguments).unexpected(line.as_bytes());
            let (id, parents) = commit.ok_or_else(unexpected)?;
            Ok(HistoryCommit { id, parents })
        };
        answer.lines().map(commit).collect()
    }

    pub(in crate::git) fn trees(&self, commits: &[CommitId]) -> Result<Vec<String>, GitError> {
        let requests: Vec<String> = commits.iter().map(|it| format!("{it}^{{tree}}")).collect();
        let answer = self.batch("--batch-check", &requests)?;
        let answer = String::from_utf8_lossy(&answer);
        let lines: Vec<&str> = answer.lines().collect();
        // `id tree size` on each line, or a note that the object is missing.
        let tree = |at: usize| {
            let line = lines.get(at).copied().unwrap_or_default();
            let [id, "tree", _] = line.split(' ').collect::<Vec<_>>()[..] else {
                let asked = ["cat-file", "--batch-check"];
                return Err(Fields::new(&[], &asked).unexpected(line.as_bytes()));
            };
            Ok(id.to_owned())
        };
        (0..commits.len()).map(tree).collect()
    }

    /// Calls a function with the content of each of some trees or files, in the order asked for.
    pub(in crate::git) fn objects(
        &self,
        ids: &[String],
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<(), GitError> {
        for (batch, ids) in ids.chunks(BATCH).enumerate() {
            let answer = self.batch("--batch", ids)?;
            let mut rest = &answer[..];
            for at in 0..ids.len() {
                let content = object(&mut rest);
                let unexpected = || Fields::new(rest, &["cat-file", "--batch"]).unexpected(rest);
                let (_, content) = content.ok_or_else(unexpected)?;
                each(batch * BATCH + at, content);
            }
        }
        Ok(())
    }

    pub(in crate::git) fn departures(
        &self,
        old: &CommitId,
        new: &CommitId,
        prefix: &str,
        directories: &[ProjectPath],
    ) -> Result<Vec<Departure>, GitError> {
        let limit = format!("-l{RENAME_LIMIT}");
        let similarity = format!("-M{SIMILARITY}%");
        let (old, new) = (old.to_string(), new.to_string());
        let mut arguments: Vec<&str> = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-abbrev",
            &similarity,
            &limit,
            "--diff-filter=DR",
            &old,
            &new,
        ]
        .to_vec();
        let places: Vec<String> = directories
            .iter()
            .map(|it| repository_path(it, prefix))
            .collect();
        if places.len() <= MAX_LIMITS && places.iter().all(|place| !place.is_empty()) {
            arguments.push("--");
            arguments.extend(places.iter().map(String::as_str));
        }
        let answer = self.ask(&arguments)?;
        let mut fields = Fields::new(&answer, &arguments);
        let mut found = Vec::new();
        // `:100644 100644 id id R100`, the old name, the new name if it is a rename.
        while let Some(raw) = fields.next() {
            let text = String::from_utf8_lossy(raw);
            let words: Vec<&str> = text.split(' ').collect();
            let [old_mode, _, id, _, status] = words[..] else {
                return Err(fields.unexpected(raw));
            };
            let is_renamed = status.starts_with('R');
            let from = fields.next();
            let to = if is_renamed { fields.next() } else { None };
            let (Some(from), true) = (from, to.is_some() == is_renamed) else {
                return Err(fields.unexpected(raw));
            };
            // A submodule has no content here.
            if old_mode != ":160000" {
                found.push((id.to_owned(), from, to));
            }
        }
        let ids: Vec<String> = found.iter().map(|(id, ..)| id.clone()).collect();
        let sizes = self.batch("--batch-check", &ids)?;
        let sizes = String::from_utf8_lossy(&sizes);
        let mut sizes = sizes.lines();
        let mut departures = Vec::new();
        for (_, from, to) in found {
            // `id blob size` on each line.
            let line = sizes.next().unwrap_or_default();
            let size = line.rsplit(' ').next().and_then(|size| size.parse().ok());
            let Some(bytes) = size else {
                let asked = ["cat-file", "--batch-check"];
                return Err(Fields::new(&[], &asked).unexpected(line.as_bytes()));
            };
            departures.extend(project_path(from, prefix).map(|from| Departure {
                from,
                bytes,
                to: to.and_then(|to| project_path(to, prefix)),
            }));
        }
        Ok(departures)
    }
}
