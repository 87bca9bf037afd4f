//! The symbolic links of stacks, whose targets are inputs.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::collected::CollectedInputs;
use super::follow::links_in;
use super::linked_changes::{ChangedInput, link_use};
use super::node::{FoundInput, InputNode};
use super::tree::Tree;
use crate::change::cause::{ChangeCause, InputLocation};
use crate::path::ProjectPath;
use crate::project::stack::{StackIndex, StackRange, Stacks};

/// Returns the wanted stacks with a link to a change, each with the first such link by path; links in
/// directories that the walk skipped come last. A link belongs to the nearest stack at or above it. One that
/// leaves the project, or forms a cycle, leads nowhere.
pub(super) fn changed_stacks(
    tree: &Tree,
    stacks: &Stacks,
    is_wanted: impl Fn(StackIndex) -> bool + Sync,
) -> BTreeMap<StackIndex, ChangeCause> {
    let wanted = |directory: &ProjectPath| -> Option<Vec<StackIndex>> {
        let wanted: Vec<StackIndex> = owners(stacks, directory)
            .filter(|&it| is_wanted(it))
            .collect();
        (!wanted.is_empty()).then_some(wanted)
    };
    let cause = |link: &ProjectPath| {
        let touch = tree.touch(link)?;
        let file = touch.file.clone();
        let chain = touch.links;
        Some(ChangeCause { file, chain })
    };
    let listed = tree.links().listed.par_iter().map(|&(directory, listed)| {
        let stacks = wanted(directory)?;
        let found = links_in(directory, listed).find_map(|link| cause(&link));
        Some((stacks, found?))
    });
    let left_out = tree.listing().left_out().par_iter().map(|directory| {
        let stacks = wanted(directory)?;
        let links = tree.links().links_on_disk(directory);
        Some((stacks, links.iter().find_map(cause)?))
    });
    let causes: Vec<Option<(Vec<StackIndex>, ChangeCause)>> = listed.chain(left_out).collect();
    let mut found = BTreeMap::new();
    for (stacks, cause) in causes.into_iter().flatten() {
        for stack in stacks {
            found.entry(stack).or_insert_with(|| cause.clone());
        }
    }
    found
}

/// Adds the targets of a stack's links.
pub(super) fn add_inputs(
    tree: &Tree,
    stacks: &Stacks,
    stack: StackIndex,
    inputs: &mut CollectedInputs,
) {
    let is_own = |directory: &ProjectPath| owners(stacks, directory).any(|owner| owner == stack);
    let mut add = |link: &ProjectPath| {
        for found in found(tree, link, tree.touch(link)) {
            inputs.add(found.location, &[], &found.steps, found.touch);
        }
    };
    let listed = tree.links().listed.iter();
    for &(directory, listed) in listed.filter(|(directory, _)| is_own(directory)) {
        links_in(directory, listed).for_each(|link| add(&link));
    }
    let left_out = tree.listing().left_out().iter();
    for directory in left_out.filter(|directory| is_own(directory)) {
        tree.links()
            .links_on_disk(directory)
            .iter()
            .for_each(&mut add);
    }
}

/// Adds to a node the target of an entry of its directory that is not a regular file, usually a link.
pub(super) fn take<'a>(tree: &Tree<'a>, file: &ProjectPath, node: &mut InputNode<'a>) {
    let touch = tree.touch(file);
    node.record(|| found(tree, file, touch.clone()));
    if let Some(touch) = touch {
        node.touch(&[], touch);
    }
}

pub(in crate::change) fn owners(stacks: &Stacks, directory: &ProjectPath) -> StackRange {
    let own = stacks.at(directory.as_str());
    if own.len() > 0 {
        own
    } else {
        stacks.nearest_above(directory)
    }
}

/// Returns the target of a link as inputs: every link on the way, and the end. The link itself belongs to its
/// directory.
fn found<'a>(
    tree: &Tree<'a>,
    link: &ProjectPath,
    touch: Option<ChangedInput<'a>>,
) -> Vec<FoundInput<'a>> {
    let way = tree.links().follow(link);
    let stops: Vec<&ProjectPath> = way.links.iter().chain(&way.end).collect();
    let last = stops.len() - 1;
    // A link that leads nowhere is no input, unless a change above it counts.
    let is_around = |touch: &ChangedInput| !touch.file.path.is_at_or_below(link);
    let is_nowhere = last == 0 && touch.as_ref().is_some_and(is_around);
    let first = usize::from(!is_nowhere);
    let passed = touch.as_ref().map_or(0, |touch| touch.links.len());
    let touched = passed.clamp(first, last.max(first));
    let mut touch = touch.map(|mut touch| {
        touch.links.drain(..passed.min(touched));
        touch
    });
    let found = (first..=last).map(|at| FoundInput {
        location: InputLocation::Path(stops[at].clone()),
        steps: way.links[..at].iter().map(link_use).collect(),
        touch: touch.take_if(|_| at == touched),
    });
    found.collect()
}
