//! What entries are decided after, and what stays although what it runs after goes: against the closure of
//! the model.

use std::collections::{BTreeMap, BTreeSet};

use orch::path::StackPath;
use orch::plan::order::NamedConstraints;
use orch::plan::{DestroyOutcome, conditions, left_behind};
use orch::project::stack::StackIndex;
use proptest::prelude::*;
use proptest::sample::select;

use crate::loaded::Loaded;
use crate::model::Set;
use crate::tree::{acyclic_tree, any_tree};

/// Which of all stacks are meant.
fn chosen(of: usize, by: u64) -> Set {
    (0..of)
        .filter(|&stack| by >> (stack % 64) & 1 == 1)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_entry_is_decided_after_the_nearest_stacks_with_work(tree in any_tree(), working in any::<u64>()) {
        let loaded = Loaded::new(&tree);
        let model = &loaded.model;
        let mut working = chosen(model.stacks.len(), working);
        // What is planned is on no cycle.
        for knotted in model.on_cycles() {
            working.remove(&knotted);
        }
        let reaches = model.closure(|stack| !working.contains(&stack));
        let all = || 0..model.stacks.len();
        let stacks: Vec<StackIndex> = all().map(|it| loaded.index(it)).collect();
        let library: BTreeSet<StackIndex> = working.iter().map(|&it| loaded.index(it)).collect();
        let found = conditions(&loaded.project, &loaded.graph, &stacks, &library);
        for stack in all() {
            if model.on_cycles().contains(&stack) {
                continue;
            }
            let before = working.iter().filter(|&&before| reaches[before][stack]);
            let before: Vec<&str> = before.map(|&before| model.path(before)).collect();
            let condition = found.get(&loaded.index(stack));
            prop_assert_eq!(condition.is_some(), !before.is_empty());
            let Some(condition) = condition else { continue };
            let named = condition.stacks.iter().map(StackPath::as_str);
            prop_assert_eq!(named.collect::<Vec<_>>(), before.iter().copied().take(20).collect::<Vec<_>>());
            prop_assert_eq!(condition.has_more, before.len() > 20);
        }
    }

    #[test]
    fn what_stays_is_left_behind_if_it_runs_after_what_goes_through_what_does_neither(
        tree in acyclic_tree(),
        fates in prop::collection::vec(select(vec![DestroyOutcome::Destroyed, DestroyOutcome::Kept, DestroyOutcome::Missing]), 64),
    ) {
        let loaded = Loaded::new(&tree);
        let model = &loaded.model;
        let fate = |stack: usize| fates[stack % 64];
        let record = NamedConstraints::new(&loaded.project, &loaded.graph, None);
        let of_index = |stack| fate(loaded.number(stack));
        let found = left_behind(&loaded.project, &loaded.graph, &record, of_index, |_| unreachable!());
        let reaches = model.closure(|stack| fate(stack) == DestroyOutcome::Missing);
        let all = || 0..model.stacks.len();
        let expected = all().filter(|&stays| fate(stays) == DestroyOutcome::Kept).filter_map(|stays| {
            let goes = all().find(|&goes| fate(goes) == DestroyOutcome::Destroyed && reaches[goes][stays])?;
            Some((model.path(stays), model.path(goes)))
        });
        let found: BTreeMap<&str, &str> = found.iter().map(|it| (it.kept.as_str(), it.destroyed.as_str())).collect();
        prop_assert_eq!(found, expected.collect::<BTreeMap<_, _>>());
    }
}
