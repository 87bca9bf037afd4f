//! The jobs of a pipeline: what each runs, and which it waits for.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::dag::Dag;
use super::job_name::JobNames;
use super::lanes::{JobCost, Lanes};
use super::limits::{Engine, LimitKind};

/// A turn of a run.
#[derive(Debug, Clone)]
pub struct TurnToPack {
    /// A text that no other turn has: the path of its stack, and its operation if there are several.
    pub key: String,
    /// How long it takes, if known.
    pub milliseconds: Option<u64>,
}

/// A job. Without turns, it only makes others wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineJob {
    /// A text of letters, digits and `-`.
    pub id: String,
    /// Its turns by number, in the sequence of a serial run.
    pub turns: Vec<usize>,
    /// The jobs before which it does not start, by position.
    pub needs: Vec<usize>,
}

/// The jobs of a run, each after those that it waits for. If one turn comes before another, both are in
/// one job, or the job of the later one waits for that of the earlier one, maybe through others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobGraph {
    pub jobs: Vec<PipelineJob>,
    /// The jobs that the last job of the pipeline waits for, by position.
    pub last: Vec<usize>,
    /// How many jobs run at once, at most: fewer than requested if the engine would not accept so many.
    pub at_once: NonZeroUsize,
    /// How long all jobs take, roughly, by the durations that are known.
    pub takes: Duration,
    /// How long as many workers would take at least, which start once and then run any stack that may run.
    pub with_workers: Duration,
}

/// How many jobs a lane may get: with fewer ones, fewer jobs start, and more stacks wait for others in their job.
const ROUNDS: [u64; 12] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128, 256];

/// How long a stack takes if no duration is known at all.
const UNKNOWN_MILLISECONDS: u64 = 60_000;

/// How jobs wait for many others.
#[derive(Debug, Clone, Copy)]
struct Barriers {
    /// A job that would wait for more than this waits for barriers.
    most_needs: usize,
    /// How many jobs a barrier waits for.
    width: usize,
}

impl JobGraph {
    /// Packs turns into jobs for an engine. `edges` are the constraints: pairs of an earlier and a later
    /// turn, by number. Numbers from the number of turns on are nodes in between that run nothing.
    ///
    /// `parallel` is how many turns a job runs at once, and `reserved` how many other jobs each job waits for. Panics if the constraints have a cycle.
    pub fn new(
        engine: Engine,
        turns: &[TurnToPack],
        edges: &[(usize, usize)],
        at_once: NonZeroUsize,
        parallel: NonZeroUsize,
        reserved: usize,
    ) -> Self {
        let ends = edges.iter().map(|edge| edge.0.max(edge.1) + 1);
        let n_nodes = ends.max().unwrap_or(0).max(turns.len());
        let mut dag = Dag::new(n_nodes, edges.iter().copied());
        dag.reduce();
        let durations = durations(turns);
        let most = |kind| engine.most(kind).unwrap_or(usize::MAX);
        let most_needs = most(LimitKind::Needs).saturating_sub(reserved).max(2);
        let most_jobs = most(LimitKind::Jobs) - 1;
        let cost = JobCost {
            start: engine.start().as_millis().try_into().unwrap_or(u64::MAX),
            parallel: parallel.get() as u64,
        };
        let barriers = |needs: usize| Barriers {
            most_needs: needs.min(most_needs),
            width: most_needs,
        };
        let most_edges = most(LimitKind::Edges);
        let spread = durations.iter().sum::<u64>() / at_once.get() as u64 / cost.parallel;
        let with_workers = cost
            .start
            .saturating_add(spread.max(dag.longest(&durations)));
        let wanted = at_once.get().min(turns.len().max(1)).min(most_jobs);
        let mut best: Option<(u64, usize, JobGraph)> = None;
        for n_rounds in ROUNDS {
            // Little can be won beyond that.
            let is_good = |(end, ..): &(u64, usize, JobGraph)| *end <= with_workers / 20 * 21;
            if best.as_ref().is_some_and(is_good) {
                break;
            }
            let mut n_lanes = wanted;
            loop {
                let lanes = Lanes::new(&dag, &durations, n_lanes, n_rounds, cost);
                let mut graph = JobGraph::of(&lanes, barriers(most_needs), turns);
                for needs in [8, 2] {
                    if graph.n_edges() > most_edges {
                        graph = JobGraph::of(&lanes, barriers(needs), turns);
                    }
                }
                let n_jobs = graph.jobs.len();
                if n_jobs <= most_jobs && graph.n_edges() <= most_edges {
                    if best.as_ref().is_none_or(|(end, ..)| lanes.end < *end) {
                        best = Some((lanes.end, n_lanes, graph));
                    }
                    break;
                }
                // The jobs of a single lane are one job.
                let fewer = n_lanes * most_jobs.min(n_jobs) / n_jobs;
                n_lanes = fewer.clamp(1, (n_lanes * 7 / 8).max(1));
            }
        }
        let (end, n_lanes, graph) = best.expect("the jobs of a single lane are one job");
        JobGraph {
            takes: Duration::from_millis(end),
            with_workers: Duration::from_millis(with_workers),
            at_once: match NonZeroUsize::new(n_lanes) {
                Some(fewer) if n_lanes < at_once.get().min(turns.len()) => fewer,
                _ => at_once,
            },
            ..graph
        }
    }

    fn of(lanes: &Lanes, barriers: Barriers, turns: &[TurnToPack]) -> Self {
        let n_packed = lanes.jobs.len();
        let end = n_packed;
        let mut edges: Vec<(usize, usize)> = (0..n_packed)
            .flat_map(|job| lanes.before(job).map(move |before| (before, job)))
            .collect();
        edges.extend(lanes.last().into_iter().map(|job| (job, end)));
        let mut dag = Dag::new(n_packed + 1, edges);
        dag.reduce();
        let mut dag = with_barriers(&dag, lanes, barriers);
        dag.reduce();
        let chains = dag.chains(|position| dag.nodes[position] != end);
        let predecessors = dag.predecessors();
        let mut jobs: Vec<PipelineJob> = Vec::new();
        let mut names = JobNames::default();
        let mut job_of = vec![0; chains.len()];
        let mut last = Vec::new();
        let mut begun = BTreeMap::new();
        for (position, &node) in dag.nodes.iter().enumerate() {
            let before = predecessors[position].iter().map(|&it| job_of[it]);
            if node == end {
                last = before.collect();
                continue;
            }
            let job = *begun.entry(chains[position]).or_insert_with(|| {
                jobs.push(PipelineJob {
                    id: String::new(),
                    turns: Vec::new(),
                    needs: before.collect(),
                });
                jobs.len() - 1
            });
            job_of[position] = job;
            if let Some(packed) = lanes.jobs.get(node) {
                jobs[job].turns.extend_from_slice(&packed.nodes);
            }
        }
        let mut n_barriers = 0;
        for job in &mut jobs {
            job.turns.sort_unstable();
            job.needs.sort_unstable();
            job.id = if let Some(&first) = job.turns.first() {
                names.name(&turns[first].key)
            } else {
                n_barriers += 1;
                names.name(&format!("barrier {n_barriers}"))
            };
        }
        last.sort_unstable();
        JobGraph {
            jobs,
            last,
            at_once: NonZeroUsize::MIN,
            takes: Duration::ZERO,
            with_workers: Duration::ZERO,
        }
    }

    /// Returns how many dependencies the jobs have.
    pub fn n_edges(&self) -> usize {
        let needs = self.jobs.iter().map(|job| job.needs.len());
        needs.sum::<usize>() + self.last.len()
    }
}

/// Returns a graph in which no job waits for too many others: instead, it waits for barriers, which wait
/// for the last jobs of all lanes up to the round of the last job that it waits for.
fn with_barriers(dag: &Dag, lanes: &Lanes, barriers: Barriers) -> Dag {
    let mut edges = Vec::new();
    let mut n_nodes = dag.nodes.len();
    let mut known: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for (position, before) in dag.predecessors().into_iter().enumerate() {
        let node = dag.nodes[position];
        let before: Vec<usize> = before.into_iter().map(|it| dag.nodes[it]).collect();
        if before.len() <= barriers.most_needs {
            edges.extend(before.into_iter().map(|it| (it, node)));
            continue;
        }
        // Jobs have the numbers of their rounds' order.
        let latest = before.iter().copied().max().expect("it waits for some");
        let wanted = lanes.last_up_to(latest);
        let barriers = known.entry(wanted).or_insert_with_key(|wanted| {
            let mut nodes = wanted.clone();
            while nodes.len() > barriers.most_needs {
                let mut above = Vec::new();
                for chunk in nodes.chunks(barriers.width) {
                    edges.extend(chunk.iter().map(|&it| (it, n_nodes)));
                    above.push(n_nodes);
                    n_nodes += 1;
                }
                nodes = above;
            }
            nodes
        });
        edges.extend(barriers.iter().map(|&it| (it, node)));
    }
    Dag::new(n_nodes, edges)
}

/// Returns how long each turn takes: if it is not known, as long as the median of the others.
fn durations(turns: &[TurnToPack]) -> Vec<u64> {
    let mut known: Vec<u64> = turns.iter().filter_map(|turn| turn.milliseconds).collect();
    known.sort_unstable();
    let usual = known
        .get(known.len() / 2)
        .copied()
        .unwrap_or(UNKNOWN_MILLISECONDS);
    let turns = turns.iter();
    turns
        .map(|turn| turn.milliseconds.unwrap_or(usual).max(1))
        .collect()
}
