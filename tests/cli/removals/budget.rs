//! How many stacks may be destroyed that were removed, and who says so.

use super::{APPROVED, acts, applied, assert_tidy, done, fails, remove, vanish, world};
use crate::support::{Repository, Sandbox, answered_after};

/// A project from which two of three stacks were removed.
fn two() -> Repository {
    let repository = applied(&[("/a", ""), ("/b", ""), ("/c", "")]);
    remove(&repository, "a b");
    repository
}

#[test]
fn removal_is_approved_by_number() {
    let repository = two();
    let refused = |arguments: &str, said: &str| {
        let told = fails(&repository, arguments, 4, said);
        assert_eq!(acts(&repository), [""; 0], "{told}");
        assert_tidy(&repository);
    };
    refused(
        "apply",
        "this plan has 2 destroys, and there is no terminal to ask for approval",
    );
    refused("apply --auto-approve", "add `--allow-destroy=2`");
    refused("apply --auto-approve --allow-destroy=0", "2 destroys");
    refused(
        "apply --auto-approve --allow-destroy=1",
        "`--allow-destroy` allows 1",
    );
    refused("apply --allow-destroy=2", "--auto-approve");
    done(&repository, "apply --auto-approve --allow-destroy=2");
    assert_eq!(acts(&repository), ["destroy /a", "destroy /b"]);
}

#[test]
fn removal_uses_the_allowance_of_a_plan_file() {
    let repository = two();
    done(&repository, "plan -o ../saved");
    fails(&repository, "apply ../saved", 4, "--allow-destroy=2");
    fails(
        &repository,
        "apply ../saved --auto-approve",
        4,
        "--allow-destroy=2",
    );
    fails(
        &repository,
        "apply ../saved --allow-destroy=1",
        4,
        "allows 1",
    );
    done(&repository, "plan -o ../saved --allow-destroy=1");
    fails(
        &repository,
        "apply ../saved",
        4,
        "`--allow-destroy` allows 1",
    );
    assert_eq!(acts(&repository), [""; 0]);
    done(&repository, "plan -o ../saved --allow-destroy=2");
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["destroy /a", "destroy /b"]);
    assert_tidy(&repository);
}

#[test]
fn removal_budget_ignores_forgotten_and_blocked_stacks() {
    let repository = applied(&[("/a", ""), ("/b", ""), ("/c", ""), ("/d", "")]);
    remove(&repository, "a b");
    vanish(&repository, "a");
    std::fs::remove_dir_all(repository.path("/c")).unwrap();
    let apply = "apply --auto-approve --disable-safeguards=all";
    fails(&repository, apply, 4, "this plan has 1 destroy,");
    done(&repository, &format!("{apply} --allow-destroy=1"));
    assert_eq!(acts(&repository), ["destroy /b"]);
}

#[test]
fn removal_counts_in_the_budget_of_destroy() {
    let repository = two();
    let plan = done(&repository, "plan --destroy");
    assert!(plan.contains("3 to delete"), "{plan}");
    fails(
        &repository,
        "destroy --auto-approve --allow-destroy=2",
        4,
        "3 destroys",
    );
    done(&repository, "destroy --auto-approve --allow-destroy=3");
    assert_eq!(world(&repository), [""; 0]);
    let left = done(&repository, "plan --destroy");
    assert!(left.contains("Plan: nothing to do."), "{left}");
}

/// Runs `orch apply` on a terminal, and types something once it asks; nothing where there is no terminal.
fn answered(sandbox: &Sandbox, keys: &str, meanwhile: impl FnOnce()) -> Option<(i32, String)> {
    answered_after(sandbox, "apply", keys, meanwhile)
}

#[test]
fn removal_is_approved_at_a_terminal_by_number() {
    let repository = two();
    for answer in ["yes\n", "1\n", "3\n", "\n"] {
        let Some((code, said)) = answered(&repository, answer, || ()) else {
            return;
        };
        assert_eq!(code, 4, "{answer}: {said}");
        assert_eq!(acts(&repository), [""; 0]);
        assert_tidy(&repository);
    }
    let (code, said) = answered(&repository, "2\n", || ()).unwrap();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("- /a  delete  removed in "), "{said}");
    assert_eq!(acts(&repository), ["destroy /a", "destroy /b"]);
    assert_tidy(&repository);
}

#[test]
fn removal_keeps_stacks_restored_during_the_prompt() {
    let repository = two();
    let back = || _ = repository.git("revert --no-edit HEAD");
    let Some((code, said)) = answered(&repository, "2\n", back) else {
        return;
    };
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("/a: it is in the project again"), "{said}");
    assert_eq!(acts(&repository), [""; 0]);
    assert_tidy(&repository);
}

#[test]
fn removal_prompt_leaves_no_files_if_interrupted() {
    let repository = two();
    let Some((code, said)) = answered(&repository, "\u{3}", || ()) else {
        return;
    };
    assert_eq!(code, 130, "{said}");
    assert_eq!(acts(&repository), [""; 0]);
    assert_tidy(&repository);
    done(&repository, &format!("apply {APPROVED}"));
    assert_tidy(&repository);
}
