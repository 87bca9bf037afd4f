//! A run that waits for the lock selects anew once it has it.

use std::fs::File;
use std::process;

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{Background, Output, Repository, ended, wait_until};

const FILES: &str = r#"
//- /state.orch.hcl
orch {
  config {
    state {
      project = "acme"
    }
  }
}
//- /a/stack.tm
stack {
}
//- /b/stack.tm
stack {
}
//- /c/stack.tm
stack {
}
"#;

/// A project in which nothing has been applied.
fn project() -> Repository {
    let repository = Repository::new(FILES);
    assert_eq!(repository.orch("state init").code(), 0);
    repository
}

fn document(repository: &Repository) -> Value {
    serde_json::from_str(&repository.read("/.orch/state/default.json")).unwrap()
}

/// Starts a run that holds the lock until the file `/free` exists, and then does more in its first stack.
fn holder<'r>(repository: &'r Repository, flags: &str, ending: &str) -> Background<'r> {
    let script = format!(": > \"$ORCH_ROOT/held\"\nawait free\n{ending}");
    let flags = format!("-q -X --allow-concurrent --record {flags}");
    let holder = Background::run(repository, &flags, &script);
    wait_until("the lock is held", || repository.path("/held").exists());
    holder
}

/// Runs `orch` while another run holds the lock; that one ends as soon as this one waits for it.
fn waiting(repository: &Repository, holder: Background<'_>, flags: &str) -> (Output, Output) {
    let mut command = repository.command(&format!(
        "run -q -X --allow-concurrent --record --lock-timeout 1m {flags} -- sh -c 'echo ${{PWD##*/}} >> ../ran'"
    ));
    let place = |name: &str| repository.outside().join(name);
    command
        .stdout(File::create(place("waiting.out")).unwrap())
        .stderr(File::create(place("waiting.err")).unwrap());
    let mut waiting = command.spawn().unwrap();
    let read = |name: &str| std::fs::read(place(name)).unwrap();
    wait_until("it waits for the lock", || {
        String::from_utf8(read("waiting.err"))
            .unwrap()
            .contains("waiting for the state lock")
    });
    repository.write("/free", "");
    let status = ended(&mut waiting);
    let (stdout, stderr) = (read("waiting.out"), read("waiting.err"));
    let named = regex::bytes::Regex::new("held by [^\n]*").unwrap();
    let stderr = named
        .replace_all(&stderr, &b"held by [holder]"[..])
        .into_owned();
    let waited = repository.output(&process::Output {
        status,
        stdout,
        stderr,
    });
    (waited, holder.end())
}

#[test]
fn state_wait_skips_stacks_applied_meanwhile() {
    let repository = project();
    let holder = holder(&repository, "--match a --match b", "");
    let (waited, held) = waiting(&repository, holder, "--changed --base applied");
    assert_eq!(held.code(), 0, "{held}");
    assert_snapshot!(waited, @"
    [stderr]
    base applied: serial 2 of `.orch/state/default.json`
    note: waiting for the state lock, held by [holder]
    note: another run has changed the state meanwhile: 1 stack is selected now
    ");
    assert_eq!(repository.read("/ran"), "c\n");
    let last = document(&repository)["history"]
        .as_array()
        .unwrap()
        .last()
        .cloned();
    assert_eq!(last.unwrap()["applied"], 1);
    assert_eq!(document(&repository)["lock"], Value::Null);
}

#[test]
fn state_wait_may_leave_nothing_to_do() {
    let repository = project();
    let holder = holder(&repository, "", "");
    let (waited, _) = waiting(&repository, holder, "--changed --base applied");
    assert_snapshot!(waited, @"
    [stderr]
    base applied: serial 2 of `.orch/state/default.json`
    note: waiting for the state lock, held by [holder]
    note: another run has changed the state meanwhile: nothing is left to do
    ");
    assert_eq!(repository.read("/ran"), "");
    assert_eq!(document(&repository)["lock"], Value::Null);
}

#[test]
fn state_wait_with_fail_if_empty_is_refused_and_frees_the_lock() {
    let repository = project();
    let holder = holder(&repository, "", "");
    let flags = "--changed --base applied --fail-if-empty";
    let (waited, _) = waiting(&repository, holder, flags);
    assert_snapshot!(waited, @"
    [stderr]
    base applied: serial 2 of `.orch/state/default.json`
    note: waiting for the state lock, held by [holder]
    note: another run has changed the state meanwhile: nothing is left to do
    error: no stack is selected, and `--fail-if-empty` is given
    [exit status 4]
    ");
    assert_eq!(document(&repository)["lock"], Value::Null);
}

#[test]
fn state_wait_adds_stacks_that_failed_meanwhile() {
    let repository = project();
    assert_eq!(
        repository
            .orch("state adopt --no-verify --match a --match b")
            .code(),
        0
    );
    // `/a` comes last, so the other run has not begun there when this one selects.
    let ending = "[ \"$ORCH_STACK_NAME\" != a ]";
    let holder = holder(&repository, "--reverse --match a --match b", ending);
    let (waited, held) = waiting(&repository, holder, "--changed --base applied");
    assert_eq!(held.code(), 1, "{held}");
    assert_snapshot!(waited, @"
    [stderr]
    base applied: serial 3 of `.orch/state/default.json`
    note: waiting for the state lock, held by [holder]
    note: another run has changed the state meanwhile: 2 stacks are selected now
    ");
    assert_eq!(repository.read("/ran"), "a\nc\n");
}

#[test]
fn state_wait_never_rolls_back_a_reselected_stack() {
    let repository = project();
    assert_eq!(
        repository.orch("state adopt --no-verify --match a").code(),
        0
    );
    repository.write("/a/main.tf", "# later\n");
    repository.commit();
    let holder = holder(&repository, "--reverse --match a --match b", "");
    // What is here now is older; `/a` is still recorded as it is here.
    repository.git("checkout -q HEAD~1");
    let (waited, held) = waiting(&repository, holder, "--changed --base applied");
    assert_eq!(held.code(), 0, "{held}");
    assert_snapshot!(waited, @"
    [stderr]
    base applied: serial 3 of `.orch/state/default.json`
    note: waiting for the state lock, held by [holder]
    note: another run has changed the state meanwhile: 2 stacks are selected now
    error: this run would roll back stack `/a`: HEAD is behind the last applied commit afb2a3d of main
      = help: merge or check out that commit; to revert it, add `--allow-rollback`
    [exit status 4]
    ");
    assert_eq!(repository.read("/ran"), "");
    assert_eq!(document(&repository)["lock"], Value::Null);
}
