//! Questions about the history that libgit2 answers.

use std::collections::{BTreeMap, BTreeSet};

use git2::{
    Delta, DiffFile, DiffFindOptions, DiffOptions, Error, ErrorClass, ErrorCode, FileMode, Oid,
};

use super::Library;
use crate::git::history::{Departure, RENAME_LIMIT, SIMILARITY};
use crate::git::{CommitId, CommitText, HistoryCommit, project_path, repository_path};
use crate::path::ProjectPath;

impl Library {
    pub(in crate::git) fn commit_texts(
        &self,
        commits: &BTreeSet<CommitId>,
    ) -> Result<BTreeMap<CommitId, CommitText>, Error> {
        let mut texts = BTreeMap::new();
        for id in commits {
            let commit = match self.find(id) {
                Ok(commit) => commit,
                Err(error) if error.code() == ErrorCode::NotFound => continue,
                Err(error) => return Err(error),
            };
            let message = String::from_utf8_lossy(commit.message_bytes());
            let text = CommitText {
                author: String::from_utf8_lossy(commit.author().name_bytes()).into_owned(),
                committed_at: commit.time().seconds(),
                message: message.trim().to_owned(),
            };
            texts.insert(id.clone(), text);
        }
        Ok(texts)
    }

    /// Returns the commits that are reachable from some commits and not from another one.
    pub(in crate::git) fn reachable(
        &self,
        from: &[CommitId],
        without: &CommitId,
    ) -> Result<Vec<CommitId>, Error> {
        let walk = self.walk_history(from, Some(without))?;
        walk.map(|commit| commit.map(CommitId::from_oid)).collect()
    }

    pub(in crate::git) fn history(
        &self,
        tip: &CommitId,
        base: Option<&CommitId>,
    ) -> Result<Vec<HistoryCommit>, Error> {
        let walk = self.walk_history(std::slice::from_ref(tip), base)?;
        let commit = |id: Result<Oid, Error>| {
            let commit = self.0.find_commit(id?)?;
            Ok(HistoryCommit {
                id: CommitId::from_oid(commit.id()),
                parents: commit.parent_ids().map(CommitId::from_oid).collect(),
            })
        };
        walk.map(commit).collect()
    }

    pub(in crate::git) fn earliest(&self, commits: &[CommitId]) -> Result<Option<CommitId>, Error> {
        let mut dated = Vec::with_capacity(commits.len());
        for commit in commits {
            dated.push((self.find(commit)?.time().seconds(), commit));
        }
        let earliest = dated.into_iter().min_by_key(|(date, _)| *date);
        Ok(earliest.map(|(_, commit)| commit.clone()))
    }

    fn walk_history(
        &self,
        from: &[CommitId],
        without: Option<&CommitId>,
    ) -> Result<git2::Revwalk<'_>, Error> {
        // It doesn't know the boundary of a shallow clone.
        if self.is_shallow()? {
            let message = "this is a shallow clone";
            let (code, class) = (ErrorCode::GenericError, ErrorClass::Repository);
            return Err(Error::new(code, class, message));
        }
        let mut walk = self.0.revwalk()?;
        for commit in from {
            walk.push(self.oid(commit.as_str())?)?;
        }
        if let Some(without) = without {
            walk.hide(self.oid(without.as_str())?)?;
        }
        Ok(walk)
    }

    pub(in crate::git) fn trees(&self, commits: &[CommitId]) -> Result<Vec<String>, Error> {
        let tree = |commit| Ok(self.find(commit)?.tree_id().to_string());
        commits.iter().map(tree).collect()
    }

    /// Calls a function with the content of each of some trees or files, in the order asked for.
    pub(in crate::git) fn objects(
        &self,
        ids: &[String],
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        let objects = self.0.odb()?;
        for (number, id) in ids.iter().enumerate() {
            each(number, objects.read(self.oid(id)?)?.data());
        }
        Ok(())
    }

    pub(in crate::git) fn departures(
        &self,
        old: &CommitId,
        new: &CommitId,
        prefix: &str,
        directories: &[ProjectPath],
    ) -> Result<Vec<Departure>, Error> {
        let (old, new) = (self.find(old)?.tree()?, self.find(new)?.tree()?);
        let mut options = DiffOptions::new();
        options.disable_pathspec_match(true);
        let places: Vec<String> = directories
            .iter()
            .map(|it| repository_path(it, prefix))
            .collect();
        if places.iter().all(|place| !place.is_empty()) {
            for place in places {
                options.pathspec(place);
            }
        }
        let mut difference =
            self.0
                .diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options))?;
        let mut finding = DiffFindOptions::new();
        finding
            .renames(true)
            .rename_threshold(SIMILARITY)
            .rename_limit(RENAME_LIMIT);
        difference.find_similar(Some(&mut finding))?;
        let objects = self.0.odb()?;
        let path = |file: DiffFile<'_>| project_path(file.path_bytes()?, prefix);
        let mut departures = Vec::new();
        for delta in difference.deltas() {
            let file = delta.old_file();
            let is_renamed = delta.status() == Delta::Renamed;
            // A submodule has no content here.
            if !(is_renamed || delta.status() == Delta::Deleted) || file.mode() == FileMode::Commit
            {
                continue;
            }
            let (bytes, _) = objects.read_header(file.id())?;
            departures.extend(path(file).map(|from| Departure {
                from,
                bytes: bytes as u64,
                to: is_renamed.then(|| path(delta.new_file())).flatten(),
            }));
        }
        Ok(departures)
    }
}
