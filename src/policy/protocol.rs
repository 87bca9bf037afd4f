//! The requests to the worker and its replies: one line of JSON each.
//!
//! The lists of an input are large and change little between evaluations. The worker keeps them,
//! and receives only changes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{LoadProblem, PolicyOutline, PolicyOutput, Problem, RegoFile, TestOutcome, TestRule};

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
    /// Load a policy; they are numbered from 0. The reply is [`WorkerReply::Loaded`].
    Load {
        /// Its file, for its problems.
        file: String,
        text: String,
    },
    /// Put entries at positions of a list; one at its end extends it. There is no reply.
    Put {
        list: ListKind,
        entries: Vec<(usize, Box<RawValue>)>,
    },
    /// Evaluate a policy. The replies are [`WorkerReply::Ready`], if `is_large`, and
    /// [`WorkerReply::Evaluated`].
    Evaluate {
        policy: usize,
        input: Box<RawValue>,
        /// Whether the input includes the lists.
        with_lists: bool,
        /// Whether loading the input takes memory that counts.
        is_large: bool,
    },
    /// Find the tests in the last of these files, which are loaded together. The reply is
    /// [`WorkerReply::Tests`].
    FindTests {
        /// The files, kept until others are loaded.
        files: Vec<RegoFile>,
    },
    /// Run one of the found tests. The replies are [`WorkerReply::Ready`] and
    /// [`WorkerReply::Tested`].
    Test { name: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerReply {
    Loaded(Result<PolicyOutline, LoadProblem>),
    /// The input is loaded: from now on, memory is limited.
    Ready,
    Evaluated(Result<PolicyOutput, Problem>),
    /// The tests, or a problem with the index of its file.
    Tests(Result<Vec<TestRule>, (usize, LoadProblem)>),
    /// The result of a test, or a problem with the index of its file.
    Tested(Result<TestOutcome, (usize, Problem)>),
}
