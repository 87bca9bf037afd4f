//! What is done in a repository, by git and in the model. git is told what to do and never asked what
//! differs.

use std::collections::BTreeSet;
use std::iter::successors;

use super::paths::{above, basename, below, is_at_or_below, join, matches};
use super::repository::{Head, Repository, at_or_below};
use super::texts::{File, Text};

/// What is done in a repository.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Write(String, Text),
    /// Changes a file so that it means the same as before.
    Edit(&'static str, usize),
    Delete(usize),
    DeleteAll(&'static str),
    Rename(&'static str, &'static str),
    Chmod(usize),
    /// Stages everything at or below a place.
    Stage(&'static str),
    Unstage(&'static str),
    /// Commits what is staged; the number is the time.
    Commit(u32),
    CommitAll(u32),
    Branch(&'static str),
    Switch(&'static str),
    Detach,
    /// Merges a branch; the number says which side wins where.
    Merge(&'static str, usize),
    Reset(Reset, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reset {
    Soft,
    Mixed,
    Hard,
}

impl Repository {
    pub(super) fn apply(&mut self, operation: &Operation) {
        self.log.push(format!("{operation:?}"));
        match *operation {
            Operation::Write(ref path, ref text) => self.write(path, File::new(text.clone())),
            Operation::Edit(place, n) => {
                if let Some((path, mut file)) = self.nth(place, n) {
                    file.salt += 1;
                    self.write(&path, file);
                }
            }
            Operation::Delete(n) => {
                if let Some((path, _)) = self.nth("", n) {
                    self.delete(&path);
                }
            }
            Operation::DeleteAll(place) => self.delete(place),
            Operation::Rename(from, to) => {
                let moved = at_or_below(&self.working, from);
                if !moved.is_empty() {
                    self.delete(to);
                    self.delete(from);
                }
                for (path, file) in moved {
                    self.write(&format!("{to}{}", &path[from.len()..]), file);
                }
            }
            Operation::Chmod(n) => {
                if let Some((path, mut file)) = self.nth("", n)
                    && file.link().is_none()
                {
                    file.is_executable ^= true;
                    self.write(&path, file);
                }
            }
            Operation::Stage(place) => self.stage(place),
            Operation::Unstage(place) => {
                self.git(&[
                    "reset",
                    "-q",
                    "--",
                    if place.is_empty() { "." } else { place },
                ]);
                let head = at_or_below(&self.commits[self.head()].files, place);
                self.index
                    .retain(|path, _| !is_at_or_below(path, place) && !place.is_empty());
                self.index.extend(head);
            }
            Operation::Commit(time) => self.commit(time, &[]),
            Operation::CommitAll(time) => {
                self.stage("");
                self.commit(time, &[]);
            }
            Operation::Branch(name) => {
                if !self.branches.contains_key(name) {
                    self.git(&["checkout", "-q", "-b", name]);
                    self.branches.insert(name, self.head());
                    self.head = Head::Branch(name);
                }
            }
            Operation::Switch(name) => {
                if let Some(&commit) = self.branches.get(name) {
                    self.git(&["checkout", "-q", "-f", name]);
                    self.head = Head::Branch(name);
                    self.cleaned(commit);
                }
            }
            Operation::Detach => {
                self.git(&["checkout", "-q", "--detach"]);
                self.head = Head::Detached(self.head());
            }
            Operation::Merge(name, winner) => {
                if let Some(&theirs) = self.branches.get(name) {
                    self.merge(theirs, winner);
                }
            }
            Operation::Reset(reset, n) => {
                let commit = n % self.commits.len();
                let mode = format!("--{reset:?}").to_lowercase();
                self.git(&["reset", "-q", &mode, &self.commits[commit].id]);
                self.moved(commit);
                if reset != Reset::Soft {
                    self.index = self.commits[commit].files.clone();
                }
                if reset == Reset::Hard {
                    self.cleaned(commit);
                }
            }
        }
    }

    /// Merges, where of each file either side wins.
    fn merge(&mut self, theirs: usize, winner: usize) {
        let ours = self.head();
        if self.ancestors(ours).contains(&theirs) {
            return;
        }
        self.clean();
        let [our_files, their_files] =
            [ours, theirs].map(|commit| self.commits[commit].files.clone());
        let paths: BTreeSet<&String> = our_files.keys().chain(their_files.keys()).collect();
        for (n, path) in paths.into_iter().enumerate() {
            let side = if winner >> (n % 16) & 1 == 0 {
                &our_files
            } else {
                &their_files
            };
            let is_in_the_way = above(path)
                .iter()
                .any(|place| self.working.contains_key(*place));
            match side.get(path) {
                None => self.delete(path),
                Some(file) if !is_in_the_way && path != "root.orch.hcl" => {
                    self.write(path, file.clone());
                }
                Some(_) => {}
            }
        }
        self.stage("");
        self.commit(0, &[theirs]);
    }

    /// A commit and all before it.
    fn ancestors(&self, commit: usize) -> BTreeSet<usize> {
        let mut all = BTreeSet::from([commit]);
        let mut open = vec![commit];
        while let Some(commit) = open.pop() {
            for &parent in &self.commits[commit].parents {
                if all.insert(parent) {
                    open.push(parent);
                }
            }
        }
        all
    }

    /// The common ancestors that are ancestors of no other.
    fn merge_bases(&self, a: usize, b: usize) -> BTreeSet<usize> {
        let (a, b) = (self.ancestors(a), self.ancestors(b));
        let common: BTreeSet<usize> = a.intersection(&b).copied().collect();
        let is_best = |commit: &usize| {
            let mut others = common.iter().filter(|other| *other != commit);
            !others.any(|other| self.ancestors(*other).contains(commit))
        };
        common.iter().copied().filter(is_best).collect()
    }

    /// The bases that may be taken if the user names none; none if there is nothing to compare with, or HEAD is a
    /// merged commit without a branch.
    pub(super) fn usual_bases(&self) -> BTreeSet<usize> {
        let (head, main) = (self.head(), self.branches["main"]);
        let first_parent = |commit: &usize| self.commits[*commit].parents.first().copied();
        let is_on_main = match self.head {
            Head::Branch(name) => name == "main",
            Head::Detached(commit) => {
                let mut mainline = successors(Some(main), first_parent);
                let is_there = mainline.any(|it| it == commit);
                if !is_there && self.ancestors(main).contains(&commit) {
                    return BTreeSet::new();
                }
                is_there
            }
        };
        if is_on_main {
            first_parent(&head).into_iter().collect()
        } else {
            self.merge_bases(head, main)
        }
    }

    /// Returns whether git leaves a file out that it does not know.
    pub(super) fn is_git_ignored(&self, path: &str) -> bool {
        let mut places = above(path);
        places.pop(); // the root itself
        places.reverse();
        places.push(path);
        let is_excluded = |place: &str| {
            let mut verdict = false;
            for directory in above(place).into_iter().rev() {
                let file = self.working.get(&join(directory, ".gitignore"));
                let Some(Text::GitIgnore(lines)) = file.map(|file| &file.text) else {
                    continue;
                };
                let rest = below(place, directory).expect("it is above");
                for line in lines {
                    let (pattern, is_ignored) = match line.strip_prefix('!') {
                        Some(pattern) => (pattern, false),
                        None => (*line, true),
                    };
                    let directories_only = pattern.ends_with('/');
                    let pattern = pattern.trim_end_matches('/');
                    let is_match = match pattern.strip_prefix('/') {
                        Some(pattern) => matches(pattern, rest),
                        None => matches(pattern, basename(rest)),
                    };
                    if is_match && (!directories_only || place != path) {
                        verdict = is_ignored;
                    }
                }
            }
            verdict
        };
        places.into_iter().any(is_excluded)
    }
}
