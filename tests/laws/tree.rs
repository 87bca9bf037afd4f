//! Random project trees, and how they are written to disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::model::{ATTRIBUTES, Meaning, Model, ModelStack, names};

/// Names of directories: some begin like others, and some sort before the `/` that ends them.
const NAMES: [&str; 6] = ["a", "a-b", "b", "ab", "a b", "c"];

pub(crate) const TAGS: [&str; 4] = ["t", "u", "v.1", "w-x/y"];

pub(crate) const FILTERS: [&str; 16] = [
    "t", "u", "v.1", "w-x/y", "t:u", "t,u", "u:v.1,t", "t,", "t,,u", "t:", "", "none", "t:none",
    "none,t", "Bad", "t:~u",
];

/// A project to be.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) is_strict: bool,
    pub(crate) directories: Vec<Directory>,
}

#[derive(Debug, Clone)]
pub(crate) struct Directory {
    /// `path` is that of the directory, whatever it holds.
    pub(crate) stack: ModelStack,
    pub(crate) holds: Holds,
    pub(crate) file: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Stack,
    /// A directory that is no stack.
    Nothing,
    /// A stack that is out of the project: its directory is marked, or hidden.
    Marked(&'static str),
    Hidden,
}

/// A reference before it is known what there is to refer to.
#[derive(Debug, Clone)]
enum RawReference {
    Place(Index, Spelling),
    Above(Index, Spelling),
    Itself(Spelling),
    Missing(Index, &'static str),
    Outside(bool),
    Tag(&'static str),
}

#[derive(Debug, Clone, Copy)]
struct Spelling {
    is_relative: bool,
    is_odd: bool,
}

fn spelling() -> impl Strategy<Value = Spelling> {
    (any::<bool>(), prop::bool::weighted(0.2)).prop_map(|(is_relative, is_odd)| Spelling {
        is_relative,
        is_odd,
    })
}

fn raw_reference() -> impl Strategy<Value = RawReference> {
    prop_oneof![
        10 => (any::<Index>(), spelling()).prop_map(|(place, how)| RawReference::Place(place, how)),
        2 => (any::<Index>(), spelling()).prop_map(|(place, how)| RawReference::Above(place, how)),
        1 => spelling().prop_map(RawReference::Itself),
        1 => (any::<Index>(), select(vec!["/nope", "x", "/.hidden", "/main.txt"]))
            .prop_map(|(place, more)| RawReference::Missing(place, more)),
        1 => any::<bool>().prop_map(RawReference::Outside),
        6 => select(FILTERS.to_vec()).prop_map(RawReference::Tag),
    ]
}

fn written(reference: &RawReference, own: &str, places: &[String]) -> String {
    let spell = |target: &str, how: Spelling| {
        let path = if how.is_relative {
            relative(own, target)
        } else {
            target.to_owned()
        };
        match (how.is_odd, how.is_relative) {
            (true, true) => format!("./{path}/"),
            (true, false) => format!("{path}//./"),
            (false, _) => path,
        }
    };
    match reference {
        RawReference::Place(place, how) => spell(place.get::<String>(places), *how),
        RawReference::Above(levels, how) => {
            let mut path = names(own);
            path.truncate(levels.index(path.len().max(1)));
            spell(&format!("/{}", path.join("/")), *how)
        }
        RawReference::Itself(how) => spell(own, *how),
        RawReference::Missing(place, more) => {
            format!("{}{more}", place.get(places).trim_end_matches('/'))
        }
        RawReference::Outside(true) => format!("{}x", "../".repeat(names(own).len() + 1)),
        RawReference::Outside(false) => "/a/../../a".to_owned(),
        RawReference::Tag(filter) => format!("tag:{filter}"),
    }
}

/// How to get from one directory to another.
pub(crate) fn relative(from: &str, to: &str) -> String {
    let (from, to) = (names(from), names(to));
    let mut common = 0;
    while common < from.len() && common < to.len() && from[common] == to[common] {
        common += 1;
    }
    let mut way = vec![".."; from.len() - common];
    way.extend(&to[common..]);
    if way.is_empty() {
        ".".to_owned()
    } else {
        way.join("/")
    }
}

type RawDirectory = (
    Vec<&'static str>,
    Holds,
    Vec<&'static str>,
    &'static str,
    [Vec<RawReference>; 4],
);

fn raw_directory(most: usize) -> impl Strategy<Value = RawDirectory> {
    let some = || prop::collection::vec(raw_reference(), 0..=most);
    let holds = prop_oneof![
        24 => Just(Holds::Stack),
        4 => Just(Holds::Nothing),
        1 => select(vec![Holds::Marked(".tmskip"), Holds::Marked(".orchskip")]),
        1 => Just(Holds::Hidden),
    ];
    (
        prop::collection::vec(select(NAMES.to_vec()), 0..5),
        holds,
        subsequence(TAGS.to_vec(), 0..3),
        select(vec!["stack.tm", "stack.tm.hcl", "a.orch.hcl"]),
        [some(), some(), some(), some()],
    )
}

/// Any tree: with cycles, and with references that are wrong.
pub(crate) fn any_tree() -> impl Strategy<Value = Tree> {
    let directories = prop_oneof![
        prop::collection::vec(raw_directory(1), 0..8),
        prop::collection::vec(raw_directory(1), 8..16),
        prop::collection::vec(raw_directory(3), 3..12),
    ];
    (directories, prop::bool::weighted(0.1))
        .prop_map(|(directories, is_strict)| build(directories, is_strict))
}

fn build(raw: Vec<RawDirectory>, is_strict: bool) -> Tree {
    let mut by_path: BTreeMap<String, RawDirectory> = BTreeMap::new();
    for mut directory in raw {
        if matches!(directory.1, Holds::Hidden) {
            directory.0.push(".hidden");
        }
        let path = format!("/{}", directory.0.join("/"));
        // A mark at the root would empty the project.
        if !(path == "/" && matches!(directory.1, Holds::Marked(_))) {
            by_path.entry(path).or_insert(directory);
        }
    }
    let mut places = BTreeSet::from(["/".to_owned()]);
    for path in by_path.keys() {
        let names = names(path);
        places.extend((1..=names.len()).map(|end| format!("/{}", names[..end].join("/"))));
    }
    let places: Vec<String> = places.into_iter().collect();
    let directories = by_path
        .into_iter()
        .map(|(path, (_, holds, tags, file, references))| {
            let references = references.map(|list| {
                let mut all: Vec<String> = Vec::new();
                for reference in &list {
                    let text = written(reference, &path, &places);
                    if !all.contains(&text) {
                        all.push(text);
                    }
                }
                all
            });
            Directory {
                stack: ModelStack {
                    path,
                    tags: tags.into_iter().map(str::to_owned).collect(),
                    references,
                },
                holds,
                file,
            }
        })
        .collect();
    Tree {
        is_strict,
        directories,
    }
}

/// A tree without cycles.
pub(crate) fn acyclic_tree() -> impl Strategy<Value = Tree> {
    any_tree().prop_map(without_cycles)
}

/// A tree whose stacks on cycles carry the tag `knotted`, in which no stack wants another, and in
/// which often one stack runs before a cycle and another after it.
pub(crate) fn knotted_tree() -> impl Strategy<Value = Tree> {
    let picks = any::<[Index; 4]>();
    (
        prop_oneof![any_tree().boxed(), acyclic_tree().boxed()],
        picks,
    )
        .prop_map(|(mut tree, picks)| {
            let model = tree.model();
            for directory in &mut tree.directories {
                directory.stack.references[2].clear();
                directory.stack.references[3].clear();
            }
            if model.stacks.len() >= picks.len() {
                let [one, other, first, last] =
                    picks.map(|pick| model.path(pick.index(model.stacks.len())));
                for (declaring, attribute, named) in [
                    (one, 0, other),
                    (other, 0, one),
                    (first, 1, one),
                    (last, 0, other),
                ] {
                    let directory = tree.directory(declaring);
                    if !directory.stack.references[attribute].contains(&named.to_owned()) {
                        directory.stack.references[attribute].push(named.to_owned());
                    }
                }
            }
            let model = tree.model();
            for stack in model.on_cycles() {
                let tags = &mut tree.directory(model.path(stack)).stack.tags;
                tags.push("knotted".to_owned());
            }
            tree
        })
}

/// Drops each reference that would close a cycle with those before it.
fn without_cycles(mut tree: Tree) -> Tree {
    let model = tree.model();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    let bare = model.stacks.iter().map(|stack| ModelStack {
        references: Default::default(),
        ..stack.clone()
    });
    for nesting in Model::new(bare.collect()).constraints() {
        edges.push((nesting.from, nesting.to));
    }
    for (declaring, stack) in model.stacks.iter().enumerate() {
        let directory = tree.directory(&stack.path);
        for attribute in [0, 1] {
            directory.stack.references[attribute].retain(|written| {
                let new: Vec<(usize, usize)> = model
                    .meaning(declaring, attribute, written)
                    .stacks()
                    .into_iter()
                    .map(|named| match attribute {
                        0 => (named, declaring),
                        _ => (declaring, named),
                    })
                    .collect();
                let closes = new.iter().any(|&(from, to)| leads(&edges, to, from));
                if !closes {
                    edges.extend(new);
                }
                !closes
            });
        }
    }
    tree
}

/// Drops each reference that is an error.
pub(crate) fn without_errors(mut tree: Tree) -> Tree {
    let model = tree.model();
    tree.is_strict = false;
    for (declaring, stack) in model.stacks.iter().enumerate() {
        let references = &mut tree.directory(&stack.path).stack.references;
        for (attribute, references) in references.iter_mut().enumerate() {
            references
                .retain(|written| model.meaning(declaring, attribute, written) != Meaning::Error);
        }
    }
    tree
}

fn leads(edges: &[(usize, usize)], from: usize, to: usize) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut queue = vec![from];
    while let Some(here) = queue.pop() {
        let next = edges.iter().filter(|edge| edge.0 == here);
        queue.extend(next.map(|edge| edge.1).filter(|&next| seen.insert(next)));
    }
    seen.contains(&to)
}

impl Tree {
    fn directory(&mut self, path: &str) -> &mut Directory {
        let mut directories = self.directories.iter_mut();
        let found = directories.find(|directory| directory.stack.path == path);
        found.expect("the model is of this tree")
    }

    /// The stacks that belong to the project, for the model.
    pub(crate) fn model(&self) -> Model {
        let is_marked = |path: &str| {
            self.directories.iter().any(|directory| {
                let (out, own) = (names(&directory.stack.path), names(path));
                matches!(directory.holds, Holds::Marked(_)) && own.starts_with(&out)
            })
        };
        let stacks = self
            .directories
            .iter()
            .filter(|directory| directory.holds == Holds::Stack)
            .map(|directory| directory.stack.clone())
            .filter(|stack| !is_marked(&stack.path));
        Model::new(stacks.collect())
    }

    fn names_a_file(&self) -> bool {
        let stacks = self.directories.iter().map(|directory| &directory.stack);
        stacks
            .flat_map(|stack| stack.references.iter().flatten())
            .any(|written| written.ends_with("main.txt"))
    }

    /// The files of the project, as paths relative to its root and contents.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let strict = if self.is_strict {
            "  config {\n    references = \"strict\"\n  }\n"
        } else {
            ""
        };
        let mut files = vec![(
            "root.orch.hcl".to_owned(),
            format!("orch {{\n  root = true\n{strict}}}\n"),
        )];
        for directory in &self.directories {
            let place = names(&directory.stack.path).join("/");
            let file = |name: &str| match place.as_str() {
                "" => name.to_owned(),
                place => format!("{place}/{name}"),
            };
            if self.names_a_file() {
                files.push((file("main.txt"), "not configuration\n".to_owned()));
            }
            if let Holds::Marked(mark) = directory.holds {
                files.push((file(mark), String::new()));
            }
            if directory.holds == Holds::Nothing {
                files.push((file(".keep"), String::new()));
            } else {
                files.push((file(directory.file), block(&directory.stack)));
            }
        }
        files
    }
}

fn block(stack: &ModelStack) -> String {
    let list = |texts: &[String]| -> String {
        let texts: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
        texts.join(", ")
    };
    let mut text = format!("stack {{\n  tags = [{}]\n", list(&stack.tags));
    for (attribute, references) in ATTRIBUTES.iter().zip(&stack.references) {
        if !references.is_empty() {
            text += &format!("  {attribute} = [{}]\n", list(references));
        }
    }
    text + "}\n"
}

/// Writes files below a directory, in the order given.
pub(crate) fn write<'a>(root: &Path, files: impl IntoIterator<Item = &'a (String, String)>) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("lies below the root")).unwrap();
        fs::write(path, text).unwrap();
    }
}
