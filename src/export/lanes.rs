//! Which stacks a job runs: they are put into lanes, level by level, and what a lane has of a level is a
//! job.
//!
//! The units that are put into lanes are chains of stacks. A level has the units that wait for units of
//! earlier levels only; several levels may be one, whose units then are all chains that are connected. Of
//! each level, the longest unit goes first, to the lane where it ends earliest. Each job waits for the one
//! before it in its lane, so that never more jobs run at once than there are lanes, and no job waits for
//! more jobs than that.

use std::rc::Rc;

use petgraph::unionfind::UnionFind;

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
    /// When the last job ends, as far as can be estimated.
    pub(super) end: u64,
}

/// How the time of a job is estimated, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobCost {
    /// The time before its first stack.
    pub(super) start: u64,
    /// How many stacks it runs at once.
    pub(super) parallel: u64,
}

/// Nodes that belong into one job.
#[derive(Debug, Default)]
struct Unit {
    /// Those that run something.
    nodes: Vec<usize>,
    /// The units that it waits for.
    before: Vec<usize>,
    level: usize,
    /// How long its nodes take, one after the other.
    work: u64,
    /// How long it takes at least, however many nodes run at once.
    span: u64,
}

/// The progress of a lane.
#[derive(Debug, Clone, Default)]
struct Lane {
    /// Its latest job.
    latest: JobNumber,
    /// When that ends.
    end: u64,
    /// What it got of the current level: units, and the time when all that they wait for has ended.
    units: Vec<usize>,
    ready: u64,
    work: u64,
    span: u64,
}

/// Where a unit runs.
#[derive(Debug, Clone, Default)]
struct Place {
    /// The latest job of each lane that has ended with it.
    after: Rc<[JobNumber]>,
    end: u64,
    /// Its own lane, or if it runs nothing, that of the last one that it waits for.
    lane: Option<usize>,
}

/// The places of all units that one waits for.
struct Before<'a>(Vec<&'a Place>);

impl<'a> Before<'a> {
    fn new(unit: &Unit, places: &'a [Place]) -> Self {
        let before = unit.before.iter();
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
        let places = self.0.iter().copied();
        places.max_by_key(|place| (place.end, place.lane))
    }
}

impl Lane {
    fn add(&mut self, number: usize, unit: &Unit, ready: u64) {
        self.units.push(number);
        self.ready = self.ready.max(ready);
        self.work = self.work.saturating_add(unit.work);
        self.span = self.span.max(unit.span);
    }

    /// Returns when it would end with another unit of this level.
    fn end_with(&self, unit: &Unit, ready: u64, cost: JobCost) -> u64 {
        let work = self.work.saturating_add(unit.work).div_ceil(cost.parallel);
        let start = self
            .end
            .max(self.ready)
            .max(ready)
            .saturating_add(cost.start);
        start.saturating_add(work.max(self.span).max(unit.span))
    }
}

impl Lanes {
    /// Packs the nodes of a graph. Those from the number of durations on run nothing. `height` is how many
    /// levels of chains are one.
    pub(super) fn new(
        dag: &Dag,
        durations: &[u64],
        n_lanes: usize,
        height: usize,
        cost: JobCost,
    ) -> Self {
        let units = units(&chains(dag, durations), height);
        let n_levels = units.iter().map(|unit| unit.level + 1).max().unwrap_or(0);
        let mut levels: Vec<Vec<usize>> = vec![Vec::new(); n_levels];
        for (number, unit) in units.iter().enumerate() {
            levels[unit.level].push(number);
        }
        let mut lanes = vec![Lane::default(); n_lanes];
        let mut packed = Lanes {
            jobs: Vec::new(),
            after_level: Vec::new(),
            end: 0,
        };
        let mut places = vec![Place::default(); units.len()];
        for mut level in levels {
            for number in level.extract_if(.., |number| units[*number].nodes.is_empty()) {
                let before = Before::new(&units[number], &places);
                places[number] = Place {
                    after: before.latest(n_lanes).into(),
                    end: before.end(),
                    lane: before.lane(),
                };
            }
            level.sort_by_key(|&number| (u64::MAX - units[number].work, number));
            for number in level {
                let unit = &units[number];
                let before = Before::new(unit, &places);
                let (ready, preferred) = (before.end(), before.lane());
                let best = (0..n_lanes).min_by_key(|&lane| {
                    let end = lanes[lane].end_with(unit, ready, cost);
                    (end, preferred != Some(lane), lane)
                });
                lanes[best.expect("there is a lane")].add(number, unit, ready);
            }
            packed.close_level(&mut lanes, &units, &mut places, cost);
        }
        packed.end = lanes.iter().map(|lane| lane.end).max().unwrap_or(0);
        packed
    }

    /// Makes a job of what each lane got of a level.
    fn close_level(
        &mut self,
        lanes: &mut [Lane],
        units: &[Unit],
        places: &mut [Place],
        cost: JobCost,
    ) {
        let n_lanes = lanes.len();
        let level = self.after_level.len();
        for (number, lane) in lanes.iter_mut().enumerate() {
            if lane.units.is_empty() {
                continue;
            }
            let mut before = match lane.latest.checked_sub(1) {
                Some(earlier) => self.jobs[earlier].before.clone(),
                None => vec![0; n_lanes],
            };
            before[number] = lane.latest;
            let mut nodes = Vec::new();
            for &unit in &lane.units {
                let latest = Before::new(&units[unit], places).latest(n_lanes);
                merge(&mut before, &latest);
                nodes.extend_from_slice(&units[unit].nodes);
            }
            lane.end = lane.end_with(&Unit::default(), 0, cost);
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
            for unit in std::mem::take(&mut lane.units) {
                places[unit] = place.clone();
            }
            (lane.ready, lane.work, lane.span) = (0, 0, 0);
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

/// Returns the chains of a graph as units, each after those that it waits for.
fn chains(dag: &Dag, durations: &[u64]) -> Vec<Unit> {
    let chain_of = dag.chains(|_| true);
    let mut chains: Vec<Unit> = Vec::new();
    for ((&number, &node), before) in chain_of.iter().zip(&dag.nodes).zip(dag.predecessors()) {
        if number == chains.len() {
            let mut before: Vec<usize> = before.iter().map(|&it| chain_of[it]).collect();
            before.sort_unstable();
            before.dedup();
            let level = |&it: &usize| chains[it].level + usize::from(!chains[it].nodes.is_empty());
            let level = before.iter().map(level).max().unwrap_or(0);
            chains.push(Unit {
                before,
                level,
                ..Unit::default()
            });
        }
        if let Some(duration) = durations.get(node) {
            let chain = &mut chains[number];
            chain.nodes.push(node);
            chain.work = chain.work.saturating_add(*duration);
            chain.span = chain.work;
        }
    }
    chains
}

/// Makes so many levels one: connected chains of such a level are a unit.
fn units(chains: &[Unit], height: usize) -> Vec<Unit> {
    let level = |chain: usize| chains[chain].level / height;
    let mut sets = UnionFind::new(chains.len());
    // If each level stays, only empty chains wait for others of their level.
    for (number, chain) in chains.iter().enumerate() {
        for &before in &chain.before {
            if height > 1 && level(before) == level(number) {
                sets.union(before, number);
            }
        }
    }
    let mut unit_of: Vec<Option<usize>> = vec![None; chains.len()];
    let mut units: Vec<Unit> = Vec::new();
    let mut spans = vec![0; chains.len()];
    for (number, chain) in chains.iter().enumerate() {
        let unit = *unit_of[sets.find_mut(number)].get_or_insert(units.len());
        if unit == units.len() {
            units.push(Unit {
                level: level(number),
                ..Unit::default()
            });
        }
        let (mut before, mut span) = (Vec::new(), 0);
        for &earlier in &chain.before {
            let of_earlier = unit_of[sets.find_mut(earlier)].expect("it comes before");
            if of_earlier == unit {
                span = span.max(spans[earlier]);
            } else {
                before.push(of_earlier);
            }
        }
        spans[number] = chain.span.saturating_add(span);
        let unit = &mut units[unit];
        unit.span = unit.span.max(spans[number]);
        unit.work = unit.work.saturating_add(chain.work);
        unit.nodes.extend_from_slice(&chain.nodes);
        unit.before.append(&mut before);
    }
    for unit in &mut units {
        unit.before.sort_unstable();
        unit.before.dedup();
    }
    units
}

fn merge(latest: &mut [JobNumber], other: &[JobNumber]) {
    for (job, other) in latest.iter_mut().zip(other) {
        *job = (*job).max(*other);
    }
}
