//! Random project trees, and how they are written to disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::model::{
    ATTRIBUTES, EACH_KEY, EACH_VALUE, Each, Meaning, Model, ModelStack, literal, names,
};

/// Names of directories: some begin like others, some sort before the `/` that ends them, and one
/// looks as if it ended in a key.
const NAMES: [&str; 7] = ["a", "a-b", "b", "ab", "a b", "c", LIKE_A_KEY];

const LIKE_A_KEY: &str = if cfg!(windows) { "d" } else { "b[\"k\"]" };

/// Keys of instances; one is a tag as well.
const KEYS: [&str; 4] = ["k", "t", "a b", "*"];

/// What may follow a path in a reference. The value of an instance is not always a key.
const KEY_SUFFIXES: [&str; 6] = [
    "[*]",
    "[\"k\"]",
    "[\"t\"]",
    "[\"none\"]",
    "[\"${each.key}\"]",
    "[\"${each.value}\"]",
];

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
    /// What its `stack` block says; instances differ only in `each`.
    pub(crate) stack: ModelStack,
    pub(crate) for_each: Option<ForEach>,
    pub(crate) holds: Holds,
    pub(crate) file: &'static str,
}

/// The instances of a directory.
#[derive(Debug, Clone)]
pub(crate) struct ForEach {
    /// A list, where keys and values are the same, or an object.
    is_list: bool,
    instances: Vec<Each>,
}

impl ForEach {
    fn text(&self) -> String {
        let instances = self.instances.iter();
        if self.is_list {
            let keys: Vec<String> = instances.map(|each| literal(&each.key)).collect();
            return format!("[{}]", keys.join(", "));
        }
        let entry = |each: &Each| format!("{} = {}", literal(&each.key), literal(&each.value));
        let entries: Vec<String> = instances.map(entry).collect();
        format!("{{ {} }}", entries.join(", "))
    }
}

impl Directory {
    /// The stacks that are declared there.
    fn stacks(&self) -> Vec<ModelStack> {
        let stack = |each: Option<Each>| {
            let mut stack = ModelStack {
                each,
                ..self.stack.clone()
            };
            stack.tags = stack.tags.iter().map(|tag| stack.value(tag)).collect();
            stack
        };
        match &self.for_each {
            None => vec![stack(None)],
            Some(for_each) => {
                let instances = for_each.instances.iter().cloned();
                instances.map(Some).map(stack).collect()
            }
        }
    }

    /// Returns whether a text differs from some others for every instance: no entry may occur twice.
    fn is_new(&self, others: &[String], text: &str) -> bool {
        self.stacks().iter().all(|stack| {
            let mut others = others.iter();
            others.all(|other| stack.value(other) != stack.value(text))
        })
    }

    fn add(&mut self, attribute: usize, text: String) {
        if self.is_new(&self.stack.references[attribute], &text) {
            self.stack.references[attribute].push(text);
        }
    }
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
    /// A path with a key.
    Keyed(Box<RawReference>, &'static str),
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
    let path = prop_oneof![
        10 => (any::<Index>(), spelling()).prop_map(|(place, how)| RawReference::Place(place, how)),
        2 => (any::<Index>(), spelling()).prop_map(|(place, how)| RawReference::Above(place, how)),
        1 => spelling().prop_map(RawReference::Itself),
        1 => (any::<Index>(), select(vec!["/nope", "x", "/.hidden", "/main.txt"]))
            .prop_map(|(place, more)| RawReference::Missing(place, more)),
        1 => any::<bool>().prop_map(RawReference::Outside),
    ];
    let path = path.boxed();
    prop_oneof![
        15 => path.clone(),
        6 => (path, select(KEY_SUFFIXES.to_vec()))
            .prop_map(|(path, key)| RawReference::Keyed(Box::new(path), key)),
        6 => select(FILTERS.to_vec()).prop_map(RawReference::Tag),
        1 => select(vec![EACH_KEY, EACH_VALUE]).prop_map(RawReference::Tag),
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
        RawReference::Keyed(path, key) => match written(path, own, places).as_str() {
            "." => (*key).to_owned(),
            path => format!("{path}{key}"),
        },
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

#[derive(Debug, Clone)]
struct RawDirectory {
    names: Vec<&'static str>,
    holds: Holds,
    for_each: Option<ForEach>,
    tags: Vec<&'static str>,
    file: &'static str,
    references: [Vec<RawReference>; 4],
}

fn for_each() -> impl Strategy<Value = ForEach> {
    let keys = subsequence(KEYS.to_vec(), 0..=3);
    let values = prop::collection::vec(select(TAGS.to_vec()), 3);
    (keys, values, any::<bool>()).prop_map(|(keys, values, is_list)| {
        let each = |(key, value): (&str, &str)| Each {
            key: key.to_owned(),
            value: if is_list { key } else { value }.to_owned(),
        };
        ForEach {
            is_list,
            instances: keys.into_iter().zip(values).map(each).collect(),
        }
    })
}

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
        prop::option::weighted(0.3, for_each()),
        subsequence([&TAGS[..], &[EACH_KEY, EACH_VALUE]].concat(), 0..3),
        select(vec!["stack.tm", "stack.tm.hcl", "a.orch.hcl"]),
        [some(), some(), some(), some()],
    )
        .prop_map(
            |(names, holds, for_each, tags, file, references)| RawDirectory {
                names,
                holds,
                for_each,
                tags,
                file,
                references,
            },
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
        if matches!(directory.holds, Holds::Hidden) {
            directory.names.push(".hidden");
        }
        let path = format!("/{}", directory.names.join("/"));
        // A mark at the root would empty the project.
        if !(path == "/" && matches!(directory.holds, Holds::Marked(_))) {
            by_path.entry(path).or_insert(directory);
        }
    }
    // No instance may be named like a directory with stacks.
    let like_instances = by_path.keys().flat_map(|path| {
        let ends = path
            .match_indices("[\"k\"]")
            .map(|(at, _)| path[..at].to_owned());
        ends.collect::<Vec<String>>()
    });
    let like_instances: BTreeSet<String> = like_instances.collect();
    for path in like_instances {
        let directory = by_path.get_mut(&path);
        if let Some(for_each) = directory.and_then(|directory| directory.for_each.as_mut()) {
            for_each.instances.retain(|each| each.key != "k");
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
        .map(|(path, raw)| directory(&path, raw, &places))
        .collect();
    Tree {
        is_strict,
        directories,
    }
}

fn directory(path: &str, raw: RawDirectory, places: &[String]) -> Directory {
    let mut directory = Directory {
        stack: ModelStack {
            directory: path.to_owned(),
            ..ModelStack::default()
        },
        for_each: raw.for_each,
        holds: raw.holds,
        file: raw.file,
    };
    // Without `for_each`, `each` is unknown.
    let is_plain = directory.for_each.is_none();
    let known = |text: &str| {
        if is_plain {
            text.replace(EACH_KEY, "k").replace(EACH_VALUE, "t")
        } else {
            text.to_owned()
        }
    };
    for (attribute, list) in raw.references.iter().enumerate() {
        for reference in list {
            directory.add(attribute, known(&written(reference, path, places)));
        }
    }
    for tag in raw.tags.into_iter().map(known) {
        let is_tag = |stack: &ModelStack| !stack.value(&tag).contains([' ', '*']);
        let are_tags = directory.stacks().iter().all(is_tag);
        if are_tags && directory.is_new(&directory.stack.tags, &tag) {
            directory.stack.tags.push(tag);
        }
    }
    directory
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
                let [one, other, first, last] = picks.map(|pick| pick.index(model.stacks.len()));
                for (declaring, attribute, named) in [
                    (one, 0, other),
                    (other, 0, one),
                    (first, 1, one),
                    (last, 0, other),
                ] {
                    let directory = tree.directory(model.directory(declaring));
                    directory.add(attribute, model.path(named).to_owned());
                }
            }
            let model = tree.model();
            let knotted = model.on_cycles().into_iter();
            let knotted: BTreeSet<&str> = knotted.map(|stack| model.directory(stack)).collect();
            for directory in knotted {
                let tags = &mut tree.directory(directory).stack.tags;
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
    for directory in &mut tree.directories {
        let declaring = model.stacks_in(&directory.stack.directory);
        for attribute in [0, 1] {
            directory.stack.references[attribute].retain(|written| {
                let mut all = edges.clone();
                for &declaring in &declaring {
                    let named = model.meaning(declaring, attribute, written).stacks();
                    all.extend(named.into_iter().map(|named| match attribute {
                        0 => (named, declaring),
                        _ => (declaring, named),
                    }));
                }
                let new = &all[edges.len()..];
                let closes = new.iter().any(|&(from, to)| leads(&all, to, from));
                if !closes {
                    edges = all;
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
    for directory in &mut tree.directories {
        let declaring = model.stacks_in(&directory.stack.directory);
        for (attribute, references) in directory.stack.references.iter_mut().enumerate() {
            references.retain(|written| {
                let mut declaring = declaring.iter();
                declaring.all(|&stack| model.meaning(stack, attribute, written) != Meaning::Error)
            });
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
        let found = directories.find(|directory| directory.stack.directory == path);
        found.expect("the model is of this tree")
    }

    /// The stacks that belong to the project, for the model.
    pub(crate) fn model(&self) -> Model {
        let is_marked = |path: &str| {
            self.directories.iter().any(|directory| {
                let (out, own) = (names(&directory.stack.directory), names(path));
                matches!(directory.holds, Holds::Marked(_)) && own.starts_with(&out)
            })
        };
        let stacks = self
            .directories
            .iter()
            .filter(|directory| directory.holds == Holds::Stack)
            .flat_map(Directory::stacks)
            .filter(|stack| !is_marked(&stack.directory));
        let is_empty = |directory: &&Directory| {
            let for_each = directory.for_each.as_ref();
            directory.holds == Holds::Stack
                && for_each.is_some_and(|for_each| for_each.instances.is_empty())
        };
        let empty = self.directories.iter().filter(is_empty);
        let empty = empty.map(|directory| directory.stack.directory.clone());
        let mut model = Model::new(stacks.collect());
        model.without_instances = empty.collect();
        model
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
            let place = names(&directory.stack.directory).join("/");
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
                files.push((file(directory.file), block(directory)));
            }
        }
        files
    }
}

fn block(directory: &Directory) -> String {
    let stack = &directory.stack;
    let list = |texts: &[String]| -> String {
        let texts: Vec<String> = texts.iter().map(|text| literal(text)).collect();
        texts.join(", ")
    };
    let mut text = format!("stack {{\n  tags = [{}]\n", list(&stack.tags));
    if let Some(for_each) = &directory.for_each {
        text += &format!("  for_each = {}\n", for_each.text());
    }
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
