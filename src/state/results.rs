//! The results of work orders, beside the document: an object for each attempt of each turn.
//!
//! Each is written once. So what was read once is known, and what a dead machine has sent is not lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use super::backend::{Backend, PutOutcome};
use super::store::{PutCondition, StoreError};

/// How many work orders keep their results.
const KEPT_ORDERS: usize = 50;

/// How long all keep them: a work order may still be in use.
const KEPT_FOR: Duration = Duration::from_hours(30 * 24);

/// How the names of results and of marks end.
const RESULT: &str = ".result";
const STARTED: &str = ".started";
const EVALUATED: &str = ".evaluated";
const DONE: &str = ".done";

/// How the names of copies of runs begin.
const RUN: &str = "run.";

/// How the names of claims begin, and how those of their ends end.
const CLAIM: &str = "claim.";
const CLAIM_END: &str = ".end";

/// How the names of the leases of jobs begin.
pub(super) const LEASE_OF_JOB: &str = "job.";

/// The name of the mark that a work order has ended.
const END: &str = "end";

/// A result in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResultName {
    /// The position of the turn in its work order.
    pub turn: usize,
    /// From 1.
    pub attempt: u32,
}

impl ResultName {
    /// Returns the name of the file with the result.
    pub fn file(self) -> String {
        self.with(RESULT)
    }

    fn with(self, ending: &str) -> String {
        format!("{:05}.{}{ending}", self.turn, self.attempt)
    }

    /// Returns the turn and the attempt in the name of a file.
    pub fn of(file: &str) -> Option<Self> {
        let (name, _) = file.rsplit_once('.')?;
        Self::parse(name, "")
    }

    fn parse(name: &str, ending: &str) -> Option<Self> {
        let (turn, attempt) = name.strip_suffix(ending)?.split_once('.')?;
        Some(ResultName {
            turn: turn.parse().ok()?,
            attempt: attempt.parse().ok()?,
        })
    }
}

/// The latest attempts of the turns of a work order, by the positions of the turns.
#[derive(Debug, Clone)]
pub struct LatestAttempts {
    /// The latest results.
    pub results: BTreeMap<usize, ResultName>,
    /// The attempts that have begun after them and have no result: they run, or were killed. No other run has done the turn
    /// since.
    pub begun: BTreeMap<usize, ResultName>,
}

impl LatestAttempts {
    /// Returns the latest attempt at a turn, if there is one.
    pub fn of(&self, turn: usize) -> Option<ResultName> {
        let begun = self.begun.get(&turn);
        begun.or_else(|| self.results.get(&turn)).copied()
    }
}

/// The files with the results and marks of a work order, as the store lists them.
#[derive(Debug)]
pub struct ResultFiles(Vec<String>);

impl ResultFiles {
    /// Returns the files of all results, in order.
    pub fn results(&self) -> Vec<String> {
        self.named(RESULT)
            .into_iter()
            .map(ResultName::file)
            .collect()
    }

    /// Returns the files of attempts that began before the latest ones and have no result, each with its name: they were
    /// killed.
    pub fn killed(&self) -> Vec<(String, ResultName)> {
        let (results, begun) = (self.named(RESULT), self.latest().begun);
        let mut names = self.named(STARTED);
        names.retain(|it| results.binary_search(it).is_err() && begun.get(&it.turn) != Some(it));
        let names = names.into_iter();
        names.map(|name| (name.with(STARTED), name)).collect()
    }

    /// Returns the files with the answers of policies to the latest results.
    pub fn answers(&self) -> Vec<String> {
        let latest = self.latest().results;
        let mut names = self.named(EVALUATED);
        names.retain(|name| latest.get(&name.turn) == Some(name));
        let names = names.into_iter();
        names.map(|name| name.with(EVALUATED)).collect()
    }

    /// Returns the files with the leases of jobs.
    pub(super) fn leases(&self) -> Vec<String> {
        let files = self.0.iter();
        files
            .filter(|file| file.starts_with(LEASE_OF_JOB))
            .cloned()
            .collect()
    }

    /// Returns the files of the turns that other runs have done, each with its turn, unless a job has run it since.
    pub fn done(&self) -> BTreeMap<usize, String> {
        let mut names = self.named(DONE);
        let latest = self.latest();
        names.retain(|it| latest.of(it.turn).is_none_or(|latest| latest < *it));
        let names = names.into_iter();
        names.map(|name| (name.turn, name.with(DONE))).collect()
    }

    /// Returns the ids of the runs that copies exist of, each with its file.
    pub fn runs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|file| {
            let run = file.strip_prefix(RUN)?;
            let is_id = Uuid::try_parse(run).is_ok_and(|id| id.to_string() == run);
            is_id.then_some((run, file.as_str()))
        })
    }

    /// Leaves out files.
    pub fn leave_out(&mut self, files: &BTreeSet<String>) {
        self.0.retain(|file| !files.contains(file));
    }

    /// Returns the latest attempts of the turns.
    pub fn latest(&self) -> LatestAttempts {
        let by_turn = |ending| -> BTreeMap<usize, ResultName> {
            let names = self.named(ending).into_iter();
            names.map(|name| (name.turn, name)).collect()
        };
        let (results, done, mut begun) = (by_turn(RESULT), by_turn(DONE), by_turn(STARTED));
        begun.retain(|turn, start| {
            let is_after = results.get(turn).is_none_or(|result| result < start);
            // A later attempt may have the number of the mark.
            is_after && done.get(turn).is_none_or(|done| done <= start)
        });
        LatestAttempts { results, begun }
    }

    /// Returns the highest number of an attempt; 0 if there is none.
    pub fn last_attempt(&self) -> u32 {
        let all = [RESULT, STARTED, DONE].map(|ending| self.named(ending));
        let all = all.into_iter().flatten().map(|name| name.attempt);
        all.max().unwrap_or(0)
    }

    /// Returns whether a run may still be evaluating results: its claim has no end.
    pub fn has_open_claim(&self) -> bool {
        let claims = self.0.iter().filter(|file| file.starts_with(CLAIM));
        let (ends, claims): (Vec<&String>, _) = claims.partition(|file| file.ends_with(CLAIM_END));
        let has_end = |claim: &String| ends.contains(&&format!("{claim}{CLAIM_END}"));
        claims.into_iter().any(|claim: &String| !has_end(claim))
    }

    /// Returns whether the work order was marked as ended.
    pub fn has_end(&self) -> bool {
        self.0.iter().any(|file| file == END)
    }

    /// Returns the names with an ending, in order.
    fn named(&self, ending: &str) -> Vec<ResultName> {
        let names = self.0.iter();
        let names = names.filter_map(|file| ResultName::parse(file, ending));
        let mut names: Vec<ResultName> = names.collect();
        names.sort_unstable();
        names
    }
}

/// Returns whether a run began so long ago that nothing uses its results any more.
fn is_old(run: &str) -> bool {
    let begun = Uuid::try_parse(run).ok().and_then(|id| id.get_timestamp());
    let age = begun.and_then(|begun| {
        let (seconds, _) = begun.to_unix();
        SystemTime::now()
            .duration_since(UNIX_EPOCH + Duration::from_secs(seconds))
            .ok()
    });
    age.is_some_and(|age| age > KEPT_FOR)
}

/// A claim on results.
#[derive(Debug)]
pub struct StoredClaim {
    pub claim: Vec<u8>,
    /// How its run ended, if it has.
    pub end: Option<Vec<u8>>,
}

impl Backend {
    fn order_key(&self, run: &str) -> String {
        self.beside(&format!("orders/{run}.json"))
    }

    pub(super) fn results_prefix(&self, run: &str) -> String {
        self.beside(&format!("results/{run}/"))
    }

    /// Marks an attempt as begun: that with this name, or if it is taken, the next one. Returns its number. Without a
    /// result of the same or a higher number, it was killed. The bytes differ from those of any other attempt.
    pub fn put_start(&self, run: &str, name: ResultName, bytes: &[u8]) -> Result<u32, StoreError> {
        self.put_next(run, name, STARTED, bytes)
    }

    /// Writes an object that does not exist yet. Returns false if it exists with other bytes.
    fn put_new(&self, key: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        let put = self.swap_bytes(key, bytes, &PutCondition::Absent)?;
        Ok(matches!(put, PutOutcome::Done(_)))
    }

    fn put_next(
        &self,
        run: &str,
        mut name: ResultName,
        ending: &str,
        bytes: &[u8],
    ) -> Result<u32, StoreError> {
        loop {
            let key = format!("{}{}", self.results_prefix(run), name.with(ending));
            if self.put_new(&key, bytes)? {
                return Ok(name.attempt);
            }
            name.attempt += 1;
        }
    }

    /// Lists the files with the results and marks of a work order.
    pub fn result_files(&self, run: &str) -> Result<ResultFiles, StoreError> {
        let prefix = self.results_prefix(run);
        let keys = self.store().list(&prefix)?;
        let files = keys.iter().filter_map(|key| key.strip_prefix(&prefix));
        Ok(ResultFiles(files.map(str::to_owned).collect()))
    }

    /// Returns the contents of files with results, each if it exists.
    pub fn read_results(
        &self,
        run: &str,
        files: &[String],
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let prefix = self.results_prefix(run);
        let keys = files.iter().map(|file| format!("{prefix}{file}"));
        self.store().get_all(&keys.collect::<Vec<_>>())
    }

    /// Puts the description of the run of a work order, if it has none. Returns whether it is new.
    pub fn put_order(&self, run: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        self.put_new(&self.order_key(run), bytes)
    }

    /// Returns the runs of work orders that have results, the oldest first.
    pub fn orders(&self) -> Result<Vec<String>, StoreError> {
        let prefix = self.beside("orders/");
        let keys = self.store().list(&prefix)?;
        let run = |key: &String| {
            let run = key.strip_prefix(&prefix)?.strip_suffix(".json")?;
            let is_id = Uuid::try_parse(run).is_ok_and(|id| id.to_string() == run);
            is_id.then(|| run.to_owned())
        };
        let mut runs: Vec<String> = keys.iter().filter_map(run).collect();
        runs.sort_unstable();
        Ok(runs)
    }

    /// Returns the description of the run of a work order, if it has one.
    pub fn order(&self, run: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let object = self.store().get(&self.order_key(run))?;
        Ok(object.map(|object| object.bytes))
    }

    /// Puts a result under its name, or if that is taken, under that of the next attempt. Returns the number of the
    /// attempt. The bytes differ from those of any other result.
    pub fn put_result(&self, run: &str, name: ResultName, bytes: &[u8]) -> Result<u32, StoreError> {
        self.put_next(run, name, RESULT, bytes)
    }

    /// Puts the answers of policies to a result.
    pub fn put_answers(&self, run: &str, name: ResultName, bytes: &[u8]) -> Result<(), StoreError> {
        let key = format!("{}{}", self.results_prefix(run), name.with(EVALUATED));
        self.put_new(&key, bytes).map(drop)
    }

    /// Puts the result of a turn that another run has done: before the jobs of the order, with attempt 0, or after they
    /// failed.
    pub fn put_done(&self, run: &str, name: ResultName, bytes: &[u8]) -> Result<(), StoreError> {
        let key = format!("{}{}", self.results_prefix(run), name.with(DONE));
        self.put_new(&key, bytes).map(drop)
    }

    /// Marks a work order as ended. Only one without the lock of the state needs that.
    pub fn put_end(&self, run: &str) -> Result<(), StoreError> {
        let key = format!("{}{END}", self.results_prefix(run));
        self.put_new(&key, b"{}").map(drop)
    }

    /// Returns the claims on results of a work order, the first one first.
    pub fn claims(&self, run: &str) -> Result<Vec<StoredClaim>, StoreError> {
        let mut claims = Vec::new();
        while let Some(claim) = self.store().get(&self.claim_key(run, claims.len()))? {
            let end = self.claim_end(run, claims.len())?;
            claims.push(StoredClaim {
                claim: claim.bytes,
                end,
            });
        }
        Ok(claims)
    }

    /// Returns how the run of a claim ended, if it has.
    pub fn claim_end(&self, run: &str, number: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let end = self.store().get(&self.claim_end_key(run, number))?;
        Ok(end.map(|end| end.bytes))
    }

    /// Puts a claim with this number, from 0. Returns whether no one else came first.
    pub fn put_claim(&self, run: &str, number: usize, bytes: &[u8]) -> Result<bool, StoreError> {
        self.put_new(&self.claim_key(run, number), bytes)
    }

    /// Puts the copy of a run of follow-ups.
    pub fn put_run(&self, order: &str, run: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.put_new(&self.run_key(order, run), bytes).map(drop)
    }

    /// Returns whether there is a copy of a run of follow-ups.
    pub fn has_run(&self, order: &str, run: &str) -> Result<bool, StoreError> {
        Ok(self.store().get(&self.run_key(order, run))?.is_some())
    }

    fn run_key(&self, order: &str, run: &str) -> String {
        format!("{}{RUN}{run}", self.results_prefix(order))
    }

    /// Writes how the run of a claim ended. Returns false if the claim already has another end.
    pub fn put_claim_end(
        &self,
        run: &str,
        number: usize,
        bytes: &[u8],
    ) -> Result<bool, StoreError> {
        self.put_new(&self.claim_end_key(run, number), bytes)
    }

    fn claim_key(&self, run: &str, number: usize) -> String {
        format!("{}{CLAIM}{number}", self.results_prefix(run))
    }

    fn claim_end_key(&self, run: &str, number: usize) -> String {
        format!("{}{CLAIM_END}", self.claim_key(run, number))
    }

    /// Removes the results of the oldest work orders. Some buckets forbid that.
    pub fn remove_old_orders(&self) -> Result<(), StoreError> {
        let runs = self.orders()?;
        let excess = runs.len().saturating_sub(KEPT_ORDERS);
        for run in runs[..excess].iter().filter(|run| is_old(run)) {
            for key in self.store().list(&self.results_prefix(run))? {
                self.store().delete(&key)?;
            }
            self.store().delete(&self.order_key(run))?;
        }
        Ok(())
    }
}
