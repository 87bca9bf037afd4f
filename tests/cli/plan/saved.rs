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
fn plan_keeps_the_old_file_if_a_tool_fails() {
    let sandbox = planned();
    let before = std::fs::read(sandbox.path("/a/plan")).unwrap();
    sandbox.write("/a/says", "exit 1");
    let output = sandbox.orch("plan -o a/plan");
    assert_eq!(output.code(), 1);
    assert!(output.stderr.contains("no file was written"), "{output:?}");
    assert_eq!(std::fs::read(sandbox.path("/a/plan")).unwrap(), before);
    // What cannot be written is refused before any tool is asked.
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
