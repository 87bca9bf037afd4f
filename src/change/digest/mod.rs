//! Digests of what stacks depend on.
//!
//! A stack has the same digest twice if none of its inputs differs, and nothing that the configuration
//! computes for it. Unlike a comparison with a commit, that needs no history: what was applied from a
//! commit that no longer exists can still be told to be what is here.
//!
//! The digest of a module is made once for all stacks that use it, and modules that use each other share
//! one. This module does not know with what digests are compared.

mod places;
mod present;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rayon::prelude::*;

use self::places::{PartDigest, PartHasher, Places};
use self::present::PresentFiles;
use super::cause::{InputLocation, Use, UseKind};
use super::error::ChangeError;
use super::files::ChangedFiles;
use super::inputs::{
    InputGraph, InputNode, InputProblems, Tree, each_root_read, links_in, owners, place_read,
};
use super::named::named;
use crate::git::{ChangedFile, Repository};
use crate::path::ProjectPath;
use crate::project::discover::Listing;
use crate::project::environment::{Environments, Variable};
use crate::project::function_files::FileRead;
use crate::project::namespaces::{ProjectNamespaces, Used};
use crate::project::stack::{StackIndex, Watch};
use crate::project::{self, Problems, Project};
use crate::source::Span;
use crate::state::document::Inputs;

/// The version of the rules by which digests are made. Digests by different rules cannot be compared.
const VERSION: u32 = 1;

/// What a stack depends on, as one digest and by part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputDigest {
    /// The digest of all parts: `sha256:` and hexadecimal digits.
    pub digest: String,
    /// By name of the part, the beginning of its digest. Explains which parts differ, and proves nothing.
    pub parts: BTreeMap<String, String>,
    /// Whether an input is not committed.
    pub is_dirty: bool,
}

/// The digests of stacks.
#[derive(Debug)]
pub struct InputDigests {
    /// The rules by which they were made: a version, and a digest of the settings that matter.
    pub rules: String,
    /// By stack.
    pub stacks: BTreeMap<StackIndex, InputDigest>,
}

impl InputDigests {
    /// Returns whether the inputs of a stack are those on record.
    pub fn are(&self, stack: StackIndex, recorded: &Inputs) -> bool {
        let now = self.stacks.get(&stack);
        recorded.rules == self.rules && now.is_some_and(|now| now.digest == recorded.digest)
    }
}

/// Makes the digests of all stacks. `status` has the uncommitted changes that count. Adds warnings about
/// inputs to `problems`.
///
/// # Errors
///
/// If git cannot answer, or no thread can be started.
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
    let stacks = {
        let nothing = ChangedFiles::default();
        let tree = Tree::new(&project.root, listing, &nothing, &input_problems).recording();
        let stacks: Vec<StackIndex> = project.stacks.iter().map(|(stack, _)| stack).collect();
        project::pool()?.install(|| {
            let digester = Digester {
                project,
                tree: &tree,
                files: &files,
                places: Places::new(&tree, &files),
            };
            digester.digest(&stacks)
        })
    };
    input_problems.add_to(problems);
    Ok(InputDigests {
        rules: rules(project),
        stacks,
    })
}

/// Returns the rules of a project: a version and a digest of what the configuration says about inputs.
fn rules(project: &Project) -> String {
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
    format!("{VERSION}:{}", short(&hasher.finish()))
}

/// The parts of what a stack depends on, by name.
type Parts = BTreeMap<String, PartHasher>;

struct Digester<'a> {
    project: &'a Project,
    tree: &'a Tree<'a>,
    files: &'a PresentFiles,
    places: Places<'a>,
}

impl Digester<'_> {
    fn digest(&self, stacks: &[StackIndex]) -> BTreeMap<StackIndex, InputDigest> {
        let all = &self.project.stacks;
        let directory = |stack: &StackIndex| all[*stack].path.directory();
        let groups: Vec<&[StackIndex]> = stacks
            .chunk_by(|a, b| directory(a) == directory(b))
            .collect();
        let directories = groups.iter().filter_map(|group| group.first());
        let directories: Vec<ProjectPath> = directories.map(|it| directory(it).clone()).collect();
        let own = self.own(&directories.iter().collect());
        let terragrunt = self.project.settings.terragrunt;
        let graph = InputGraph::new(self.tree, &directories, terragrunt);
        let nodes: Vec<PartDigest> = graph.nodes.par_iter().map(|node| self.node(node)).collect();
        let uses = |node: usize| graph.nodes[node].edges.iter().map(|edge| edge.target);
        let modules = modules(&nodes, uses);
        let shared = (0..groups.len()).into_par_iter().map(|candidate| {
            let mut parts = Parts::new();
            if let Some(own) = own.get(&directories[candidate]) {
                parts.entry("own".to_owned()).or_default().part(own);
            }
            self.add_inputs(&graph, candidate, &modules, &mut parts);
            finished(parts)
        });
        let shared: Vec<BTreeMap<String, PartDigest>> = shared.collect();
        let mut variables = self.variables(stacks).into_iter();
        let mut digests = BTreeMap::new();
        for (group, shared) in groups.iter().zip(&shared) {
            for &stack in *group {
                let mut parts = Parts::new();
                self.add_named(stack, &mut parts);
                for (name, part) in variables.next().unwrap_or_default() {
                    parts.entry(name).or_default().part(&part);
                }
                let mut parts = finished(parts);
                for (name, part) in shared {
                    let merged = parts.remove(name).map_or(*part, |other| {
                        let mut hasher = PartHasher::default();
                        hasher.part(&other);
                        hasher.part(part);
                        hasher.finish()
                    });
                    parts.insert(name.clone(), merged);
                }
                digests.insert(stack, input_digest(&parts));
            }
        }
        digests
    }

    /// Returns the digest of the files of each of some directories of stacks, without those of the stacks
    /// nested there, and of what the links there lead to.
    fn own(&self, wanted: &HashSet<&ProjectPath>) -> HashMap<ProjectPath, PartDigest> {
        let stacks = &self.project.stacks;
        let mut hashers: HashMap<ProjectPath, PartHasher> = HashMap::new();
        // By the directory of a file.
        let mut nearest: HashMap<ProjectPath, Option<ProjectPath>> = HashMap::new();
        for file in self.files.iter() {
            if file.is_repository() {
                let mut inside: Vec<&ProjectPath> = stacks
                    .at_or_below(&file.path)
                    .map(|stack| stacks[stack].path.directory())
                    .collect();
                inside.dedup();
                for directory in inside.into_iter().filter(|it| wanted.contains(it)) {
                    hashers.entry(directory.clone()).or_default().file(file);
                }
            }
            let Some(parent) = file.path.parent() else {
                continue;
            };
            let owner = nearest.entry(parent).or_insert_with_key(|parent| {
                let owner = owners(stacks, parent).first()?;
                let owner = stacks[owner].path.directory();
                wanted.contains(owner).then(|| owner.clone())
            });
            if let Some(owner) = owner {
                hashers.entry(owner.clone()).or_default().file(file);
            }
        }
        let links = self.tree.links();
        let listed = links.listed.iter();
        let listed = listed.flat_map(|&(directory, listed)| {
            let found: Vec<ProjectPath> = links_in(directory, listed).collect();
            found.into_iter().map(move |link| (directory, link))
        });
        let left_out = self.tree.listing().left_out().iter();
        let left_out = left_out.flat_map(|directory| {
            let found = links.links_on_disk(directory).to_vec();
            found.into_iter().map(move |link| (directory, link))
        });
        let mut led: Vec<(&ProjectPath, ProjectPath)> = listed.chain(left_out).collect();
        led.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
        for (directory, link) in led {
            let owner = owners(stacks, directory).first();
            let owner = owner.map(|owner| stacks[owner].path.directory());
            if let Some(owner) = owner.filter(|owner| wanted.contains(owner)) {
                let part = self.places.digest(&InputLocation::Path(link));
                hashers.entry(owner.clone()).or_default().part(&part);
            }
        }
        let finished = hashers.into_iter();
        finished
            .map(|(directory, hasher)| (directory, hasher.finish()))
            .collect()
    }

    /// Returns the digest of what a directory uses, without the modules behind its modules.
    fn node(&self, node: &InputNode<'_>) -> PartDigest {
        let places: BTreeMap<String, &InputLocation> = node
            .recorded()
            .iter()
            .map(|found| (found.location.to_string(), &found.location))
            .collect();
        let mut hasher = PartHasher::default();
        for (name, place) in places {
            hasher.text(&name);
            hasher.part(&self.places.digest(place));
        }
        hasher.finish()
    }

    /// Adds what the Terraform and Terragrunt files of a candidate use.
    fn add_inputs(
        &self,
        graph: &InputGraph<'_>,
        candidate: usize,
        modules: &[PartDigest],
        parts: &mut Parts,
    ) {
        let unit = graph.units.get(&candidate).copied();
        for node in std::iter::once(candidate).chain(unit) {
            let node = &graph.nodes[node];
            for found in node.recorded() {
                let name = part_name(found.steps.last(), &found.location);
                let part = self.places.digest(&found.location);
                parts.entry(name).or_default().part(&part);
            }
            for edge in &node.edges {
                let name = format!("module {}", edge.directory);
                parts.entry(name).or_default().part(&modules[edge.target]);
            }
        }
        each_root_read(self.tree, graph, candidate, |place, step| {
            let name = part_name(Some(step), &place);
            let part = self.places.digest(&place);
            parts.entry(name).or_default().part(&part);
        });
    }

    /// Adds what the configuration of a stack names, and what functions in its block read.
    fn add_named(&self, stack: StackIndex, parts: &mut Parts) {
        for (kind, entry) in named(self.project, stack) {
            let place = match &entry.value {
                Watch::File(path) => InputLocation::Path(path.clone()),
                Watch::Pattern(pattern) => InputLocation::Matching(pattern.clone()),
            };
            let word = match kind {
                UseKind::Import => "import",
                _ => "watch",
            };
            let part = self.places.digest(&place);
            let name = format!("{word} {place}");
            parts.entry(name).or_default().part(&part);
        }
        for read in &self.project.stacks[stack].reads {
            self.add_read(&read.read, parts);
        }
    }

    fn add_read(&self, read: &FileRead, parts: &mut Parts) {
        let place = match read {
            FileRead::Path(path) => place_read(path.clone(), None),
            FileRead::Matching(directory, pattern) => place_read(directory.clone(), Some(pattern)),
        };
        if let Some(place) = place {
            let part = self.places.digest(&place);
            parts
                .entry(format!("read {place}"))
                .or_default()
                .part(&part);
        }
    }

    /// Returns the parts of each stack that its environment makes: the values, and the files that functions
    /// read for them.
    fn variables(&self, stacks: &[StackIndex]) -> Vec<BTreeMap<String, PartDigest>> {
        let has_any = self
            .project
            .scopes
            .values()
            .any(|scope| !scope.env.is_empty());
        if !self.project.settings.environment || !has_any {
            return vec![BTreeMap::new(); stacks.len()];
        }
        let namespaces = ProjectNamespaces::new(self.project, std::iter::empty()).portable();
        let basis = namespaces.basis();
        let size = stacks.len().div_ceil(rayon::current_num_threads()).max(1);
        let of_part = |stacks: &[StackIndex]| -> Vec<BTreeMap<String, PartDigest>> {
            let environments = Environments::of(basis.clone().into());
            let of_stack = |&stack: &StackIndex| {
                let mut parts = Parts::new();
                for variable in environments.variables(stack) {
                    self.add_variable(&variable, &mut parts);
                }
                finished(parts)
            };
            stacks.iter().map(of_stack).collect()
        };
        stacks.par_chunks(size).flat_map_iter(of_part).collect()
    }

    fn add_variable(&self, variable: &Variable<'_>, parts: &mut Parts) {
        let name = format!("environment {}", variable.definition.name.text);
        let hasher = parts.entry(name).or_default();
        match &variable.value {
            Ok(Some(value)) => {
                hasher.text("value");
                hasher.text(&self.without_root(value));
            }
            Ok(None) => hasher.text("removed"),
            Err(diagnostic) => {
                hasher.text("error");
                hasher.text(&diagnostic.code.to_string());
                hasher.text(&self.without_root(&diagnostic.message));
            }
        }
        let mut reads = Vec::new();
        files_read(&variable.uses, &mut HashSet::new(), &mut reads);
        for read in reads {
            self.add_read(read, parts);
        }
    }

    /// Replaces the place of the project on this machine.
    fn without_root(&self, text: &str) -> String {
        match self.project.root.to_str() {
            Some(root) if root.len() > 1 => text.replace(root, "${root}"),
            _ => text.to_owned(),
        }
    }
}

/// Collects the files that functions have read for a value, directly or for what it is computed from.
fn files_read<'u>(uses: &'u [Used<'_>], seen: &mut HashSet<Span>, reads: &mut Vec<&'u FileRead>) {
    for used in uses {
        match used {
            Used::Value(definition, inner) => {
                if seen.insert(definition.span()) {
                    files_read(inner, seen, reads);
                }
            }
            Used::File(read, _) => reads.push(read),
        }
    }
}

/// Returns for each node the digest of what it and all modules behind it use, given what each uses by
/// itself. Modules that use each other have one digest.
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
    // What is used comes first. `tarjan_scc` would need a stack as deep as the longest chain.
    for knot in kosaraju_scc(&graph) {
        let inside: BTreeSet<usize> = knot.iter().map(|node| node.index()).collect();
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

/// Returns the name of a part: what makes it an input, and where it is.
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

fn input_digest(parts: &BTreeMap<String, PartDigest>) -> InputDigest {
    let mut hasher = PartHasher::default();
    for (name, part) in parts {
        hasher.text(name);
        hasher.part(part);
    }
    let all = hasher.finish();
    let shown = parts.iter().map(|(name, part)| (name.clone(), short(part)));
    InputDigest {
        digest: format!("sha256:{}", hexadecimal(&all.hash)),
        parts: shown.collect(),
        is_dirty: all.is_dirty,
    }
}

fn short(part: &PartDigest) -> String {
    hexadecimal(&part.hash[..4])
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}
