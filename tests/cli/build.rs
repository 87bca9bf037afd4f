//! The build script finds the commit, wherever the sources lie.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::{Sandbox, skipped};

/// The build script as a program; `None` if there is no compiler.
fn script(folder: &TempDir) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/build.rs");
    let name = format!("script{}", std::env::consts::EXE_SUFFIX);
    let program = folder.path().join(name);
    let compiled = Command::new("rustc")
        .args(["--edition", "2024", "-o"])
        .args([&program, &source])
        .status();
    let Ok(compiled) = compiled else {
        skipped("there is no rustc on the PATH");
        return None;
    };
    assert!(compiled.success());
    Some(program)
}

/// Runs the script in a directory, and returns the commit that it reports and when it runs again.
fn said(script: &Path, sandbox: &Sandbox, directory: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(script);
    sandbox.isolate(&mut command);
    let output = command
        .envs(variables.iter().copied())
        .current_dir(sandbox.path(directory))
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines = stdout.lines().filter_map(|line| {
        let line = line.strip_prefix("cargo::").unwrap();
        let line = line.strip_prefix("rustc-env=ORCH_").unwrap_or(line);
        let is_wanted = line.starts_with("COMMIT") || line.starts_with("rerun-if-changed");
        is_wanted.then_some(line)
    });
    sandbox.redact_known(&lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn the_commit_is_that_of_the_sources() {
    let folder = tempfile::tempdir().unwrap();
    let Some(script) = script(&folder) else {
        return;
    };
    let unknown = "COMMIT=unknown\nCOMMIT_DATE=unknown";
    let sandbox = Sandbox::layout("sources");
    let script = script.as_path();
    let said =
        |directory: &str, variables: &[(&str, &str)]| said(script, &sandbox, directory, variables);
    assert_eq!(said("/", &[]), unknown);
    let given = [("ORCH_COMMIT", "abc"), ("ORCH_COMMIT_DATE", "2026-01-02")];
    assert_eq!(said("/", &given), "COMMIT=abc\nCOMMIT_DATE=2026-01-02");
    assert_eq!(said("/", &given[..1]), "COMMIT=abc\nCOMMIT_DATE=unknown");

    sandbox.git_init();
    assert_eq!(
        said("/", &[("ORCH_COMMIT", "")]),
        unknown,
        "there is no commit"
    );
    let git = sandbox.git_at("/");
    git.commit_all();
    sandbox.learn(git.run("rev-parse HEAD").trim(), "HEAD");
    sandbox.learn(git.run("show --no-patch --format=%cs").trim(), "DATE");
    let watched = "rerun-if-changed=.git/HEAD\nrerun-if-changed=.git/logs/HEAD";
    let clean = format!("{watched}\nCOMMIT=HEAD\nCOMMIT_DATE=DATE");
    assert_eq!(said("/", &[]), clean);
    assert_eq!(
        said("/sources", &[]),
        unknown,
        "the checkout is of something else"
    );
    sandbox.write("/untracked", "");
    assert_eq!(said("/", &[]), clean);
    sandbox.write("/sources/stack.tm", "stack {\n  name = \"x\"\n}\n");
    let dirty = clean.replace("=HEAD\n", "=HEAD (dirty)\n");
    assert_eq!(said("/", &[]), dirty);
    let release = said("/", &[("PROFILE", "release")]);
    assert!(release.starts_with("rerun-if-changed=src\n"), "{release}");
}
