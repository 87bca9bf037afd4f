//! What `examples/releases` says of itself is what happens there.

use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use crate::readme::{copy, transcripts};
use crate::support::Sandbox;

#[test]
fn example_of_releases_has_a_true_readme() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/releases");
    let sandbox = Sandbox::unmarked("");
    copy(&example, &sandbox.path("/"));
    sandbox.git_init();
    sandbox.git_at("/").commit_all();
    for version in ["1.2.0", "1.3.0", "1.4.0"] {
        sandbox
            .git_at("/")
            .run(&format!("tag modules/vpc/v{version}"));
    }
    let programs = cargo_bin("orch").parent().unwrap().to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let shell = |line: &str| {
        let mut shell = Command::new("sh");
        sandbox.isolate(&mut shell);
        shell
            .args(["-c", &format!("exec 2>&1; {line}")])
            .current_dir(sandbox.path("/"))
            .env("PATH", &path);
        String::from_utf8(shell.output().unwrap().stdout).unwrap()
    };
    let readme = std::fs::read_to_string(example.join("README.md")).unwrap();
    let transcripts = transcripts(&readme);
    assert!(transcripts.len() >= 5, "{} commands", transcripts.len());
    for transcript in transcripts {
        let command = &transcript.command;
        assert_eq!(transcript.output, shell(command), "of `{command}`");
    }
}
