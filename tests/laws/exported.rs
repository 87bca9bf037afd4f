//! The jobs of an exported pipeline, against a closure of all constraints between turns.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use orch::export::{
    Engine, JobGraph, LimitKind, Pipeline, PipelineJob, PipelineJobs, Shape, Template, TurnToPack,
};
use proptest::prelude::*;
use proptest::sample::select;
use yaml_serde::Value;

use crate::model::Relation;

const ENGINES: [Engine; 4] = [
    Engine::Gitlab,
    Engine::Github,
    Engine::Buildkite,
    Engine::Make,
];

#[derive(Debug, Clone)]
struct Case {
    turns: Vec<TurnToPack>,
    /// Of an earlier and a later node: the turns, then nodes in between.
    edges: Vec<(usize, usize)>,
    n_nodes: usize,
    at_once: NonZeroUsize,
    parallel: NonZeroUsize,
    engine: Engine,
}

impl Case {
    fn graph(&self) -> JobGraph {
        JobGraph::new(
            self.engine,
            &self.turns,
            &self.edges,
            self.at_once,
            self.parallel,
            0,
        )
    }
}

/// A turn with a path that nobody expects.
fn turn(number: usize, milliseconds: Option<u64>) -> TurnToPack {
    let names = [
        "/prod/net",
        "/$(id)",
        "/a b\n'\"`",
        "/${{ x }}",
        "/9",
        "/ü/ö",
        "/",
    ];
    TurnToPack {
        key: format!("{}{number}", names[number % names.len()]),
        milliseconds,
    }
}

fn case() -> impl Strategy<Value = Case> {
    let durations = prop::collection::vec(prop::option::of(0_u64..100_000), 0..40);
    let edges = prop::collection::vec(
        (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        0..90,
    );
    (
        durations,
        0_usize..6,
        edges,
        1_usize..12,
        select(&ENGINES[..]),
    )
        .prop_map(|(durations, n_between, edges, at_once, engine)| {
            let n_nodes = durations.len() + n_between;
            let turns = durations.into_iter().enumerate();
            let turns: Vec<TurnToPack> = turns.map(|(number, known)| turn(number, known)).collect();
            // Any sequence of all nodes has the turns in the sequence of their numbers.
            let place =
                |node: usize| (node * 7919 % n_nodes.max(1)) * usize::from(node >= turns.len());
            let rank = |node: usize| {
                if node < turns.len() {
                    (node * 2, 0)
                } else {
                    (place(node) * 2 + 1, node)
                }
            };
            let edges = edges
                .into_iter()
                .filter(|_| n_nodes > 0)
                .filter_map(|(a, b)| {
                    let (a, b) = (a.index(n_nodes), b.index(n_nodes));
                    match rank(a).cmp(&rank(b)) {
                        std::cmp::Ordering::Less => Some((a, b)),
                        std::cmp::Ordering::Equal => None,
                        std::cmp::Ordering::Greater => Some((b, a)),
                    }
                });
            Case {
                edges: edges.collect(),
                turns,
                n_nodes,
                at_once: NonZeroUsize::new(at_once).unwrap(),
                parallel: NonZeroUsize::new(1 + at_once % 3).unwrap(),
                engine,
            }
        })
}

fn closure(n_nodes: usize, edges: impl Iterator<Item = (usize, usize)>) -> Relation {
    let mut reaches = vec![vec![false; n_nodes]; n_nodes];
    for (from, to) in edges {
        reaches[from][to] = true;
    }
    for middle in 0..n_nodes {
        for from in 0..n_nodes {
            for to in 0..n_nodes {
                reaches[from][to] |= reaches[from][middle] && reaches[middle][to];
            }
        }
    }
    reaches
}

fn needs(jobs: &[PipelineJob]) -> impl Iterator<Item = (usize, usize)> {
    let all = jobs.iter().enumerate();
    all.flat_map(|(number, job)| job.needs.iter().map(move |&need| (need, number)))
}

/// Returns how many of these are pairwise unrelated, at most: as many as there are chains that cover
/// them, at least.
fn width(reaches: &Relation, of: &[usize]) -> usize {
    fn find(
        from: usize,
        reaches: &Relation,
        of: &[usize],
        seen: &mut [bool],
        taken: &mut [Option<usize>],
    ) -> bool {
        for to in 0..of.len() {
            if !reaches[of[from]][of[to]] || std::mem::replace(&mut seen[to], true) {
                continue;
            }
            if taken[to].is_none_or(|other| find(other, reaches, of, seen, taken)) {
                taken[to] = Some(from);
                return true;
            }
        }
        false
    }
    let mut taken = vec![None; of.len()];
    let joined = (0..of.len()).filter(|&from| {
        let mut seen = vec![false; of.len()];
        find(from, reaches, of, &mut seen, &mut taken)
    });
    of.len() - joined.count()
}

/// Returns why a graph breaks a law of all engines, if it does.
fn broken(case: &Case, graph: &JobGraph) -> Result<(), String> {
    let most = |kind| {
        case.engine
            .limit(kind)
            .map_or(usize::MAX, |limit| limit.most)
    };
    let ids: BTreeSet<&str> = graph.jobs.iter().map(|job| &*job.id).collect();
    if ids.len() != graph.jobs.len() || ids.contains("finish") {
        return Err("names are not unique".to_owned());
    }
    for id in ids {
        let is_safe = id.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
        if !is_safe || !id.starts_with(|c: char| c.is_ascii_lowercase()) || id.len() > 60 {
            return Err(format!("`{id}` is no safe name"));
        }
    }
    let mut turns: Vec<usize> = graph
        .jobs
        .iter()
        .flat_map(|job| job.turns.clone())
        .collect();
    turns.sort_unstable();
    if turns != (0..case.turns.len()).collect::<Vec<_>>() {
        return Err(format!("not each turn has one job: {turns:?}"));
    }
    for (number, job) in graph.jobs.iter().enumerate() {
        if !job.turns.is_sorted() || job.needs.iter().any(|need| *need >= number) {
            return Err(format!("{job:?} is out of order"));
        }
        if job.needs.len() > most(LimitKind::Needs) {
            return Err(format!("{job:?} needs too many"));
        }
    }
    if graph.last.len() > most(LimitKind::Needs) {
        return Err("the last job needs too many".to_owned());
    }
    if graph.jobs.len() >= most(LimitKind::Jobs) || graph.n_edges() > most(LimitKind::Edges) {
        return Err("too many jobs or dependencies".to_owned());
    }
    Ok(())
}

fn job_of(case: &Case, graph: &JobGraph) -> Vec<usize> {
    let mut job_of = vec![0; case.turns.len()];
    for (number, job) in graph.jobs.iter().enumerate() {
        for &turn in &job.turns {
            job_of[turn] = number;
        }
    }
    job_of
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn export_keeps_the_order_of_every_two_stacks(case in case()) {
        let graph = case.graph();
        prop_assert_eq!(broken(&case, &graph), Ok(()));
        let before = closure(case.n_nodes, case.edges.iter().copied());
        let jobs = closure(graph.jobs.len(), needs(&graph.jobs));
        let job_of = job_of(&case, &graph);
        for earlier in 0..case.turns.len() {
            for later in (0..case.turns.len()).filter(|&later| before[earlier][later]) {
                let (from, to) = (job_of[earlier], job_of[later]);
                prop_assert!(from == to && earlier < later || jobs[from][to], "{} before {}", earlier, later);
            }
        }
        // The last job waits for all, and nothing waits twice.
        for job in 0..graph.jobs.len() {
            prop_assert!(graph.last.iter().any(|&last| last == job || jobs[job][last]), "{}", job);
            for &need in &graph.jobs[job].needs {
                let mut others = graph.jobs[job].needs.iter();
                prop_assert!(!others.any(|&other| jobs[need][other]), "{} through another", need);
            }
        }
    }

    #[test]
    fn export_runs_no_more_jobs_at_once_than_requested(case in case()) {
        let graph = case.graph();
        let jobs = closure(graph.jobs.len(), needs(&graph.jobs));
        let working: Vec<usize> = (0..graph.jobs.len()).filter(|&job| !graph.jobs[job].turns.is_empty()).collect();
        prop_assert!(width(&jobs, &working) <= case.at_once.get());
        prop_assert!(graph.at_once <= case.at_once);
    }

    #[test]
    fn export_is_the_same_for_the_same_run(case in case()) {
        let graph = case.graph();
        prop_assert_eq!(&graph, &case.graph());
        // The sequence in which constraints are declared does not matter.
        let mut other = case.clone();
        other.edges.reverse();
        other.edges.extend(case.edges.clone());
        prop_assert_eq!(&graph, &other.graph());
    }

    #[test]
    fn export_writes_the_dependencies_of_the_jobs_and_nothing_of_the_stacks(case in case(), stops: bool) {
        let graph = case.graph();
        let template = match case.engine {
            Engine::Github => Template::parse(Engine::Github, "runs-on: r").unwrap(),
            _ => Template::default(),
        };
        let shape = Shape {
            engine: case.engine,
            jobs: PipelineJobs::Graph(&graph),
            order: "a/order.json",
            directory: None,
            stops,
            results: stops.then_some("a/.orch/state"),
            template: &template,
        };
        let pipeline = Pipeline::new(&shape).unwrap();
        let text = pipeline.files.concat();
        prop_assert!(text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
        for special in ["$(id)", "${{ x", "ü"] {
            prop_assert!(!text.contains(special), "{}", text);
        }
        let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let id = |job: &usize| graph.jobs[*job].id.clone();
        for job in &graph.jobs {
            expected.insert(job.id.clone(), job.needs.iter().map(id).collect());
        }
        expected.insert("finish".to_owned(), graph.last.iter().map(id).collect());
        prop_assert_eq!(written(case.engine, &pipeline), expected);
    }
}

/// Reads the jobs of a pipeline, and which others each waits for.
fn written(engine: Engine, pipeline: &Pipeline) -> BTreeMap<String, Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: Option<&Value>| {
        value
            .and_then(Value::as_sequence)
            .cloned()
            .unwrap_or_default()
    };
    let mut documents = pipeline
        .files
        .iter()
        .map(|file| yaml_serde::from_str::<Value>(file));
    match engine {
        Engine::Make => {
            let lines = pipeline.files[0].lines();
            let rules = lines.filter(|line| !line.starts_with(['\t', '.', '#']));
            let rules = rules.filter_map(|line| {
                line.split_once(':')
                    .filter(|(_, rest)| !rest.starts_with('='))
            });
            let names = |rest: &str| rest.split_whitespace().map(str::to_owned).collect();
            rules
                .map(|(id, rest)| (id.to_owned(), names(rest)))
                .collect()
        }
        Engine::Buildkite => documents
            .flat_map(|document| list(document.unwrap().get("steps")))
            .map(|step| {
                let needs = list(step.get("depends_on"));
                let needs = needs.iter().map(|need| text(&need["step"]));
                (text(&step["key"]), needs.collect())
            })
            .collect(),
        Engine::Gitlab | Engine::Github => {
            let document = documents.next_back().unwrap().unwrap();
            let jobs = document
                .get("jobs")
                .unwrap_or(&document)
                .as_mapping()
                .unwrap();
            let jobs = jobs
                .iter()
                .filter(|(id, _)| !["stages", ".orch"].contains(&id.as_str().unwrap()));
            let need = |need: &Value| text(need.get("job").unwrap_or(need));
            jobs.map(|(id, job)| (text(id), list(job.get("needs")).iter().map(need).collect()))
                .collect()
        }
    }
}

/// Thousands of stacks, each after a few earlier ones.
fn large(engine: Engine, n_turns: usize, at_once: usize) -> Case {
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(random >> 33).unwrap() % below
    };
    let turns = (0..n_turns).map(|number| turn(number, Some(next(60_000) as u64)));
    let turns = turns.collect();
    let edges = (1..n_turns).flat_map(|later| {
        let count = next(4);
        (0..count)
            .map(|_| (later.saturating_sub(1 + next(400)), later))
            .collect::<Vec<_>>()
    });
    Case {
        turns,
        edges: edges.collect(),
        n_nodes: n_turns,
        at_once: NonZeroUsize::new(at_once).unwrap(),
        parallel: NonZeroUsize::new(1 + at_once % 3).unwrap(),
        engine,
    }
}

#[test]
fn export_keeps_the_limits_of_each_engine_for_thousands_of_stacks() {
    for engine in ENGINES {
        for at_once in [1, 20, 200] {
            let case = large(engine, 3_000, at_once);
            let graph = case.graph();
            assert_eq!(broken(&case, &graph), Ok(()), "{engine} {at_once}");
            let job_of = job_of(&case, &graph);
            let jobs = closure(
                graph.jobs.len().min(200),
                needs(&graph.jobs).filter(|edge| edge.1 < 200),
            );
            for &(earlier, later) in &case.edges {
                let (from, to) = (job_of[earlier], job_of[later]);
                assert!(
                    from == to || to >= 200 || jobs[from][to],
                    "{earlier} before {later}"
                );
            }
            let text = format!("{} jobs", graph.jobs.len());
            assert!(
                graph.at_once.get() >= at_once.min(4),
                "{engine}: {text}, {}",
                graph.at_once
            );
        }
    }
}

/// Ten layers of ten stacks of a minute: each layer of jobs starts anew, and workers start once.
#[test]
fn export_estimates_its_jobs_and_workers() {
    let turns: Vec<TurnToPack> = (0..100).map(|it| turn(it, Some(60_000))).collect();
    let layers = (0..90).flat_map(|from| {
        let next = (from / 10 + 1) * 10;
        (next..next + 10).map(move |to| (from, to))
    });
    let edges: Vec<(usize, usize)> = layers.collect();
    let ten = NonZeroUsize::new(10).unwrap();
    let graph = JobGraph::new(Engine::Github, &turns, &edges, ten, NonZeroUsize::MIN, 0);
    assert_eq!(graph.takes.as_secs(), 10 * (45 + 60));
    assert_eq!(graph.with_workers.as_secs(), 45 + 10 * 60);
}
