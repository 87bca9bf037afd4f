//! Why a stack is selected, and which flags are in the way if it is not.

use insta::assert_snapshot;

use super::SHOP;
use crate::support::Sandbox;

#[test]
fn why_shows_reasons_and_neighbours() {
    let sandbox = Sandbox::layout(SHOP);
    assert_snapshot!(sandbox.orch("why database --tags data"), @"
    /database is selected
      at or below /
      matches --tags data

    its inputs (add --changed to see which have changed)
      /database, its own directory

    it runs after
      /network, after database/stack.tm:3, not selected
      /network/dns, after database/stack.tm:3, not selected

    it runs before
      /app, after app/stack.tm:3, not selected
    ");
}

#[test]
fn why_names_the_stack_that_wants_another() {
    let sandbox = Sandbox::layout(SHOP);
    assert_snapshot!(sandbox.orch("why monitoring --tags web"), @"
    /monitoring is selected
      wanted by /app (app/stack.tm:4)

    its inputs (add --changed to see which have changed)
      /monitoring, its own directory

    nothing runs before it

    nothing runs after it
    ");
    assert_snapshot!(sandbox.orch("why sandbox --tags web"), @"
    /sandbox is selected
      names /app in `wanted_by` (sandbox/stack.tm:3)

    its inputs (add --changed to see which have changed)
      /sandbox, its own directory

    nothing runs before it

    nothing runs after it
    ");
}

#[test]
fn why_names_each_excluding_filter_and_its_fix() {
    let sandbox = Sandbox::layout(SHOP);
    sandbox.write("/chosen", "/network\n");
    let flags = "--tags data --no-tags web --match '*/dns' --stacks-from ../chosen";
    assert_snapshot!(sandbox.orch(&format!("-C network why /app {flags}")), @"
    /app is not selected
      not at or below /network
      does not match --match */dns
      not named in ../chosen
      does not match --tags data (its tags: web)
      matches --no-tags web

    its inputs (add --changed to see which have changed)
      /app, its own directory

    it runs after
      /database, after app/stack.tm:3, not selected

    nothing runs after it

    what would select it
      running orch in /app, or in a directory above it; and --match /app; and a line /app in ../chosen; and --tags web; and no --no-tags web
    [stderr]
    note: `--match */dns` matches no stack of the project; it is relative to `/network`, and `--match /*/dns` is relative to the project root
    ");
}

#[test]
fn why_names_the_flags_that_drop_a_stack() {
    let sandbox = Sandbox::layout(SHOP);
    assert_snapshot!(sandbox.orch("why app --exclude app --exclude 'a*' --tags data"), @"
    /app is not selected
      does not match --tags data (its tags: web)
      matches --exclude app and a*

    its inputs (add --changed to see which have changed)
      /app, its own directory

    it runs after
      /database, after app/stack.tm:3, selected

    nothing runs after it

    what would select it
      leaving out --exclude app and --exclude a*, and --tags web
      leaving out --exclude app and --exclude a*, and --include-dependents=1, since it runs after /database, which is selected
    ");
    assert_snapshot!(sandbox.orch("why database --tags data --only-dependencies"), @"
    /database is not selected
      left out by --only-dependencies; it would be selected without that flag

    its inputs (add --changed to see which have changed)
      /database, its own directory

    it runs after
      /network, after database/stack.tm:3, selected
      /network/dns, after database/stack.tm:3, selected

    it runs before
      /app, after app/stack.tm:3, not selected

    what would select it
      leaving out --only-dependencies
    ");
    assert_snapshot!(sandbox.orch("why network --exclude-dependencies"), @"
    /network is not selected
      runs before /database, after database/stack.tm:3 (--exclude-dependencies)

    its inputs (add --changed to see which have changed)
      /network, its own directory without the stacks below it

    nothing runs before it

    it runs before
      /database, after database/stack.tm:3, not selected
      /network/dns, nesting network/dns/stack.tm:1, not selected
      /app, through /database, which is not selected
        after database/stack.tm:3, after app/stack.tm:3

    what would select it
      leaving out --exclude-dependencies
    ");
}

#[test]
fn why_suggests_removing_only_the_flags_that_exclude() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a
        c after /b",
    );
    let tail = |flags: &str| {
        let story = sandbox.orch(&format!("why {flags}")).stdout;
        story.rsplit("\n\n").next().unwrap().to_owned()
    };
    assert_snapshot!(tail("b --match a --only-dependents --exclude-dependencies"), @"
    what would select it
      leaving out --exclude-dependencies
    ");
    assert_snapshot!(tail("b --match a --include-dependents --exclude b"), @"
    what would select it
      leaving out --exclude b
    ");
    assert_snapshot!(tail("c --match a --include-dependents=1"), @"
    what would select it
      --match /c
      --include-dependents=2 instead of --include-dependents=1, since it runs after /a, which is selected
    ");
}

#[test]
fn why_suggests_no_excluded_stack_that_wants_another() {
    let sandbox = Sandbox::layout(
        "
        a wants /w
        s
        w
        z wanted_by /a /s",
    );
    assert_snapshot!(sandbox.orch("why w --tags none --exclude a"), @"
    /w is not selected
      does not match --tags none (it has no tags)

    its inputs (add --changed to see which have changed)
      /w, its own directory

    nothing runs before it

    nothing runs after it

    what would select it
      no --tags, since it has none
    [stderr]
    note: in `--tags`: no stack of the project has the tag `none`
    ");
    assert_snapshot!(sandbox.orch("why z --tags none --exclude a"), @"
    /z is not selected
      does not match --tags none (it has no tags)

    its inputs (add --changed to see which have changed)
      /z, its own directory

    nothing runs before it

    nothing runs after it

    what would select it
      no --tags, since it has none
      selecting /s, which it names in `wanted_by` (z/stack.tm:2)
    [stderr]
    note: in `--tags`: no stack of the project has the tag `none`
    ");
    assert_snapshot!(sandbox.orch("why w --match a --exclude w"), @"
    /w is not selected
      matches --exclude w

    its inputs (add --changed to see which have changed)
      /w, its own directory

    nothing runs before it

    nothing runs after it

    what would select it
      leaving out --exclude w
    ");
}

#[cfg(unix)] // not every system has names like these
#[test]
fn why_suggests_commands_that_can_be_typed() {
    let sandbox = Sandbox::layout("app");
    for stack in ["/[g]", "/sp ace", "/it's", "/{a,b}*"] {
        sandbox.write(&format!("{stack}/stack.tm"), "stack {}\n");
        let quoted = shell_words::quote(stack);
        let story = sandbox.orch(&format!("why {quoted} --match app")).stdout;
        let advice = story.lines().find(|line| line.starts_with("  --match "));
        let listed = sandbox.orch(&format!("list {}", advice.unwrap()));
        assert_eq!(listed.stdout.trim_end(), &stack[1..]);
    }
}

#[test]
fn why_suggests_commands_that_select_only_this_stack() {
    let sandbox = Sandbox::layout(
        "
        a/b [x y]
        a/b/nested [x]
        c
        d after /c
        e after /d",
    );
    for (stack, flags, listed) in [
        ("a/b", "--match c", "a/b\n"),
        ("a/b", "--tags none", "a/b\n"),
        ("d", "--match c", "d\n"),
    ] {
        let story = sandbox.orch(&format!("why {stack} {flags} --format json"));
        let filter = &story.json()["would_select"]["filters"][0];
        let list = sandbox.orch(&format!("list {}", filter["flag"].as_str().unwrap()));
        assert_eq!(list.stdout, listed, "{filter}");
    }
    let story = sandbox.orch("why d --match c --format json").json();
    assert_eq!(
        story["would_select"]["or"][0]["flag"],
        "--include-dependents=1"
    );
    let list = sandbox.orch("list --match c --include-dependents=1");
    assert_eq!(list.stdout, "c\nd\n");
}

#[test]
fn why_says_that_a_flag_drops_the_stacks_that_want_it() {
    let sandbox = Sandbox::layout(
        "
        a [x]
        b after /a wants /w
        c [y] after /b
        w",
    );
    assert_snapshot!(sandbox.orch("why w --tags x --include-dependents=1 --exclude-dependents"), @"
    /w is not selected
      it would be selected without --exclude-dependents

    its inputs (add --changed to see which have changed)
      /w, its own directory

    nothing runs before it

    nothing runs after it

    what would select it
      leaving out --exclude-dependents
    ");
}

#[test]
fn why_suggests_the_flag_that_adds_a_neighbour() {
    let sandbox = Sandbox::layout(SHOP);
    assert_snapshot!(sandbox.orch("why app --tags base"), @"
    /app is not selected
      does not match --tags base (its tags: web)

    its inputs (add --changed to see which have changed)
      /app, its own directory

    it runs after
      /database, after app/stack.tm:3, not selected
      /network, through /database, which is not selected
        after database/stack.tm:3, after app/stack.tm:3
      /network/dns, through /database, which is not selected
        after database/stack.tm:3, after app/stack.tm:3

    nothing runs after it

    what would select it
      --tags web
      --include-dependents=2, since it runs after /network, which is selected
    ");
    assert_snapshot!(sandbox.orch("why app --tags base --include-dependents=1"), @"
    /app is not selected
      does not match --tags base (its tags: web)

    its inputs (add --changed to see which have changed)
      /app, its own directory

    it runs after
      /database, after app/stack.tm:3, selected

    nothing runs after it

    what would select it
      --tags web
      --include-dependents=2 instead of --include-dependents=1, since it runs after /network, which is selected
    ");
    assert_snapshot!(sandbox.orch("why app --tags base --include-dependents"), @"
    /app is selected
      runs after /database, after app/stack.tm:3 (--include-dependents)

    its inputs (add --changed to see which have changed)
      /app, its own directory

    it runs after
      /database, after app/stack.tm:3, selected

    nothing runs after it
    ");
}
