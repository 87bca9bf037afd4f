//! What `examples/policies` says of itself is what happens there.

use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use crate::readme::{copy, transcripts};
use crate::support::Sandbox;

#[test]
fn example_of_follow_ups_has_a_true_readme() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/policies");
    let sandbox = Sandbox::unmarked("");
    copy(&example, &sandbox.path("/"));
    let programs = cargo_bin("orch").parent().unwrap().to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let readme = std::fs::read_to_string(example.join("README.md")).unwrap();
    let transcripts = transcripts(&readme);
    assert!(transcripts.len() >= 10, "{} commands", transcripts.len());
    for transcript in transcripts {
        let command = &transcript.command;
        let mut shell = Command::new("sh");
        sandbox.isolate(&mut shell);
        shell
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(sandbox.path("/"))
            .env("PATH", &path);
        let output = String::from_utf8(shell.output().unwrap().stdout).unwrap();
        assert_eq!(transcript.output, output, "of `{command}`");
    }
}
