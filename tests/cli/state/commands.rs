//! The commands on a document in the project.

use insta::assert_snapshot;
use serde_json::json;

use super::{change_document, document, project, recorded};
use crate::support::{Output, Sandbox};

/// What a command says, without the times.
fn said(output: &Output) -> String {
    let text = output.to_string();
    let time = regex_of_times();
    time.replace_all(&text, "[local time]").into_owned()
}

fn regex_of_times() -> regex::Regex {
    regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d").unwrap()
}

#[test]
fn init_creates_a_document_once() {
    let sandbox = project("");
    assert_snapshot!(sandbox.orch("state init --dry-run"), @"
    created .orch/state/default.json
    [stderr]
    note: nothing was written: this is a dry run
    ");
    assert!(!sandbox.path("/.orch").exists());
    assert_snapshot!(sandbox.orch("state init"), @"created .orch/state/default.json");
    assert_snapshot!(sandbox.orch("state init"), @"
    [stderr]
    error: `.orch/state/default.json` exists
      = help: to see it, run `orch state show`
    [exit status 4]
    ");
}

#[test]
fn list_refuses_a_missing_document() {
    let sandbox = project("");
    for command in [
        "list",
        "show",
        "history",
        "taint a",
        "export --format cfngin",
    ] {
        assert_eq!(
            sandbox.orch(&format!("state {command}")).code(),
            4,
            "{command}"
        );
    }
    assert_snapshot!(sandbox.orch("state list"), @"
    [stderr]
    error: no state at `.orch/state/default.json`
      = help: if there was one, check the namespace and the key for a typo, and whether it was deleted (`git clean -fdx` deletes `.orch`)
      = help: `orch state init` creates a new document
    [exit status 4]
    ");
    assert!(!sandbox.path("/.orch").exists());
}

#[cfg(unix)]
#[test]
fn init_makes_the_document_private_and_ignored_by_git() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = recorded();
    let mode = |path: &str| {
        let metadata = sandbox.path(path).metadata().unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("/.orch/state/default.json"), 0o600);
    assert_eq!(mode("/.orch/state/default.backups/1.json"), 0o600);
    assert_eq!(sandbox.read("/.orch/.gitignore"), "*\n");
}

#[cfg(unix)]
#[test]
fn init_follows_no_link() {
    let sandbox = recorded();
    let elsewhere = sandbox.outside().join("elsewhere.json");
    std::fs::rename(sandbox.path("/.orch/state/default.json"), &elsewhere).unwrap();
    sandbox.symlink(&elsewhere, "/.orch/state/default.json");
    assert_snapshot!(sandbox.orch("state taint a"), @"
    [stderr]
    error: failed to read `.orch/state/default.json`: `.orch/state/default.json` is a symbolic link, which orch does not follow
    [exit status 5]
    ");
}

#[test]
fn list_and_show_print_recorded_stacks() {
    let sandbox = recorded();
    assert_snapshot!(said(&sandbox.orch("state list")), @"
    /a    -  -  [local time]  -
    /a/b  -  -  [local time]  -
    /c    -  -  [local time]  -
    [stderr]
    note: the status of the stacks is unknown: the project is not in a git repository
    ");
    assert_snapshot!(said(&sandbox.orch_in("/a", "state show b")), @"
    stack    /a/b
    id       -
    name     b
    tags     -
    after    /a
    before   -
    applied  [local time]
    ");
    let shown = said(&sandbox.orch("state show"));
    let lineage = document(&sandbox)["lineage"].as_str().unwrap().to_owned();
    assert_snapshot!(shown.replace(&lineage, "[lineage]"), @"
    address    .orch/state/default.json
    project    acme
    namespace  default
    root       .
    lineage    [lineage]
    serial     2, last import by somebody unknown at [local time]
    lock       free
    stacks     3 recorded, 3 applied
    backups    1
    ");
    assert_snapshot!(said(&sandbox.orch("state history")), @"
    2  [local time]  import  somebody unknown  -  /a, /a/b, /c  -
    1  [local time]  init    somebody unknown  -  -             -
    ");
}

#[test]
fn show_prints_the_whole_document_as_json() {
    let sandbox = recorded();
    let document = document(&sandbox);
    assert_eq!(
        sandbox.orch("state show --format json").json()["document"],
        document
    );
    let list = sandbox.orch("state list --format json").json();
    assert_eq!(list["stacks"][1]["path"], "/a/b");
    assert_eq!(list["stacks"][1]["after"], json!(["/a"]));
    assert_eq!(list["serial"], 2);
    let entry = sandbox.orch("state show c --format json").json();
    assert_eq!(entry["after"], json!(["/a", "/a/b"]));
    let history = sandbox.orch("state history --format json").json();
    assert_eq!(history["history"][0]["what"], "import");
    let backups = sandbox.orch("state backups --format json").json();
    assert_eq!(
        backups["backups"],
        json!([{ "serial": 1, "abandoned": false }])
    );
    let refused = sandbox.orch("state show x --format json");
    assert_eq!(refused.code(), 4);
    let problem = &refused.data()["refused"]["problem"];
    assert_eq!(problem, "`/x` is not recorded");
}

#[test]
fn move_keeps_unknown_fields() {
    let sandbox = recorded();
    let places = ["", "/stacks/~1a", "/stacks/~1a/applied", "/history/0"];
    change_document(&sandbox, |document| {
        for place in places {
            document.pointer_mut(place).unwrap()["later"] = json!({"x": [1, null]});
        }
    });
    assert_eq!(sandbox.orch("state taint c").code(), 0);
    let document = document(&sandbox);
    for place in places {
        assert_eq!(
            document.pointer(place).unwrap()["later"],
            json!({"x": [1, null]}),
            "{place}"
        );
    }
}

#[test]
fn taint_is_recorded_and_untaint_removes_it() {
    let sandbox = recorded();
    assert_snapshot!(sandbox.orch("state taint a c --reason 'changed by hand'"), @"
    tainted /a
    tainted /c
    ");
    let taint = &document(&sandbox)["stacks"]["/a"]["tainted"];
    assert_eq!(taint["reason"], "changed by hand");
    assert_snapshot!(sandbox.orch("state untaint /a"), @"untainted /a");
    assert_eq!(document(&sandbox)["stacks"]["/a"].get("tainted"), None);
    assert_snapshot!(sandbox.orch("state untaint /a"), @"
    [stderr]
    error: `/a` is not tainted
    [exit status 4]
    ");
    assert_snapshot!(sandbox.orch("state taint /aa"), @"
    [stderr]
    error: `/aa` is not recorded
      = help: did you mean `/a`?
    [exit status 4]
    ");
}

#[test]
fn move_and_forget_change_entries() {
    let sandbox = recorded();
    change_document(&sandbox, |document| {
        document["stacks"]["/a"]["after"] = json!(["/c", "tag:c"]);
    });
    let before = document(&sandbox)["stacks"]["/c"].clone();
    assert_snapshot!(sandbox.orch("state move c /new/c"), @"
    moved /c to /new/c
    [stderr]
    note: no stack `/new/c` in the project
    ");
    assert_eq!(document(&sandbox)["stacks"]["/new/c"], before);
    let after = &document(&sandbox)["stacks"]["/a"]["after"];
    assert_eq!(*after, json!(["/new/c", "tag:c"]));
    assert_snapshot!(sandbox.orch("state move a a/b"), @"
    [stderr]
    error: `/a/b` is already recorded
      = help: if that entry is wrong, forget it first: `orch state forget /a/b`
    [exit status 4]
    ");
    assert_snapshot!(sandbox.orch("state forget /new/c a"), @"
    forgot /a
    forgot /new/c
    ");
    let stacks = document(&sandbox)["stacks"].clone();
    assert_eq!(
        stacks.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["/a/b"]
    );
}

#[test]
fn instance_has_its_own_entry() {
    let sandbox = recorded();
    change_document(&sandbox, |document| {
        document["stacks"]["/d[\"eu\"]"] = document["stacks"]["/c"].clone();
    });
    assert_snapshot!(sandbox.orch("state taint 'd[\"eu\"]'"), @r#"tainted /d["eu"]"#);
    let exported = sandbox.orch("state export --format cfngin");
    assert_snapshot!(exported, @r#"
    [stderr]
    error: several stacks have the name `c`: `/c`, `/d["eu"]`
    [exit status 4]
    "#);
}

#[test]
fn dry_run_writes_nothing() {
    let sandbox = recorded();
    let before = sandbox.read("/.orch/state/default.json");
    for command in [
        "taint a",
        "forget a",
        "move a x",
        "restore 1",
        "import more.json",
    ] {
        sandbox.write("/more.json", r#"{"more": []}"#);
        let output = sandbox.orch(&format!("state {command} --dry-run"));
        assert_eq!(output.code(), 0, "{command}: {output:?}");
    }
    assert_eq!(sandbox.read("/.orch/state/default.json"), before);
    assert!(!sandbox.path("/.orch/state/default.backups/2.json").exists());
}

#[test]
fn write_increments_the_serial_and_keeps_a_backup() {
    let sandbox = project("backups = 3");
    assert_eq!(sandbox.orch("state init").code(), 0);
    sandbox.write("/graph.json", r#"{"a": []}"#);
    let imported = sandbox.orch("state import graph.json");
    assert_eq!(imported.code(), 0);
    for _ in 0..3 {
        assert_eq!(sandbox.orch("state taint a").code(), 0);
    }
    assert_eq!(document(&sandbox)["serial"], 5);
    assert_snapshot!(sandbox.orch("state backups"), @"
    2
    3
    4
    ");
    assert_snapshot!(sandbox.orch("state restore 2"), @"restored backup 2 as serial 6");
    let restored = document(&sandbox);
    assert_eq!(restored["serial"], 6);
    assert_eq!(restored["stacks"]["/a"].get("tainted"), None);
    assert_eq!(restored["history"].as_array().unwrap().len(), 6);
    assert_snapshot!(sandbox.orch("state restore 2"), @"
    [stderr]
    error: no backup 2
      = help: the backups are 3, 4, 5
    [exit status 4]
    ");
}

#[test]
fn document_that_is_damaged_is_never_reset() {
    let sandbox = recorded();
    let text = sandbox.read("/.orch/state/default.json");
    sandbox.write("/.orch/state/default.json", &text[..20]);
    assert_snapshot!(sandbox.orch("state list"), @"
    [stderr]
    error: `.orch/state/default.json` cannot be used: damaged: EOF while parsing a string at line 1 column 20
      = help: to restore the newest backup, `.orch/state/default.backups/1.json`, run `orch state restore 1`
    [exit status 5]
    ");
    for command in [
        "show",
        "history",
        "taint a",
        "forget a",
        "export --format cfngin",
    ] {
        assert_eq!(
            sandbox.orch(&format!("state {command}")).code(),
            5,
            "{command}"
        );
    }
    assert_eq!(sandbox.orch("state init").code(), 4);
    assert_eq!(sandbox.orch("state restore 1").code(), 0);
    assert_eq!(
        document(&sandbox)["serial"],
        1002,
        "above any that was lost"
    );
    assert_eq!(sandbox.orch("state list").code(), 0);
}

#[test]
fn serial_is_never_used_twice() {
    let sandbox = recorded();
    let path = "/.orch/state/default.json";
    let mut highest = document(&sandbox)["serial"].as_u64().unwrap();
    let mut is_higher = |what: &str, command: &str| {
        let output = sandbox.orch(&format!("state {command}"));
        assert_eq!(output.code(), 0, "{what}: {output}");
        let serial = document(&sandbox)["serial"].as_u64().unwrap();
        assert!(serial > highest, "{what}: {serial} after {highest}");
        highest = serial;
        let history = document(&sandbox)["history"].clone();
        assert_eq!(
            history.as_array().unwrap().last().unwrap()["serial"],
            serial
        );
    };
    is_higher("whole", "restore 1");
    sandbox.remove(path);
    is_higher("gone", "restore 1");
    sandbox.write(path, "{");
    is_higher("damaged", "restore 1");
    is_higher("an edit", "import graph.json");
    // A damaged document may still tell, where backups do not.
    let text = sandbox.read(path);
    let text = text.replacen("\"serial\":", "\"serial\": 90000,\"serial\":", 1);
    sandbox.write(path, text);
    is_higher("damaged, with a serial", "restore 1");
    assert!(document(&sandbox)["serial"].as_u64().unwrap() > 90_000);
    is_higher("an edit", "import graph.json");
    sandbox.remove(path);
    is_higher("new", "init");
}

#[test]
fn init_reports_backups_of_another_document() {
    let sandbox = recorded();
    sandbox.remove("/.orch/state/default.json");
    assert_snapshot!(sandbox.orch("state init"), @"
    created .orch/state/default.json
    [stderr]
    note: an earlier document has backups; to restore the newest, run `orch state restore --abandoned 1`
    ");
    // What the new document was is kept too.
    assert_eq!(sandbox.orch("state restore 1").code(), 4);
    assert_eq!(sandbox.orch("state restore --abandoned 1").code(), 0);
    assert_snapshot!(sandbox.orch("state backups"), @"
    1 (abandoned)
    1002
    ");
    sandbox.write("/.orch/state/default.backups/1.json", "{");
    assert_snapshot!(sandbox.orch("state restore --abandoned 1"), @"
    [stderr]
    error: `.orch/state/default.backups/1.json` cannot be used: damaged: EOF while parsing an object at line 1 column 1
      = help: restore another one; `orch state backups` lists them
    [exit status 5]
    ");
}

#[test]
fn document_of_a_later_version_is_left_alone() {
    let sandbox = recorded();
    change_document(&sandbox, |document| {
        document["format"] = json!(2);
        document["stacks"] = json!([]);
    });
    assert_snapshot!(sandbox.orch("state list"), @"
    [stderr]
    error: `.orch/state/default.json` cannot be used: its format is 2, and this version of orch reads formats up to 1: upgrade orch
      = help: install the version of orch that the others use
    [exit status 4]
    ");
    assert_eq!(sandbox.orch("state taint a").code(), 4);
}

#[test]
fn document_of_another_project_is_left_alone() {
    let sandbox = recorded();
    change_document(&sandbox, |document| document["project"] = json!("other"));
    assert_snapshot!(sandbox.orch("state list"), @"
    [stderr]
    error: the state at `.orch/state/default.json` belongs to another project: `other`, and this is `acme`
      = help: check the configuration of the state
    [exit status 4]
    ");
    assert_eq!(sandbox.orch("state forget a").code(), 4);
    change_document(&sandbox, |document| {
        document["project"] = json!("acme");
        document["root"] = json!("infra");
    });
    assert_snapshot!(sandbox.orch("state taint a"), @"
    [stderr]
    error: the state at `.orch/state/default.json` belongs to another root: `infra`, and this is the top of the repository
      = help: check the configuration of the state
    [exit status 4]
    ");
}

#[test]
fn document_about_other_stacks_is_left_alone() {
    let sandbox = recorded();
    change_document(&sandbox, |document| {
        document["stacks"] = json!({ "/x": document["stacks"]["/a"] });
    });
    assert_snapshot!(sandbox.orch("state list"), @"
    [stderr]
    error: none of the stacks recorded in `.orch/state/default.json` is in this project
      = help: check `project`, `namespace` and the backend in the configuration of the state
    [exit status 4]
    ");
}

#[test]
fn document_has_the_root_of_its_project_in_the_repository() {
    let sandbox = project("");
    sandbox.git_init_at("/..");
    assert_eq!(sandbox.orch("state init").code(), 0);
    assert_eq!(document(&sandbox)["root"], "project");
}

#[test]
fn state_needs_a_marked_root() {
    let sandbox = Sandbox::unmarked("//- /a/stack.tm\nstack {}\n");
    assert_snapshot!(sandbox.orch("state list"), @"
    [stderr]
    error: no state: nothing marks the root of a project here
      = help: write `orch { root = true }` to a file `orch.orch.hcl` in the root
    [exit status 4]
    ");
}

#[test]
fn import_and_export_convert_a_graph_of_cfngin() {
    let sandbox = recorded();
    let exported = sandbox.orch("state export --format cfngin");
    assert_snapshot!(exported, @r#"
    {
      "a": [],
      "b": [
        "a"
      ],
      "c": [
        "a",
        "b"
      ]
    }
    "#);
    sandbox.write("/graph.json", r#"{"gone": ["a"], "a": []}"#);
    sandbox.git_init();
    sandbox.git_at("/").run("commit --allow-empty -m first");
    let imported = sandbox.orch("state import graph.json --commit HEAD");
    assert_snapshot!(imported, @"
    imported /gone
    [stderr]
    note: commit 15027b0 has no stack `gone`, so its removal cannot be proved later
    note: `/a` is already recorded, and is kept as it is
    note: not verified with a tool: `/gone` (not in the working tree)
    ");
    let entry = document(&sandbox)["stacks"]["/gone"].clone();
    assert_eq!(entry["applied"]["seen"].as_str().unwrap().len(), 40);
    assert_eq!(entry["applied"]["commit"], json!(null));
    assert_eq!(entry["after"], json!(["/a"]));
}

#[test]
fn import_refuses_invalid_graphs_and_writes_nothing() {
    let sandbox = recorded();
    let before = document(&sandbox);
    assert_snapshot!(sandbox.orch("state taint ''"), @"
    [stderr]
    error: the path of a stack is empty
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("state move a /a"), @"
    [stderr]
    error: FROM and TO are both `/a`
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("state move a c"), @"
    [stderr]
    error: `/c` is already recorded
      = help: if that entry is wrong, forget it first: `orch state forget /c`
    [exit status 4]
    ");
    assert_snapshot!(sandbox.orch("state restore first"), @"
    [stderr]
    error: invalid value 'first' for '<SERIAL>': a serial is a number; `orch state backups` lists them

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("state taint nowhere/at/all"), @"
    [stderr]
    error: `/nowhere/at/all` is not recorded
      = help: `orch state list` shows the recorded stacks
    [exit status 4]
    ");
    assert_eq!(document(&sandbox), before);
    // A path that is no stack here may be right.
    assert_snapshot!(sandbox.orch("state move c later"), @"
    moved /c to /later
    [stderr]
    note: no stack `/later` in the project
    ");
}

#[test]
fn import_takes_a_file_relative_to_the_directory_of_the_command() {
    let sandbox = recorded();
    sandbox.write("/a/more.json", r#"{"more": []}"#);
    for arguments in ["state import a/more.json", "-C a state import more.json"] {
        let output = sandbox.orch(&format!("{arguments} --dry-run"));
        assert_eq!(output.stdout, "imported /more\n", "{arguments}: {output}");
    }
}

#[test]
fn import_and_export_convert_json() {
    let sandbox = recorded();
    let serial = document(&sandbox)["serial"].clone();
    // Two stacks of one name, which CFNgin could not tell apart.
    change_document(&sandbox, |document| {
        document["stacks"]["/c"]["name"] = json!("a");
    });
    let exported = sandbox.orch("state export --format json").json();
    assert_eq!(exported["serial"], serial);
    assert_eq!(
        exported["stacks"],
        json!([
            { "path": "/a", "name": "a", "after": [] },
            { "path": "/a/b", "name": "b", "after": ["/a"] },
            { "path": "/c", "name": "a", "after": ["/a", "/a/b"] },
        ])
    );
    sandbox.write("/graph.json", r#"{"gone": ["b"]}"#);
    let imported = sandbox.orch("state import graph.json --format json").json();
    assert_eq!(imported["stacks"], json!(["/gone"]));
    assert_eq!(imported["serial"], document(&sandbox)["serial"]);
    sandbox.remove("/.orch/state/default.json");
    for command in ["export", "import graph.json"] {
        let refused = sandbox.orch(&format!("state {command} --format json"));
        assert_eq!(refused.code(), 4, "{refused}");
        let problem = refused.data()["refused"]["problem"].clone();
        assert!(problem.as_str().unwrap().contains("no state"));
    }
}

#[test]
fn import_refuses_a_name_that_is_no_stack_and_no_path() {
    let sandbox = recorded();
    for graph in [
        r#"{"": []}"#,
        r#"{"/": []}"#,
        r#"{"../x": []}"#,
        r#"{"x": [""]}"#,
    ] {
        sandbox.write("/graph.json", graph);
        let refused = sandbox.orch("state import graph.json");
        assert_eq!(refused.code(), 4, "{graph}: {refused}");
        assert_eq!(document(&sandbox)["serial"], 2, "{graph}");
    }
    assert_snapshot!(sandbox.orch("state import graph.json"), @"
    [stderr]
    error: no stack has the name ``, and it is not a valid path
    [exit status 4]
    ");
}

#[test]
fn import_refuses_names_of_several_stacks() {
    let sandbox = Sandbox::layout("x/net\n y/net");
    sandbox.write("/state.orch.hcl", super::block(""));
    assert_eq!(sandbox.orch("state init").code(), 0);
    sandbox.write("/graph.json", r#"{"net": []}"#);
    assert_snapshot!(sandbox.orch("state import graph.json"), @"
    [stderr]
    error: several stacks have the name `net`: `/x/net`, `/y/net`
    [exit status 4]
    ");
    sandbox.write("/graph.json", "[]");
    assert_snapshot!(sandbox.orch("state import graph.json"), @"
    [stderr]
    error: not a persistent graph of CFNgin, which is an object of lists of names: invalid type: sequence, expected a map at line 1 column 0
      = help: check that `graph.json` is the right file
    [exit status 4]
    ");
}

#[test]
fn import_refuses_dependencies_that_are_listed_nowhere() {
    let sandbox = recorded();
    let before = document(&sandbox);
    sandbox.write("/graph.json", r#"{"new": ["a", "lost"]}"#);
    assert_snapshot!(sandbox.orch("state import graph.json"), @"
    [stderr]
    error: `new` runs after `lost`, which is not in the file, the project or the state
      = help: add `lost` to the file with its own dependencies, or remove it from those of `new`
    [exit status 4]
    ");
    assert_eq!(document(&sandbox), before);
}

#[test]
fn import_refuses_cycles() {
    let sandbox = recorded();
    let before = document(&sandbox);
    for (graph, cycle) in [
        (
            r#"{"x": ["y"], "y": ["z"], "z": ["x"]}"#,
            "/x → /z → /y → /x",
        ),
        (r#"{"x": ["x"]}"#, "/x → /x"),
    ] {
        sandbox.write("/graph.json", graph);
        let refused = sandbox.orch("state import graph.json");
        assert_eq!(refused.code(), 4, "{refused}");
        assert!(refused.stderr.contains(cycle), "{cycle}: {refused}");
    }
    assert_eq!(document(&sandbox), before);
    // Stacks that were recorded before count as well.
    change_document(&sandbox, |document| {
        document["stacks"]["/a"]["after"] = json!(["/new"]);
    });
    sandbox.write("/graph.json", r#"{"new": ["c"]}"#);
    let refused = sandbox.orch("state import graph.json");
    assert!(
        refused.stderr.contains("in a cycle: /a → /c → /new → /a"),
        "{refused}"
    );
}

#[test]
fn import_refuses_a_stack_that_is_listed_twice() {
    let sandbox = recorded();
    sandbox.write("/graph.json", r#"{"x": [], "x": ["a"]}"#);
    assert_snapshot!(sandbox.orch("state import graph.json"), @"
    [stderr]
    error: not a persistent graph of CFNgin, which is an object of lists of names: `x` occurs twice at line 1 column 13
      = help: check that `graph.json` is the right file
    [exit status 4]
    ");
    sandbox.write("/graph.json", r#"{"x/y": [], "/x/y": ["a"]}"#);
    assert_snapshot!(sandbox.orch("state import graph.json"), @"
    [stderr]
    error: `/x/y` and `x/y` are the same stack
      = help: merge their lists in the file
    [exit status 4]
    ");
    for name in ["x[*]", "x/../..", "."] {
        sandbox.write("/graph.json", format!(r#"{{"{name}": []}}"#));
        let refused = sandbox.orch("state import graph.json");
        assert_eq!(refused.code(), 4, "{name}: {refused}");
    }
    assert_eq!(document(&sandbox)["serial"], 2);
}

#[test]
fn document_that_contradicts_itself_is_damaged() {
    let sandbox = recorded();
    let path = "/.orch/state/default.json";
    let text = sandbox.read(path);
    for (old, new, said) in [
        ("\"/c\":{", "\"/a\":{", "`/a` occurs twice"),
        (
            "\"/c\":{",
            "\"../../etc\":{",
            "`../../etc` is not the path of a stack",
        ),
        (
            "\"/c\":{",
            "\"/c/../../etc\":{",
            "is not the path of a stack",
        ),
        ("\"/c\":{", "\"/c/\":{", "is not the path of a stack"),
        ("\"/c\":{", "\"\":{", "is not the path of a stack"),
        (
            "\"serial\":2,\"lock\"",
            "\"serial\":18446744073709551615,\"lock\"",
            "its serial 18446744073709551615 is above",
        ),
        (
            "\"serial\":2,\"lock\"",
            "\"serial\":2,\"serial\":3,\"lock\"",
            "duplicate field `serial`",
        ),
    ] {
        let damaged = text.replacen(old, new, 1);
        assert_ne!(damaged, text, "{old}");
        sandbox.write(path, &damaged);
        for command in ["list", "taint a", "restore 18446744073709551615"] {
            let refused = sandbox.orch(&format!("state {command}"));
            assert!(
                refused.code() == 5 || command.starts_with("restore"),
                "{new}: {refused}"
            );
        }
        let refused = sandbox.orch("state show");
        assert!(refused.stderr.contains(said), "{new}: {refused}");
        assert!(
            refused.stderr.contains("`orch state restore 1`"),
            "{new}: {refused}"
        );
        assert_eq!(sandbox.read(path), damaged, "{new}");
    }
    // A backup with such a name is none.
    sandbox.write(path, &text);
    sandbox.write(
        "/.orch/state/default.backups/18446744073709551615.json",
        &text,
    );
    assert_eq!(sandbox.orch("state taint a").code(), 0);
    assert_eq!(document(&sandbox)["serial"], 3);
}
