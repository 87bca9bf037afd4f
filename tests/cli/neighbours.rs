//! What lies around a selection in the graph: `--include-…`, `--only-…`, `--exclude-…`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Sandbox;

/// The stacks that `list` names with these flags, separated by spaces.
#[track_caller]
fn list(sandbox: &Sandbox, flags: &str) -> String {
    let output = sandbox.orch(&format!("list {flags}"));
    assert_eq!(output.code(), 0, "{output}");
    output.stdout.lines().collect::<Vec<_>>().join(" ")
}

/// Checks that each of these flags selects these stacks.
#[track_caller]
fn check(sandbox: &Sandbox, rows: &[(&str, &str)]) {
    for (flags, expected) in rows {
        assert_eq!(list(sandbox, flags), *expected, "{flags}");
    }
}

/// d runs after c, c after b, b after a.
fn chain() -> Sandbox {
    Sandbox::layout(
        "
        a [a]
        b [b] after /a
        c [c] after /b
        d [d] after /c",
    )
}

#[test]
fn neighbours_are_what_runs_before_and_after() {
    check(
        &chain(),
        &[
            ("--tags b --include-dependencies", "a b"),
            ("--tags b --include-dependents", "b c d"),
            ("--tags b --only-dependencies", "a"),
            ("--tags b --only-dependents", "c d"),
            ("--tags b,d --exclude-dependencies", "d"),
            ("--tags b,d --exclude-dependents", "b"),
            ("--exclude-dependencies", "d"),
            ("--exclude-dependents", "a"),
            ("--only-dependencies", "a b c"),
            ("--only-dependents", "b c d"),
            ("--tags a --include-dependencies", "a"),
            ("--tags a --only-dependencies", ""),
        ],
    );
}

#[test]
fn neighbour_depth_counts_steps() {
    check(
        &chain(),
        &[
            ("--tags a --include-dependents=1", "a b"),
            ("--tags a --include-dependents=2", "a b c"),
            ("--tags a --include-dependents=3", "a b c d"),
            ("--tags a --include-dependents=4294967295", "a b c d"),
            ("--tags a --include-dependents=all", "a b c d"),
            ("--tags d --include-dependencies=2", "b c d"),
            ("--tags d --only-dependencies=1", "c"),
            ("--tags a --only-dependents=2", "b c"),
            ("--tags a,c,d --exclude-dependents=1", "a c"),
            ("--tags a,b,d --exclude-dependencies=1", "b d"),
            // Each of what is selected has its own steps.
            ("--tags a,c --only-dependents=1", "b d"),
            ("--tags a,b --only-dependents=1", "b c"),
        ],
    );
}

#[test]
fn neighbour_depth_is_at_least_one() {
    let sandbox = chain();
    assert_snapshot!(sandbox.orch("list --include-dependencies=0"), @"
    [stderr]
    error: invalid value '0' for '--include-dependencies[=<DEPTH>]': a number of steps from 1 on, or `all`

    For more information, try '--help'.
    [exit status 64]
    ");
    for depth in ["", "-1", "1.5", "ALL", "x", "4294967296", " 1"] {
        for flag in ["include", "only", "exclude"].map(|verb| format!("--{verb}-dependents")) {
            let output = sandbox.orch(&format!("list '{flag}={depth}'"));
            assert_eq!(output.code(), 64, "{flag}={depth}: {output}");
        }
    }
    // A word that follows is none of the flag's.
    assert_eq!(sandbox.orch("list --include-dependents 1").code(), 64);
    let run = sandbox.orch("run --dry-run --tags a --include-dependents git status");
    assert_eq!(run.stdout.lines().next(), Some("/a: git status"));
}

#[test]
fn neighbour_flags_are_explained_in_the_help() {
    let sandbox = chain();
    let topic = sandbox.orch("help selection").stdout;
    assert!(topic.contains("1. all stacks of the project;\n"), "{topic}");
    for command in ["list", "run", "graph", "env", "why"] {
        let help = sandbox.orch(&format!("{command} --help"));
        assert_eq!(help.code(), 0);
        assert!(help.stdout.contains("orch help selection"), "{command}");
        let help: Vec<&str> = help.stdout.split_whitespace().collect();
        let help = help.join(" ");
        assert!(help.contains("and the like follow only data"), "{command}");
    }
}

#[test]
fn neighbour_flags_allow_one_replacement() {
    let sandbox = chain();
    assert_snapshot!(sandbox.orch("list --only-dependencies --only-dependents"), @"
    [stderr]
    error: the argument '--only-dependencies[=<DEPTH>]' cannot be used with '--only-dependents[=<DEPTH>]'

    Usage: orch list --only-dependencies[=<DEPTH>]

    For more information, try '--help'.
    [exit status 64]
    ");
    let flags = [
        "--only-dependencies",
        "--only-dependents",
        "--only-direct-dependencies",
        "--only-direct-dependents",
        "--only-all-dependents",
        "--only-output-dependencies",
    ];
    for (position, first) in flags.iter().enumerate() {
        for second in &flags[position + 1..] {
            let output = sandbox.orch(&format!("list {first} {second}"));
            assert_eq!(output.code(), 64, "{first} {second}: {output}");
        }
    }
    assert_eq!(
        sandbox
            .orch("list --include-dependents=1 --include-dependents=2")
            .code(),
        64
    );
}

#[test]
fn neighbour_steps_are_constraints() {
    let sandbox = Sandbox::layout(
        "
        a before /b
        b
        b/in
        dir/1
        dir/2
        last after /dir tag:t
        t1 [t]
        t2 [t] after tag:t",
    );
    check(
        &sandbox,
        &[
            ("--match a --include-dependents=1", "a b b/in"),
            ("--match '[b]' --include-dependents=1", "b b/in"),
            ("--match b/in --include-dependencies=1", "a b b/in"),
            (
                "--match last --include-dependencies=1",
                "dir/1 dir/2 last t1 t2",
            ),
            ("--match dir/1 --include-dependents=1", "dir/1 last"),
            ("--match t1 --only-dependents=1", "last t2"),
            ("--match t2 --only-dependencies=1", "t1"),
        ],
    );
}

#[test]
fn wants_is_no_step_but_what_is_wanted_has_neighbours() {
    let sandbox = Sandbox::layout(
        "
        a [x] wants /b
        b
        c after /b wants /d
        d",
    );
    check(
        &sandbox,
        &[
            ("--tags x --include-dependents", "a b c d"),
            ("--tags x --only-dependents", "c d"),
            ("--match c --include-dependencies", "b c d"),
        ],
    );
}

#[test]
fn neighbour_flags_keep_wanted_stacks() {
    let sandbox = Sandbox::layout(
        "
        a [x] wants /b
        b after /a
        c after /a wanted_by /a",
    );
    check(
        &sandbox,
        &[
            ("--tags x --exclude-dependents", "a b c"),
            ("--tags x --exclude-dependents --exclude b", "a c"),
            ("--match b --only-dependencies", "a b c"),
        ],
    );
    assert_snapshot!(sandbox.orch("list --why --tags x --exclude-dependents"), @"
    a  # at or below /; matches --tags x
    b  # wanted by /a (a/stack.tm:3)
    c  # names /a in `wanted_by` (c/stack.tm:3)
    ");
}

#[test]
fn neighbours_pass_no_filter() {
    let sandbox = Sandbox::layout(
        "
        apps/web [prod] after /base
        base [stage]
        top [stage] after /apps",
    );
    assert_snapshot!(sandbox.orch_in("/apps", "list --why --tags prod --no-tags stage --match web --include-dependencies --include-dependents"), @"
    web  # at or below /apps; matches --match web; matches --tags prod
    ../base  # runs before /apps/web, after apps/web/stack.tm:3 (--include-dependencies)
    ../top  # runs after /apps/web, after top/stack.tm:3 (--include-dependents)
    ");
    assert_snapshot!(sandbox.orch_in("/apps/web", "list --why --no-recursive --only-dependencies"), @"../../base  # runs before /apps/web, after apps/web/stack.tm:3 (--only-dependencies)");
}

#[test]
fn include_looks_at_what_was_selected_before_only() {
    let sandbox = chain();
    check(
        &sandbox,
        &[
            ("--tags b --only-dependents=1 --include-dependencies", "a c"),
            (
                "--tags b --include-dependencies --include-dependents",
                "a b c d",
            ),
            (
                "--tags b --include-dependencies --include-dependents=1",
                "a b c",
            ),
        ],
    );
}

#[test]
fn exclude_looks_at_what_only_and_include_leave() {
    let sandbox = chain();
    check(
        &sandbox,
        &[
            // Terramate's examples of flags combined.
            ("--tags d --only-dependencies --exclude-dependents", "a"),
            ("--tags a --include-dependents --exclude-dependencies", "d"),
            ("--tags c --include-dependencies --exclude-dependents", "a"),
            ("--only-dependencies --exclude-dependents", "a"),
            (
                "--tags b --include-dependencies --include-dependents",
                "a b c d",
            ),
            // Both look at the same stacks.
            ("--exclude-dependencies --exclude-dependents", ""),
            (
                "--tags a,d --exclude-dependencies=1 --exclude-dependents=1",
                "a d",
            ),
        ],
    );
    let fork = Sandbox::layout(
        "
        a [a]
        b after /a
        c after /b
        d after /b",
    );
    check(
        &fork,
        &[("--tags a --only-dependents --exclude-dependencies", "c d")],
    );
}

#[test]
fn neighbour_on_several_paths_is_added_once() {
    let sandbox = Sandbox::layout(
        "
        base1 [base]
        base2 [base]
        consumer after /base1 /base2
        far after /consumer /base1",
    );
    assert_snapshot!(sandbox.orch("list --why --tags base --include-dependents"), @"
    base1  # at or below /; matches --tags base
    base2  # at or below /; matches --tags base
    consumer  # runs after /base1, after consumer/stack.tm:2 (--include-dependents)
    far  # runs after /base1, after far/stack.tm:2 (--include-dependents)
    ");
    assert_snapshot!(sandbox.orch("list --why --match far --only-dependencies"), @"
    base1  # runs before /far, after far/stack.tm:2 (--only-dependencies)
    base2  # runs before /consumer, after consumer/stack.tm:2 (--only-dependencies)
    consumer  # runs before /far, after far/stack.tm:2 (--only-dependencies)
    ");
}

#[test]
fn run_takes_neighbours_in_order() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b after /c
        c",
    );
    assert_snapshot!(sandbox.orch("run --dry-run --match b --include-dependencies git"), @"
    /c: git
    /b: git
    ");
    assert_snapshot!(sandbox.orch("run --dry-run --reverse --match c --include-dependents git"), @"
    /a: git
    /b: git
    /c: git
    ");
    assert_snapshot!(sandbox.orch("run --dry-run --match c --only-dependents git"), @"
    /b: git
    /a: git
    ");
}

#[test]
fn neighbour_search_ends_in_a_cycle() {
    let sandbox = Sandbox::layout(
        "
        a [a] after /c
        b after /a
        c after /b
        d after /c
        e [e]",
    );
    check(
        &sandbox,
        &[
            ("--tags a --include-dependents", "a b c d"),
            ("--tags a --include-dependents=1", "a b"),
            ("--tags a --include-dependencies", "a b c"),
            // It runs before itself.
            ("--tags a --only-dependents", "a b c d"),
            ("--tags a --only-dependents=2", "b c"),
            ("--tags a --only-dependents=3", "a b c d"),
            ("--exclude-dependents", "e"),
            ("--exclude-dependencies", "d e"),
        ],
    );
    assert_eq!(
        sandbox.orch("graph --tags a --include-dependencies").code(),
        0
    );
    let run = sandbox.orch("run --dry-run --tags e --include-dependents git");
    assert_eq!(run.stdout, "/e: git\n");
    let run = sandbox.orch("run --dry-run --match d --include-dependencies git");
    assert_eq!((run.code(), run.stdout.as_str()), (3, ""));
}

#[test]
fn neighbour_search_passes_through_excluded_stacks() {
    let sandbox = chain();
    assert_snapshot!(sandbox.orch("list --why --tags a --include-dependents --exclude b"), @"
    a  # at or below /; matches --tags a
    c  # runs after /b, after c/stack.tm:3 (--include-dependents)
    d  # runs after /c, after d/stack.tm:3 (--include-dependents)
    ");
    check(
        &sandbox,
        &[
            ("--tags a --only-dependents --exclude c", "b d"),
            ("--tags a --only-dependents=1 --exclude b", ""),
            // What is never selected excludes nothing.
            ("--exclude-dependencies --exclude d", "c"),
        ],
    );
}

#[test]
fn json_names_the_step_to_a_neighbour() {
    let sandbox = chain();
    let reasons = |flags: &str| {
        let list = sandbox.orch(&format!("list --format json {flags}")).json();
        let stacks = list["stacks"].as_array().unwrap().clone();
        stacks
            .iter()
            .map(|stack| {
                (
                    stack["path"].as_str().unwrap().to_owned(),
                    stack["reasons"].clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    let dependent = json!([{
        "kind": "dependent",
        "detail": "runs after /a, after b/stack.tm:3 (--include-dependents=1)",
        "stack": "/a",
        "file": "b/stack.tm",
        "line": 3
    }]);
    assert_eq!(
        reasons("--tags a --include-dependents=1")[1],
        ("/b".to_owned(), dependent)
    );
    let dependency = json!([
        {"kind": "directory", "detail": "at or below /"},
        {"kind": "tags", "detail": "matches --tags b,c"},
        {
            "kind": "dependency",
            "detail": "runs before /c, after c/stack.tm:3 (--only-dependencies)",
            "stack": "/c",
            "file": "c/stack.tm",
            "line": 3
        }
    ]);
    assert_eq!(
        reasons("--tags b,c --only-dependencies")[1],
        ("/b".to_owned(), dependency)
    );
}

#[test]
fn neighbours_that_leave_nothing_are_named() {
    let sandbox = chain();
    assert_snapshot!(sandbox.orch("list --tags a --only-dependencies"), @"
    [stderr]
    note: 1 stack would be selected, but `--only-dependencies` leaves none
    ");
    assert_snapshot!(sandbox.orch("list --exclude-dependents --exclude-dependencies=2"), @"
    [stderr]
    note: 4 stacks would be selected, but `--exclude-dependencies=2` and `--exclude-dependents` leave none
    ");
    assert_snapshot!(sandbox.orch("list --tags none --only-dependencies"), @"
    [stderr]
    note: in `--tags`: no stack of the project has the tag `none`
    note: no stack at or below `/` passes the tag filters
    ");
    assert_snapshot!(sandbox.orch("list --tags a --only-dependents=1 --exclude b"), @"
    [stderr]
    note: 1 stack would be selected, but `--only-dependents=1` leaves none
    ");
}
