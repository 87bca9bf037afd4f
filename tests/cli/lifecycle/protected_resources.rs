//! `prevent_resource_destroy`: protected resources are neither destroyed nor replaced, whatever the cause; and
//! `prevent_destroy` where an update would leave nothing.

use insta::assert_snapshot;

use crate::removals::{
    APPROVED, STATE, acts, applied, declare, done, entry, fails, forget_log, head, hook, planned,
    remove, unhook, want, world,
};
use crate::support::{Repository, Sandbox, skipped};

const RULE: &str = "lifecycle {\n    prevent_resource_destroy = [\"terraform_data.main\", \"module.data.**\"]\n  }";

/// A resource; `more` are lines of its block.
fn resource(name: &str, more: &str) -> String {
    format!("resource \"terraform_data\" \"{name}\" {{\n{more}\n}}\n")
}

fn moved(from: &str, to: &str) -> String {
    format!("moved {{\n  from = terraform_data.{from}\n  to = terraform_data.{to}\n}}\n")
}

/// An applied project of Terraform with a stack `/db` that has these lines and resources; nothing where there is no
/// Terraform.
fn terraform(lines: &str, resources: &[String]) -> Option<Repository> {
    let version = std::process::Command::new("terraform")
        .arg("version")
        .output();
    if version.is_err() {
        skipped("there is no terraform on the PATH");
        return None;
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", ".terraform*\n*.tfstate*\n");
    declare(&sandbox, "/db", lines);
    sandbox.write("/db/main.tf", resources.concat());
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    done(&repository, "apply --auto-approve");
    Some(repository)
}

/// Commits what the stack `/db` consists of.
fn change(repository: &Repository, resources: &[String]) {
    repository.write("/db/main.tf", resources.concat());
    repository.commit();
}

#[test]
fn plan_refuses_to_replace_a_resource_that_was_protected_by_its_previous_address() {
    let trigger = |number: u8| format!("triggers_replace = {number}");
    let Some(repository) = terraform(RULE, &[resource("main", &trigger(1))]) else {
        return;
    };
    let renamed = resource("renamed", &trigger(2));
    change(&repository, &[renamed, moved("main", "renamed")]);
    let refused = fails(&repository, "plan", 4, "a protected resource of `/db`");
    assert!(refused.contains("terraform_data.renamed"), "{refused}");
}

#[test]
fn apply_carries_out_moves_and_imports() {
    let Some(repository) = terraform("", &[resource("a", "")]) else {
        return;
    };
    let blocks = ["b", "c"].map(|name| resource(name, ""));
    let import = "import {\n  to = terraform_data.c\n  id = \"c\"\n}\n".to_owned();
    let [b, c] = blocks.clone();
    change(&repository, &[b, c, moved("a", "b"), import]);
    let plan = done(&repository, "plan");
    for said in [
        "> terraform_data.b (moved from terraform_data.a)",
        "= terraform_data.c",
        "Resources: 1 to import, 1 to move.",
    ] {
        assert!(plan.contains(said), "{plan}");
    }
    done(&repository, "apply --auto-approve");
    change(&repository, &blocks);
    done(&repository, "plan --detailed-exitcode");
    // An import with other changes counts as both.
    let import = "import {\n  to = terraform_data.d\n  id = \"d\"\n}\n".to_owned();
    change(&repository, &[resource("d", "input = 1"), import]);
    let plan = repository.orch("plan --match db").stdout;
    assert!(plan.contains("~ terraform_data.d (imported)"), "{plan}");
    assert!(
        plan.contains("1 to change, 2 to destroy, 1 to import."),
        "{plan}"
    );
}

#[test]
fn plan_refuses_to_destroy_or_replace_protected_resources() {
    let keyed = "for_each = toset([\"eu.west\"])";
    let all = [
        resource("main", keyed),
        resource("other", ""),
        "module \"data\" {\n  source = \"./data\"\n}\n".to_owned(),
    ];
    let Some(repository) = terraform(RULE, &all[..2]) else {
        return;
    };
    repository.write("/db/data/main.tf", resource("x", ""));
    change(&repository, &all);
    done(&repository, "apply --auto-approve");
    // Others may go.
    change(&repository, &[all[0].clone(), all[2].clone()]);
    done(&repository, "apply --auto-approve --allow-resource-destroy");
    // Neither a flag nor a file approves a protected one.
    let replaced = format!("{keyed}\ntriggers_replace = 2");
    change(&repository, &[resource("main", &replaced)]);
    for command in [
        "plan",
        "plan -o ../saved",
        "apply",
        "apply --auto-approve --allow-resource-destroy",
    ] {
        let said = "error: the plan would destroy 2 protected resources of `/db`";
        fails(&repository, command, 4, said);
    }
    assert_snapshot!(repository.orch("plan"), @r#"
    [stderr]
    error: the plan would destroy 2 protected resources of `/db`
      = note: `terraform_data.main["eu.west"]`, `module.data.terraform_data.x`
      = note: db/main.tf differs; protected by db/stack.orch.hcl:3
      = help: first commit a `prevent_resource_destroy` that does not match them; `--skip-protected` plans the rest

    [exit status 4]
    "#);
    assert_eq!(
        planned(&repository, "--skip-protected"),
        ["/db blocked: protected by db/stack.orch.hcl:3"]
    );
    // The cause does not matter.
    change(&repository, &[all[0].clone(), all[2].clone()]);
    for command in [
        "plan --replace /db",
        "plan --destroy",
        &format!("destroy {APPROVED} --allow-resource-destroy"),
        "run -- terraform destroy -auto-approve",
        "run -- terraform apply -destroy -auto-approve",
    ] {
        fails(&repository, command, 4, "protected by db/stack.orch.hcl:3");
    }
    let state = repository.read("/db/terraform.tfstate");
    assert!(state.contains("eu.west"), "{state}");
}

#[test]
fn plan_refuses_to_destroy_resources_that_the_record_protects() {
    let Some(repository) = terraform(RULE, &[resource("main", "")]) else {
        return;
    };
    let rule = entry(&repository, "/db")["lifecycle"]["prevent_resource_destroy"].clone();
    assert_eq!(rule["value"][1], "module.data.**");
    assert_eq!(rule["line"], 3);
    assert_eq!(rule["commit"], head(&repository));
    remove(&repository, "db");
    let said = "error: the plan would destroy a protected resource of `/db`";
    let said = fails(&repository, &format!("apply {APPROVED}"), 4, said);
    assert!(said.contains("`terraform_data.main`"), "{said}");
    assert!(
        said.contains("db/stack.orch.hcl:3, recorded from"),
        "{said}"
    );
    let block = |rule: &str| {
        format!("removed {{\n  from = \"/db\"\n  lifecycle {{\n    {rule}\n  }}\n}}\n")
    };
    repository.write("/gone.orch.hcl", block("prevent_destroy = false"));
    repository.commit();
    fails(&repository, "plan", 4, "a protected resource of `/db`");
    repository.write(
        "/gone.orch.hcl",
        block("prevent_resource_destroy = [\"terraform_data.other\"]"),
    );
    repository.commit();
    done(&repository, &format!("apply {APPROVED}"));
}

#[test]
fn plan_refuses_until_a_narrower_rule_is_committed() {
    let Some(repository) = terraform(RULE, &[resource("main", ""), resource("other", "")]) else {
        return;
    };
    change(&repository, &[resource("other", "")]);
    repository.write(
        "/db/stack.orch.hcl",
        RULE.replace("\"terraform_data.main\", ", "")
            .replace("lifecycle", "stack {\n  lifecycle")
            + "\n}\n",
    );
    let said = fails(&repository, "plan", 4, "a protected resource of `/db`");
    assert!(said.contains("db/stack.orch.hcl:3 in HEAD"), "{said}");
    repository.commit();
    done(&repository, "apply --auto-approve --allow-resource-destroy");
}

#[test]
fn apply_of_a_file_refuses_what_a_later_rule_protects() {
    let Some(repository) = terraform("", &[resource("main", ""), resource("other", "")]) else {
        return;
    };
    change(&repository, &[resource("main", "")]);
    done(&repository, "plan -o ../saved");
    let rule = "orch {\n  config {\n    lifecycle {\n      prevent_resource_destroy = true\n    }\n  }\n}\n";
    repository.write("/config.orch.hcl", rule);
    repository.commit();
    let said = "error: the plan would destroy a protected resource of `/db`";
    let said = fails(&repository, "apply ../saved", 4, said);
    assert!(said.contains("`terraform_data.other`"), "{said}");
    assert!(said.contains("protected by config.orch.hcl:4"), "{said}");
}

#[test]
fn apply_refuses_to_replace_protected_resources_that_turn_up_only_then() {
    let net = |value: &str| {
        format!(
            "{}output \"x\" {{\n  value = terraform_data.a.output\n}}\n",
            resource("a", &format!("input = \"{value}\""))
        )
    };
    let reader = "data \"terraform_remote_state\" \"net\" {\n  backend = \"local\"\n  config = {\n    path = \"../net/terraform.tfstate\"\n  }\n}\n".to_owned();
    let follows = |name: &str| {
        resource(
            name,
            "triggers_replace = data.terraform_remote_state.net.outputs.x",
        )
    };
    let Some(repository) = terraform(RULE, &[]) else {
        return;
    };
    repository.write("/net/stack.orch.hcl", "stack {\n}\n");
    repository.write("/net/main.tf", net("1"));
    repository.commit();
    done(&repository, "apply --auto-approve");
    declare(&repository, "/db", &format!("after = [\"/net\"]\n  {RULE}"));
    change(&repository, &[reader, follows("main")]);
    done(&repository, "apply --auto-approve");
    repository.write("/net/main.tf", net("2"));
    repository.commit();
    let said = "/db: failed: would destroy a protected resource of it (`terraform_data.main`); protected by db/stack.orch.hcl:4";
    let command = "apply --auto-approve --allow-resource-destroy --new-changes=apply";
    fails(&repository, command, 1, said);
}

#[test]
fn plan_refuses_to_destroy_resources_of_drivers_that_do_not_name_them() {
    let rule = |value: &str| format!("lifecycle {{\n    prevent_resource_destroy = {value}\n  }}");
    let repository = applied(&[("/db", &rule("[\"a.b\"]")), ("/all", &rule("true"))]);
    let removes = |n: u32| format!("echo '{{\"change\":1,\"remove\":{n}}}' > $ORCH_ANSWER; exit 2");
    for name in ["db", "all"] {
        want(&repository, &format!("/{name}"), "2");
        hook(&repository, "plan", name, &removes(2));
    }
    repository.commit();
    forget_log(&repository);
    let said = fails(
        &repository,
        "apply --auto-approve --allow-resource-destroy",
        4,
        "error: the plan would destroy 2 resources of `/all`, which are protected",
    );
    let also = "error: the plan would destroy 2 resources of `/db`, some of which may be protected";
    assert!(said.contains(also), "{said}");
    let fix = "commit `prevent_resource_destroy = false` for it first";
    assert!(said.contains(fix), "{said}");
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(
        planned(&repository, "--skip-protected"),
        [
            "/all blocked: protected by all/stack.orch.hcl:3",
            "/db blocked: protected by db/stack.orch.hcl:3"
        ]
    );
    for name in ["db", "all"] {
        hook(&repository, "plan", name, &removes(0));
    }
    done(&repository, "plan");
    // Nobody says what goes with the stack.
    for name in ["db", "all"] {
        unhook(&repository, "plan", name);
    }
    remove(&repository, "db");
    let said = "1 resource of `/db`, which may be protected";
    fails(&repository, "plan", 4, said);
    let said = "1 resource of `/all`, which is protected";
    fails(&repository, "plan --replace /all", 4, said);
    assert_eq!(world(&repository), ["all", "db"]);
}

#[test]
fn plan_notes_updates_that_prevent_resource_destroy_does_not_cover() {
    let rule = "driver = \"unasked\"\n  lifecycle {\n    prevent_resource_destroy = true\n  }";
    let repository = applied(&[("/db", rule)]);
    want(&repository, "/db", "2");
    let said = done(&repository, "plan");
    assert!(
        said.contains("note: `prevent_resource_destroy` doesn't cover the update of `/db`"),
        "{said}"
    );
    let said = "the plan would destroy resources of `/db`, which are protected";
    fails(&repository, "plan --destroy", 4, said);
}

#[test]
fn prevent_destroy_refuses_an_update_that_leaves_nothing() {
    let rule = "lifecycle {\n    prevent_destroy = true\n  }";
    let read = "data \"terraform_remote_state\" \"x\" {\n  backend = \"local\"\n  config = {\n    path = \"x.tfstate\"\n  }\n}\n";
    let all = [resource("a", ""), resource("b", "")];
    let Some(repository) = terraform(rule, &all) else {
        return;
    };
    repository.write(
        "/db/x.tfstate",
        "{\"version\":4,\"serial\":1,\"lineage\":\"x\",\"outputs\":{},\"resources\":[]}",
    );
    // What reads only does not count.
    change(&repository, &[read.to_owned()]);
    let said = "error: the plan would destroy all resources of `/db`, which is protected";
    let command = "apply --auto-approve --allow-resource-destroy";
    fails(&repository, command, 4, said);
    for left in [resource("a", ""), resource("c", "")] {
        change(&repository, &[left]);
        done(&repository, "plan");
    }
    // A renamed resource leaves a new one.
    done(&repository, command);
    let state = repository.read("/db/terraform.tfstate");
    assert!(state.contains("\"c\""), "{state}");
}

/// A project with a stack that has this rule.
fn ruled(value: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let rule =
        format!("stack {{\n  lifecycle {{\n    prevent_resource_destroy = {value}\n  }}\n}}\n");
    sandbox.write("/prod/app/stack.orch.hcl", rule);
    sandbox
}

#[test]
fn prevent_resource_destroy_is_inherited_and_shown_with_its_place() {
    let sandbox = ruled("null");
    sandbox.write("/prod/config.orch.hcl", "orch {\n  config {\n    lifecycle {\n      prevent_resource_destroy = [\"a.*\", \"module.b.**\"]\n    }\n  }\n}\n");
    let text = sandbox.orch("why /prod/app").stdout;
    let rule = "prevent_resource_destroy: a.*, module.b.**, prod/config.orch.hcl:4";
    assert!(text.contains(rule), "{text}");
    let json = sandbox.orch("list --format json").json();
    let rule = &json["stacks"][0]["lifecycle"]["prevent_resource_destroy"];
    assert_snapshot!(rule, @r#"{"file":"prod/config.orch.hcl","line":4,"value":["a.*","module.b.**"]}"#);
    let text = ruled("true").orch("why /prod/app").stdout;
    let rule = "prevent_resource_destroy = true, prod/app/stack.orch.hcl:3";
    assert!(text.contains(rule), "{text}");
}

#[test]
fn prevent_resource_destroy_refuses_what_protects_nothing() {
    let refused = |value: &str| {
        let output = ruled(value).orch("list");
        assert_eq!(output.code(), 3, "{output}");
        output.stderr
    };
    assert_snapshot!(refused("[\"a.b\", \"aws_db_instance\"]") + &refused("[1]") + &refused("\"a.b\""), @r#"
    error: `aws_db_instance` in `prevent_resource_destroy` cannot match any resource
     --> prod/app/stack.orch.hcl:3:32
      |
    3 |     prevent_resource_destroy = ["a.b", "aws_db_instance"]
      |                                ^^^^^^^^^^^^^^^^^^^^^^^^^^ a name is missing
      |
      = help: an address is a type and a name, below its modules: `aws_db_instance.*`, `module.data.**`, `**.aws_db_instance.*`

    error: `prevent_resource_destroy` must be `true`, `false` or a list of globs
     --> prod/app/stack.orch.hcl:3:32
      |
    3 |     prevent_resource_destroy = [1]
      |                                ^^^ an element is a number
      |
      = help: write `prevent_resource_destroy = ["aws_db_instance.*"]`

    error: `prevent_resource_destroy` must be `true`, `false` or a list of globs
     --> prod/app/stack.orch.hcl:3:32
      |
    3 |     prevent_resource_destroy = "a.b"
      |                                ^^^^^ this is a string
      |
      = help: write `prevent_resource_destroy = ["aws_db_instance.*"]`
    "#);
}
