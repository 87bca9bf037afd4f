//! Which files are opened.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::{NONE, module};
use crate::support::{Sandbox, commit, skipped};

/// The files of Terraform that `orch` opens, by path.
fn opened(sandbox: &Sandbox, arguments: &str) -> Option<Vec<String>> {
    let trace = sandbox.outside().join("trace");
    let orch = sandbox.command(arguments);
    let mut strace = Command::new("strace");
    strace.args([
        "-f",
        "-qq",
        "-s",
        "4096",
        "-e",
        "trace=open,openat,openat2",
        "-o",
    ]);
    strace
        .arg(&trace)
        .arg("--")
        .arg(orch.get_program())
        .args(orch.get_args());
    strace.env_clear().current_dir(sandbox.path("/"));
    for (name, value) in orch.get_envs() {
        strace.env(name, value.unwrap_or_default());
    }
    let has_run = strace.output().is_ok_and(|output| output.status.success());
    if !has_run {
        skipped("there is no `strace`, or it may not trace");
        return None;
    }
    let trace = fs::read_to_string(trace).unwrap();
    let root = format!(
        "{}/",
        sandbox.path("").to_string_lossy().trim_end_matches('/')
    );
    let paths = trace.lines().filter_map(|line| line.split('"').nth(1));
    let mut files: Vec<String> = paths
        .filter(|path| {
            Path::new(path)
                .extension()
                .is_some_and(|ending| ending == "tf")
        })
        .map(|path| path.strip_prefix(&root).unwrap_or(path).to_owned())
        .collect();
    files.sort_unstable();
    Some(files)
}

/// Makes all files older than the index will be: git would read again what is as young.
fn age(sandbox: &Sandbox) {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for entry in walkdir::WalkDir::new(sandbox.path("/"))
        .into_iter()
        .flatten()
    {
        if entry
            .path()
            .extension()
            .is_some_and(|ending| ending == "tf")
        {
            let file = fs::File::options().write(true).open(entry.path());
            file.unwrap().set_modified(long_ago).unwrap();
        }
    }
}

#[test]
fn inputs_are_opened_once_and_only_if_needed() {
    let sandbox = Sandbox::layout("s\nt\nu");
    for (path, text) in [
        ("/s/main.tf", &*(module("../m") + &module("../m"))),
        ("/t/main.tf", &module("../m")),
        ("/u/a.tf", &module("../u-only")),
        ("/u/b.tf", ""),
        ("/m/main.tf", &module("../n")),
        ("/n/main.tf", &module("../m")),
        ("/u-only/main.tf", ""),
        ("/unused/main.tf", ""),
        ("/x", ""),
    ] {
        sandbox.write(path, text);
    }
    age(&sandbox);
    commit(&sandbox);
    let list = "list --changed --base HEAD";
    let Some(files) = opened(&sandbox, list) else {
        return;
    };
    assert_eq!(files, NONE, "nothing has changed");
    sandbox.write("/x", "changed");
    assert_eq!(opened(&sandbox, "list").unwrap(), NONE, "nobody asked");
    assert_eq!(
        opened(&sandbox, list).unwrap(),
        [
            "m/main.tf",
            "n/main.tf",
            "s/main.tf",
            "t/main.tf",
            "u-only/main.tf",
            "u/a.tf",
            "u/b.tf"
        ]
    );
    // In a commit: of what is not committed, git itself reads the text.
    sandbox.write("/u/b.tf", "# changed\n");
    age(&sandbox);
    commit(&sandbox);
    let list = "list --changed --base HEAD~";
    assert_eq!(
        opened(&sandbox, list).unwrap(),
        ["m/main.tf", "n/main.tf", "s/main.tf", "t/main.tf", "u/b.tf"]
    );
    sandbox.write("/n/y", "changed");
    assert_eq!(
        opened(&sandbox, list).unwrap(),
        ["m/main.tf", "s/main.tf", "t/main.tf", "u/b.tf"]
    );
}
