//! What references mean.

use orch::diagnostic::Diagnostic;
use orch::project::stack::StackIndex;
use orch::selection::reference::ReferenceKind;
use proptest::prelude::*;

use crate::loaded::Loaded;
use crate::model::{Meaning, Set, literal};
use crate::tree::any_tree;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_reference_is_an_error_a_warning_or_a_set_of_stacks_as_the_model_says(tree in any_tree()) {
        let loaded = Loaded::new(&tree);
        let mut n_problems = 0;
        let mut n_meant = 0;
        for (declaring, stack) in loaded.model.stacks.iter().enumerate() {
            let read = &loaded.project.stacks[loaded.index(declaring)];
            let attributes = [
                (ReferenceKind::After, &read.after),
                (ReferenceKind::Before, &read.before),
                (ReferenceKind::Wants, &read.wants),
                (ReferenceKind::WantedBy, &read.wanted_by),
            ];
            for (attribute, (kind, entries)) in attributes.into_iter().enumerate() {
                let written = &stack.references[attribute];
                prop_assert_eq!(entries.len(), written.len());
                for (entry, written) in entries.iter().zip(written) {
                    prop_assert_eq!(&entry.value, &stack.value(written));
                    prop_assert_eq!(loaded.text(entry.span), (stack.directory.clone(), &*literal(written)));
                    let mut meant: Option<Set> = None;
                    for reference in &loaded.references.list {
                        if reference.span == entry.span && reference.from == loaded.index(declaring) {
                            prop_assert_eq!(reference.kind, kind);
                            prop_assert!(meant.is_none(), "`{}` is resolved once", written);
                            let stacks = &loaded.project.stacks;
                            let named = loaded.references.named(reference, stacks);
                            let is_named = |&(stack, _): &(StackIndex, _)| {
                                loaded.references.names(reference, stack, stacks)
                            };
                            let all: Vec<StackIndex> = stacks.iter().filter(is_named).map(|(stack, _)| stack).collect();
                            prop_assert_eq!(&all, &named);
                            meant = Some(loaded.numbers(named).into_iter().collect());
                            n_meant += 1;
                        }
                    }
                    let problems: Vec<bool> = loaded
                        .problems
                        .iter()
                        .filter(|problem| problem.labels.first().is_some_and(|label| label.span == entry.span))
                        .map(Diagnostic::is_error)
                        .collect();
                    if loaded.model.stacks[..declaring].iter().all(|other| other.directory != stack.directory) {
                        n_problems += problems.len();
                    }
                    // All instances have their problems at one place.
                    let same = (0..loaded.model.stacks.len())
                        .filter(|&other| loaded.model.directory(other) == stack.directory);
                    let are_errors: Vec<bool> = same
                        .filter_map(|other| match loaded.model.meaning(other, attribute, written) {
                            Meaning::Error => Some(true),
                            Meaning::Itself => Some(false),
                            Meaning::Nothing => Some(tree.is_strict),
                            Meaning::Stacks(_) if loaded.model.has_empty_tag(other, written) => Some(false),
                            Meaning::Alone | Meaning::Stacks(_) => None,
                        })
                        .collect();
                    let set = match loaded.model.meaning(declaring, attribute, written) {
                        Meaning::Stacks(stacks) => Some(stacks),
                        _ => None,
                    };
                    prop_assert_eq!(problems, are_errors, "problems of `{}` in {}", written, loaded.model.path(declaring));
                    prop_assert_eq!(meant, set, "meaning of `{}` in {}", written, loaded.model.path(declaring));
                }
            }
        }
        prop_assert_eq!(n_problems, loaded.problems.len());
        prop_assert_eq!(n_meant, loaded.references.list.len());
    }
}
