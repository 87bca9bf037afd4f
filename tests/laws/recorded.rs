//! What ran after what when it was recorded: from the document of some stacks, of which some are gone from
//! the tree, against the constraints of the model.

use std::collections::{BTreeMap, BTreeSet};

use orch::path::{KeyFilter, ProjectPath, StackPath};
use orch::plan::order::{
    NamedConstraints, OperationOrder, RecordedEdge, RelaxedEdge, ReplacementOrder, StackWork,
};
use orch::plan::{PlannedOrder, RelaxedEffect};
use orch::run::turn::Operation;
use orch::selection::graph::Precedence;
use orch::state::document::Document;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use crate::loaded::Loaded;
use crate::model::{Model, Set};
use crate::tree::{Holds, Tree, any_tree};

/// Pairs of what came first and what came after it, by path, with the serial that said so.
type Pairs = BTreeSet<(String, String, Option<u64>)>;

/// What becomes of a directory with a stack after it was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is recorded, with this serial, and in the tree.
    Recorded(u64),
    /// It is recorded and no longer in the tree.
    Gone(u64),
    /// It is in the project and was never recorded.
    New,
}

impl Fate {
    fn serial(self) -> Option<u64> {
        match self {
            Fate::Recorded(serial) | Fate::Gone(serial) => Some(serial),
            Fate::New => None,
        }
    }
}

const DOCUMENT_SERIAL: u64 = 9;

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        3 => (1..5_u64).prop_map(Fate::Recorded),
        1 => (1..5_u64).prop_map(Fate::Gone),
        1 => Just(Fate::New),
    ]
}

/// A reference as it is recorded.
fn absolute(directory: &str, written: &str) -> String {
    if written.starts_with("tag:") {
        return written.to_owned();
    }
    let directory = ProjectPath::root().resolve(directory).unwrap();
    let (path, key) = KeyFilter::split(written);
    let path = directory.resolve(path);
    let path = path.as_ref().map_or(written, ProjectPath::as_str);
    let key = key.map(|key| key.to_string());
    format!("{path}{}", key.unwrap_or_default())
}

fn document(model: &Model, fate: impl Fn(usize) -> Fate) -> Document {
    let mut stacks = serde_json::Map::new();
    for (number, stack) in model.stacks.iter().enumerate() {
        let Some(serial) = fate(number).serial() else {
            continue;
        };
        let references = |attribute: usize| -> Vec<String> {
            let written = stack.references[attribute].iter();
            let written = written.map(|written| stack.value(written));
            written.map(|it| absolute(&stack.directory, &it)).collect()
        };
        // What was not applied was recorded when it was about to be. An attempt after that changes nothing.
        let is_applied = serial > 1;
        let attempt = json!({
            "serial": if is_applied { DOCUMENT_SERIAL } else { serial },
            "action": "apply", "outcome": "failed", "at": "2026-01-01T00:00:00Z",
        });
        let applied = json!({ "serial": serial, "at": "2026-01-01T00:00:00Z", "dirty": false });
        stacks.insert(
            model.path(number).to_owned(),
            json!({
                "name": "it", "tags": stack.tags,
                "after": references(0), "before": references(1),
                "applied": is_applied.then_some(applied),
                "last": attempt,
            }),
        );
    }
    let document = json!({
        "format": 1, "project": "p", "namespace": "n", "root": "", "lineage": "l",
        "serial": DOCUMENT_SERIAL, "lock": null, "stacks": stacks, "history": [],
    });
    serde_json::from_value(document).unwrap()
}

/// The nodes that stand for a node: itself if it is a stack, else what belongs to it, which comes before it
/// or after it.
fn stacks_of(
    node: u32,
    n_stacks: usize,
    ties: &BTreeMap<u32, Vec<u32>>,
    seen: &mut BTreeSet<u32>,
) -> BTreeSet<u32> {
    if (node as usize) < n_stacks {
        return BTreeSet::from([node]);
    }
    let mut found = BTreeSet::new();
    if seen.insert(node) {
        for &next in ties.get(&node).into_iter().flatten() {
            found.extend(stacks_of(next, n_stacks, ties, seen));
        }
    }
    found
}

/// The pairs of stacks that a record means.
fn pairs(record: &NamedConstraints<'_>, name: impl Fn(u32) -> String) -> Pairs {
    let n_stacks = record.recorded.n_stacks;
    let mut before: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut after: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for edge in &record.recorded.edges {
        if edge.serial.is_none() {
            before.entry(edge.later).or_default().push(edge.earlier);
            after.entry(edge.earlier).or_default().push(edge.later);
        }
    }
    let mut pairs = Pairs::new();
    for &RecordedEdge {
        earlier,
        later,
        serial,
    } in &record.recorded.edges
    {
        // What belongs to a group is found from the other side.
        let is_group = |node: u32| node as usize >= n_stacks;
        if serial.is_none() && is_group(later) {
            continue;
        }
        for first in stacks_of(earlier, n_stacks, &before, &mut BTreeSet::new()) {
            for then in stacks_of(later, n_stacks, &after, &mut BTreeSet::new()) {
                pairs.insert((name(first), name(then), serial));
            }
        }
    }
    pairs
}

/// What the model says: constraints of which it is known who declares them, with a serial.
fn expected(model: &Model, serial: impl Fn(usize, &'static str) -> Option<Option<u64>>) -> Pairs {
    let constraints = model.constraints().into_iter();
    let known = constraints.filter_map(|it| {
        let path = |stack: usize| model.path(stack).to_owned();
        Some((path(it.from), path(it.to), serial(it.declared_by, it.kind)?))
    });
    known.collect()
}

/// Without what no document tells: directories whose names look like keys, and those whose stack has no
/// instances.
fn as_recorded(mut tree: Tree) -> Tree {
    let empty = tree.model().without_instances;
    tree.directories.retain(|it| {
        let directory = &it.stack.directory;
        !directory.contains('[') && !empty.contains(directory)
    });
    tree
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_recorded_counts_as_it_was_and_what_is_new_as_the_tree_says(
        tree in any_tree().prop_map(as_recorded),
        fates in prop::collection::vec(fate(), 16),
        whose in any::<Index>(),
        (destroyed, applied) in any::<(u64, u64)>(),
    ) {
        let all = tree.model();
        let fates: BTreeMap<String, Fate> = tree
            .directories
            .iter()
            .enumerate()
            .map(|(number, it)| (it.stack.directory.clone(), fates[(number + whose.index(16)) % 16]))
            .collect();
        let fate = |model: &Model, stack: usize| fates[model.directory(stack)];
        let mut now = tree.clone();
        now.directories.retain(|it| it.holds != Holds::Stack || !matches!(fates[&it.stack.directory], Fate::Gone(_)));
        let loaded = Loaded::new(&now);
        let document = document(&all, |stack| fate(&all, stack));
        let record = NamedConstraints::new(&loaded.project, &loaded.graph, Some(&document));

        let gone: Set = (0..all.stacks.len()).filter(|&it| matches!(fate(&all, it), Fate::Gone(_))).collect();
        let names: Vec<&str> = gone.iter().map(|&stack| all.path(stack)).collect();
        prop_assert_eq!(&record.removed, &names);
        prop_assert_eq!(record.recorded.n_stacks, all.stacks.len());

        let found = pairs(&record, |node| record.name(&loaded.project, node as usize));
        let mut wanted = expected(&all, |stack, kind| match kind {
            "nesting" => Some(None),
            _ => fate(&all, stack).serial().map(Some),
        });
        wanted.extend(expected(&loaded.model, |stack, kind| {
            let is_new = fate(&loaded.model, stack) == Fate::New;
            (is_new && kind != "nesting").then_some(Some(DOCUMENT_SERIAL + 1))
        }));
        prop_assert_eq!(found, wanted);

        // A plan looks only at what lies between the stacks that it works on, if it destroys one.
        let is_one = |of: u64, stack: usize| of >> (stack % 64) & 1 == 1;
        let work = |stack| StackWork { destroy: is_one(destroyed, stack), apply: is_one(applied, stack) };
        let works: Vec<StackWork> = (0..loaded.project.stacks.len()).map(work).collect();
        let of_gone = record.removed.iter().enumerate();
        let of_gone = of_gone.map(|(number, key)| (*key, is_one(destroyed, works.len() + number)));
        let of_gone: Vec<(&str, bool)> = of_gone.collect();
        let mut keys: BTreeSet<&str> =
            of_gone.iter().filter(|(_, is_destroyed)| *is_destroyed).map(|(key, _)| *key).collect();
        let planned_works = works.clone();
        let works: Vec<StackWork> = works
            .into_iter()
            .chain(of_gone.iter().map(|&(_, destroy)| StackWork { destroy, apply: false }))
            .collect();
        let in_tree = loaded.project.stacks.iter().map(|(_, stack)| stack.path.as_str());
        let paths: Vec<StackPath> =
            in_tree.chain(record.removed.iter().copied()).map(|it| StackPath::parse(it).unwrap()).collect();
        let lower = |stack: usize| paths.iter().filter(|other| **other < paths[stack]).count();
        let whole =
            OperationOrder::with_ties(&works, &Precedence::new(&loaded.graph), &record.recorded, &ReplacementOrder::default(), lower);
        keys.insert("/what/nobody/knows");
        let planned = PlannedOrder::of(&loaded.project, &loaded.graph, Some(&document), &planned_works, &keys);
        prop_assert_eq!(&planned.order.sequence, &whole.sequence);
        let operations = planned.operations(&loaded.project);
        prop_assert_eq!(operations.len(), whole.sequence.len());
        let name = |node: u32| record.name(&loaded.project, node as usize);
        for (told, operation) in operations.iter().zip(&whole.sequence) {
            let number = u32::try_from(operation.stack).expect("there are few");
            prop_assert_eq!(told.stack.as_str(), name(number));
            prop_assert_eq!(told.destroys, operation.operation == Operation::Destroy);
        }
        let mut relaxed = BTreeSet::new();
        let mut of_rules = BTreeSet::new();
        for left_out in &whole.relaxed {
            match *left_out {
                RelaxedEdge::Recorded(edge) => {
                    relaxed.insert((RelaxedEffect::Contradicted, name(edge.earlier), name(edge.later)));
                }
                RelaxedEdge::Rule { rule, user, used } => {
                    let effect = match rule {
                        4 => RelaxedEffect::DestroyedFirst,
                        _ => RelaxedEffect::ChangedFirst,
                    };
                    of_rules.insert((effect, name(used), name(user)));
                }
            }
        }
        let told = planned.relaxed.iter();
        let told: Vec<_> = told.map(|it| (it.effect, it.earlier.clone(), it.later.clone())).collect();
        prop_assert!(told.is_sorted(), "the worst comes first");
        let (of_record, told): (BTreeSet<_>, BTreeSet<_>) =
            told.into_iter().partition(|it| it.0 == RelaxedEffect::Contradicted);
        prop_assert_eq!(told, of_rules);
        prop_assert!(of_record.is_subset(&relaxed), "{:?}", of_record);
    }
}
