//! What runs before what.

use insta::assert_snapshot;

use crate::support::Sandbox;

#[test]
fn order_without_constraints_is_by_path() {
    let sandbox = Sandbox::layout(
        "
        frita
        1
        boom
        3
        2
        batatinha",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    1
    2
    3
    batatinha
    boom
    frita
    ");
}

#[test]
fn order_follows_after_and_before() {
    let sandbox = Sandbox::layout(
        "
        a after /d
        b
        c before /b
        d",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    c
    b
    d
    a
    ");
}

#[test]
fn order_puts_a_stack_before_its_nested_stacks() {
    let sandbox = Sandbox::layout(
        "
        a after /z
        a/plain/directories/b
        a/plain
        z",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    z
    a
    a/plain
    a/plain/directories/b
    ");
}

#[test]
fn order_puts_the_root_stack_first() {
    let sandbox = Sandbox::layout(
        "
        /
        a
        b/c before /a",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    .
    b/c
    a
    ");
}

#[test]
fn among_stacks_that_may_run_the_lowest_path_goes_first() {
    // Not in layers: z may run as soon as a has, but c, which b sets free, is lower.
    let sandbox = Sandbox::layout(
        "
        a
        b
        c after /b
        z after /a",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    a
    b
    c
    z
    ");
}

#[test]
fn order_may_finish_a_chain_before_an_independent_stack() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a
        c after /b
        d",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    a
    b
    c
    d
    ");
}

#[test]
fn order_follows_references_to_a_directory() {
    let sandbox = Sandbox::layout(
        "
        a after /dir
        dir/s1
        dir/deep/down/s2
        z before /dir",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    z
    dir/deep/down/s2
    dir/s1
    a
    ");
}

#[test]
fn order_follows_references_to_a_tag() {
    let sandbox = Sandbox::layout(
        "
        app1 after tag:k8s:prod
        app2 after tag:k8s:dev
        infra1 [infra prod]
        infra2 [infra prod]
        infra3 [infra dev]
        k8s1 [k8s prod] after tag:infra:prod
        k8s2 [k8s dev] after tag:infra:dev",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    infra1
    infra2
    infra3
    k8s1
    app1
    k8s2
    app2
    ");
}

#[test]
fn order_allows_many_to_many_references() {
    let mut layout = String::new();
    for n in 10..40 {
        layout += &format!("base/s{n}\nabove{n} after /base\n");
    }
    let sandbox = Sandbox::layout(&layout);
    let output = sandbox.orch("list --order");
    let listed: Vec<&str> = output.stdout.lines().collect();
    assert!(listed[..30].iter().all(|path| path.starts_with("base/")));
    assert!(listed[30..].iter().all(|path| path.starts_with("above")));
    assert_eq!(listed.len(), 60);
}

#[test]
fn order_holds_through_an_unselected_stack() {
    for middle in [
        "c [x]\nb after /c before /a\na [x]", // only the middle knows
        "c [x]\nb after /c\na [x] after /b",
        "c [x] before /b\nb before /a\na [x]",
        "c [x] before /b\nb\na [x] after /b",
    ] {
        let sandbox = Sandbox::layout(middle);
        let output = sandbox.orch("list --order --tags x");
        assert_eq!(output.to_string(), "c\na\n", "{middle}");
    }
}

#[test]
fn order_holds_through_several_unselected_stacks() {
    let sandbox = Sandbox::layout(
        "
        a [x] after /b
        b after /c
        c after /d
        d after /e
        e [x]",
    );
    assert_snapshot!(sandbox.orch("list --order --tags x"), @"
    e
    a
    ");
}

#[test]
fn nesting_reaches_through_an_unselected_stack() {
    let sandbox = Sandbox::layout(
        "
        a/b/c [x]
        a/b
        a [x] after /z
        z [x]",
    );
    assert_snapshot!(sandbox.orch("list --order --tags x"), @"
    z
    a
    a/b/c
    ");
}

#[test]
fn order_holds_through_an_unselected_nested_stack() {
    // p before p/c by nesting, p/c before a by reference; p/c is not selected.
    let sandbox = Sandbox::layout(
        "
        a [x] after /p/c
        p [x]
        p/c",
    );
    assert_snapshot!(sandbox.orch("list --order --tags x"), @"
    p
    a
    ");
}

#[test]
fn unselected_stacks_do_not_change_the_order_of_independent_ones() {
    let sandbox = Sandbox::layout(
        "
        a [x] after /q
        b [x]
        q",
    );
    assert_snapshot!(sandbox.orch("list --order --tags x"), @"
    a
    b
    ");
}

#[test]
fn order_handles_a_long_chain() {
    let layout: String = (1000..3000)
        .map(|n| match n {
            2999 => "s2999\n".to_owned(),
            n => format!("s{n} after /s{}\n", n + 1),
        })
        .collect();
    let sandbox = Sandbox::layout(&layout);
    let output = sandbox.orch("list --order");
    let mut listed: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(listed.len(), 2000);
    assert_eq!((listed[0], listed[1999]), ("s2999", "s1000"));
    listed.reverse();
    assert!(listed.is_sorted());
}

#[test]
fn layers_of_which_every_other_is_not_selected_stay_in_order() {
    let mut layout = String::new();
    for layer in 10..25 {
        for n in 10..30 {
            let tag = if layer % 2 == 0 { "[x]" } else { "" };
            layout += &format!("l{layer}/s{n} {tag} after /l{}\n", layer + 1);
        }
    }
    layout += "l25/s10\n";
    let output = Sandbox::layout(&layout).orch("list --order --tags x");
    let listed: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(listed.len(), 160, "{output}");
    let layers: Vec<&str> = listed.iter().rev().map(|path| &path[..3]).collect();
    assert!(layers.is_sorted(), "{output}");
}

#[test]
fn order_does_not_depend_on_how_attributes_are_written() {
    let sandbox = Sandbox::new(
        r#"
//- /a/stack.tm
stack {
  after = [for name in ["b", "c"] : "/${name}"]
}
//- /b/stack.tm
stack {
  after = true ? ["../c"] : []
}
//- /c/stack.tm
stack {
  after  = null
  before = []
}
"#,
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    c
    b
    a
    ");
}

/// The rules of ordering, written down naively, against which random projects are checked.
mod rules {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use crate::support::Sandbox;

    const PATHS: [&str; 10] = [
        "/", "/a", "/a/b", "/a/b/c", "/a-b", "/b", "/b/d/e", "/c", "/c/a", "/d",
    ];
    const REFERENCES: [&str; 14] = [
        "/", "/a", "/a/b", "/a/b/c", "/a-b", "/b", "/b/d", "/c", "/c/a", "/d", "tag:t", "tag:u",
        "tag:t:u", "tag:t,u",
    ];

    #[derive(Debug, Clone, Default)]
    struct Stack {
        tags: BTreeSet<&'static str>,
        after: BTreeSet<&'static str>,
        before: BTreeSet<&'static str>,
    }

    type Project = BTreeMap<&'static str, Stack>;

    fn is_at_or_below(path: &str, directory: &str) -> bool {
        directory == "/" || path == directory || path.starts_with(&format!("{directory}/"))
    }

    /// The stacks that a reference names; nothing if it is the path of the stack itself.
    fn named(
        project: &Project,
        from: &str,
        attribute: &str,
        reference: &str,
    ) -> Option<Vec<&'static str>> {
        if let Some(filter) = reference.strip_prefix("tag:") {
            let matches = |stack: &Stack| {
                filter
                    .split(',')
                    .any(|all| all.split(':').all(|tag| stack.tags.contains(tag)))
            };
            let others = project
                .iter()
                .filter(|(path, stack)| **path != from && matches(stack));
            return Some(others.map(|(&path, _)| path).collect());
        }
        if reference == from {
            return None;
        }
        let contains = is_at_or_below(from, reference);
        let is_alone = contains && attribute == "after" && project.contains_key(reference);
        let is_named = |path: &str| match (is_alone, contains) {
            (true, _) => path == reference,
            (false, true) => is_at_or_below(path, reference) && !is_at_or_below(path, from),
            (false, false) => is_at_or_below(path, reference),
        };
        let named = project.keys().copied().filter(|path| is_named(path));
        Some(named.collect())
    }

    /// The selected stacks in order; nothing if that is refused.
    fn order(project: &Project, is_selected: impl Fn(&str) -> bool) -> Option<Vec<&'static str>> {
        let mut before: BTreeSet<(&str, &str)> = BTreeSet::new();
        for (&path, stack) in project {
            let above = project
                .keys()
                .filter(|&&up| up != path && is_at_or_below(path, up));
            if let Some(&nearest) = above.max_by_key(|up| up.len()) {
                before.insert((nearest, path));
            }
            for reference in &stack.after {
                before.extend(
                    named(project, path, "after", reference)?
                        .into_iter()
                        .map(|it| (it, path)),
                );
            }
            for reference in &stack.before {
                before.extend(
                    named(project, path, "before", reference)?
                        .into_iter()
                        .map(|it| (path, it)),
                );
            }
        }
        for &middle in project.keys() {
            for &first in project.keys() {
                for &last in project.keys() {
                    if before.contains(&(first, middle)) && before.contains(&(middle, last)) {
                        before.insert((first, last));
                    }
                }
            }
        }
        let mut left: BTreeSet<&str> = project
            .keys()
            .copied()
            .filter(|it| is_selected(it))
            .collect();
        if left.iter().any(|&path| before.contains(&(path, path))) {
            return None;
        }
        let mut order = Vec::new();
        while !left.is_empty() {
            let may_run = |&&path: &&&str| left.iter().all(|&it| !before.contains(&(it, path)));
            let next = *left.iter().find(may_run).expect("no cycle is left");
            left.remove(next);
            order.push(next);
        }
        Some(order)
    }

    fn some(
        of: &'static [&'static str],
        most: usize,
    ) -> impl Strategy<Value = BTreeSet<&'static str>> {
        prop::collection::btree_set(prop::sample::select(of), 0..=most)
    }

    fn stack() -> impl Strategy<Value = Stack> {
        (
            some(&["t", "u", "v"], 2),
            some(&REFERENCES, 2),
            some(&REFERENCES, 1),
        )
            .prop_map(|(tags, after, before)| Stack {
                tags,
                after,
                before,
            })
    }

    fn project() -> impl Strategy<Value = Project> {
        prop::collection::btree_map(prop::sample::select(&PATHS[..]), stack(), 1..8)
    }

    fn words(set: &BTreeSet<&str>) -> String {
        set.iter().copied().collect::<Vec<_>>().join(" ")
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 128,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn order_of_any_project_follows_the_rules(project in project(), all in any::<bool>()) {
            let mut layout = String::new();
            for (path, Stack { tags, after, before }) in &project {
                let (tags, after, before) = (words(tags), words(after), words(before));
                layout += &format!("{path} [{tags}] after {after} before {before}\n");
            }
            let sandbox = Sandbox::layout(&layout);
            let filter = if all { "" } else { "--tags v" };
            let output = sandbox.orch(&format!("list --order {filter}"));
            let listed: Vec<String> = output
                .stdout
                .lines()
                .map(|path| format!("/{}", path.trim_start_matches('.')))
                .collect();
            if let Some(expected) = order(&project, |path| all || project[path].tags.contains("v")) {
                prop_assert_eq!(listed, expected, "{}\n{}", layout, output);
            } else {
                prop_assert_eq!(output.code(), 3, "{}\n{}", layout, output);
            }
        }
    }
}
