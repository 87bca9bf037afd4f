//! What the writers of all engines need: how a pipeline runs, its limits, and the seal of its files.

use std::num::NonZeroUsize;

use yaml_serde::{Mapping, Value};

use super::limits::{Engine, EngineLimit, LimitKind};
use super::template::TemplateError;
use super::{JobGraph, Template, yaml};
use crate::context::seal;

/// What a pipeline runs, and how.
#[derive(Debug, Clone, Copy)]
pub struct Shape<'a> {
    pub engine: Engine,
    pub jobs: PipelineJobs<'a>,
    /// The file of the work order, as the jobs name it.
    pub order: &'a str,
    /// The directory in which `orch` runs, from where jobs start, if it is another one.
    pub directory: Option<&'a str>,
    /// Whether the engine starts nothing that waits for a failed job. Else `orch` decides for each stack.
    pub stops: bool,
    /// The folder with the results of jobs, from where jobs start, if the engine hands them on as artifacts.
    pub results: Option<&'a str>,
    pub template: &'a Template,
}

#[derive(Debug, Clone, Copy)]
pub enum PipelineJobs<'a> {
    Graph(&'a JobGraph),
    /// So many equal workers, which share the stacks.
    Workers(NonZeroUsize),
}

/// Why a pipeline cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("{} accepts {} {}, and this pipeline has {found} (limit as of {}, {})", .limit.engine, .limit.most, .limit.kind, .limit.date, .limit.source)]
    Limit {
        limit: &'static EngineLimit,
        found: usize,
    },
}

impl ExportError {
    /// Returns what the user can do about it.
    pub fn fix(&self) -> Option<&'static str> {
        match self {
            ExportError::Limit { limit, .. } => Some(match (limit.engine, limit.kind) {
                (Engine::Github, LimitKind::Bytes | LimitKind::Jobs) => {
                    "use `--workers N`: equal workers in a matrix need one job; or shorten the template"
                }
                (Engine::Github, LimitKind::Workers) => "lower `--workers`, and raise `-j` instead",
                _ => "lower `--jobs`, or shorten the template",
            }),
            ExportError::Template(_) => Some("write it to a file, and pass that with `--template`"),
        }
    }
}

pub(super) fn check(engine: Engine, kind: LimitKind, found: usize) -> Result<(), ExportError> {
    match engine.limit(kind) {
        Some(limit) if found > limit.most => Err(ExportError::Limit { limit, found }),
        _ => Ok(()),
    }
}

impl Shape<'_> {
    /// Returns the command of a job. The name of the work order reaches it as a variable.
    pub(super) fn command(&self, words: &str) -> String {
        let directory = match self.directory {
            Some(_) => "-C \"$ORCH_DIRECTORY\" ",
            None => "",
        };
        format!("orch {directory}{words} --work-order \"$ORCH_ORDER\"")
    }

    /// Returns the variables of a job.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let directory = self.directory.map(|it| ("ORCH_DIRECTORY", it));
        [("ORCH_ORDER", self.order)].into_iter().chain(directory)
    }

    /// Returns the files with results as patterns, if the engine hands them on.
    pub(super) fn result_paths(&self) -> impl Iterator<Item = String> {
        let folder = self.results.into_iter();
        folder.flat_map(|folder| RESULTS.map(|pattern| format!("{folder}/{pattern}")))
    }

    /// Returns the artifacts of a job as patterns: those of the template, and the results.
    pub(super) fn artifact_paths(&self) -> Vec<Value> {
        let of_template = self.template.artifact_paths.iter().cloned();
        let results = self.result_paths().map(Value::from);
        of_template.chain(results).collect()
    }

    /// Returns the environment of a job: that of the template, and the variables.
    pub(super) fn environment(&self) -> Mapping {
        let mut environment = self.template.environment.clone();
        for (name, value) in self.variables() {
            environment.insert(name.into(), value.into());
        }
        environment
    }
}

/// The names of the files with results, in their folder, as patterns.
const RESULTS: [&str; 2] = ["*.orders/*", "*.results/*/*"];

/// Returns the text of a YAML file with a seal.
pub(super) fn yaml_file(content: &Mapping) -> String {
    sealed(&yaml::document(content))
}

/// Returns the text of a file that has `#` before comments, with a seal.
pub(super) fn sealed(content: &str) -> String {
    let mut text = format!("# Written by `orch export`; do not edit it.\n{content}# ");
    seal(&mut text);
    text.push('\n');
    text
}

/// Returns a mapping with these keys.
pub(super) fn keys<const N: usize>(keys: [(&str, Value); N]) -> Mapping {
    keys.into_iter()
        .map(|(key, value)| (key.into(), value))
        .collect()
}
