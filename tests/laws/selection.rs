//! Which stacks are selected, and why.

use orch::select::Reason;
use proptest::prelude::*;

use crate::loaded::Loaded;
use crate::tree::{any_tree, with_wish};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_selection_is_that_of_the_model_and_every_reason_is_true((tree, wish) in with_wish(any_tree())) {
        let loaded = Loaded::new(&tree);
        let selection = loaded.select(&wish);
        let selected = loaded.selected(&selection);
        prop_assert_eq!(&selected, &loaded.model.selection(&wish));
        prop_assert_eq!(loaded.numbers(selection.stacks()), selected.iter().copied().collect::<Vec<_>>());
        let filtered = loaded.model.filtered(&wish);
        for &stack in &selected {
            let reasons = selection.reasons(loaded.index(stack));
            prop_assert!(!reasons.is_empty());
            for reason in reasons {
                let (by, kind, span) = match reason {
                    Reason::Changed(_)
                    | Reason::Triggered(_)
                    | Reason::Glob(_)
                    | Reason::Named(..)
                    | Reason::Neighbour(..) => unreachable!("nobody asked for it"),
                    Reason::Directory(directory, _) => {
                        prop_assert_eq!(directory.as_str(), &wish.directory);
                        prop_assert!(filtered.contains(&stack));
                        continue;
                    }
                    Reason::Tags(_) => {
                        prop_assert!(filtered.contains(&stack) && !wish.tags.is_empty());
                        continue;
                    }
                    Reason::Wants(by, span) => (loaded.number(*by), "wants", *span),
                    Reason::WantedBy(by, span) => (loaded.number(*by), "wanted_by", *span),
                };
                prop_assert!(!filtered.contains(&stack));
                prop_assert!(selected.contains(&by));
                prop_assert!(loaded.model.wants(by, stack).contains(&kind));
                let (declaring, named) = if kind == "wants" { (by, stack) } else { (stack, by) };
                let (directory, written) = loaded.text(span);
                prop_assert_eq!(directory, loaded.model.path(declaring));
                let meaning = loaded.model.meaning(declaring, written.trim_matches('"'));
                prop_assert!(meaning.stacks().contains(&named), "{} names it", written);
            }
        }
    }
}
