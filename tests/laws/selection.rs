//! Which stacks are selected, and why, or why not.

use orch::selection::graph::{NeighbourStep, SearchDirection};
use orch::selection::select::{Obstacle, SelectionReason};
use orch::source::Span;
use proptest::prelude::*;

use crate::loaded::{DISMISSING, Loaded};
use crate::model::{Set, literal, passes, place};
use crate::query::{with_changes, with_query, with_statuses};
use crate::selector::{ModelQuery, ModelReach, Steps};
use crate::tree::any_tree;

/// A tree, a query, and what the model makes of them.
struct Scene {
    loaded: Loaded,
    query: ModelQuery,
    steps: Steps,
}

impl Scene {
    /// Checks that a reason is true.
    fn reason(&self, stack: usize, reason: &SelectionReason) -> Result<(), TestCaseError> {
        let Scene {
            loaded,
            query,
            steps,
        } = self;
        let path = loaded.model.path(stack);
        let here = loaded.model.directory(stack);
        let is_filtered = match reason {
            SelectionReason::Changed(cause) => {
                prop_assert_eq!(cause.file.path.as_str(), place_of(here, "changed"));
                let changes = query.changes.as_ref();
                changes.is_some_and(|changes| changes.changed.contains(&stack))
            }
            SelectionReason::Triggered(trigger) => {
                prop_assert_eq!(trigger.file.as_str(), place_of(here, "trigger"));
                let changes = query.changes.as_ref();
                changes.is_some_and(|changes| changes.triggered.contains(&stack))
            }
            SelectionReason::Released(released) => {
                let named = query.released.as_ref();
                released.policies == ["p"] && named.is_some_and(|named| named.contains(&stack))
            }
            SelectionReason::Directory(directory, _) => directory.as_str() == query.directory,
            SelectionReason::Glob(text) => {
                query.globs.contains(text) && loaded.model.glob_means(query, text, stack)
            }
            SelectionReason::Named(source, line) => {
                source == "a list" && loaded.model.line(query, stack) == Some(*line)
            }
            SelectionReason::Tags(filter) => {
                let filter = filter.to_string();
                let tags = &loaded.model.stacks[stack].tags;
                let is_it = |written: &String| {
                    let parts = written.split(',').filter(|part| !part.is_empty());
                    parts.collect::<Vec<_>>().join(",") == filter
                };
                query.tags.iter().any(is_it) && passes(&filter, tags) == Some(true)
            }
            SelectionReason::Status(status) => {
                let statuses = query.statuses.as_ref();
                statuses.is_some_and(|statuses| statuses.all[stack] == status.kind().word())
            }
            SelectionReason::Wants(by, span) => {
                return self.want(loaded.number(*by), stack, "wants", *span);
            }
            SelectionReason::WantedBy(by, span) => {
                return self.want(loaded.number(*by), stack, "wanted_by", *span);
            }
            SelectionReason::Neighbour(reach, step) => {
                let flag = reach.to_string();
                let mut reached = steps.reached.iter();
                let found =
                    reached.find(|(reach, stacks)| reach.flag() == flag && stacks.contains(&stack));
                prop_assert!(found.is_some(), "{} reaches {}", flag, path);
                return self.step(&steps.wanted, reach.towards, stack, step);
            }
        };
        prop_assert!(
            is_filtered && steps.filtered.contains(&stack),
            "{:?} for {}",
            reason,
            path
        );
        Ok(())
    }

    /// Checks that one stack makes that the other is wanted, and that the text of a file says so.
    fn want(&self, by: usize, stack: usize, kind: &str, span: Span) -> Result<(), TestCaseError> {
        let model = &self.loaded.model;
        let Steps {
            filtered,
            wanted,
            left,
            selected,
            ..
        } = &self.steps;
        let is_first = wanted.contains(&by) && wanted.contains(&stack);
        let is_last = selected.contains(&by) && !left.contains(&stack);
        prop_assert!(is_first && !filtered.contains(&stack) || is_last);
        prop_assert!(model.wants(by, stack).contains(&kind));
        let (declaring, attribute, named) = if kind == "wants" {
            (by, 2, stack)
        } else {
            (stack, 3, by)
        };
        let (directory, written) = self.loaded.text(span);
        prop_assert_eq!(directory, model.directory(declaring));
        let mut entries = model.stacks[declaring].references[attribute].iter();
        let entry = entries.find(|entry| literal(entry) == written);
        let meaning = model.meaning(declaring, attribute, entry.expect("it is written there"));
        prop_assert!(meaning.stacks().contains(&named), "{} names it", written);
        Ok(())
    }

    /// Checks that a step is a constraint and the last one of a shortest way from `start`.
    fn step(
        &self,
        start: &Set,
        towards: SearchDirection,
        stack: usize,
        step: &NeighbourStep,
    ) -> Result<(), TestCaseError> {
        let other = self.loaded.number(step.from);
        let (from, to, name) = match towards {
            SearchDirection::Dependencies => (stack, other, "dependencies"),
            SearchDirection::Dependents => (other, stack, "dependents"),
        };
        prop_assert!(
            self.loaded.is_declared(from, to, &step.origin),
            "{:?}",
            step
        );
        let walks = self.loaded.model.walks(start, name);
        let length = if start.contains(&other) {
            0
        } else {
            walks[&other]
        };
        prop_assert_eq!(walks[&stack], length + 1);
        Ok(())
    }

    /// Checks why the filters do not let a stack pass.
    fn obstacles(&self, stack: usize) -> Result<(), TestCaseError> {
        let Scene { loaded, query, .. } = self;
        let path = loaded.model.path(stack);
        let tags = &loaded.model.stacks[stack].tags;
        let index = loaded.index(stack);
        let known = &loaded.project.stacks[index];
        let mut kinds = Vec::new();
        for obstacle in loaded.query(query).obstacles(index, known) {
            let (kind, is_true) = match &obstacle {
                Obstacle::Status(status) => {
                    let statuses = query.statuses.as_ref();
                    let is_true =
                        statuses.is_some_and(|statuses| statuses.all[stack] == status.word());
                    ("status", is_true)
                }
                Obstacle::Unchanged => ("unchanged", true),
                Obstacle::Unreleased(released) => ("unreleased", released.policies.is_empty()),
                Obstacle::Dismissed(triggers) => {
                    let files = triggers.iter().map(|trigger| trigger.file.as_str());
                    let here = loaded.model.directory(stack);
                    let expected = DISMISSING.map(|name| place_of(here, name));
                    ("dismissed", files.eq(expected))
                }
                Obstacle::Directory(directory, _) => {
                    ("directory", directory.as_str() == query.directory)
                }
                Obstacle::Globs => ("globs", true),
                Obstacle::Unnamed(source) => ("unnamed", source == "a list"),
                Obstacle::Tags => ("tags", true),
                Obstacle::NoTags(told) => {
                    let carried = query.no_tags.iter().filter(|tag| tags.contains(tag));
                    ("no tags", told.iter().eq(carried))
                }
                Obstacle::Excluded(told) => {
                    let globs = query.exclude.iter();
                    let meaning = globs.filter(|glob| loaded.model.glob_means(query, glob, stack));
                    ("excluded", told.iter().eq(meaning))
                }
                Obstacle::Only(_) | Obstacle::Neighbour(..) | Obstacle::Unreached(_) => {
                    ("no filter", false)
                }
            };
            prop_assert!(is_true, "{:?} for {}", obstacle, path);
            kinds.push(kind);
        }
        prop_assert_eq!(kinds, loaded.model.fails(query, stack), "{}", path);
        Ok(())
    }

    /// Checks what is told of a stack that the neighbours dropped.
    fn dropped(&self, stack: usize, told: Option<&Obstacle>) -> Result<(), TestCaseError> {
        let Scene { query, steps, .. } = self;
        let by = |verb: &str, flag: &str| {
            let mut reaches = query.neighbours.iter();
            reaches.any(|reach| reach.verb == verb && reach.flag() == flag)
        };
        match told {
            None => {
                let was_selected = steps.wanted.contains(&stack) || steps.around.contains(&stack);
                let is_selected = steps.selected.contains(&stack);
                prop_assert!(is_selected || !was_selected);
            }
            Some(Obstacle::Only(reach)) => {
                prop_assert!(by("only", &reach.to_string()));
                prop_assert!(steps.wanted.contains(&stack) && !steps.around.contains(&stack));
                prop_assert!(!steps.selected.contains(&stack));
            }
            Some(Obstacle::Neighbour(reach, step)) => {
                prop_assert!(by("exclude", &reach.to_string()));
                prop_assert!(steps.around.contains(&stack) && !steps.selected.contains(&stack));
                self.step(&steps.around, reach.towards, stack, step)?;
                let towards = if reach.towards == SearchDirection::Dependencies {
                    "dependencies"
                } else {
                    "dependents"
                };
                let length = self.loaded.model.walks(&steps.around, towards)[&stack];
                prop_assert!(reach.depth.is_none_or(|depth| length <= depth.get()));
            }
            Some(other) => prop_assert!(false, "{:?} drops nothing", other),
        }
        Ok(())
    }
}

fn place_of(directory: &str, name: &str) -> String {
    format!("/{}", place(directory, name).unwrap().join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_selection_is_that_of_the_model_and_every_reason_is_true(
        (tree, query) in with_statuses(with_changes(with_query(any_tree()))),
    ) {
        let loaded = Loaded::new(&tree);
        let selection = loaded.select(&query);
        let steps = loaded.model.steps(&query);
        let selected = loaded.selected(&selection);
        prop_assert_eq!(&selected, &steps.selected, "{:?}", steps);
        prop_assert_eq!(loaded.numbers(selection.stacks()), selected.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(selection.len(), selected.len());
        let is_since_applied = query.statuses.as_ref().is_some_and(|it| it.changed);
        prop_assert_eq!(selection.since().is_some(), query.changes.is_some() || is_since_applied);
        let scene = Scene { loaded, query, steps };
        for stack in 0..scene.loaded.model.stacks.len() {
            let index = scene.loaded.index(stack);
            let reasons = selection.reasons(index);
            prop_assert_eq!(reasons.is_empty(), !selected.contains(&stack));
            for reason in reasons {
                scene.reason(stack, reason)?;
            }
            scene.obstacles(stack)?;
            scene.dropped(stack, selection.dropped(index))?;
            scene.is_complete(stack, reasons)?;
        }
    }
}

impl Scene {
    /// Checks that what the filters let pass has the reason of each of them.
    fn is_complete(&self, stack: usize, reasons: &[SelectionReason]) -> Result<(), TestCaseError> {
        let Scene { query, steps, .. } = self;
        let is_only = |reached: &&(ModelReach, Set)| reached.0.verb == "only";
        let mut only = steps.reached.iter().filter(is_only);
        let kept = only.clone().next().is_none() || only.any(|(_, stacks)| stacks.contains(&stack));
        let kept = kept && steps.left.contains(&stack);
        if !steps.selected.contains(&stack) || !steps.filtered.contains(&stack) || !kept {
            return Ok(());
        }
        let has = |test: fn(&SelectionReason) -> bool| {
            reasons.iter().filter(|reason| test(reason)).count()
        };
        let in_set = |set: fn(&crate::selector::ModelChanges) -> &Set| {
            let changes = query.changes.as_ref();
            usize::from(changes.is_some_and(|changes| set(changes).contains(&stack)))
        };
        let is_given = |is_given: bool| usize::from(is_given);
        prop_assert_eq!(
            has(|it| matches!(it, SelectionReason::Changed(_))),
            in_set(|changes| &changes.changed)
        );
        prop_assert_eq!(
            has(|it| matches!(it, SelectionReason::Triggered(_))),
            in_set(|changes| &changes.triggered)
        );
        let statuses = query.statuses.as_ref();
        let tells_status = statuses.is_some_and(|it| it.changed || !it.wanted.is_empty());
        prop_assert_eq!(
            has(|it| matches!(it, SelectionReason::Status(_))),
            is_given(tells_status)
        );
        prop_assert_eq!(has(|it| matches!(it, SelectionReason::Directory(..))), 1);
        prop_assert_eq!(
            has(|it| matches!(it, SelectionReason::Glob(_))),
            is_given(!query.globs.is_empty())
        );
        prop_assert_eq!(
            has(|it| matches!(it, SelectionReason::Named(..))),
            is_given(query.named.is_some())
        );
        prop_assert_eq!(
            has(|it| matches!(it, SelectionReason::Tags(_))),
            is_given(!query.tags.is_empty())
        );
        Ok(())
    }
}
