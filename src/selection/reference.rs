//! What `after`, `before`, `wants` and `wanted_by` name.
//!
//! A path names every stack at or below it, a `tag:` filter every stack that matches, and neither
//! ever the stack that declares it. A directory that contains the declaring stack stands for all
//! other stacks at or below it, without those nested in the declaring stack, which run after it
//! anyway. Only `after` takes an ancestor that is itself a stack for that stack alone, so
//! `after = ["/parent"]` in `/parent/child` is true and harmless.
//!
//! The path of a directory with instances names all of them, or, in a reference of one of them, all the
//! others. A key in brackets after the path chooses one; `[*]` chooses all, without what is nested in them.
//!
//! A directory or tag that names several stacks stays one [`Target`]; only the graph and the
//! selection look inside, once for all references to it.

use std::collections::HashMap;
use std::fmt;

use super::dangling::{self, Dangling};
use crate::change::Since;
use crate::diagnostic::{Code, Diagnostic};
use crate::path::{KeyFilter, ProjectPath};
use crate::project::Project;
use crate::project::stack::{Stack, StackIndex, Stacks};
use crate::project::tag::TagFilter;
use crate::source::{Span, Spanned};

/// How many suggestions are made: each looks at all stacks.
const MAX_SUGGESTIONS: usize = 20;

/// The attribute that a reference stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// Runs after what is named.
    After,
    /// Runs before what is named.
    Before,
    /// When selected, selects what is named.
    Wants,
    /// Is selected with what is named.
    WantedBy,
}

impl fmt::Display for ReferenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReferenceKind::After => "after",
            ReferenceKind::Before => "before",
            ReferenceKind::Wants => "wants",
            ReferenceKind::WantedBy => "wanted_by",
        })
    }
}

/// A reference that names at least one stack.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The stack that declares it.
    pub from: StackIndex,
    /// The attribute.
    pub kind: ReferenceKind,
    /// What it names.
    pub target: Target,
    /// Where it is written.
    pub span: Span,
}

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// One stack.
    Stack(StackIndex),
    /// All stacks at or below a directory, which does not contain the declaring stack.
    Directory(ProjectPath),
    /// All stacks at or below a directory that contains the declaring stack, except for that stack
    /// and those nested in it.
    Enclosing(ProjectPath),
    /// All instances in this directory, except the declaring stack.
    Instances(ProjectPath),
    /// All stacks of a tag group, except the declaring stack.
    Tag(TagGroupIndex),
}

/// The index of a tag group; see [`References::tag_group`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TagGroupIndex(u32);

/// The stacks that a tag filter means.
#[derive(Debug, Clone)]
pub struct TagGroup {
    /// The filter.
    pub filter: TagFilter,
    /// The stacks, in path order.
    pub members: Vec<StackIndex>,
}

/// All references of a project, by declaring stack, in the order of the attributes above.
#[derive(Debug, Default)]
pub struct References {
    /// The references.
    pub list: Vec<Reference>,
    tag_groups: Vec<TagGroup>,
    dangling: Vec<Dangling>,
}

impl References {
    /// Resolves all references of a project, and adds what is wrong to `problems`. Errors are: a path
    /// that leads out of the project, an invalid tag filter, and `after` or `before` that name only
    /// the declaring stack. Warnings are: `wants` or `wanted_by` that name only the declaring stack,
    /// and a reference that names nothing, which is an error if the project says
    /// `references = "strict"`.
    pub fn resolve(project: &Project, problems: &mut Vec<Diagnostic>) -> Self {
        Self::resolve_for(project, problems, true)
    }

    /// Resolves all references of stacks that need not be in the tree: nobody asks why one names nothing.
    pub(super) fn of_record(project: &Project) -> Self {
        Self::resolve_for(project, &mut Vec::new(), false)
    }

    fn resolve_for(project: &Project, problems: &mut Vec<Diagnostic>, explains: bool) -> Self {
        let mut resolver = ReferenceResolver {
            project,
            references: References::default(),
            groups_by_filter: HashMap::new(),
            explains,
            suggestions: 0,
            problems,
        };
        for (index, stack) in project.stacks.iter() {
            let attributes = [
                (ReferenceKind::After, &stack.after),
                (ReferenceKind::Before, &stack.before),
                (ReferenceKind::Wants, &stack.wants),
                (ReferenceKind::WantedBy, &stack.wanted_by),
            ];
            for (kind, entries) in attributes {
                for entry in entries {
                    resolver.resolve(index, stack, kind, entry);
                }
            }
        }
        resolver.references
    }

    /// Adds a note to the diagnostics of references that name a stack removed since the base.
    pub fn note_removed(&self, since: &Since, diagnostics: &mut [Diagnostic]) {
        dangling::note_removed(&self.dangling, since, diagnostics);
    }

    /// Returns a tag group.
    pub fn tag_group(&self, index: TagGroupIndex) -> &TagGroup {
        &self.tag_groups[index.0 as usize]
    }

    /// Returns the stacks that a reference names, in path order.
    pub fn named(&self, reference: &Reference, stacks: &Stacks) -> Vec<StackIndex> {
        let mut members = self.members(&reference.target, stacks);
        members.retain(|&member| reference.is_other(member, stacks));
        members
    }

    /// Returns all stacks of a target, in path order. A stack that refers to a group that it belongs
    /// to does not name all of them: see [`Self::named`].
    pub fn members(&self, target: &Target, stacks: &Stacks) -> Vec<StackIndex> {
        match target {
            Target::Stack(stack) => vec![*stack],
            Target::Directory(directory) | Target::Enclosing(directory) => {
                stacks.at_or_below(directory).collect()
            }
            Target::Instances(directory) => stacks.at(directory.as_str()).collect(),
            Target::Tag(group) => self.tag_group(*group).members.clone(),
        }
    }

    /// Returns whether a reference names a stack, as one of [`Self::named`].
    pub fn names(&self, reference: &Reference, stack: StackIndex, stacks: &Stacks) -> bool {
        let is_member = match &reference.target {
            Target::Stack(named) => *named == stack,
            Target::Directory(directory) | Target::Enclosing(directory) => {
                stacks[stack].path.directory().is_at_or_below(directory)
            }
            Target::Instances(directory) => stacks[stack].path.directory() == directory,
            Target::Tag(group) => {
                let members = &self.tag_group(*group).members;
                members.binary_search(&stack).is_ok()
            }
        };
        is_member && reference.is_other(stack, stacks)
    }
}

impl Reference {
    /// Returns whether a reference includes a member of its target, from which the declaring stack
    /// may leave some out.
    fn is_other(&self, member: StackIndex, stacks: &Stacks) -> bool {
        match self.target {
            Target::Enclosing(_) => {
                let directory = stacks[self.from].path.directory();
                !stacks[member].path.directory().is_at_or_below(directory)
            }
            Target::Stack(_) | Target::Directory(_) | Target::Instances(_) | Target::Tag(_) => {
                member != self.from
            }
        }
    }
}

struct ReferenceResolver<'a> {
    project: &'a Project,
    references: References,
    groups_by_filter: HashMap<TagFilter, TagGroupIndex>,
    /// Whether it is explained why a reference names nothing, which takes looks at the disk.
    explains: bool,
    suggestions: usize,
    problems: &'a mut Vec<Diagnostic>,
}

impl ReferenceResolver<'_> {
    fn resolve(
        &mut self,
        from: StackIndex,
        stack: &Stack,
        kind: ReferenceKind,
        entry: &Spanned<String>,
    ) {
        let target = match entry.value.strip_prefix("tag:") {
            Some(filter) => self.tag(from, filter, kind, entry),
            None => self.path(from, stack, kind, entry),
        };
        if let Some(target) = target {
            self.references.list.push(Reference {
                from,
                kind,
                target,
                span: entry.span,
            });
        }
    }

    fn tag(
        &mut self,
        from: StackIndex,
        filter: &str,
        kind: ReferenceKind,
        entry: &Spanned<String>,
    ) -> Option<Target> {
        let filter = match TagFilter::parse(filter) {
            Ok(filter) => filter,
            Err(bad) => {
                let diagnostic = Diagnostic::error(
                    Code::InvalidTag,
                    format!("`{}` is not a tag filter", entry.value),
                );
                let diagnostic = diagnostic.label(entry.span, bad.to_string());
                self.problems
                    .push(diagnostic.help("write `tag:a:b` for both tags, `tag:a,b` for either"));
                return None;
            }
        };
        let stacks = &self.project.stacks;
        let groups = &mut self.references.tag_groups;
        let group = *self
            .groups_by_filter
            .entry(filter.clone())
            .or_insert_with(|| {
                let index = u32::try_from(groups.len()).expect("fewer than four billion filters");
                let members = stacks.tagged(&filter);
                groups.push(TagGroup {
                    filter: filter.clone(),
                    members,
                });
                TagGroupIndex(index)
            });
        match *self.references.tag_group(group).members.as_slice() {
            [] if !self.project.broken.is_empty() => None, // what is broken may carry it
            [] if !self.explains => None,
            [] => {
                let mut wanted = filter.alternatives().flatten();
                let unknown = wanted.find(|tag| !stacks.has_tag(tag));
                let label = "no stack carries such tags";
                let diagnostic = dangling::names_nothing(self.project, kind, entry, label);
                self.suggestions += 1;
                self.problems.push(match unknown {
                    Some(tag) if self.suggestions <= MAX_SUGGESTIONS => {
                        let others = stacks.tags().filter(|tag| *stacks.with_tag(tag) != [from]);
                        diagnostic.did_you_mean(tag, others)
                    }
                    _ => diagnostic,
                });
                None
            }
            // All instances share one block: for the others, the reference makes sense.
            [only] if only == from && stacks[from].path.key().is_some() => None,
            [only] if only == from => {
                self.names_only_itself(kind, entry, "only this stack carries such tags");
                None
            }
            [only] => Some(Target::Stack(only)),
            _ => Some(Target::Tag(group)),
        }
    }

    fn path(
        &mut self,
        from: StackIndex,
        stack: &Stack,
        kind: ReferenceKind,
        entry: &Spanned<String>,
    ) -> Option<Target> {
        let (written, key) = self.split_key(stack, &entry.value);
        let Ok(path) = stack.path.directory().resolve(written) else {
            let diagnostic = Diagnostic::error(
                Code::OutsideProject,
                format!("`{}` leads out of the project", entry.value),
            )
            .label(entry.span, "climbs above the project root");
            let help = "name a directory inside the project; a leading `/` is the project root";
            self.problems.push(diagnostic.help(help));
            return None;
        };
        if let Some(key) = key {
            return self.instances(from, stack, kind, entry, path, &key);
        }
        let stacks = &self.project.stacks;
        if stack.path.directory().is_at_or_below(&path) {
            return self.enclosing(from, stack, kind, entry, path);
        }
        let mut named = stacks.at_or_below(&path);
        match (named.next(), named.next()) {
            (Some(only), None) => Some(Target::Stack(only)),
            (Some(_), Some(_)) => Some(Target::Directory(path)),
            // Another diagnostic explains what is broken there.
            (None, _) if self.broken_within(&path) || !self.explains => None,
            (None, _) => {
                let label = dangling::why_nothing(self.project, &path);
                let mut diagnostic = dangling::names_nothing(self.project, kind, entry, label);
                self.references.dangling.push(Dangling {
                    path: path.clone(),
                    key: None,
                    span: entry.span,
                    message: diagnostic.message.clone(),
                });
                self.suggestions += 1;
                if self.suggestions <= MAX_SUGGESTIONS {
                    let others = stacks.iter().filter(|(other, _)| *other != from);
                    let candidates = others.map(|(_, other)| other.path.as_str());
                    diagnostic = diagnostic.did_you_mean(path.as_str(), candidates);
                }
                self.problems.push(diagnostic);
                None
            }
        }
    }

    /// Splits the key from a reference. A directory whose name looks as if it ended in a
    /// key takes precedence.
    fn split_key<'w>(&self, stack: &Stack, written: &'w str) -> (&'w str, Option<KeyFilter>) {
        let is_directory = || {
            let path = stack.path.directory().resolve(written).ok();
            path.is_some_and(|path| self.project.stacks.at_or_below(&path).next().is_some())
        };
        match KeyFilter::split(written) {
            (path, Some(key)) if !is_directory() => (path, Some(key)),
            _ => (written, None),
        }
    }

    /// Resolves a directory followed by a key in brackets.
    fn instances(
        &mut self,
        from: StackIndex,
        stack: &Stack,
        kind: ReferenceKind,
        entry: &Spanned<String>,
        directory: ProjectPath,
        key: &KeyFilter,
    ) -> Option<Target> {
        let stacks = &self.project.stacks;
        let here = stacks.at(directory.as_str());
        let mut named = stacks.instances(&here, key);
        match (named.next(), named.next()) {
            // All instances share one block: for the others, the reference makes sense.
            (Some(only), None) if only == from => None,
            (Some(only), None) => Some(Target::Stack(only)),
            (Some(_), Some(_)) => self.others_beside(from, directory, stack),
            (None, _) if self.broken_within(&directory) || !self.explains => None,
            (None, _) => {
                let label = match here.first() {
                    None => dangling::why_nothing(self.project, &directory),
                    Some(first) if stacks[first].path.key().is_some() => "no instance has this key",
                    Some(_) => "this stack has no instances",
                };
                let mut diagnostic = dangling::names_nothing(self.project, kind, entry, label);
                self.references.dangling.push(Dangling {
                    path: directory.clone(),
                    key: Some(key.clone()),
                    span: entry.span,
                    message: diagnostic.message.clone(),
                });
                self.suggestions += 1;
                if self.suggestions <= MAX_SUGGESTIONS {
                    let others = here.filter(|&other| other != from);
                    let candidates = others.map(|other| stacks[other].path.as_str());
                    let wanted = format!("{directory}{key}");
                    diagnostic = diagnostic.did_you_mean(&wanted, candidates);
                }
                self.problems.push(diagnostic);
                None
            }
        }
    }

    /// Returns the target for the instances in a directory, without the declaring stack if it is one of
    /// them. `None` if no other is left.
    fn others_beside(
        &self,
        from: StackIndex,
        directory: ProjectPath,
        stack: &Stack,
    ) -> Option<Target> {
        let here = self.project.stacks.at(directory.as_str());
        let is_inside = *stack.path.directory() == directory;
        let mut others = here.filter(|&other| other != from || !is_inside);
        match (others.next(), others.next()) {
            (Some(only), None) => Some(Target::Stack(only)),
            (Some(_), Some(_)) => Some(Target::Instances(directory)),
            (None, _) => None,
        }
    }

    /// Resolves a directory that contains the declaring stack or is its own.
    fn enclosing(
        &mut self,
        from: StackIndex,
        stack: &Stack,
        kind: ReferenceKind,
        entry: &Spanned<String>,
        directory: ProjectPath,
    ) -> Option<Target> {
        if directory == *stack.path.directory() {
            if stack.path.key().is_some() {
                return self.others_beside(from, directory, stack);
            }
            self.names_only_itself(kind, entry, "this is the stack itself");
            return None;
        }
        let stacks = &self.project.stacks;
        if kind == ReferenceKind::After {
            let above = stacks.at(directory.as_str());
            if above.len() > 0 {
                let target = above.only().map(Target::Stack);
                return Some(target.unwrap_or(Target::Instances(directory)));
            }
            let mut broken = self.project.broken.iter();
            let mut empty = self.project.without_instances.iter();
            if broken.any(|broken| broken.parent().as_ref() == Some(&directory))
                || empty.any(|empty| empty.directory == directory)
            {
                return None; // it may have been meant to be a stack, or has no instances now
            }
        }
        let mut others = stacks.at_or_below_except(&directory, stack.path.directory());
        match (others.next(), others.next()) {
            (Some(only), None) => Some(Target::Stack(only)),
            (Some(_), Some(_)) => Some(Target::Enclosing(directory)),
            (None, _) if self.broken_within(&directory) => None,
            (None, _) => {
                let label = "no other stack at or below this directory";
                self.names_only_itself(kind, entry, label);
                None
            }
        }
    }

    fn broken_within(&self, directory: &ProjectPath) -> bool {
        let mut broken = self.project.broken.iter();
        broken.any(|broken| broken.is_at_or_below(directory))
    }

    fn names_only_itself(&mut self, kind: ReferenceKind, entry: &Spanned<String>, label: &str) {
        let message = format!("`{}` in `{kind}` names only the stack itself", entry.value);
        let diagnostic = match kind {
            ReferenceKind::After | ReferenceKind::Before => {
                Diagnostic::error(Code::SelfReference, message)
            }
            ReferenceKind::Wants | ReferenceKind::WantedBy => {
                Diagnostic::warning(Code::SelfReference, message)
            }
        };
        self.problems
            .push(diagnostic.label(entry.span, label).help("remove it"));
    }
}
