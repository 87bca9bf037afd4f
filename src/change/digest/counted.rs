//! Digests of the inputs that `ignore_changes` leaves.
//!
//! Stacks that ignore the same files share the digests of modules. Only a stack that ignores files of its own
//! directory which modules or other places reach has module digests of its own. This module does not know the
//! state.

use std::collections::{BTreeMap, HashMap, HashSet};

use rayon::prelude::*;

use super::ignore_filter::{FilteredDigests, IgnoreFilter};
use super::own_files::OwnFiles;
use super::part::PartDigest;
use super::{Digester, Parts, all_of, finished, merged, modules, prefixed};
use crate::change::ignored::{IgnoreList, covers};
use crate::change::inputs::{InputGraph, InputNode};
use crate::path::ProjectPath;
use crate::project::stack::StackIndex;

impl FilteredDigests<'_> {
    /// Returns the digests of nodes, and of the modules behind them.
    fn of<'v>(&'v self, whole: &'v AllDigests<'_, '_>) -> (&'v [PartDigest], &'v [PartDigest]) {
        if self.ignored.is_empty() {
            (whole.nodes, whole.modules)
        } else {
            (&self.nodes, &self.modules)
        }
    }
}

/// The filtered digests by their globs.
pub(super) type FilteredDigestSets<'a> = HashMap<Vec<String>, FilteredDigests<'a>>;

fn key(list: &IgnoreList) -> Vec<String> {
    let mut key: Vec<String> = list.outside().map(ToString::to_string).collect();
    key.sort_unstable();
    key.dedup();
    key
}

/// The digests without any filter.
pub(super) struct AllDigests<'s, 'a> {
    pub(super) graph: &'s InputGraph<'a>,
    pub(super) nodes: &'s [PartDigest],
    pub(super) modules: &'s [PartDigest],
    /// The files that places of the graph reach, and the files that name these places.
    pub(super) reached: HashSet<ProjectPath>,
}

impl<'a> Digester<'a> {
    /// Returns the files that the places of a graph reach, and the files that name these places.
    pub(super) fn reached(&self, graph: &InputGraph<'a>) -> HashSet<ProjectPath> {
        let mut reached = HashSet::new();
        for node in &graph.nodes {
            for found in node.recorded() {
                let files = self.places.files_at(&found.location);
                reached.extend(files.iter().map(|file| file.path.clone()));
                reached.extend(found.steps.iter().map(|step| step.location.file.clone()));
            }
            let edges = node.edges.iter().flat_map(|edge| &edge.steps);
            reached.extend(edges.map(|step| step.location.file.clone()));
        }
        reached
    }

    pub(super) fn views(&self, whole: &AllDigests<'_, 'a>) -> FilteredDigestSets<'a> {
        let mut views = FilteredDigestSets::new();
        for list in self.lists.iter().filter(|list| !list.is_all()) {
            let key = key(list);
            if views.contains_key(&key) {
                continue;
            }
            let mut view = FilteredDigests::default();
            for glob in list.outside() {
                let directory = glob.directory();
                let at = self.files.at(directory.as_str());
                let files = at.into_iter().chain(self.files.below(directory));
                let matching = files.filter(|file| covers(glob, &file.path, file.is_repository()));
                view.ignored.extend(matching.map(|file| &file.path));
            }
            if !view.ignored.is_empty() {
                let (nodes, modules) = {
                    let sieve = IgnoreFilter {
                        list,
                        view: &view,
                        inside: Vec::new(),
                    };
                    let all = whole.graph.nodes.par_iter();
                    let nodes: Vec<PartDigest> =
                        all.map(|node| self.node(node, Some(&sieve))).collect();
                    let modules = modules(&nodes, |node| left(&whole.graph.nodes[node], &sieve));
                    (nodes, modules)
                };
                (view.nodes, view.modules) = (nodes, modules);
            }
            views.insert(key, view);
        }
        views
    }

    pub(super) fn sieve<'v>(
        &'v self,
        stack: StackIndex,
        list: &'v IgnoreList,
        views: &'v FilteredDigestSets<'a>,
    ) -> Option<IgnoreFilter<'v>> {
        let view = views.get(&key(list))?;
        let mut inside: Vec<&ProjectPath> = Vec::new();
        if list.has_inside() {
            let files = self
                .files
                .below(self.project.stacks[stack].path.directory())
                .filter(|file| list.ignores_inside(&file.path, file.is_repository()));
            inside.extend(files.map(|file| &file.path));
        }
        inside.dedup();
        Some(IgnoreFilter { list, view, inside })
    }

    /// Returns the digest of the counted inputs of a stack, given the digest of all inputs, the files of its
    /// directory, and the counted part of its environment.
    pub(super) fn counted(
        &self,
        (stack, candidate): (StackIndex, usize),
        sieve: &IgnoreFilter<'_>,
        whole: &AllDigests<'_, 'a>,
        own: Option<&OwnFiles<'a>>,
        (all, variables): (&str, &BTreeMap<String, PartDigest>),
    ) -> String {
        if sieve.is_idle() {
            return all.to_owned();
        }
        let mut shared = Parts::new();
        if let Some(own) = own {
            let part = self.own_part(own, Some(sieve));
            shared.entry("own".to_owned()).or_default().part(&part);
        }
        let graph = whole.graph;
        let inside = &mut sieve.inside.iter();
        if inside.any(|file| whole.reached.contains(*file)) {
            let own = self.own_modules(candidate, whole, sieve);
            let module = |node: usize| own[&node];
            self.add_inputs(graph, candidate, &module, Some(sieve), &mut shared);
        } else {
            let (_, modules) = sieve.view.of(whole);
            let module = |node: usize| modules[node];
            self.add_inputs(graph, candidate, &module, Some(sieve), &mut shared);
        }
        let mut parts = Parts::new();
        self.add_named(stack, Some(sieve), &mut parts);
        for (name, part) in variables {
            parts.entry(name.clone()).or_default().part(part);
        }
        let parts = merged(finished(parts), &finished(shared));
        prefixed(&all_of(&parts))
    }

    /// Returns the digests of the modules behind a stack, by node.
    fn own_modules(
        &self,
        candidate: usize,
        whole: &AllDigests<'_, 'a>,
        sieve: &IgnoreFilter<'_>,
    ) -> BTreeMap<usize, PartDigest> {
        let graph = whole.graph;
        let mut found: Vec<usize> = vec![candidate];
        found.extend(graph.units.get(&candidate));
        let mut known: HashMap<usize, usize> = found.iter().copied().zip(0..).collect();
        let mut next = 0;
        while let Some(&node) = found.get(next) {
            for target in left(&graph.nodes[node], sieve) {
                known.entry(target).or_insert_with(|| {
                    found.push(target);
                    found.len() - 1
                });
            }
            next += 1;
        }
        let (of_view, _) = sieve.view.of(whole);
        let digest = |&node: &usize| {
            let inner = &graph.nodes[node];
            let mut places = inner.recorded().iter();
            let is_other = places.any(|found| {
                sieve.drops_way(&found.steps) || self.places.reaches(&found.location, sieve)
            });
            if is_other {
                self.node(inner, Some(sieve))
            } else {
                of_view[node]
            }
        };
        let nodes: Vec<PartDigest> = found.iter().map(digest).collect();
        let uses = |at: usize| left(&graph.nodes[found[at]], sieve).map(|target| known[&target]);
        let modules = modules(&nodes, uses);
        found.iter().copied().zip(modules).collect()
    }
}

/// Returns the modules that a node uses through files that are not ignored.
fn left<'n>(
    node: &'n InputNode<'_>,
    sieve: &'n IgnoreFilter<'_>,
) -> impl Iterator<Item = usize> + 'n {
    let edges = node
        .edges
        .iter()
        .filter(|edge| !sieve.drops_way(&edge.steps));
    edges.map(|edge| edge.target)
}
