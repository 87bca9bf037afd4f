//! Loading a project does not depend on the order in which its files were made.

use std::fs;
use std::path::Path;

use orch::diagnostic::{RenderStyle, render, sort};
use orch::project::{Problems, Project};
use orch::selection::graph::Graph;
use orch::selection::reference::References;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::host::folder;
use crate::tree::{any_tree, write};

/// Files that are wrong, or say more of the same.
pub(crate) const NOISE: [&str; 8] = [
    "stack {\n  id = \"same\"\n}\n",
    "stack {\n  id = \"SAME\"\n  tags = [\"t\", \"t\", \"Bad\"]\n}\n",
    "stack {\n  aftr = []\n  after = [1, \"/nope\"]\n}\n",
    "stak {\n}\n",
    "globals {\n  a = 1\n  a = 2\n}\n",
    "orch {\n  config {\n    run {\n      env {\n        A = env.B\n      }\n    }\n  }\n}\n",
    "import {\n  source = \"/*.orch.hcl\"\n}\n",
    "stack {\n  name = \"unclosed\n",
];

fn loaded(root: &Path) -> String {
    let mut problems = Problems::default();
    let project = Project::load(root, &mut problems).unwrap();
    seen(&project, problems)
}

/// All that can be seen of a project.
pub(crate) fn seen(project: &Project, problems: Problems) -> String {
    let Problems {
        mut diagnostics,
        errors,
        ..
    } = problems;
    let references = References::resolve(project, &mut diagnostics);
    let graph = Graph::new(&project.stacks, &references);
    for knot in graph.cycles() {
        diagnostics.extend(knot.diagnostics(&project.stacks, &project.sources));
    }
    sort(&mut diagnostics, &project.sources);
    let mut seen = String::new();
    for diagnostic in &diagnostics {
        seen += &render(diagnostic, &project.sources, RenderStyle::Plain);
    }
    for error in &errors {
        seen += &format!("{error}\n");
    }
    let place = |span| project.sources.line(span);
    for (index, stack) in project.stacks.iter() {
        let id = stack.id.as_ref().map(|id| &id.value);
        let tags: Vec<&str> = stack.tags().collect();
        seen += &format!(
            "{index:?} {} {id:?} {:?} {tags:?} {}\n",
            stack.path,
            stack.name,
            place(stack.span)
        );
        for earlier in graph.relatives(
            index,
            orch::selection::graph::SearchDirection::Dependencies,
            |_| true,
        ) {
            let origins: Vec<String> = earlier
                .origins
                .iter()
                .map(|origin| format!("{} {}", origin.kind, place(origin.span)))
                .collect();
            seen += &format!("  after {:?}: {origins:?}\n", earlier.stack);
        }
    }
    for reference in &references.list {
        let members = references.named(reference, &project.stacks);
        seen += &format!(
            "{:?} {} {members:?} {}\n",
            reference.from,
            reference.kind,
            place(reference.span)
        );
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_seen_does_not_depend_on_the_order_in_which_files_are_created(
        tree in any_tree(),
        noise in prop::collection::vec((any::<Index>(), select(vec!["0.tm", "m.tm.hcl", "z.orch.hcl"]), select(NOISE.to_vec())), 0..4),
        keys in prop::collection::vec(any::<u32>(), 64),
    ) {
        let mut files = tree.files();
        for (place, name, text) in noise {
            let beside = &place.get(&files).0;
            let directory = beside.rsplit_once('/').map_or("", |(directory, _)| directory);
            let path = format!("{directory}/{name}").trim_start_matches('/').to_owned();
            if files.iter().all(|(other, _)| *other != path) {
                files.push((path, text.to_owned()));
            }
        }
        let mut shuffled: Vec<_> = files.iter().zip(keys.iter().cycle()).collect();
        shuffled.sort_by_key(|&(_, key)| key);
        let make = |files: Vec<&(String, String)>| {
            let directory = folder();
            let root = directory.path().canonicalize().unwrap().join("project");
            fs::create_dir(&root).unwrap();
            write(&root, files);
            let first = loaded(&root);
            assert_eq!(loaded(&root), first, "the same twice");
            first
        };
        let one = make(files.iter().collect());
        let other = make(shuffled.into_iter().map(|(file, _)| file).collect());
        prop_assert_eq!(one, other);
    }
}
