//! git in one directory: nothing of the host is seen, and the same commands make the same commits.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

use super::host::isolate;

/// When commits are made unless a test says otherwise.
const NOW: u64 = 1_700_000_000;

/// What every git of the tests is told. Only `protocol.file.allow` lets it do more than by default;
/// the others save processes and writes that no test looks at.
const SETTINGS: [(&str, &str); 5] = [
    ("advice.detachedHead", "false"),
    ("core.fsync", "none"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.file.allow", "always"),
];

/// git, run in a directory by somebody called Ada.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    directory: PathBuf,
    home: PathBuf,
    time: u64,
}

impl Git {
    pub(crate) fn new(directory: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        Git {
            directory: directory.into(),
            home: home.into(),
            time: NOW,
        }
    }

    /// Returns git with its clock set to this many seconds after the usual time.
    pub(crate) fn later(mut self, seconds: u64) -> Self {
        self.time = NOW + seconds;
        self
    }

    /// Returns git in another directory.
    pub(crate) fn within(&self, directory: impl AsRef<Path>) -> Self {
        Git {
            directory: self.directory.join(directory),
            ..self.clone()
        }
    }

    /// Prepares a command of git.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut git = Command::new("git");
        isolate(&mut git, &self.home);
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "Ada")
                .env(format!("GIT_{who}_EMAIL"), "ada@example.org")
                .env(format!("GIT_{who}_DATE"), format!("@{} +0000", self.time));
        }
        git.env("GIT_CONFIG_COUNT", SETTINGS.len().to_string());
        for (number, (name, value)) in SETTINGS.iter().enumerate() {
            git.env(format!("GIT_CONFIG_KEY_{number}"), name)
                .env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        git.env("GIT_TEMPLATE_DIR", "") // no sample hooks
            .env("GIT_EDITOR", "true")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .args(arguments)
            .current_dir(&self.directory);
        git
    }

    /// Runs a command line of git, split as a shell splits words. It may fail.
    pub(crate) fn output(&self, line: &str) -> process::Output {
        let words = shell_words::split(line).expect("quotes are balanced");
        let output = self.command(&words).output();
        output.expect("git is installed")
    }

    /// Runs a command line of git, which succeeds, and returns what it prints.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> String {
        let output = self.output(line);
        assert!(output.status.success(), "git {line}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs git with this text on its stdin. It may fail.
    pub(crate) fn feed(&self, arguments: &[&str], input: &[u8]) -> process::Output {
        let mut git = self.command(arguments);
        git.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut git = git.spawn().expect("git is installed");
        let mut stdin = git.stdin.take().expect("stdin is a pipe");
        _ = stdin.write_all(input); // where git does not read all of it, its status tells
        drop(stdin);
        git.wait_with_output().unwrap()
    }

    /// Makes the directory a repository whose branch is `main`, as `git init` does.
    pub(crate) fn init(&self) {
        let git = self.directory.join(".git");
        for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
            fs::create_dir_all(git.join(directory)).unwrap();
        }
        let has_modes = cfg!(unix);
        let config = format!(
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = {has_modes}\n\tbare = false\n\tlogallrefupdates = true\n"
        );
        fs::write(git.join("config"), config).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    /// Commits everything that differs.
    #[track_caller]
    pub(crate) fn commit_all(&self) {
        self.run("add -A");
        self.run("commit -q --allow-empty -m change");
    }
}
