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
fn destroys_are_approved_by_their_number() {
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
fn a_plan_in_a_file_has_the_number_that_it_allows() {
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
fn what_is_forgotten_or_blocked_does_not_count() {
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
fn a_destroy_counts_what_was_removed_too() {
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
fn the_number_is_typed_at_a_terminal() {
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
fn what_comes_back_during_the_question_is_not_destroyed() {
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
fn a_question_that_is_interrupted_leaves_nothing() {
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
