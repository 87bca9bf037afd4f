//! `input` blocks: outputs of other stacks as variables of the tools.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::followed::attach;
use super::{
    acts, applied, declare, done, fails, hook, log, prepared, unhook, want, with_state, world,
};
use crate::support::Repository;

const BACKEND: &str = r#"sharing_backend "default" {
  type     = terraform
  filename = "sharing.tf"
  command  = ["sh", "-c", "sh $ORCH_ROOT/tool outputs"]
}
"#;

/// The input of `/app`, with more lines in its block.
fn input(lines: &str) -> String {
    format!(
        "input \"id\" {{\n  backend = \"default\"\n  from_stack_id = \"net\"\n  value = outputs.id\n  {lines}\n}}\n"
    )
}

fn share(repository: &Repository, lines: &str) {
    repository.write("/sharing.tm", BACKEND);
    repository.write("/app/inputs.tm", input(lines));
    repository.commit();
}

/// A project in which `/app` has an input of `/net`, with nothing applied.
fn new(lines: &str) -> Repository {
    let repository = with_state(&[("/net", "id = \"net\""), ("/app", "")]);
    share(&repository, lines);
    repository
}

/// The same with everything applied.
fn made(lines: &str) -> Repository {
    let repository = new(lines);
    done(&repository, "apply --auto-approve");
    log(&repository);
    repository
}

/// Returns all text of the files in a directory.
fn all_text(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            text += &all_text(&entry.path());
        } else {
            text += &String::from_utf8_lossy(&fs::read(entry.path()).unwrap_or_default());
        }
    }
    text
}

#[test]
fn apply_passes_new_outputs_on_as_variables() {
    let repository = made("mock = \"mocked\"");
    assert_eq!(world(&repository, "app").as_deref(), Some("1\"1\""));
    want(&repository, "/net", "2");
    done(&repository, "apply --auto-approve");
    assert_eq!(world(&repository, "app").as_deref(), Some("1\"2\""));
    assert!(done(&repository, "plan").contains("2 unchanged"));
}

/// The outputs are read by a run of its own, which has ended when the signal comes.
#[test]
fn apply_that_reads_outputs_ends_in_order_after_a_signal() {
    let repository = made("");
    want(&repository, "/net", "2");
    // It ends when `orch` passes the signal on.
    let signal = "trap 'exit 1' TERM INT\nkill -TERM $PPID\nwhile [ -d \"$ORCH_ROOT\" ]; do sleep 0.01; done\n";
    hook(&repository, "apply", "app", signal);
    let said = fails(&repository, "apply --auto-approve", 143, "1 succeeded");
    assert!(said.contains("SIGTERM: nothing new starts"), "{said}");
    unhook(&repository, "apply", "app");
    let listed = done(&repository, "state list");
    assert!(listed.contains("failed"), "{listed}");
}

#[test]
fn list_shows_stacks_as_pending_whose_inputs_differ() {
    let repository = made("");
    want(&repository, "/net", "2");
    done(&repository, "apply --auto-approve --match net");
    let why = "input.id differs: an output of /net";
    let plan = done(&repository, "plan");
    assert!(plan.contains(why), "{plan}");
    let listed = done(&repository, "list --changed --base applied --why");
    assert!(
        listed.contains(&format!("app  # pending: {why}")),
        "{listed}"
    );
    done(&repository, "apply --auto-approve");
    let listed = repository.orch("list --changed --base applied");
    assert_eq!(listed.stdout, "", "{listed}");
}

#[test]
fn plan_uses_mocks_only_for_stacks_that_were_never_applied() {
    let repository = new("mock = \"mocked\"");
    hook(
        &repository,
        "plan",
        "app",
        "echo $TF_VAR_id > \"$ORCH_ROOT/../seen\"",
    );
    let plan = done(&repository, "plan");
    assert!(plan.contains("planned with mocks of id"), "{plan}");
    let seen = || fs::read_to_string(repository.outside().join("seen")).unwrap();
    assert_eq!(seen(), "\"mocked\"\n");
    let json = repository.orch("plan --format json");
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["stacks"][0]["mocked_inputs"][0], "id", "{json}");
    done(&repository, "apply --auto-approve");
    assert_eq!(seen(), "\"1\"\n");
    want(&repository, "/app", "2");
    let plan = done(&repository, "plan");
    assert!(!plan.contains("mock"), "{plan}");
    assert_eq!(seen(), "\"1\"\n");
}

#[test]
fn apply_never_uses_a_mock() {
    let repository = new("mock = \"mocked\"");
    let plan = done(&repository, "plan -o ../saved --match app");
    assert!(plan.contains("planned with mocks of id"), "{plan}");
    hook(&repository, "outputs", "net", "exit 1");
    let said = "failed /app: exit status 1";
    fails(&repository, "apply ../saved", 1, said);
    assert_eq!(acts(&repository), [""; 0]);
    unhook(&repository, "outputs", "net");
    hook(&repository, "outputs", "net", "echo {}; exit");
    let said = "the input `id` has no value";
    fails(&repository, "apply ../saved --resume", 1, said);
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn plan_leaves_a_stack_without_a_value_to_the_apply() {
    let repository = new("");
    let plan = done(&repository, "plan");
    let why = "the input `id` has no value: the outputs of `/net` cannot be used: the stack was never applied";
    let row = format!("? /app  known after /net; cannot be planned yet: {why}");
    assert!(plan.contains(&row), "{plan}");
    done(&repository, "apply --auto-approve");
    assert_eq!(world(&repository, "app").as_deref(), Some("1\"1\""));
    // Alone, it cannot be planned.
    let repository = new("");
    fails(&repository, "plan --match app", 1, why);
}

#[test]
fn plan_fails_a_stack_whose_outputs_cannot_be_read() {
    for (script, said) in [
        (
            "echo broken >&2; exit 3",
            "its outputs cannot be read: exit status 3",
        ),
        ("echo '{\"id\": s3cret'; exit", "they are not JSON"),
        ("echo '{\"other\": 1}'; exit", "the input `id` has no value"),
        (
            "head -c 20000000 /dev/zero; exit",
            "they are larger than 16 MiB",
        ),
    ] {
        // A mock is no way around an error.
        let repository = made("mock = \"mocked\"");
        want(&repository, "/app", "2");
        hook(&repository, "outputs", "net", script);
        let output = fails(&repository, "apply --auto-approve", 1, said);
        assert!(!output.contains("s3cret"), "{output}");
        assert_eq!(acts(&repository), [""; 0]);
        assert_eq!(world(&repository, "app").as_deref(), Some("1\"1\""));
    }
}

#[test]
fn apply_reads_outputs_once_for_all_users() {
    let repository = applied(&[
        ("/net", "id = \"net\""),
        ("/app", ""),
        ("/web", "after = [\"/app\"]"),
    ]);
    share(&repository, "");
    repository.write("/web/inputs.tm", input(""));
    want(&repository, "/net", "2");
    done(&repository, "plan -o ../saved");
    let reads = |steps: Vec<String>| steps.iter().filter(|it| *it == "outputs read net").count();
    assert_eq!(reads(log(&repository)), 1);
    done(&repository, "apply ../saved");
    assert_eq!(reads(log(&repository)), 1);
    assert_eq!(world(&repository, "web").as_deref(), Some("1\"2\""));
}

#[test]
fn changed_outputs_make_their_users_pending() {
    let repository = made("");
    want(&repository, "/net", "2");
    done(&repository, "apply --auto-approve --match net");
    let plan = done(&repository, "plan");
    assert!(plan.contains("~ /app"), "{plan}");
    done(&repository, "apply --auto-approve");
    assert_eq!(world(&repository, "app").as_deref(), Some("1\"2\""));
}

#[test]
fn destroy_passes_inputs_on() {
    let repository = made("");
    hook(
        &repository,
        "destroy",
        "app",
        "echo $TF_VAR_id > \"$ORCH_ROOT/../seen\"",
    );
    done(&repository, "destroy --auto-approve --allow-destroy=2");
    let seen = fs::read_to_string(repository.outside().join("seen")).unwrap();
    assert_eq!(seen, "\"1\"\n");
    assert_eq!(
        acts(&repository),
        ["destroy delete app", "destroy delete net"]
    );
}

#[test]
fn inputs_leave_no_value_behind() {
    let repository = new("sensitive = true\n  mock = \"s3cret-mock\"");
    repository.write("/app/want", "x");
    // Its plan shows nothing of the value, as a tool would for a sensitive variable.
    hook(&repository, "plan", "app", "TF_VAR_id=");
    want(&repository, "/net", "s3cret");
    let said = done(&repository, "plan -o ../saved") + &done(&repository, "apply ../saved -v");
    assert!(!said.contains("s3cret\""), "{said}");
    let shown = done(&repository, "runs show") + &done(&repository, "runs logs");
    assert!(!shown.contains("s3cret\""), "{shown}");
    let kept = all_text(&repository.path("/.orch"));
    assert!(
        !kept.contains("\"s3cret") && !kept.contains("s3cret-mock"),
        "{kept}"
    );
}

#[test]
fn plan_refuses_inputs_without_a_source() {
    let repository = Repository::of(prepared(&[("/net", ""), ("/app", "")]));
    share(&repository, "");
    fails(&repository, "plan", 3, "the input `id` comes from no stack");
    declare(&repository, "/net", "id = \"net\"");
    repository.write("/sharing.tm", "");
    repository.commit();
    fails(&repository, "plan", 3, "the input `id` has no backend");
}

#[test]
fn plan_without_a_state_uses_mocks_if_there_are_no_outputs() {
    let repository = Repository::of(prepared(&[("/net", "id = \"net\""), ("/app", "")]));
    share(&repository, "mock = \"mocked\"");
    hook(&repository, "outputs", "net", "echo {}; exit");
    let plan = done(&repository, "plan");
    assert!(plan.contains("planned with mocks of id"), "{plan}");
    hook(&repository, "outputs", "net", "exit 1");
    fails(
        &repository,
        "plan --match app",
        1,
        "its outputs cannot be read",
    );
}

/// A project with an `ignore_changes` for `/app`, with everything applied.
fn ignoring(ignored: &str) -> Repository {
    let repository = new("");
    let other = input("").replace("\"id\"", "\"other\"");
    repository.write("/app/other.tm", other.replace("outputs.id", "1"));
    let rule = format!("lifecycle {{ ignore_changes = [{ignored}] }}");
    declare(&repository, "/app", &rule);
    repository.commit();
    done(&repository, "apply --auto-approve");
    log(&repository);
    repository
}

#[test]
fn ignored_input_does_not_change_its_stack() {
    let repository = ignoring("input.id");
    want(&repository, "/net", "2");
    // In the same apply, and in later ones.
    done(&repository, "apply --auto-approve");
    assert_eq!(world(&repository, "net").as_deref(), Some("2"));
    assert_eq!(acts(&repository), ["apply update net"]);
    let plan = done(&repository, "plan");
    assert!(plan.contains("2 unchanged"), "{plan}");
    let json = repository.orch("plan --format json --full");
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        json["stacks"][0]["reason"]["text"], "ignored: input.id",
        "{json}"
    );
    // Without the rule, it counts.
    declare(&repository, "/app", "");
    let plan = done(&repository, "plan");
    assert!(
        plan.contains("input.id differs: an output of /net"),
        "{plan}"
    );
}

#[test]
fn ignored_input_is_left_out_whatever_else_its_source_has() {
    for value in ["outputs.id", "outputs.zone", "outputs"] {
        let repository = new("");
        hook(
            &repository,
            "outputs",
            "net",
            "printf '{\"area\":\"x\",\"id\":\"%s\",\"zone\":\"y\"}' \"$(cat \"$world/$name\")\"; exit\n",
        );
        let input = input("").replace("outputs.id", value);
        repository.write("/app/inputs.tm", input);
        declare(
            &repository,
            "/app",
            "lifecycle { ignore_changes = [input.id] }",
        );
        repository.commit();
        done(&repository, "apply --auto-approve");
        log(&repository);
        want(&repository, "/net", "2");
        done(&repository, "apply --auto-approve");
        // Where the input does not use it, the changed output counts.
        let is_ignored = value != "outputs.zone";
        let plan = done(&repository, "plan");
        assert!(plan.contains("2 unchanged"), "{value}: {plan}");
        let n_planned = log(&repository)
            .iter()
            .filter(|it| it.as_str() == "plan update app")
            .count();
        assert_eq!(n_planned == 0, is_ignored, "{value}");
    }
}

#[test]
fn other_outputs_count_beside_an_ignored_input() {
    let repository = ignoring("input.other");
    want(&repository, "/net", "2");
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), ["apply update net", "apply update app"]);
}

#[test]
fn jobs_pass_inputs_on() {
    let repository = new("");
    done(&repository, "plan -o saved");
    done(
        &repository,
        "export make saved -o jobs.mk --work-order order.json",
    );
    let order = fs::read(repository.path("/order.json")).unwrap();
    let order: Value = serde_json::from_slice(&order).unwrap();
    for job in order["jobs"].as_array().unwrap() {
        let id = job["id"].as_str().unwrap();
        done(&repository, &format!("job {id} --work-order order.json"));
    }
    done(&repository, "finish --work-order order.json");
    assert_eq!(world(&repository, "app").as_deref(), Some("1\"1\""));
}

#[test]
fn followups_pass_inputs_on() {
    let repository = with_state(&[("/net", "id = \"net\""), ("/app", ""), ("/other", "")]);
    share(&repository, "");
    done(&repository, "apply --auto-approve");
    let policy = r#"
package list
trigger["/app"] { input.run.state == "FINISHED"; input.stack.id == "/other" }
"#;
    attach(&repository, "list", policy);
    want(&repository, "/app", "2");
    want(&repository, "/other", "2");
    done(&repository, "apply --match other --auto-approve");
    assert_eq!(world(&repository, "app").as_deref(), Some("2\"1\""));
}
