//! The order of a selection, its waves, and who runs after whom.

use orch::run::order::RunOrder;
use orch::selection::graph::{Graph, Origin, RelatedStack, SearchDirection, Wave};
use proptest::prelude::*;

use crate::loaded::Loaded;
use crate::model::{ModelStack, Set, place};
use crate::query::{with_query, with_runnable_query};
use crate::tree::{Directory, Holds, any_tree};

fn predecessors(loaded: &Loaded, stack: usize, selected: &Set) -> Vec<RelatedStack> {
    let is_selected = |index| selected.contains(&loaded.number(index));
    loaded.graph.relatives(
        loaded.index(stack),
        SearchDirection::Dependencies,
        is_selected,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_lowest_path_that_may_run_goes_first((tree, query) in with_runnable_query()) {
        let loaded = Loaded::new(&tree);
        let selection = loaded.select(&query);
        let selected = loaded.selected(&selection);
        let order = RunOrder::new(&loaded.graph, &selection);
        let sequence = loaded.numbers(order.sequence.iter().copied());
        prop_assert_eq!(&sequence, &loaded.model.order(&selected));
        let waves = loaded.graph.waves(|stack| selection.contains(stack));
        let waves: Vec<Wave> = order.sequence.iter().map(|stack| waves[stack.get()]).collect();
        let expected = loaded.model.waves(&sequence);
        prop_assert_eq!(waves, expected.into_iter().map(Wave::Number).collect::<Vec<_>>());
    }

    #[test]
    fn waves_are_known_but_for_stacks_on_cycles_and_after_them((tree, query) in with_query(any_tree())) {
        let loaded = Loaded::new(&tree);
        let model = &loaded.model;
        let reaches = model.closure(|_| true);
        let selected = model.selection(&query);
        let on_cycles = model.on_cycles();
        let waves = loaded.graph.waves(|stack| selected.contains(&loaded.number(stack)));
        for &stack in &selected {
            let is_after = on_cycles.iter().any(|&knotted| {
                // A knot is one thing: any of its stacks that is selected spoils it.
                let is_spoiled = selected.iter().any(|&other| {
                    other == knotted || reaches[other][knotted] && reaches[knotted][other]
                });
                is_spoiled && reaches[knotted][stack]
            });
            let wave = waves[loaded.index(stack).get()];
            prop_assert_eq!(wave == Wave::InCycle, on_cycles.contains(&stack));
            prop_assert_eq!(matches!(wave, Wave::Number(_)), !is_after && !on_cycles.contains(&stack));
        }
    }

    #[test]
    fn what_is_not_selected_does_not_change_the_order(
        (tree, query) in with_runnable_query(),
        more in prop::collection::vec(("[0-9az]", prop::collection::vec(any::<prop::sample::Index>(), 0..3)), 1..4),
    ) {
        let order = |loaded: &Loaded, query| {
            let selection = loaded.select(query);
            let order = RunOrder::new(&loaded.graph, &selection);
            let paths = loaded.numbers(order.sequence).into_iter();
            paths.map(|stack| loaded.model.path(stack).to_owned()).collect::<Vec<String>>()
        };
        // What nobody wants cannot come along, and nobody refers to what is added to the root.
        let mut tree = tree;
        for directory in &mut tree.directories {
            let ModelStack { directory: path, references, .. } = &mut directory.stack;
            let [after, before, wants, wanted_by] = references;
            for references in [after, before] {
                references.retain(|written| place(path, written) != Some(Vec::new()));
            }
            wants.clear();
            wanted_by.clear();
        }
        let loaded = Loaded::new(&tree);
        let mut query = query;
        query.no_tags.push("unselected".to_owned());
        query.neighbours.clear();
        let alone = order(&loaded, &query);
        let mut larger = tree.clone();
        for (name, after) in more {
            let directory = format!("/{name}-new");
            if larger.directories.iter().any(|other| other.stack.directory == directory) {
                continue;
            }
            // They wait for stacks of the project, and none of those for them.
            let mut references: [Vec<String>; 4] = Default::default();
            for place in after.iter().filter(|_| !loaded.model.stacks.is_empty()) {
                let named = loaded.model.path(place.index(loaded.model.stacks.len())).to_owned();
                if !references[0].contains(&named) {
                    references[0].push(named);
                }
            }
            larger.directories.push(Directory {
                stack: ModelStack { directory, each: None, tags: vec!["unselected".to_owned()], references },
                holds: Holds::Stack,
                for_each: None,
                file: "stack.tm",
            });
        }
        prop_assert_eq!(order(&Loaded::new(&larger), &query), alone);
    }

    #[test]
    fn what_is_nested_waits_in_every_directory_above_for_the_instance_with_its_key_or_for_all(tree in any_tree()) {
        let model = tree.model();
        let reaches = model.closure(|_| true);
        for (inner, _) in model.stacks.iter().enumerate() {
            for outer in model.nested_in(inner).into_iter().flatten() {
                prop_assert!(reaches[outer][inner], "{} before {}", model.path(outer), model.path(inner));
            }
        }
    }

    #[test]
    fn predecessors_are_those_that_only_unselected_stacks_separate((tree, query) in with_query(any_tree())) {
        let loaded = Loaded::new(&tree);
        let model = &loaded.model;
        let selected = model.selection(&query);
        let reaches = model.closure(|stack| !selected.contains(&stack));
        for &stack in &selected {
            let found = predecessors(&loaded, stack, &selected);
            let numbers = loaded.numbers(found.iter().map(|found| found.stack));
            let expected: Vec<usize> = selected
                .iter()
                .copied()
                .filter(|&other| other != stack && reaches[other][stack])
                .collect();
            prop_assert_eq!(numbers, expected, "before {}", model.path(stack));
            for earlier in &found {
                // The way leads through stacks that are not selected, each hop declared.
                let mut way = vec![earlier.stack];
                way.extend(&earlier.via);
                way.push(loaded.index(stack));
                let way = loaded.numbers(way);
                for hop in way.windows(2) {
                    let is_hop = |origin: &Origin| loaded.is_declared(hop[0], hop[1], origin);
                    prop_assert!(earlier.origins.iter().any(is_hop), "{:?} in {:?}", hop, earlier);
                }
                for middle in &way[1..way.len() - 1] {
                    prop_assert!(!selected.contains(middle));
                }
                // No origin that has nothing to do with it.
                for origin in &earlier.origins {
                    let first = way[0];
                    let concerns = model.constraints().iter().any(|hop| {
                        (hop.from == first || reaches[first][hop.from] && !selected.contains(&hop.from))
                            && (hop.to == stack || reaches[hop.to][stack] && !selected.contains(&hop.to))
                            && loaded.is_declared(hop.from, hop.to, origin)
                    });
                    prop_assert!(concerns, "{:?}", origin);
                }
            }
        }
    }

    #[test]
    fn predecessors_close_to_the_order_of_all_constraints((tree, query) in with_runnable_query()) {
        let loaded = Loaded::new(&tree);
        let model = &loaded.model;
        let selected = model.selection(&query);
        let all = model.closure(|_| true);
        let mut closed = vec![vec![false; model.stacks.len()]; model.stacks.len()];
        for &stack in &selected {
            for earlier in predecessors(&loaded, stack, &selected) {
                closed[loaded.number(earlier.stack)][stack] = true;
            }
        }
        for &middle in &selected {
            for &from in &selected {
                for &to in &selected {
                    closed[from][to] |= closed[from][middle] && closed[middle][to];
                }
            }
        }
        for &from in &selected {
            for &to in &selected {
                prop_assert_eq!(closed[from][to], all[from][to], "{} before {}", model.path(from), model.path(to));
            }
        }
    }

    #[test]
    fn the_graph_does_not_depend_on_when_it_is_built(tree in any_tree()) {
        let loaded = Loaded::new(&tree);
        let again = Graph::new(&loaded.project.stacks, &loaded.references);
        prop_assert_eq!(format!("{:?}", again), format!("{:?}", loaded.graph));
        prop_assert_eq!(again.cycles(), loaded.graph.cycles());
    }
}
