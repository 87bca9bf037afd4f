//! The commands agree with the model, and with each other. Few cases, since each starts processes.

use std::path::Path;

use assert_cmd::Command;
use proptest::prelude::*;
use serde_json::Value;

use crate::loaded::Loaded;
use crate::model::{Meaning, Model, Set, names, shown};
use crate::query::{with_query, with_runnable_query};
use crate::selector::ModelQuery;
use crate::support::orch_program;
use crate::tree::{any_tree, relative, without_errors};

/// Runs `orch` with the flags of a query.
fn output(
    root: &Path,
    query: &ModelQuery,
    arguments: &[&str],
    command: &[&str],
) -> (Option<i32>, String) {
    let mut directory = root.to_path_buf();
    directory.extend(names(&query.directory));
    let mut orch = Command::new(orch_program());
    orch.arg("-C")
        .arg(directory)
        .args(arguments)
        .args(query.flags());
    if let Some(lines) = &query.named {
        orch.arg("--stacks-from=-").write_stdin(lines.join("\n"));
    }
    let output = orch.args(command).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text)
}

/// Runs `orch` with the flags of a query, for the lines that it prints.
fn orch(
    root: &Path,
    query: &ModelQuery,
    arguments: &[&str],
    command: &[&str],
) -> (Option<i32>, Vec<String>) {
    let (status, text) = output(root, query, arguments, command);
    (status, text.lines().map(str::to_owned).collect())
}

/// What `list` prints for a stack.
fn printed(model: &Model, query: &ModelQuery, stack: usize) -> String {
    let directory = relative(&query.directory, model.directory(stack));
    shown(&directory, model.stacks[stack].key())
}

/// The paths in a list of a document.
fn paths(text: &str, list: &str) -> Vec<String> {
    let document: Value = serde_json::from_str(text).unwrap();
    let entries = document[list].as_array().unwrap().iter();
    let path = |entry: &Value| entry["path"].as_str().map(str::to_owned);
    entries.filter_map(path).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: ProptestConfig::default().cases.div_ceil(8),
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_list_prints_is_what_run_runs(
        (tree, query) in prop_oneof![
            1 => with_query(any_tree()),
            3 => with_query(any_tree().prop_map(without_errors)),
            3 => with_runnable_query().prop_map(|(tree, query)| (without_errors(tree), query)),
        ],
    ) {
        let loaded = Loaded::new(&tree);
        let model = &loaded.model;
        let meanings = || (0..model.stacks.len()).flat_map(|stack| {
            let attributes = model.stacks[stack].references.iter().enumerate();
            attributes.flat_map(move |(attribute, written)| {
                let written = written.iter();
                written.map(move |written| {
                    let has_empty_tag = model.has_empty_tag(stack, written);
                    (model.meaning(stack, attribute, written), has_empty_tag)
                })
            })
        });
        let is_wrong = meanings().any(|(meaning, _)| match meaning {
            Meaning::Error => true,
            Meaning::Nothing => tree.is_strict,
            Meaning::Itself | Meaning::Alone | Meaning::Stacks(_) => false,
        });
        let is_warned = meanings().any(|(meaning, has_empty_tag)| match meaning {
            Meaning::Itself | Meaning::Nothing => true,
            Meaning::Stacks(_) => has_empty_tag,
            Meaning::Error | Meaning::Alone => false,
        });
        let on_cycles = model.on_cycles();
        let selected = model.selection(&query);
        let here = model.stacks.iter().any(|stack| stack.directory == query.directory);
        let (listed, ordered) = if is_wrong {
            (3, 3)
        } else if !query.recursive && !here {
            (64, 64)
        } else if selected.is_disjoint(&on_cycles) {
            (0, 0)
        } else {
            (0, 3)
        };
        let root = &loaded.root;
        let show = |stack: usize| printed(model, &query, stack);
        let expected: Vec<String> = match listed {
            0 => selected.iter().map(|&stack| show(stack)).collect(),
            _ => Vec::new(),
        };
        prop_assert_eq!(orch(root, &query, &["list"], &[]), (Some(listed), expected));
        let sequence = if ordered == 0 { model.order(&selected) } else { Vec::new() };
        let expected: Vec<String> = sequence.iter().map(|&stack| show(stack)).collect();
        prop_assert_eq!(orch(root, &query, &["list", "--order"], &[]), (Some(ordered), expected));
        let mut expected: Vec<String> = sequence
            .iter()
            .map(|&stack| format!("{}: true", model.path(stack)))
            .collect();
        let dry = orch(root, &query, &["run", "--dry-run"], &["--", "true"]);
        prop_assert_eq!(dry, (Some(ordered), expected.clone()));
        expected.reverse();
        let dry = orch(root, &query, &["run", "--dry-run", "--reverse"], &["--", "true"]);
        prop_assert_eq!(dry, (Some(ordered), expected));
        let everything = ModelQuery::everything();
        let valid = if is_wrong || is_warned || !on_cycles.is_empty() { 3 } else { 0 };
        prop_assert_eq!(orch(root, &everything, &["validate"], &[]).0, Some(valid));
    }
    #[test]
    fn every_command_and_every_format_has_the_same_stacks((tree, query) in with_runnable_query()) {
        let tree = without_errors(tree);
        let loaded = Loaded::new(&tree);
        let (model, root) = (&loaded.model, &loaded.root);
        let here = model.stacks.iter().any(|stack| stack.directory == query.directory);
        prop_assume!(query.recursive || here);
        let selected = model.selection(&query);
        let expected: Vec<String> = selected.iter().map(|&stack| model.path(stack).to_owned()).collect();
        for command in ["list", "env"] {
            let (status, text) = output(root, &query, &[command, "--format=json"], &[]);
            prop_assert_eq!(status, Some(0));
            prop_assert_eq!(&paths(&text, "stacks"), &expected, "{}", command);
        }
        let (status, text) = output(root, &query, &["graph", "--format=json"], &[]);
        prop_assert_eq!(status, Some(0));
        prop_assert_eq!(&paths(&text, "nodes"), &expected);
        let ordered: Vec<String> = model.order(&selected).iter().map(|&stack| model.path(stack).to_owned()).collect();
        let (_, text) = output(root, &query, &["list", "--format=json", "--order"], &[]);
        prop_assert_eq!(&paths(&text, "stacks"), &ordered);
        let (_, why) = orch(root, &query, &["list", "--why"], &[]);
        let plain: Vec<&str> = why.iter().map(|line| line.split_once("  # ").unwrap().0).collect();
        prop_assert_eq!(plain, orch(root, &query, &["list"], &[]).1);
    }

    #[test]
    fn a_list_names_what_it_lists((tree, query) in with_query(any_tree().prop_map(without_errors))) {
        let loaded = Loaded::new(&tree);
        let (model, root) = (&loaded.model, &loaded.root);
        let here = model.stacks.iter().any(|stack| stack.directory == query.directory);
        prop_assume!(query.recursive || here);
        let (status, lines) = orch(root, &query, &["list"], &[]);
        prop_assert_eq!(status, Some(0));
        let selected = model.selection(&query);
        // What is listed is found again, and nothing else but what it wants.
        let again = |directory: &str| ModelQuery {
            directory: directory.to_owned(),
            named: Some(lines.clone()),
            ..ModelQuery::everything()
        };
        let named: Set = (0..model.stacks.len())
            .filter(|&stack| model.line(&again(&query.directory), stack).is_some())
            .collect();
        prop_assert_eq!(&named, &selected);
        let listed = orch(root, &again(&query.directory), &["list"], &[]);
        let expected = model.selection(&again(&query.directory));
        let show = |stack: &usize| printed(model, &query, *stack);
        prop_assert_eq!(&listed, &(Some(0), expected.iter().map(show).collect()));
        if query.directory == "/" && query.neighbours.is_empty() && query.exclude.is_empty() {
            prop_assert_eq!(listed.1, lines);
        }
    }
}
