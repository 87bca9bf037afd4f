//! Questions about the history that the `git` program answers.

use std::collections::{BTreeMap, BTreeSet};

use super::{Program, checked};
use crate::git::answer::{Fields, object};
use crate::git::renames::RENAME_LIMIT;
use crate::git::{
    CommitId, CommitText, GitError, HistoryCommit, Rename, project_path, repository_path,
};
use crate::path::ProjectPath;

/// How many objects one process is asked for: their contents are held at the same time.
const BATCH: usize = 256;

/// How many directories one command is limited to: they are on its command line.
const MAX_LIMITS: usize = 2000;

impl Program {
    pub(in crate::git) fn branch_with(
        &self,
        commit: &CommitId,
    ) -> Result<Option<String>, GitError> {
        let contains = format!("--contains={commit}");
        let format = "--format=%(objectname) %(refname)";
        let arguments = [
            "for-each-ref",
            &contains,
            format,
            "refs/remotes",
            "refs/heads",
        ];
        let answer = self.ask(&arguments)?;
        let answer = String::from_utf8_lossy(&answer);
        let branches = answer.lines().filter_map(|line| {
            let (tip, name) = line.split_once(' ')?;
            let remote = name.strip_prefix("refs/remotes/");
            let local = name.strip_prefix("refs/heads/");
            let branch = remote.or(local).filter(|it| !it.ends_with("/HEAD"))?;
            Some((remote.is_none(), tip != commit.as_str(), branch))
        });
        Ok(branches.min().map(|(.., branch)| branch.to_owned()))
    }

    pub(in crate::git) fn commit_texts(
        &self,
        commits: &BTreeSet<CommitId>,
    ) -> Result<BTreeMap<CommitId, CommitText>, GitError> {
        // What is not here is neither fetched nor an error.
        let requests: Vec<String> = commits.iter().map(CommitId::to_string).collect();
        let present = self.batch("--batch-check", &requests)?;
        let present = String::from_utf8_lossy(&present);
        let present = present.lines().filter_map(|line| line.split_once(' '));
        let present = present.filter(|(_, rest)| rest.starts_with("commit "));
        let present: Vec<String> = present.map(|(id, _)| id.to_owned()).collect();
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
        let prepared = self.prepare(&arguments);
        let text = prepared.text.clone();
        let answer = checked(text, prepared.output_for(&present, "\n")?)?;
        let mut fields = Fields::new(&answer, &arguments);
        let mut texts = BTreeMap::new();
        // The line break behind each commit stands before the id of the next.
        while let Some(id) = fields.next() {
            let known = CommitId::new(String::from_utf8_lossy(id).trim());
            let rest = (fields.next(), fields.next(), fields.next());
            let (Some(known), (Some(author), Some(at), Some(message))) = (known, rest) else {
                return Err(fields.unexpected(id));
            };
            let [author, at, message] = [author, at, message].map(String::from_utf8_lossy);
            let text = CommitText {
                author: author.into_owned(),
                committed_at: at.parse().unwrap_or_default(),
                message: message.trim().to_owned(),
            };
            texts.insert(known, text);
        }
        Ok(texts)
    }

    /// Returns what can be reached from some commits and not from another one.
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

    /// Returns what `git rev-list` lists: commits, with their parents if it is asked for these.
    fn revisions(
        &self,
        arguments: &[&str],
        from: &[CommitId],
        without: Option<&CommitId>,
    ) -> Result<Vec<HistoryCommit>, GitError> {
        let from = from.iter().map(CommitId::to_string);
        let without = without.map(|commit| format!("^{commit}"));
        let requests: Vec<String> = from.chain(without).collect();
        let prepared = self.prepare(arguments);
        let text = prepared.text.clone();
        let answer = checked(text, prepared.output_for(&requests, "\n")?)?;
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

    /// Returns the ids of the trees of commits.
    pub(in crate::git) fn trees(&self, commits: &[CommitId]) -> Result<Vec<String>, GitError> {
        let requests: Vec<String> = commits.iter().map(|it| format!("{it}^{{tree}}")).collect();
        let answer = self.batch("--batch-check", &requests)?;
        let answer = String::from_utf8_lossy(&answer);
        let lines: Vec<&str> = answer.lines().collect();
        // `id tree size` on each line, or that there is no such object.
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

    pub(in crate::git) fn renames(
        &self,
        old: &CommitId,
        new: &CommitId,
        prefix: &str,
        directories: &[ProjectPath],
    ) -> Result<Vec<Rename>, GitError> {
        let limit = format!("-l{RENAME_LIMIT}");
        let arguments = ["diff-tree", "-r", "-z", "--name-status", "-M", &limit];
        let mut arguments: Vec<String> = arguments.map(str::to_owned).to_vec();
        arguments.extend([
            "--diff-filter=R".to_owned(),
            old.to_string(),
            new.to_string(),
        ]);
        let places = directories.iter().map(|it| repository_path(it, prefix));
        let places: Vec<String> = places.collect();
        if places.len() <= MAX_LIMITS && places.iter().all(|place| !place.is_empty()) {
            arguments.push("--".to_owned());
            arguments.extend(places);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let answer = self.ask(&arguments)?;
        let mut fields = Fields::new(&answer, &arguments);
        let mut renames = Vec::new();
        // `R100`, the old name, the new name.
        while let Some(status) = fields.next() {
            let (Some(from), Some(to)) = (fields.next(), fields.next()) else {
                return Err(fields.unexpected(status));
            };
            let (from, to) = (project_path(from, prefix), project_path(to, prefix));
            renames.extend(from.zip(to).map(|(from, to)| Rename { from, to }));
        }
        Ok(renames)
    }
}
