//! Plans in files that somebody has changed: what they show must be what they do.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{acts, applied, assert_tidy, declare, done, fails, log, want, world};
use crate::support::{Repository, Sandbox, forge_plan, plan_contents, skipped};

/// A change of `plan.json`, or of an entry in it.
type Change = fn(&mut Value);

/// Writes `/bad`: `/saved` with a change of `plan.json` and of the plans of the tools.
fn tamper(sandbox: &Sandbox, change: impl FnOnce(&mut Value, &mut [Vec<u8>])) {
    let saved = fs::read(sandbox.path("/saved")).unwrap();
    sandbox.write("/bad", forge_plan(&saved, change));
}

/// A project with `/a` to update, `/b` to update after it, and `/c` to update; the plan is in `/saved`.
fn saved(options: &str) -> Repository {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]"), ("/c", "")]);
    repository.write("/.gitignore", "/saved\n/bad\n");
    for stack in ["/a", "/b", "/c"] {
        want(&repository, stack, "2");
    }
    done(&repository, &format!("plan -o saved {options}"));
    log(&repository);
    repository
}

#[test]
fn apply_accepts_a_repacked_plan() {
    let repository = saved("");
    tamper(&repository, |_, _| {});
    done(&repository, "apply bad");
    assert_eq!(
        acts(&repository),
        ["apply update a", "apply update b", "apply update c"]
    );
}

#[test]
fn apply_refuses_a_plan_that_hides_changes() {
    let cases: [(&str, Change); 12] = [
        ("mode", |saved| {
            saved["plan"]["mode"] = "destroy".into();
            for entry in saved["plan"]["entries"].as_array_mut().unwrap() {
                entry["action"] = "no-op".into();
            }
        }),
        ("the inputs of the entry", |saved| {
            saved["stacks"] = json!([]);
        }),
        ("blocked", |saved| {
            saved["plan"]["entries"][0]["blocked"] = "another backend".into();
        }),
        ("blocked", |saved| {
            let entry = &mut saved["plan"]["entries"][0];
            entry["blocked"] = "another backend".into();
            entry["action"] = "no-op".into();
        }),
        ("not in its place", |saved| {
            let entries = saved["plan"]["entries"].as_array_mut().unwrap();
            entries.push(entries[0].clone());
        }),
        ("plan 7", |saved| saved["stacks"][0]["plan"] = 7.into()),
        ("plan 1", |saved| saved["stacks"][0]["plan"] = 1.into()),
        ("out of place", |saved| {
            saved["stacks"].as_array_mut().unwrap().reverse();
        }),
        ("`delete`", |saved| {
            saved["plan"]["entries"][2]["action"] = "delete".into();
        }),
        ("operations", |saved| {
            saved["plan"]["operations"] = json!([]);
        }),
        ("`-destroy`", |saved| saved["extra"] = json!(["--destroy"])),
        ("failed to plan", |saved| {
            saved["plan"]["failed"] = json!([{"stack": "/a", "why": ""}]);
        }),
    ];
    let repository = saved("");
    let before = repository.read(super::DOCUMENT);
    for (said, change) in cases {
        tamper(&repository, |plan, _| change(plan));
        for command in ["show bad", "apply bad --allow-destroy=9"] {
            let output = fails(&repository, command, 3, "contradicts itself");
            assert!(output.contains(said), "{said}: {output}");
        }
        assert_eq!(log(&repository), [""; 0], "{said}");
        assert_eq!(repository.read(super::DOCUMENT), before, "{said}");
    }
    done(&repository, "apply saved");
    assert_eq!(world(&repository, "a").as_deref(), Some("2"));
    assert_tidy(&repository);
}

#[test]
fn apply_refuses_a_destroy_plan_with_other_actions() {
    let repository = saved("--destroy");
    tamper(&repository, |saved, _| {
        saved["plan"]["entries"][1]["action"] = "no-op".into();
        saved["plan"]["entries"][1]["after"]["stacks"] = json!(["/a"]);
    });
    fails(
        &repository,
        "apply bad --allow-destroy=3",
        3,
        "planned later",
    );
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn plan_and_apply_refuse_arguments_that_change_the_plan() {
    let repository = applied(&[("/a", "")]);
    let cases = [
        ("plan -- -destroy", "--destroy"),
        ("plan -- --refresh-only", "--refresh-only"),
        ("plan -- -lock=false -out=x", "-o FILE"),
        ("plan -- -json", "--format json"),
        ("apply --auto-approve -- -destroy", "--destroy"),
        ("destroy --auto-approve -- -out x", "-o FILE"),
    ];
    for (command, instead) in cases {
        fails(&repository, command, 64, instead);
    }
    assert_eq!(log(&repository), [""; 0]);
}

/// A project of real Terraform with a stack, `/net`, that is to be updated; nothing where there is no
/// Terraform.
fn with_terraform() -> Option<Repository> {
    if Command::new("terraform").arg("version").output().is_err() {
        skipped("there is no terraform on the PATH");
        return None;
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n/saved\n/bad\n");
    declare(&sandbox, "/net", "");
    sandbox.write("/net/main.tf", resource(1));
    let repository = Repository::of(sandbox);
    done(&repository, "apply --auto-approve");
    repository.write("/net/main.tf", resource(2));
    repository.commit();
    Some(repository)
}

fn resource(input: u32) -> String {
    format!("resource \"terraform_data\" \"a\" {{\n  input = {input}\n}}\n")
}

/// Returns whether the resource exists with this input.
fn has(repository: &Repository, input: u32) -> bool {
    let state: Value = serde_json::from_str(&repository.read("/net/terraform.tfstate")).unwrap();
    state["resources"][0]["instances"][0]["attributes"]["input"]["value"] == input
}

#[test]
fn apply_refuses_a_replaced_tool_plan() {
    let Some(repository) = with_terraform() else {
        return;
    };
    // Made by hand, by the same tool of the same state.
    let plan_with = |option: &str| {
        let mut terraform = Command::new("terraform");
        let output = terraform
            .args(["plan", "-input=false", "-out=../../made", option])
            .current_dir(repository.path("/net"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        fs::read(repository.outside().join("made")).unwrap()
    };
    let another = "/net: failed: the plan in the file differs from the one that is shown";
    for option in ["-destroy", "-replace=terraform_data.a", "-refresh-only"] {
        let made = plan_with(option);
        // What has begun is not begun again: each time there is a new plan.
        done(&repository, "plan -o saved");
        tamper(&repository, |_, plans| plans[0].clone_from(&made));
        fails(&repository, "apply bad", 1, another);
        assert!(has(&repository, 1), "{option}");
    }
    done(&repository, "plan -o saved");
    done(&repository, "apply saved");
    assert!(has(&repository, 2));
}

#[test]
fn apply_refuses_a_tool_plan_with_hidden_changes() {
    let Some(repository) = with_terraform() else {
        return;
    };
    let another = "/net: failed: the plan in the file differs from the one that is shown";
    let cases: [Change; 3] = [
        |entry| entry["resources"] = json!([]),
        |entry| entry["counts"]["change"] = 0.into(),
        |entry| entry["resources"][0]["address"] = "terraform_data.b".into(),
    ];
    for change in cases {
        done(&repository, "plan -o saved");
        tamper(&repository, |saved, _| {
            change(&mut saved["plan"]["entries"][0]);
        });
        fails(&repository, "apply bad", 1, another);
        assert!(has(&repository, 1));
    }
}

#[test]
fn apply_refuses_a_destroy_plan_that_creates() {
    let Some(repository) = with_terraform() else {
        return;
    };
    let kept = |options: &str| {
        done(&repository, &format!("plan -o saved {options}"));
        let contents = plan_contents(&fs::read(repository.path("/saved")).unwrap());
        let plan: Value = serde_json::from_slice(&contents[0]).unwrap();
        (plan["plan"]["entries"][0].clone(), contents[1].clone())
    };
    let (update, made) = kept("");
    kept("--destroy");
    tamper(&repository, |saved, plans| {
        let entry = &mut saved["plan"]["entries"][0];
        for shown in ["counts", "resources"] {
            entry[shown] = update[shown].clone();
        }
        plans[0] = made;
    });
    let another = "/net (destroy): failed: the plan in the file differs from the one that is shown";
    fails(&repository, "apply bad --allow-destroy=1", 1, another);
    assert!(has(&repository, 1));
    kept("--destroy");
    done(&repository, "apply saved --allow-destroy=1");
    let state = repository.read("/net/terraform.tfstate");
    assert!(!state.contains("terraform_data"), "{state}");
}
