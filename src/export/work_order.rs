//! The work order: what the jobs of a pipeline do, in a file that each of them reads.
//!
//! It is one JSON document. Its last field, `seal`, has the digest of all bytes before it: that is the
//! id of the order, and a file that was edited is refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::limits::Engine;
use super::{JobGraph, PipelineJob};
use crate::context::{seal, seal_of};
use crate::path::StackPath;
use crate::record::journal::Word;
use crate::record::journal::{Argument, DRIFT, OnError, PoliciesRecord, SettingsRecord, TRACKED};
use crate::record::results::{OrderOutline, OutlinedTurn};
use crate::run::settings::RunSettings;

/// The format that is written. Within a number, fields are only added.
pub(crate) const FORMAT: u32 = 1;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkOrder {
    pub(crate) format: u32,
    /// The version of `orch` that wrote it.
    pub orch: String,
    /// The id of the run that all jobs belong to.
    pub run: String,
    pub engine: Engine,
    /// The commit of HEAD, if there is one.
    pub commit: Option<String>,
    /// The digest of the project's graph.
    pub graph: String,
    pub task: OrderedTask,
    /// The settings of the run. `jobs` is how many turns one job runs at once.
    pub settings: SettingsRecord,
    /// The turns, in the sequence of a serial run.
    pub turns: Vec<OrderedTurn>,
    /// The constraints: pairs of an earlier and a later turn, each by its position in `turns`. Positions
    /// beyond its end are nodes in between that run nothing.
    pub edges: Vec<(usize, usize)>,
    /// More constraints, for the order only: the later turn runs even if the earlier one fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order_only: Vec<(usize, usize)>,
    /// The policies that `orch finish` evaluates; `None` if they are off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<OrderedPolicies>,
    /// The jobs with their turns; empty if equal workers share the turns.
    pub jobs: Vec<OrderedJob>,
    /// The digest of the file.
    #[serde(skip)]
    pub(crate) id: String,
}

/// What the turns do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderedTask {
    /// They apply a saved plan.
    Plan {
        /// The id of the planning run.
        id: String,
        /// The digest of the file, in lower-case hexadecimal.
        sha256: String,
        /// The file, as the user wrote it.
        file: Argument,
    },
    /// They run a command, as `orch run` does.
    Command {
        words: Vec<Argument>,
        /// Whether the words are templates.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        eval: bool,
        /// Whether the order is reversed. `turns` and `edges` have the direction of the run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reverse: bool,
        /// Whether stacks are applied whose last apply was of a commit that HEAD lacks.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        allow_rollback: bool,
    },
}

/// How policies follow the jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderedPolicies {
    /// The stacks that never follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<StackPath>,
    /// Whether the turns only accept drift.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_drift: bool,
}

/// A turn of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderedTurn {
    pub stack: StackPath,
    pub operation: OrderedOperation,
}

/// What a turn does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderedOperation {
    /// It runs the command.
    Run,
    /// It applies the plan of its stack.
    Apply,
    /// It destroys its stack.
    Destroy,
}

/// A job of the pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderedJob {
    pub id: String,
    /// Its turns by position, in the sequence of a serial run; empty for a job that only makes others
    /// wait.
    pub turns: Vec<usize>,
    /// The ids of the jobs before which the engine does not start it.
    pub needs: Vec<String>,
}

/// A turn right before another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predecessor {
    /// Its position.
    pub turn: usize,
    /// Whether it must have succeeded; else, it must only have ended.
    pub must_succeed: bool,
}

/// Why a file cannot be used as a work order.
#[derive(Debug, thiserror::Error)]
pub enum WorkOrderError {
    #[error("it is not a work order, or it was changed after `orch export` wrote it")]
    Unsealed,
    #[error("it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    #[error("it has format {format}, written by orch {orch}; this orch reads format {FORMAT}")]
    Newer { format: u32, orch: String },
    #[error("it contradicts itself: {0}")]
    Inconsistent(String),
}

impl OrderedTurn {
    /// Returns a text that no other turn of an order has.
    pub fn key(&self) -> String {
        match self.operation {
            OrderedOperation::Destroy => format!("{} destroy", self.stack),
            OrderedOperation::Run | OrderedOperation::Apply => self.stack.to_string(),
        }
    }
}

impl OrderedJob {
    fn new(job: &PipelineJob, graph: &JobGraph) -> Self {
        let needs = job.needs.iter();
        OrderedJob {
            id: job.id.clone(),
            turns: job.turns.clone(),
            needs: needs.map(|&job| graph.jobs[job].id.clone()).collect(),
        }
    }
}

impl WorkOrder {
    /// Adds the jobs, unless equal workers share the turns, and the id. After that, nothing may change.
    #[must_use]
    pub fn sealed(self, graph: Option<&JobGraph>) -> Self {
        let jobs = graph.map(|graph| {
            let jobs = graph.jobs.iter();
            jobs.map(|job| OrderedJob::new(job, graph)).collect()
        });
        let mut order = WorkOrder {
            jobs: jobs.unwrap_or_default(),
            ..self
        };
        let text = order.to_text();
        seal_of(text.as_bytes())
            .unwrap_or_default()
            .clone_into(&mut order.id);
        order
    }

    /// Returns its id: a digest of its content.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the text of its file.
    pub fn to_text(&self) -> String {
        let json = serde_json::to_string(self).expect("an order has only text, numbers and lists");
        let mut text = json.strip_suffix('}').unwrap_or(&json).to_owned();
        text += ",\n\"seal\":\"";
        seal(&mut text);
        text += "\"}\n";
        text
    }

    /// Reads the text of a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, WorkOrderError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
            #[serde(default)]
            orch: String,
        }
        let id = seal_of(bytes).ok_or(WorkOrderError::Unsealed)?;
        let Head { format, orch } = serde_json::from_slice(bytes)?;
        if format > FORMAT {
            return Err(WorkOrderError::Newer { format, orch });
        }
        let order = WorkOrder {
            id: id.to_owned(),
            ..serde_json::from_slice(bytes)?
        };
        order.check().map_err(WorkOrderError::Inconsistent)?;
        Ok(order)
    }

    /// Checks that the content is consistent, which the seal doesn't show.
    fn check(&self) -> Result<(), String> {
        let n_turns = self.turns.len();
        let mut by_job = vec![0_usize; n_turns];
        let mut known = BTreeMap::new();
        for (position, job) in self.jobs.iter().enumerate() {
            for &turn in &job.turns {
                *by_job
                    .get_mut(turn)
                    .ok_or(format!("job `{}` has no turn {turn}", job.id))? += 1;
            }
            if let Some(need) = job.needs.iter().find(|need| !known.contains_key(*need)) {
                return Err(format!(
                    "job `{}` waits for `{need}`, which does not come before it",
                    job.id
                ));
            }
            if known.insert(&job.id, position).is_some() {
                return Err(format!("two jobs are called `{}`", job.id));
            }
        }
        if !self.jobs.is_empty() && by_job.iter().any(|count| *count != 1) {
            return Err("a turn belongs to no job, or to several".to_owned());
        }
        Ok(())
    }

    /// Returns the settings of the run.
    ///
    /// # Errors
    ///
    /// If a later version of `orch` wrote them.
    pub fn run_settings(&self) -> Result<RunSettings, String> {
        let on_error = self
            .settings
            .on_error
            .known()
            .map_err(|word| format!("its `on_error` is `{word}`"))?;
        let recording = self.settings.recording.as_ref().map(Word::known);
        let recording = recording
            .transpose()
            .map_err(|word| format!("its `recording` is `{word}`"))?;
        Ok(RunSettings {
            on_error: Some(on_error),
            recording,
            ..RunSettings::recorded(&self.settings)
        })
    }

    /// Returns the turns, for their results. `is_recorded` says whether the order locks the state.
    pub fn outline(&self, is_recorded: bool) -> OrderOutline {
        let turns = self.turns.iter().map(|turn| OutlinedTurn {
            stack: turn.stack.to_string(),
            destroys: turn.operation == OrderedOperation::Destroy,
        });
        OrderOutline {
            run: self.run.clone(),
            turns: turns.collect(),
            edges: self.edges.clone(),
            order_only: self.order_only.clone(),
            is_recorded,
            policies: self.policies.as_ref().map(|policies| PoliciesRecord {
                workflow: self.run.clone(),
                kind: if policies.is_drift { DRIFT } else { TRACKED }.to_owned(),
                excluded: policies.excluded.iter().map(StackPath::to_string).collect(),
                ..PoliciesRecord::default()
            }),
        }
    }

    pub fn job(&self, id: &str) -> Option<&OrderedJob> {
        self.jobs.iter().find(|job| job.id == id)
    }

    /// Prepares to find the turns right before others. With `--on-error continue`, only destroys must succeed.
    pub fn predecessors(&self) -> Predecessors {
        let mut before: BTreeMap<usize, Vec<Predecessor>> = BTreeMap::new();
        for (edges, must_succeed) in [(&self.edges, true), (&self.order_only, false)] {
            for &(turn, to) in edges {
                let known = before.entry(to).or_default();
                known.push(Predecessor { turn, must_succeed });
            }
        }
        let spreads_failures = self.settings.on_error.known() != Ok(OnError::Continue);
        let turns = self.turns.iter();
        let is_needed =
            turns.map(|it| spreads_failures || it.operation == OrderedOperation::Destroy);
        Predecessors {
            is_needed: is_needed.collect(),
            before,
        }
    }
}

/// Who comes right before whom.
#[derive(Debug)]
pub struct Predecessors {
    /// By turn: whether it must succeed, if an edge spreads its failure.
    is_needed: Vec<bool>,
    /// By node; the nodes in between included.
    before: BTreeMap<usize, Vec<Predecessor>>,
}

impl Predecessors {
    /// Returns the turns right before one, by position: those between which and it no other turn stands.
    pub fn of(&self, turn: usize) -> Vec<Predecessor> {
        let mut found: BTreeMap<usize, bool> = BTreeMap::new();
        let mut open = vec![(turn, true)];
        while let Some((node, is_strict)) = open.pop() {
            for before in self.before.get(&node).into_iter().flatten() {
                let must_succeed = is_strict && before.must_succeed;
                // It is looked at once more only if it turns out that it must succeed.
                if found
                    .get(&before.turn)
                    .is_some_and(|known| *known || !must_succeed)
                {
                    continue;
                }
                found.insert(before.turn, must_succeed);
                if before.turn >= self.is_needed.len() {
                    open.push((before.turn, must_succeed));
                }
            }
        }
        let turns = found.into_iter();
        let predecessor = |(turn, must_succeed): (usize, bool)| {
            let is_needed = self.is_needed.get(turn)?;
            Some(Predecessor {
                turn,
                must_succeed: must_succeed && *is_needed,
            })
        };
        turns.filter_map(predecessor).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::settings::RunSettings;

    fn order(edges: &[(usize, usize)], order_only: &[(usize, usize)]) -> WorkOrder {
        let turn = |stack: &str| OrderedTurn {
            stack: StackPath::parse(stack).unwrap(),
            operation: OrderedOperation::Run,
        };
        let order = WorkOrder {
            format: FORMAT,
            orch: "1".to_owned(),
            run: "0".to_owned(),
            engine: Engine::Make,
            commit: None,
            graph: String::new(),
            task: OrderedTask::Command {
                words: vec![Argument("a\n\"$(b)".into())],
                eval: false,
                reverse: false,
                allow_rollback: false,
            },
            settings: (&RunSettings::default()).into(),
            turns: ["/a", "/b b\n", "/c"].map(turn).to_vec(),
            policies: None,
            edges: edges.to_vec(),
            order_only: order_only.to_vec(),
            jobs: Vec::new(),
            id: String::new(),
        };
        order.sealed(None)
    }

    #[test]
    fn an_order_is_read_as_it_was_written_or_refused() {
        let order = order(&[(0, 1)], &[]);
        let text = order.to_text();
        let read = WorkOrder::parse(text.as_bytes()).unwrap();
        assert_eq!(read.to_text(), text);
        assert_eq!(read.id(), order.id());
        assert_eq!(read.id().len(), 64);
        let edited = text.replace("/c", "/d");
        let error = WorkOrder::parse(edited.as_bytes()).unwrap_err();
        assert!(matches!(error, WorkOrderError::Unsealed), "{error}");
    }

    #[test]
    fn predecessors_are_found_through_nodes_that_run_nothing() {
        let found = |edges: &[(usize, usize)], order_only: &[(usize, usize)]| {
            let found = order(edges, order_only).predecessors().of(2);
            let found = found.into_iter();
            found
                .map(|it| (it.turn, it.must_succeed))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&[(0, 1), (1, 2)], &[]), [(1, true)]);
        assert_eq!(
            found(&[(0, 4), (1, 4), (4, 3), (3, 2)], &[]),
            [(0, true), (1, true)]
        );
        assert_eq!(found(&[(0, 4), (1, 2)], &[(4, 2)]), [(0, false), (1, true)]);
        // One way is enough.
        assert_eq!(found(&[(0, 3), (3, 4), (4, 2)], &[(0, 4)]), [(0, true)]);
        assert_eq!(found(&[(0, 3), (4, 2), (3, 4)], &[(3, 2)]), [(0, true)]);
    }
}
