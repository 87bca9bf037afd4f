//! Plans: how long it takes to order operations, and to find what entries are decided after.
#![expect(clippy::print_stdout, reason = "that is its result")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use orch::change::relocate;
use orch::plan::entry::PlannedAction;
use orch::plan::order::NamedConstraints;
use orch::plan::{DestroyOutcome, PlannedOrder, conditions, left_behind};
use orch::project::stack::StackIndex;
use orch::project::{Problems, Project};
use orch::selection::graph::Graph;
use orch::selection::reference::References;
use orch::state::document::Document;
use serde_json::{Map, Value, json};

use crate::measure::medians;
use crate::options;
use crate::repository::{Options, Shape, generate};

const ROUNDS: usize = 5;

/// How many stacks are on record and gone from the tree.
const N_GONE: usize = 1000;

/// Measures plans, without any process.
pub(crate) fn tables() -> Result<()> {
    println!("{N_MOVED} `moved` blocks in one chain, {N_MOVED} stacks on record");
    moves()?;
    println!();
    for (name, shape, size) in [
        ("tree of 10,000", Shape::Tree, 10_000),
        ("chain of 10,000", Shape::Chain, 10_000),
        ("5,000 after a directory of 5,000", Shape::Bipartite, 5000),
    ] {
        let directory = tempfile::tempdir()?;
        let root = directory.path().join("repository");
        let options = Options {
            files: 0,
            modules: 0,
            ..options(shape, size)
        };
        generate(&root, &options)?;
        let project = Project::load(&root.canonicalize()?, &mut Problems::default())?;
        println!("{name}");
        table(&project)?;
        println!();
    }
    Ok(())
}

/// How many stacks are moved, and by how many blocks.
const N_MOVED: usize = 10_000;

/// Measures what is on record following a long chain of blocks.
fn moves() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().canonicalize()?;
    let block = |at: usize| {
        let next = at + 1;
        format!("moved {{\n  from = \"/s{at}\"\n  to   = \"/s{next}\"\n}}\n")
    };
    let blocks: String = (0..N_MOVED).map(block).collect();
    std::fs::write(root.join("root.orch.hcl"), "orch { root = true }\n")?;
    std::fs::write(root.join("moves.orch.hcl"), blocks)?;
    for number in 0..N_MOVED {
        let stack = root.join(format!("s{N_MOVED}/x{number}"));
        std::fs::create_dir_all(&stack)?;
        std::fs::write(stack.join("stack.orch.hcl"), "stack {\n}\n")?;
    }
    let mut problems = Problems::default();
    let project = Project::load(&root, &mut problems)?;
    ensure!(!problems.has_errors(), "the blocks are wrong");
    for (name, below) in [("from the first place", 0), ("from everywhere", 1)] {
        let stacks = (0..N_MOVED).map(|number| {
            let after = format!("/s{}/x{number}", below * number);
            (after.clone(), json!({ "after": [after, "/s0"] }))
        });
        let document: Document = serde_json::from_value(json!({
            "format": 1, "project": "p", "namespace": "n", "root": "", "lineage": "l",
            "serial": 1, "lock": null, "stacks": stacks.collect::<Map<String, Value>>(),
        }))?;
        print(&format!("{name}, wanted 100 ms"), &|| {
            let mut document = document.clone();
            ensure!(
                relocate(&project, &mut document).is_ok(),
                "a block is refused"
            );
            ensure!(document.renamed().count() == N_MOVED, "not all have moved");
            Ok(())
        })?;
    }
    print(
        "the blocks alone, read and checked with the project",
        &|| {
            Project::load(&root, &mut Problems::default())?;
            Ok(())
        },
    )
}

fn table(project: &Project) -> Result<()> {
    let references = References::resolve(project, &mut Vec::new());
    let graph = &Graph::new(&project.stacks, &references);
    let stacks: &Vec<StackIndex> = &project.stacks.iter().map(|(stack, _)| stack).collect();
    let document = &recorded(project, 0)?;
    let with_gone = &recorded(project, N_GONE)?;
    let removals = (0..N_GONE).map(|number| (gone(number), PlannedAction::Delete));
    let removals = &removals.collect();
    let order = |action: PlannedAction,
                 count: usize,
                 document: Option<&Document>,
                 removals: &BTreeMap<String, PlannedAction>| {
        let actions = stacks.iter().take(count).map(|&stack| (stack, action));
        let planned = PlannedOrder::new(project, graph, document, actions, removals);
        let each = if action == PlannedAction::Replace {
            2
        } else {
            1
        };
        ensure!(
            planned.order.sequence.len() == each * count + removals.len(),
            "not all have an operation"
        );
        Ok(())
    };
    let none = &BTreeMap::new();
    let all = stacks.len();
    let (updates, half) = (10_000.min(all), 5000.min(all));
    print("updates in order, wanted 100 ms", &|| {
        order(PlannedAction::Update, updates, None, none)
    })?;
    print("replacements in order, wanted 100 ms", &|| {
        order(PlannedAction::Replace, half, None, none)
    })?;
    print("the same along the record", &|| {
        order(PlannedAction::Replace, half, Some(document), none)
    })?;
    print("removals alone", &|| {
        order(PlannedAction::Update, 0, Some(with_gone), removals)
    })?;
    let rest = updates.saturating_sub(N_GONE);
    print("removals and updates in order, wanted 100 ms", &|| {
        order(PlannedAction::Update, rest, Some(with_gone), removals)
    })?;
    let rest = half.saturating_sub(N_GONE / 2);
    print("removals and replacements in order, wanted 100 ms", &|| {
        order(PlannedAction::Replace, rest, Some(with_gone), removals)
    })?;
    print("what stays after the first stack", &|| {
        let record = NamedConstraints::new(project, graph, Some(document));
        let fate = |stack: StackIndex| match stack.get() {
            0 => DestroyOutcome::Destroyed,
            _ => DestroyOutcome::Kept,
        };
        left_behind(project, graph, &record, fate, |_| DestroyOutcome::Kept);
        Ok(())
    })?;
    let first = &BTreeSet::from([stacks[0]]);
    let is_first = |stack: &StackIndex| project.stacks[*stack].after.is_empty();
    let starts = &stacks.iter().copied().filter(is_first).collect();
    print("conditions, one stack with work", &|| {
        conditions(project, graph, stacks, first);
        Ok(())
    })?;
    print("conditions, work where nothing is waited for", &|| {
        conditions(project, graph, stacks, starts);
        Ok(())
    })
}

fn print(name: &str, step: &dyn Fn() -> Result<()>) -> Result<()> {
    let time: Duration = medians(&[step], ROUNDS)?[0];
    println!("  {name}: {:.1} ms", time.as_secs_f64() * 1000.0);
    Ok(())
}

/// Returns the path of a stack that is gone.
fn gone(number: usize) -> String {
    format!("/gone/{number}")
}

/// Returns a document of all stacks, as if each had been applied after the ones before it, and of stacks that
/// are gone from the tree: one before each of as many stacks, which ran right after what these run after.
fn recorded(project: &Project, n_gone: usize) -> Result<Document> {
    let mut stacks = Map::new();
    let interval = project.stacks.len().checked_div(n_gone);
    for (number, (_, stack)) in project.stacks.iter().enumerate() {
        let directory = stack.path.directory();
        let resolved = stack.after.iter().map(|after| {
            let path = directory.resolve(&after.value).ok();
            let path = path.filter(|_| !after.value.starts_with("tag:"));
            path.map_or_else(|| after.value.clone(), |path| path.to_string())
        });
        let mut after: Vec<String> = resolved.collect();
        let applied = json!({
            "serial": number + 1, "at": "2026-01-01T00:00:00Z", "dirty": false,
        });
        if interval.is_some_and(|interval| number % interval == 0 && number / interval < n_gone) {
            let gone = gone(stacks.len() - number);
            stacks.insert(gone.clone(), json!({ "after": after, "applied": applied }));
            after.push(gone);
        }
        let tags: Vec<&str> = stack.tags().collect();
        let entry = json!({ "tags": tags, "after": after, "applied": applied });
        stacks.insert(stack.path.to_string(), entry);
    }
    let document = json!({
        "format": 1, "project": "p", "namespace": "n", "root": "", "lineage": "l",
        "serial": project.stacks.len(), "lock": null, "stacks": Value::Object(stacks), "history": [],
    });
    Ok(serde_json::from_value(document)?)
}
