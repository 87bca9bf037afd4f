//! Cycles: which there are, and what is said of them.

use std::collections::BTreeSet;

use orch::diagnostic::Diagnostic;
use proptest::prelude::*;

use crate::loaded::Loaded;
use crate::model::Set;
use crate::query::with_query;
use crate::tree::{acyclic_tree, any_tree};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_stack_on_a_cycle_is_reported_and_every_hop_is_declared((tree, query) in with_query(any_tree())) {
        let loaded = Loaded::new(&tree);
        let model = &loaded.model;
        let reaches = model.closure(|_| true);
        let mut on_cycles = Set::new();
        let knots = loaded.graph.cycles();
        let selection = loaded.select(&query);
        for knot in &knots {
            let tied = loaded.numbers(knot.stacks.iter().copied());
            prop_assert!(!knot.cycles.is_empty());
            for &stack in &tied {
                prop_assert!(on_cycles.insert(stack), "each stack is in one knot");
                let same: Vec<usize> = (0..model.stacks.len())
                    .filter(|&other| reaches[stack][other] && reaches[other][stack])
                    .collect();
                prop_assert_eq!(&tied, &same);
            }
            let mut reported = Set::new();
            let mut reported_origins = BTreeSet::new();
            for cycle in &knot.cycles {
                let from = loaded.numbers(cycle.hops.iter().map(|hop| hop.from));
                let mut to = loaded.numbers(cycle.hops.iter().map(|hop| hop.to));
                to.rotate_right(1);
                prop_assert_eq!(&from, &to, "hops follow each other and close");
                prop_assert!(from.len() > 1);
                prop_assert_eq!(from.iter().min(), from.first(), "the smallest path first");
                let once: Set = from.iter().copied().collect();
                prop_assert_eq!(once.len(), from.len(), "each stack once");
                reported.extend(once);
                for hop in &cycle.hops {
                    prop_assert!(!hop.origins.is_empty());
                    for origin in &hop.origins {
                        let (from, to) = (loaded.number(hop.from), loaded.number(hop.to));
                        prop_assert!(loaded.is_declared(from, to, origin), "{:?}", hop);
                        let (directory, text) = loaded.text(origin.span);
                        reported_origins.insert((directory, origin.kind.to_string(), text));
                    }
                }
            }
            for (position, cycle) in knot.cycles.iter().enumerate() {
                prop_assert!(!knot.cycles[..position].contains(cycle), "each cycle once");
            }
            if !knot.is_cut {
                // Nesting cannot be removed: the references around it are what is wrong.
                let constraints = model.constraints().into_iter();
                for constraint in constraints.filter(|it| it.kind != "nesting") {
                    if tied.contains(&constraint.from) && tied.contains(&constraint.to) {
                        let directory = model.directory(constraint.declared_by).to_owned();
                        let origin = (directory, constraint.kind.to_owned(), &*constraint.written);
                        prop_assert!(reported_origins.contains(&origin), "{:?}", origin);
                    }
                }
                let tied: Set = tied.into_iter().collect();
                prop_assert_eq!(reported, tied, "all stacks of the knot are reported");
            }
            let shown = knot.diagnostics(&loaded.project.stacks, &loaded.project.sources);
            prop_assert!(!shown.is_empty() && shown.len() <= knot.cycles.len());
            // Each hop is shown once, and cycles that share one are shown together. Of cycles by the
            // same references, one has its hops shown, and the others are named.
            for cycle in &knot.cycles {
                let path = |stack| format!("`{}`", loaded.project.stacks[stack].path);
                let names: Vec<String> = cycle.hops.iter().map(|hop| path(hop.from)).collect();
                let note = format!("cycle by the same references: {}", names.join(" → "));
                let is_named = shown.iter().any(|diagnostic| diagnostic.notes.contains(&note));
                for hop in &cycle.hops {
                    let says = format!("{} runs before {} (", path(hop.from), path(hop.to));
                    let tells = |diagnostic: &&Diagnostic| {
                        diagnostic.labels.iter().any(|label| label.text.starts_with(&says))
                            || diagnostic.notes.iter().any(|note| note.starts_with(&says))
                    };
                    let count = shown.iter().filter(tells).count();
                    prop_assert!(count == 1 || count == 0 && is_named, "{}", says);
                }
            }
        }
        prop_assert_eq!(&on_cycles, &model.on_cycles());
        let touches = knots
            .iter()
            .any(|knot| knot.stacks.iter().any(|&stack| selection.contains(stack)));
        prop_assert_eq!(touches, !model.selection(&query).is_disjoint(&on_cycles));
    }

    #[test]
    fn a_project_without_cycles_has_none_reported(tree in acyclic_tree()) {
        let loaded = Loaded::new(&tree);
        prop_assert!(loaded.model.on_cycles().is_empty());
        prop_assert_eq!(loaded.graph.cycles(), vec![]);
    }
}
