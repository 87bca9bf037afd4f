//! Which inputs the `ignore_changes` of stacks leaves out.
//!
//! A file goes by its own path, whatever leads to it; a submodule is left out if all of it is. This module does
//! not know what has changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::path::ProjectPath;
use crate::pattern::Pattern;
use crate::project::Project;
use crate::project::lifecycle::{IgnoredChanges, IgnoredInput};
use crate::project::stack::StackIndex;
use crate::source::Spanned;

/// What stacks ignore; only those that ignore anything.
#[derive(Debug, Default)]
pub(super) struct IgnoreLists(BTreeMap<StackIndex, IgnoreList>);

/// What a stack ignores.
#[derive(Debug)]
pub(super) struct IgnoreList {
    directory: ProjectPath,
    rule: Arc<Rule>,
    /// The globs that lead from the directory of the stack to files outside it.
    climbing: Vec<Pattern>,
}

/// What a rule says for all stacks that it is in force for.
#[derive(Debug)]
struct Rule {
    is_all: bool,
    /// The entries, sorted.
    words: Vec<String>,
    /// Globs over the directory of a stack, as if that were the root.
    inside: Vec<Pattern>,
    /// Globs from the root.
    anywhere: Vec<Pattern>,
    /// Globs that climb out of the directory of a stack, as written.
    climbing: Vec<String>,
    variables: BTreeSet<String>,
}

impl Rule {
    fn of(changes: &IgnoredChanges) -> Self {
        let mut words = changes.words();
        words.sort_unstable();
        words.dedup();
        let mut rule = Rule {
            is_all: *changes == IgnoredChanges::All,
            words,
            inside: Vec::new(),
            anywhere: Vec::new(),
            climbing: Vec::new(),
            variables: BTreeSet::new(),
        };
        let IgnoredChanges::Inputs(inputs) = changes else {
            return rule;
        };
        for input in inputs {
            match &input.value {
                IgnoredInput::Variable(name) => {
                    rule.variables.insert(name.clone());
                }
                // What is wrong with a glob has been told where it is written.
                IgnoredInput::Files(glob) => match Pattern::new(&ProjectPath::root(), glob) {
                    Ok(pattern) if glob.starts_with('/') => rule.anywhere.push(pattern),
                    Ok(pattern) => rule.inside.push(pattern),
                    Err(_) => rule.climbing.push(glob.clone()),
                },
            }
        }
        rule
    }
}

impl IgnoreLists {
    /// Returns what the stacks of a project ignore.
    pub(super) fn of(project: &Project) -> Self {
        // By the place of the rule in memory: thousands of stacks may have one.
        let mut rules: HashMap<*const Spanned<IgnoredChanges>, Arc<Rule>> = HashMap::new();
        let mut lists = BTreeMap::new();
        for (stack, declared) in project.stacks.iter() {
            let Some(changes) = project.rules_of(stack).ignore_changes else {
                continue;
            };
            let rule = rules.entry(std::ptr::from_ref(changes));
            let rule = rule.or_insert_with(|| Arc::new(Rule::of(&changes.value)));
            let directory = declared.path.directory();
            let climbing = rule.climbing.iter();
            let climbing = climbing.filter_map(|glob| Pattern::new(directory, glob).ok());
            let list = IgnoreList {
                directory: directory.clone(),
                rule: Arc::clone(rule),
                climbing: climbing.collect(),
            };
            lists.insert(stack, list);
        }
        IgnoreLists(lists)
    }

    /// Returns whether no stack ignores anything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all of them, by stack.
    pub(super) fn iter(&self) -> impl Iterator<Item = &IgnoreList> {
        self.0.values()
    }

    /// Returns what a stack ignores, if it ignores anything.
    pub(super) fn get(&self, stack: StackIndex) -> Option<&IgnoreList> {
        self.0.get(&stack)
    }
}

impl IgnoreList {
    /// Returns whether every input is ignored.
    pub(super) fn is_all(&self) -> bool {
        self.rule.is_all
    }

    /// Returns the entries, sorted.
    pub(super) fn words(&self) -> &[String] {
        &self.rule.words
    }

    /// Returns the variables of `run.env` that are ignored.
    pub(super) fn variables(&self) -> &BTreeSet<String> {
        &self.rule.variables
    }

    /// Returns the globs that may match files outside the directory of the stack.
    pub(super) fn outside(&self) -> impl Iterator<Item = &Pattern> {
        self.rule.anywhere.iter().chain(&self.climbing)
    }

    /// Returns whether it has globs over the directory of the stack.
    pub(super) fn has_inside(&self) -> bool {
        !self.rule.inside.is_empty()
    }

    /// Returns whether a glob over the directory of the stack matches a file.
    pub(super) fn ignores_inside(&self, file: &ProjectPath, is_repository: bool) -> bool {
        let Some(rest) = file
            .as_str()
            .strip_prefix(&*self.directory.prefix_of_below())
        else {
            return false;
        };
        let inside = ProjectPath::root().join(rest);
        let mut globs = self.rule.inside.iter();
        globs.any(|glob| covers(glob, &inside, is_repository))
    }

    pub(super) fn ignores(&self, file: &ProjectPath, is_repository: bool) -> bool {
        self.ignores_inside(file, is_repository)
            || self.outside().any(|glob| covers(glob, file, is_repository))
    }
}

/// Returns whether a glob matches a file, or all of a submodule.
pub(super) fn covers(glob: &Pattern, file: &ProjectPath, is_repository: bool) -> bool {
    glob.matches(file)
        || is_repository && file.is_at_or_below(glob.directory()) && glob.matches_all_below(file)
}
