//! The symbolic links of stacks: what they lead to is as good as part of the stack.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::tree::Tree;
use crate::change::Cause;
use crate::path::ProjectPath;
use crate::stack::{StackIndex, Stacks};

/// Returns the wanted stacks that have a link to something that changed, each with the first such
/// link by path, those in directories that the walk left out last. A link belongs to the nearest
/// stack at or above it; one that leads out of the project, or round in a circle, leads to nothing.
pub(super) fn changed_stacks(
    tree: &Tree,
    stacks: &Stacks,
    is_wanted: impl Fn(StackIndex) -> bool + Sync,
) -> BTreeMap<StackIndex, Cause> {
    let of_directory = |directory: &ProjectPath| {
        let stack = stacks
            .at(directory.as_str())
            .or_else(|| stacks.nearest_above(directory))?;
        is_wanted(stack).then_some(stack)
    };
    let cause = |link: &ProjectPath| {
        let touch = tree.touch(link)?;
        let file = touch.file.clone();
        let chain = touch.links;
        Some(Cause { file, chain })
    };
    let listed = tree.links.par_iter().map(|&(directory, listed)| {
        let stack = of_directory(directory)?;
        let mut links = listed.links.iter();
        let found = links.find_map(|name| cause(&directory.join(&name.to_string_lossy())));
        Some((stack, found?))
    });
    let left_out = tree.listing.left_out().par_iter().map(|directory| {
        let stack = of_directory(directory)?;
        let links = tree.links_on_disk(directory);
        Some((stack, links.iter().find_map(cause)?))
    });
    let causes: Vec<Option<(StackIndex, Cause)>> = listed.chain(left_out).collect();
    let mut found = BTreeMap::new();
    for (stack, cause) in causes.into_iter().flatten() {
        found.entry(stack).or_insert(cause);
    }
    found
}
