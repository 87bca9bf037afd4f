//! Questions on a terminal.

use super::{acts, applied, assert_tidy, hook, project, want, with_state, world};
use crate::support::{Sandbox, answered_after};

/// Runs `orch` on a terminal, types something once it asks, and returns its exit status with all that it
/// said; nothing where there is no terminal.
fn answered(sandbox: &Sandbox, arguments: &str, keys: &str) -> Option<(i32, String)> {
    answered_after(sandbox, arguments, keys, || ())
}

#[test]
fn apply_without_destroys_is_approved_with_yes() {
    let repository = project(&[("/a", "")]);
    for answer in ["no\n", "y\n", "\n", "yes please\n", "1\n"] {
        let Some((code, said)) = answered(&repository, "apply", answer) else {
            return;
        };
        assert_eq!(code, 4, "{answer}: {said}");
        assert!(said.contains("not approved; nothing was run"), "{said}");
        assert_eq!(acts(&repository), [""; 0]);
        assert_tidy(&repository);
    }
    let (code, said) = answered(&repository, "apply", "yes\n").unwrap();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Plan: 1 to create"), "{said}");
    assert_eq!(acts(&repository), ["apply create a"]);
}

#[test]
fn apply_with_destroys_is_approved_with_the_number() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    for answer in ["yes\n", "1\n", "3\n", "\n"] {
        for arguments in [
            "destroy",
            "destroy --auto-approve",
            "destroy --allow-destroy=1",
        ] {
            let Some((code, said)) = answered(&repository, arguments, answer) else {
                return;
            };
            assert_eq!(code, 4, "{answer}: {said}");
            assert_eq!(acts(&repository), [""; 0]);
        }
    }
    let (code, said) = answered(&repository, "destroy", "2\n").unwrap();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("2 destroys"), "{said}");
    assert_eq!(world(&repository, "a"), None);
}

#[test]
fn apply_prompt_is_interrupted_with_ctrl_c() {
    let repository = applied(&[("/a", "")]);
    want(&repository, "/a", "2");
    let Some((code, said)) = answered(&repository, "apply", "\u{3}") else {
        return;
    };
    assert_eq!(code, 130, "{said}");
    assert_tidy(&repository);
    assert_eq!(acts(&repository), [""; 0]);
    // Nobody holds anything.
    let (code, said) = answered(&repository, "apply", "yes\n").unwrap();
    assert_eq!(code, 0, "{said}");
    assert_eq!(world(&repository, "a").as_deref(), Some("2"));
    assert_tidy(&repository);
}

#[test]
fn apply_prompt_rejects_the_plan_when_the_terminal_closes() {
    let repository = project(&[("/a", "")]);
    let Some((code, said)) = answered(&repository, "apply", "\u{4}") else {
        return;
    };
    assert_eq!(code, 4, "{said}");
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn apply_notices_changes_during_the_prompt() {
    for make in [project, with_state] {
        let repository = make(&[("/a", "")]);
        let write = |path: &str| repository.write(path, "2");
        let changes: [(&str, &dyn Fn()); 3] = [
            ("elsewhere/file", &|| write("/elsewhere/file")),
            ("a/want (modified)", &|| write("/a/want")),
            ("/a: a/want differs", &|| want(&repository, "/a", "2")),
        ];
        for (said, change) in changes {
            let Some((code, told)) = answered_after(&repository, "apply", "yes\n", change) else {
                return;
            };
            assert_eq!(code, 4, "{said}: {told}");
            assert!(told.contains(said), "{said}: {told}");
            assert_eq!(acts(&repository), [""; 0]);
            assert_tidy(&repository);
            repository.git("checkout -q .");
            repository.git("clean -q -f -d elsewhere");
        }
        // Another commit of the same files is fine.
        let commit = || _ = repository.git("commit -q --allow-empty -m another");
        let (code, told) = answered_after(&repository, "apply", "yes\n", commit).unwrap();
        assert_eq!(code, 0, "{told}");
    }
}

#[test]
fn apply_ignores_files_that_tools_write_while_planning() {
    for make in [project, with_state] {
        let repository = make(&[("/a", "")]);
        hook(&repository, "plan", "a", "echo cached > $ORCH_ROOT/cache");
        let Some((code, said)) = answered(&repository, "apply", "yes\n") else {
            return;
        };
        assert_eq!(code, 0, "{said}");
        assert_eq!(world(&repository, "a").as_deref(), Some("1"));
    }
}
