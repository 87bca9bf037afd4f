//! Plans in files that destroy what was removed: they hold as long as the removal does.

use std::fs;

use serde_json::{Value, json};

use super::{
    APPROVED, STATE, acts, applied, applied_of, assert_tidy, change_entry, details, done, entry,
    fails, forget_log, hook, keys, prepared, remove, unhook, vanish, want, world,
};
use crate::support::{Repository, forge_plan};

/// `/a`, and `/b` after it, were removed; `/c` is to be updated. The plan is beside the project.
fn saved() -> Repository {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]"), ("/c", "")]);
    remove(&repository, "a b");
    want(&repository, "/c", "2");
    repository.commit();
    done(&repository, "plan -o ../saved --allow-destroy=2");
    assert_tidy(&repository);
    forget_log(&repository);
    repository
}

#[test]
fn removal_refuses_a_file_changed_from_delete_to_forget() {
    let repository = saved();
    let saved = repository.outside().join("saved");
    let bytes = fs::read(&saved).unwrap();
    let forgets = forge_plan(&bytes, |plan, _| {
        for entry in plan["plan"]["entries"].as_array_mut().unwrap() {
            if entry["stack"] == "/a" {
                assert_eq!(entry["action"], "delete", "{entry}");
                entry["action"] = json!("forget");
            }
        }
        let operations = plan["plan"]["operations"].as_array_mut().unwrap();
        operations.retain(|operation| operation["stack"] != "/a");
    });
    fs::write(saved, forgets).unwrap();
    for command in ["show ../saved", "apply ../saved"] {
        let said = fails(&repository, command, 3, "contradicts itself");
        assert!(said.contains("the entry of `/a` says `forget`"), "{said}");
    }
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(keys(&repository), ["/a", "/b", "/c"]);
}

/// Asserts that nothing of the plan is carried out, for a reason.
#[track_caller]
fn is_stale(repository: &Repository, why: &str) {
    for resume in ["", " --resume"] {
        let said = fails(repository, &format!("apply ../saved{resume}"), 4, why);
        assert!(said.contains("nothing was run"), "{said}");
        assert_eq!(acts(repository), [""; 0], "{said}");
        assert_tidy(repository);
    }
}

#[test]
fn removal_from_a_file_destroys_the_shown_stacks() {
    let repository = saved();
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["destroy /b", "destroy /a", "apply /c"]);
    assert_eq!(world(&repository), ["c"]);
    assert_eq!(keys(&repository), ["/c"]);
    assert_tidy(&repository);
    for again in ["apply ../saved", "apply ../saved --resume"] {
        let said = done(&repository, again);
        assert!(said.contains("nothing to do"), "{said}");
    }
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn removal_from_a_file_refuses_a_reverted_removal() {
    let repository = saved();
    repository.git("revert --no-edit HEAD~1");
    is_stale(&repository, "/a: it is in the project again");
    // Also where nobody has committed that.
    let repository = saved();
    repository.git("checkout -q HEAD~2 -- a");
    let lifted = "apply ../saved --disable-safeguards=all";
    fails(&repository, lifted, 4, "/a: it is in the project again");
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn removal_from_a_file_refuses_a_removal_that_head_lacks() {
    let repository = saved();
    repository.git("checkout -q base");
    repository.git("rm -q -r --cached a b");
    fs::remove_dir_all(repository.path("/a")).unwrap();
    fs::remove_dir_all(repository.path("/b")).unwrap();
    let disabled = "apply ../saved --disable-safeguards=all";
    fails(
        &repository,
        disabled,
        4,
        "/a: it must not be destroyed: its deletion is not committed",
    );
    assert_eq!(acts(&repository), [""; 0]);
    assert_tidy(&repository);
}

#[test]
fn removal_from_a_file_refuses_stacks_recorded_since() {
    let repository = saved();
    change_entry(&repository, "/a", |entry| {
        // Somebody has applied it again, where it still is.
        entry["applied"]["at"] = "2030-01-01T00:00:00Z".into();
        entry["last"]["at"] = "2030-01-01T00:00:00Z".into();
    });
    is_stale(&repository, "/a: its record has changed");
}

#[test]
fn removal_from_a_file_accepts_stacks_that_others_destroyed() {
    // By the same plan: on another machine, or in another run.
    let repository = saved();
    let copy = repository.outside().join("copy");
    fs::copy(repository.outside().join("saved"), copy).unwrap();
    done(&repository, "apply ../copy");
    forget_log(&repository);
    let said = done(&repository, "apply ../saved");
    assert!(said.contains("nothing to do"), "{said}");
    // By another plan.
    let repository = saved();
    done(
        &repository,
        "apply --match b --auto-approve --allow-destroy=1",
    );
    forget_log(&repository);
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["destroy /a", "apply /c"]);
    assert_eq!(keys(&repository), ["/c"]);
    // What somebody has removed from the state may still exist.
    let repository = saved();
    done(&repository, "state forget /b");
    is_stale(&repository, "/b: its record has changed");
    assert_eq!(world(&repository), ["a", "b", "c"]);
}

#[test]
fn removal_from_a_file_resumes_after_a_failed_destroy() {
    let repository = saved();
    hook(&repository, "destroy", "a", "exit 1");
    let said = fails(&repository, "apply ../saved", 1, "/a");
    assert!(
        said.contains("`orch apply ../saved --resume` continues"),
        "{said}"
    );
    assert_eq!(acts(&repository), ["destroy /b", "destroy /a", "apply /c"]);
    assert_eq!(keys(&repository), ["/a", "/c"]);
    assert_eq!(entry(&repository, "/a")["last"]["outcome"], "failed");
    assert_tidy(&repository);
    unhook(&repository, "destroy", "a");
    fails(&repository, "apply ../saved", 4, "add `--resume`");
    assert_eq!(acts(&repository), [""; 0]);
    done(&repository, "apply ../saved --resume");
    assert_eq!(acts(&repository), ["destroy /a"]);
    assert_eq!(keys(&repository), ["/c"]);
    assert_tidy(&repository);
}

#[test]
fn removal_from_a_file_resumes_with_the_rest() {
    let repository = saved();
    hook(&repository, "destroy", "b", "exit 1");
    fails(&repository, "apply ../saved", 1, "/b");
    assert_eq!(acts(&repository), ["destroy /b", "apply /c"]);
    unhook(&repository, "destroy", "b");
    done(&repository, "apply ../saved --resume");
    assert_eq!(acts(&repository), ["destroy /b", "destroy /a"]);
    assert_eq!(world(&repository), ["c"]);
    assert_tidy(&repository);
}

#[test]
fn removal_from_a_file_forgets_once() {
    let repository = applied(&[("/a", ""), ("/c", "")]);
    remove(&repository, "a");
    vanish(&repository, "a");
    done(&repository, "plan -o ../saved");
    done(&repository, "apply ../saved");
    assert_eq!(keys(&repository), ["/c"]);
    assert_eq!(acts(&repository), [""; 0]);
    let said = done(&repository, "apply ../saved");
    assert!(said.contains("nothing to do"), "{said}");
}

#[test]
fn removal_from_a_file_works_in_another_clone() {
    let sandbox = prepared(&[("/a", ""), ("/b", "after = [\"/a\"]"), ("/c", "")]);
    let state = STATE.replace(
        "project = \"acme\"\n",
        "project = \"acme\"\n      backend \"local\" {\n        path = \"../shared.json\"\n      }\n",
    );
    sandbox.write("/state.orch.hcl", state);
    let repository = applied_of(sandbox);
    remove(&repository, "a b");
    done(&repository, "plan -o ../saved --allow-destroy=2");
    let place = repository.outside().to_path_buf();
    repository.git_in(&place, "clone -q project elsewhere");
    let output = repository.orch_with("apply ../saved", |orch| {
        orch.current_dir(place.join("elsewhere"));
    });
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(acts(&repository), ["destroy /b", "destroy /a"]);
    let places = details(&repository);
    let there = place.join("elsewhere/.orch/worktrees");
    let there = format!("in={}", there.display());
    let destroyed = places.iter().filter(|it| it.starts_with("destroy"));
    assert!(
        destroyed.clone().all(|it| it.contains(&there)),
        "{places:?}"
    );
    assert_eq!(destroyed.count(), 2);
    assert_eq!(world(&repository), ["c"]);
    // Both know.
    let again = done(&repository, "plan");
    assert!(
        again.contains("Plan: nothing to do. 1 unchanged."),
        "{again}"
    );
}

/// A change of `plan.json`.
type Change = fn(&mut Value);

#[test]
fn removal_from_a_file_refuses_tampering() {
    let repository = saved();
    let cases: [(&str, Change); 6] = [
        ("the entry of `/a` says `delete`, and the mode", |saved| {
            entry_of(saved, "/a")["removed"] = Value::Null;
        }),
        (
            "the entry of `/a` says `delete`, and was not removed",
            |saved| {
                entry_of(saved, "/a")["removed"] = unproven();
            },
        ),
        (
            "the entry of `/c` says `forget`, and is in the project",
            |saved| {
                entry_of(saved, "/c")["action"] = "forget".into();
            },
        ),
        (
            "the entry of `/a` says `update`, and was removed",
            |saved| {
                entry_of(saved, "/a")["action"] = "update".into();
            },
        ),
        (
            "the entry of `/a` says `forget`, and its tool has a plan for what exists",
            |saved| {
                entry_of(saved, "/a")["action"] = "forget".into();
            },
        ),
        (
            "the entry of `/c` says `update`, and was removed",
            |saved| {
                let removed = entry_of(saved, "/a")["removed"].clone();
                entry_of(saved, "/c")["removed"] = removed;
            },
        ),
    ];
    for (said, change) in cases {
        let bytes = fs::read(repository.outside().join("saved")).unwrap();
        let bad = forge_plan(&bytes, |saved, _| change(saved));
        fs::write(repository.outside().join("bad"), bad).unwrap();
        fails(&repository, &format!("apply ../bad {APPROVED}"), 3, said);
        assert_eq!(acts(&repository), [""; 0], "{said}");
    }
    // It is not enough to say that something was removed.
    let bytes = fs::read(repository.outside().join("saved")).unwrap();
    let bad = forge_plan(&bytes, |saved, _| {
        let removed = entry_of(saved, "/a")["removed"].clone();
        let entry = entry_of(saved, "/c");
        entry["removed"] = removed;
        entry["action"] = "delete".into();
        for operation in saved["plan"]["operations"].as_array_mut().unwrap() {
            if operation["stack"] == "/c" {
                operation["destroys"] = true.into();
            }
        }
    });
    fs::write(repository.outside().join("bad"), bad).unwrap();
    fails(
        &repository,
        &format!("apply ../bad {APPROVED}"),
        4,
        "/c: it is in the project again",
    );
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(world(&repository), ["a", "b", "c"]);
}

fn entry_of<'v>(saved: &'v mut Value, path: &str) -> &'v mut Value {
    let entries = saved["plan"]["entries"].as_array_mut().unwrap();
    entries.iter_mut().find(|it| it["stack"] == path).unwrap()
}

/// What an entry says that has no evidence.
fn unproven() -> Value {
    json!("unproven")
}
