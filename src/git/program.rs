//! Questions that the `git` program answers.
//!
//! Uses only options of git 2.30, and formats that end names with NUL.

mod history;
mod tree;

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::answer::{Fields, change};
use super::{
    ChangedFile, CommitId, FileChange, FileState, GitError, command_line, is_hexadecimal,
    project_path, repository_path,
};
use crate::path::ProjectPath;
use crate::project::environment::REPOSITORY_VARIABLES;

/// Other variables that control which repository git finds, and what it reads there.
const OF_DISCOVERY: [&str; 3] = ["GIT_CEILING_DIRECTORIES", "GIT_CONFIG", "GIT_NAMESPACE"];

/// Variables that control how paths on the command line are interpreted.
const OF_PATTERNS: [&str; 3] = [
    "GIT_GLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
];

/// Includes submodules that the configuration or `.gitmodules` ignores: their checked out files are the ones that
/// run.
const ALL_SUBMODULES: &str = "--ignore-submodules=none";

#[derive(Clone)]
pub(super) struct Program {
    directory: PathBuf,
}

/// A command of git, with the context for its errors.
pub(super) struct GitCommand {
    pub(super) command: Command,
    pub(super) text: String,
}

impl Program {
    pub(super) fn new(directory: &Path) -> Self {
        Program {
            directory: directory.to_path_buf(),
        }
    }

    pub(super) fn prepare(&self, arguments: &[&str]) -> GitCommand {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.directory);
        // A directory that looks like a repository from inside is none: see `git_top_level`.
        command.args(["-c", "safe.bareRepository=explicit"]);
        command.args(arguments);
        // The repository is the one around the project, even if a hook of another one runs us.
        let removed = [&REPOSITORY_VARIABLES[..], &OF_DISCOVERY, &OF_PATTERNS];
        for variable in removed.into_iter().flatten() {
            command.env_remove(variable);
        }
        // Reading must not write the index, and messages must be in English.
        command.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
        // Directories have the names they have, also with `*` in them.
        command.env("GIT_LITERAL_PATHSPECS", "1");
        let text = command_line(arguments);
        GitCommand { command, text }
    }

    pub(super) fn ask(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        let prepared = self.prepare(arguments);
        let text = prepared.text.clone();
        checked(text, prepared.output()?)
    }

    /// Asks about items on git's standard input, each terminated by `end`.
    pub(super) fn ask_about(
        &self,
        arguments: &[&str],
        requests: &[String],
        end: &str,
    ) -> Result<Vec<u8>, GitError> {
        let prepared = self.prepare(arguments);
        let text = prepared.text.clone();
        checked(text, prepared.output_for(requests, end)?)
    }

    fn ask_line(&self, arguments: &[&str]) -> Result<String, GitError> {
        let answer = self.ask(arguments)?;
        Ok(String::from_utf8_lossy(&answer).trim_end().to_owned())
    }

    /// Runs a command that answers "no" with exit status 1.
    fn ask_maybe(&self, arguments: &[&str]) -> Result<Option<String>, GitError> {
        match self.ask_line(arguments) {
            Ok(line) => Ok(Some(line)),
            Err(GitError::Failed { status, .. }) if status.code() == Some(1) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the top level of the working tree, if there is one.
    pub(super) fn top_level(&self) -> Result<Option<PathBuf>, GitError> {
        let top = self.ask_line(&["rev-parse", "--show-toplevel"])?;
        Ok(Some(PathBuf::from(top)).filter(|top| !top.as_os_str().is_empty()))
    }

    pub(super) fn commit(&self, revision: &str) -> Result<Option<CommitId>, GitError> {
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        let named = |name: &str| self.ask_maybe(&[&arguments[..], &[name]].concat());
        if let Some(id) = named(&format!("{revision}^{{commit}}"))? {
            // A `^` in front stays there: that is no commit but all that it does not reach.
            return Ok(is_hexadecimal(&id).then_some(CommitId(id)));
        }
        // The commit of an id may be missing here; that of HEAD or a branch must exist.
        if !is_full_id(revision)
            && let Some(id) = named(revision)?.filter(|id| is_hexadecimal(id))
        {
            self.ask(&["rev-list", "--no-walk", &id, "--"])?;
        }
        Ok(None)
    }

    pub(super) fn parents(&self, commit: &CommitId) -> Result<Vec<CommitId>, GitError> {
        let header = self.ask_line(&["cat-file", "commit", commit.as_str()])?;
        let lines = header.lines().take_while(|line| !line.is_empty());
        Ok(lines
            .filter_map(|line| line.strip_prefix("parent "))
            .map(|id| CommitId(id.to_owned()))
            .collect())
    }

    pub(super) fn merge_base(
        &self,
        a: &CommitId,
        b: &CommitId,
    ) -> Result<Option<CommitId>, GitError> {
        let base = self.ask_maybe(&["merge-base", a.as_str(), b.as_str()])?;
        Ok(base.map(CommitId))
    }

    pub(super) fn ends(&self, commit: &CommitId) -> Result<Vec<CommitId>, GitError> {
        let ends = self.ask_line(&["rev-list", "--max-parents=0", commit.as_str()])?;
        Ok(ends.lines().map(|id| CommitId(id.to_owned())).collect())
    }

    pub(super) fn branch(&self) -> Result<Option<String>, GitError> {
        let head = self.ask_maybe(&["symbolic-ref", "--quiet", "HEAD"])?;
        Ok(head.and_then(|head| Some(head.strip_prefix("refs/heads/")?.to_owned())))
    }

    pub(super) fn branches(&self) -> Result<Vec<String>, GitError> {
        let format = "--format=%(refname:lstrip=2)";
        let names = self.ask_line(&["for-each-ref", format, "refs/heads/"])?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    pub(super) fn tags(&self) -> Result<Vec<String>, GitError> {
        let format = "--format=%(refname:lstrip=2)";
        let names = self.ask_line(&["for-each-ref", format, "refs/tags/"])?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    pub(super) fn remotes(&self) -> Result<Vec<String>, GitError> {
        let names = self.ask_line(&["remote"])?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    pub(super) fn remote_head(&self, remote: &str) -> Result<Option<String>, GitError> {
        let prefix = format!("refs/remotes/{remote}/");
        let head = self.ask_maybe(&["symbolic-ref", "--quiet", &format!("{prefix}HEAD")])?;
        Ok(head.and_then(|head| Some(head.strip_prefix(&prefix)?.to_owned())))
    }

    pub(super) fn config(&self, name: &str) -> Result<Option<String>, GitError> {
        self.ask_maybe(&["config", "--get", name])
    }

    pub(super) fn is_shallow(&self) -> Result<bool, GitError> {
        let answer = self.ask_line(&["rev-parse", "--is-shallow-repository"])?;
        Ok(answer == "true")
    }

    pub(super) fn differs_outside(
        &self,
        old: &CommitId,
        new: &CommitId,
        prefix: &str,
    ) -> Result<bool, GitError> {
        let mut arguments = vec!["diff-tree", "-r", "-z", "--name-only", "--no-renames"];
        arguments.push(ALL_SUBMODULES);
        arguments.extend([old.as_str(), new.as_str()]);
        let answer = self.ask(&arguments)?;
        let mut fields = Fields::new(&answer, &arguments);
        let mut names = std::iter::from_fn(|| fields.next());
        Ok(names.any(|name| project_path(name, prefix).is_none()))
    }

    pub(super) fn differences(
        &self,
        old: &CommitId,
        new: &CommitId,
        prefix: &str,
    ) -> Result<Vec<ChangedFile>, GitError> {
        let mut arguments = vec!["diff-tree", "-r", "-z", "--raw", "--no-renames"];
        arguments.push(ALL_SUBMODULES);
        arguments.extend([old.as_str(), new.as_str()]);
        arguments.extend(limit(prefix));
        let answer = self.ask(&arguments)?;
        let mut fields = Fields::new(&answer, &arguments);
        let mut files = Vec::new();
        // `:100644 100755 old new M`, then the name.
        while let Some(record) = fields.next() {
            let (Some(modes), Some(name)) = (record.strip_prefix(b":"), fields.next()) else {
                return Err(fields.unexpected(record));
            };
            let mut words = modes.split(|&byte| byte == b' ');
            let (Some(old), Some(new)) = (words.next(), words.next()) else {
                return Err(fields.unexpected(record));
            };
            let status = words.next_back().and_then(|word| word.first());
            files.extend(project_path(name, prefix).map(|path| ChangedFile {
                path,
                change: change(status.copied(), &[old, new]),
                state: FileState::Committed,
            }));
        }
        Ok(files)
    }

    pub(super) fn status(&self, prefix: &str) -> Result<Vec<ChangedFile>, GitError> {
        let mut arguments = vec!["status", "--porcelain=v2", "-z", "--no-renames"];
        arguments.extend(["--untracked-files=all", ALL_SUBMODULES]);
        arguments.extend(limit(prefix));
        let answer = self.ask(&arguments)?;
        let mut fields = Fields::new(&answer, &arguments);
        let mut files = Vec::new();
        while let Some(record) = fields.next() {
            // The number of words before the name, and which of them are modes.
            let (n_words, modes) = match record.first() {
                Some(b'1') => (8, 3..6),
                Some(b'2') => (9, 3..6),
                Some(b'u') => (10, 3..7),
                Some(b'?') => (1, 0..0),
                Some(b'!' | b'#') => continue,
                _ => return Err(fields.unexpected(record)),
            };
            let words: Vec<&[u8]> = record.splitn(n_words + 1, |&byte| byte == b' ').collect();
            let Some(&name) = words.get(n_words) else {
                return Err(fields.unexpected(record));
            };
            let is_untracked = n_words == 1;
            let letters = match record.first() {
                Some(b'?') => &b""[..],
                // In a conflict, the changes of both sides don't matter.
                Some(b'u') => &b"U"[..],
                _ => words[1],
            };
            let change = if is_untracked && name.ends_with(b"/") {
                FileChange::Repository
            } else {
                let by_weight = [b'U', b'D', b'A', b'T', b'M'];
                let letter = by_weight
                    .into_iter()
                    .find(|letter| letters.contains(letter));
                let letter = if is_untracked { Some(b'A') } else { letter };
                change(letter, &words[modes])
            };
            let state = if is_untracked {
                FileState::Untracked
            } else {
                FileState::Uncommitted
            };
            let mut add = |name: &[u8], change| {
                files.extend(project_path(name, prefix).map(|path| ChangedFile {
                    path,
                    change,
                    state,
                }));
            };
            add(name, change);
            // Renames are switched off, but a name that is not taken would spoil all that follow.
            if record.starts_with(b"2")
                && let Some(original) = fields.next()
            {
                add(original, FileChange::Deleted);
            }
        }
        Ok(files)
    }

    pub(super) fn ignored(
        &self,
        prefix: &str,
        files: &[ProjectPath],
    ) -> Result<Vec<ProjectPath>, GitError> {
        // With a `:` in front, it would not be a path.
        let request = |file: &ProjectPath| format!("./{}", repository_path(file, prefix));
        let requests: Vec<String> = files.iter().map(request).collect();
        // To look into the index takes git a thousand times as long.
        let arguments = ["check-ignore", "-z", "--stdin", "--no-index"];
        let mut prepared = self.prepare(&arguments);
        // This command takes `*` literally anyway, and fails if it is asked to.
        prepared.command.env_remove("GIT_LITERAL_PATHSPECS");
        let text = prepared.text.clone();
        let output = prepared.output_for(&requests, "\0")?;
        if output.status.code() == Some(1) {
            return Ok(Vec::new());
        }
        let answer = checked(text, output)?;
        let mut fields = Fields::new(&answer, &arguments);
        let ignored: HashSet<&[u8]> = std::iter::from_fn(|| fields.next()).collect();
        let files = files
            .iter()
            .zip(&requests)
            .filter(|(_, request)| ignored.contains(request.as_bytes()));
        Ok(files.map(|(file, _)| file.clone()).collect())
    }

    pub(super) fn head_log(&self) -> Result<PathBuf, GitError> {
        let path = self.ask_line(&["rev-parse", "--git-path", "logs/HEAD"])?;
        Ok(self.directory.join(path))
    }

    pub(super) fn has_references(&self) -> Result<bool, GitError> {
        Ok(!self.ask_line(&["for-each-ref", "--count=1"])?.is_empty())
    }
}

impl GitCommand {
    fn output_for(mut self, requests: &[String], end: &str) -> Result<Output, GitError> {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn().map_err(GitError::Start)?;
        let mut stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                // If git has ended, its status has the reason.
                let written = stdin.iter_mut().try_for_each(|stdin| {
                    let mut requests = requests.iter();
                    requests.try_for_each(|request| write!(stdin, "{request}{end}"))
                });
                drop((written, stdin));
            });
            child.wait_with_output()
        });
        output.map_err(GitError::Start)
    }

    pub(super) fn output(mut self) -> Result<Output, GitError> {
        self.command
            .stdin(Stdio::null())
            .output()
            .map_err(GitError::Start)
    }
}

pub(super) fn checked(command: String, output: Output) -> Result<Vec<u8>, GitError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(GitError::Failed {
        command,
        status: output.status,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Returns whether a revision is the whole name of a commit, by SHA-1 or SHA-256.
fn is_full_id(revision: &str) -> bool {
    matches!(revision.len(), 40 | 64) && is_hexadecimal(revision)
}

/// Returns the arguments that limit a command to a place of the repository.
fn limit(place: &str) -> Vec<&str> {
    if place.is_empty() {
        Vec::new()
    } else {
        vec!["--", place]
    }
}
