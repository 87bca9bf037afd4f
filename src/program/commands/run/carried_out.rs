//! `orch run` from its beginning on record to its exit status.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use orch::exit::ExitStatus;
use orch::printable::command_line;
use orch::project::discover::RootRule;
use orch::project::stack::StackIndex;
use orch::record::journal::UncommittedFile;
use orch::run::begun::{BegunRun, Circumstances};
use orch::run::event_stream::EventStream;
use orch::run::request::{PreparedRun, past_durations};
use orch::run::session::or_give_up;
use orch::run::state::StatePlan;

use super::command::CommandLines;
use super::followed::FollowedRun;
use super::output::{How, Output, Shown, advertise_colour};
use super::state::KeptState;
use super::{Ready, RunArgs, annotate, begin_error, exit_status, holder, report};
use crate::program::commands::Loaded;
use crate::program::commands::follower::keep_release_samples;
use crate::program::commands::reports::Reports;
use crate::program::console;
use crate::program::error::Result;

/// How a run is carried out.
pub(super) struct CarriedOut<'a> {
    pub(super) chdir: &'a [PathBuf],
    pub(super) args: &'a RunArgs,
    pub(super) reports: &'a Reports,
    pub(super) how: How,
    /// What is put on record in the state, if anything is.
    pub(super) kept: Option<(StatePlan, KeptState)>,
    /// The policies that follow it, if they do.
    pub(super) followed: Option<FollowedRun>,
    /// What was not committed, if that is known.
    pub(super) uncommitted: Option<Vec<UncommittedFile>>,
    /// Where else the lines of its journal go.
    pub(super) stream: Option<EventStream>,
}

impl CarriedOut<'_> {
    pub(super) fn carry_out(mut self, loaded: &Loaded, ready: Ready) -> Result<ExitStatus> {
        let Ready { mut run, command } = ready;
        if self.how.has_colours() {
            run.tasks.iter_mut().for_each(advertise_colour);
            if let Some(followed) = &mut self.followed {
                followed.tasks_mut().for_each(advertise_colour);
            }
        }
        if let Some(followed) = &self.followed {
            followed.complete(&mut run)?;
        }
        let (run_id, sequence, jobs) = (run.id.clone(), run.sequence.clone(), run.jobs());
        let circumstances = Circumstances {
            is_recorded: loaded.rule != RootRule::WorkingDirectory,
            allow_concurrent: self.args.resume.allow_concurrent,
            uncommitted: self.uncommitted,
            is_reported: !self.reports.is_empty(),
            events: self.stream,
            inbox: (self.kept.as_mut()).and_then(|(_, kept)| kept.inbox()),
        };
        let mut commands = CommandLines::new(&command, &sequence);
        let mut begun = begin(loaded, run, circumstances, self.kept)?;
        let root = &loaded.project.root;
        keep_release_samples(root, &begun, &run_id, &loaded.release_samples);
        if let Some(followed) = self.followed {
            commands = commands.with_followup(
                &followed.command,
                &loaded.project.stacks,
                followed.have_own_command(),
            );
            begun = followed.follow(root, begun)?;
        }
        begun.notes.iter().for_each(holder::show);
        let is_kept = begun.folder().is_some();
        let output = Output::new(
            root,
            Shown {
                how: self.how,
                commands,
                is_quiet: self.args.quiet,
                jobs,
                run_id: &run_id,
                logs: begun.folder().map(|folder| folder.join("logs")),
                past: &|| past_durations(root, &command),
            },
        );
        let (begun, mut output) = or_give_up(begun, output)?;
        let ended = begun.carry_out(output.streams()?, &mut [&mut output], None);
        let ended_output = output.end();
        if let Some(problem) = &ended.problem {
            console::warning(&problem.to_string());
        }
        let stacks: Vec<Option<StackIndex>> = sequence.iter().copied().map(Some).collect();
        annotate(loaded, &stacks, &ended.summary);
        let status = exit_status(loaded, &sequence, &run_id, &ended);
        let logs = ended_output.logs.as_ref();
        let are_written = report::ended(root, ended.record, logs, self.reports);
        let status = report::status(status?, are_written);
        let summary = &ended.summary;
        // A state that was lost has to be recovered first.
        if is_kept && !summary.is_state_lost && !summary.has_ended_well() {
            let resume = resuming(self.chdir, &run_id);
            // A failed write to stderr does not affect the run.
            _ = writeln!(console::stderr(), "orch: to run what is left: {resume}");
        }
        Ok(status)
    }
}

/// Returns the command that resumes a run.
fn resuming(chdir: &[PathBuf], run: &str) -> String {
    let mut words: Vec<OsString> = vec!["orch".into()];
    for directory in chdir {
        words.extend(["-C".into(), directory.into()]);
    }
    words.extend(["run".into(), "--resume".into(), run.into()]);
    command_line(&words)
}

/// Begins a run. If it does not begin, the lock of the state is free again.
fn begin(
    loaded: &Loaded,
    run: PreparedRun,
    circumstances: Circumstances,
    kept: Option<(StatePlan, KeptState)>,
) -> Result<BegunRun> {
    let id = run.id.clone();
    let begun = match run.begin(&loaded.project, &loaded.references, circumstances) {
        Ok(begun) => begun,
        Err(error) => return Err(begin_error(error, true)),
    };
    match kept {
        Some((plan, kept)) => kept.begin(begun, plan, &loaded.project, &id),
        None => Ok(begun),
    }
}
