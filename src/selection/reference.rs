//! The stacks that `after`, `before`, `wants`, `wanted_by` and `replace_triggered_by` name, and those whose
//! data a stack uses.
//!
//! A path names every stack at or below it, a `tag:` filter every stack that matches, and neither ever the
//! stack that declares it. A directory that contains the declaring stack stands for all other stacks at or
//! below it, without those nested in the declaring stack, which run after it anyway. Only in `after`, an
//! ancestor that is itself a stack stands for that stack alone, so `after = ["/parent"]` in `/parent/child`
//! is true and harmless.
//!
//! The path of a directory with instances names all of them, or, in a reference of one of them, all the
//! others. A key in brackets after the path selects one. `[*]` selects all, without stacks nested in them.
//!
//! A directory or tag that names several stacks stays one [`ReferenceTarget`]. Only the graph and the selection expand
//! it, once for all references to it.

mod resolver;

use std::fmt;

use super::dangling::{self, Dangling};
use crate::change::Baseline;
use crate::diagnostic::Diagnostic;
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::stack::{DataKind, StackIndex, Stacks};
use crate::project::tag::TagFilter;
use crate::source::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// Runs after the named stacks.
    After,
    /// Runs before the named stacks.
    Before,
    /// When selected, selects the named stacks.
    Wants,
    /// Is selected with any of the named stacks.
    WantedBy,
    /// Is replaced when a named stack changes, and so runs after it.
    ReplaceTriggeredBy,
    /// Uses data of a stack, and so runs after it.
    Data(DataKind),
}

impl fmt::Display for ReferenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReferenceKind::After => "after",
            ReferenceKind::Before => "before",
            ReferenceKind::Wants => "wants",
            ReferenceKind::WantedBy => "wanted_by",
            ReferenceKind::ReplaceTriggeredBy => "replace_triggered_by",
            ReferenceKind::Data(kind) => return kind.fmt(f),
        })
    }
}

/// A reference that names at least one stack.
#[derive(Debug, Clone)]
pub struct Reference {
    pub from: StackIndex,
    pub kind: ReferenceKind,
    pub target: ReferenceTarget,
    /// The only output that counts, in `replace_triggered_by`; see there.
    pub output: Option<String>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ReferenceTarget {
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

/// The stacks that match a tag filter.
#[derive(Debug, Clone)]
pub struct TagGroup {
    pub filter: TagFilter,
    /// In path order.
    pub members: Vec<StackIndex>,
}

/// All references of a project, by declaring stack, in the order of the attributes above.
#[derive(Debug, Default)]
pub struct References {
    pub list: Vec<Reference>,
    tag_groups: Vec<TagGroup>,
    dangling: Vec<Dangling>,
}

impl References {
    /// Resolves all references of a project, and adds their problems to `problems`. Errors: a path that
    /// leaves the project, an invalid tag filter, and the declaring stack's own path in `after` or `before`.
    /// Warnings: that path in `wants` or `wanted_by`, and a reference that names no other stack, which is an
    /// error with `references = "strict"`.
    pub fn resolve(project: &Project, problems: &mut Vec<Diagnostic>) -> Self {
        resolver::resolve(project, problems, true)
    }

    /// Returns the uses of data alone, whether or not they order stacks.
    pub(super) fn of_data(stacks: &Stacks) -> Self {
        let uses = stacks.iter().flat_map(|(index, stack)| {
            let uses = stack.uses.iter().filter(|it| it.kind.is_data());
            uses.filter_map(move |it| resolver::data(stacks, index, it))
        });
        References {
            list: uses.collect(),
            ..References::default()
        }
    }

    /// Resolves the references of recorded stacks, without explaining those that name nothing.
    pub(super) fn of_record(project: &Project) -> Self {
        resolver::resolve(project, &mut Vec::new(), false)
    }

    /// Adds a note to the diagnostics of references that name a stack removed since the base.
    pub fn note_removed(&self, since: &Baseline, diagnostics: &mut [Diagnostic]) {
        dangling::note_removed(&self.dangling, since, diagnostics);
    }

    pub fn tag_group(&self, index: TagGroupIndex) -> &TagGroup {
        &self.tag_groups[index.0 as usize]
    }

    /// Returns the stacks that a reference names, in path order.
    pub fn named(&self, reference: &Reference, stacks: &Stacks) -> Vec<StackIndex> {
        let mut members = self.members(&reference.target, stacks);
        members.retain(|&member| reference.is_other(member, stacks));
        members
    }

    /// Returns all stacks of a target, in path order. A stack that refers to its own group does not name all
    /// of them: see [`Self::named`].
    pub fn members(&self, target: &ReferenceTarget, stacks: &Stacks) -> Vec<StackIndex> {
        match target {
            ReferenceTarget::Stack(stack) => vec![*stack],
            ReferenceTarget::Directory(directory) | ReferenceTarget::Enclosing(directory) => {
                stacks.at_or_below(directory).collect()
            }
            ReferenceTarget::Instances(directory) => stacks.at(directory.as_str()).collect(),
            ReferenceTarget::Tag(group) => self.tag_group(*group).members.clone(),
        }
    }

    pub fn names(&self, reference: &Reference, stack: StackIndex, stacks: &Stacks) -> bool {
        let is_member = match &reference.target {
            ReferenceTarget::Stack(named) => *named == stack,
            ReferenceTarget::Directory(directory) | ReferenceTarget::Enclosing(directory) => {
                stacks[stack].path.directory().is_at_or_below(directory)
            }
            ReferenceTarget::Instances(directory) => stacks[stack].path.directory() == directory,
            ReferenceTarget::Tag(group) => {
                let members = &self.tag_group(*group).members;
                members.binary_search(&stack).is_ok()
            }
        };
        is_member && reference.is_other(stack, stacks)
    }
}

impl Reference {
    /// Returns whether a reference includes a member of its target: the declaring stack may leave some out.
    fn is_other(&self, member: StackIndex, stacks: &Stacks) -> bool {
        match self.target {
            ReferenceTarget::Enclosing(_) => {
                let directory = stacks[self.from].path.directory();
                !stacks[member].path.directory().is_at_or_below(directory)
            }
            ReferenceTarget::Stack(_)
            | ReferenceTarget::Directory(_)
            | ReferenceTarget::Instances(_)
            | ReferenceTarget::Tag(_) => member != self.from,
        }
    }
}
