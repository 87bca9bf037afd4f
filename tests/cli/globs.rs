//! `--match` and `--exclude`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Sandbox;

fn sandbox() -> Sandbox {
    Sandbox::layout(
        "
        prod
        prod/net
        prod/net/dns
        prod/web
        production
        stage/net
        stage/web",
    )
}

/// The stacks that `list` names in a directory with these flags, separated by spaces.
#[track_caller]
fn list(sandbox: &Sandbox, directory: &str, flags: &str) -> String {
    let output = sandbox.orch_in(directory, &format!("list {flags}"));
    assert_eq!(output.code(), 0, "{output}");
    output.stdout.lines().collect::<Vec<_>>().join(" ")
}

#[test]
fn glob_without_wildcards_matches_everything_below() {
    let sandbox = sandbox();
    for (flags, expected) in [
        ("--match prod", "prod prod/net prod/net/dns prod/web"),
        ("--match prod/", "prod prod/net prod/net/dns prod/web"),
        ("--match ./prod", "prod prod/net prod/net/dns prod/web"),
        ("--match /prod", "prod prod/net prod/net/dns prod/web"),
        ("--match 'prod/**'", "prod prod/net prod/net/dns prod/web"),
        ("--match 'pro[d]/**'", "prod prod/net prod/net/dns prod/web"),
        ("--match 'prod/*'", "prod/net prod/web"),
        ("--match 'prod/*/'", "prod/net prod/web"),
        ("--match 'prod/**/*'", "prod/net prod/net/dns prod/web"),
        ("--match 'pro[d]'", "prod"),
        ("--match 'prod*'", "prod production"),
        ("--match '*/net'", "prod/net stage/net"),
        ("--match '**/net'", "prod/net stage/net"),
        ("--match '**/dns'", "prod/net/dns"),
        ("--match '{stage,prod}/web'", "prod/web stage/web"),
        ("--match '*/[!n]*'", "prod/web stage/web"),
        ("--match 'prod/we?'", "prod/web"),
        ("--match prod/web --match stage/web", "prod/web stage/web"),
        (
            "--match '**'",
            "prod prod/net prod/net/dns prod/web production stage/net stage/web",
        ),
        ("--match . --exclude 'prod*/**'", "stage/net stage/web"),
    ] {
        assert_eq!(list(&sandbox, "/", flags), expected, "{flags}");
    }
}

#[test]
fn siblings_that_begin_alike_are_not_meant() {
    let sandbox = Sandbox::layout(
        "
        test
        test/in
        test-foo
        tests",
    );
    assert_eq!(list(&sandbox, "/", "--match test"), "test test/in");
    assert_eq!(list(&sandbox, "/", "--match 'test/**'"), "test test/in");
    assert_eq!(list(&sandbox, "/", "--exclude test"), "test-foo tests");
    assert_eq!(list(&sandbox, "/", "--exclude /test/"), "test-foo tests");
    assert_eq!(list(&sandbox, "/", "--exclude 'test/**'"), "test-foo tests");
}

#[test]
fn globs_begin_at_the_current_directory_or_at_the_root() {
    let sandbox = sandbox();
    assert_eq!(list(&sandbox, "/prod", "--match net"), "net net/dns");
    assert_eq!(list(&sandbox, "/", "-C prod --match 'n*'"), "net");
    assert_eq!(list(&sandbox, "/prod", "--match '/*/net'"), "net");
    assert_eq!(list(&sandbox, "/prod", "--match ."), ". net net/dns web");
    assert_eq!(list(&sandbox, "/prod", "--match '**'"), ". net net/dns web");
    assert_eq!(list(&sandbox, "/prod", "--match '*'"), "net web");
    assert_eq!(list(&sandbox, "/prod", "--match /prod/web"), "web");
    assert_eq!(list(&sandbox, "/prod/net", "--match ../net/dns"), "dns");
    assert_eq!(list(&sandbox, "/prod/net", "--match '../*/dns'"), "dns");
    assert_eq!(list(&sandbox, "/prod/net", "--exclude ../net/dns"), ".");
}

#[test]
fn glob_matches_the_root_stack_only_by_a_slash() {
    let sandbox = Sandbox::layout(
        "
        /
        a
        a/b",
    );
    for (flags, expected) in [
        ("--match .", ". a a/b"),
        ("--match /", ". a a/b"),
        ("--match '**'", ". a a/b"),
        ("--match '/**'", ". a a/b"),
        ("--match '*'", "a"),
        ("--match '/*'", "a"),
        ("--match '**/*'", "a a/b"),
        ("--match '*/**'", "a a/b"),
        ("--exclude '*'", ". a/b"),
        ("--exclude '*/**'", "."),
    ] {
        assert_eq!(list(&sandbox, "/", flags), expected, "{flags}");
    }
}

#[test]
fn glob_with_two_stars_at_the_end_matches_the_directory_too() {
    let sandbox = sandbox();
    let all = "prod prod/net prod/net/dns prod/web";
    assert_eq!(list(&sandbox, "/", "--match '{prod,none}/**'"), all);
    assert_eq!(list(&sandbox, "/", "--match 'prod/**/**'"), all);
    assert_eq!(
        list(&sandbox, "/", "--match '**/net/**'"),
        "prod/net prod/net/dns stage/net"
    );
    assert_eq!(
        list(&sandbox, "/prod", "--match '**/**'"),
        ". net net/dns web"
    );
    assert_eq!(list(&sandbox, "/", "--match 'p?od//**'"), all);
}

#[test]
fn glob_classes_match_within_a_name() {
    let sandbox = Sandbox::layout(
        "
        a-b
        a/b
        axb",
    );
    assert_eq!(list(&sandbox, "/", "--match 'a[!x]b'"), "a-b");
    assert_eq!(list(&sandbox, "/", "--match 'a[^x]b'"), "a-b");
    assert_eq!(list(&sandbox, "/", "--exclude 'a[!x]b'"), "a/b axb");
}

#[test]
fn glob_that_is_invalid_is_a_usage_error() {
    let sandbox = sandbox();
    assert_snapshot!(sandbox.orch("list --match '[a'"), @"
    [stderr]
    error: in --match: `[a`: unclosed character class; missing ']'
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --exclude '{a'"), @"
    [stderr]
    error: in --exclude: `{a`: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --match '*/../x'"), @"
    [stderr]
    error: in --match: `*/../x`: `.` and `..` must come before the first wildcard
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --match ''"), @"
    [stderr]
    error: `--match` is empty; use `**` to match all stacks
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --exclude ''"), @"
    [stderr]
    error: `--exclude` is empty; use `**` to match all stacks
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --match ../x"), @"
    [stderr]
    error: in --match: `../x`: climbs above the project root
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch_in("/prod", "list --exclude '../../*'"), @"
    [stderr]
    error: in --exclude: `../../*`: climbs above the project root
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --match"), @"
    [stderr]
    error: a value is required for '--match <GLOB>' but none was supplied

    For more information, try '--help'.
    [exit status 64]
    ");
}

#[test]
fn glob_without_a_match_names_its_directory() {
    let sandbox = Sandbox::layout(
        "
        dev/network
        dev/network/dns",
    );
    assert_snapshot!(sandbox.orch("-C dev/network list --match dev/network"), @"
    [stderr]
    note: `--match dev/network` matches no stack of the project; it is relative to `/dev/network`, and `--match /dev/network` is relative to the project root
    note: no stack at or below `/dev/network` passes --match
    ");
    assert_snapshot!(sandbox.orch("-C dev/network list --exclude 'nope*'"), @"
    .
    dns
    [stderr]
    note: `--exclude nope*` matches no stack of the project; it is relative to `/dev/network`
    ");
}

#[test]
fn glob_without_a_match_gets_a_note() {
    let sandbox = sandbox();
    assert_snapshot!(sandbox.orch("list --match prdo --match stage"), @"
    stage/net
    stage/web
    [stderr]
    note: `--match prdo` matches no stack of the project; did you mean `/prod`?
    ");
    assert_snapshot!(sandbox.orch("list --exclude 'prdo/**' --match stage"), @"
    stage/net
    stage/web
    [stderr]
    note: `--exclude prdo/**` matches no stack of the project; did you mean `/prod/**`?
    ");
    assert_snapshot!(sandbox.orch("list --match 'nope/**'"), @"
    [stderr]
    note: `--match nope/**` matches no stack of the project
    note: no stack at or below `/` passes --match
    ");
    // It matches one, though not here.
    assert_snapshot!(sandbox.orch_in("/stage", "list --exclude /prod"), @"
    net
    web
    ");
    assert_snapshot!(sandbox.orch_in("/stage", "list --match /prod"), @"
    [stderr]
    note: no stack at or below `/stage` passes --match
    ");
}

#[test]
fn glob_combines_with_all_filters() {
    let sandbox = Sandbox::layout(
        "
        a/1 [x]
        a/2 [y]
        b/1 [x]
        b/2 [x y]",
    );
    assert_snapshot!(sandbox.orch("list --why --match '*/1' --tags x"), @"
    a/1  # at or below /; matches --match */1; matches --tags x
    b/1  # at or below /; matches --match */1; matches --tags x
    ");
    assert_eq!(
        list(&sandbox, "/", "--match '**/2' --tags x --no-tags y"),
        ""
    );
    assert_eq!(list(&sandbox, "/b", "--match '/*/2'"), "2");
    assert_eq!(list(&sandbox, "/", "--match a --exclude '*/2'"), "a/1");
    assert_eq!(list(&sandbox, "/", "--exclude 'a/1' --exclude b"), "a/2");
}

#[test]
fn glob_exclude_overrides_wants() {
    let sandbox = Sandbox::layout(
        "
        a wants /b
        b wants /c
        c
        d wanted_by /a",
    );
    assert_eq!(list(&sandbox, "/a", ""), ". ../b ../c ../d");
    assert_eq!(list(&sandbox, "/a", "--exclude /b"), ". ../d");
    assert_eq!(list(&sandbox, "/a", "--exclude '/[cd]'"), ". ../b");
    assert_eq!(list(&sandbox, "/a", "--exclude ."), "");
    assert_eq!(list(&sandbox, "/", "--match a --match c --exclude a"), "c");
}

#[test]
fn exclude_beats_every_other_flag() {
    let sandbox = Sandbox::layout(
        "
        a [x]
        b [x] after /a
        c after /b",
    );
    sandbox.write("/names", "b\na\n");
    for flags in [
        "--match b",
        "--tags x",
        "--stacks-from names",
        "--tags x --include-dependents",
        "--match c --include-dependencies",
        "--match c --only-dependencies",
    ] {
        let selected = list(&sandbox, "/", &format!("{flags} --exclude b"));
        assert!(
            !selected.split(' ').any(|stack| stack == "b"),
            "{flags}: {selected}"
        );
    }
    assert_snapshot!(sandbox.orch_in("/b", "list --no-recursive --exclude ."), @"
    [stderr]
    note: no stack at `/b` passes --exclude
    ");
}

#[test]
fn glob_flags_work_in_every_command() {
    let sandbox = sandbox();
    let flags = "--match '**/web' --exclude stage";
    assert_eq!(
        sandbox.orch(&format!("run --dry-run {flags} git")).stdout,
        "/prod/web: git\n"
    );
    let graph = sandbox.orch(&format!("graph --format json {flags}")).json();
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 1);
    let env = sandbox.orch(&format!("env --format json {flags}")).json();
    assert_eq!(env["stacks"][0]["path"], "/prod/web");
}

#[test]
fn json_names_the_glob() {
    let sandbox = sandbox();
    let list = sandbox
        .orch("list --format json --match none --match 'stage/**' --match '*/web'")
        .json();
    assert_eq!(
        list["stacks"][2]["reasons"],
        json!([
            {"kind": "directory", "detail": "at or below /"},
            {"kind": "match", "detail": "matches --match stage/**"}
        ])
    );
    assert_eq!(
        list["stacks"][0]["reasons"][1]["detail"],
        "matches --match */web"
    );
}

#[test]
fn glob_flags_are_named_in_the_note_on_an_empty_selection() {
    let sandbox = Sandbox::layout("a [x]\nb");
    sandbox.write("/names", "a\n");
    assert_snapshot!(sandbox.orch("list --match b --tags x"), @"
    [stderr]
    note: no stack at or below `/` passes --match and the tag filters
    ");
    assert_snapshot!(sandbox.orch("list --match b --stacks-from names --no-tags x --exclude b"), @"
    [stderr]
    note: no stack at or below `/` passes --match, --stacks-from, the tag filters and --exclude
    ");
    assert_snapshot!(sandbox.orch("list --exclude '**'"), @"
    [stderr]
    note: no stack at or below `/` passes --exclude
    ");
    assert_snapshot!(sandbox.orch("run --exclude . false"), @"
    [stderr]
    note: no stack at or below `/` passes --exclude
    ");
    assert_snapshot!(sandbox.orch_in("/a", "list --no-recursive --match /b"), @"
    [stderr]
    note: no stack at `/a` passes --match
    ");
}
