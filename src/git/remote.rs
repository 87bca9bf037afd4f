//! Operations that only the `git` program supports: asking a remote for its branches, and fetching.

use std::io;

use super::answer::Fields;
use super::program::{GitCommand, Program, checked};
use super::{CommitId, GitError, is_hexadecimal};

impl Program {
    pub(super) fn remote_tip(
        &self,
        remote: &str,
        branch: &str,
    ) -> Result<Option<CommitId>, GitError> {
        let reference = format!("refs/heads/{branch}");
        let arguments = ["ls-remote", "--", remote, &reference];
        let mut prepared = self.prepare(&arguments);
        prepared.command.env("GIT_TERMINAL_PROMPT", "0");
        // ssh prompts at the terminal regardless of stdin. Users who choose the ssh command must disable its prompts
        // themselves.
        let is_chosen = ["GIT_SSH", "GIT_SSH_COMMAND"]
            .iter()
            .any(|name| std::env::var_os(name).is_some());
        if !is_chosen && self.config("core.sshCommand")?.is_none() {
            let quietly = "ssh -o BatchMode=yes";
            prepared.command.env("GIT_SSH_COMMAND", quietly);
        }
        let text = prepared.text.clone();
        let answer = checked(text, prepared.output()?)?;
        tip(&answer, &reference).map_err(|line| Fields::new(&answer, &arguments).unexpected(line))
    }

    pub(super) fn ask_remote_head(&self, remote: &str) -> Result<Option<String>, GitError> {
        let prepared = self.prepare(&["ls-remote", "--symref", "--", remote, "HEAD"]);
        let text = prepared.text.clone();
        Ok(head(&checked(text, prepared.output()?)?))
    }

    pub(super) fn set_remote_head(&self, remote: &str, branch: &str) -> Result<(), GitError> {
        let [name, target] = ["HEAD", branch].map(|it| format!("refs/remotes/{remote}/{it}"));
        let prepared = self.prepare(&["symbolic-ref", &name, &target]);
        let text = prepared.text.clone();
        checked(text, prepared.output()?).map(drop)
    }

    pub(super) fn fetch(&self, arguments: &[String]) -> Result<(), GitError> {
        let mut words = vec!["fetch"];
        words.extend(arguments.iter().map(String::as_str));
        let GitCommand { mut command, text } = self.prepare(&words);
        // git's progress is on stderr; its stdout must not mix with ours.
        command.stdout(io::stderr());
        let status = command.status().map_err(GitError::Start)?;
        if status.success() {
            return Ok(());
        }
        Err(GitError::Fetch {
            command: text,
            status,
        })
    }
}

/// Finds a reference in the answer of `git ls-remote`; fails with the first malformed line, if
/// there is one.
fn tip<'a>(answer: &'a [u8], reference: &str) -> Result<Option<CommitId>, &'a [u8]> {
    let mut found = None;
    let lines = answer.split(|&byte| byte == b'\n');
    for line in lines.filter(|line| !line.is_empty()) {
        let text = str::from_utf8(line).map_err(|_| line)?;
        let (id, name) = text.split_once('\t').ok_or(line)?;
        if !matches!(id.len(), 40 | 64) || !is_hexadecimal(id) {
            return Err(line);
        }
        // A pattern also matches names that merely end like this.
        if name == reference {
            found = Some(CommitId(id.to_ascii_lowercase()));
        }
    }
    Ok(found)
}

/// Finds the branch that HEAD names in the answer of `git ls-remote --symref`.
fn head(answer: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(answer);
    let mut lines = text.lines();
    lines.find_map(|line| {
        let target = line.strip_prefix("ref: ")?.strip_suffix("\tHEAD")?;
        Some(target.strip_prefix("refs/heads/")?.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_remote_is_what_it_refers_to() {
        for (answer, expected) in [
            ("ref: refs/heads/trunk\tHEAD\n0123\tHEAD\n", Some("trunk")),
            ("ref: refs/heads/a/b\tHEAD\n", Some("a/b")),
            ("ref: refs/heads/main\trefs/remotes/fork/HEAD\n", None),
            ("ref: refs/tags/v1\tHEAD\n", None),
            ("0123\tHEAD\n", None),
            ("", None),
        ] {
            assert_eq!(head(answer.as_bytes()).as_deref(), expected, "{answer}");
        }
    }

    #[test]
    fn only_the_very_reference_is_the_tip() {
        let [a, b] = ["a", "b"].map(|digit| digit.repeat(40));
        let check = |answer: &str, expected: Result<Option<&str>, &str>| {
            let found = tip(answer.as_bytes(), "refs/heads/main").map(|tip| tip.map(|tip| tip.0));
            let expected = expected.map(|tip| tip.map(str::to_owned));
            assert_eq!(found, expected.map_err(str::as_bytes), "{answer}");
        };
        let other = format!("{a}\trefs/heads/refs/heads/main\n");
        check("", Ok(None));
        check(&other, Ok(None));
        check(&format!("{other}{b}\trefs/heads/main\n"), Ok(Some(&b)));
        for wrong in [
            format!("{b} refs/heads/main"),
            format!("{}\trefs/heads/main", &b[1..]),
            format!("-{}\trefs/heads/main", &b[1..]),
            "warning: something".to_owned(),
        ] {
            check(&format!("{other}{wrong}\n"), Err(&wrong));
        }
    }
}
