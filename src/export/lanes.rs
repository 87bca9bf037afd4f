//! Which stacks a job runs: chains of stacks are put into lanes, level by level, and what a lane has of
//! a level is a job.
//!
//! A level has the chains that wait for chains of earlier levels only. Of each level, the longest chain
//! goes first, to the lane where it ends earliest. Each job waits for the one before it in its lane, so
//! that never more jobs run at once than there are lanes, and no job waits for more jobs than that.

use std::rc::Rc;

use super::dag::Dag;

/// The number of a job, from 1 so that the highest of a lane is the latest; 0 for none.
type JobNumber = usize;

/// A job that has turns.
#[derive(Debug)]
pub(super) struct PackedJob {
    /// The nodes that it runs.
    pub(super) nodes: Vec<usize>,
    /// The latest job of each lane that it waits for.
    before: Vec<JobNumber>,
    level: usize,
}

/// The jobs of all lanes, in an order in which they can run.
#[derive(Debug)]
pub(super) struct Lanes {
    pub(super) jobs: Vec<PackedJob>,
    /// The latest job of each lane after each level.
    after_level: Vec<Vec<JobNumber>>,
}

/// Consecutive nodes of a graph.
#[derive(Debug, Default)]
struct Chain {
    /// Those that run something.
    nodes: Vec<usize>,
    /// The chains that it waits for.
    before: Vec<usize>,
    duration: u64,
    level: usize,
}

/// The progress of a lane.
#[derive(Debug, Clone, Default)]
struct Lane {
    /// Its latest job.
    latest: JobNumber,
    /// When that ends.
    end: u64,
    /// What it got of the current level: chains, the time when all that they wait for has ended, and
    /// how long they take.
    chains: Vec<usize>,
    ready: u64,
    duration: u64,
}

/// Where a chain runs.
#[derive(Debug, Clone, Default)]
struct Place {
    /// The latest job of each lane that has ended with it.
    after: Rc<[JobNumber]>,
    end: u64,
    /// Its own lane, or if it runs nothing, that of the last one that it waits for.
    lane: Option<usize>,
}

/// The places of all chains that one waits for.
struct Before<'a>(Vec<&'a Place>);

impl<'a> Before<'a> {
    fn new(chain: &Chain, places: &'a [Place]) -> Self {
        let before = chain.before.iter();
        Before(before.map(|&before| &places[before]).collect())
    }

    fn latest(&self, n_lanes: usize) -> Vec<JobNumber> {
        let mut latest = vec![0; n_lanes];
        for place in &self.0 {
            merge(&mut latest, &place.after);
        }
        latest
    }

    fn end(&self) -> u64 {
        self.last().map_or(0, |place| place.end)
    }

    fn lane(&self) -> Option<usize> {
        self.last().and_then(|place| place.lane)
    }

    fn last(&self) -> Option<&Place> {
        self.0
            .iter()
            .copied()
            .max_by_key(|place| (place.end, place.lane))
    }
}

impl Lane {
    fn end_with(&self, ready: u64, duration: u64) -> u64 {
        let start = self.end.max(self.ready).max(ready);
        start.saturating_add(self.duration).saturating_add(duration)
    }
}

impl Lanes {
    /// Packs the nodes of a graph. Those from the number of durations on run nothing.
    pub(super) fn new(dag: &Dag, durations: &[u64], n_lanes: usize) -> Self {
        let chains = chains(dag, durations);
        let n_levels = chains
            .iter()
            .map(|chain| chain.level + 1)
            .max()
            .unwrap_or(0);
        let mut levels: Vec<Vec<usize>> = vec![Vec::new(); n_levels];
        for (number, chain) in chains.iter().enumerate() {
            levels[chain.level].push(number);
        }
        let mut lanes = vec![Lane::default(); n_lanes];
        let mut packed = Lanes {
            jobs: Vec::new(),
            after_level: Vec::new(),
        };
        let mut places = vec![Place::default(); chains.len()];
        for mut level in levels {
            for chain in level.extract_if(.., |chain| chains[*chain].nodes.is_empty()) {
                let before = Before::new(&chains[chain], &places);
                places[chain] = Place {
                    after: before.latest(n_lanes).into(),
                    end: before.end(),
                    lane: before.lane(),
                };
            }
            level.sort_by_key(|&chain| (u64::MAX - chains[chain].duration, chain));
            for chain in level {
                let before = Before::new(&chains[chain], &places);
                let (ready, preferred) = (before.end(), before.lane());
                let duration = chains[chain].duration;
                let best = (0..n_lanes).min_by_key(|&number| {
                    let end = lanes[number].end_with(ready, duration);
                    (end, preferred != Some(number), number)
                });
                let lane = &mut lanes[best.expect("there is a lane")];
                lane.chains.push(chain);
                lane.ready = lane.ready.max(ready);
                lane.duration = lane.duration.saturating_add(duration);
            }
            packed.close_level(&mut lanes, &chains, &mut places);
        }
        packed
    }

    /// Makes a job of what each lane got of a level.
    fn close_level(&mut self, lanes: &mut [Lane], chains: &[Chain], places: &mut [Place]) {
        let n_lanes = lanes.len();
        let level = self.after_level.len();
        for (number, lane) in lanes.iter_mut().enumerate() {
            if lane.chains.is_empty() {
                continue;
            }
            let mut before = match lane.latest.checked_sub(1) {
                Some(earlier) => self.jobs[earlier].before.clone(),
                None => vec![0; n_lanes],
            };
            before[number] = lane.latest;
            let mut nodes = Vec::new();
            for &chain in &lane.chains {
                let latest = Before::new(&chains[chain], places).latest(n_lanes);
                merge(&mut before, &latest);
                nodes.extend_from_slice(&chains[chain].nodes);
            }
            nodes.sort_unstable();
            lane.end = lane.end_with(0, 0);
            let mut after = before.clone();
            self.jobs.push(PackedJob {
                nodes,
                before,
                level,
            });
            lane.latest = self.jobs.len();
            after[number] = lane.latest;
            let place = Place {
                after: after.into(),
                end: lane.end,
                lane: Some(number),
            };
            for chain in std::mem::take(&mut lane.chains) {
                places[chain] = place.clone();
            }
            (lane.ready, lane.duration) = (0, 0);
        }
        let latest = lanes.iter().map(|lane| lane.latest);
        self.after_level.push(latest.collect());
    }

    /// Returns the jobs, by position, that a job waits for: at most one of each lane.
    pub(super) fn before(&self, job: usize) -> impl Iterator<Item = usize> {
        let jobs = self.jobs[job].before.iter();
        jobs.filter_map(|number| number.checked_sub(1))
    }

    /// Returns the last job of each lane.
    pub(super) fn last(&self) -> Vec<usize> {
        match self.after_level.len().checked_sub(1) {
            Some(level) => self.last_of_level(level),
            None => Vec::new(),
        }
    }

    /// Returns the last job of each lane of the levels up to that of a job. Whoever waits for all of
    /// them waits for the job, and for none that comes after its level.
    pub(super) fn last_up_to(&self, job: usize) -> Vec<usize> {
        self.last_of_level(self.jobs[job].level)
    }

    fn last_of_level(&self, level: usize) -> Vec<usize> {
        let jobs = self.after_level[level].iter();
        jobs.filter_map(|number| number.checked_sub(1)).collect()
    }
}

/// Returns the chains of a graph, each after those that it waits for.
fn chains(dag: &Dag, durations: &[u64]) -> Vec<Chain> {
    let chain_of = dag.chains(|_| true);
    let count = chain_of.iter().map(|chain| chain + 1).max().unwrap_or(0);
    let mut chains: Vec<Chain> = Vec::with_capacity(count);
    for ((&number, &node), before) in chain_of.iter().zip(&dag.nodes).zip(dag.predecessors()) {
        if number == chains.len() {
            let mut before: Vec<usize> = before.iter().map(|&it| chain_of[it]).collect();
            before.sort_unstable();
            before.dedup();
            let level = |&it: &usize| chains[it].level + usize::from(!chains[it].nodes.is_empty());
            let level = before.iter().map(level).max().unwrap_or(0);
            chains.push(Chain {
                before,
                level,
                ..Chain::default()
            });
        }
        if let Some(duration) = durations.get(node) {
            chains[number].nodes.push(node);
            chains[number].duration = chains[number].duration.saturating_add(*duration);
        }
    }
    chains
}

fn merge(latest: &mut [JobNumber], other: &[JobNumber]) {
    for (job, other) in latest.iter_mut().zip(other) {
        *job = (*job).max(*other);
    }
}
