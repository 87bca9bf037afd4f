//! Random projects and histories, over so few names that everything meets everything.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::history::{Operation, Reset};
use super::paths::{basename, parent};
use super::repository::{Reader, Setting};
use super::texts::{Configuration, ForEach, From, Item, StackBlock, Text, Trigger};
use crate::tree::relative;

/// A project, what is done in it, and what is asked then.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) setting: Setting,
    pub(super) files: Vec<(String, Text)>,
    pub(super) operations: Vec<Operation>,
    pub(super) base: WantedBase,
    pub(super) switches: Switches,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum WantedBase {
    Usual,
    Head,
    Commit(usize),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Switches {
    pub(super) untracked: bool,
    pub(super) uncommitted: bool,
}

/// Directories that may be stacks. The root is one of them, but then it owns most files.
const STACKS: [&str; 7] = ["a", "a-b", "ab", "a/n", "a/n/d", "s p", "ü\"q"];

/// Directories of modules, of which some may be stacks, too.
const MODULES: [&str; 9] = [
    "mods/x",
    "mods/y",
    "mods/common",
    "libs/z",
    "libs/common",
    "a/mod",
    ".hid/m",
    "ab",
    "a-b",
];

/// Directories that may have links.
const WITH_LINKS: [&str; 5] = ["a-b", "s p", "a/n/d", "mods/y", "a/mod"];

/// Files to read, some of which are at times directories, or reached by a link.
const READ: [&str; 9] = [
    "data/x",
    "data/y.json",
    "data/deep/x",
    "data/fd",
    "data/fd/x",
    "data/ld/x",
    "a/n/x",
    "mods/common/x",
    "data/none",
];

/// The values of the variable: names of files in `data`.
const VALUES: [&str; 3] = ["x", "y.json", "none"];

const WATCHED: [&str; 14] = [
    "/data/${each.key}",
    "../a/*${each.key}",
    "/data/ld/x",
    "/data/ld/*",
    "/data/x",
    "/data/fd/x",
    "/data/y.json",
    "/a/n/x",
    "/data/*.json",
    "/data/**",
    "/**/x",
    "x",
    "../data/deep/*",
    "/data/{x,é \"1\".txt}",
];

/// Keys of instances, most of which are names of files as well.
const KEYS: [&str; 4] = ["x", "y.json", "keys", "other key"];

/// The file whose text is a key.
const KEY_FILE: &str = "data/keys";

/// Files to read in a `stack` block, none of which is ever a directory.
const DESCRIBED_BY: [&str; 3] = ["data/none/${each.key}", "data/${each.key}", KEY_FILE];

const PLACES: [&str; 9] = [
    "",
    "a",
    "a/n",
    "data",
    "data/fd",
    "mods",
    "libs/common",
    "s p",
    "ab",
];

const BRANCHES: [&str; 3] = ["main", "feature", "other"];

fn module_item(directory: String) -> impl Strategy<Value = Item> {
    let by_link = if WITH_LINKS.contains(&&*directory) {
        8
    } else {
        1
    };
    let from_here = move |place: &str| {
        let way = relative(&format!("/{directory}"), &format!("/{place}"));
        if way.starts_with("..") {
            way
        } else {
            format!("./{way}")
        }
    };
    let source = select([&MODULES[..], &["data/ld"]].concat()).prop_map(from_here);
    let called = (source.clone(), select(VALUES.to_vec()));
    prop_oneof![
        8 => source.prop_map(Item::Module),
        4 => called.prop_map(|(source, value)| Item::Calling(source, value)),
        2 => Just(Item::Module("../common".to_owned())),
        by_link => Just(Item::Module("./ld".to_owned())),
        1 => select(vec!["./none", "../../../../x", "registry/a/b", "../data/deep"])
            .prop_map(|source| Item::Module(source.to_owned())),
    ]
}

fn read_item(directory: String) -> impl Strategy<Value = Item> {
    let from = select(vec![From::Module, From::Root, From::Bare]);
    let function = select(vec!["file", "templatefile", "filemd5", "fileexists"]);
    let own = directory.clone();
    let data = relative(&format!("/{directory}"), "/data");
    let path = prop_oneof![
        4 => select(READ.to_vec()).prop_map(move |place| relative(&format!("/{own}"), &format!("/{place}"))),
        2 => select(vec!["x", "../data/x", "../data/y.json", "é \"1\".txt", "../../../../x"])
            .prop_map(str::to_owned),
    ];
    let set_place = select(vec!["data", "data/deep", "data/fd", "data/ld", "mods", "."]);
    let set_path = set_place.prop_map(move |place| match place {
        "." => ".".to_owned(),
        place => relative(&format!("/{directory}"), &format!("/{place}")),
    });
    let pattern = select(vec!["*.json", "**/x", "*", "{x,y.json}", "deep/*", "**"]);
    prop_oneof![
        3 => (function, from.clone(), path)
            .prop_map(|(function, from, path)| Item::Read { function, from, path }),
        1 => (from, set_path, pattern)
            .prop_map(|(from, path, pattern)| Item::Set { from, path, pattern }),
        1 => Just(Item::ByVariable(data)),
    ]
}

fn items(directory: &str) -> impl Strategy<Value = Vec<Item>> + use<> {
    let item = prop_oneof![
        module_item(directory.to_owned()),
        read_item(directory.to_owned()),
    ];
    prop::collection::vec(item, 0..4)
}

fn stack_text(directory: &str) -> impl Strategy<Value = Text> + use<> {
    let directory = format!("/{directory}");
    let from_here = move |path: &str| relative(&directory, &format!("/{path}"));
    let watched = prop_oneof![
        3 => Just(Vec::new()),
        1 => subsequence(WATCHED.to_vec(), 1..3),
    ];
    let for_each = prop_oneof![
        4 => Just(None),
        2 => subsequence(KEYS.to_vec(), 0..=3).prop_map(|keys| Some(ForEach::Keys(keys))),
        1 => Just(Some(ForEach::File(from_here(KEY_FILE)))),
    ];
    let described_by = DESCRIBED_BY.map(from_here).to_vec();
    let described_by = prop_oneof![
        3 => Just(Vec::new()),
        1 => subsequence(described_by, 1..=2),
    ];
    let stack =
        (for_each, watched, described_by).prop_map(|(for_each, watch, described_by)| StackBlock {
            for_each,
            watch,
            described_by,
        });
    prop::option::weighted(0.85, stack).prop_map(|stack| {
        Text::Configuration(Configuration {
            stack,
            ..Configuration::default()
        })
    })
}

fn more_text(directory: &str) -> impl Strategy<Value = Text> + use<> {
    let from_here = relative(&format!("/{directory}"), "/");
    let import = prop_oneof![
        9 => select(vec!["/conf/i.tm.hcl", "conf/i.tm.hcl", "/conf2/j.tm.hcl"]),
        1 => Just("/conf/*.none"),
    ];
    let imports = prop::collection::vec(import, 0..2);
    let ignored = vec!["*.json", "x", "deep/", "**/*.log"];
    let ignore = prop_oneof![
        2 => Just(Vec::new()),
        1 => subsequence(ignored, 1..3),
    ];
    (imports, ignore).prop_map(move |(imports, ignore)| {
        let import = |source: &str| match source.strip_prefix('/') {
            Some(_) => source.to_owned(),
            None => format!("{from_here}/{source}"),
        };
        Text::Configuration(Configuration {
            imports: imports.into_iter().map(import).collect(),
            ignore,
            ..Configuration::default()
        })
    })
}

/// What may stand in a file of this name.
fn text_of(path: &str) -> BoxedStrategy<Text> {
    let directory = parent(path);
    let links = |targets: &[&'static str]| {
        let directory = format!("/{directory}");
        let link = move |target| Text::Link(relative(&directory, &format!("/{target}")));
        select(targets.to_vec()).prop_map(link).boxed()
    };
    match basename(path) {
        "stack.tm" => stack_text(directory).boxed(),
        "more.tm.hcl" => more_text(directory).boxed(),
        "i.tm.hcl" => prop_oneof![
            Just(Text::Configuration(Configuration::default())),
            Just(Text::Configuration(Configuration {
                imports: vec!["../conf2/j.tm.hcl".to_owned()],
                ..Configuration::default()
            })),
        ]
        .boxed(),
        "terraform.tfvars" => select(VALUES.to_vec()).prop_map(Text::Settings).boxed(),
        "j.tm.hcl" => Just(Text::Configuration(Configuration::default())).boxed(),
        "z.orch.hcl" => any::<bool>()
            .prop_map(|is_root| {
                Text::Configuration(Configuration {
                    is_root,
                    ..Configuration::default()
                })
            })
            .boxed(),
        ".gitignore" => {
            let patterns = vec!["*.log", "tmp/", "/data/deep", "!keep.log", "x", "/x"];
            prop::collection::vec(select(patterns), 1..3)
                .prop_map(Text::GitIgnore)
                .boxed()
        }
        "l" => prop_oneof![
            4 => links(&["data/x", "data/fd", "data/ld/x", "data/none"]),
            1 => Just(Text::Link("/etc/hostname".to_owned())),
        ]
        .boxed(),
        "l.tf" => links(&["data/c.tf", "mods/x/main.tf"]),
        "ld" if directory == "data" => links(&["data/deep", "data/fd"]),
        "ld" => links(&["mods/x", "data/ld", "libs", "data", ""]),
        name if name.ends_with(".tf.json") => items(directory).prop_map(Text::Json).boxed(),
        name if name.split('.').next_back() == Some("tf") => prop_oneof![
            12 => items(directory).prop_map(Text::Terraform),
            1 => Just(Text::Broken),
        ]
        .boxed(),
        _ => Just(Text::Plain).boxed(),
    }
}

fn any_path() -> impl Strategy<Value = String> {
    let under = |directories: &[&'static str], names: &[&'static str]| {
        (select(directories.to_vec()), select(names.to_vec()))
            .prop_map(|(directory, name)| format!("{directory}/{name}"))
    };
    let terraform = ["main.tf", "main.tf", "more.tf", "gen.tf.json"];
    let plain = [
        "x",
        "y.json",
        "é \"1\".txt",
        "sub/dir/x",
        "a.log",
        "keep.log",
        "tmp/x",
    ];
    prop_oneof![
        4 => under(&STACKS, &["stack.tm"]),
        4 => under(&STACKS, &terraform),
        2 => under(&STACKS, &plain),
        1 => under(&STACKS, &["terraform.tfvars"]),
        1 => under(&STACKS, &["more.tm.hcl"]),
        5 => under(&MODULES, &terraform),
        1 => under(&MODULES, &["x", "y.json"]),
        3 => under(&WITH_LINKS, &["l", "l.tf", "ld", "ld"]),
        3 => select(READ[..5].to_vec()).prop_map(str::to_owned),
        2 => select(vec![
            "data/c.tf", "data/ld", "conf/i.tm.hcl", "conf2/j.tm.hcl", ".gitignore", "a/.gitignore",
            "more.tm.hcl", "x", "stack.tm", "main.tf", KEY_FILE, KEY_FILE,
        ])
        .prop_map(str::to_owned),
    ]
}

/// A file and what stands in it.
fn any_file() -> impl Strategy<Value = (String, Text)> {
    any_path().prop_flat_map(|path| {
        let text = text_of(&path);
        (Just(path), text)
    })
}

fn any_edit() -> impl Strategy<Value = Operation> {
    let places = [
        &PLACES[..],
        &["data", "data", "mods", "libs", ".hid", "conf"],
    ]
    .concat();
    (select(places), 0..20_usize).prop_map(|(place, n)| Operation::Edit(place, n))
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let branch = || select(BRANCHES.to_vec());
    let place = || select(PLACES.to_vec());
    // Times that run backwards too, as clocks do.
    let time = || 0..1000_u32;
    let reset = select(vec![Reset::Soft, Reset::Mixed, Reset::Hard]);
    let renames = vec![
        ("a", "b"),
        ("a-b", "s p"),
        ("a/n", "n"),
        ("ab", "mods/x"),
        ("libs", "mods"),
        ("libs/common", "mods/common"),
        ("mods/y", "mods/x"),
        ("data/deep", "data/fd"),
    ];
    let marks = select(vec![
        "a/.tmskip",
        "a/n/.tmskip",
        "ab/.orchskip",
        "a/n/z.orch.hcl",
    ]);
    let mark = marks.prop_flat_map(|path| {
        text_of(path).prop_map(move |text| Operation::Write(path.to_owned(), text))
    });
    prop_oneof![
        2 => mark,
        8 => any_file().prop_map(|(path, text)| Operation::Write(path, text)),
        10 => any_edit(),
        4 => (0..40_usize).prop_map(Operation::Delete),
        1 => select(PLACES[1..].to_vec()).prop_map(Operation::DeleteAll),
        2 => (select(renames), any::<bool>()).prop_map(|((from, to), is_back)| {
            let (from, to) = if is_back { (to, from) } else { (from, to) };
            Operation::Rename(from, to)
        }),
        3 => (0..40_usize).prop_map(Operation::Chmod),
        4 => place().prop_map(Operation::Stage),
        2 => place().prop_map(Operation::Unstage),
        3 => time().prop_map(Operation::Commit),
        6 => time().prop_map(Operation::CommitAll),
        3 => branch().prop_map(Operation::Branch),
        2 => branch().prop_map(Operation::Switch),
        1 => Just(Operation::Detach),
        3 => (branch(), any::<u16>()).prop_map(|(name, n)| Operation::Merge(name, n.into())),
        1 => (reset, 0..9_usize).prop_map(|(reset, n)| Operation::Reset(reset, n)),
    ]
}

pub(super) fn any_trigger() -> impl Strategy<Value = Trigger> {
    let key = prop::option::of(select(vec!["x", "y.json", "plain 0"]));
    (select(STACKS.to_vec()), key, any::<bool>()).prop_map(|(directory, key, is_changed)| Trigger {
        directory,
        key,
        is_changed,
    })
}

pub(super) fn any_scene() -> impl Strategy<Value = Scene> {
    let setting = (
        select(vec!["", "pro j/é"]),
        prop_oneof![
            3 => Just(Reader::Library),
            1 => Just(Reader::ProgramForStatus),
            1 => Just(Reader::Program),
        ],
    );
    let base = prop_oneof![
        4 => Just(WantedBase::Usual),
        1 => Just(WantedBase::Head),
        3 => (0..9_usize).prop_map(WantedBase::Commit),
    ];
    let switch = || prop::bool::weighted(0.8);
    // Every project has a few stacks and modules, whatever else there is.
    let stack = select(STACKS.to_vec()).prop_flat_map(|directory| {
        let main = items(directory).prop_map(Text::Terraform);
        (Just(directory), stack_text(directory), main)
    });
    let stacks = prop::collection::vec(stack, 1..6);
    let directories = select(MODULES.to_vec());
    let terraform = directories.prop_flat_map(|directory| {
        let text = items(directory).prop_map(Text::Terraform);
        (Just(format!("{directory}/main.tf")), text)
    });
    let terraform = prop::collection::vec(terraform, 1..8);
    let others = prop::collection::vec(any_file(), 4..24);
    let operations = prop::collection::vec(any_operation(), 0..14);
    let last = prop::collection::vec(any_edit(), 0..4);
    let files = (stacks, terraform, others);
    let operations = (operations, last);
    let switches = (switch(), switch());
    (setting, files, operations, base, switches).prop_map(
        |(
            (directory, reader),
            (stacks, terraform, others),
            (mut operations, last),
            base,
            (untracked, uncommitted),
        )| {
            let mut files: Vec<(String, Text)> = Vec::new();
            for (directory, text, main) in stacks {
                files.push((format!("{directory}/stack.tm"), text));
                files.push((format!("{directory}/main.tf"), main));
            }
            files.extend(terraform);
            operations.extend(last);
            let imported = ["conf/i.tm.hcl", "conf2/j.tm.hcl"];
            let configuration = || Text::Configuration(Configuration::default());
            files.extend(imported.map(|path| (path.to_owned(), configuration())));
            files.push((KEY_FILE.to_owned(), Text::Plain));
            files.extend(others);
            Scene {
                setting: Setting { directory, reader },
                files,
                operations,
                base,
                switches: Switches {
                    untracked,
                    uncommitted,
                },
            }
        },
    )
}
