//! What the worker is asked, and what it answers: one line of JSON each.
//!
//! The lists of an input are large and change little from one evaluation to the next: the worker keeps
//! them, and is told what has changed.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Answer, Dialect, LoadProblem, Problem, RegoFile, TestOutcome, TestRule};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum List {
    /// All stacks of the project.
    Stacks,
    /// All turns of the workflow.
    Workflow,
}

impl List {
    pub(super) const ALL: [List; 2] = [List::Stacks, List::Workflow];
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// Load a policy; they are numbered from 0. Answered by [`Reply::Loaded`].
    Load {
        /// Its file, for its problems.
        file: String,
        text: String,
    },
    /// Put entries at positions of a list; one at its end makes it longer. Not answered.
    Put {
        list: List,
        entries: Vec<(usize, Box<RawValue>)>,
    },
    /// Evaluate a policy. Answered by [`Reply::Ready`], then by [`Reply::Evaluated`].
    Evaluate {
        policy: usize,
        input: Box<RawValue>,
        /// Whether the lists are part of it too.
        with_lists: bool,
    },
    /// Find the tests in the last of these files, which are loaded together. Answered by [`Reply::Tests`].
    FindTests {
        /// The files. They stay until others are loaded.
        files: Vec<RegoFile>,
    },
    /// Run one of the tests that were found. Answered by [`Reply::Ready`], then by [`Reply::Tested`].
    Test { name: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Loaded(Result<Dialect, LoadProblem>),
    /// The input is in place: from here on, memory counts.
    Ready,
    Evaluated(Result<Answer, Problem>),
    /// The tests, or what is wrong with which of the files.
    Tests(Result<Vec<TestRule>, (usize, LoadProblem)>),
    /// What a test came to, or what is wrong with which of the files.
    Tested(Result<TestOutcome, (usize, Problem)>),
}
