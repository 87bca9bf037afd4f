//! A project that is committed as it is, and which of its stacks a change to one file changes.

use std::fs;

use super::sandbox::Sandbox;

/// A project with these stacks, separated by spaces, and these files, all of it committed.
pub(crate) fn project(stacks: &str, files: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::layout(&stacks.replace(' ', "\n"));
    for (path, text) in files {
        sandbox.write(path, text);
    }
    commit(&sandbox);
    sandbox
}

/// Commits everything, in a repository that is made if there is none.
pub(crate) fn commit(sandbox: &Sandbox) {
    if !sandbox.path("/.git").exists() {
        sandbox.git_init();
    }
    sandbox.git_at("/").commit_all();
}

/// What has changed since the commit and why, and what is warned of.
#[track_caller]
pub(crate) fn why(sandbox: &Sandbox) -> String {
    let output = sandbox.orch("list --changed --why --base HEAD");
    assert_eq!(output.code(), 0, "{output}");
    // What names a commit says nothing here.
    let is_commit = |line: &str| line.starts_with("base ") || line.starts_with("note: no stack ");
    let warnings = output.stderr.lines().filter(|line| !is_commit(line));
    let stacks = output.stdout.replace("; at or below /\n", "\n");
    let stacks = stacks.replace(" (uncommitted)", "");
    let lines: Vec<&str> = stacks.lines().chain(warnings).collect();
    lines.join("\n")
}

/// What has changed and why while this file has: the change is undone.
#[track_caller]
pub(crate) fn why_changed(sandbox: &Sandbox, path: &str) -> String {
    let before = fs::read(sandbox.path(path)).ok();
    let text = before.as_deref().unwrap_or_default();
    sandbox.write(path, [text, b"# changed\n"].concat());
    let why = why(sandbox);
    match before {
        Some(text) => sandbox.write(path, text),
        None => fs::remove_file(sandbox.path(path)).unwrap(),
    }
    why.replace(" (untracked)", "")
}

/// The stacks that change with this file.
#[track_caller]
pub(crate) fn changed(sandbox: &Sandbox, path: &str) -> Vec<String> {
    let why = why_changed(sandbox, path);
    let stack = |line: &str| line.split_once("  # ").map(|(stack, _)| stack.to_owned());
    why.lines().filter_map(stack).collect()
}
