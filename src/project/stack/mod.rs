//! Stacks, and the look-ups that the other stages need.
//!
//! A [`Stack`] holds the values of its block, with the places that messages may need. A block with `for_each`
//! declares several stacks, its instances. [`Stacks`] holds all of them in path order. This module doesn't resolve
//! references; see [`crate::selection::reference`].

mod block;
mod declared;
mod instances;
mod names;
mod watch;
mod written;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;

pub(crate) use block::{Declared, FOR_EACH, attempts, from_block};
pub(crate) use declared::{declared, declared_with};
pub(crate) use names::no_each;
pub use watch::{Watch, unmatched};

use crate::language::syntax::Name;
use crate::language::value::Value;
use crate::path::{Generation, InstanceKey, KeyFilter, LeavesProject, ProjectPath, StackPath};
use crate::project::function_files::FileRead;
use crate::project::lifecycle::Lifecycle;
use crate::project::tag::TagFilter;
use crate::source::{Span, Spanned};

/// How `orch` treats a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StackMode {
    #[default]
    Manage,
    Read,
}

#[derive(Debug, Clone)]
pub struct Stack {
    /// The directory and, if this is an instance, its key.
    pub path: StackPath,
    /// The value of `each`, if this is an instance: an object of `key` and `value`.
    pub each: Option<Value>,
    /// `id`; `None` if absent or empty. Unique in the project, ignoring case.
    pub id: Option<Spanned<String>>,
    /// `name`, or the name of the directory.
    pub name: String,
    pub description: Option<String>,
    pub tags: Vec<Spanned<String>>,
    pub after: Vec<Spanned<String>>,
    pub before: Vec<Spanned<String>>,
    pub wants: Vec<Spanned<String>>,
    pub wanted_by: Vec<Spanned<String>>,
    /// The data of other stacks that it uses, as far as this was looked for.
    pub uses: Vec<StackUse>,
    pub watch: Vec<Spanned<Watch>>,
    pub driver: Option<Spanned<String>>,
    pub mode: StackMode,
    /// `labels`: any texts, for policies.
    pub labels: Vec<String>,
    /// `autodeploy`, for policies.
    pub autodeploy: bool,
    /// `lifecycle`, if it states any rule.
    pub lifecycle: Option<Box<Lifecycle>>,
    /// The files that functions in the block have read or looked for.
    pub reads: Vec<AttributeRead>,
    /// The word `stack` that opens the block.
    pub span: Span,
}

/// A file that a function in an attribute of a `stack` block has read or looked for.
#[derive(Debug, Clone)]
pub struct AttributeRead {
    pub attribute: Name,
    pub read: FileRead,
    pub function: Span,
}

impl Stack {
    /// Returns whether the stack has a tag. The empty text, though allowed as a tag, never matches.
    pub fn has_tag(&self, tag: &str) -> bool {
        !tag.is_empty() && self.tags.iter().any(|own| own.value == tag)
    }

    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.tags.iter().map(|tag| tag.value.as_str())
    }
}

/// The position of a stack in path order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackIndex(pub(crate) u32);

impl StackIndex {
    pub(crate) fn new(index: usize) -> Self {
        StackIndex(u32::try_from(index).expect("fewer than four billion stacks"))
    }

    /// Returns the position as a number, from 0.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

/// Stacks that follow each other in path order, such as the instances in a directory. It yields them in
/// that order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackRange(Range<u32>);

impl StackRange {
    const EMPTY: StackRange = StackRange(0..0);

    pub fn only(&self) -> Option<StackIndex> {
        (self.len() == 1).then_some(StackIndex(self.0.start))
    }

    pub fn first(&self) -> Option<StackIndex> {
        (!self.0.is_empty()).then_some(StackIndex(self.0.start))
    }
}

impl Iterator for StackRange {
    type Item = StackIndex;

    fn next(&mut self) -> Option<StackIndex> {
        self.0.next().map(StackIndex)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for StackRange {}

/// Stacks are large, so a list of them is sorted and handed over without moving them.
pub type BoxedStacks = Vec<Box<Stack>>;

/// All stacks of a project, in path order.
#[derive(Debug, Default)]
pub struct Stacks {
    in_path_order: BoxedStacks,
    by_directory: HashMap<ProjectPath, Range<u32>>,
    by_tag: BTreeMap<String, Vec<StackIndex>>,
}

impl Stacks {
    pub fn new(mut stacks: BoxedStacks) -> Self {
        stacks.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut by_directory: HashMap<ProjectPath, Range<u32>> =
            HashMap::with_capacity(stacks.len());
        let mut by_tag: BTreeMap<String, Vec<StackIndex>> = BTreeMap::new();
        for (index, stack) in stacks.iter().enumerate() {
            let index = StackIndex::new(index);
            let next = index.0 + 1;
            let known = by_directory.entry(stack.path.directory().clone());
            known
                .and_modify(|range| range.end = next)
                .or_insert(index.0..next);
            for tag in stack.tags() {
                match by_tag.get_mut(tag) {
                    Some(tagged) => tagged.push(index),
                    None => _ = by_tag.insert(tag.to_owned(), vec![index]),
                }
            }
        }
        Stacks {
            in_path_order: stacks,
            by_directory,
            by_tag,
        }
    }

    pub fn add_use(&mut self, stack: StackIndex, used: StackUse) {
        self.in_path_order[stack.get()].uses.push(used);
    }

    pub fn len(&self) -> usize {
        self.in_path_order.len()
    }

    pub fn is_empty(&self) -> bool {
        self.in_path_order.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (StackIndex, &Stack)> {
        self.in_path_order
            .iter()
            .enumerate()
            .map(|(index, stack)| (StackIndex::new(index), &**stack))
    }

    /// Returns the stacks at exactly this directory: none, one, or its instances.
    pub fn at(&self, directory: &str) -> StackRange {
        let known = self.by_directory.get(directory);
        known.map_or(StackRange::EMPTY, |range| StackRange(range.clone()))
    }

    pub fn find(&self, path: &StackPath) -> Option<StackIndex> {
        let here = self.at(path.directory().as_str());
        self.among(&here, path.key(), path.generation())
    }

    /// Returns the stack whose path is exactly this text.
    pub fn named(&self, path: &str) -> Option<StackIndex> {
        let plain = self.with_key(&self.at(path), None);
        plain.or_else(|| match KeyFilter::split(path) {
            (directory, Some(KeyFilter::One(key))) => {
                self.with_key(&self.at(directory), Some(&key))
            }
            _ => None,
        })
    }

    /// Returns the stack with this key (or without a key, for `None`) among all stacks of one directory.
    pub fn with_key(&self, here: &StackRange, key: Option<&InstanceKey>) -> Option<StackIndex> {
        self.among(here, key, None)
    }

    fn among(
        &self,
        here: &StackRange,
        key: Option<&InstanceKey>,
        generation: Option<Generation>,
    ) -> Option<StackIndex> {
        let (first, last) = (here.0.start as usize, here.0.end as usize);
        let found = self.in_path_order[first..last]
            .binary_search_by(|it| (it.path.key(), it.path.generation()).cmp(&(key, generation)))
            .ok()?;
        Some(StackIndex::new(first + found))
    }

    /// Returns the instances that a filter chooses among all stacks of one directory.
    pub fn instances(&self, here: &StackRange, filter: &KeyFilter) -> StackRange {
        match filter {
            KeyFilter::One(key) => {
                let (first, last) = (here.0.start as usize, here.0.end as usize);
                let stacks = &self.in_path_order[first..last];
                // There may be several generations of it.
                let start = first + stacks.partition_point(|it| it.path.key() < Some(key));
                let end = first + stacks.partition_point(|it| it.path.key() <= Some(key));
                StackRange(StackIndex::new(start).0..StackIndex::new(end).0)
            }
            KeyFilter::Any => match here.first() {
                Some(first) if self[first].path.key().is_some() => here.clone(),
                _ => StackRange::EMPTY,
            },
        }
    }

    /// Returns the stacks that a user means by a path, written in a directory: those at exactly that path,
    /// or the instances that a key in brackets after it chooses.
    pub fn written(
        &self,
        directory: &ProjectPath,
        written: &str,
    ) -> Result<StackRange, LeavesProject> {
        // The name of a directory may look as if it ended in a key.
        let plain = directory
            .resolve(written)
            .map_or(StackRange::EMPTY, |path| self.at(path.as_str()));
        if plain.len() > 0 {
            return Ok(plain);
        }
        let (path, key) = KeyFilter::split(written);
        let here = self.at(directory.resolve(path)?.as_str());
        Ok(key.map_or(StackRange::EMPTY, |key| self.instances(&here, &key)))
    }

    /// Returns the directories of all stacks, each once.
    pub fn directories(&self) -> Vec<ProjectPath> {
        let mut directories: Vec<ProjectPath> = Vec::with_capacity(self.len());
        for (_, stack) in self.iter() {
            let directory = stack.path.directory();
            if directories.last() != Some(directory) {
                directories.push(directory.clone());
            }
        }
        directories
    }

    /// Returns the stacks in the nearest directory strictly above another one that has any.
    pub fn nearest_above(&self, directory: &ProjectPath) -> StackRange {
        let mut above = directory.ancestors().map(|ancestor| self.at(ancestor));
        let nearest = above.find(|stacks| stacks.len() > 0);
        nearest.unwrap_or(StackRange::EMPTY)
    }

    /// Returns all stacks at or below a directory, in path order.
    pub fn at_or_below(&self, directory: &ProjectPath) -> impl Iterator<Item = StackIndex> + use<> {
        // In path order `/a`, `/a-b`, `/a/c`: the stacks below a directory are contiguous, but the directory itself
        // may be separate.
        let [own, below] = self.parts(directory);
        own.chain(below)
    }

    /// Returns all stacks at or below a directory, without those at or below `inner`, the directory of a
    /// stack in it, in path order.
    pub fn at_or_below_except(
        &self,
        directory: &ProjectPath,
        inner: &ProjectPath,
    ) -> impl Iterator<Item = StackIndex> + use<> {
        let [own, below] = self.parts(directory);
        let [inner, in_inner] = self.parts(inner);
        let between = |start, end| StackRange(start..end);
        own.chain(between(below.0.start, inner.0.start))
            .chain(between(inner.0.end, in_inner.0.start))
            .chain(between(in_inner.0.end, below.0.end))
    }

    /// Returns the stacks at a directory, and those below it. For the root, all stacks count as below it, because its
    /// own path is a prefix of theirs.
    fn parts(&self, directory: &ProjectPath) -> [StackRange; 2] {
        let prefix = directory.prefix_of_below();
        let own = if directory.is_root() {
            StackRange::EMPTY
        } else {
            self.at(directory.as_str())
        };
        let start = self
            .in_path_order
            .partition_point(|stack| *stack.path.directory().as_str() < *prefix);
        let is_below = |directory: &ProjectPath| directory.as_str().starts_with(&prefix);
        let rest = &self.in_path_order[start..];
        // Most directories have no stacks below them.
        let n_below = match rest.first() {
            Some(first) if is_below(first.path.directory()) => {
                rest.partition_point(|stack| is_below(stack.path.directory()))
            }
            _ => 0,
        };
        let below = StackIndex::new(start).0..StackIndex::new(start + n_below).0;
        [own, StackRange(below)]
    }

    pub fn tagged(&self, filter: &TagFilter) -> Vec<StackIndex> {
        let mut found: Vec<StackIndex> = Vec::new();
        for tags in filter.alternatives() {
            // Start from the rarest tag, so that the cost is bounded by the possible matches.
            let lists: Option<Vec<&Vec<StackIndex>>> =
                tags.iter().map(|tag| self.by_tag.get(tag)).collect();
            let Some(rarest) =
                lists.and_then(|lists| lists.into_iter().min_by_key(|list| list.len()))
            else {
                continue;
            };
            found.extend(
                rarest
                    .iter()
                    .filter(|&&index| tags.iter().all(|tag| self[index].has_tag(tag))),
            );
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the stacks with a tag, in path order.
    pub fn with_tag(&self, tag: &str) -> &[StackIndex] {
        self.by_tag.get(tag).map_or(&[], Vec::as_slice)
    }

    pub fn has_tag(&self, tag: &str) -> bool {
        self.by_tag.contains_key(tag)
    }

    /// Returns the tags in use, in byte order.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.by_tag.keys().map(String::as_str)
    }
}

impl std::ops::Index<StackIndex> for Stacks {
    type Output = Stack;

    fn index(&self, index: StackIndex) -> &Stack {
        &self.in_path_order[index.get()]
    }
}

/// The stacks that have ids, which are compared ignoring case.
pub struct StacksById(HashMap<String, StackIndex>);

impl StacksById {
    pub fn new(stacks: &Stacks) -> Self {
        let ids = stacks.iter().filter_map(|(index, stack)| {
            let id = stack.id.as_ref()?;
            Some((id.value.to_ascii_lowercase(), index))
        });
        StacksById(ids.collect())
    }

    pub fn find(&self, id: &str) -> Option<StackIndex> {
        self.0.get(&id.to_ascii_lowercase()).copied()
    }

    /// Returns the ids in lower case, in any order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataKind {
    /// An `input` block names it.
    Input,
    /// A `dependency` block of Terragrunt names it.
    Dependency,
    /// A `dependencies` block of Terragrunt names it: for the order alone, no data is used.
    Dependencies,
    /// A `terraform_remote_state` data source has its backend.
    RemoteState,
    /// A condition or a variable of its environment names it: `stacks["/network"]`.
    Expression,
}

impl DataKind {
    /// Returns whether data is used, and not only the order declared.
    pub fn is_data(self) -> bool {
        self != DataKind::Dependencies
    }
}

/// As in configuration.
impl fmt::Display for DataKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataKind::Input => "input",
            DataKind::Dependency => "dependency",
            DataKind::Dependencies => "dependencies",
            DataKind::RemoteState => "terraform_remote_state",
            DataKind::Expression => "stacks",
        })
    }
}

/// A place where a stack uses data of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackUse {
    pub kind: DataKind,
    pub stack: StackPath,
    /// Whether the stack runs after the other one because of this.
    pub orders: bool,
    pub span: Span,
}
