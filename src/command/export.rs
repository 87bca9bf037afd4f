//! `orch export`: a run as the pipeline of an engine, and the work order of its jobs.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::run::{PolicyOptions, RunOptions};
use crate::ascii::hex;
use crate::context::{Context, FoundMove, MARK_ROOT, RollbackFlags, follow_all};
use crate::error::{Error, ErrorContext as _, ErrorKind, Result};
use crate::export::{
    Engine, ExportError, FORMAT, JobGraph, OrderedOperation, OrderedPolicies, OrderedTask,
    OrderedTurn, Pipeline, PipelineJobs, Shape, Template, TurnToPack, WorkOrder,
};
use crate::git::{GitError, Repository};
use crate::path::StackPath;
use crate::plan::entry::{PlanEntry, PlanMode};
use crate::plan::{PlannedOperation, SavedPlan};
use crate::printable::{count, printable};
use crate::project::config::RecordKind;
use crate::project::policy::PolicyRun;
use crate::record::journal::{Argument, SettingsRecord};
use crate::run::order::{Direction, RunOrder};
use crate::run::request::{head, new_id, past_applies, past_durations};
use crate::run::run_command::{CommandKind, RunCommand};
use crate::run::safeguard::Disabled;
use crate::run::schedule::OnError;
use crate::run::settings::RunSettings;
use crate::selection::graph::digest;
use crate::selection::select::Selection;

/// The folder with the results of jobs, in a project without a state that other machines see.
const RESULTS: &str = ".orch/state";

/// How many jobs run at once unless a flag says so.
const USUAL_JOBS: usize = 20;

/// The same for `make`, which starts jobs at no cost and runs as many as its own `-j` allows.
const USUAL_JOBS_OF_MAKE: usize = 64;

pub struct ExportOptions {
    pub engine: Engine,
    /// How many jobs run at once, at most.
    pub jobs: Option<NonZeroUsize>,
    /// The number of equal workers, instead of jobs with stacks of their own.
    pub workers: Option<NonZeroUsize>,
    pub template: Template,
    /// The file of the work order, as the user wrote it.
    pub order: String,
    pub settings: RunSettings,
}

/// The command of `orch run` that is exported.
pub struct ExportedCommand {
    pub words: Vec<OsString>,
    pub is_eval: bool,
    pub is_reverse: bool,
    pub allows_rollback: bool,
    /// The stacks that no policy adds.
    pub excluded: Vec<StackPath>,
    pub disabled: Disabled,
}

impl ExportedCommand {
    /// Returns the options of the same command as one run.
    fn run(&self, settings: &RunSettings) -> RunOptions {
        RunOptions {
            command: self.words.clone(),
            kind: if self.is_eval {
                CommandKind::Template
            } else {
                CommandKind::Plain
            },
            is_reverse: self.is_reverse,
            settings: settings.clone(),
            resume: None,
            allow_concurrent: false,
            policies: PolicyOptions {
                mode: None,
                followup: None,
                metadata: Vec::new(),
            },
            rollback: RollbackFlags {
                allows: self.allows_rollback,
                fetches: false,
            },
            is_about_changes: false,
            lock_timeout: Duration::ZERO,
            fails_if_empty: false,
            job: None,
            results: None,
            runs_elsewhere: true,
            disabled: self.disabled.clone(),
        }
    }
}

/// A pipeline, and the work order that its jobs read.
pub struct Export {
    pub pipeline: Pipeline,
    pub order: WorkOrder,
}

impl Context {
    /// Exports a command in the selected stacks, unless `orch run` would refuse it.
    pub fn export_command(
        &mut self,
        options: &ExportOptions,
        command: &ExportedCommand,
        selection: &Selection,
    ) -> Result<Export> {
        let kind = self.recognized(&command.words, &options.settings)?;
        let is_recorded = self.is_recorded(kind);
        self.check_jobs(options, is_recorded)?;
        let run = command.run(&options.settings);
        let is_followed = self.check_exported(&run, selection)? != PolicyRun::Off;
        if is_followed {
            self.check_policies()?;
        }
        let order = RunOrder::new(&self.graph, selection);
        let direction = if command.is_reverse {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        let sequence = order.sequence_of_turns(direction);
        let words = command.words.clone();
        let run_command = if command.is_eval {
            RunCommand::evaluated(words, [])
        } else {
            RunCommand::plain(words)
        };
        let turn = |stack| OrderedTurn {
            stack: self.project.stacks[stack].path.clone(),
            operation: OrderedOperation::Run,
        };
        let task = OrderedTask::Command {
            words: command.words.iter().cloned().map(Argument).collect(),
            eval: command.is_eval,
            reverse: command.is_reverse,
            allow_rollback: command.allows_rollback,
        };
        let on_error = RunOrder::on_error(direction, options.settings.on_error());
        let draft = self.draft(options, task, on_error)?;
        let order = WorkOrder {
            edges: order.edges(direction, &sequence),
            turns: sequence.into_iter().map(turn).collect(),
            policies: is_followed.then(|| OrderedPolicies {
                excluded: command.excluded.clone(),
                is_drift: false,
            }),
            ..draft
        };
        let durations = past_durations(&self.project.root, &run_command);
        let export = self.export(options, order, &durations)?;
        if options.workers.is_some() && !is_recorded {
            self.notices.warning(
                "workers will refuse this command: they share work through the state, and the state does not record this command",
            );
        }
        Ok(export)
    }

    /// Exports the apply of a saved plan. `file` is its name as the user wrote it, and `sha256` the
    /// digest of its content.
    pub fn export_plan(
        &mut self,
        options: &ExportOptions,
        saved: &SavedPlan,
        file: &OsStr,
        sha256: String,
    ) -> Result<Export> {
        let plan = &saved.plan;
        let is_missing =
            |it: &&PlanEntry| it.removed.is_none() && self.project.stacks.find(&it.stack).is_none();
        if let Some(entry) = plan.entries.iter().find(is_missing) {
            let stack = printable(entry.stack.as_str());
            let problem = format!("the plan has the stack `{stack}`, which is not in the project");
            let hint = "check out the commit that was planned, or make a new plan";
            return Err(Error::refused(problem).hint(hint));
        }
        if !saved.policies.is_off {
            self.check_policies()?;
        }
        let destroys = plan.operations.iter().any(|it| it.destroys);
        let document = if destroys && self.project.settings.state.is_some() {
            let mut document = self.opened()?.read_once()?;
            let moves: Vec<FoundMove> = saved.moves();
            follow_all(&self.project.stacks, &moves, &mut document);
            let destroyed = plan.operations.iter().map(|it| &it.stack);
            let generations = destroyed.filter(|path| path.generation().is_some());
            Some(document.with_generations(generations))
        } else {
            None
        };
        let order = plan.order(&self.project, &self.graph, document.as_ref());
        let operations = order.operations(&self.project);
        let precedence = &order.order.precedence;
        let all = (0..precedence.n_nodes()).flat_map(|from| {
            let successors = precedence.successors(from).iter();
            successors.map(move |to| ((from, to.node as usize), to.spreads_failure))
        });
        let (mut edges, mut order_only) = (Vec::new(), Vec::new());
        for (edge, spreads_failure) in all {
            if spreads_failure {
                edges.push(edge);
            } else {
                order_only.push(edge);
            }
        }
        let turn = |it: &PlannedOperation| OrderedTurn {
            stack: it.stack.clone(),
            operation: if it.destroys {
                OrderedOperation::Destroy
            } else {
                OrderedOperation::Apply
            },
        };
        let task = OrderedTask::Plan {
            id: plan.id.clone(),
            sha256,
            file: Argument(file.to_owned()),
        };
        let on_error = options.settings.on_error.unwrap_or(OnError::SkipDependents);
        let order = WorkOrder {
            turns: operations.iter().map(turn).collect(),
            edges,
            order_only,
            policies: (!saved.policies.is_off).then(|| OrderedPolicies {
                excluded: saved.excluded.clone(),
                is_drift: plan.mode == PlanMode::RefreshOnly,
            }),
            ..self.draft(options, task, on_error)?
        };
        self.export(options, order, &past_applies(&self.project.root))
    }

    /// Refuses jobs that can't run, and jobs whose failures would not fail the pipeline.
    fn check_jobs(&self, options: &ExportOptions, is_recorded: bool) -> Result<()> {
        let asks = |kind: RecordKind| kind != RecordKind::Never;
        if options.settings.recording.is_some_and(asks) && !is_recorded {
            let why = "`--record` was given, and this project keeps no state";
            return Err(Error::refused(why).hint("see `orch help state`"));
        }
        // Failed jobs don't fail their targets in this mode. The last target fails, after it reads the results.
        let only_last_fails =
            options.engine == Engine::Make && options.settings.on_error() != OnError::Stop;
        if only_last_fails && !self.has_results() {
            let why = "nothing marks the root of this project, so `make` would not see failed jobs";
            return Err(Error::refused(why).hint(MARK_ROOT));
        }
        Ok(())
    }

    /// Returns a work order without turns.
    fn draft(
        &self,
        options: &ExportOptions,
        task: OrderedTask,
        on_error: OnError,
    ) -> Result<WorkOrder> {
        let root = &self.project.root;
        let settings = RunSettings {
            on_error: Some(on_error),
            ..options.settings.clone()
        };
        Ok(WorkOrder {
            format: FORMAT,
            orch: env!("CARGO_PKG_VERSION").to_owned(),
            run: new_id(root),
            engine: options.engine,
            commit: head(root).context("failed to ask git for HEAD")?,
            graph: digest(&self.project.stacks, &self.references),
            task,
            settings: SettingsRecord::from(&settings),
            turns: Vec::new(),
            edges: Vec::new(),
            order_only: Vec::new(),
            policies: None,
            jobs: Vec::new(),
            id: String::new(),
        })
    }

    /// Exports a work order without jobs. `durations` are those of earlier runs, by stack.
    fn export(
        &self,
        options: &ExportOptions,
        mut order: WorkOrder,
        durations: &HashMap<String, Duration>,
    ) -> Result<Export> {
        let engine = options.engine;
        let to_pack = |turn: &OrderedTurn| {
            let known = durations.get(turn.stack.as_str());
            TurnToPack {
                key: turn.key(),
                milliseconds: known.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
            }
        };
        let to_pack: Vec<TurnToPack> = order.turns.iter().map(to_pack).collect();
        let usual = match engine {
            Engine::Make => USUAL_JOBS_OF_MAKE,
            Engine::Gitlab | Engine::Github | Engine::Buildkite => USUAL_JOBS,
        };
        let jobs = options.jobs.or(NonZeroUsize::new(usual));
        let jobs = jobs.unwrap_or(NonZeroUsize::MIN);
        let edges = [&order.edges[..], &order.order_only].concat();
        let graph = options.workers.is_none().then(|| {
            let (parallel, reserved) = (options.settings.jobs(), options.template.n_needs());
            JobGraph::new(engine, &to_pack, &edges, jobs, parallel, reserved)
        });
        let (prefix, inside) = self.directories_of_jobs(engine)?;
        let directory = joined(&[&prefix, &inside]);
        if let Some(directory) = &directory {
            plain("the path of this directory", directory)?;
        }
        let results = joined(&[&prefix, RESULTS]);
        let has_results = engine != Engine::Make && self.hands_results_on()?;
        order.policies.take_if(|_| self.project.policies.is_empty());
        if engine == Engine::Gitlab && has_results && order.policies.is_some() {
            return Err(repeated_follow_ups(&order.task));
        }
        let shape = Shape {
            engine,
            jobs: match (&graph, options.workers) {
                (Some(graph), _) => PipelineJobs::Graph(graph),
                (None, workers) => PipelineJobs::Workers(workers.unwrap_or(NonZeroUsize::MIN)),
            },
            order: plain("the name of the work order", &options.order)?,
            directory: directory.as_deref(),
            stops: match order.settings.on_error.known() {
                Ok(OnError::Stop) => true,
                Ok(OnError::Continue) => false,
                // A job that does not see the results of others cannot skip a stack after a failure.
                Ok(OnError::SkipDependents) | Err(_) => !self.sees_results(&order)?,
            },
            results: results.as_deref().filter(|_| has_results),
            template: &options.template,
        };
        let pipeline = Pipeline::new(&shape).map_err(unwritable)?;
        if !self.project.settings.concurrency.is_empty() {
            self.notices.note(
                "`concurrency` in the configuration holds inside each job, and not for jobs that run at once",
            );
        }
        if has_results {
            self.notices.note(
                "jobs store results and logs as artifacts of the engine, which does not mask secrets in them: this project has no state in a bucket",
            );
        }
        if let Some(graph) = &graph {
            self.note_jobs(engine, jobs, graph, &order.turns);
            if engine != Engine::Make {
                let can_share = self.project.settings.state.is_some() && !has_results;
                self.note_workers(jobs, graph, !durations.is_empty(), can_share);
            }
        }
        if order.policies.is_some() {
            self.notices
                .note("`orch finish` runs the follow-ups of policies, after all jobs");
        }
        Ok(Export {
            pipeline,
            order: order.sealed(graph.as_ref()),
        })
    }

    fn note_jobs(
        &self,
        engine: Engine,
        wanted: NonZeroUsize,
        graph: &JobGraph,
        turns: &[OrderedTurn],
    ) {
        let stacks: BTreeSet<_> = turns.iter().map(|turn| &turn.stack).collect();
        let (stacks, jobs) = (count(stacks.len(), "stack"), count(graph.jobs.len(), "job"));
        self.notices.note(&format!("{stacks} in {jobs}"));
        if graph.at_once < wanted {
            self.notices.note(&format!(
                "at most {} run at once instead of {wanted}: {engine} accepts no pipeline with so many jobs or dependencies",
                graph.at_once
            ));
        }
    }

    /// Notes that workers would be faster; `can_share` says whether the project has a state that all of them see.
    fn note_workers(
        &self,
        wanted: NonZeroUsize,
        graph: &JobGraph,
        are_durations_known: bool,
        can_share: bool,
    ) {
        // A difference of up to 30% is not worth a note.
        if graph.takes <= graph.with_workers * 13 / 10 {
            return;
        }
        let times = graph.takes.as_secs_f64() / graph.with_workers.as_secs_f64();
        let by = if are_durations_known {
            "by the durations of earlier runs"
        } else {
            "if all stacks take equally long"
        };
        let what =
            format!("{by}, these jobs take {times:.1} times as long as `--workers {wanted}`");
        self.notices.note(&if can_share {
            what
        } else {
            format!("{what}, which needs a state in a bucket")
        });
    }

    /// Returns the path of the project from the directory of the checkout, and from there that of the directory in which
    /// `orch` is to run. `make` runs in the directory where it starts.
    fn directories_of_jobs(&self, engine: Engine) -> Result<(String, String)> {
        if engine == Engine::Make {
            return Ok((String::new(), String::new()));
        }
        let prefix = match Repository::open(&self.project.root) {
            Ok(repository) => repository.prefix().to_owned(),
            Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => String::new(),
            Err(error) => return Err(Error::described("failed to find the repository", error)),
        };
        let inside = self.directory.relative().trim_matches('.');
        Ok((prefix, inside.to_owned()))
    }
}

/// Joins the parts of a path that are not empty; `None` if all are.
fn joined(parts: &[&str]) -> Option<String> {
    let parts = parts.iter().map(|part| part.trim_matches('/'));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Refuses a text that an engine or a shell might change in a pipeline.
fn plain<'t>(what: &str, text: &'t str) -> Result<&'t str> {
    let is_special = |c: char| c.is_control() || "$`\"'\\#%!{}[]<>|&;*?()".contains(c);
    let is_outside = text.starts_with(' ') || text.ends_with(' ') || text.is_empty();
    if is_outside || text.contains(is_special) {
        let problem = format!(
            "{what}, `{}`, has characters that pipelines change",
            printable(text)
        );
        let hint = "use letters, digits, `/`, `.`, `-` and `_`";
        return Err(Error::usage(problem).hint(hint));
    }
    Ok(text)
}

/// Returns the error that a retry on GitLab would repeat follow-ups.
fn repeated_follow_ups(task: &OrderedTask) -> Error {
    let off = match task {
        OrderedTask::Command { .. } => "set `run = \"off\"` in `config { policies {} }`",
        OrderedTask::Plan { .. } => "make the plan with `--policies=off`",
    };
    Error::refused(
        "GitLab gives a retried last job no results of its first attempt, so that it would run the follow-ups of policies again",
    )
    .hint(format!("keep the state in a bucket, or {off}"))
}

fn unwritable(error: ExportError) -> Error {
    let fix = error.fix();
    let kind = match error {
        ExportError::Template(_) => ErrorKind::Configuration,
        ExportError::Limit { .. } => ErrorKind::Refused,
    };
    let error = Error::new(kind, error);
    match fix {
        Some(fix) => error.hint(fix),
        None => error,
    }
}

/// Returns the SHA-256 of a file, in lower-case hexadecimal.
pub fn sha256_of(file: &Path) -> Result<String> {
    let failed = || format!("failed to read `{}`", printable(&file.to_string_lossy()));
    let mut opened = File::open(file).context(failed())?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match opened.read(&mut buffer).context(failed())? {
            0 => break,
            length => hasher.update(&buffer[..length]),
        }
    }
    Ok(hex(&hasher.finalize()))
}
