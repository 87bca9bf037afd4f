//! Triggers for directories and for instances.

use insta::assert_snapshot;

use super::NETWORKS;
use crate::support::Repository;

/// Creates triggers and returns their files, without the parts that differ each time.
#[track_caller]
fn trigger(repository: &Repository, arguments: &str) -> String {
    let output = repository.orch(&format!("trigger --reason r {arguments}"));
    assert_eq!(output.code(), 0, "{output}");
    let files = output.stdout.lines().map(|line| {
        let file = line.strip_prefix("created ").unwrap();
        let (kind, rest) = file
            .split_once("changed-")
            .or(file.split_once("ignore-change-"))
            .unwrap();
        let (_, ending) = rest.split_once('.').unwrap();
        format!("{kind}*.{ending}\n")
    });
    files.collect::<String>() + &output.stderr
}

/// Lists what has changed since the base, without the reasons.
#[track_caller]
fn changed(repository: &Repository) -> String {
    let output = repository.orch("list --changed --base base");
    assert_eq!(output.code(), 0, "{output}");
    output.stdout.lines().collect::<Vec<_>>().join(" ")
}

fn repository() -> Repository {
    Repository::new(NETWORKS)
}

#[test]
fn trigger_on_a_directory_marks_all_instances() {
    for written in ["net", "/net", "'net[*]'"] {
        let repository = repository();
        let said = ".tmtriggers/net/*.tm.hcl\nnote: the stacks will count as changed as long as this file differs from the base: commit it\n";
        assert_eq!(trigger(&repository, written), said);
        assert_eq!(changed(&repository), r#"net["dev"] net["prod"]"#);
    }
}

#[test]
fn trigger_on_an_instance_marks_only_that_one() {
    for written in ["'net[\"dev\"]'", "'/net[\"dev\"]'", "'./net/[\"dev\"]'"] {
        let repository = repository();
        let said = ".tmtriggers/net/*.orch.hcl\nnote: the stack will count as changed as long as this file differs from the base: commit it\n";
        assert_eq!(trigger(&repository, written), said);
        assert_eq!(changed(&repository), r#"net["dev"]"#);
    }
    let repository = repository();
    _ = repository.orch_in("/net", "trigger '[\"dev\"]'");
    _ = repository.orch_in("/net", "trigger '.[\"prod\"]'");
    assert_eq!(changed(&repository), r#"net["dev"] net["prod"]"#);
    repository.commit();
    assert_eq!(changed(&repository), r#"net["dev"] net["prod"]"#);
}

#[test]
fn trigger_files_of_instances_contain_the_key() {
    let repository = repository();
    repository.write(
        "/net/stack.orch.hcl",
        "stack {\n  for_each = [\"$${x}\", \"a\\\\b\"]\n}\n",
    );
    repository.commit();
    repository.git("tag -f base");
    for key in ["${x}", "a\\b"] {
        let output = repository.orch_with("trigger", |command| {
            command.arg(format!("net[\"{key}\"]"));
        });
        assert_eq!(output.code(), 0, "{output}");
        let file = output.stdout.trim().strip_prefix("created ").unwrap();
        assert!(repository.read(file).contains("\n  key     = \""), "{file}");
        assert_eq!(changed(&repository), format!("net[\"{key}\"]"));
        repository.remove(&format!("/{file}"));
    }
}

#[test]
fn trigger_ignore_change_works_for_an_instance() {
    let repository = repository();
    repository.write("/net/main.tf", "");
    assert_eq!(changed(&repository), r#"net["dev"] net["prod"]"#);
    assert_snapshot!(trigger(&repository, "--ignore-change 'net[\"dev\"]'"), @"
    .tmtriggers/net/*.orch.hcl
    note: the stack will not count as changed as long as this file differs from the base: commit it
    ");
    assert_eq!(changed(&repository), r#"net["prod"]"#);
    let why = repository
        .orch("why 'net[\"dev\"]' --changed --base base")
        .stdout;
    assert!(
        why.contains("its changes are ignored, although there are some: r (asked"),
        "{why}"
    );
    _ = trigger(&repository, "--ignore-change net");
    assert_eq!(changed(&repository), "");
}

#[test]
fn trigger_recursive_names_instances_only_if_some_are_left_out() {
    let repository = repository();
    assert_snapshot!(trigger(&repository, "--recursive /"), @"
    .tmtriggers/account/*.tm.hcl
    .tmtriggers/app/*.tm.hcl
    .tmtriggers/net/*.tm.hcl
    .tmtriggers/net/dns/*.tm.hcl
    note: the stacks will count as changed as long as these files differ from the base: commit them
    ");
    let repository = self::repository();
    assert_snapshot!(trigger(&repository, "--recursive / --tags dev"), @"
    .tmtriggers/account/*.orch.hcl
    .tmtriggers/net/*.orch.hcl
    note: the stacks will count as changed as long as these files differ from the base: commit them
    ");
    assert_eq!(changed(&repository), r#"account["dev"] net["dev"]"#);
    let repository = self::repository();
    assert_snapshot!(trigger(&repository, "--recursive / --no-tags dev"), @"
    .tmtriggers/account/*.orch.hcl
    .tmtriggers/app/*.tm.hcl
    .tmtriggers/net/*.orch.hcl
    .tmtriggers/net/dns/*.tm.hcl
    note: the stacks will count as changed as long as these files differ from the base: commit them
    ");
    assert_eq!(
        changed(&repository),
        r#"account["prod"] app net["prod"] net/dns["dev"] net/dns["test"]"#
    );
}

#[test]
fn trigger_refuses_a_missing_instance() {
    let repository = repository();
    assert_snapshot!(repository.orch("trigger 'net[\"none\"]'"), @r#"
    [stderr]
    error: cannot trigger `net["none"]`: no instance has the key `none`
    [exit status 64]
    "#);
    assert_snapshot!(repository.orch("trigger 'app[\"dev\"]'"), @r#"
    [stderr]
    error: cannot trigger `app["dev"]`: this stack has no instances
    [exit status 64]
    "#);
    assert_snapshot!(repository.orch("trigger 'app[*]'"), @"
    [stderr]
    error: cannot trigger `app[*]`: this stack has no instances
    [exit status 64]
    ");
    assert_snapshot!(repository.orch("trigger 'none[\"dev\"]'"), @"
    [stderr]
    error: cannot trigger `none`: does not exist
    [exit status 64]
    ");
    assert_snapshot!(repository.orch("trigger --recursive 'net[\"dev\"]'"), @r#"
    [stderr]
    error: cannot trigger `net["dev"]`: `--recursive` needs a directory, and this names instances
    [exit status 64]
    "#);
    assert!(!repository.path("/.tmtriggers").exists());
}

#[test]
fn trigger_files_for_a_missing_instance_get_a_warning() {
    let repository = repository();
    let write = |path: &str, key: &str| {
        let text = format!(
            "trigger {{\n  ctime = 1\n  reason = \"r\"\n  type = changed\n  context = stack\n  key = {key}\n}}\n"
        );
        repository.write(path, text);
    };
    write("/.tmtriggers/net/changed-1.orch.hcl", "\"dve\"");
    write("/.tmtriggers/app/changed-1.orch.hcl", "\"dev\"");
    assert_snapshot!(repository.changed(), @r#"
    [stderr]
    note: no stack has changed since 813d303
    warning: `.tmtriggers/app/changed-1.orch.hcl` is a trigger for `/app["dev"]`, which is not a stack
      = help: did you mean `/net["dev"]`?
      = help: delete the file if the stack no longer exists

    warning: `.tmtriggers/net/changed-1.orch.hcl` is a trigger for `/net["dve"]`, which is not a stack
      = help: did you mean `/net["dev"]`?
      = help: delete the file if the stack no longer exists
    "#);
    repository.remove("/.tmtriggers/app/changed-1.orch.hcl");
    for (key, problem) in [
        ("\"a/b\"", "cannot be the key of an instance"),
        ("1", "`key` must be a string"),
        ("each.key", "error: "),
    ] {
        write("/.tmtriggers/net/changed-1.orch.hcl", key);
        let output = repository.orch("list --changed --base base");
        assert_eq!(output.code(), 3, "{output}");
        assert!(output.stderr.contains(problem), "{output}");
    }
}
