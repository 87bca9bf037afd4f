//! The inputs that the `ignore_changes` of stacks leaves out.
//!
//! A file is matched by its own path, however it is reached; a submodule is ignored if all of it is. This
//! module does not know what changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::path::ProjectPath;
use crate::pattern::FilePattern;
use crate::project::Project;
use crate::project::lifecycle::{IgnoredChanges, IgnoredInput};
use crate::project::stack::StackIndex;
use crate::source::Spanned;

#[derive(Debug, Default)]
pub(super) struct IgnoreLists(BTreeMap<StackIndex, IgnoreList>);

#[derive(Debug)]
pub(super) struct IgnoreList {
    directory: ProjectPath,
    rule: Arc<IgnoreRule>,
    /// The globs from the stack's directory to files outside of it.
    climbing: Vec<FilePattern>,
}

/// A rule, shared by all stacks that it applies to.
#[derive(Debug)]
struct IgnoreRule {
    is_all: bool,
    /// The entries, sorted.
    words: Vec<String>,
    /// Globs within the stack's directory, relative to it.
    inside: Vec<FilePattern>,
    /// Globs from the project root.
    anywhere: Vec<FilePattern>,
    /// Globs that leave the stack's directory, as written.
    climbing: Vec<String>,
    variables: BTreeSet<String>,
}

impl IgnoreRule {
    fn of(changes: &IgnoredChanges) -> Self {
        let mut words = changes.words();
        words.sort_unstable();
        words.dedup();
        let mut rule = IgnoreRule {
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
                // Digests of outputs decide about it, not files.
                IgnoredInput::Input(_) => {}
                IgnoredInput::Variable(name) => {
                    rule.variables.insert(name.clone());
                }
                // An invalid glob was reported where it is written.
                IgnoredInput::Files(glob) => match FilePattern::new(&ProjectPath::root(), glob) {
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
    pub(super) fn of(project: &Project) -> Self {
        // By address of the rule: thousands of stacks may share one.
        let mut rules: HashMap<*const Spanned<IgnoredChanges>, Arc<IgnoreRule>> = HashMap::new();
        let mut lists = BTreeMap::new();
        for (stack, declared) in project.stacks.iter() {
            let Some(changes) = project.rules_of(stack).ignore_changes else {
                continue;
            };
            let rule = rules
                .entry(std::ptr::from_ref(changes))
                .or_insert_with(|| Arc::new(IgnoreRule::of(&changes.value)));
            let directory = declared.path.directory();
            let climbing = rule
                .climbing
                .iter()
                .filter_map(|glob| FilePattern::new(directory, glob).ok());
            let list = IgnoreList {
                directory: directory.clone(),
                rule: Arc::clone(rule),
                climbing: climbing.collect(),
            };
            lists.insert(stack, list);
        }
        IgnoreLists(lists)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &IgnoreList> {
        self.0.values()
    }

    pub(super) fn get(&self, stack: StackIndex) -> Option<&IgnoreList> {
        self.0.get(&stack)
    }
}

impl IgnoreList {
    pub(super) fn is_all(&self) -> bool {
        self.rule.is_all
    }

    pub(super) fn words(&self) -> &[String] {
        &self.rule.words
    }

    pub(super) fn variables(&self) -> &BTreeSet<String> {
        &self.rule.variables
    }

    /// Returns the globs that may match files outside of the stack's directory.
    pub(super) fn outside(&self) -> impl Iterator<Item = &FilePattern> {
        self.rule.anywhere.iter().chain(&self.climbing)
    }

    /// Returns whether it has globs over the directory of the stack.
    pub(super) fn has_inside(&self) -> bool {
        !self.rule.inside.is_empty()
    }

    /// Returns whether a glob matches a file within the stack's directory.
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
pub(super) fn covers(glob: &FilePattern, file: &ProjectPath, is_repository: bool) -> bool {
    glob.matches(file)
        || is_repository && file.is_at_or_below(glob.directory()) && glob.matches_all_below(file)
}
