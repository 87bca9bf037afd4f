//! The inputs that a stack's configuration names itself.

use super::canonical::is_no_input;
use super::cause::UseKind;
use super::inputs::{ChangedInput, Tree};
use crate::project::Project;
use crate::project::stack::{AttributeRead, Stack, StackIndex, Watch};
use crate::source::Spanned;

/// Returns the watched places of a stack, then the imported ones.
pub(super) fn named(
    project: &Project,
    stack: StackIndex,
) -> impl Iterator<Item = (UseKind, &Spanned<Watch>)> {
    let stack = &project.stacks[stack];
    let watched = stack.watch.iter().map(|entry| (UseKind::Watch, entry));
    let imports = project
        .imports
        .get(stack.path.directory())
        .into_iter()
        .flatten();
    watched.chain(imports.map(|entry| (UseKind::Import, entry)))
}

/// Returns the reads of functions in those attributes of a `stack` block that are inputs.
pub(super) fn reads(stack: &Stack) -> impl Iterator<Item = &AttributeRead> {
    let reads = stack.reads.iter();
    reads.filter(|read| !is_no_input(&read.attribute.text))
}

/// Returns a change of a watched or imported place.
pub(super) fn touch_named<'a>(tree: &Tree<'a>, watch: &Watch) -> Option<ChangedInput<'a>> {
    match watch {
        Watch::File(path) => tree.touch(path),
        Watch::FilePattern(pattern) => tree.touch_matching(pattern),
    }
}
