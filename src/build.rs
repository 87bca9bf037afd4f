//! Tells the program which commit it is built from, for which target and by which compiler.
//!
//! `ORCH_COMMIT` and `ORCH_COMMIT_DATE` provide the commit where there is no git checkout. The build
//! time is not recorded, so the same commit gives the same binary.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

fn main() {
    for variable in ["ORCH_COMMIT", "ORCH_COMMIT_DATE"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    // Development builds look for changes only when HEAD moves: otherwise, each change of the program
    // would build the library again.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        for source in ["src", "Cargo.toml", "Cargo.lock"] {
            println!("cargo::rerun-if-changed={source}");
        }
    }
    // A position-independent program relocates 250,000 addresses at each start, which doubles its time. Go programs
    // aren't position-independent by default, either.
    let is = |name, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    let (commit, date) = given().or_else(checked_out).unwrap_or_default();
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let compiler = output(Command::new(compiler).arg("--version"));
    let target = env::var("TARGET").ok();
    for (variable, value) in [
        ("ORCH_COMMIT", commit),
        ("ORCH_COMMIT_DATE", date),
        ("ORCH_TARGET", target),
        ("ORCH_RUSTC", compiler),
        ("ORCH_FEATURES", Some(features())),
    ] {
        let value = value.unwrap_or_else(|| "unknown".to_owned());
        println!("cargo::rustc-env={variable}={value}");
    }
}

/// A commit and its date, as far as they are known.
type Commit = (Option<String>, Option<String>);

/// Returns the commit that the environment names.
fn given() -> Option<Commit> {
    let value = |name| env::var(name).ok().filter(|value| !value.trim().is_empty());
    Some((Some(value("ORCH_COMMIT")?), value("ORCH_COMMIT_DATE")))
}

/// Returns the commit of the checkout, and whether tracked files differ from it.
fn checked_out() -> Option<Commit> {
    // The sources may lie in the checkout of another project.
    if !git(&["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    // The log of HEAD gets a line whenever HEAD moves.
    for file in ["HEAD", "logs/HEAD"] {
        let file = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&file).exists() {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    let date = git(&["show", "--no-patch", "--format=%cs", "HEAD"]);
    let changes = git(&[
        "--no-optional-locks",
        "status",
        "--porcelain",
        "--untracked-files=no",
    ]);
    let is_dirty = changes.is_some_and(|changes| !changes.is_empty());
    let mark = if is_dirty { " (dirty)" } else { "" };
    Some((Some(format!("{commit}{mark}")), date))
}

fn git(arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    // A hook has variables that name its own repository.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(variable);
    }
    output(git.args(arguments))
}

fn features() -> String {
    let features = env::var("CARGO_CFG_FEATURE").unwrap_or_default();
    let features = features.split(',');
    let features: Vec<&str> = features
        .filter(|name| !matches!(*name, "" | "default"))
        .collect();
    if features.is_empty() {
        "none".to_owned()
    } else {
        features.join(" ")
    }
}

/// Returns the first line that a command prints, if it succeeds.
fn output(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.lines().next().unwrap_or_default().to_owned())
}
