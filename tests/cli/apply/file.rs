//! Plans in files: what is carried out of them, and which are refused.

use std::fs;
use std::path::Path;

use super::{
    acts, applied, assert_tidy, done, fails, hook, log, prepared, project, want, with_state, world,
};
use crate::support::{Repository, Sandbox};

#[test]
fn apply_of_a_file_uses_the_shown_plans_of_tools() {
    let repository = project(&[("/a", ""), ("/b", "")]);
    hook(
        &repository,
        "plan",
        "a",
        "echo planned > $ORCH_PLAN_FILE; exit 2",
    );
    done(&repository, "plan -o saved");
    hook(
        &repository,
        "plan",
        "a",
        "echo another > $ORCH_PLAN_FILE; exit 2",
    );
    log(&repository);
    let output = done(&repository, "apply saved");
    // Nothing runs after anything: nobody is asked again.
    let steps = [
        "apply update a",
        "outputs update a",
        "apply create b",
        "outputs create b",
    ];
    assert_eq!(log(&repository), steps, "{output}");
    assert_eq!(world(&repository, "a").as_deref(), Some("planned\n"));
    assert_tidy(&repository);
}

#[test]
fn apply_of_a_file_refuses_planning_flags() {
    let repository = project(&[("/a", "")]);
    done(&repository, "plan -o saved");
    log(&repository);
    let flags = [
        "--match a",
        "--changed",
        "--tags x",
        "--exclude a",
        "--destroy",
        "--replace a",
        "--full",
        "--allow-rollback",
        "--include-dependencies",
    ];
    for flag in flags {
        fails(&repository, &format!("apply saved {flag}"), 64, "FILE");
    }
    fails(&repository, "apply saved -- -target=x", 64, "");
    fails(&repository, "apply --resume", 64, "FILE");
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn apply_of_a_damaged_file_runs_nothing() {
    let repository = project(&[("/a", ""), ("/b", "")]);
    done(&repository, "plan -o saved");
    log(&repository);
    let whole = fs::read(repository.path("/saved")).unwrap();
    let refused = |what: &str, bytes: &[u8]| {
        repository.write("/bad", bytes);
        let output = repository.orch("apply -X bad");
        assert_eq!(output.code(), 3, "{what}: {output}");
        assert!(
            output.stderr.contains("`orch plan -o FILE`"),
            "{what}: {output}"
        );
        assert_eq!(log(&repository), [""; 0], "{what}");
    };
    refused("nothing", b"");
    refused("text", b"hello");
    refused("half", &whole[..whole.len() / 2]);
    refused("a byte less", &whole[..whole.len() - 1]);
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x20;
        repository.write("/bad", &damaged);
        log(&repository);
        let output = repository.orch("apply -X bad");
        // What a zip says of itself besides its contents may differ.
        if output.code() != 0 {
            assert_eq!(output.code(), 3, "byte {at}: {output}");
            assert_eq!(log(&repository), [""; 0], "byte {at}");
        }
    }
    fails(&repository, "apply missing", 5, "missing");
    fails(&repository, "apply a", 64, "`a` is a directory");
}

#[test]
fn apply_of_a_file_accepts_another_commit_with_equal_content() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    repository.git("checkout -q -b feature");
    want(&repository, "/a", "2");
    want(&repository, "/b", "2");
    done(&repository, "plan -o ../saved");
    // Both commits become one.
    repository.git("checkout -q main");
    repository.git("merge -q --squash feature");
    repository.git("commit -q -m squashed");
    repository.git("branch -q -D feature");
    log(&repository);
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["apply update a", "apply update b"]);
    assert_eq!(world(&repository, "b").as_deref(), Some("2"));
}

#[test]
fn apply_of_a_file_works_in_another_clone() {
    let repository = project(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    done(&repository, "plan -o ../saved");
    log(&repository);
    let place = repository.outside().to_path_buf();
    repository.git_in(&place, "clone -q project elsewhere");
    let output = repository.orch_with("apply ../saved", |command| {
        command.current_dir(Path::new(&place).join("elsewhere"));
    });
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(acts(&repository), ["apply create a", "apply create b"]);
    assert_eq!(world(&repository, "b").as_deref(), Some("1"));
}

#[test]
fn apply_of_an_empty_file_succeeds() {
    let repository = applied(&[("/a", "")]);
    done(&repository, "plan -o saved");
    let output = done(&repository, "apply saved");
    assert!(output.contains("nothing to do"), "{output}");
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn apply_of_a_file_works_from_any_directory() {
    let repository = with_state(&[("/a", ""), ("/b/c", "")]);
    done(&repository, "-C b plan -o ../../saved");
    done(&repository, "-C b/c apply ../../../saved");
    assert_eq!(acts(&repository), ["apply create c"]);
}

#[test]
fn apply_refuses_a_plan_file_outside_of_git() {
    let sandbox: Sandbox = prepared(&[("/a", "")]);
    done(&sandbox, "plan -o saved");
    fails(&sandbox, "apply saved", 4, "outside of git");
    assert_eq!(acts(&sandbox), [""; 0]);
    let repository = Repository::of(sandbox);
    fails(&repository, "apply saved", 4, "/a");
}
