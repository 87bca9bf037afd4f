//! The input of policies: the JSON of a run, its stack, all stacks and all turns.
//!
//! Every key is always present, except those that users of the language expect to be missing: unknown values are the
//! empty string, the empty list or `false`.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{TurnKind, WorkflowTurn};
use crate::project::stack::Stack;
use crate::run::evaluated::TurnState;

pub const SCHEMA: &str = include_str!("schema.json");

/// A commit, as policies see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CommitInput {
    pub author: String,
    pub branch: String,
    /// When, in nanoseconds since 1970.
    pub created_at: i64,
    pub hash: String,
    pub message: String,
}

/// The user of `orch`, as policies see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SessionInput {
    /// Unknown, and so `false`.
    pub admin: bool,
    /// Unknown, and so empty.
    pub creator_ip: String,
    /// The name of the user's account.
    pub login: String,
    pub name: String,
    pub teams: Vec<String>,
    /// Whether it is a CI job.
    pub machine: bool,
}

impl SessionInput {
    /// Returns the name of the user as the one who asks for a turn.
    pub fn asker(&self) -> String {
        let name = if self.login.is_empty() {
            "user"
        } else {
            &self.login
        };
        name.to_owned()
    }
}

/// The facts of an ended turn, as far as its tool reports them.
#[derive(Debug, Clone, Default)]
pub struct TurnFacts {
    /// The planned changes and, after a success, the same as applied changes.
    pub changes: Vec<ChangeInput>,
    /// The version of the tool; empty if it is not known.
    pub terraform_version: String,
    /// Why the changes are unknown, if they are: then its policies cannot be asked.
    pub unknown: Option<String>,
}

/// A change, as policies see it.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeInput {
    pub action: ChangeAction,
    /// Whether it was planned, or has been done.
    pub phase: ChangePhase,
    pub entity: EntityInput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeAction {
    Added,
    /// It is updated or replaced.
    Changed,
    Deleted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangePhase {
    Plan,
    Apply,
}

/// The changed object.
#[derive(Debug, Clone, Serialize)]
pub struct EntityInput {
    pub address: String,
    pub name: String,
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its vendor: `terraform`, or empty.
    pub entity_vendor: &'static str,
    /// Its type: `resource`, `output` or `stack`.
    pub entity_type: &'static str,
    /// Its values, without secrets.
    pub data: serde_json::Map<String, serde_json::Value>,
}

/// A run, as policies see it, without its turns.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// The commit of HEAD; its branch is that of the run.
    pub commit: CommitInput,
    /// Whether there are uncommitted changes.
    pub is_dirty: bool,
    /// Who runs `orch`.
    pub session: SessionInput,
    /// The value of `--metadata`.
    pub metadata: Vec<String>,
    /// The owner of the repository, as its remote has it.
    pub namespace: String,
    /// The name of the repository, as its remote has it.
    pub repository: String,
    /// The branch whose commits are deployed.
    pub tracked_branch: String,
}

/// A stack, as policies see it.
#[derive(Debug, Clone, Serialize)]
pub struct StackInput {
    administrative: bool,
    autodeploy: bool,
    branch: String,
    id: String,
    labels: Vec<String>,
    name: String,
    namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_root: Option<String>,
    repository: String,
    state: &'static str,
    terraform_version: Option<String>,
    tracked_commit: CommitInput,
    worker_pool: WorkerPool,
}

#[derive(Debug, Clone, Serialize)]
struct WorkerPool {
    id: &'static str,
    labels: [&'static str; 0],
    name: &'static str,
    public: bool,
}

impl StackInput {
    /// Returns the input for a stack without a record.
    pub fn new(stack: &Stack, facts: &RunFacts) -> Self {
        let mut seen = BTreeSet::new();
        let labels = stack
            .labels
            .iter()
            .map(String::as_str)
            .chain(stack.tags())
            .filter(|label| seen.insert(*label));
        let root = project_root(stack.path.directory().as_str());
        StackInput {
            administrative: false,
            autodeploy: stack.autodeploy,
            branch: facts.tracked_branch.clone(),
            id: id(stack),
            labels: labels.map(str::to_owned).collect(),
            name: stack.name.clone(),
            namespace: facts.namespace.clone(),
            project_root: Some(root).filter(|root| !root.is_empty()),
            repository: facts.repository.clone(),
            state: "NONE",
            terraform_version: None,
            tracked_commit: facts.commit.clone(),
            worker_pool: WorkerPool {
                id: "",
                labels: [],
                name: "",
                public: true,
            },
        }
    }

    /// Sets the version of its tool, if that is known.
    pub fn set_version(&mut self, version: &str) {
        if !version.is_empty() {
            self.terraform_version = Some(version.to_owned());
        }
    }

    pub fn set_state(&mut self, state: TurnState) {
        self.state = state.word();
    }

    pub fn set_tracked_commit(&mut self, commit: CommitInput) {
        self.tracked_commit = commit;
    }
}

/// Returns the name by which policies know a stack: its id, or else its path.
pub fn id(stack: &Stack) -> String {
    match &stack.id {
        Some(id) => id.value.clone(),
        None => stack.path.to_string(),
    }
}

fn project_root(directory: &str) -> String {
    directory.trim_start_matches('/').to_owned()
}

pub fn workflow_entry(turn: &WorkflowTurn, stack_id: &str) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Entry<'a> {
        id: &'a str,
        stack_id: &'a str,
        state: &'a str,
        #[serde(rename = "type")]
        kind: &'a str,
    }
    raw(&Entry {
        id: &turn.id,
        stack_id,
        state: turn.state.word(),
        kind: turn.kind.word(),
    })
}

/// Returns the input for a policy after the end of a turn, without the lists.
pub fn input(turn: &WorkflowTurn, stack: &StackInput, facts: &RunFacts) -> Box<RawValue> {
    #[derive(Serialize)]
    struct State {
        new_state: &'static str,
    }
    #[derive(Serialize)]
    struct Config<'a> {
        before_init: [&'static str; 0],
        project_root: String,
        runner_image: &'static str,
        terraform_version: &'a str,
    }
    #[derive(Serialize)]
    struct Run<'a> {
        id: &'a str,
        #[serde(rename = "type")]
        kind: &'a str,
        state: &'a str,
        branch: &'a str,
        based_on_local_workspace: bool,
        drift_detection: bool,
        flags: Vec<&'a str>,
        triggered_by: Option<&'a str>,
        created_at: u64,
        updated_at: u64,
        changes: &'a [ChangeInput],
        commit: &'a CommitInput,
        creator_session: &'a SessionInput,
        runtime_config: Config<'a>,
        states_history: Vec<State>,
        user_provided_metadata: &'a [String],
    }
    #[derive(Serialize)]
    struct Input<'a> {
        run: Run<'a>,
        stack: &'a StackInput,
    }
    let history = turn.history.iter().map(|state| State {
        new_state: state.word(),
    });
    raw(&Input {
        run: Run {
            id: &turn.id,
            kind: turn.kind.word(),
            state: turn.state.word(),
            branch: &facts.commit.branch,
            based_on_local_workspace: facts.is_dirty,
            drift_detection: turn.kind == TurnKind::Drift,
            flags: turn.flags.keys().map(String::as_str).collect(),
            triggered_by: turn.triggered_by.as_deref(),
            created_at: turn.created_at,
            updated_at: turn.updated_at,
            changes: &turn.facts.changes,
            commit: &facts.commit,
            creator_session: &facts.session,
            runtime_config: Config {
                before_init: [],
                project_root: project_root(turn.path.directory().as_str()),
                runner_image: "",
                terraform_version: &turn.facts.terraform_version,
            },
            states_history: history.collect(),
            user_provided_metadata: &facts.metadata,
        },
        stack,
    })
}

/// Returns a value as JSON.
pub(super) fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("texts, numbers and lists can be written")
}
