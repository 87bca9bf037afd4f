//! `prevent_destroy`: what is protected is not destroyed, whoever tries.

use insta::assert_snapshot;

use crate::removals::{
    APPROVED, acts, applied, applied_of, change_entry, declare, done, entry, fails, forget_log,
    head, keys, planned, prepared, remove, want, world,
};
use crate::support::{Repository, Sandbox};

const PROTECTED: &str = "lifecycle {\n    prevent_destroy = true\n  }";
const LIFTED: &str = "lifecycle {\n    prevent_destroy = false\n  }";

/// A configuration file with these rules for the stacks at and below its directory.
fn config(rules: &str) -> String {
    format!("orch {{\n  config {{\n    lifecycle {{\n      {rules}\n    }}\n  }}\n}}\n")
}

/// Changes the rules of a stack, and commits that.
fn redeclare(repository: &Repository, path: &str, lines: &str) {
    declare(repository, path, lines);
    repository.commit();
}

#[test]
fn prevent_destroy_outlives_the_removal_of_its_stack() {
    let repository = applied(&[("/db", PROTECTED), ("/app", "after = [\"/db\"]")]);
    let of_rule = head(&repository)[..7].to_owned();
    let rule = entry(&repository, "/db")["lifecycle"]["prevent_destroy"].clone();
    assert_eq!(rule["value"], true);
    assert_eq!(rule["file"], "db/stack.orch.hcl");
    assert_eq!(rule["line"], 3);
    assert_eq!(rule["commit"], head(&repository));
    let removed = remove(&repository, "db app");
    for command in [
        "plan".to_owned(),
        "plan -o plan.file".to_owned(),
        "plan --format json".to_owned(),
        format!("apply {APPROVED}"),
        format!("destroy {APPROVED}"),
        format!("apply {APPROVED} --allow-rollback --full -X"),
    ] {
        let output = repository.orch(&command);
        assert_eq!(output.code(), 4, "{command}: {output}");
        assert!(
            output
                .stderr
                .contains("error: the plan would destroy `/db`, which is protected"),
            "{output}"
        );
        assert_eq!(output.stdout, "", "{command}");
    }
    assert!(!repository.path("/plan.file").exists());
    let told = fails(&repository, "plan", 4, "protected");
    let told = told
        .replace(&of_rule, "OF_RULE")
        .replace(&removed, "REMOVED");
    assert_snapshot!(told, @"
    [stderr]
    error: the plan would destroy `/db`, which is protected
      = note: removed in REMOVED; protected by db/stack.orch.hcl:3, recorded from OF_RULE
      = help: apply `prevent_destroy = false` first, or set it in a `removed` block; `--skip-protected` plans the rest

    [exit status 4]
    ");
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(world(&repository), ["app", "db"]);
    assert_eq!(keys(&repository), ["/app", "/db"]);
}

#[test]
fn why_shows_that_a_removed_stack_is_protected() {
    let repository = applied(&[
        ("/db", PROTECTED),
        ("/net", ""),
        ("/app", "after = [\"/db\"]"),
        (
            "/all",
            "lifecycle {\n    prevent_resource_destroy = true\n  }",
        ),
    ]);
    let of_all = head(&repository)[..7].to_owned();
    declare(
        &repository,
        "/db",
        &format!("{PROTECTED}\n  after = [\"/net\"]"),
    );
    repository.commit();
    done(&repository, "apply --auto-approve");
    let of_rule = head(&repository)[..7].to_owned();
    remove(&repository, "db net app all");
    let told = |stack: &str| {
        let why = done(&repository, &format!("why {stack}"));
        let lines = why.lines().skip_while(|line| !line.starts_with("status"));
        let lines = lines.skip(1).collect::<Vec<&str>>();
        lines
            .join("\n")
            .replace(&of_rule, "OF_RULE")
            .replace(&of_all, "OF_ALL")
    };
    assert_snapshot!(told("/db"), @"
    blocked  protected by db/stack.orch.hcl:3, recorded from OF_RULE
    fix      apply `prevent_destroy = false` first, or set it in a `removed` block
    ");
    // It requires the stacks that it runs after.
    assert_snapshot!(told("/net"), @"
    blocked  /db runs after it, and is kept
    fix      `orch why /db` shows why that stack is kept
    used by  /db, which is kept
    ");
    assert_snapshot!(told("/app"), @"plan     destroyed");
    assert_snapshot!(told("/all"), @"
    blocked  its resources may be protected by all/stack.orch.hcl:3, recorded from OF_ALL
    fix      apply `prevent_resource_destroy = false` first, or set it in a `removed` block
    ");
    let json = repository.orch("why /db --format json").json();
    let missing = &json["missing"][0];
    assert_eq!(missing["actions"], serde_json::json!(["no-op"]));
    assert_eq!(missing["order"], serde_json::json!([]));
    // A plan keeps the same stacks.
    let mut planned = planned(&repository, "--skip-protected");
    planned.retain(|row| !row.contains(" blocked: "));
    assert_eq!(planned, ["/app delete"]);
}

#[test]
fn prevent_destroy_names_all_protected_stacks() {
    let repository = applied(&[("/a", PROTECTED), ("/b", PROTECTED), ("/c", "")]);
    remove(&repository, "a b c");
    let output = repository.orch("plan");
    assert_eq!(output.code(), 4);
    let errors = output
        .stderr
        .lines()
        .filter(|line| line.starts_with("error:"));
    let errors: Vec<&str> = errors.collect();
    assert_eq!(
        errors,
        [
            "error: the plan would destroy `/a`, which is protected",
            "error: the plan would destroy `/b`, which is protected"
        ]
    );
}

#[test]
fn prevent_destroy_groups_stacks_by_rule() {
    let stacks = (0..30).map(|n| format!("/prod/s{n:02}"));
    let stacks: Vec<String> = stacks.collect();
    let stacks: Vec<(&str, &str)> = stacks.iter().map(|path| (path.as_str(), "")).collect();
    let sandbox = prepared(&stacks);
    sandbox.write("/prod/config.orch.hcl", config("prevent_destroy = true"));
    let repository = applied_of(sandbox);
    let output = repository.orch("destroy --auto-approve --match 'prod/{s00,s01,s02}'");
    assert_snapshot!(output, @"
    [stderr]
    error: the plan would destroy 3 protected stacks
      = note: `/prod/s00`, `/prod/s01`, `/prod/s02`
      = note: --destroy; protected by prod/config.orch.hcl:4
      = help: commit `prevent_destroy = false` for them first; `--skip-protected` plans the rest

    [exit status 4]
    ");
    let output = repository.orch("destroy --auto-approve");
    assert_eq!(output.stderr.matches("error:").count(), 1, "{output}");
    assert!(
        output.stderr.contains("`/prod/s19` and 10 more"),
        "{output}"
    );
}

#[test]
fn prevent_destroy_outlives_its_directory() {
    let sandbox = prepared(&[("/prod/db", ""), ("/dev/db", "")]);
    sandbox.write("/prod/config.orch.hcl", config("prevent_destroy = true"));
    let repository = applied_of(sandbox);
    remove(&repository, "prod dev");
    let told = fails(&repository, "plan", 4, "`/prod/db`, which is protected");
    assert!(
        told.contains("protected by prod/config.orch.hcl:4, recorded from "),
        "{told}"
    );
    assert!(!told.contains("/dev/db"), "{told}");
}

#[test]
fn prevent_destroy_is_recorded_without_a_command() {
    let sandbox = prepared(&[("/prod/db", "")]);
    let repository = applied_of(sandbox);
    assert_eq!(
        entry(&repository, "/prod/db")["lifecycle"],
        serde_json::Value::Null
    );
    repository.write("/prod/config.orch.hcl", config("prevent_destroy = true"));
    repository.commit();
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), [""; 0]);
    let rule = entry(&repository, "/prod/db")["lifecycle"]["prevent_destroy"].clone();
    assert_eq!(rule["value"], true);
    assert_eq!(rule["commit"], head(&repository));
    remove(&repository, "prod");
    fails(&repository, "plan", 4, "`/prod/db`, which is protected");
}

#[test]
fn run_records_the_rules() {
    let repository = Repository::of(prepared(&[("/db", PROTECTED)]));
    done(&repository, "state init");
    done(&repository, "run --record=apply -- true");
    let rule = entry(&repository, "/db")["lifecycle"]["prevent_destroy"].clone();
    assert_eq!(rule["value"], true);
    assert_eq!(rule["commit"], head(&repository));
}

#[test]
fn prevent_destroy_refuses_destroy_and_replace() {
    let repository = applied(&[("/db", PROTECTED), ("/app", "")]);
    for command in [
        "plan --destroy",
        "plan --replace /db",
        &format!("destroy {APPROVED}"),
        &format!("destroy {APPROVED} --match db -X"),
        &format!("apply {APPROVED} --replace /db"),
    ] {
        let told = fails(
            &repository,
            command,
            4,
            "error: the plan would destroy `/db`, which is protected",
        );
        assert!(told.contains("protected by db/stack.orch.hcl:3"), "{told}");
    }
    assert_snapshot!(fails(&repository, "plan --replace /db", 4, "protected"), @"
    [stderr]
    error: the plan would destroy `/db`, which is protected
      = note: --replace; protected by db/stack.orch.hcl:3
      = help: commit `prevent_destroy = false` for it first; `--skip-protected` plans the rest

    [exit status 4]
    ");
    done(&repository, "state taint /db");
    fails(
        &repository,
        "plan",
        4,
        "tainted; protected by db/stack.orch.hcl:3",
    );
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn prevent_destroy_refuses_a_replace_by_the_driver() {
    let repository = applied(&[("/db", PROTECTED)]);
    let hook = "if [ \"$ORCH_ACTION\" = update ]; then echo '{\"action\":\"replace\",\"reason\":\"size must grow\"}' > \"$ORCH_ANSWER\"; exit 2; fi\n";
    crate::removals::hook(&repository, "plan", "db", hook);
    want(&repository, "/db", "2");
    repository.commit();
    fails(
        &repository,
        "plan",
        4,
        "note: size must grow; protected by db/stack.orch.hcl:3",
    );
}

#[test]
fn prevent_destroy_ends_only_with_a_commit() {
    let repository = applied(&[("/db", PROTECTED)]);
    declare(&repository, "/db", LIFTED);
    let told = fails(
        &repository,
        "plan --destroy",
        4,
        "protected by db/stack.orch.hcl:3 in HEAD",
    );
    assert_snapshot!(told, @"
    [stderr]
    error: the plan would destroy `/db`, which is protected
      = note: --destroy; protected by db/stack.orch.hcl:3 in HEAD
      = help: commit the change to `prevent_destroy` first; `--skip-protected` plans the rest

    [exit status 4]
    ");
    // Not stated at all any more.
    declare(&repository, "/db", "");
    fails(&repository, "plan --destroy", 4, "in HEAD");
    fails(&repository, &format!("destroy {APPROVED} -X"), 4, "in HEAD");
    // In a file that git ignores.
    declare(&repository, "/db", "");
    repository.write("/config.orch.hcl", config("prevent_destroy = true"));
    repository.write("/.gitignore", ".orch\nown.orch.hcl\n");
    repository.commit();
    repository.write("/db/own.orch.hcl", config("prevent_destroy = false"));
    fails(
        &repository,
        "plan --destroy",
        4,
        "protected by config.orch.hcl:4 in HEAD",
    );
    std::fs::remove_file(repository.path("/db/own.orch.hcl")).unwrap();
    redeclare(&repository, "/db", LIFTED);
    assert_eq!(planned(&repository, "--destroy"), ["/db delete"]);
}

#[test]
fn prevent_destroy_holds_if_invalid_in_head() {
    let rules = [
        "prevent_destroy = \"yes\"",
        "prevent_destroy = 1 / 0",
        "prevent_resource_destroy = \"yes\"",
        "prevent_resource_destroy = [\"[\"]",
    ];
    for rule in rules {
        let repository = applied(&[("/db", LIFTED)]);
        let lines = format!("lifecycle {{\n    {rule}\n  }}");
        redeclare(&repository, "/db", &lines);
        declare(&repository, "/db", LIFTED);
        let told = fails(&repository, &format!("destroy {APPROVED} -X"), 4, "in HEAD");
        assert!(
            told.contains("protected by db/stack.orch.hcl:3 in HEAD"),
            "{told}"
        );
        assert_eq!(world(&repository), ["db"], "{rule}");
    }
}

#[test]
fn prevent_destroy_holds_for_all_if_head_is_unreadable() {
    let repository = applied(&[("/db", PROTECTED), ("/app", "")]);
    declare(&repository, "/db", LIFTED);
    let command = "run -X --record=destroy --match db -- true";
    fails(&repository, command, 4, "in HEAD");
    let head = head(&repository);
    let (folder, file) = head.split_at(2);
    repository.remove(&format!("/.git/objects/{folder}/{file}"));
    // Neither a state nor a safeguard needs git here.
    let refused = repository.orch("run -X --no-record -- terraform destroy");
    assert_eq!(refused.code(), 4, "{refused}");
    let said = "error: the command would destroy `/db`, which may be protected";
    assert!(refused.stderr.contains(said), "{refused}");
    assert!(refused.stderr.contains("`git status`"), "{refused}");
    assert!(
        !refused.stderr.contains("--disable-safeguards"),
        "{refused}"
    );
}

/// What seems to be no repository, or one without a commit, may be a damaged one.
#[test]
fn run_refuses_destroys_if_head_is_missing() {
    let project = || {
        let repository = Repository::of(prepared(&[("/db", PROTECTED)]));
        declare(&repository, "/db", LIFTED);
        repository
    };
    let command = "run -X -- terraform destroy";
    let losses: [(&str, &str); 4] = [
        ("rm .git/HEAD", "the repository has lost its `HEAD`"),
        ("rm .git/refs/heads/main", "HEAD names no commit"),
        ("git checkout -q --orphan new", "HEAD names no commit"),
        ("git config core.bare true", "is not in the working tree"),
    ];
    for (loss, why) in losses {
        let repository = project();
        let mut shell = std::process::Command::new("sh");
        repository.isolate(&mut shell);
        let mut shell = shell
            .args(["-c", loss])
            .current_dir(repository.path("/"))
            .spawn();
        assert!(shell.as_mut().unwrap().wait().unwrap().success());
        let refused = repository.orch(command);
        assert_eq!(refused.code(), 4, "{loss}: {refused}");
        assert!(
            refused.stderr.contains("may be protected"),
            "{loss}: {refused}"
        );
        assert!(refused.stderr.contains(why), "{loss}: {refused}");
    }
}

#[test]
fn prevent_destroy_holds_if_head_cannot_be_parsed() {
    let repository = applied(&[("/db", PROTECTED), ("/app", "")]);
    repository.write("/db/stack.orch.hcl", "stack {\n  lifecycle {\n");
    repository.commit();
    declare(&repository, "/db", "");
    change_entry(&repository, "/db", |entry| {
        entry["lifecycle"]["prevent_destroy"] = serde_json::Value::Null;
    });
    for command in [
        "run -X --record=destroy --match db -- true",
        "run -X --no-record --match db -- terraform destroy",
        "plan --destroy --match db",
        &format!("destroy {APPROVED} -X --match db"),
    ] {
        let said = fails(&repository, command, 4, "`/db`, which may be protected");
        assert!(
            said.contains("`db/stack.orch.hcl` is damaged there"),
            "{said}"
        );
        assert!(said.contains("commit a version"), "{said}");
    }
    assert_eq!(acts(&repository), [""; 0]);
    repository.commit();
    assert_eq!(planned(&repository, "--destroy --match db"), ["/db delete"]);
}

#[test]
fn prevent_destroy_outlives_an_uncommitted_rename() {
    let object = |repository: &Repository| repository.write("/db/object", "db");
    // By id.
    let repository = applied(&[
        ("/db", &format!("id = \"the-db\"\n  {PROTECTED}")),
        ("/app", ""),
    ]);
    object(&repository);
    repository.commit();
    std::fs::rename(repository.path("/db"), repository.path("/database")).unwrap();
    declare(&repository, "/database", "id = \"THE-db\"");
    fails(
        &repository,
        "plan --destroy",
        4,
        "`/database`, which is protected",
    );
    fails(
        &repository,
        &format!("destroy {APPROVED} -X"),
        4,
        "protected by db/stack.orch.hcl:4 in HEAD",
    );
    fails(
        &repository,
        "run -X --record=destroy --match database -- true",
        4,
        "in HEAD",
    );
    // By a `moved` block.
    let repository = applied(&[("/db", PROTECTED), ("/app", "")]);
    object(&repository);
    repository.commit();
    std::fs::rename(repository.path("/db"), repository.path("/database")).unwrap();
    declare(&repository, "/database", "");
    repository.write(
        "/moved.orch.hcl",
        "moved {\n  from = \"/db\"\n  to   = \"/database\"\n}\n",
    );
    fails(
        &repository,
        "plan --destroy",
        4,
        "`/database`, which is protected",
    );
    fails(
        &repository,
        "run -X --record=destroy --match database -- true",
        4,
        "in HEAD",
    );
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn prevent_destroy_outlives_uncommitted_changes_of_imports() {
    let sandbox = prepared(&[("/db", ""), ("/app", "")]);
    sandbox.write("/lib/rules.txt", config("prevent_destroy = true"));
    sandbox.write(
        "/db/import.orch.hcl",
        "import {\n  source = \"/lib/rules.txt\"\n}\n",
    );
    let repository = applied_of(sandbox);
    repository.write("/lib/rules.txt", "");
    fails(
        &repository,
        "plan --destroy",
        4,
        "protected by lib/rules.txt:4 in HEAD",
    );
    repository.git("checkout -q lib");
    declare(
        &repository,
        "/app",
        "lifecycle {\n    prevent_destroy = tm_fileexists(\"lift\") ? null : true\n  }",
    );
    repository.commit();
    repository.write("/app/lift", "");
    fails(
        &repository,
        "plan --destroy --match app",
        4,
        "protected by app/stack.orch.hcl:3 in HEAD",
    );
    repository.commit();
    assert_eq!(
        planned(&repository, "--destroy --match app"),
        ["/app delete"]
    );
}

#[test]
fn prevent_destroy_uses_the_record_if_head_lacks_the_stack() {
    let repository = applied(&[("/db", PROTECTED), ("/app", "")]);
    std::fs::remove_dir_all(repository.path("/.git")).unwrap();
    repository.git("init -q");
    declare(&repository, "/db", "");
    let told = fails(
        &repository,
        &format!("destroy {APPROVED} -X"),
        4,
        "`/db`, which is protected",
    );
    assert!(
        told.contains("protected by db/stack.orch.hcl:3, recorded from"),
        "{told}"
    );
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn prevent_destroy_ends_after_an_apply_without_the_rule() {
    let repository = applied(&[("/db", PROTECTED)]);
    // Lifted, but never applied.
    redeclare(&repository, "/db", LIFTED);
    remove(&repository, "db");
    fails(&repository, "plan", 4, "`/db`, which is protected");
    repository.git("revert --no-edit HEAD");
    done(&repository, "apply --auto-approve");
    assert_eq!(
        entry(&repository, "/db")["lifecycle"]["prevent_destroy"]["value"],
        false
    );
    forget_log(&repository);
    remove(&repository, "db");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /db"]);
}

#[test]
fn prevent_destroy_ends_with_a_committed_removed_block() {
    let repository = applied(&[("/db", PROTECTED), ("/app", PROTECTED)]);
    remove(&repository, "db app");
    let block = |stack: &str, rule: &str| {
        format!("removed {{\n  from = \"{stack}\"\n  lifecycle {{\n    {rule}\n  }}\n}}\n")
    };
    repository.write("/db.orch.hcl", block("/db", "prevent_destroy = false"));
    let told = fails(&repository, "plan", 4, "`/app`, which is protected");
    assert!(!told.contains("would destroy `/db`"), "{told}");
    assert!(planned(&repository, "--match db")[0].starts_with("/db blocked: "));
    repository.commit();
    assert_eq!(planned(&repository, "--match db"), ["/db delete"]);
    // A block without the rule lifts nothing, and one may protect.
    repository.write("/app.orch.hcl", block("/app", ""));
    repository.commit();
    fails(
        &repository,
        "plan",
        4,
        "protected by app/stack.orch.hcl:3, recorded from",
    );
    repository.write("/app.orch.hcl", block("/app", "prevent_destroy = true"));
    repository.commit();
    fails(&repository, "plan", 4, "protected by app.orch.hcl:4");
    repository.write("/app.orch.hcl", block("/app", "destroy = false"));
    repository.commit();
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /db"]);
    assert_eq!(keys(&repository), [""; 0]);
}

#[test]
fn prevent_destroy_refuses_an_older_plan() {
    let repository = applied(&[("/db", ""), ("/app", "")]);
    done(&repository, "plan --replace /db -o plan.file");
    repository.write("/config.orch.hcl", config("prevent_destroy = true"));
    repository.commit();
    fails(
        &repository,
        &format!("apply {APPROVED} plan.file"),
        4,
        "`/db`, which is protected",
    );
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn skip_protected_plans_the_rest() {
    let repository = applied(&[
        ("/net", ""),
        ("/db", &format!("after = [\"/net\"]\n  {PROTECTED}")),
        ("/app", "after = [\"/db\"]"),
        ("/other", ""),
    ]);
    let kept = [
        "/app delete",
        "/db blocked: protected by db/stack.orch.hcl:4",
        "/net blocked: kept: protected /db runs after it",
        "/other delete",
    ];
    assert_eq!(planned(&repository, "--destroy --skip-protected"), kept);
    assert_eq!(
        planned(
            &repository,
            "--skip-protected --replace /db --replace /net --replace /other"
        ),
        [
            "/db blocked: protected by db/stack.orch.hcl:4",
            "/net blocked: kept: protected /db runs after it",
            "/other delete create"
        ]
    );
    remove(&repository, "net db app other");
    let told = planned(&repository, "--skip-protected");
    let [app, db, net, other] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!([app, other], ["/app delete", "/other delete"]);
    assert!(
        db.starts_with("/db blocked: protected by db/stack.orch.hcl:4, recorded from "),
        "{db}"
    );
    assert_eq!(net, "/net blocked: kept: protected /db runs after it");
    let apply = format!("apply {APPROVED} --skip-protected");
    fails(
        &repository,
        &apply,
        4,
        "2 stacks are blocked and left unchanged: /db, /net",
    );
    assert_eq!(acts(&repository), ["destroy /app", "destroy /other"]);
    assert_eq!(keys(&repository), ["/db", "/net"]);
}

#[test]
fn prevent_destroy_notes_forgotten_stacks() {
    let repository = applied(&[("/db", PROTECTED), ("/gone", PROTECTED)]);
    let output = repository.orch("state forget /gone");
    assert_eq!(output.code(), 0, "{output}");
    assert!(
        output
            .stderr
            .contains("note: `/gone` was protected by gone/stack.orch.hcl:3, recorded from "),
        "{output}"
    );
    crate::removals::vanish(&repository, "db");
    change_entry(&repository, "/db", |entry| entry["driver"] = "none".into());
    remove(&repository, "db gone");
    let output = repository.orch("plan");
    assert_eq!(output.code(), 0, "{output}");
    assert!(
        output
            .stderr
            .contains("note: `/db` was protected by db/stack.orch.hcl:3, recorded from "),
        "{output}"
    );
    assert_eq!(planned(&repository, ""), ["/db forget"]);
}

/// A project whose stacks have programs that are called like tools.
fn with_tools(state: bool) -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/db/stack.orch.hcl",
        format!("stack {{\n  {PROTECTED}\n}}\n"),
    );
    sandbox.write("/app/stack.orch.hcl", "stack {\n}\n");
    if state {
        sandbox.write("/state.orch.hcl", "orch {\n  config {\n    state {\n      project = \"acme\"\n      record {\n        destroy = [\"make clean\"]\n        never = [\"tofu destroy\"]\n      }\n    }\n  }\n}\n");
    }
    for tool in ["terraform", "tofu", "terragrunt", "make"] {
        for stack in ["app", "db"] {
            sandbox.write_program(&format!("/{stack}/{tool}"), "#!/bin/sh\n");
        }
    }
    sandbox
}

#[test]
fn run_refuses_to_destroy_protected_stacks() {
    for state in [false, true] {
        let sandbox = with_tools(state);
        let repository = Repository::of(sandbox);
        if state {
            done(&repository, "state init");
        }
        for command in [
            "terraform destroy",
            "terraform destroy -auto-approve -target=x",
            "terraform apply -destroy",
            "terraform apply -auto-approve --destroy plan",
            "terraform -chdir=x destroy",
            "tofu destroy",
            "terragrunt destroy",
            "terragrunt run destroy",
            "terragrunt run -- destroy",
            "terragrunt run --all destroy",
            "terragrunt run-all destroy",
            "terragrunt stack run destroy",
            "terragrunt run --all -- apply -destroy",
        ] {
            for flags in ["", "-X", "--no-record", "--record=apply", "--dry-run"] {
                if !state && flags == "--record=apply" {
                    continue;
                }
                let code = if flags == "--dry-run" { 0 } else { 4 };
                let output = repository.orch(&format!("run {flags} ./{command}"));
                assert_eq!(output.code(), code, "{flags} {command}: {output}");
                assert!(
                    output
                        .stderr
                        .contains("error: the command would destroy `/db`, which is protected"),
                    "{output}"
                );
            }
        }
        if state {
            fails(
                &repository,
                "run ./make clean",
                4,
                "the command is `make clean`; protected by db/stack.orch.hcl:3",
            );
            fails(
                &repository,
                "run --record=destroy ./make other",
                4,
                "by `--record=destroy`; protected by",
            );
        }
        for command in [
            "terraform plan -destroy",
            "terraform apply",
            "make all",
            "terragrunt run plan",
        ] {
            done(&repository, &format!("run -X --no-record ./{command}"));
        }
        done(
            &repository,
            "run -X --no-record --exclude db ./terraform destroy",
        );
    }
}

#[test]
fn run_refusal_of_protected_stacks_has_a_fix() {
    let repository = Repository::of(with_tools(false));
    assert_snapshot!(repository.orch("run ./terraform destroy"), @"
    [stderr]
    error: the command would destroy `/db`, which is protected
      = note: the command is `terraform destroy`; protected by db/stack.orch.hcl:3
      = help: commit `prevent_destroy = false` for it first; `--exclude` leaves the stack out

    note: nothing was run
    [exit status 4]
    ");
    assert_snapshot!(repository.orch("run --dry-run ./terraform destroy"), @"
    /app: ./terraform destroy
    /db: ./terraform destroy
    [stderr]
    error: the command would destroy `/db`, which is protected
      = note: the command is `terraform destroy`; protected by db/stack.orch.hcl:3
      = help: commit `prevent_destroy = false` for it first; `--exclude` leaves the stack out

    note: the run would be refused
    ");
    // The environment has options, too.
    repository.write("/env.orch.hcl", "orch {\n  config {\n    run {\n      env {\n        TF_CLI_ARGS_apply = \"-destroy\"\n      }\n    }\n  }\n}\n");
    repository.commit();
    fails(
        &repository,
        "run ./terraform apply",
        4,
        "the command is `terraform apply -destroy`",
    );
    for command in [
        "run --all apply",
        "run-all apply",
        "run -- apply",
        "apply-all",
    ] {
        let command = format!("run ./terragrunt {command}");
        fails(&repository, &command, 4, "`/db`, which is protected");
    }
    // Not committed.
    repository.write("/db/stack.orch.hcl", "stack {\n}\n");
    fails(
        &repository,
        "run -X ./terraform destroy",
        4,
        "protected by db/stack.orch.hcl:3 in HEAD",
    );
}
