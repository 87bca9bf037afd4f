//! Pipelines: how long their jobs would take on several runners, by simulation.
#![expect(clippy::print_stdout, reason = "that is its result")]

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use orch::export::{Engine, JobGraph, TurnToPack};
use orch::project::{Problems, Project};
use orch::selection::graph::{Graph, Precedence};
use orch::selection::reference::References;

use crate::options;
use crate::repository::{Options, Shape, generate};

const N_STACKS: usize = 3000;
const N_RUNNERS: usize = 20;

const ENGINES: [(Engine, &str); 3] = [
    (Engine::Gitlab, "GitLab"),
    (Engine::Github, "GitHub"),
    (Engine::Buildkite, "Buildkite"),
];

/// Simulates pipelines with the durations of a journal, or made-up ones: half of all stacks take less than 40 s, and
/// few take many minutes.
pub(crate) fn tables(journal: Option<&Path>) -> Result<()> {
    let known = match journal {
        Some(journal) => recorded(journal)?,
        None => made_up(),
    };
    println!(
        "the jobs of {N_STACKS} stacks on {N_RUNNERS} runners, in minutes (wanted: 1.3 times the larger of two bounds: all work spread over the runners, and the longest chain)"
    );
    println!(
        "{:<26}{:>8}{:>8}{:>11}{:>8}",
        "", "bound", "jobs", "simulated", "times"
    );
    for (name, shape, references) in [
        ("nested", Shape::Tree, 0),
        ("tree", Shape::Tree, 2),
        ("flat", Shape::Flat, 0),
        ("one tag on all", Shape::Tagged, 0),
    ] {
        let edges = edges(shape, references)?;
        let durations: Vec<Duration> = known.iter().copied().cycle().take(N_STACKS).collect();
        let turns = durations
            .iter()
            .enumerate()
            .map(|(number, &duration)| TurnToPack {
                key: format!("/s{number}"),
                milliseconds: u64::try_from(duration.as_millis()).ok(),
            });
        let turns: Vec<TurnToPack> = turns.collect();
        let runners = NonZeroUsize::new(N_RUNNERS).context("there are runners")?;
        let graphs = ENGINES.map(|(engine, by)| {
            let graph = JobGraph::new(engine, &turns, &edges, runners, NonZeroUsize::MIN, 0);
            (by, graph)
        });
        // A job starts alike on all of them.
        let start = ENGINES[0].0.start();
        let bound = graphs[0].1.with_workers.saturating_sub(start);
        let row = |by: &str, n_jobs: usize, simulated: Duration| {
            println!(
                "{:<26}{:>8.1}{:>8}{:>11.1}{:>8.2}",
                format!("{name}, {by}"),
                minutes(bound),
                n_jobs,
                minutes(simulated),
                minutes(simulated) / minutes(bound),
            );
        };
        for (by, graph) in &graphs {
            let needs: Vec<_> = graph.jobs.iter().map(|job| job.needs.clone()).collect();
            let takes = graph.jobs.iter().map(|job| {
                let stacks = job.turns.iter().map(|&turn| durations[turn]);
                stacks
                    .reduce(|a, b| a + b)
                    .map_or(Duration::ZERO, |stacks| start + stacks)
            });
            let takes: Vec<Duration> = takes.collect();
            row(by, graph.jobs.len(), simulate(&needs, &takes));
        }
        // They start once, and then take the next stack that may run.
        let ends = edges.iter().map(|edge| edge.0.max(edge.1) + 1);
        let mut takes = durations.clone();
        takes.resize(ends.max().unwrap_or(0).max(N_STACKS), Duration::ZERO);
        let mut needs = vec![Vec::new(); takes.len()];
        for &(earlier, later) in &edges {
            needs[later].push(earlier);
        }
        row("`orch work`", N_RUNNERS, start + simulate(&needs, &takes));
    }
    Ok(())
}

fn minutes(duration: Duration) -> f64 {
    duration.as_secs_f64() / 60.0
}

/// Returns the durations of the stacks that have succeeded in a run.
fn recorded(journal: &Path) -> Result<Vec<Duration>> {
    let text = fs::read_to_string(journal)
        .with_context(|| format!("failed to read `{}`", journal.display()))?;
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let durations = lines.filter_map(|line: serde_json::Value| {
        let is_wanted = line["event"] == "ended" && line["outcome"] == "succeeded";
        let elapsed = line["elapsed_ms"].as_u64().filter(|_| is_wanted);
        elapsed.map(Duration::from_millis)
    });
    let durations: Vec<Duration> = durations.collect();
    ensure!(!durations.is_empty(), "no stack has succeeded in this run");
    Ok(durations)
}

/// Returns skewed durations: each is the product of eight random factors.
fn made_up() -> Vec<Duration> {
    let mut state = 1_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 33
    };
    let mut duration = || (0..8).fold(40_000, |product, _| product * (60 + random() % 90) / 100);
    (0..N_STACKS)
        .map(|_| Duration::from_millis(duration()))
        .collect()
}

/// Returns the constraints between the stacks of a generated repository, and of the groups between them.
fn edges(shape: Shape, references: usize) -> Result<Vec<(usize, usize)>> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().join("repository");
    let options = Options {
        files: 0,
        modules: 0,
        references,
        ..options(shape, N_STACKS)
    };
    generate(&root, &options)?;
    let mut problems = Problems::default();
    let project = Project::load(&root.canonicalize()?, &mut problems)?;
    let references = References::resolve(&project, &mut problems.diagnostics);
    ensure!(!problems.has_errors(), "the repository is wrong");
    ensure!(project.stacks.len() == N_STACKS, "some stacks are missing");
    let precedence = Precedence::new(&Graph::new(&project.stacks, &references));
    let nodes = 0..precedence.n_nodes();
    let edges = nodes.flat_map(|node| {
        let after = precedence.successors(node).iter();
        after.map(move |after| (node, after.node as usize))
    });
    Ok(edges.collect())
}

/// Returns when the last job ends, if a free runner takes the first job in the pipeline that may start. Jobs that take
/// no time need no runner.
fn simulate(needs: &[Vec<usize>], takes: &[Duration]) -> Duration {
    let mut n_needs: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (job, before) in needs.iter().enumerate() {
        for &before in before {
            after[before].push(job);
        }
    }
    let mut ready: BTreeSet<usize> = (0..needs.len()).filter(|&job| n_needs[job] == 0).collect();
    let mut running: BinaryHeap<Reverse<(Duration, usize)>> = BinaryHeap::new();
    let mut n_free = N_RUNNERS;
    let mut now = Duration::ZERO;
    loop {
        let mut next = ready.iter().copied();
        if let Some(job) = next.find(|&job| n_free > 0 || takes[job].is_zero()) {
            ready.remove(&job);
            n_free -= usize::from(!takes[job].is_zero());
            running.push(Reverse((now + takes[job], job)));
            continue;
        }
        let Some(Reverse((end, job))) = running.pop() else {
            return now;
        };
        now = end;
        n_free += usize::from(!takes[job].is_zero());
        for &later in &after[job] {
            n_needs[later] -= 1;
            if n_needs[later] == 0 {
                ready.insert(later);
            }
        }
    }
}
