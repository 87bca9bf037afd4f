//! The outputs that a stack is applied with, against a search over pairs of stacks that knows no groups.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use orch::context::upstream::{Upstream, outputs_digest};
use orch::project::stack::StackIndex;
use orch::project::{Problems, Project};
use orch::selection::graph::Graph;
use orch::selection::reference::References;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::loaded::Loaded;
use crate::model::{ModelStack, Set, place};
use crate::support::host::folder;
use crate::tree::{Directory, FILTERS, Holds, acyclic_tree, any_tree};

/// Digests of the outputs of stacks, in a circle; few, so that stacks often have the same.
fn outputs() -> impl Strategy<Value = Vec<Option<String>>> {
    let digest = prop_oneof![
        2 => Just(None),
        1 => Just(Some(outputs_digest(&BTreeMap::new()))),
        3 => select(vec!["x", "y"]).prop_map(|value| Some(value.to_owned())),
    ];
    prop::collection::vec(digest, 1..12)
}

/// The outputs of each stack: those of none count as not known.
fn own(outputs: &[Option<String>], stack: usize) -> Option<&str> {
    let own = outputs[stack % outputs.len()].as_deref()?;
    ["x", "y"].contains(&own).then_some(own)
}

/// Returns the stacks that have outputs of those that a stack runs right after.
fn sources(loaded: &Loaded, outputs: &[Option<String>], stack: usize) -> Set {
    let constraints = loaded.model.constraints();
    let mut open = vec![stack];
    let mut seen = BTreeSet::from([stack]);
    let mut found = Set::new();
    while let Some(to) = open.pop() {
        for constraint in constraints.iter().filter(|it| it.to == to) {
            if own(outputs, constraint.from).is_some() {
                found.insert(constraint.from);
            } else if seen.insert(constraint.from) {
                open.push(constraint.from);
            }
        }
    }
    found
}

fn upstream(loaded: &Loaded, outputs: &[Option<String>]) -> Upstream {
    let stacks = &loaded.project.stacks;
    let own = stacks.iter().map(|(stack, _)| {
        let stack = loaded.number(stack);
        outputs[stack % outputs.len()].clone()
    });
    Upstream::new(&loaded.graph, stacks, own.collect())
}

fn all(loaded: &Loaded, upstream: &mut Upstream) -> Vec<String> {
    let stacks = 0..loaded.model.stacks.len();
    stacks
        .map(|stack| upstream.of(loaded.index(stack)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_stack_is_applied_with_changes_exactly_with_the_outputs_right_before_it(
        tree in acyclic_tree(),
        before in outputs(),
        after in outputs(),
    ) {
        let loaded = Loaded::new(&tree);
        let [mut first, mut second] = [&before, &after].map(|it| upstream(&loaded, it));
        for stack in 0..loaded.model.stacks.len() {
            let of = |outputs: &[Option<String>]| -> BTreeMap<usize, String> {
                let sources = sources(&loaded, outputs, stack).into_iter();
                let own = |it| own(outputs, it).unwrap_or_default().to_owned();
                sources.map(|it| (it, own(it))).collect()
            };
            let index = loaded.index(stack);
            let is_same = first.of(index) == second.of(index);
            prop_assert_eq!(is_same, of(&before) == of(&after), "{}", loaded.model.path(stack));
            let found: Set = loaded.numbers(first.sources(index).0).into_iter().collect();
            prop_assert_eq!(found, sources(&loaded, &before, stack));
        }
    }

    #[test]
    fn what_is_set_later_counts_as_if_it_had_been_so_from_the_beginning(
        tree in any_tree(),
        before in outputs(),
        after in outputs(),
        asked in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        let loaded = Loaded::new(&tree);
        let mut set = upstream(&loaded, &before);
        let n = loaded.model.stacks.len();
        for stack in 0..n {
            for asked in asked.iter().skip(stack % 3) {
                set.of(loaded.index(asked.index(n)));
            }
            set.set(loaded.index(stack), after[stack % after.len()].clone());
        }
        let mut fresh = upstream(&loaded, &after);
        // In another sequence.
        for stack in (0..n).rev() {
            fresh.of(loaded.index(stack));
        }
        prop_assert_eq!(all(&loaded, &mut set), all(&loaded, &mut fresh));
    }

    #[test]
    fn what_a_stack_is_applied_with_does_not_depend_on_stacks_behind_or_beside_it(
        tree in acyclic_tree(),
        outputs in outputs(),
        more in prop::collection::vec(("[0-9az]", prop::collection::vec((any::<Index>(), 0..4_usize), 0..4)), 1..4),
    ) {
        let mut tree = tree;
        // Nobody refers to what is added to the root.
        for directory in &mut tree.directories {
            let ModelStack { directory: path, references, .. } = &mut directory.stack;
            for references in references {
                references.retain(|written| place(path, written) != Some(Vec::new()));
            }
        }
        let digests = |loaded: &Loaded| -> BTreeMap<String, String> {
            let own = loaded.project.stacks.iter().map(|(_, stack)| {
                let path = stack.path.as_str();
                let position = path.bytes().map(usize::from).sum::<usize>();
                outputs[position % outputs.len()].clone()
            });
            let mut upstream = Upstream::new(&loaded.graph, &loaded.project.stacks, own.collect());
            let all = all(loaded, &mut upstream).into_iter().enumerate();
            all.map(|(stack, digest)| (loaded.model.path(stack).to_owned(), digest)).collect()
        };
        let loaded = Loaded::new(&tree);
        let alone = digests(&loaded);
        let mut larger = tree.clone();
        for (name, after) in more {
            let directory = format!("/{name}-new");
            if larger.directories.iter().any(|other| other.stack.directory == directory) {
                continue;
            }
            // They wait for stacks of the project, and for all in a directory or with a tag.
            let mut references: [Vec<String>; 4] = Default::default();
            let named = after.iter().filter(|_| !loaded.model.stacks.is_empty());
            for (named, levels) in named {
                let written = if *levels == 3 {
                    format!("tag:{}", named.get(&FILTERS[..4]))
                } else {
                        let path = loaded.model.directory(named.index(loaded.model.stacks.len()));
                        let up = path.match_indices('/').map(|(end, _)| end).filter(|end| *end > 0);
                        let ends: Vec<usize> = up.chain([path.len()]).rev().collect();
                        path[..ends[levels % ends.len()]].to_owned()
                };
                if written != "/" && !references[0].contains(&written) {
                    references[0].push(written);
                }
            }
            larger.directories.push(Directory {
                stack: ModelStack { directory, each: None, tags: vec!["new".to_owned()], references },
                holds: Holds::Stack,
                for_each: None,
                file: "stack.tm",
            });
        }
        let mut among_more = digests(&Loaded::new(&larger));
        among_more.retain(|path, _| alone.contains_key(path));
        prop_assert_eq!(among_more, alone);
    }
}

#[test]
fn a_chain_of_thousands_of_stacks_is_followed() {
    let folder = folder();
    let root = folder.path().canonicalize().unwrap();
    fs::write(root.join("orch.tm"), "terramate {\n}\n").unwrap();
    let name = |number: usize| format!("{number:04}");
    for number in 0..5_000_usize {
        let directory = root.join(name(number));
        fs::create_dir(&directory).unwrap();
        let after = number.checked_sub(1);
        let after = after.map(|it| format!("  after = [\"/{}\"]\n", name(it)));
        let block = format!("stack {{\n{}}}\n", after.unwrap_or_default());
        fs::write(directory.join("stack.tm"), block).unwrap();
    }
    let project = Project::load(&root, &mut Problems::default()).unwrap();
    let references = References::resolve(&project, &mut Vec::new());
    let graph = Graph::new(&project.stacks, &references);
    let stacks: Vec<StackIndex> = project.stacks.iter().map(|(stack, _)| stack).collect();
    let (first, last) = (stacks[0], stacks[4_999]);
    let mut upstream = Upstream::new(&graph, &project.stacks, Vec::new());
    let without = upstream.of(last);
    assert_eq!(without, upstream.of(first));
    upstream.set(first, Some("x".to_owned()));
    assert_ne!(without, upstream.of(last));
    assert_eq!(upstream.sources(last).0, [first]);
}
