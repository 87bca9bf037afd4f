//! What was applied of a plan in a file is kept in `.orch/applied`, apart from the journals.

use std::fs;

use super::followed::{LIST, attach};
use super::{acts, declare, done, fails, hook, log, project, unhook, want, with_state};
use crate::support::{Repository, Sandbox, forge_plan, run_ids};

const CHAIN: [(&str, &str); 3] = [
    ("/a", ""),
    ("/b", "after = [\"/a\"]"),
    ("/c", "after = [\"/b\"]"),
];

/// A project without a state whose plan has been applied to `/a` only.
fn begun() -> Repository {
    let repository = project(&CHAIN);
    done(&repository, "plan -o ../saved");
    hook(&repository, "apply", "b", "exit 1");
    fails(&repository, "apply ../saved", 1, "/b");
    unhook(&repository, "apply", "b");
    log(&repository);
    repository
}

/// The path of the only file in `.orch/applied`.
fn file(sandbox: &Sandbox) -> String {
    let entries = fs::read_dir(sandbox.path("/.orch/applied")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    assert_eq!(names.len(), 1, "{names:?}");
    format!("/.orch/applied/{}", names[0])
}

#[test]
fn apply_of_a_finished_plan_does_nothing_without_its_journal() {
    let repository = project(&CHAIN);
    done(&repository, "plan -o ../saved");
    done(&repository, "apply ../saved");
    log(&repository);
    // 50 runs are kept.
    for _ in 0..51 {
        done(&repository, "run -q -X --match a true");
    }
    for flags in ["", " --resume"] {
        let said = done(&repository, &format!("apply ../saved{flags}"));
        assert!(said.contains("nothing to do"), "{said}");
    }
    fs::remove_dir_all(repository.path("/.orch/runs")).unwrap();
    done(&repository, "apply ../saved");
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn apply_resumes_a_plan_whatever_has_become_of_its_journal() {
    for is_removed in [false, true] {
        let repository = begun();
        let run = run_ids(&repository).pop().unwrap();
        if is_removed {
            fs::remove_dir_all(repository.path("/.orch/runs")).unwrap();
        } else {
            let journal = format!("/.orch/runs/{run}/journal.jsonl");
            let text = repository.read(&journal);
            let cut: Vec<&str> = text.lines().map(|line| &line[..line.len() / 2]).collect();
            repository.write(&journal, cut.join("\n") + "\n");
        }
        fails(&repository, "apply ../saved", 4, "add `--resume`");
        assert_eq!(log(&repository), [""; 0]);
        done(&repository, "apply ../saved --resume");
        assert_eq!(acts(&repository), ["apply create b", "apply create c"]);
    }
}

#[test]
fn apply_refuses_a_plan_whose_progress_is_damaged() {
    for repository in [begun(), {
        let repository = with_state(&CHAIN);
        done(&repository, "plan -o ../saved");
        hook(&repository, "apply", "b", "exit 1");
        fails(&repository, "apply ../saved", 1, "/b");
        unhook(&repository, "apply", "b");
        log(&repository);
        repository
    }] {
        let file = file(&repository);
        let whole = repository.read(&file);
        let without_second = || {
            let lines = whole.split_inclusive('\n').enumerate();
            let rest = lines.filter(|(number, _)| *number != 1);
            rest.map(|(_, line)| line).collect::<String>()
        };
        let damages: [&dyn Fn(); 5] = [
            &|| repository.write(&file, without_second()),
            &|| repository.write(&file, ""),
            &|| repository.write(&file, whole.replacen("\"done\"", "\"undone\"", 1)),
            &|| repository.write(&file, whole.replacen("\"format\":2", "\"format\":7", 1)),
            &|| {
                fs::remove_file(repository.path(&file)).unwrap();
                fs::create_dir(repository.path(&file)).unwrap();
            },
        ];
        for damage in damages {
            damage();
            for flags in ["", " --resume"] {
                let apply = format!("apply ../saved{flags}");
                let said = fails(
                    &repository,
                    &apply,
                    4,
                    "the progress of this plan is unknown",
                );
                assert!(said.contains(&file[1..]), "{said}");
                assert!(said.contains("make a new plan"), "{said}");
            }
        }
        assert_eq!(log(&repository), [""; 0]);
    }
}

#[test]
fn apply_leaves_out_a_line_that_was_cut_off() {
    let repository = begun();
    let file = file(&repository);
    let whole = repository.read(&file);
    // A kill while the last line was written.
    repository.write(&file, &whole[..whole.len() - 2]);
    done(&repository, "apply ../saved --resume");
    assert_eq!(acts(&repository), ["apply create b", "apply create c"]);
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn apply_does_nothing_if_its_progress_cannot_be_kept() {
    let repository = project(&CHAIN);
    done(&repository, "plan -o ../saved");
    log(&repository);
    repository.write("/.orch/applied", "");
    fails(
        &repository,
        "apply ../saved",
        4,
        "`.orch/applied` is not a directory",
    );
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn apply_refuses_a_plan_of_an_orch_that_kept_no_progress() {
    let repository = project(&CHAIN);
    done(&repository, "plan -o ../saved");
    log(&repository);
    let saved = fs::read(repository.outside().join("saved")).unwrap();
    let older = forge_plan(&saved, |plan, _| plan["format"] = 1.into());
    fs::write(repository.outside().join("saved"), older).unwrap();
    let said = fails(&repository, "apply ../saved", 4, "was written by orch");
    assert!(said.contains("make a new plan"), "{said}");
    assert_eq!(log(&repository), [""; 0]);
    done(&repository, "show ../saved");
}

#[test]
fn apply_refuses_a_plan_whose_follow_ups_are_unknown() {
    let repository = project(&[("/a", ""), ("/b", "autodeploy = true"), ("/c", "")]);
    done(&repository, "apply --auto-approve");
    attach(&repository, "list", LIST);
    want(&repository, "/a", "2");
    declare(&repository, "/b", "autodeploy = true");
    want(&repository, "/b", "2");
    done(&repository, "plan --match a -o ../saved");
    hook(&repository, "apply", "b", "exit 1");
    fails(&repository, "apply ../saved", 1, "/b");
    unhook(&repository, "apply", "b");
    let run = run_ids(&repository).pop().unwrap();
    fs::remove_dir_all(repository.path(&format!("/.orch/runs/{run}"))).unwrap();
    log(&repository);
    for flags in ["", " --resume"] {
        let apply = format!("apply ../saved{flags}");
        let said = fails(&repository, &apply, 4, "the open follow-ups of this plan");
        assert!(said.contains("`--policies=off`"), "{said}");
    }
    let said = done(&repository, "apply ../saved --policies=off");
    assert!(said.contains("warning: the open follow-ups"), "{said}");
    assert!(said.contains("nothing to do"), "{said}");
    assert_eq!(acts(&repository), [""; 0]);
}
