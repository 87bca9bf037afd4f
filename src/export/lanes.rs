//! Which stacks a job runs: they are put into lanes, round by round, and what a lane gets in a round is a job.
//!
//! The stack with the longest way to the end goes first, to the lane where it ends earliest. What waits only for stacks
//! of the same lane, or of earlier rounds, follows there in the same job, until the job is long enough for its round.
//! Each job waits for the one before it in its lane, so that never more jobs run at once than there are lanes, and no
//! job waits for more jobs than that.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
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
    round: usize,
}

/// The jobs of all lanes, in an order in which they can run.
#[derive(Debug)]
pub(super) struct Lanes {
    pub(super) jobs: Vec<PackedJob>,
    /// The latest job of each lane after each round.
    after_round: Vec<Vec<JobNumber>>,
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

/// How many starts of jobs must be gained before what follows in a job is spread over others: these may have other work.
const GAIN: u64 = 4;

/// The progress of a lane.
#[derive(Debug, Clone, Default)]
struct Lane {
    /// Its latest job.
    latest: JobNumber,
    /// When that ends.
    end: u64,
    /// What it got of the current round, and when all that these wait for has ended.
    positions: Vec<usize>,
    ready: u64,
    work: u64,
    /// How long the round takes at least, however many nodes run at once.
    span: u64,
    /// What could follow in the same job.
    followers: Followers,
    /// Whether its job of this round is complete.
    is_complete: bool,
}

/// Nodes that wait only for nodes of a lane, or of earlier rounds.
#[derive(Debug, Clone, Copy, Default)]
struct Followers {
    work: u64,
    longest: u64,
}

/// Where a node runs.
#[derive(Debug, Clone, Default)]
struct Place {
    /// The latest job of each lane that has ended with it.
    after: Rc<[JobNumber]>,
    end: u64,
    /// Its own lane, or if it runs nothing, that of the last one that it waits for.
    lane: Option<usize>,
}

/// Nodes by their ways to the end, the longest first.
type Queue = BTreeSet<(Reverse<u64>, usize)>;

/// A packing that is not complete.
struct Packing<'a> {
    dag: &'a Dag,
    predecessors: Vec<Vec<usize>>,
    /// How long each position takes; `None` if it runs nothing.
    takes: Vec<Option<u64>>,
    /// How long it is to the end, by position.
    ways: Vec<u64>,
    cost: JobCost,
    /// How many predecessors of each position have no place.
    pending: Vec<usize>,
    places: Vec<Place>,
    /// The positions that wait for none without a place.
    ready: Queue,
    lanes: Vec<Lane>,
    packed: Lanes,
}

impl Lane {
    /// Returns how long its job of this round takes with another node, whose predecessors in the lane take `before`.
    fn takes_with(&self, takes: u64, before: u64, cost: JobCost) -> u64 {
        let work = self.work.saturating_add(takes).div_ceil(cost.parallel);
        work.max(self.span).max(before.saturating_add(takes))
    }

    fn takes(&self, cost: JobCost) -> u64 {
        self.takes_with(0, 0, cost)
    }

    /// Returns when its job of this round would start.
    fn start(&self, ready: u64, cost: JobCost) -> u64 {
        let start = self.end.max(self.ready).max(ready);
        start.saturating_add(cost.start)
    }

    /// Returns whether its job of this round is long enough.
    fn is_full(&self, share: u64, cost: JobCost) -> bool {
        self.is_complete || !self.positions.is_empty() && self.takes(cost) >= share
    }

    /// Returns whether what could follow ends earlier in new jobs, on this lane and so many others.
    fn should_spread(&self, n_others: u64, cost: JobCost) -> bool {
        let Followers { work, longest } = self.followers;
        let spread = longest.max(work / (n_others + 1) / cost.parallel);
        spread.saturating_add(cost.start.saturating_mul(GAIN)) < longest.max(work / cost.parallel)
    }
}

impl<'a> Packing<'a> {
    fn new(dag: &'a Dag, durations: &[u64], n_lanes: usize, cost: JobCost) -> Self {
        let predecessors = dag.predecessors();
        let takes = dag.nodes.iter().map(|node| durations.get(*node).copied());
        let takes: Vec<Option<u64>> = takes.collect();
        let mut ways = vec![0_u64; takes.len()];
        for position in (0..ways.len()).rev() {
            let after = dag.successors[position].iter().map(|&it| ways[it]);
            let after = after.max().unwrap_or(0);
            ways[position] = after.saturating_add(takes[position].unwrap_or(0));
        }
        let mut packing = Packing {
            pending: predecessors.iter().map(Vec::len).collect(),
            places: vec![Place::default(); takes.len()],
            ready: Queue::new(),
            lanes: vec![Lane::default(); n_lanes],
            packed: Lanes {
                jobs: Vec::new(),
                after_round: Vec::new(),
                end: 0,
            },
            dag,
            predecessors,
            takes,
            ways,
            cost,
        };
        for position in 0..packing.pending.len() {
            if packing.predecessors[position].is_empty() {
                packing.free(position);
            }
        }
        packing
    }

    fn in_queue(&self, position: usize) -> (Reverse<u64>, usize) {
        (Reverse(self.ways[position]), position)
    }

    /// Returns when all have ended that a position waits for, and the lane of the last one.
    fn last_before(&self, position: usize) -> (u64, Option<usize>) {
        let before = self.predecessors[position].iter();
        let before = before.map(|&it| (self.places[it].end, self.places[it].lane));
        before.max().unwrap_or_default()
    }

    /// Merges the latest jobs that a position waits for.
    fn merge_before(&self, position: usize, latest: &mut [JobNumber]) {
        for &before in &self.predecessors[position] {
            for (job, other) in latest.iter_mut().zip(&*self.places[before].after) {
                *job = (*job).max(*other);
            }
        }
    }

    /// Lets a position start whose predecessors all have places. If it runs nothing, it has its place at once.
    fn free(&mut self, position: usize) {
        let mut freed = vec![position];
        while let Some(position) = freed.pop() {
            if self.takes[position].is_some() {
                self.ready.insert(self.in_queue(position));
                continue;
            }
            let mut after = vec![0; self.lanes.len()];
            self.merge_before(position, &mut after);
            let (end, lane) = self.last_before(position);
            let after = after.into();
            self.places[position] = Place { after, end, lane };
            self.count_down(position, &mut freed);
        }
    }

    /// Notes that a position has its place, and adds those that wait for nothing else.
    fn count_down(&mut self, position: usize, freed: &mut Vec<usize>) {
        for &next in &self.dag.successors[position] {
            self.pending[next] -= 1;
            if self.pending[next] == 0 {
                freed.push(next);
            }
        }
    }

    /// Gives each lane a job that takes about this share of time.
    fn round(&mut self, share: u64) {
        let cost = self.cost;
        let mut queue = std::mem::take(&mut self.ready);
        // Positions with predecessors in this round: their lane, if it is the same, and their number.
        let mut waiting: HashMap<usize, (Option<usize>, usize)> = HashMap::new();
        // When the positions of this round end in their jobs.
        let mut ends: HashMap<usize, u64> = HashMap::new();
        let mut n_ready = queue.len();
        while let Some((way, position)) = queue.pop_first() {
            let takes = self.takes[position].unwrap_or(0);
            let own = waiting.get(&position).and_then(|(lane, _)| *lane);
            match own {
                None => n_ready -= 1,
                Some(own) => {
                    let idle = self.lanes.iter().filter(|it| it.positions.is_empty());
                    let n_others = idle.count().saturating_sub(n_ready) as u64;
                    let lane = &mut self.lanes[own];
                    lane.is_complete |= lane.should_spread(n_others, cost);
                    lane.followers.work = lane.followers.work.saturating_sub(takes);
                }
            }
            let (ready, preferred) = self.last_before(position);
            let before = self.predecessors[position].iter();
            let before = before.filter_map(|it| ends.get(it)).copied();
            let before = before.max().unwrap_or(0);
            let is_free = |lane: &usize| {
                own.is_none_or(|own| own == *lane) && !self.lanes[*lane].is_full(share, cost)
            };
            let lanes = (0..self.lanes.len()).filter(is_free);
            let best = lanes.min_by_key(|&lane| {
                let it = &self.lanes[lane];
                let end = it
                    .start(ready, cost)
                    .saturating_add(it.takes_with(takes, before, cost));
                (end, preferred != Some(lane), lane)
            });
            let Some(lane) = best else {
                if own.is_none() {
                    self.ready.insert((way, position));
                }
                continue;
            };
            let it = &mut self.lanes[lane];
            it.positions.push(position);
            it.ready = it.ready.max(ready);
            it.work = it.work.saturating_add(takes);
            it.span = it.span.max(before.saturating_add(takes));
            ends.insert(position, before.saturating_add(takes));
            for &next in &self.dag.successors[position] {
                let (of, count) = waiting.entry(next).or_insert((Some(lane), 0));
                *of = of.filter(|of| *of == lane);
                *count += 1;
                if of.is_some() && *count == self.pending[next] {
                    queue.insert((Reverse(self.ways[next]), next));
                    let takes = self.takes[next].unwrap_or(0);
                    let followers = &mut self.lanes[lane].followers;
                    followers.work = followers.work.saturating_add(takes);
                    followers.longest = followers.longest.max(takes);
                }
            }
        }
        self.close_round();
    }

    /// Makes a job of what each lane got in this round.
    fn close_round(&mut self) {
        let n_lanes = self.lanes.len();
        let round = self.packed.after_round.len();
        let mut placed = Vec::new();
        for number in 0..n_lanes {
            let positions = std::mem::take(&mut self.lanes[number].positions);
            if positions.is_empty() {
                continue;
            }
            let lane = &self.lanes[number];
            let mut before = match lane.latest.checked_sub(1) {
                Some(earlier) => self.packed.jobs[earlier].before.clone(),
                None => vec![0; n_lanes],
            };
            before[number] = lane.latest;
            let end = lane
                .start(0, self.cost)
                .saturating_add(lane.takes(self.cost));
            for &position in &positions {
                self.merge_before(position, &mut before);
            }
            let running = positions.iter().filter(|it| self.takes[**it].is_some());
            let nodes = running.map(|&position| self.dag.nodes[position]).collect();
            let mut after = before.clone();
            self.packed.jobs.push(PackedJob {
                nodes,
                before,
                round,
            });
            after[number] = self.packed.jobs.len();
            let place = Place {
                after: after.into(),
                end,
                lane: Some(number),
            };
            self.lanes[number] = Lane {
                latest: self.packed.jobs.len(),
                end,
                ..Lane::default()
            };
            placed.extend(
                positions
                    .into_iter()
                    .map(|position| (position, place.clone())),
            );
        }
        // Only now: within a round, lanes do not wait for each other.
        let mut freed = Vec::new();
        for (position, place) in placed {
            self.places[position] = place;
            self.count_down(position, &mut freed);
        }
        // Those with a place in this round wait for nothing, either.
        freed.retain(|position| self.places[*position].after.is_empty());
        for position in freed {
            self.free(position);
        }
        let latest = self.lanes.iter().map(|lane| lane.latest);
        self.packed.after_round.push(latest.collect());
    }
}

impl Lanes {
    /// Packs the nodes of a graph. Those from the number of durations on run nothing. `n_rounds` is roughly how many
    /// jobs each lane gets, if nothing has to wait.
    pub(super) fn new(
        dag: &Dag,
        durations: &[u64],
        n_lanes: usize,
        n_rounds: u64,
        cost: JobCost,
    ) -> Self {
        let total: u64 = durations.iter().sum();
        let share = total / n_lanes as u64 / cost.parallel / n_rounds;
        let mut packing = Packing::new(dag, durations, n_lanes, cost);
        while !packing.ready.is_empty() {
            packing.round(share);
        }
        let mut packed = packing.packed;
        packed.end = packing.lanes.iter().map(|lane| lane.end).max().unwrap_or(0);
        packed
    }

    /// Returns the jobs, by position, that a job waits for: at most one of each lane.
    pub(super) fn before(&self, job: usize) -> impl Iterator<Item = usize> {
        let jobs = self.jobs[job].before.iter();
        jobs.filter_map(|number| number.checked_sub(1))
    }

    /// Returns the last job of each lane.
    pub(super) fn last(&self) -> Vec<usize> {
        match self.after_round.len().checked_sub(1) {
            Some(round) => self.last_of_round(round),
            None => Vec::new(),
        }
    }

    /// Returns the last job of each lane of the rounds up to that of a job. Whoever waits for all of
    /// them waits for the job, and for none that comes after its round.
    pub(super) fn last_up_to(&self, job: usize) -> Vec<usize> {
        self.last_of_round(self.jobs[job].round)
    }

    fn last_of_round(&self, round: usize) -> Vec<usize> {
        let jobs = self.after_round[round].iter();
        jobs.filter_map(|number| number.checked_sub(1)).collect()
    }
}
