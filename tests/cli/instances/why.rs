//! `orch why` for one instance, and for all in a directory.

use insta::assert_snapshot;

use super::networks;

#[test]
fn why_explains_a_single_instance() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch("why 'net[\"dev\"]' --tags prod"), @r#"
    /net["dev"] is not selected
      does not match --tags prod (its tags: dev, net)

    its inputs (add --changed to see which have changed)
      /net, its own directory without the stacks below it

    it runs after
      /account["dev"], after net/stack.orch.hcl:5, not selected

    it runs before
      /app, after app/stack.tm:2, not selected
      /net/dns["dev"], nesting net/dns/stack.orch.hcl:1, not selected
      /net/dns["test"], nesting net/dns/stack.orch.hcl:1, not selected

    what would select it
      --tags dev:net
    "#);
}

/// What is said to select an instance does select it.
#[test]
fn why_suggests_flags_that_name_the_instance() {
    let sandbox = networks();
    sandbox.write(
        "/[odd]/stack.orch.hcl",
        "stack {\n  for_each = [\"a*\"]\n}\n",
    );
    sandbox.write("/stack.orch.hcl", "stack {\n  for_each = [\"r\"]\n}\n");
    for stack in ["/net[\"dev\"]", "/[odd][\"a*\"]", "/[\"r\"]"] {
        let why = sandbox.orch_with("why --match none --format json", |command| {
            command.arg(stack);
        });
        let flag = why.json()["would_select"]["filters"][0]["flag"].clone();
        let selected = sandbox.orch_with("list", |command| {
            command.arg(flag.as_str().unwrap());
        });
        assert_eq!(
            selected.stdout.lines().count(),
            1,
            "{stack}: {flag} {selected}"
        );
        let name = stack.trim_start_matches('/');
        assert!(
            selected.stdout.trim_start_matches('.').contains(name),
            "{selected}"
        );
    }
    assert_snapshot!(sandbox.orch("-C app why '/net[\"dev\"]'"), @r#"
    /net["dev"] is not selected
      not at or below /app

    its inputs (add --changed to see which have changed)
      /net, its own directory without the stacks below it

    it runs after
      /["r"], nesting net/stack.orch.hcl:1, not selected
      /account["dev"], after net/stack.orch.hcl:5, not selected

    it runs before
      /app, after app/stack.tm:2, selected
      /net/dns["dev"], nesting net/dns/stack.orch.hcl:1, not selected
      /net/dns["test"], nesting net/dns/stack.orch.hcl:1, not selected

    what would select it
      running orch in /net, or in a directory above it
      --include-dependencies=1, since it runs before /app, which is selected
    "#);
    sandbox.write("/names", "app\n");
    let why = sandbox
        .orch("why 'net[\"dev\"]' --stacks-from names")
        .stdout;
    assert!(why.contains("  a line /net[\"dev\"] in names"), "{why}");
}

#[test]
fn why_explains_all_instances_of_a_directory() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch("why net --match 'net[\"dev\"]'"), @r#"
    /net["dev"] is selected
      at or below /
      matches --match net["dev"]

    its inputs (add --changed to see which have changed)
      /net, its own directory without the stacks below it

    it runs after
      /account["dev"], after net/stack.orch.hcl:5, not selected

    it runs before
      /app, after app/stack.tm:2, not selected
      /net/dns["dev"], nesting net/dns/stack.orch.hcl:1, not selected
      /net/dns["test"], nesting net/dns/stack.orch.hcl:1, not selected

    /net["prod"] is not selected
      does not match --match net["dev"]

    its inputs (add --changed to see which have changed)
      /net, its own directory without the stacks below it

    it runs after
      /account["prod"], after net/stack.orch.hcl:5, not selected

    it runs before
      /app, after app/stack.tm:2, not selected
      /net/dns["test"], nesting net/dns/stack.orch.hcl:1, not selected

    what would select it
      --match '/net["prod"]'
    "#);
    let all = sandbox.orch("why net").to_string();
    assert_eq!(sandbox.orch("why '/net[*]'").to_string(), all);
    assert_eq!(
        sandbox
            .orch("-C net why .")
            .to_string()
            .matches("is selected")
            .count(),
        2
    );
    let story = sandbox.orch("-C net why '[\"dev\"]'").stdout;
    assert!(story.starts_with("/net[\"dev\"] is selected"), "{story}");
    assert_eq!(sandbox.orch("-C net why '.[\"dev\"]'").stdout, story);
    assert_eq!(sandbox.orch("-C net why '/net[\"dev\"]'").stdout, story);
}

#[test]
fn why_prints_all_instances_as_json() {
    let sandbox = networks();
    let one = sandbox.orch("why 'net[\"dev\"]' --format json").json();
    assert_eq!(one["path"], "/net[\"dev\"]");
    assert!(one.get("instances").is_none(), "{one}");
    let both = sandbox.orch("why net --format json").json();
    assert!(both.get("path").is_none(), "{both}");
    assert_eq!(both["stacks"].as_array().unwrap().len(), 2);
    let instances = both["instances"].as_array().unwrap();
    let told: Vec<_> = instances
        .iter()
        .map(|it| (&it["path"], &it["key"], &it["name"]))
        .collect();
    assert_snapshot!(serde_json::to_string(&told).unwrap(), @r#"[["/net[\"dev\"]","dev","network dev"],["/net[\"prod\"]","prod","network prod"]]"#);
    let names = |it: &serde_json::Value| -> Vec<String> {
        it.as_object().unwrap().keys().cloned().collect()
    };
    // Each says what the document of one stack says.
    for name in names(&instances[0]) {
        assert!(one.get(&name).is_some(), "{name}");
    }
    assert_eq!(instances[0]["runs_after"], one["runs_after"]);
}

#[test]
fn why_after_takes_single_instances() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch("why 'net[\"dev\"]' --after 'account[\"dev\"]'"), @r#"
    /net["dev"] runs after /account["dev"]
      /net["dev"] runs after /account["dev"], after net/stack.orch.hcl:5
    "#);
    assert_snapshot!(sandbox.orch("why 'net[\"dev\"]' --after 'account[\"prod\"]'"), @r#"/net["dev"] does not run after /account["prod"]: nothing orders the two"#);
    assert_snapshot!(sandbox.orch("why 'net/dns[\"test\"]' --after 'account[\"prod\"]'"), @r#"
    /net/dns["test"] runs after /account["prod"]
      /net/dns["test"] runs after /net["prod"], nesting net/dns/stack.orch.hcl:1
      /net["prod"] runs after /account["prod"], after net/stack.orch.hcl:5
    "#);
    assert_snapshot!(sandbox.orch("why app --after net"), @r#"
    [stderr]
    error: `net` has 2 instances; choose one: `'/net["dev"]'`, `'/net["prod"]'`
    [exit status 64]
    "#);
    let data = sandbox
        .orch("why app --after 'account[\"dev\"]' --format json")
        .json();
    assert_eq!(data["stacks"][1]["key"], "dev");
    assert_eq!(data["after"], "/account[\"dev\"]");
}

#[test]
fn why_suggests_an_existing_instance() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch("why 'net[\"prd\"]'"), @r#"
    [stderr]
    error: `net["prd"]`: no instance has the key `prd`; did you mean `/net["prod"]`?
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("why 'app[*]'"), @"
    [stderr]
    error: `app[*]`: this stack has no instances
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("why 'none[\"dev\"]'"), @r#"
    [stderr]
    error: `none["dev"]`: does not exist; did you mean `/net["dev"]`?
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("why dns"), @r#"
    [stderr]
    error: `dns`: does not exist; did you mean `/net/dns["dev"]` or `/net/dns["test"]`?
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("why 'network dev'"), @r#"
    [stderr]
    error: `network dev`: does not exist; did you mean `/net["dev"]`?
    [exit status 64]
    "#);
}
