//! How instances are named on the command line, where shells remove quotes.

use insta::assert_snapshot;

use super::networks;

#[test]
fn keys_without_quotes_get_an_error_that_shows_them() {
    let sandbox = networks();
    // What a shell makes of net["dev"].
    assert_snapshot!(sandbox.orch("why net[dev]"), @r#"
    [stderr]
    error: `net[dev]`: the quotes around the key are missing; in a shell, write `'net["dev"]'`
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("why app --after net[dev]"), @r#"
    [stderr]
    error: `net[dev]`: the quotes around the key are missing; in a shell, write `'net["dev"]'`
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("eval --stack /net[dev] each.key"), @r#"
    [stderr]
    error: `/net[dev]`: the quotes around the key are missing; in a shell, write `'/net["dev"]'`
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("trigger net[dev]"), @r#"
    [stderr]
    error: cannot trigger `net[dev]`: the quotes around the key are missing; in a shell, write `'net["dev"]'`
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("-C net why [dev]"), @r#"
    [stderr]
    error: `[dev]`: the quotes around the key are missing; in a shell, write `'["dev"]'`
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("why net[dve]"), @r#"
    [stderr]
    error: `net[dve]`: no instance has the key `dve`; did you mean `/net["dev"]`?
    [exit status 64]
    "#);
    sandbox.write("/names", "net[dev]\n");
    assert_snapshot!(sandbox.orch("list --stacks-from names"), @r#"
    [stderr]
    error: names names paths that are not stacks:
      line 1: `net[dev]`: the quotes around the key are missing; in a shell, write `'net["dev"]'`
    [exit status 64]
    "#);
}

#[test]
fn keys_meant_by_glob_brackets_without_a_match_get_a_hint() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch("list --match net[dev]"), @r#"
    [stderr]
    note: `--match net[dev]` matches no stack of the project; the key of an instance needs quotes: `--match 'net["dev"]'`
    note: no stack at or below `/` passes --match
    "#);
    assert_snapshot!(sandbox.orch("list --match app --exclude '**/dns[test]'"), @r#"
    app
    [stderr]
    note: `--exclude **/dns[test]` matches no stack of the project; the key of an instance needs quotes: `--exclude '**/dns["test"]'`
    "#);
    assert_snapshot!(sandbox.orch("list --match net[none]"), @"
    [stderr]
    note: `--match net[none]` matches no stack of the project
    note: no stack at or below `/` passes --match
    ");
    // Brackets that match something are left alone.
    sandbox.write("/netd/stack.tm", "stack {\n}\n");
    assert_eq!(sandbox.orch("list --match net[dev]").to_string(), "netd\n");
}

#[cfg(unix)]
#[test]
fn keys_yield_to_a_directory_with_brackets_in_its_name() {
    let sandbox = networks();
    sandbox.write("/net[dev]/stack.tm", "stack {\n}\n");
    let story = sandbox.orch("why net[dev]").stdout;
    assert!(story.starts_with("/net[dev] is selected"), "{story}");
}

#[test]
fn keys_are_suggested_where_one_stack_is_needed() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch("eval --stack net each.key"), @r#"
    [stderr]
    error: `net` has 2 instances; choose one: `'/net["dev"]'`, `'/net["prod"]'`
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("-C net eval each.key"), @r#"
    [stderr]
    error: this directory has 2 instances; choose one with `--stack`: `'/net["dev"]'`, `'/net["prod"]'`
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("why net --after account"), @r#"
    [stderr]
    error: `net` has 2 instances; choose one: `'/net["dev"]'`, `'/net["prod"]'`
    [exit status 64]
    "#);
    let data = sandbox.orch("-C net eval --format json each.key").data();
    let refused = data["refused"]["problem"].as_str().unwrap();
    assert!(
        refused.starts_with("this directory has 2 instances"),
        "{data}"
    );
    assert_eq!(
        sandbox
            .orch("-C net eval --stack '[\"dev\"]' each.key")
            .to_string(),
        "dev\n"
    );
    // One instance needs no choice.
    sandbox.write(
        "/single/stack.orch.hcl",
        "stack {\n  for_each = { only = 7 }\n}\n",
    );
    assert_eq!(
        sandbox.orch("-C single eval 'each.value + 1'").to_string(),
        "8\n"
    );
    assert_eq!(
        sandbox.orch("eval --stack single each.key").to_string(),
        "only\n"
    );
}
