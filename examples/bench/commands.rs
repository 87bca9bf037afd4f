//! The commands that need no git, on whole repositories and on hard graphs.
#![expect(clippy::print_stdout, reason = "that is its result")]

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::measure::Job;
use crate::options;
use crate::programs::Programs;
use crate::repository::{Options, Shape, generate};
use crate::table::{self, Row, Step, print_growth, print_growth_header};

/// Up to this size something is run in each stack, and Terramate does not take too long.
const SMALL: usize = 1000;

/// Where these lines are in every table.
const FLOOR: usize = 1;
const LIST: usize = 2;
const LIST_ORDER: usize = 3;

/// The sizes between which times are compared.
const GROWTH: [usize; 2] = [10_000, 100_000];

/// Measures all commands on repositories as they could be, of these sizes.
pub(crate) fn trees(programs: &Programs, sizes: &[usize]) -> Result<()> {
    let mut grown = Vec::new();
    for &size in sizes {
        let measured = tree(programs, size)?;
        if GROWTH.contains(&size) {
            grown.push(measured);
        }
    }
    if let [(rows, small), (_, large)] = &*grown {
        print_growth_header("10,000", "100,000", 12);
        for ((row, small), large) in rows.iter().zip(small).zip(large) {
            print_growth(&row.name, small.time, large.time);
        }
        println!();
    }
    Ok(())
}

fn tree(programs: &Programs, stacks: usize) -> Result<(Vec<Row>, Vec<table::Figures>)> {
    let directory = tempfile::tempdir()?;
    let root = &directory.path().join("repository");
    let stack_directories = generate(root, &options(Shape::Tree, stacks))?;
    println!("{stacks} stacks");
    let mut rows = reading(programs, root, "");
    rows[LIST].wanted = Some(2.0);
    rows[LIST_ORDER].wanted = Some(2.5);
    let named = directory.path().join("named");
    fs::write(&named, stack_directories.join("\n"))?;
    let flags = every_flag(programs, root, &named);
    rows.push(
        Row::job("list, all flags but git's", flags)
            .floors([LIST])
            .wanted(1.2),
    );
    let is_small = stacks <= SMALL;
    if is_small && programs.has_terramate {
        for arguments in ["list", "list --run-order"] {
            let job = Job::new("terramate", root).args(arguments.split(' '));
            rows.push(Row::job(format!("terramate {arguments}"), job).floors([FLOOR]));
        }
    }
    if is_small {
        let list = directory.path().join("list");
        let mut text = String::new();
        for stack in &stack_directories {
            text += &format!("{}\n", root.join(stack).display());
        }
        fs::write(&list, text)?;
        let floor = rows.len();
        rows.push(Row::job(
            "floor of run: a bare loop",
            programs.floor(root, "--spawn-floor", &list),
        ));
        let run = Row::job("run -- true", programs.orch(root, "run -- true"));
        rows.push(run.floors([floor]).wanted(1.3));
    }
    let rounds = match stacks {
        ..=1000 => 11,
        1001..=10_000 => 7,
        _ => 3,
    };
    let figures = table::measure(&rows, rounds)?;
    table::print(&rows, &figures);
    Ok((rows, figures))
}

/// Returns a list of all stacks for which every part of the selector that needs no git has work to do.
fn every_flag(programs: &Programs, root: &Path, named: &Path) -> Job {
    let flags = "list --why --match ** --exclude nowhere/** --no-tags nobody \
                 --only-dependents --include-dependencies --include-dependents --stacks-from";
    programs.orch(root, flags).args([named])
}

/// Measures the reading commands on graphs that are hard for some algorithms.
pub(crate) fn graphs(programs: &Programs) -> Result<()> {
    let graphs = [
        ("chain of 10,000", Shape::Chain, 10_000, ""),
        (
            "5,000 after a directory of 5,000",
            Shape::Bipartite,
            5000,
            "",
        ),
        ("300 in layers of 20", Shape::Layers, 300, " --no-tags skip"),
    ];
    for (name, shape, stacks, selection) in graphs {
        let directory = tempfile::tempdir()?;
        let root = &directory.path().join("repository");
        let options = Options {
            files: 0,
            modules: 0,
            ..options(shape, stacks)
        };
        generate(root, &options)?;
        println!("{name}{selection}");
        let rows = reading(programs, root, selection);
        table::print(&rows, &table::measure(&rows, 5)?);
    }
    Ok(())
}

/// Commands that may take no longer than their result grows.
const GROWING: [&str; 11] = [
    "list",
    "list --order --why",
    "list --format json",
    "list --changed --base HEAD",
    "list --tags all",
    "graph",
    "graph --data",
    "graph suggest",
    "validate",
    "run --dry-run -- true",
    "export make --work-order ../order.json -- true",
];

/// Compares the reading commands on graphs of two sizes.
pub(crate) fn growth(programs: &Programs) -> Result<()> {
    let shapes = [
        ("flat", Shape::Flat),
        ("tree", Shape::Tree),
        ("chain", Shape::Chain),
        ("layers", Shape::Layers),
        ("one tag", Shape::Tagged),
    ];
    print_growth_header("5,000", "10,000", 3);
    for (name, shape) in shapes {
        let directory = tempfile::tempdir()?;
        let mut measured = Vec::new();
        for stacks in [5000, 10_000] {
            let root = &directory.path().join(stacks.to_string());
            let options = Options {
                files: 0,
                modules: 0,
                commits: 1,
                ..options(shape, stacks)
            };
            generate(root, &options)?;
            let rows = GROWING.map(|command| Row::job(command, programs.orch(root, command)));
            measured.push(table::measure(&rows, 3)?);
        }
        let [small, large] = &*measured else {
            continue;
        };
        for (command, (small, large)) in GROWING.iter().zip(small.iter().zip(large)) {
            print_growth(&format!("{name}: {command}"), small.time, large.time);
        }
    }
    println!();
    Ok(())
}

/// Returns the lines of the commands that only read, after those of their floor.
fn reading(programs: &Programs, root: &Path, selection: &str) -> Vec<Row> {
    let walk = Step::Walk(root.to_owned());
    let floor = programs.floor(root, "--floor", root);
    let mut rows = vec![
        Row::new("the same walk, no process", walk),
        Row::job("floor: walk and read", floor),
    ];
    for command in ["list", "list --order", "graph"] {
        let job = programs.orch(root, &format!("{command}{selection}"));
        rows.push(Row::job(command, job).floors([FLOOR]));
    }
    rows
}
