//! What differs from the outputs that a stack was applied with, against sets of names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use orch::context::used_outputs::UsedOutputs;
use orch::project::{Problems, Project};
use orch::selection::data::add_inputs;
use orch::selection::graph::Graph;
use orch::selection::reference::References;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::support::host::folder;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// An input: the outputs in its value, or all, and whether it is ignored.
type Input = (Option<Vec<&'static str>>, bool);

fn input() -> impl Strategy<Value = Input> {
    let some = subsequence(&NAMES[..], 0..3);
    (prop::option::weighted(0.8, some), any::<bool>())
}

/// Digests of outputs; `z`, which never changes, is always among them.
fn outputs() -> impl Strategy<Value = BTreeMap<String, String>> {
    let digest = prop::option::of(select(vec!["x", "y"]));
    prop::collection::vec(digest, NAMES.len()).prop_map(|digests| {
        let outputs = NAMES.iter().zip(digests);
        let outputs =
            outputs.filter_map(|(name, digest)| Some(((*name).to_owned(), digest?.to_owned())));
        outputs.chain([("z".to_owned(), "z".to_owned())]).collect()
    })
}

fn written(inputs: &[Input]) -> String {
    let mut text = String::new();
    for (number, (outputs, _)) in inputs.iter().enumerate() {
        let value = match outputs {
            None => "outputs".to_owned(),
            Some(names) => {
                let names = names.iter().map(|name| format!("outputs.{name}"));
                format!("[{}]", names.collect::<Vec<_>>().join(", "))
            }
        };
        text += &format!(
            "input \"i{number}\" {{\n  backend = \"b\"\n  from_stack_id = \"net\"\n  value = {value}\n}}\n"
        );
    }
    text
}

/// A project in which `/app` has these inputs of `/net`.
fn project(inputs: &[Input]) -> Project {
    let folder = folder();
    for stack in ["app", "net"] {
        fs::create_dir(folder.path().join(stack)).unwrap();
    }
    let ignored = inputs
        .iter()
        .enumerate()
        .filter(|(_, (_, is_ignored))| *is_ignored);
    let ignored: Vec<String> = ignored
        .map(|(number, _)| format!("input.i{number}"))
        .collect();
    let stack = format!(
        "stack {{\n  lifecycle {{\n    ignore_changes = [{}]\n  }}\n}}\n",
        ignored.join(", ")
    );
    fs::write(folder.path().join("app/stack.tm"), stack + &written(inputs)).unwrap();
    fs::write(
        folder.path().join("net/stack.tm"),
        "stack {\n  id = \"net\"\n}\n",
    )
    .unwrap();
    let mut problems = Problems::default();
    let root = dunce::canonicalize(folder.path()).unwrap();
    let mut project = Project::load(&root, &mut problems).unwrap();
    add_inputs(&mut project, &mut problems.diagnostics);
    assert!(!problems.has_errors(), "{}", written(inputs));
    project
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn used_outputs_differ_exactly_where_their_digests_do(
        inputs in prop::collection::vec(input(), 1..4),
        before in outputs(),
        after in outputs(),
    ) {
        let project = project(&inputs);
        let references = References::resolve(&project, &mut Vec::new());
        let graph = Graph::new(&project.stacks, &references);
        let [app, net] = ["/app", "/net"].map(|path| {
            let mut stacks = project.stacks.iter();
            stacks.find(|(_, stack)| stack.path.as_str() == path).unwrap().0
        });
        let mut used = UsedOutputs::new(&project, &graph, |stack| (stack == net).then_some(&before));
        let recorded = used.of(app);
        used.set(net, Some(&after));
        let found = used.differences(app, &recorded);

        let changed: BTreeSet<&str> = NAMES
            .into_iter()
            .filter(|name| before.get(*name) != after.get(*name))
            .collect();
        let uses = |input: &Input, name: &str| input.0.as_ref().is_none_or(|it| it.contains(&name));
        let differing = |is_ignored: bool| -> Vec<String> {
            let all = inputs.iter().enumerate().filter(|(_, it)| it.1 == is_ignored);
            let changed = all.filter(|(_, it)| changed.iter().any(|name| uses(it, name)));
            changed.map(|(number, _)| format!("i{number}")).collect()
        };
        let counting: Vec<&str> = found.inputs.iter().map(|(name, _)| *name).collect();
        prop_assert_eq!(counting, differing(false));
        prop_assert_eq!(&found.ignored, &differing(true));
        let is_other = |name: &&&str| !inputs.iter().any(|input| uses(input, name));
        prop_assert_eq!(found.others, changed.iter().any(|name| is_other(&name)));
    }
}
