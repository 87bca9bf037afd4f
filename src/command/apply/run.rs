//! The run that applies a plan: journaled, shown, and recorded in the state.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::Apply;
use super::job::remove_sent;
use super::policies::PreparedApplyPolicies;
use super::unconfirmed::Unconfirmed;
use super::verified::VerifiedPlan;
use crate::command::{RunSession, ToolRun, annotate, is_lost};
use crate::error::{Error, Result};
use crate::exit::ExitStatus;
use crate::notice::Notices;
use crate::path::StackPath;
use crate::plan::apply::{KeptGeneration, PreparedApply};
use crate::plan::entry::PlanMode;
use crate::plan::progress::ApplyRun;
use crate::plan::verify::{ApplyRecording, RemainingWork};
use crate::plan::{DriverRun, Purpose, begin};
use crate::printable::{command_line, count, listed, printable};
use crate::project::discover::RootRule;
use crate::run::event::{Ending, Failure, Outcome, RunSummary, Sink};
use crate::run::execute::{Execution, Task};
use crate::run::recording::Concurrency;
use crate::run::request::Invocation;
use crate::run::started::BeginOptions;
use crate::run::state_lock::StateLock;
use crate::run::turn::TurnIndex;

/// How many partially applied stacks are named.
const MAX_NAMED: usize = 3;

/// Warns of old generations that were kept because stacks may still use them.
fn warn_of_kept(notices: &Notices, kept: &[KeptGeneration]) {
    for KeptGeneration { path, user } in kept {
        let (shown, of) = (printable(path.as_str()), path.current());
        let user = printable(user.as_str());
        notices.warning(&format!(
            "`{shown}` is not destroyed: {user} may still use it, and had no changes"
        ));
        let release = ["orch", "state", "release", of.as_str()].map(Into::into);
        notices.help(&format!(
            "compute a variable of {user} from `stacks[\"{of}\"].generation`, so that it uses the new generation; or, if nothing uses the old one, run `{}`",
            command_line(&release)
        ));
    }
}

/// Warns of stacks that were not replaced although their triggers changed: without a state, the
/// next plan does not know.
fn warn_of_lost_triggers(notices: &Notices, open: &[(StackPath, String)]) {
    for (path, trigger) in open {
        notices.warning(&format!(
            "`{}` was not replaced although {} has changed, and without a state the next plan does not know that",
            printable(path.as_str()),
            printable(trigger)
        ));
        let replace = ["orch", "apply", "--replace", path.as_str()].map(Into::into);
        notices.help(&format!("to replace it, run `{}`", command_line(&replace)));
    }
}

impl Apply<'_> {
    /// Runs the turns. Returns the exit status, and the changes that lack approval.
    pub(super) fn run(
        &self,
        verified: &VerifiedPlan,
        run: &str,
        applying: PreparedApply<'_, '_>,
        to_do: &RemainingWork<'_>,
        mut lock: Option<StateLock>,
        followed: Option<PreparedApplyPolicies>,
    ) -> Result<(ExitStatus, Unconfirmed)> {
        let context = &verified.context;
        let removed = to_do.removed.iter();
        let removed: Vec<StackPath> = removed.map(|it| it.entry.stack.clone()).collect();
        let PreparedApply {
            execution,
            tasks,
            mut director,
            turns,
            ..
        } = applying;
        let is_followed = followed.is_some();
        let apply_run = ApplyRun {
            id: run,
            is_work: !turns.is_empty() && !execution.is_rejected,
            is_followed,
        };
        let work = (execution, tasks);
        let mut session = self.begin(verified, run, work, followed.as_ref(), lock.as_mut())?;
        let root = &context.project.root;
        let applied = verified.applied.as_ref();
        let progress = applied.map(|applied| applied.begin(root, &apply_run));
        let mut progress = progress.transpose()?;
        if let Some(lock) = lock {
            let generations = Arc::new(self.generations(context));
            let environments = context.evaluator().in_generations(generations);
            let recording = ApplyRecording {
                environments: &environments,
                project: &context.project,
                lock: &lock,
                saved: self.saved,
                run,
                removed: &removed,
            };
            let drivers = director.drivers();
            let mut plan = recording.plan(&turns, &drivers, to_do, director.used_outputs());
            if let Some(followed) = &followed {
                plan.add_followups(followed.records(&environments, &lock));
            }
            session.keep_state(lock, plan)?;
        }
        session.keep_release_samples(&self.release_samples);
        let folder = session.folder().map(Path::to_owned);
        let is_quiet = turns.is_empty() && followed.is_none();
        if let Some(followed) = followed {
            session.follow(followed.prepared)?;
        }
        let output = self.terminal.output(&ToolRun {
            root,
            id: run,
            folder: folder.as_deref(),
            purpose: Purpose::Apply,
            jobs: self.jobs,
            is_quiet,
        })?;
        let mut sinks: Vec<&mut dyn Sink> = Vec::new();
        sinks.extend(progress.as_mut().map(|progress| progress as &mut dyn Sink));
        let (ended, output) = session.execute(output, &mut sinks, Some(&mut director))?;
        context.show_failed(director.failed_checks().iter());
        for (stack, problem) in director.unread() {
            self.notices
                .warning(&format!("{}: {problem}", printable(stack.as_str())));
        }
        self.note_partial(verified, director.partial());
        let summary = &ended.summary;
        let sequence = turns.iter().map(|&(stack, _)| stack.here());
        annotate(context, &sequence.collect::<Vec<_>>(), summary);
        let is_lost = is_lost(context, &ended, run);
        if !is_lost && ended.state.is_some() {
            let (gone, put): (Vec<_>, Vec<_>) = to_do.records.iter().partition(|it| it.is_missing);
            for (records, what) in [(put, "recorded"), (gone, "removed from the state")] {
                if !records.is_empty() {
                    self.notices
                        .note(&format!("{} {what}", count(records.len(), "stack")));
                }
            }
        }
        if summary.stuck().next().is_some() {
            return Err(Error::external(
                "a stack could not start although nothing was running; this is a bug in orch, please report it",
            ));
        }
        self.note_rest(summary, &director.superseded());
        warn_of_kept(&self.notices, director.kept());
        if verified.document.is_none() {
            warn_of_lost_triggers(&self.notices, &director.open_triggers());
        }
        let status = match summary.exit_status() {
            _ if is_lost && summary.signal.is_none() => ExitStatus::External,
            4 => ExitStatus::Refused,
            status => ExitStatus::Run(status),
        };
        remove_sent(root, run, &ended, output);
        let unconfirmed = Unconfirmed {
            stacks: director.unconfirmed(),
            had_turns: director.had_turns(),
            folder,
            is_interrupted: summary.signal.is_some(),
            refuses_destroy: director.refuses_destroy(),
        };
        Ok((status, unconfirmed))
    }

    /// Begins the run, before its first turn.
    fn begin<'v>(
        &self,
        verified: &'v VerifiedPlan,
        run: &str,
        (execution, tasks): (Execution, Vec<Vec<Task>>),
        followed: Option<&PreparedApplyPolicies>,
        lock: Option<&mut StateLock>,
    ) -> Result<RunSession<'v>> {
        let context = &verified.context;
        let driver_run = DriverRun {
            id: run,
            purpose: Purpose::Apply,
            plan: Some(&self.saved.plan.id),
            on_error: self.on_error,
            jobs: self.jobs,
            invocation: Invocation {
                arguments: std::env::args_os().skip(1).collect(),
                directory: context.directory.clone(),
            },
            base: None,
            policies: followed.map(|it| it.prepared.record.clone()),
            resumes: followed.and_then(|it| it.continued.clone()),
            part_of: self.ended_order.map(|it| it.order.run.as_str()),
        };
        let circumstances = BeginOptions {
            is_recorded: context.rule != RootRule::WorkingDirectory,
            notices: &context.notices,
            beside: match self.part {
                Some(_) => Concurrency::Jobs,
                None => Concurrency::None { has_flag: false },
            },
            uncommitted: verified.uncommitted.clone(),
            is_reported: false,
            events: None,
            results: self.results(context)?,
            inbox: lock.and_then(StateLock::inbox),
        };
        let begun = begin(
            execution,
            tasks,
            &driver_run,
            &context.project,
            &context.references,
            circumstances,
        );
        Ok(RunSession::new(context, begun?))
    }

    /// Notes which stacks are not recorded as applied or destroyed, although their runs succeeded.
    fn note_partial(&self, verified: &VerifiedPlan, partial: &[StackPath]) {
        if verified.document.is_none() || partial.is_empty() {
            return;
        }
        let names = partial.iter().map(|stack| printable(stack.as_str()));
        let names = listed(names, MAX_NAMED);
        let options = &self.saved.plan.options.tool_options;
        let with = if options.is_empty() {
            String::new()
        } else {
            format!(", with `{}`", printable(&options.join(" ")))
        };
        let done = match self.saved.plan.mode {
            PlanMode::Destroy => "destroyed",
            PlanMode::Normal | PlanMode::RefreshOnly => "applied",
        };
        self.notices.note(&format!(
            "only a part of {names} was {done}{with}, so it is not recorded as {done}"
        ));
    }

    /// Notes how to continue, if work is left that no later turn has done.
    fn note_rest(&self, summary: &RunSummary, superseded: &BTreeSet<TurnIndex>) {
        // A follow-up that a limit or a failed policy prevents is not left over.
        let left: Vec<&Ending> = summary
            .undone()
            .filter(|it| !superseded.contains(&it.turn))
            .collect();
        if !left.is_empty() {
            let is_refused =
                |ending: &&Ending| matches!(ending.outcome, Outcome::Failed(Failure::Refused(_)));
            let file = self.file.filter(|_| !left.iter().any(is_refused));
            self.notices.note(&if self.part.is_some() {
                "run the job again to continue: it skips stacks that are done".to_owned()
            } else if self.ended_order.is_some() {
                "run `orch finish` again to continue".to_owned()
            } else if let Some(file) = file {
                let file = command_line(&[file.into()]);
                format!("`orch apply {file} --resume` continues this plan")
            } else if self.saved.plan.mode == PlanMode::Normal {
                "`orch plan` shows what is left".to_owned()
            } else {
                "run the same command again to continue".to_owned()
            });
        }
    }
}
