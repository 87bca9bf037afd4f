//! Errors of git, and the text of its commands.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("`{}` is not in a git repository", .0.display())]
    NoRepository(PathBuf),
    /// The repository has no working tree that contains the project.
    #[error("`{}` is not in the working tree of its git repository", .0.display())]
    NoWorkingTree(PathBuf),
    /// A part of the repository cannot be read.
    #[error("`{}` cannot be read", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// libgit2 failed, and there is no `git` to ask instead.
    #[error("libgit2 cannot read the repository, and the `git` program is not installed")]
    Library(#[from] git2::Error),
    /// A branch or HEAD exists but cannot be read.
    #[error("git cannot read `{0}`: the repository is damaged (run `git fsck` to see where)")]
    Damaged(String),
    #[error("failed to start `git`")]
    Start(#[source] io::Error),
    #[error("`{command}` failed ({status}){}", stderr_text(.stderr))]
    Failed {
        command: String,
        status: ExitStatus,
        stderr: String,
    },
    /// `git fetch` failed, and has already written why to stderr.
    #[error("`{command}` failed ({status})")]
    Fetch { command: String, status: ExitStatus },
    #[error("`{command}` printed unexpected output: {answer}")]
    Unexpected { command: String, answer: String },
}

/// Returns a command of git as a user would type it in a shell.
pub fn command_line<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>) -> String {
    // `shell_words` quotes `=`, which needs no quotes in an option.
    let quoted = |word: &str| match word.split_once('=') {
        Some((option, value)) if option.starts_with("--") => {
            format!(
                "{}={}",
                shell_words::quote(option),
                shell_words::quote(value)
            )
        }
        _ => shell_words::quote(word).into_owned(),
    };
    arguments.into_iter().fold("git".to_owned(), |line, word| {
        line + " " + &quoted(word.as_ref())
    })
}

impl GitError {
    /// Returns the command that git itself suggests to make it trust another user's repository.
    pub fn remedy(&self) -> Option<String> {
        let GitError::Failed { stderr, .. } = self else {
            return None;
        };
        let mut lines = stderr.lines().map(str::trim);
        let advice =
            lines.find(|line| line.starts_with("git config --global --add safe.directory "));
        advice.map(str::to_owned)
    }
}

fn stderr_text(stderr: &str) -> String {
    let lines: Vec<&str> = stderr
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    match lines.join("\n    ") {
        text if text.is_empty() => text,
        text => format!(": {text}"),
    }
}

/// Chooses which of two failures to report: git, if it is installed, has better messages than libgit2.
pub(super) fn instead_of(library: git2::Error, program: GitError) -> GitError {
    match program {
        GitError::Start(error) if error.kind() == io::ErrorKind::NotFound => {
            GitError::Library(library)
        }
        program => program,
    }
}
