//! Digests of the inputs of stacks.
//!
//! A stack has the same digest twice if none of its inputs and none of its computed values differ. That needs
//! no history: an applied commit that no longer exists can still be recognised.
//!
//! Order, tags and lifecycle rules are no inputs: a configuration file counts by its canonical text.
//!
//! Each module is digested once for all stacks that use it; modules in a cycle share one digest. This module
//! does not know what digests are compared with.

mod configuration;
mod counted;
mod environment;
mod ignore_filter;
mod own_files;
mod part;
mod places;
mod present;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rayon::prelude::*;
use serde_json::Map;

use self::configuration::{Configuration, texts};
use self::counted::AllDigests;
use self::ignore_filter::IgnoreFilter;
use self::part::{PartDigest, PartHasher};
use self::places::PlaceDigests;
use self::present::PresentFiles;
use super::cause::{InputLocation, Use, UseKind};
use super::error::ChangeError;
use super::files::ChangedFiles;
use super::ignored::IgnoreLists;
use super::inputs::{InputGraph, InputNode, InputProblems, Tree, each_stack_read, place_read};
use super::named::{named, reads};
use crate::ascii::hex;
use crate::git::{ChangedFile, Repository};
use crate::path::ProjectPath;
use crate::project::discover::Listing;
use crate::project::function_files::FileRead;
use crate::project::stack::{StackIndex, Watch};
use crate::project::{self, Problems, Project};
use crate::state::document::{CountedInputs, Inputs};

/// The version of the digest rules. Digests under different rules cannot be compared.
const VERSION: u32 = 4;

/// The rules for stacks without paths that depend on variables, so that they keep their digests.
const CONSTANT_PATHS_VERSION: u32 = 3;

/// The rules for stacks without inputs that only later rules follow, so that they keep their digests.
const EARLIER_VERSION: u32 = 2;

/// The digest of a stack's inputs, in total and by part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputDigest {
    /// As the state records it.
    pub inputs: Inputs,
    /// Whether an input, ignored or not, is not committed: an apply uses all of them.
    pub is_dirty: bool,
}

impl InputDigest {
    /// Returns the form that the state records.
    pub fn recorded(&self) -> Inputs {
        self.inputs.clone()
    }
}

#[derive(Debug)]
pub struct InputDigests {
    pub stacks: BTreeMap<StackIndex, InputDigest>,
}

impl InputDigests {
    pub fn are(&self, stack: StackIndex, recorded: &Inputs) -> bool {
        let now = self.stacks.get(&stack);
        now.is_some_and(|now| {
            let now = &now.inputs;
            now.rules == recorded.rules && now.digest == recorded.digest
        })
    }
}

/// Digests all stacks. `status` has the counted uncommitted changes. Adds warnings about inputs to
/// `problems`. Fails if git or a file cannot be read, or no thread can be started.
pub fn digests(
    project: &Project,
    listing: &Listing,
    repository: &Repository,
    status: &[ChangedFile],
    problems: &mut Problems,
) -> Result<InputDigests, ChangeError> {
    let head = repository.commit("HEAD")?;
    let files = PresentFiles::read(project, repository, head.as_ref(), status)?;
    let input_problems = InputProblems::default();
    let texts = texts(project, repository, head.as_ref(), &files)?;
    let stacks = {
        let nothing = ChangedFiles::default();
        let tree = Tree::new(&project.root, listing, &nothing, &input_problems)
            .of(project)
            .recording();
        let stacks: Vec<StackIndex> = project.stacks.iter().map(|(stack, _)| stack).collect();
        project::pool()?.install(|| {
            let digester = Digester {
                project,
                tree: &tree,
                files: &files,
                places: PlaceDigests::new(&tree, &files, Configuration::new(&texts, listing)),
                lists: IgnoreLists::of(project),
            };
            digester.digest(&stacks)
        })
    };
    input_problems.add_to(problems)?;
    Ok(InputDigests { stacks })
}

/// Returns the rules of a project: the version, and a digest of its settings about inputs.
fn rules(project: &Project, version: u32) -> Arc<str> {
    let settings = &project.settings;
    let mut hasher = PartHasher::default();
    hasher.text(if settings.terragrunt {
        "terragrunt"
    } else {
        ""
    });
    hasher.text(if settings.environment {
        "environment"
    } else {
        ""
    });
    let scopes = project.scopes.iter();
    let ignores: BTreeSet<(&ProjectPath, Vec<String>)> = scopes
        .filter(|(_, scope)| !scope.ignore.is_empty())
        .map(|(directory, scope)| {
            let entries = scope.ignore.iter().map(|entry| entry.pattern.to_string());
            (directory, entries.collect())
        })
        .collect();
    for (directory, entries) in ignores {
        hasher.text(directory.as_str());
        for entry in &entries {
            hasher.text(entry);
        }
    }
    format!("{version}:{}", short(&hasher.finish())).into()
}

/// Returns the name of a part in messages.
pub fn part_label(part: &str) -> &str {
    match part {
        "own" => "a file of its own",
        part => part,
    }
}

type Parts = BTreeMap<String, PartHasher>;

struct Digester<'a> {
    project: &'a Project,
    tree: &'a Tree<'a>,
    files: &'a PresentFiles,
    places: PlaceDigests<'a>,
    lists: IgnoreLists,
}

impl<'a> Digester<'a> {
    fn digest(&self, stacks: &[StackIndex]) -> BTreeMap<StackIndex, InputDigest> {
        let all = &self.project.stacks;
        let directory = |stack: &StackIndex| all[*stack].path.directory();
        let groups: Vec<&[StackIndex]> = stacks
            .chunk_by(|a, b| directory(a) == directory(b))
            .collect();
        let directories: Vec<ProjectPath> = groups
            .iter()
            .filter_map(|group| group.first())
            .map(|it| directory(it).clone())
            .collect();
        let own = self.own(&directories.iter().collect());
        let terragrunt = self.project.settings.terragrunt;
        let graph = InputGraph::new(self.tree, &directories, terragrunt);
        let nodes: Vec<PartDigest> = graph
            .nodes
            .par_iter()
            .map(|node| self.node(node, None))
            .collect();
        let uses = |node: usize| graph.nodes[node].edges.iter().map(|edge| edge.target);
        let modules = modules(&nodes, uses);
        let rules = [EARLIER_VERSION, CONSTANT_PATHS_VERSION, VERSION]
            .map(|version| rules(self.project, version));
        let newer = graph.leads_to(|node| node.has_newer);
        let newest = graph.leads_to(|node| !node.variable_sources.is_empty());
        let shared: Vec<(BTreeMap<String, PartDigest>, &Arc<str>)> = (0..groups.len())
            .into_par_iter()
            .map(|candidate| {
                let mut parts = Parts::new();
                if let Some(own) = own.get(&directories[candidate]) {
                    let own = self.own_part(own, None);
                    parts.entry("own".to_owned()).or_default().part(&own);
                }
                let module = |node: usize| modules[node];
                let by_variables = self.add_inputs(&graph, candidate, &module, None, &mut parts);
                let unit = graph.units.get(&candidate).copied();
                let leads = |to: &[bool]| to[candidate] || unit.is_some_and(|unit| to[unit]);
                let index = match (by_variables || leads(&newest), leads(&newer)) {
                    (true, _) => 2,
                    (false, true) => 1,
                    (false, false) => 0,
                };
                (finished(parts), &rules[index])
            })
            .collect();
        let whole = AllDigests {
            graph: &graph,
            nodes: &nodes,
            modules: &modules,
            reached: if self.lists.is_empty() {
                HashSet::new()
            } else {
                self.reached(&graph)
            },
        };
        let views = self.views(&whole);
        let sieves: Vec<Option<IgnoreFilter<'_>>> = stacks
            .par_iter()
            .map(|&stack| {
                let list = self.lists.get(stack).filter(|list| !list.is_all())?;
                self.sieve(stack, list, &views)
            })
            .collect();
        let environments = self.environments(stacks, &sieves);
        let groups = groups.iter().enumerate();
        let candidates: Vec<usize> = groups
            .flat_map(|(candidate, group)| group.iter().map(move |_| candidate))
            .collect();
        let digests = stacks.par_iter().enumerate().map(|(at, &stack)| {
            let (candidate, environment) = (candidates[at], &environments[at]);
            let mut parts = Parts::new();
            self.add_named(stack, None, &mut parts);
            for (name, part) in &environment.all {
                parts.entry(name.clone()).or_default().part(part);
            }
            let (shared, rules) = &shared[candidate];
            let parts = merged(finished(parts), shared);
            let mut digest = input_digest(rules, &parts);
            digest.inputs.counted = sieves[at].as_ref().map(|sieve| {
                let own = own.get(&directories[candidate]);
                let left = (&*digest.inputs.digest, &environment.counted);
                CountedInputs {
                    ignored: sieve.list.words().to_vec(),
                    digest: self.counted((stack, candidate), sieve, &whole, own, left),
                    other: Map::new(),
                }
            });
            (stack, digest)
        });
        digests.collect()
    }

    /// Returns the digest of a directory's own uses, without the modules behind its modules.
    fn node(&self, node: &InputNode<'_>, sieve: Option<&IgnoreFilter<'_>>) -> PartDigest {
        let found = node.recorded().iter();
        let found = found.filter(|found| !sieve.is_some_and(|sieve| sieve.drops_way(&found.steps)));
        let places: BTreeMap<String, &InputLocation> = found
            .map(|found| (found.location.to_string(), &found.location))
            .collect();
        let mut hasher = PartHasher::default();
        for (name, place) in places {
            hasher.text(&name);
            hasher.part(&self.places.part(place, sieve));
        }
        hasher.finish()
    }

    /// Adds the inputs of a candidate's Terraform and Terragrunt files. Returns whether the path of one depends on
    /// variables.
    fn add_inputs(
        &self,
        graph: &InputGraph<'a>,
        candidate: usize,
        module: &dyn Fn(usize) -> PartDigest,
        sieve: Option<&IgnoreFilter<'_>>,
        parts: &mut Parts,
    ) -> bool {
        let drops = |steps: &[Use]| sieve.is_some_and(|sieve| sieve.drops_way(steps));
        let unit = graph.units.get(&candidate).copied();
        for node in std::iter::once(candidate).chain(unit) {
            let node = &graph.nodes[node];
            for found in node.recorded().iter().filter(|it| !drops(&it.steps)) {
                let name = part_name(found.steps.last(), &found.location);
                let part = self.places.part(&found.location, sieve);
                parts.entry(name).or_default().part(&part);
            }
            for edge in node.edges.iter().filter(|it| !drops(&it.steps)) {
                let name = format!("module {}", edge.directory);
                parts.entry(name).or_default().part(&module(edge.target));
            }
        }
        each_stack_read(self.tree, graph, candidate, |place, step| {
            if drops(std::slice::from_ref(step)) {
                return;
            }
            let name = part_name(Some(step), &place);
            let part = self.places.part(&place, sieve);
            parts.entry(name).or_default().part(&part);
        })
    }

    /// Adds the inputs that a stack's configuration names, and the files that functions in its block read.
    fn add_named(&self, stack: StackIndex, sieve: Option<&IgnoreFilter<'_>>, parts: &mut Parts) {
        for (kind, entry) in named(self.project, stack) {
            let place = match &entry.value {
                Watch::File(path) => InputLocation::Path(path.clone()),
                Watch::FilePattern(pattern) => InputLocation::Matching(pattern.clone()),
            };
            let (word, part) = match kind {
                UseKind::Import => ("import", self.places.configuration_digest(&place, sieve)),
                _ => ("watch", self.places.part(&place, sieve)),
            };
            let name = format!("{word} {place}");
            parts.entry(name).or_default().part(&part);
        }
        for read in reads(&self.project.stacks[stack]) {
            self.add_read(&read.read, sieve, parts);
        }
    }

    fn add_read(&self, read: &FileRead, sieve: Option<&IgnoreFilter<'_>>, parts: &mut Parts) {
        let place = match read {
            FileRead::Path(path) => place_read(path.clone(), None),
            FileRead::Matching(directory, pattern) => place_read(directory.clone(), Some(pattern)),
        };
        if let Some(place) = place {
            let part = self.places.part(&place, sieve);
            parts
                .entry(format!("read {place}"))
                .or_default()
                .part(&part);
        }
    }
}

/// Returns for each node the digest of itself and all modules behind it. Modules in a cycle share one digest.
fn modules<I>(nodes: &[PartDigest], uses: impl Fn(usize) -> I) -> Vec<PartDigest>
where
    I: Iterator<Item = usize>,
{
    let mut graph: DiGraph<(), (), usize> = DiGraph::default();
    for _ in nodes {
        graph.add_node(());
    }
    for user in 0..nodes.len() {
        for used in uses(user) {
            graph.add_edge(NodeIndex::new(user), NodeIndex::new(used), ());
        }
    }
    let nothing = PartHasher::default().finish();
    let mut modules = vec![nothing; nodes.len()];
    // Dependencies first. `tarjan_scc` would need a call stack as deep as the longest chain.
    for component in kosaraju_scc(&graph) {
        let inside: BTreeSet<usize> = component.iter().map(|node| node.index()).collect();
        let mut own: Vec<PartDigest> = inside.iter().map(|&node| nodes[node]).collect();
        own.sort_unstable();
        let all = inside.iter().flat_map(|&node| uses(node));
        let leaving = all.filter(|used| !inside.contains(used));
        let others: BTreeSet<PartDigest> = leaving.map(|used| modules[used]).collect();
        let mut hasher = PartHasher::default();
        for part in &own {
            hasher.part(part);
        }
        hasher.text("uses");
        for part in &others {
            hasher.part(part);
        }
        let digest = hasher.finish();
        for node in inside {
            modules[node] = digest;
        }
    }
    modules
}

fn part_name(step: Option<&Use>, place: &InputLocation) -> String {
    let word = match step.map(|step| &step.kind) {
        Some(UseKind::Module(_)) => "module",
        Some(UseKind::Link) => "link",
        Some(UseKind::Terragrunt(_)) => "terragrunt",
        _ => "read",
    };
    format!("{word} {place}")
}

fn finished(parts: Parts) -> BTreeMap<String, PartDigest> {
    let parts = parts.into_iter();
    parts
        .map(|(name, hasher)| (name, hasher.finish()))
        .collect()
}

/// Returns the parts of a stack merged with those that it shares with others.
fn merged(
    mut parts: BTreeMap<String, PartDigest>,
    shared: &BTreeMap<String, PartDigest>,
) -> BTreeMap<String, PartDigest> {
    for (name, part) in shared {
        let merged = parts.remove(name).map_or(*part, |other| {
            let mut hasher = PartHasher::default();
            hasher.part(&other);
            hasher.part(part);
            hasher.finish()
        });
        parts.insert(name.clone(), merged);
    }
    parts
}

fn input_digest(rules: &str, parts: &BTreeMap<String, PartDigest>) -> InputDigest {
    let all = all_of(parts);
    let shown = parts.iter().map(|(name, part)| (name.clone(), short(part)));
    InputDigest {
        inputs: Inputs {
            rules: rules.to_owned(),
            digest: prefixed(&all),
            parts: shown.collect(),
            ..Inputs::default()
        },
        is_dirty: all.is_dirty,
    }
}

fn all_of(parts: &BTreeMap<String, PartDigest>) -> PartDigest {
    let mut hasher = PartHasher::default();
    for (name, part) in parts {
        hasher.text(name);
        hasher.part(part);
    }
    hasher.finish()
}

fn prefixed(part: &PartDigest) -> String {
    format!("sha256:{}", hex(&part.hash))
}

fn short(part: &PartDigest) -> String {
    hex(&part.hash[..4])
}
