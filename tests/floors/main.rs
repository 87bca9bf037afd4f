//! The modules of `src` stand on floors, and no two of them use each other: read from the imports and
//! paths of the source, so that a line that points the wrong way fails here.

mod house;
mod tokens;
mod uses;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use self::house::{House, Violation};

/// The floors, from the bottom. A module uses only what stands before it.
const FLOORS: [&str; 33] = [
    "exit",
    "error",
    "duration",
    "ascii",
    "on_disk",
    "folder",
    "printable",
    "path",
    "pattern",
    "source",
    "version",
    "diagnostic",
    "notice",
    "policy",
    "language",
    "project",
    "git",
    "driver",
    "author",
    "state",
    "change",
    "release",
    "selection",
    "workspace",
    "context",
    "create",
    "record",
    "run",
    "plan",
    "export",
    "report",
    "command",
    "program",
];

/// Reads the files of a directory and of those below it; their paths are relative to it.
fn files(directory: &Path, above: &str, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        let place = format!("{above}{name}");
        if path.is_dir() {
            files(&path, &format!("{place}/"), found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((place, fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn every_room_uses_only_lower_floors_and_no_two_form_a_circle() {
    let mut found = Vec::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    files(&src, "", &mut found);
    let files = found.iter().map(|(path, text)| (&**path, &**text));
    let violations = House::new(files, "orch").violations(&FLOORS);
    let mut report = String::new();
    for Violation { name, lines } in violations {
        report += &format!("{name}:\n  {}\n", lines.join("\n  "));
    }
    assert!(report.is_empty(), "\n{report}");
}

/// Returns the modules that the first column of a table of floors names, and what the second says of them.
fn table(text: &str) -> Vec<(Vec<String>, String)> {
    let rows = text.lines().map(|line| line.trim_start_matches("//! "));
    let rows = rows.skip_while(|line| !line.starts_with("| floor |"));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| {
        let mut cells = row.trim_matches('|').splitn(2, " | ");
        let names = cells.next().unwrap().split(", ");
        let names = names.map(|name| name.trim_matches([' ', '[', ']', '`']).to_owned());
        (names.collect(), cells.next().unwrap().trim().to_owned())
    });
    cells.collect()
}

/// The rooms that decide. The program asks them only through those above them.
const DECIDING: [&str; 3] = ["git", "state", "change"];

#[test]
fn the_program_names_no_room_that_decides() {
    let mut found = Vec::new();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/program");
    files(&program, "", &mut found);
    for (file, text) in &found {
        for room in DECIDING {
            let mut uses = uses::read(text).uses.into_iter();
            let is_named =
                uses.any(|it| it.path[0] == "orch" && it.path.get(1).is_some_and(|it| it == room));
            assert!(!is_named, "src/program/{file} names `{room}`");
        }
    }
}

/// Types that have the name of another one on purpose: what one platform has in place of the other's, and the results of
/// the library and the program.
const TWINS: [&str; 6] = [
    "OutputKeeper",
    "Result",
    "Signals",
    "TerminalModes",
    "Kept",
    "Pipes",
];

#[test]
fn no_two_types_share_a_name() {
    let mut found = Vec::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    files(&src, "", &mut found);
    let mut types: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (file, text) in &found {
        let tokens = tokens::tokens(text);
        for [first, second, third] in tokens.array_windows() {
            let is_public = first.text == "pub" || first.text == ")";
            let is_type = ["struct", "enum", "trait", "type"].contains(&&*second.text);
            if is_public && is_type && !TWINS.contains(&&*third.text) {
                types.entry(third.text.clone()).or_default().push(file);
            }
        }
    }
    types.retain(|_, files| files.len() > 1);
    assert!(types.is_empty(), "{types:#?}");
}

/// Phrases that sound translated, each of which has a plain word.
const PHRASES: [&str; 15] = [
    "on record",
    "off the record",
    " anew",
    "carried out",
    "carries out",
    "by halves",
    "in vain",
    "whoever ",
    "nobody ",
    "given up",
    " is gone",
    "decided after",
    "stands for",
    "in the tree",
    "whatever ",
];

#[test]
fn messages_and_help_use_plain_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    files(&root.join("src"), "", &mut found);
    for entry in fs::read_dir(root.join("src/program/help")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    let mut report = String::new();
    for (path, text) in found {
        if path.contains("tests") {
            continue;
        }
        let is_help = Path::new(&path).extension().is_some_and(|it| it == "md");
        // Without the tests, which come last.
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
        for (number, line) in text.lines().enumerate() {
            let texts: String = if is_help {
                line.to_owned()
            } else if line.trim_start().starts_with("//") {
                continue;
            } else {
                line.split('"').skip(1).step_by(2).collect()
            };
            for phrase in PHRASES.iter().filter(|phrase| texts.contains(**phrase)) {
                report += &format!("{path}:{}: `{phrase}` in {line}\n", number + 1);
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn the_documentation_shows_the_floors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| table(&fs::read_to_string(root.join(file)).unwrap());
    let mut shown = read(".github/CONTRIBUTING.md");
    let names: Vec<&str> = shown
        .iter()
        .flat_map(|(names, _)| names)
        .map(|it| &**it)
        .collect();
    assert_eq!(names, FLOORS);
    shown.pop();
    assert_eq!(read("src/lib.rs"), shown);
}

/// The violations in a made-up tree: each file begins with a line `//- its/path.rs`.
fn violations(tree: &str) -> String {
    let files = tree.split("//- ").skip(1);
    let files = files.map(|file| file.split_once('\n').unwrap());
    let mut report = String::new();
    for Violation { name, lines } in House::new(files, "orch").violations(&["a", "b", "c"]) {
        report += &format!("{name}: {}\n", lines.join(", "));
    }
    report
}

#[test]
fn a_use_of_a_lower_floor_is_right() {
    let tree = "
//- a.rs
//- b.rs
use crate::a::A;
//- c/mod.rs
use crate::a;
use orch::b::B;
//- lib.rs
mod a;
";
    assert_eq!(violations(tree), "");
}

#[test]
fn a_use_of_a_higher_floor_is_a_violation() {
    let tree = "
//- a.rs
fn f() -> crate::b::B {
//- b.rs
use std::fmt;
use crate::{a::A, c::{self, C}};
//- c.rs
";
    assert_eq!(
        violations(tree),
        "a uses b: src/a.rs:1 uses b
b uses c: src/b.rs:2 uses c\n"
    );
}

#[test]
fn a_use_by_a_nested_file_counts_for_its_room() {
    let tree = "
//- a/mod.rs
mod x;
//- a/x/y.rs
use super::super::super::b;
//- a/x/mod.rs
//- b.rs
";
    assert_eq!(violations(tree), "a uses b: src/a/x/y.rs:1 uses b\n");
}

#[test]
fn files_of_one_folder_form_a_circle() {
    let tree = "
//- a/mod.rs
mod x; mod y; mod z;
//- a/x.rs
use super::y::Y;
//- a/y/mod.rs
mod deep;
//- a/y/deep.rs
use crate::a::z;
//- a/z.rs
fn f() { super::x::f() }
//- a/w.rs
use super::x;
";
    assert_eq!(
        violations(tree),
        "circle in a: src/a/x.rs:1 uses y, src/a/y/deep.rs:1 uses z, src/a/z.rs:1 uses x\n"
    );
}

#[test]
fn the_door_of_a_folder_forms_no_circle_but_hides_none() {
    let tree = "
//- a/mod.rs
mod x;
mod y;
pub use self::y::Y as Z;
pub struct Own;
//- a/x.rs
use super::{Own, Z};
//- a/y.rs
use super::Own;
";
    assert_eq!(violations(tree), "");
    let tree = tree.to_owned() + "use crate::a::x::X;\n";
    assert_eq!(
        violations(&tree),
        "circle in a: src/a/x.rs:1 uses y, src/a/y.rs:2 uses x\n"
    );
}

#[test]
fn what_another_room_passes_on_comes_from_where_it_is_defined() {
    let tree = "
//- a.rs
use crate::b::C;
//- b.rs
pub use crate::c::C;
//- c.rs
";
    assert_eq!(
        violations(tree),
        "a uses c: src/a.rs:1 uses c\nb uses c: src/b.rs:1 uses c\n"
    );
}

#[test]
fn test_code_does_not_count() {
    let tree = "
//- a/mod.rs
//! Not for [`crate::b`].
#[cfg(test)]
mod tests;
#[cfg(test)]
mod more { use crate::b; }
//- a/tests.rs
use crate::b;
//- a/tests/deep.rs
use crate::c;
//- b.rs
";
    assert_eq!(violations(tree), "");
}

#[test]
fn a_room_without_a_floor_is_a_violation() {
    assert_eq!(violations("//- d.rs\n"), "d has no floor: \n");
}
