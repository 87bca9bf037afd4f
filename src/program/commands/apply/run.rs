//! The run in which a plan is carried out: on record, shown, and put on record in the state.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use orch::exit::ExitStatus;
use orch::path::StackPath;
use orch::plan::apply::{Applying, KeptGeneration};
use orch::plan::progress::ApplyRun;
use orch::plan::verify::{Recording, Todo, unknown_progress};
use orch::plan::{DriverRun, Purpose, begin};
use orch::printable::{command_line, count, printable};
use orch::project::discover::RootRule;
use orch::project::stack::StackIndex;
use orch::record::journal::PoliciesRecord;
use orch::run::begun::{BegunRun, Circumstances};
use orch::run::event::{Ending, Failure, Outcome, RunSummary, Sink};
use orch::run::execute::{Execution, Outlet, Task};
use orch::run::request::Typed;
use orch::run::run_command::RunCommand;
use orch::run::session::{StateLock, or_give_up};
use orch::run::turn::TurnIndex;

use super::OutputArg;
use super::carrying::Carrying;
use super::check::Now;
use super::followed::FollowedApply;
use super::unconfirmed::Unconfirmed;
use crate::program::commands::Loaded;
use crate::program::commands::follower::keep_release_samples;
use crate::program::commands::run::command::CommandLines;
use crate::program::commands::run::output::{How, Output, Show, Shown, is_nobody_there};
use crate::program::commands::run::{annotate, begin_error, holder, is_lost};
use crate::program::console;
use crate::program::error::Result;

/// Warns of old generations that were kept because stacks may still use them.
fn warn_of_kept(kept: &[KeptGeneration]) {
    for KeptGeneration { path, user } in kept {
        let (shown, of) = (printable(path.as_str()), path.current());
        let user = printable(user.as_str());
        console::warning(&format!(
            "`{shown}` is not destroyed: {user} may still use it, and had no changes"
        ));
        let release = ["orch", "state", "release", of.as_str()].map(Into::into);
        console::help(&format!(
            "compute a variable of {user} from `stacks[\"{of}\"].generation`, so that it is applied with the new generation; or, if nothing uses the old one, run `{}`",
            command_line(&release)
        ));
    }
}

/// Warns of stacks that were not replaced although others have changed: without a state, nobody remembers that.
fn warn_of_lost_triggers(open: &[(StackPath, String)]) {
    for (path, trigger) in open {
        console::warning(&format!(
            "`{}` was not replaced although {} has changed, and the next plan cannot know that: the project keeps no state",
            printable(path.as_str()),
            printable(trigger)
        ));
        let replace = ["orch", "apply", "--replace", path.as_str()].map(Into::into);
        console::help(&format!("to replace it, run `{}`", command_line(&replace)));
    }
}

impl Carrying<'_> {
    /// Runs the turns. Returns the exit status, and what was left undone since nobody has approved it.
    pub(super) fn run(
        &self,
        now: &Now,
        run: &str,
        applying: Applying<'_, '_>,
        to_do: &Todo<'_>,
        mut lock: Option<StateLock>,
        followed: Option<FollowedApply>,
    ) -> Result<(ExitStatus, Unconfirmed)> {
        let loaded = &now.loaded;
        let removed = to_do.removed.iter().map(|it| it.entry.stack.clone());
        let removed: Vec<StackPath> = removed.collect();
        let Applying {
            execution,
            tasks,
            mut director,
            turns,
            ..
        } = applying;
        let policies = followed.as_ref().map(|it| it.record.clone());
        let apply_run = ApplyRun {
            id: run,
            is_work: !turns.is_empty() && !execution.is_rejected,
            is_followed: policies.is_some(),
        };
        let begun = self.begin(now, run, (execution, tasks), policies, lock.as_mut())?;
        let root = &loaded.project.root;
        let applied = now.applied.as_ref();
        let progress = applied.map(|applied| applied.begin(root, &apply_run));
        let progress = progress.transpose().map_err(unknown_progress);
        let (begun, mut progress) = or_give_up(begun, progress)?;
        let begun = match lock {
            None => begun,
            Some(lock) => {
                let generations = Arc::new(self.generations(loaded));
                let environments = loaded.evaluator().in_generations(generations);
                let recording = Recording {
                    environments: &environments,
                    project: &loaded.project,
                    lock: &lock,
                    saved: self.saved,
                    run,
                    removed: &removed,
                };
                let drivers = director.drivers();
                let mut plan = recording.plan(&turns, &drivers, to_do, director.upstream());
                if let Some(followed) = &followed {
                    plan.add_followups(followed.records(&environments, &lock));
                }
                lock.begin(begun, plan, &loaded.project, run)?
            }
        };
        keep_release_samples(&loaded.project.root, &begun, run, &self.release_samples);
        let folder = begun.folder().map(Path::to_owned);
        let is_quiet = turns.is_empty() && followed.is_none();
        let begun = match followed {
            Some(followed) => followed.follow(loaded, begun)?,
            None => begun,
        };
        let output = self.output(loaded, run, &begun, is_quiet);
        let (begun, mut output) = or_give_up(begun, output)?;
        let streams = output.streams()?;
        let mut sinks: Vec<&mut dyn Sink> = Vec::new();
        sinks.extend(progress.as_mut().map(|progress| progress as &mut dyn Sink));
        sinks.push(&mut output);
        let ended = begun.carry_out(streams, &mut sinks, Some(&mut director));
        output.end();
        if let Some(problem) = &ended.problem {
            console::warning(&problem.to_string());
        }
        loaded.show_failed(director.failed_checks().iter());
        for (stack, problem) in director.unread() {
            let stack = printable(stack.as_str());
            console::warning(&format!("{stack}: {problem}"));
        }
        let summary = &ended.summary;
        let sequence: Vec<Option<StackIndex>> =
            turns.iter().map(|&(stack, _)| stack.here()).collect();
        annotate(loaded, &sequence, summary);
        let is_lost = is_lost(ended.state.as_ref(), run);
        if !is_lost && ended.state.is_some() {
            let (gone, put): (Vec<_>, Vec<_>) = to_do.records.iter().partition(|it| it.is_gone);
            for (records, what) in [(put, "put on record"), (gone, "taken off the record")] {
                if !records.is_empty() {
                    console::note(&format!("{} {what}", count(records.len(), "stack")));
                }
            }
        }
        if summary.stuck().next().is_some() {
            return Err(anyhow!("something could not start although nothing was running; this is a bug in orch, please report it").into());
        }
        self.note_rest(summary, &director.superseded());
        warn_of_kept(director.kept());
        if now.document.is_none() {
            warn_of_lost_triggers(&director.open_triggers());
        }
        let status = match summary.exit_status() {
            _ if is_lost && summary.signal.is_none() => ExitStatus::External,
            0 if !director.kept().is_empty() => ExitStatus::Refused,
            status => ExitStatus::Run(status),
        };
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
    fn begin(
        &self,
        now: &Now,
        run: &str,
        (execution, tasks): (Execution, Vec<Vec<Task>>),
        policies: Option<PoliciesRecord>,
        lock: Option<&mut StateLock>,
    ) -> Result<BegunRun> {
        let loaded = &now.loaded;
        let driver_run = DriverRun {
            id: run,
            purpose: Purpose::Apply,
            plan: Some(&self.saved.plan.id),
            on_error: self.args.on_error(),
            jobs: self.planning.jobs(),
            typed: Typed {
                arguments: std::env::args_os().skip(1).collect(),
                directory: loaded.directory.clone(),
            },
            base: None,
            policies,
        };
        let circumstances = Circumstances {
            is_recorded: loaded.rule != RootRule::WorkingDirectory,
            allow_concurrent: false,
            uncommitted: now.uncommitted.clone(),
            is_reported: false,
            events: None,
            inbox: lock.and_then(StateLock::inbox),
        };
        let begun = begin(
            execution,
            tasks,
            &driver_run,
            &loaded.project,
            &loaded.references,
            circumstances,
        );
        let begun = begun.map_err(|error| begin_error(error, false))?;
        begun.notes.iter().for_each(holder::show);
        Ok(begun)
    }

    /// Says how to go on, if something is left to do besides what was done in later turns.
    fn note_rest(&self, summary: &RunSummary, superseded: &BTreeSet<TurnIndex>) {
        // What a limit or a failed policy has kept from following is not left to do.
        let left = summary.undone().filter(|it| !superseded.contains(&it.turn));
        let left: Vec<&Ending> = left.collect();
        if !left.is_empty() {
            let is_refused =
                |ending: &&Ending| matches!(ending.outcome, Outcome::Failed(Failure::Refused(_)));
            console::note(if left.iter().any(is_refused) {
                "a new plan shows what was not carried out"
            } else if self.is_from_file {
                "`orch apply FILE --resume` goes on with this plan"
            } else {
                "`orch plan` shows what is left to do"
            });
        }
    }

    /// Begins to show the run; a quiet one only if something goes wrong.
    fn output(
        &self,
        loaded: &Loaded,
        run: &str,
        begun: &BegunRun,
        is_quiet: bool,
    ) -> Result<Output> {
        let jobs = self.planning.jobs();
        let show = match self.args.output {
            OutputArg::Auto if jobs.get() == 1 && !is_nobody_there() => Show::Prefixed,
            OutputArg::Auto | OutputArg::Grouped => Show::Grouped,
            OutputArg::Prefixed => Show::Prefixed,
            OutputArg::Errors => Show::Errors,
            OutputArg::None => Show::None,
        };
        let outlet = if console::is_one_stream() {
            Outlet::OnePipe
        } else {
            Outlet::Pipes
        };
        let command = RunCommand::plain(vec!["apply".into()]);
        Output::new(
            &loaded.project.root,
            Shown {
                how: How::Captured { show, outlet },
                commands: CommandLines::new(&command, &[]),
                is_quiet,
                jobs,
                run_id: run,
                logs: begun.folder().map(|folder| folder.join("logs")),
                past: &HashMap::new,
            },
        )
    }
}
