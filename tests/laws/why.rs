//! What `orch why` says of a stack is true: whoever does what would select it has it selected.

use orch::path::ProjectPath;
use orch::project::stack::StackIndex;
use orch::selection::select::{Named, Obstacle, Verb, Wish, select};
use orch::selection::why::{Hindrance, Question, Way, Why};
use proptest::prelude::*;

use crate::loaded::Loaded;
use crate::tree::any_tree;
use crate::wish::{with_changes, with_wish};

/// A project and what is asked for.
struct Scene {
    loaded: Loaded,
    wish: Wish,
}

impl Scene {
    fn selects(&self, wish: &Wish, stack: StackIndex) -> bool {
        let Loaded {
            project,
            references,
            graph,
            ..
        } = &self.loaded;
        select(&project.stacks, references, graph, wish).contains(stack)
    }

    fn why(&self, stack: StackIndex) -> Why {
        let Loaded {
            project,
            references,
            graph,
            ..
        } = &self.loaded;
        let selection = select(&project.stacks, references, graph, &self.wish);
        let question = Question {
            project,
            references,
            graph,
            wish: &self.wish,
            selection: &selection,
            stack,
        };
        question.answer(Vec::new())
    }

    /// The wish without the flags that are in the way.
    fn freed(&self, why: &Why) -> Wish {
        let mut wish = self.wish.clone();
        for hindrance in &why.in_the_way {
            match hindrance {
                Hindrance::Exclude(written) => {
                    wish.exclude.retain(|filter| filter.to_string() != *written);
                }
                Hindrance::Neighbours(reach) => wish.neighbours.retain(|other| other != reach),
            }
        }
        wish
    }

    /// A wish for one stack and what it brings along.
    fn only(stack: StackIndex) -> Wish {
        Wish {
            named: Some(Named {
                source: "a list".to_owned(),
                lines: [(stack, 1)].into(),
            }),
            ..Wish::at_or_below(ProjectPath::root())
        }
    }

    fn check(&self, stack: StackIndex) -> Result<(), TestCaseError> {
        let why = self.why(stack);
        let is_selected = self.selects(&self.wish, stack);
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
            let passing = Wish {
                neighbours: freed.neighbours.clone(),
                exclude: freed.exclude.clone(),
                ..Self::only(stack)
            };
            prop_assert!(self.selects(&passing, stack));
        }
        for way in &why.ways {
            match way {
                Way::Wants(other, _) | Way::WantedBy(other, _) => {
                    let wanting = Wish {
                        neighbours: freed.neighbours.clone(),
                        exclude: freed.exclude.clone(),
                        ..Self::only(*other)
                    };
                    prop_assert!(self.selects(&wanting, stack));
                }
                Way::Neighbour(reach, other, instead) => {
                    prop_assert_eq!(reach.verb, Verb::Include);
                    prop_assert!(self.selects(&freed, *other), "it is said to be selected");
                    let mut wish = freed.clone();
                    wish.neighbours.retain(|other| Some(*other) != *instead);
                    let same = (reach.verb, reach.towards);
                    let mut others = wish.neighbours.iter();
                    prop_assert!(others.all(|other| (other.verb, other.towards) != same));
                    wish.neighbours.push(*reach);
                    prop_assert!(self.selects(&wish, stack));
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_would_select_a_stack_does((tree, wish) in with_changes(with_wish(any_tree()))) {
        let loaded = Loaded::new(&tree);
        let wish = loaded.wish(&wish);
        let scene = Scene { loaded, wish };
        for (stack, _) in scene.loaded.project.stacks.iter() {
            scene.check(stack)?;
        }
    }
}
