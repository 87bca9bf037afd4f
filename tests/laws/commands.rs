//! The commands agree with the model, and with each other. Few cases, since each starts processes.

use std::path::Path;

use assert_cmd::Command;
use proptest::prelude::*;

use crate::loaded::Loaded;
use crate::model::{Meaning, ModelWish, names};
use crate::tree::{any_tree, relative, with_runnable_wish, with_wish, without_errors};

fn orch(
    root: &Path,
    wish: &ModelWish,
    arguments: &[&str],
    command: &[&str],
) -> (Option<i32>, Vec<String>) {
    let mut directory = root.to_path_buf();
    directory.extend(names(&wish.directory));
    let mut orch = Command::cargo_bin("orch").unwrap();
    orch.arg("-C").arg(directory).args(arguments);
    for filter in &wish.tags {
        orch.arg("--tags").arg(filter);
    }
    for tag in &wish.no_tags {
        orch.arg("--no-tags").arg(tag);
    }
    if !wish.recursive {
        orch.arg("--no-recursive");
    }
    let output = orch.args(command).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (
        output.status.code(),
        text.lines().map(str::to_owned).collect(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: ProptestConfig::default().cases.div_ceil(8),
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_list_prints_is_what_run_runs(
        (tree, wish) in prop_oneof![
            1 => with_wish(any_tree()),
            3 => with_wish(any_tree().prop_map(without_errors)),
            3 => with_runnable_wish().prop_map(|(tree, wish)| (without_errors(tree), wish)),
        ],
    ) {
        let loaded = Loaded::new(&tree);
        let model = &loaded.model;
        let meanings = || (0..model.stacks.len()).flat_map(|stack| {
            let written = model.stacks[stack].references.iter().flatten();
            written.map(move |written| model.meaning(stack, written))
        });
        let is_wrong = meanings().any(|meaning| match meaning {
            Meaning::Error => true,
            Meaning::Nothing => tree.is_strict,
            Meaning::Stacks(_) => false,
        });
        let is_warned = meanings().any(|meaning| meaning == Meaning::Nothing);
        let on_cycles = model.on_cycles();
        let selected = model.selection(&wish);
        let here = model.stacks.iter().any(|stack| stack.path == wish.directory);
        let (listed, ordered) = if is_wrong {
            (3, 3)
        } else if !wish.recursive && !here {
            (64, 64)
        } else if selected.is_disjoint(&on_cycles) {
            (0, 0)
        } else {
            (0, 3)
        };
        let root = &loaded.root;
        let show = |stack: usize| relative(&wish.directory, model.path(stack));
        let expected: Vec<String> = match listed {
            0 => selected.iter().map(|&stack| show(stack)).collect(),
            _ => Vec::new(),
        };
        prop_assert_eq!(orch(root, &wish, &["list"], &[]), (Some(listed), expected));
        let sequence = if ordered == 0 { model.order(&selected) } else { Vec::new() };
        let expected: Vec<String> = sequence.iter().map(|&stack| show(stack)).collect();
        prop_assert_eq!(orch(root, &wish, &["list", "--order"], &[]), (Some(ordered), expected));
        let mut expected: Vec<String> = sequence
            .iter()
            .map(|&stack| format!("{}: true", model.path(stack)))
            .collect();
        let dry = orch(root, &wish, &["run", "--dry-run"], &["--", "true"]);
        prop_assert_eq!(dry, (Some(ordered), expected.clone()));
        expected.reverse();
        let dry = orch(root, &wish, &["run", "--dry-run", "--reverse"], &["--", "true"]);
        prop_assert_eq!(dry, (Some(ordered), expected));
        let everything = ModelWish::everything();
        let valid = if is_wrong || is_warned || !on_cycles.is_empty() { 3 } else { 0 };
        prop_assert_eq!(orch(root, &everything, &["validate"], &[]).0, Some(valid));
    }
}
