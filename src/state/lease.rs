//! The holder of the lock of a document, and how long it counts as alive.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A holder of a lock without an expiry who was heard of so recently is alive.
pub(super) const ALIVE: Duration = Duration::from_mins(2);

/// Who may write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Differs from that of any other lock.
    pub code: String,
    pub run: String,
    pub action: RunAction,
    pub by: String,
    pub host: String,
    /// The process id on that machine.
    pub process: u32,
    pub ci: Option<String>,
    pub since: Timestamp,
    /// After how many seconds without a heartbeat others may take the lock over; `None` if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// The jobs that share the lock, if a work order holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedLock>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Lock {
    /// Returns the locks of the runs that may write: of a work order, those of its running jobs.
    pub fn holders(&self) -> impl Iterator<Item = &Lock> {
        let jobs = self.shared.iter().flat_map(SharedLock::running);
        let own = self.shared.is_none().then_some(self);
        own.into_iter().chain(jobs)
    }

    /// Returns whether a run may write.
    pub fn is_of(&self, run: &str) -> bool {
        self.holders().any(|holder| holder.run == run)
    }

    /// Returns after how long without a heartbeat others may take the lock over, if they may.
    pub fn expires(&self) -> Option<Duration> {
        self.expires.map(Duration::from_secs)
    }

    /// Returns how long a holder counts as alive after a heartbeat.
    pub fn lease(&self) -> Duration {
        self.expires().unwrap_or(ALIVE)
    }

    /// Returns the interval between heartbeats, at most `at_least`.
    pub(super) fn heartbeat(&self, at_least: Duration) -> Duration {
        let often = self.expires().map(|expires| expires / 4);
        often.map_or(at_least, |often| often.min(at_least))
    }
}

/// The jobs of the work order that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLock {
    pub order: String,
    /// The jobs that have not succeeded yet, by id, each with its lock while it runs.
    pub jobs: BTreeMap<String, Option<Box<Lock>>>,
    /// Empty: earlier versions require the field.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Debug, Clone)]
pub struct OrderJob {
    pub order: String,
    pub run: String,
    /// The code of the order's lock, which all its jobs know.
    pub code: String,
    pub job: String,
    /// All jobs with work left, for the first one, which takes the lock.
    pub left: Vec<String>,
    /// Whether a worker has chosen the job: if another one has it, it chooses again instead of waiting.
    pub is_chosen: bool,
}

impl SharedLock {
    pub fn running(&self) -> impl Iterator<Item = &Lock> {
        self.jobs.values().filter_map(Option::as_deref)
    }
}

impl OrderJob {
    pub fn holds(&self, lock: &Lock) -> bool {
        lock.code == self.code
    }
}

/// The action of a run on its recorded stacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunAction {
    Apply,
    Destroy,
    /// It accepts drift.
    Refresh,
    /// Something that a later version does.
    #[serde(untagged)]
    Other(String),
}

impl RunAction {
    pub fn word(&self) -> &str {
        match self {
            RunAction::Apply => "apply",
            RunAction::Destroy => "destroy",
            RunAction::Refresh => "refresh",
            RunAction::Other(word) => word,
        }
    }
}
