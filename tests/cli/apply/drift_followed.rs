//! `--refresh-only` with trigger policies: they see drift, and what they ask for is planned and approved on its own.

use serde_json::{Value, json};

use super::followed::{attach, endings};
use super::tool::{applied, by_hand, recorded, world};
use super::{declare, done};
use crate::policies::command_graph::obeys_the_schema;
use crate::support::{Repository, run_ids};

/// Deploys a stack that has drifted.
const REPAIR: &str = r#"
package repair
import rego.v1
trigger contains input.stack.id if {
    input.run.drift_detection
    input.run.type == "TRACKED"
    some change in input.run.changes
    change.action == "changed"
}
trigger contains "/b" if {
    input.run.drift_detection
    input.run.changes[_].action == "deleted"
}
sample if true
"#;

fn drifted(lines_of_a: &str) -> Repository {
    let repository = applied(&[("/a", lines_of_a), ("/b", ""), ("/c", "")]);
    attach(&repository, "repair", REPAIR);
    repository.commit();
    by_hand(&repository, "a", Some("by hand\n"));
    repository
}

/// The inputs that the newest run has kept, by turn.
fn kept(repository: &Repository) -> Vec<Value> {
    let run = run_ids(repository).pop().unwrap();
    let folder = repository.path(&format!("/.orch/runs/{run}/samples"));
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let texts = files.iter().map(|file| std::fs::read(file).unwrap());
    texts
        .map(|text| serde_json::from_slice(&text).unwrap())
        .collect()
}

#[test]
fn plan_refresh_only_evaluates_policies_with_drift_detection() {
    let repository = drifted("");
    let plan = repository.orch("plan --refresh-only --format json").json();
    assert_eq!(
        plan["followups"],
        json!({
            "turns": [{"path": "/a", "policies": ["repair"], "after": "/a", "autodeploy": false, "problem": null}],
            "problems": [],
            "uncertain": ["/a"],
        })
    );
    let off = "plan --refresh-only --policies=off --format json";
    assert_eq!(repository.orch(off).json()["followups"], Value::Null);
    // Without drift, nothing is evaluated; and a plan that deploys is no drift run.
    let none = "plan --refresh-only --match c --format json";
    let turns = |arguments: &str| repository.orch(arguments).json()["followups"]["turns"].clone();
    assert_eq!(turns(none), json!([]));
    assert_eq!(turns("plan --full --match a --format json"), json!([]));
}

#[test]
fn apply_refresh_only_approves_drift_but_no_followup() {
    let repository = drifted("");
    let said = done(&repository, "apply --refresh-only --auto-approve");
    assert_eq!(endings(&repository), ["/a succeeded", "/a.2 unconfirmed"]);
    for what in ["real", "known"] {
        assert_eq!(world(&repository, "a", what).unwrap(), "by hand\n");
    }
    assert!(said.contains("1 follow-up waits for approval"), "{said}");
    let ids = run_ids(&repository).into_iter();
    let folders = ids.map(|id| format!(".orch/runs/{id}/followup.plan"));
    let mut plans = folders.filter(|file| repository.path(&format!("/{file}")).exists());
    done(&repository, &format!("apply {}", plans.next().unwrap()));
    assert_eq!(world(&repository, "a", "real").unwrap(), "# 1\n");
}

#[test]
fn apply_refresh_only_deploys_what_is_applied_automatically() {
    let repository = drifted("autodeploy = true");
    // The turn that accepts drift is not the deployment that a policy asks for.
    declare(&repository, "/b", "autodeploy = true\nafter = [\"/c\"]");
    repository.commit();
    by_hand(&repository, "b", Some("by hand\n"));
    by_hand(&repository, "c", None);
    done(&repository, "plan --refresh-only -o ../saved");
    done(&repository, "apply ../saved");
    let mut ended = endings(&repository);
    ended.sort();
    let expected = [
        "/a succeeded",
        "/a.2 succeeded",
        "/b succeeded",
        "/b.2 succeeded",
        "/c succeeded",
    ];
    assert_eq!(ended, expected);
    for stack in ["a", "b"] {
        assert_eq!(world(&repository, stack, "real").unwrap(), "# 1\n");
        assert_eq!(
            recorded(&repository, &format!("/{stack}"))["refreshed"],
            Value::Null
        );
    }
    let inputs = kept(&repository);
    inputs.iter().for_each(obeys_the_schema);
    let of_a: Vec<_> = inputs
        .iter()
        .filter(|input| input["stack"]["id"] == "/a")
        .map(|input| {
            let run = &input["run"];
            let changes = run["changes"].as_array().unwrap().iter();
            let changes = changes.map(|it| json!([it["action"], it["phase"]]));
            json!([
                run["type"],
                run["drift_detection"],
                changes.collect::<Vec<_>>()
            ])
        })
        .collect();
    let both = json!([["changed", "plan"], ["changed", "apply"]]);
    // What follows drift deploys.
    let expected = [
        json!(["TRACKED", true, both]),
        json!(["TRACKED", false, both]),
    ];
    assert_eq!(of_a, expected);
}

#[test]
fn refresh_that_fails_is_no_success_because_a_policy_deploys_its_stack() {
    let repository = drifted("autodeploy = true");
    let policy = "package repair\nimport rego.v1\ntrigger contains \"/a\" if {\n    input.run.state == \"FAILED\"\n    input.run.drift_detection\n}\n";
    repository.write("/policies/repair.rego", policy);
    repository.commit();
    done(&repository, "plan --refresh-only -o ../saved");
    let once = "[ -e ../../failed ] || { touch ../../failed; exit 1; }";
    super::hook(&repository, "apply", "a", once);
    let output = repository.orch("apply ../saved");
    assert_eq!(output.code(), 1, "{output}");
    assert_eq!(endings(&repository), ["/a failed", "/a.2 succeeded"]);
}
