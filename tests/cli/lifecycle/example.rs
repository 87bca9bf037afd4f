//! What `examples/lifecycle` says of itself is what happens there.

use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use regex::Regex;

use crate::readme::{copy, transcripts};

/// What differs from run to run: times and commits.
fn settled(text: &str) -> String {
    let commit = Regex::new(r"\b[0-9a-f]{7}\b").unwrap();
    let time = Regex::new(r"\b[0-9.]+s\b").unwrap();
    let text = commit.replace_all(text, "(commit)");
    time.replace_all(&text, "(time)").trim_end().to_owned()
}

#[test]
fn example_readme_is_true() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/lifecycle");
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().join("lifecycle");
    copy(&example, &project);
    // What trying the example in place has left.
    _ = std::fs::remove_dir_all(project.join(".orch"));
    let programs = cargo_bin("orch").parent().unwrap().to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let shell = |command: &str| {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(&project)
            .env_clear()
            .env("PATH", &path)
            .env("HOME", directory.path())
            .env("LIVE", directory.path().join("live"))
            .env("GIT_CONFIG_NOSYSTEM", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            shell
                .env(format!("GIT_{role}_NAME"), "somebody")
                .env(format!("GIT_{role}_EMAIL"), "somebody@example.com");
        }
        String::from_utf8(shell.output().unwrap().stdout).unwrap()
    };
    let begun = shell("git init -q && git add -A && git commit -q -m 'First commit'");
    assert_eq!(begun, "");
    let readme = std::fs::read_to_string(example.join("README.md")).unwrap();
    let transcripts = transcripts(&readme);
    assert!(transcripts.len() > 20, "{} commands", transcripts.len());
    for transcript in transcripts {
        let actual = settled(&shell(&transcript.command));
        assert_eq!(
            settled(&transcript.output),
            actual,
            "of `{}`",
            transcript.command
        );
    }
}
