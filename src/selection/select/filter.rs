//! The query, and the filters: the steps before `wants`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::path_filter::PathFilter;
use super::{Reach, SelectionReason};
use crate::change::trigger::Trigger;
use crate::change::{
    Baseline, ChangeBase, Changes, CountedStates, MissingStack, StackStatus, StackStatuses,
    StatusKind,
};
use crate::path::{ProjectPath, StackPath};
use crate::project::stack::{Stack, StackIndex};
use crate::project::tag::TagFilter;
use crate::release::Consumer;
use crate::selection::graph::NeighbourStep;

#[derive(Debug, Clone)]
pub struct Query {
    /// Only changed stacks, if set.
    pub changed: Option<Changes>,
    /// Only stacks that policies name at the release of a module, if set.
    pub released: Option<ReleasedQuery>,
    /// The statuses from the state, if the query needs them.
    pub recorded: Option<RecordedQuery>,
    pub directory: ProjectPath,
    pub scope: DirectoryMatch,
    /// Only stacks that match one of these; all if empty.
    pub globs: Vec<PathFilter>,
    /// Only these stacks, if set.
    pub named: Option<NamedStacks>,
    /// Only stacks that match one of these; all if empty.
    pub tags: Vec<TagFilter>,
    pub no_tags: Vec<String>,
    /// The neighbours of selected stacks to add, to keep or to drop.
    pub neighbours: Vec<Reach>,
    /// No stacks that match one of these, even if others want them.
    pub exclude: Vec<PathFilter>,
}

/// The statuses from the state, and the wanted ones.
#[derive(Debug, Clone)]
pub struct RecordedQuery {
    pub statuses: StackStatuses,
    /// Which uncommitted changes count for the statuses.
    pub counted: CountedStates,
    /// Whether only stacks are wanted whose status is not `applied`.
    pub changed: bool,
    /// Only stacks with one of these statuses; all if empty.
    pub wanted: BTreeSet<StatusKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryMatch {
    /// Stacks at or below it.
    Recursive,
    /// Only the stack at it.
    Exact,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedStacks {
    /// The source of the list, for messages: a file or standard input.
    pub source: String,
    /// The stacks, each with the first line that names it, from 1.
    pub lines: HashMap<StackIndex, usize>,
    /// The paths that name no stack of the project, each with its line. They may be recorded.
    pub missing: BTreeMap<String, usize>,
}

/// Why a stack is not selected: a condition that it does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// It did not change, and no trigger marks it.
    Unchanged,
    /// These triggers mark it as unchanged.
    Dismissed(Vec<Trigger>),
    /// No policy names it at the release of a module.
    Unreleased(Box<Released>),
    /// It has this status, which is not wanted.
    Status(StatusKind),
    /// It is not at or below the directory, or not exactly at it.
    Directory(ProjectPath, DirectoryMatch),
    /// It matches none of the globs.
    Globs,
    /// It is not in the list of stacks.
    Unnamed(String),
    /// It matches no tag filter.
    Tags,
    NoTags(Vec<String>),
    /// It matches each of these arguments of `--exclude`.
    Excluded(Vec<String>),
    /// It was selected, but only neighbours are wanted, and it is none.
    Only(Reach),
    /// It was selected, but neighbours are not wanted, and it is one.
    Neighbour(Reach, NeighbourStep),
    /// These drop a stack that would add it.
    Unreached(Vec<Reach>),
}

impl Obstacle {
    /// Returns whether it is a filter, which `wants` and neighbours bypass.
    pub fn is_filter(&self) -> bool {
        !matches!(
            self,
            Obstacle::Excluded(_)
                | Obstacle::Only(_)
                | Obstacle::Neighbour(..)
                | Obstacle::Unreached(_)
        )
    }
}

/// The result of a filter: the reasons to select a stack, or the obstacle.
type FilterResult = Result<Vec<SelectionReason>, Obstacle>;

impl Query {
    /// Returns a query for all stacks at or below a directory.
    pub fn at_or_below(directory: ProjectPath) -> Self {
        Query {
            changed: None,
            released: None,
            recorded: None,
            directory,
            scope: DirectoryMatch::Recursive,
            globs: Vec::new(),
            named: None,
            tags: Vec::new(),
            no_tags: Vec::new(),
            neighbours: Vec::new(),
            exclude: Vec::new(),
        }
    }

    /// Applies all filters to a stack, in the order of the pipeline. Each gives reasons or an obstacle.
    fn checks<'a>(
        &'a self,
        index: StackIndex,
        stack: &'a Stack,
    ) -> impl Iterator<Item = FilterResult> + 'a {
        let checks = [
            Self::check_changed,
            Self::check_released,
            Self::check_applied,
            Self::check_directory,
            Self::check_globs,
            Self::check_named,
            Self::check_status,
            Self::check_tags,
            Self::check_no_tags,
            Self::check_exclude,
        ];
        checks
            .into_iter()
            .map(move |check| check(self, index, stack))
    }

    /// Returns why the filters let a stack pass, or `None` if they do not.
    pub(super) fn passes(&self, index: StackIndex, stack: &Stack) -> Option<Vec<SelectionReason>> {
        let mut reasons = Vec::with_capacity(1);
        for check in self.checks(index, stack) {
            reasons.append(&mut check.ok()?);
        }
        Some(reasons)
    }

    /// Returns all filters that a stack does not pass, in the order of the pipeline.
    pub fn obstacles(&self, index: StackIndex, stack: &Stack) -> Vec<Obstacle> {
        self.checks(index, stack).filter_map(Result::err).collect()
    }

    /// Returns whether a stack must never be selected.
    pub fn excludes(&self, stack: &Stack) -> bool {
        let mut exclude = self.exclude.iter();
        exclude.any(|filter| filter.matches(&stack.path))
    }

    fn check_changed(&self, index: StackIndex, _: &Stack) -> FilterResult {
        let Some(changes) = &self.changed else {
            return Ok(Vec::new());
        };
        if let Some(triggers) = changes.dismissed.get(&index) {
            return Err(Obstacle::Dismissed(triggers.clone()));
        }
        let cause = changes.stacks.get(&index).cloned();
        let trigger = changes.triggered.get(&index).cloned();
        let mut reasons = Vec::from_iter(cause.map(SelectionReason::Changed));
        reasons.extend(trigger.map(SelectionReason::Triggered));
        if reasons.is_empty() {
            return Err(Obstacle::Unchanged);
        }
        Ok(reasons)
    }

    fn check_released(&self, index: StackIndex, _: &Stack) -> FilterResult {
        let Some(query) = &self.released else {
            return Ok(Vec::new());
        };
        let released = Box::new(query.of(index));
        if query.named.contains_key(&index) {
            Ok(vec![SelectionReason::Released(released)])
        } else {
            Err(Obstacle::Unreleased(released))
        }
    }

    fn check_applied(&self, index: StackIndex, _: &Stack) -> FilterResult {
        let Some((status, recorded)) = self.status(index) else {
            return Ok(Vec::new());
        };
        match status {
            _ if !recorded.changed => Ok(Vec::new()),
            StackStatus::Applied => Err(Obstacle::Unchanged),
            status => Ok(vec![SelectionReason::Status(status.clone())]),
        }
    }

    fn check_status(&self, index: StackIndex, _: &Stack) -> FilterResult {
        let Some((status, recorded)) = self.status(index) else {
            return Ok(Vec::new());
        };
        let kind = status.kind();
        if recorded.wanted.is_empty() {
            Ok(Vec::new())
        } else if !recorded.wanted.contains(&kind) {
            Err(Obstacle::Status(kind))
        } else if recorded.changed {
            // Its change was already given as a reason.
            Ok(Vec::new())
        } else {
            Ok(vec![SelectionReason::Status(status.clone())])
        }
    }

    /// Returns the status of a stack, if the query needs it.
    fn status(&self, index: StackIndex) -> Option<(&StackStatus, &RecordedQuery)> {
        let recorded = self.recorded.as_ref()?;
        Some((recorded.statuses.stacks.get(&index)?, recorded))
    }

    /// Returns the recorded stacks that the project lacks whose status, path and tags pass the filters.
    pub fn missing(&self) -> impl Iterator<Item = (&str, &MissingStack)> {
        let recorded = self.recorded.as_ref();
        let is_narrowed = self.changed.is_some() || self.released.is_some() || self.named.is_some();
        let recorded = recorded.filter(|_| !is_narrowed);
        let missing = recorded
            .into_iter()
            .flat_map(|recorded| {
                let missing = recorded.statuses.missing.iter();
                missing.filter(|(_, stack)| recorded.wanted.contains(&stack.status.kind()))
            })
            .filter(|(key, stack)| self.places_missing(key, stack));
        missing.map(|(key, stack)| (key.as_str(), stack))
    }

    /// Returns whether a recorded stack that the project lacks passes all filters. Its removal counts as a
    /// change.
    pub fn passes_missing(&self, key: &str, stack: &MissingStack) -> bool {
        let has_changed = match (&self.changed, &self.recorded) {
            (Some(changes), _) => {
                let removed = &changes.since.removed;
                removed.iter().any(|path| path.as_str() == key)
            }
            (None, Some(recorded)) => !recorded.changed || stack.status == StackStatus::Removed,
            (None, None) => true,
        };
        let wanted = self.recorded.as_ref().map(|recorded| &recorded.wanted);
        let has_status =
            wanted.is_none_or(|all| all.is_empty() || all.contains(&stack.status.kind()));
        let named = self.named.as_ref();
        let is_named = named.is_none_or(|named| named.missing.contains_key(key));
        // Policies name stacks of the project.
        let is_released = self.released.is_none();
        has_changed && is_released && has_status && is_named && self.places_missing(key, stack)
    }

    /// Returns whether the path and the tags of a recorded stack that the project lacks pass the filters.
    fn places_missing(&self, key: &str, stack: &MissingStack) -> bool {
        let Some(path) = StackPath::parse(key) else {
            // An unreadable key is still shown to a user who looks at everything.
            return self.directory.is_root() && self.globs.is_empty();
        };
        let has = |tag: &str| stack.tags.iter().any(|it| it == tag);
        self.has_in_scope(&path)
            && (self.globs.is_empty() || self.globs.iter().any(|it| it.matches(&path)))
            && (self.tags.is_empty() || self.tags.iter().any(|it| it.matches(has)))
            && !self.no_tags.iter().any(|tag| has(tag))
            && !self.exclude.iter().any(|it| it.matches(&path))
    }

    /// Returns the base of changes, if only changed stacks are wanted.
    pub fn since(&self) -> Option<Baseline> {
        if let Some(changes) = &self.changed {
            return Some(changes.since.clone());
        }
        let recorded = self.recorded.as_ref().filter(|it| it.changed)?;
        let statuses = &recorded.statuses;
        let here = |path: &StackPath| path.directory().is_at_or_below(&self.directory);
        let removed = statuses.removed().into_iter().filter(here);
        Some(Baseline {
            base: ChangeBase::Applied(statuses.base.clone()),
            removed: removed.collect(),
            outside: false,
        })
    }

    fn has_in_scope(&self, stack: &StackPath) -> bool {
        match self.scope {
            DirectoryMatch::Recursive => stack.directory().is_at_or_below(&self.directory),
            DirectoryMatch::Exact => *stack.directory() == self.directory,
        }
    }

    fn check_directory(&self, _: StackIndex, stack: &Stack) -> FilterResult {
        let directory = self.directory.clone();
        if self.has_in_scope(&stack.path) {
            Ok(vec![SelectionReason::Directory(directory, self.scope)])
        } else {
            Err(Obstacle::Directory(directory, self.scope))
        }
    }

    fn check_globs(&self, _: StackIndex, stack: &Stack) -> FilterResult {
        if self.globs.is_empty() {
            return Ok(Vec::new());
        }
        let mut globs = self.globs.iter();
        match globs.find(|filter| filter.matches(&stack.path)) {
            Some(filter) => Ok(vec![SelectionReason::Glob(filter.written.clone())]),
            None => Err(Obstacle::Globs),
        }
    }

    fn check_named(&self, index: StackIndex, _: &Stack) -> FilterResult {
        let Some(named) = &self.named else {
            return Ok(Vec::new());
        };
        let source = named.source.clone();
        match named.lines.get(&index) {
            Some(&line) => Ok(vec![SelectionReason::Named(source, line)]),
            None => Err(Obstacle::Unnamed(source)),
        }
    }

    fn check_tags(&self, _: StackIndex, stack: &Stack) -> FilterResult {
        if self.tags.is_empty() {
            return Ok(Vec::new());
        }
        let mut filters = self.tags.iter();
        match filters.find(|filter| filter.matches(|tag| stack.has_tag(tag))) {
            Some(filter) => Ok(vec![SelectionReason::Tags(filter.clone())]),
            None => Err(Obstacle::Tags),
        }
    }

    fn check_no_tags(&self, _: StackIndex, stack: &Stack) -> FilterResult {
        let carried = self.no_tags.iter().filter(|tag| stack.has_tag(tag));
        let carried: Vec<String> = carried.cloned().collect();
        if carried.is_empty() {
            Ok(Vec::new())
        } else {
            Err(Obstacle::NoTags(carried))
        }
    }

    fn check_exclude(&self, _: StackIndex, stack: &Stack) -> FilterResult {
        let meaning = self.exclude.iter().filter(|it| it.matches(&stack.path));
        let meaning: Vec<String> = meaning.map(|filter| filter.written.clone()).collect();
        if meaning.is_empty() {
            Ok(Vec::new())
        } else {
            Err(Obstacle::Excluded(meaning))
        }
    }
}

/// The stacks that policies name at the release of a module.
#[derive(Debug, Clone)]
pub struct ReleasedQuery {
    pub module: String,
    pub old: String,
    pub new: String,
    /// The stacks whose calls resolve to the old version.
    pub consumers: BTreeMap<StackIndex, Consumer>,
    /// The named stacks, each with the policies that name it, by name.
    pub named: BTreeMap<StackIndex, Vec<String>>,
}

/// The relation of a stack to the release of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    pub module: String,
    pub old: String,
    pub new: String,
    /// By name.
    pub policies: Vec<String>,
    /// Its call that resolves to the old version, if it has one.
    pub consumer: Option<Consumer>,
}

impl ReleasedQuery {
    pub(super) fn of(&self, stack: StackIndex) -> Released {
        let policies = self.named.get(&stack);
        Released {
            module: self.module.clone(),
            old: self.old.clone(),
            new: self.new.clone(),
            policies: policies.cloned().unwrap_or_default(),
            consumer: self.consumers.get(&stack).cloned(),
        }
    }
}
