//! What is recorded with an apply.

use std::fs;

use serde_json::Value;

use super::{
    DOCUMENT, acts, applied, change_document, declare, done, entry, fails, hook, log, unhook, want,
    with_state, world,
};

const CHAIN: [(&str, &str); 2] = [("/a", ""), ("/b", "after = [\"/a\"]")];

#[test]
fn apply_records_its_driver_inputs_and_outputs() {
    let repository = with_state(&CHAIN);
    hook(
        &repository,
        "outputs",
        "a",
        "echo '{\"id\":\"hunter2\",\"port\":80}'; exit",
    );
    done(&repository, "plan -o ../saved");
    done(&repository, "apply ../saved");
    let plan: Value =
        serde_json::from_str(&done(&repository, "show ../saved --format json")).unwrap();
    for (stack, n_outputs) in [("/a", 2), ("/b", 1)] {
        let entry = entry(&repository, stack);
        assert_eq!(entry["driver"], "fake", "{entry}");
        assert_eq!(entry["applied"]["plan"], plan["id"], "{entry}");
        assert_eq!(entry["last"]["action"], "apply", "{entry}");
        assert_eq!(entry["last"]["outcome"], "succeeded", "{entry}");
        assert_eq!(
            entry["outputs"].as_object().unwrap().len(),
            n_outputs,
            "{entry}"
        );
        assert!(entry["applied"]["upstream"].is_string(), "{entry}");
    }
    let upstream = |stack| entry(&repository, stack)["applied"]["upstream"].clone();
    assert_ne!(
        upstream("/a"),
        upstream("/b"),
        "nothing is before one of them"
    );
    let document = repository.read(DOCUMENT);
    assert!(!document.contains("hunter2"), "{document}");
    for file in ["/.orch", "/../log"] {
        let text = all_text(&repository.path(file));
        assert!(!text.contains("hunter2"), "{file}");
    }
    // All of it is as it was recorded.
    log(&repository);
    let plan = done(&repository, "plan");
    assert!(plan.contains("2 unchanged"), "{plan}");
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn state_recover_merges_an_apply_of_new_stacks() {
    let repository = with_state(&CHAIN);
    let command = repository.command("");
    let orch = command.get_program().to_str().unwrap();
    let code =
        "sed -n 's/.*\"code\": *\"\\([^\"]*\\)\".*/\\1/p' \"$ORCH_ROOT/.orch/state/default.json\"";
    // The command takes the lock away from its own run.
    let script = format!("{orch} state unlock --force \"$({code})\" > /dev/null || exit 9\n");
    hook(&repository, "apply", "a", &script);
    fails(
        &repository,
        "apply --auto-approve",
        5,
        "took the state lock",
    );
    unhook(&repository, "apply", "a");
    assert_eq!(entry(&repository, "/a")["last"]["outcome"], "failed");
    done(&repository, "state recover last");
    assert_eq!(entry(&repository, "/a")["last"]["outcome"], "succeeded");
    assert_eq!(entry(&repository, "/b"), Value::Null);
    assert_eq!(acts(&repository), ["apply create a"]);
    // What others have done since is kept.
    hook(&repository, "apply", "b", &script);
    fails(
        &repository,
        "apply --auto-approve",
        5,
        "took the state lock",
    );
    done(&repository, "state taint b");
    fails(&repository, "state recover last", 4, "others have changed");
    done(&repository, "state recover last --take b");
    assert_eq!(entry(&repository, "/b")["last"]["outcome"], "succeeded");
}

/// Returns the text of all files below a place.
fn all_text(place: &std::path::Path) -> String {
    if !place.is_dir() {
        return String::from_utf8_lossy(&fs::read(place).unwrap_or_default()).into_owned();
    }
    let entries = fs::read_dir(place).unwrap();
    entries
        .map(|entry| all_text(&entry.unwrap().path()))
        .collect()
}

#[test]
fn apply_adopts_existing_stacks_without_running() {
    let repository = with_state(&CHAIN);
    for name in ["a", "b"] {
        fs::write(repository.outside().join("world").join(name), "1").unwrap();
    }
    done(&repository, "plan -o ../saved");
    log(&repository);
    let said = done(&repository, "apply ../saved");
    assert!(said.contains("2 stacks recorded"), "{said}");
    assert_eq!(log(&repository), [""; 0]);
    let adopted = entry(&repository, "/a");
    assert_eq!(adopted["driver"], "fake", "{adopted}");
    assert!(adopted["applied"].is_object(), "{adopted}");
    assert!(done(&repository, "plan").contains("2 unchanged"));
}

#[test]
fn apply_records_inputs_that_change_nothing() {
    let repository = applied(&CHAIN);
    repository.write("/a/comment", "");
    repository.commit();
    let before = entry(&repository, "/a")["applied"]["inputs"].clone();
    let plan = done(&repository, "plan -o ../saved");
    assert!(plan.contains("2 unchanged"), "{plan}");
    log(&repository);
    done(&repository, "apply ../saved");
    assert_eq!(log(&repository), [""; 0]);
    assert_ne!(entry(&repository, "/a")["applied"]["inputs"], before);
    done(&repository, "plan");
    assert_eq!(log(&repository), [""; 0], "it is not asked again");
}

#[test]
fn apply_records_changed_declarations() {
    let repository = applied(&[("/a", ""), ("/b", ""), ("/c", "")]);
    change_document(&repository, |document| {
        document["stacks"]["/a"]["tags"] = serde_json::json!(["old"]);
        document["stacks"]["/b"]["after"] = serde_json::json!(["/c"]);
    });
    let is_declared = || {
        let [tags, after] = [("/a", "tags"), ("/b", "after")].map(|(stack, field)| {
            let entry = entry(&repository, stack);
            entry[field].as_array().is_none_or(Vec::is_empty)
        });
        assert_eq!(tags, after);
        tags
    };
    assert!(!is_declared());
    log(&repository);
    // Nobody has to approve that.
    done(&repository, "apply");
    assert!(is_declared());
    assert_eq!(log(&repository), [""; 0]);
    let said = done(&repository, "apply");
    assert!(said.contains("nothing to do"), "{said}");
}

#[test]
fn apply_records_read_only_stacks() {
    let repository = with_state(&[
        ("/a", ""),
        ("/net", "mode = \"read\""),
        ("/web", "after = [\"/net\"]"),
    ]);
    let drivers = repository.read("/drivers.orch.hcl");
    let read = "  read        = [\"sh\", \"${terramate.root.path.fs.absolute}/tool\", \"read\"]\n  may_replace";
    repository.write("/drivers.orch.hcl", drivers.replace("  may_replace", read));
    repository.commit();
    fs::write(repository.outside().join("world/net"), "v1").unwrap();
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), ["apply create a", "apply create web"]);
    let read = entry(&repository, "/net");
    assert_eq!(read["mode"], "read", "{read}");
    assert_eq!(world(&repository, "net").as_deref(), Some("v1"));
    done(&repository, "destroy --auto-approve --allow-destroy=2");
    assert_eq!(
        world(&repository, "net").as_deref(),
        Some("v1"),
        "it belongs to others"
    );
}

#[test]
fn apply_reads_stacks_after_their_dependencies() {
    let repository = with_state(&[
        ("/a", ""),
        ("/net", "mode  = \"read\"\n  after = [\"/a\"]"),
        ("/web", "after = [\"/net\"]"),
    ]);
    let drivers = repository.read("/drivers.orch.hcl");
    let read = "  read        = [\"sh\", \"${terramate.root.path.fs.absolute}/tool\", \"read\"]\n  may_replace";
    repository.write("/drivers.orch.hcl", drivers.replace("  may_replace", read));
    repository.write("/web/uses", "net");
    repository.commit();
    fs::write(repository.outside().join("world/net"), "v1").unwrap();
    // What `/a` does makes others change `/net`.
    hook(&repository, "apply", "a", "printf v2 > $world/net");
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), ["apply create a", "apply create web"]);
    assert_eq!(world(&repository, "web").as_deref(), Some("1:v2"));
    assert_eq!(entry(&repository, "/net")["mode"], "read");
    hook(&repository, "apply", "a", "printf v3 > $world/net");
    want(&repository, "/a", "2");
    done(&repository, "plan -o ../saved");
    done(&repository, "apply ../saved");
    assert_eq!(world(&repository, "web").as_deref(), Some("1:v3"));
}

#[test]
fn apply_does_not_record_a_read_without_answer() {
    let repository = with_state(&[
        ("/a", ""),
        ("/net", "mode  = \"read\"\n  after = [\"/a\"]"),
        ("/web", "after = [\"/net\"]"),
    ]);
    let drivers = repository.read("/drivers.orch.hcl");
    let read = "  read        = [\"sh\", \"${terramate.root.path.fs.absolute}/tool\", \"read\"]\n  may_replace";
    repository.write("/drivers.orch.hcl", drivers.replace("  may_replace", read));
    repository.write("/web/uses", "net");
    repository.commit();
    fs::write(repository.outside().join("world/net"), "v1").unwrap();
    done(&repository, "apply --auto-approve");
    let before = entry(&repository, "/net");
    hook(&repository, "apply", "a", "printf v2 > $world/net");
    want(&repository, "/a", "2");
    done(&repository, "plan -o ../saved");
    let nonsense = "echo nonsense > \"$ORCH_ANSWER\"; exit 0\n";
    hook(&repository, "read", "net", nonsense);
    let said = done(&repository, "apply ../saved");
    assert!(
        said.contains("/net: the answer is not a JSON object"),
        "{said}"
    );
    let after = entry(&repository, "/net");
    assert_eq!(after["applied"]["run"], before["applied"]["run"]);
    assert_eq!(after["outputs"], before["outputs"]);
    // What it may have changed is applied.
    assert_eq!(world(&repository, "web").as_deref(), Some("1:v2"));
}

#[test]
fn apply_keeps_the_applied_record_after_a_failure() {
    let repository = applied(&CHAIN);
    let before = entry(&repository, "/a")["applied"].clone();
    want(&repository, "/a", "2");
    hook(&repository, "apply", "a", "exit 1");
    fails(&repository, "apply --auto-approve", 1, "/a");
    let failed = entry(&repository, "/a");
    assert_eq!(failed["applied"], before);
    assert_eq!(failed["last"]["outcome"], "failed");
    unhook(&repository, "apply", "a");
    let plan = done(&repository, "plan");
    assert!(plan.contains("~ /a  update"), "{plan}");
    done(&repository, "apply --auto-approve");
    assert_eq!(entry(&repository, "/a")["last"]["outcome"], "succeeded");
}

#[test]
fn apply_reports_unreadable_outputs() {
    let repository = with_state(&CHAIN);
    hook(&repository, "outputs", "a", "echo 'no json: hunter2'; exit");
    let output = repository.orch("apply --auto-approve");
    assert_eq!(output.code(), 0, "{output}");
    assert!(output.stderr.contains("warning: /a"), "{output}");
    assert!(!output.stderr.contains("hunter2"), "{output}");
    assert_eq!(world(&repository, "b").as_deref(), Some("1"));
}

#[test]
fn apply_waits_for_the_lock_or_is_refused() {
    let repository = applied(&CHAIN);
    want(&repository, "/a", "2");
    hook(
        &repository,
        "apply",
        "a",
        "cd $ORCH_ROOT; $ORCH -q apply --auto-approve --match b --replace b --allow-destroy=1 > ../inner 2>&1; echo $? >> ../inner",
    );
    let output = repository.orch_with("apply --auto-approve", |command| {
        command.env("ORCH", crate::support::orch_program());
    });
    assert_eq!(output.code(), 0, "{output}");
    let inner = fs::read_to_string(repository.outside().join("inner")).unwrap();
    assert!(inner.ends_with("4\n"), "{inner}");
    assert!(!acts(&repository).contains(&"destroy delete b".to_owned()));
}

#[test]
fn apply_records_new_declarations_of_applied_stacks() {
    let repository = applied(&CHAIN);
    declare(&repository, "/a", "tags = [\"x\"]");
    want(&repository, "/a", "2");
    done(&repository, "apply --auto-approve");
    assert_eq!(entry(&repository, "/a")["tags"], serde_json::json!(["x"]));
}
