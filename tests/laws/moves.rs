//! Chains of `moved` blocks, against renames that are made one after the other.

use std::collections::BTreeMap;
use std::fs;

use orch::path::StackPath;
use orch::project::{Problems, Project};
use proptest::prelude::*;
use proptest::sample::select;

use crate::model::literal;

/// A path as the naive see it: names, and perhaps a key.
type Place = (Vec<&'static str>, Option<&'static str>);

fn text((names, key): &Place) -> String {
    let path = format!("/{}", names.join("/"));
    match key {
        Some(key) => format!("{path}[\"{key}\"]"),
        None => path,
    }
}

/// Returns whether one end of a block has all of another.
fn has((outer, is_one): (&Place, bool), (inner, inner_is_one): (&Place, bool)) -> bool {
    if is_one {
        inner_is_one && outer == inner
    } else {
        inner.0.starts_with(&outer.0)
    }
}

fn is_one((from, to): &(Place, Place)) -> bool {
    from.1.is_some() || to.1.is_some()
}

/// Returns whether a block has to be carried out before another.
fn is_before(first: &(Place, Place), second: &(Place, Place)) -> bool {
    let puts = (&first.1, is_one(first));
    let (own, takes) = ((&first.0, is_one(first)), (&second.0, is_one(second)));
    has(puts, takes) || has(takes, puts) || has(takes, own)
}

/// Returns the blocks in an order that keeps to that; `None` if there is none.
fn in_order(mut blocks: Vec<(Place, Place)>) -> Option<Vec<(Place, Place)>> {
    let mut order = Vec::new();
    while !blocks.is_empty() {
        let is_next = |at: &usize| {
            let mut others = blocks.iter().enumerate().filter(|(other, _)| other != at);
            others.all(|(_, other)| !is_before(other, &blocks[*at]))
        };
        let next = (0..blocks.len()).find(is_next)?;
        order.push(blocks.remove(next));
    }
    Some(order)
}

/// Returns where a stack is after a block.
fn after(block: &(Place, Place), stack: Place) -> Place {
    let (from, to) = block;
    if is_one(block) {
        return if stack == *from { to.clone() } else { stack };
    }
    let is_there = to.0.starts_with(&from.0) && stack.0.starts_with(&to.0);
    if is_there || !stack.0.starts_with(&from.0) {
        return stack;
    }
    let below = stack.0[from.0.len()..].iter();
    (to.0.iter().chain(below).copied().collect(), stack.1)
}

fn place() -> impl Strategy<Value = Place> {
    let names = prop::collection::vec(select(vec!["a", "a-b", "b"]), 0..4);
    let key = prop_oneof![4 => Just(None), 1 => select(vec![Some("k"), Some("l")])];
    (names, key)
}

/// Loads a project with these blocks.
fn load(blocks: &[(Place, Place)]) -> (Project, Problems) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let block = |(from, to): &(Place, Place)| {
        let (from, to) = (literal(&text(from)), literal(&text(to)));
        format!("moved {{\n  from = {from}\n  to = {to}\n}}\n")
    };
    let blocks: String = blocks.iter().map(block).collect();
    fs::write(root.join("moves.orch.hcl"), blocks).unwrap();
    let mut problems = Problems::default();
    let project = Project::load(&root, &mut problems).unwrap();
    (project, problems)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_in_any_order_are_renames_one_after_the_other(
        ends in prop::collection::vec((place(), place()), 0..6),
        stacks in prop::collection::btree_set(place(), 0..12),
        seed in any::<prop::sample::Index>(),
    ) {
        let mut blocks: Vec<(Place, Place)> = Vec::new();
        for (from, to) in ends {
            let mut others = blocks.iter();
            if from != to && !others.any(|other| other.0 == from || other.1 == to) {
                blocks.push((from, to));
            }
        }
        let (project, problems) = load(&blocks);
        let Some(order) = in_order(blocks.clone()) else {
            prop_assert!(problems.has_errors(), "{blocks:?}");
            prop_assert!(project.moves.is_empty());
            return Ok(());
        };
        prop_assert!(!problems.has_errors(), "{:?}: {:?}", blocks, problems.diagnostics);
        let expected = stacks.iter().filter_map(|stack| {
            let now = order.iter().fold(stack.clone(), |now, block| after(block, now));
            (now != *stack).then(|| (text(stack), text(&now)))
        });
        let expected: BTreeMap<String, String> = expected.collect();
        let recorded = stacks.iter().map(|stack| StackPath::parse(&text(stack)).unwrap());
        let recorded: Vec<StackPath> = recorded.collect();
        let found = |project: &Project| {
            let found = project.moves.destinations(&recorded);
            let found = found.iter().map(|(old, new)| (old.to_string(), new.to_string()));
            found.collect::<BTreeMap<String, String>>()
        };
        prop_assert_eq!(&found(&project), &expected, "{:?}", blocks);
        // Whichever block comes first in the file.
        if !blocks.is_empty() {
            let middle = seed.index(blocks.len());
            blocks.rotate_left(middle);
            let (turned, _) = load(&blocks);
            prop_assert_eq!(&found(&turned), &expected, "{:?}", blocks);
        }
    }
}
