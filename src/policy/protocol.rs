//! What the worker is asked, and what it answers: one line of JSON each.
//!
//! The lists of an input are large and change little from one evaluation to the next: the worker keeps
//! them, and is told what has changed.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Dialect, LoadProblem, PolicyOutput, Problem, RegoFile, TestOutcome, TestRule};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListKind {
    /// All stacks of the project.
    Stacks,
    /// All turns of the workflow.
    Workflow,
}

impl ListKind {
    pub(super) const ALL: [ListKind; 2] = [ListKind::Stacks, ListKind::Workflow];
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerRequest {
    /// Load a policy; they are numbered from 0. Answered by [`WorkerReply::Loaded`].
    Load {
        /// Its file, for its problems.
        file: String,
        text: String,
    },
    /// Put entries at positions of a list; one at its end makes it longer. Not answered.
    Put {
        list: ListKind,
        entries: Vec<(usize, Box<RawValue>)>,
    },
    /// Evaluate a policy. Answered by [`WorkerReply::Ready`], then by [`WorkerReply::Evaluated`].
    Evaluate {
        policy: usize,
        input: Box<RawValue>,
        /// Whether the lists are part of it too.
        with_lists: bool,
    },
    /// Find the tests in the last of these files, which are loaded together. Answered by [`WorkerReply::Tests`].
    FindTests {
        /// The files. They stay until others are loaded.
        files: Vec<RegoFile>,
    },
    /// Run one of the tests that were found. Answered by [`WorkerReply::Ready`], then by [`WorkerReply::Tested`].
    Test { name: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerReply {
    Loaded(Result<Dialect, LoadProblem>),
    /// The input is in place: from here on, memory counts.
    Ready,
    Evaluated(Result<PolicyOutput, Problem>),
    /// The tests, or what is wrong with which of the files.
    Tests(Result<Vec<TestRule>, (usize, LoadProblem)>),
    /// What a test came to, or what is wrong with which of the files.
    Tested(Result<TestOutcome, (usize, Problem)>),
}
