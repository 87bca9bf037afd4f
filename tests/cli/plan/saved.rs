//! Plans in files: `orch plan -o`, `orch show`.

use std::os::unix::fs::PermissionsExt as _;

use super::project;
use crate::support::{Repository, Sandbox};

const CHANGES: &str = "echo the plan > \"$ORCH_PLAN_FILE\"; exit 2";

fn planned() -> Sandbox {
    let sandbox = project(&[("/a", CHANGES), ("/b", "exit 0")]);
    let output = sandbox.orch("plan -o a/plan");
    assert_eq!(output.code(), 0, "{output:?}");
    sandbox
}

#[test]
fn plan_file_is_shown_unchanged_and_is_private() {
    let sandbox = project(&[("/a", CHANGES), ("/b", "exit 0")]);
    let output = sandbox.orch("plan -o plan --detailed-exitcode");
    assert_eq!(output.code(), 2, "{output:?}");
    assert_eq!(sandbox.orch("show plan").stdout, output.stdout);
    let mode = sandbox.path("/plan").metadata().unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let json = sandbox.orch("show plan --format json").json();
    assert_eq!(json["stacks"][0]["path"], "/a");
    assert_eq!(json["operations"][0]["operation"], "apply");
    // A relative path is one from the directory that `-C` names.
    assert_eq!(sandbox.orch("-C a show ../plan").code(), 0);
}

#[test]
fn plan_file_counts_as_no_change() {
    let repository = Repository::of(planned());
    // It was committed with the rest; a new one is not.
    assert_eq!(repository.orch("plan -o b/plan").code(), 0);
    let changed = repository.orch("list --changed --base base");
    assert_eq!((changed.code(), &*changed.stdout), (0, ""), "{changed:?}");
    assert_eq!(repository.orch("run true").code(), 0);
    repository.write("/b/other", "");
    assert_eq!(repository.orch("list --changed --base base").stdout, "b\n");
}

#[test]
fn plan_removes_the_earlier_file_before_it_fails() {
    let sandbox = planned();
    sandbox.write("/a/says", "exit 1");
    let output = sandbox.orch("plan -o a/plan");
    assert_eq!(output.code(), 1);
    assert!(output.stderr.contains("no file was written"), "{output:?}");
    assert!(!sandbox.path("/a/plan").exists());
    let output = sandbox.orch("apply a/plan --auto-approve");
    assert_eq!(output.code(), 5, "{output:?}");
    let hint = "help: make a new plan with `orch plan -o FILE`";
    assert!(output.stderr.contains(hint), "{output:?}");
    // Other files, such as a list of commands, are kept.
    sandbox.write("/a/todo", "orch plan -o plan\norch plan 1 sha256:");
    assert_eq!(sandbox.orch("plan -o a/todo").code(), 1);
    assert!(sandbox.path("/a/todo").exists());
}

#[test]
fn plan_keeps_the_earlier_file_if_it_does_not_begin() {
    let sandbox = planned();
    let before = std::fs::read(sandbox.path("/a/plan")).unwrap();
    for (arguments, code) in [
        ("plan -o a/plan --changed --base nowhere", 4),
        ("plan -o a/plan --max-bytes 1000", 64),
        ("plan -o a/plan -- -destroy", 64),
    ] {
        let output = sandbox.orch(arguments);
        assert_eq!(output.code(), code, "{output:?}");
    }
    sandbox.write("/b/bad.tm", "stack {");
    assert_eq!(sandbox.orch("plan -o a/plan").code(), 3);
    assert_eq!(std::fs::read(sandbox.path("/a/plan")).unwrap(), before);
}

#[test]
fn plan_refuses_a_file_that_cannot_be_written_before_it_asks() {
    let sandbox = planned();
    sandbox.write("/a/says", "touch ../asked");
    assert_eq!(sandbox.orch("plan -o a").code(), 5);
    assert_eq!(sandbox.orch("plan -o nowhere/plan").code(), 5);
    assert!(!sandbox.path("/asked").exists());
}

#[test]
fn show_refuses_files_that_are_no_plans() {
    let sandbox = planned();
    let whole = std::fs::read(sandbox.path("/a/plan")).unwrap();
    let mut damaged = whole.clone();
    damaged[60] ^= 1;
    let cut = &whole[..whole.len() / 2];
    for (what, bytes) in [("text", &b"hello"[..]), ("cut", cut), ("empty", &[])] {
        sandbox.write("/bad", bytes);
        let output = sandbox.orch("show bad");
        assert_eq!(output.code(), 3, "{what}: {output:?}");
        assert!(output.stderr.contains("`orch plan -o FILE`"), "{output:?}");
    }
    sandbox.write("/bad", damaged);
    assert_eq!(sandbox.orch("show bad").code(), 3);
    assert_eq!(sandbox.orch("show missing").code(), 5);
    let output = sandbox.orch("show a/plan a");
    assert_eq!(
        output.code(),
        4,
        "a driver of one's own shows nothing: {output:?}"
    );
}
