//! Histories, by way of `git fast-import`.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

/// The input of `git fast-import`. Commits are marked with their number.
pub(crate) struct History(BufWriter<ChildStdin>);

/// Adds commits to the git repository at `root`. Index and working tree stay as they are.
pub(crate) fn import(root: &Path, write: impl FnOnce(&mut History) -> Result<()>) -> Result<()> {
    let mut import = git(root, &["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .context("failed to start git")?;
    let input = import.stdin.take().context("git has an input")?;
    let mut history = History(BufWriter::new(input));
    let written = write(&mut history).and_then(|()| Ok(history.0.flush()?));
    drop(history);
    succeed(import.wait())?;
    written.context("failed to write to git")
}

impl History {
    /// Begins a commit; its files follow. Each parent is a name of git's or a [`mark`].
    pub(crate) fn commit(&mut self, branch: &str, number: usize, parents: &[&str]) -> Result<()> {
        let message = format!("commit {number}");
        let time = 1_700_000_000 + 60 * number;
        write!(
            self.0,
            "commit refs/heads/{branch}
mark {}
committer Generator <generator@example.com> {time} +0000
data {}
{message}
",
            mark(number),
            message.len()
        )?;
        for (index, parent) in parents.iter().enumerate() {
            let word = if index == 0 { "from" } else { "merge" };
            writeln!(self.0, "{word} {parent}")?;
        }
        Ok(())
    }

    pub(crate) fn file(&mut self, path: &str, content: &[u8]) -> Result<()> {
        writeln!(self.0, "M 100644 inline {path}\ndata {}", content.len())?;
        self.0.write_all(content)?;
        Ok(writeln!(self.0)?)
    }
}

/// Returns the mark of the commit of this number.
pub(crate) fn mark(number: usize) -> String {
    format!(":{number}")
}

pub(crate) fn git(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(arguments);
    command
}

pub(crate) fn succeed(status: std::io::Result<ExitStatus>) -> Result<()> {
    let status = status.context("failed to run git")?;
    ensure!(status.success(), "git failed: {status}");
    Ok(())
}
