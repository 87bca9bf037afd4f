//! What entries are decided after, against the closure of the model.

use std::collections::BTreeSet;

use orch::path::StackPath;
use orch::plan::conditions;
use orch::project::stack::StackIndex;
use proptest::prelude::*;

use crate::loaded::Loaded;
use crate::model::Set;
use crate::tree::any_tree;

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
}
