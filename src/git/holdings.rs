//! The content of some directories of the project, in many commits at once.
//!
//! The walk only enters trees that contain one of the directories. Each tree is read once, however many commits have
//! it: its id determines its content.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::{CommitId, GitError, Repository, repository_path};
use crate::ascii::hex;
use crate::path::ProjectPath;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holds {
    NoDirectory,
    Nothing,
    /// It cannot be determined.
    Unknown,
    /// The searched content.
    Wanted,
}

pub(crate) struct Search<'s> {
    /// The directories, each once.
    pub(crate) directories: &'s [ProjectPath],
    /// Selects, by name, the files to read. Only files directly in the directories are.
    pub(crate) reads: &'s dyn Fn(&[u8]) -> bool,
    /// Classifies the contents of such files for their directories.
    pub(crate) holds: &'s dyn Fn(Vec<Vec<u8>>) -> Vec<Holds>,
    /// The maximum size of a file. The meaning of a larger one is unknown.
    pub(crate) max_bytes: u32,
}

impl Repository {
    /// Returns the content of the directories in each of some commits, in the order asked for. Links are not
    /// followed, so the targets of links and submodules are unknown.
    pub(crate) fn holdings(
        &self,
        commits: &[CommitId],
        search: &Search<'_>,
    ) -> Result<Vec<Arc<[Holds]>>, GitError> {
        let places = Places::new(search.directories, &self.prefix);
        let roots = ask!(self, trees(commits))?;
        let mut visits = Visits::default();
        let roots: Vec<usize> = roots
            .into_iter()
            .map(|tree| visits.visit(tree, 0))
            .collect();
        self.expand(&places, search, &mut visits)?;
        let files = self.files(&visits, search)?;
        let holdings = visits.holdings(&places, &files);
        Ok(roots
            .into_iter()
            .map(|root| Arc::clone(&holdings[&root]))
            .collect())
    }

    /// Reads the trees, those of one depth together.
    fn expand(
        &self,
        places: &Places,
        search: &Search<'_>,
        visits: &mut Visits,
    ) -> Result<(), GitError> {
        let mut level = 0..visits.all.len();
        while !level.is_empty() {
            let ids: Vec<String> = visits.trees[level.clone()].to_vec();
            let found = RefCell::new(vec![Vec::new(); ids.len()]);
            let read = |number: usize, tree: &[u8]| {
                let visit = &visits.all[level.start + number];
                let id_bytes = ids[number].len() / 2;
                let children = children(&places.nodes[visit.node], tree, id_bytes, search);
                found.borrow_mut()[number] = children;
            };
            ask!(self, objects(&ids, read))?;
            for (number, children) in level.clone().zip(found.into_inner()) {
                for child in children {
                    match child {
                        Child::File(id) => visits.all[number].files.push(id),
                        Child::Unknown => visits.all[number].is_unknown = true,
                        Child::Opaque(node) => visits.all[number].opaque.push(node),
                        Child::Tree(node, id) => {
                            let below = visits.visit(id, node);
                            visits.all[number].below.push(below);
                        }
                    }
                }
            }
            level = level.end..visits.all.len();
        }
        Ok(())
    }

    /// Returns the classification of each file.
    fn files(
        &self,
        visits: &Visits,
        search: &Search<'_>,
    ) -> Result<HashMap<String, Holds>, GitError> {
        let ids: HashSet<&str> = visits
            .all
            .iter()
            .flat_map(|visit| &visit.files)
            .map(String::as_str)
            .collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        let contents = self.contents(&ids, search.max_bytes)?;
        let mut meanings = HashMap::with_capacity(ids.len());
        let mut read = Vec::with_capacity(ids.len());
        let mut texts = Vec::with_capacity(ids.len());
        for (id, content) in ids.into_iter().zip(contents) {
            if let Some(content) = content {
                read.push(id);
                texts.push(content);
            } else {
                meanings.insert(id.to_owned(), Holds::Unknown);
            }
        }
        let read = read.into_iter().map(str::to_owned);
        meanings.extend(read.zip((search.holds)(texts)));
        Ok(meanings)
    }
}

/// The directories as a tree: the nodes above them, and their own.
struct Places {
    nodes: Vec<Node>,
    /// The directories of the search, in the order of the nodes.
    order: Vec<usize>,
}

/// A directory that is looked at, or lies above one.
#[derive(Default)]
struct Node {
    below: HashMap<Vec<u8>, usize>,
    /// The same in the order of trees: by name, with a slash at the end.
    sorted: Vec<(Vec<u8>, usize)>,
    /// The directories at or below it, in the order of the nodes.
    range: Range<usize>,
    /// Whether the search wants this directory itself; it is then the first of its range.
    is_wanted: bool,
}

impl Places {
    fn new(directories: &[ProjectPath], prefix: &str) -> Self {
        let paths: Vec<String> = directories
            .iter()
            .map(|it| repository_path(it, prefix))
            .collect();
        let names = |path: &str| -> Vec<Vec<u8>> {
            let names = path.split('/').filter(|name| !name.is_empty());
            names.map(|name| name.as_bytes().to_vec()).collect()
        };
        let mut sorted: Vec<(Vec<Vec<u8>>, usize)> = paths
            .iter()
            .enumerate()
            .map(|(number, path)| (names(path), number))
            .collect();
        sorted.sort_unstable();
        let mut nodes = vec![Node::default()];
        let mut order = vec![0; directories.len()];
        for (place, (names, number)) in sorted.into_iter().enumerate() {
            order[number] = place;
            let mut node = 0;
            nodes[0].range.end = place + 1;
            for name in names {
                let next = nodes.len();
                node = *nodes[node].below.entry(name).or_insert(next);
                if node == next {
                    nodes.push(Node {
                        range: place..place,
                        ..Node::default()
                    });
                }
                nodes[node].range.end = place + 1;
            }
            nodes[node].is_wanted = true;
        }
        for node in &mut nodes {
            let below = node.below.iter();
            let with_slash = |(name, &node): (&Vec<u8>, &usize)| ([&**name, b"/"].concat(), node);
            node.sorted = below.map(with_slash).collect();
            node.sorted.sort_unstable();
        }
        Places { nodes, order }
    }
}

/// A relevant entry of a tree.
#[derive(Clone)]
enum Child {
    /// A file to read, with its id.
    File(String),
    /// A file that cannot be read.
    Unknown,
    /// A directory of this node, with the id of its tree.
    Tree(usize, String),
    /// A link or submodule at this node.
    Opaque(usize),
}

fn children(node: &Node, tree: &[u8], id_bytes: usize, search: &Search<'_>) -> Vec<Child> {
    let mut found = Vec::new();
    let mut entries = Entries {
        rest: tree,
        id_bytes,
    };
    let mut trees = InOrder::new(node);
    while let Some((mode, name, id)) = entries.next() {
        let is_file = mode.starts_with(b"100");
        let is_tree = mode == b"40000";
        let below = if is_tree {
            trees.find(name)
        } else {
            node.below.get(name)
        };
        if let Some(&below) = below {
            if is_tree {
                found.push(Child::Tree(below, hex(id)));
            } else if !is_file {
                found.push(Child::Opaque(below));
            }
        }
        if node.is_wanted && !is_tree && (search.reads)(name) {
            found.push(if is_file {
                Child::File(hex(id))
            } else {
                Child::Unknown
            });
        }
    }
    if !entries.rest.is_empty() {
        // It is damaged.
        found.push(Child::Unknown);
        found.extend(node.below.values().map(|&below| Child::Opaque(below)));
    }
    found
}

/// Finds directories of a tree one after the other, without searching while they are in order.
struct InOrder<'n, 't> {
    node: &'n Node,
    next: usize,
    last: &'t [u8],
}

impl<'n, 't> InOrder<'n, 't> {
    fn new(node: &'n Node) -> Self {
        InOrder {
            node,
            next: 0,
            last: b"",
        }
    }

    /// Returns the node of a directory, if it has one.
    fn find(&mut self, name: &'t [u8]) -> Option<&'n usize> {
        if in_tree_order(self.last, name) == Ordering::Greater {
            // The tree is damaged or forged.
            return self.node.below.get(name);
        }
        self.last = name;
        while let Some((wanted, node)) = self.node.sorted.get(self.next) {
            match in_tree_order(&wanted[..wanted.len() - 1], name) {
                Ordering::Less => self.next += 1,
                Ordering::Equal => return Some(node),
                Ordering::Greater => break,
            }
        }
        None
    }
}

/// Compares the names of directories as trees order them: with a slash at the end.
fn in_tree_order(a: &[u8], b: &[u8]) -> Ordering {
    let both = a.len().min(b.len());
    a[..both].cmp(&b[..both]).then_with(|| {
        let next = |name: &[u8]| name.get(both).copied().unwrap_or(b'/');
        next(a).cmp(&next(b)).then(a.len().cmp(&b.len()))
    })
}

/// The entries of a tree as git stores it: the mode, a space, the name, a NUL, the id.
struct Entries<'t> {
    rest: &'t [u8],
    id_bytes: usize,
}

impl<'t> Entries<'t> {
    fn next(&mut self) -> Option<(&'t [u8], &'t [u8], &'t [u8])> {
        let space = memchr::memchr(b' ', self.rest)?;
        let end = space + memchr::memchr(0, &self.rest[space..])?;
        let id = self.rest.get(end + 1..end + 1 + self.id_bytes)?;
        let entry = (&self.rest[..space], &self.rest[space + 1..end], id);
        self.rest = &self.rest[end + 1 + self.id_bytes..];
        Some(entry)
    }
}

/// The visited trees, each for a node. Its subtrees come after it.
#[derive(Default)]
struct Visits {
    all: Vec<Visit>,
    trees: Vec<String>,
    known: HashMap<(String, usize), usize>,
}

#[derive(Default)]
struct Visit {
    node: usize,
    /// The visits of the trees in it.
    below: Vec<usize>,
    /// The nodes in it that are links or submodules.
    opaque: Vec<usize>,
    /// The ids of its files, if the search wants it.
    files: Vec<String>,
    /// Whether there is a file that cannot be read.
    is_unknown: bool,
}

impl Visits {
    fn visit(&mut self, tree: String, node: usize) -> usize {
        let Visits { all, trees, known } = self;
        *known.entry((tree.clone(), node)).or_insert_with(|| {
            all.push(Visit {
                node,
                ..Visit::default()
            });
            trees.push(tree);
            all.len() - 1
        })
    }

    /// Returns the content of the trees of commits, by visit.
    fn holdings(
        &self,
        places: &Places,
        files: &HashMap<String, Holds>,
    ) -> HashMap<usize, Arc<[Holds]>> {
        let mut all: Vec<Vec<Holds>> = vec![Vec::new(); self.all.len()];
        let mut roots = HashMap::new();
        // Most commits touch none of the directories.
        let mut distinct: HashSet<Arc<[Holds]>> = HashSet::new();
        for (number, visit) in self.all.iter().enumerate().rev() {
            let node = &places.nodes[visit.node];
            let start = node.range.start;
            let mut holds = vec![Holds::NoDirectory; node.range.len()];
            for &below in &visit.below {
                let range = &places.nodes[self.all[below].node].range;
                holds[range.start - start..range.end - start].copy_from_slice(&all[below]);
            }
            for &opaque in &visit.opaque {
                let range = &places.nodes[opaque].range;
                holds[range.start - start..range.end - start].fill(Holds::Unknown);
            }
            if node.is_wanted {
                let own = visit.files.iter().map(|id| files[id]);
                let has = |wanted| own.clone().any(|own| own == wanted);
                holds[0] = if has(Holds::Wanted) {
                    Holds::Wanted
                } else if visit.is_unknown || has(Holds::Unknown) {
                    Holds::Unknown
                } else {
                    Holds::Nothing
                };
            }
            if visit.node == 0 {
                let ordered: Arc<[Holds]> =
                    places.order.iter().map(|&place| holds[place]).collect();
                let known = distinct.get(&ordered).cloned();
                let ordered = known.unwrap_or_else(|| {
                    distinct.insert(Arc::clone(&ordered));
                    ordered
                });
                roots.insert(number, ordered);
            } else {
                all[number] = holds;
            }
        }
        roots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wanted names that are found in a tree with its directories in this order.
    fn found(wanted: &[&str], tree: &[&'static str]) -> Vec<&'static str> {
        let paths: Vec<ProjectPath> = wanted
            .iter()
            .map(|name| ProjectPath::root().resolve(name))
            .collect::<Result<_, _>>()
            .unwrap();
        let places = Places::new(&paths, "");
        let mut order = InOrder::new(&places.nodes[0]);
        let names = tree.iter().copied();
        names
            .filter(|name| order.find(name.as_bytes()).is_some())
            .collect()
    }

    #[test]
    fn directories_are_found_in_the_order_of_trees() {
        // Git orders directories as if their names ended with a slash.
        let tree = ["a-b", "a", "a0", "ab", "b"];
        assert_eq!(found(&["a", "a-b", "ab", "z"], &tree), ["a-b", "a", "ab"]);
        assert_eq!(found(&["a0", "b"], &tree), ["a0", "b"]);
        assert_eq!(found(&["c"], &tree), [""; 0]);
    }

    #[test]
    fn directories_are_found_in_a_tree_that_somebody_has_made_in_another_order() {
        let tree = ["z", "a", "m", "a-b"];
        assert_eq!(found(&["a", "a-b", "m"], &tree), ["a", "m", "a-b"]);
    }
}
