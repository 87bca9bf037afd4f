//! Which results of a work order a run has taken to evaluate their policies: each result only once, on any machine.

use serde::{Deserialize, Serialize};

use super::result::{ResultError, check_format};
use crate::author::host;
use crate::record::journal::FORMAT;

/// A claim on results.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResultClaim {
    format: u32,
    orch: String,
    /// The machine of the run.
    pub host: String,
    /// The run that evaluates the policies.
    pub run: String,
    /// The results: positions of turns in the work order, each with the number of its attempt; 0 if it never started.
    pub results: Vec<(usize, u32)>,
}

/// How the run of a claim ended. It is written once, so that all machines agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum ClaimEnd {
    /// A copy of the run is in the store.
    Sent,
    /// It never began: another run can claim its results.
    NeverBegan,
    /// It was killed, and only its own machine may have its journal: its follow-ups may have run.
    Killed,
}

impl ResultClaim {
    pub fn new(run: String, results: Vec<(usize, u32)>) -> Self {
        ResultClaim {
            format: FORMAT,
            orch: env!("CARGO_PKG_VERSION").to_owned(),
            host: host(),
            run,
            results,
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("it has only text and numbers")
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, ResultError> {
        check_format(bytes)?;
        Ok(serde_json::from_slice(bytes)?)
    }
}

impl ClaimEnd {
    pub fn to_bytes(self) -> Vec<u8> {
        serde_json::to_vec(&self).expect("it has only a word")
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, ResultError> {
        Ok(serde_json::from_slice(bytes)?)
    }
}
