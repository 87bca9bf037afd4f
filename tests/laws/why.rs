//! What `orch why` says of a stack is true: whoever does what would select it has it selected.

use orch::path::ProjectPath;
use orch::project::stack::StackIndex;
use orch::selection::select::{NamedStacks, NeighbourChoice, Obstacle, Query, select};
use orch::selection::why::{Alternative, BlockingFlag, Why, WhyQuestion};
use proptest::prelude::*;

use crate::loaded::Loaded;
use crate::query::{with_changes, with_query};
use crate::tree::any_tree;

/// A project and what is asked for.
struct Scene {
    loaded: Loaded,
    query: Query,
}

impl Scene {
    fn selects(&self, query: &Query, stack: StackIndex) -> bool {
        let Loaded {
            project,
            references,
            graph,
            ..
        } = &self.loaded;
        select(&project.stacks, references, graph, query).contains(stack)
    }

    fn why(&self, stack: StackIndex) -> Why {
        let Loaded {
            project,
            references,
            graph,
            ..
        } = &self.loaded;
        let selection = select(&project.stacks, references, graph, &self.query);
        let question = WhyQuestion {
            project,
            references,
            graph,
            query: &self.query,
            selection: &selection,
            stack,
        };
        question.answer(Vec::new())
    }

    /// The query without the flags that are in the way.
    fn freed(&self, why: &Why) -> Query {
        let mut query = self.query.clone();
        for flag in &why.in_the_way {
            match flag {
                BlockingFlag::Exclude(written) => {
                    query
                        .exclude
                        .retain(|filter| filter.to_string() != *written);
                }
                BlockingFlag::Neighbours(reach) => query.neighbours.retain(|other| other != reach),
            }
        }
        query
    }

    /// A query for one stack and what it brings along.
    fn only(stack: StackIndex) -> Query {
        Query {
            named: Some(NamedStacks {
                source: "a list".to_owned(),
                lines: [(stack, 1)].into(),
                missing: std::collections::BTreeMap::new(),
            }),
            ..Query::at_or_below(ProjectPath::root())
        }
    }

    fn check(&self, stack: StackIndex) -> Result<(), TestCaseError> {
        let why = self.why(stack);
        let is_selected = self.selects(&self.query, stack);
        prop_assert_eq!(why.obstacles.is_empty(), is_selected);
        prop_assert!(!is_selected || why.in_the_way.is_empty());
        let freed = self.freed(&why);
        let is_enough = !why.obstacles.iter().any(Obstacle::is_filter);
        if !is_selected {
            prop_assert_eq!(self.selects(&freed, stack), is_enough);
            prop_assert!(!is_enough || why.ways.is_empty());
        }
        if !is_selected && !is_enough {
            // Whichever filters are in the way, the stack passes these.
            let passing = Query {
                neighbours: freed.neighbours.clone(),
                exclude: freed.exclude.clone(),
                ..Self::only(stack)
            };
            prop_assert!(self.selects(&passing, stack));
        }
        for way in &why.ways {
            match way {
                Alternative::Wants(other, _) | Alternative::WantedBy(other, _) => {
                    let wanting = Query {
                        neighbours: freed.neighbours.clone(),
                        exclude: freed.exclude.clone(),
                        ..Self::only(*other)
                    };
                    prop_assert!(self.selects(&wanting, stack));
                }
                Alternative::Neighbour(reach, other, instead) => {
                    prop_assert_eq!(reach.verb, NeighbourChoice::Include);
                    prop_assert!(self.selects(&freed, *other), "it is said to be selected");
                    let mut query = freed.clone();
                    query.neighbours.retain(|other| Some(*other) != *instead);
                    let same = (reach.verb, reach.towards);
                    let mut others = query.neighbours.iter();
                    prop_assert!(others.all(|other| (other.verb, other.towards) != same));
                    query.neighbours.push(*reach);
                    prop_assert!(self.selects(&query, stack));
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_would_select_a_stack_does((tree, query) in with_changes(with_query(any_tree()))) {
        let loaded = Loaded::new(&tree);
        let query = loaded.query(&query);
        let scene = Scene { loaded, query };
        for (stack, _) in scene.loaded.project.stacks.iter() {
            scene.check(stack)?;
        }
    }
}
