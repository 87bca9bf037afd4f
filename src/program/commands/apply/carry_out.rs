//! Carries a plan out: asks for approval, locks the state, runs its turns.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use orch::path::StackPath;
use orch::plan::apply::{self, ApplyOptions, Applying, Surroundings};
use orch::plan::code::{Code, Codes, RemovedCode};
use orch::plan::entry::PlanMode;
use orch::plan::{DriverRun, Purpose, begin};
use orch::printable::printable;
use orch::project::discover::RootRule;
use orch::project::namespaces::Generations;
use orch::project::stack::StackIndex;
use orch::run::begun::{BegunRun, Circumstances};
use orch::run::event::{Ending, Failure, Outcome};
use orch::run::execute::Outlet;
use orch::run::request::{Typed, new_id};
use orch::run::run_command::RunCommand;
use orch::state::document::Action;

use super::OutputArg;
use super::approve::approve;
use super::carrying::Carrying;
use super::check::Now;
use super::record::{Recording, upstream};
use super::turns::Todo;
use crate::program::commands::commits::Commits;
use crate::program::commands::plan::ask::{FOLDER, cannot_ask};
use crate::program::commands::private_folder::PrivateFolder;
use crate::program::commands::run::command::CommandLines;
use crate::program::commands::run::output::{How, Output, Show, Shown, is_nobody_there};
use crate::program::commands::run::{annotate, begin_error, holder};
use crate::program::commands::state::held::{self, LockRequest, Lockable, StateLock, check_keys};
use crate::program::commands::{Loaded, count};
use crate::program::console;
use crate::program::error::{ErrorKind, ProgramError, Result};
use crate::program::exit::ExitStatus;

impl Carrying<'_> {
    /// Carries the plan out, as far as that has not been done.
    pub(super) fn carry_out(&self, mut commits: Commits) -> Result<ExitStatus> {
        let mut now = match self.now(None, None)? {
            Ok(now) => now,
            Err(status) => return Ok(status),
        };
        let is_left = self.is_left(&now)?;
        // What only brings the record up to date needs no approval.
        let to_do = now.to_do(self.saved);
        let is_asked = is_left && !to_do.is_silent();
        let n_destroys = to_do.n_destroys();
        if is_asked && !self.approval.covers(n_destroys) {
            // Whoever is asked may end the process, which would leave the checkouts behind.
            commits = Commits::default();
        }
        let was_asked = is_asked && approve(n_destroys, self.approval)?;
        let run = new_id(&now.loaded.project.root);
        let mut lock = None;
        if let Some(document) = &now.document {
            // Who was killed may have left the lock, although nothing is left to do.
            let is_locked = self.resumes && document.lock.is_some();
            if is_left || is_locked {
                let lockable = Lockable::new(&mut now.loaded, document)?;
                let lockable = lockable.following(self.saved.moves());
                lock = match self.lock(&now, lockable, &run, is_left) {
                    Ok(lock) => Some(lock),
                    // Another run holds it, which needs nothing from this one.
                    Err(error) if !is_left && error.kind() == ErrorKind::Refused => None,
                    Err(error) => return Err(error),
                };
            }
        }
        if !is_left {
            console::note("there is nothing to do");
            return Ok(ExitStatus::Success);
        }
        // Whoever was asked, or waited for the lock, may have waited for hours.
        if was_asked || lock.is_some() {
            now = match self.now(Some(&now), lock.as_mut())? {
                Ok(now) => now,
                Err(status) => return Ok(status),
            };
            if !self.is_left(&now)? {
                console::note("another run has done it meanwhile: there is nothing to do");
                return Ok(ExitStatus::Success);
            }
        }
        self.prepare_and_run(&now, &run, lock, commits)
    }

    /// Returns whether anything is left to do.
    ///
    /// # Errors
    ///
    /// If that may not be done.
    fn is_left(&self, now: &Now) -> Result<bool> {
        if now.to_do(self.saved).is_empty() {
            return Ok(false);
        }
        if now.progress.has_begun && !self.resumes {
            let what = "this plan has begun to be carried out";
            return Err(ProgramError::refused(what)
                .hint("to go on with it, add `--resume`; or make a new plan"));
        }
        self.check_left_behind(&now.loaded, now.document.as_ref())?;
        Ok(true)
    }

    fn prepare_and_run(
        &self,
        now: &Now,
        run: &str,
        lock: Option<StateLock>,
        mut commits: Commits,
    ) -> Result<ExitStatus> {
        let loaded = &now.loaded;
        let document = now.document.as_ref();
        let mut to_do = now.to_do(self.saved);
        let mut known = upstream(&loaded.project, &loaded.graph, document, &to_do, run);
        to_do.leave_out_what_is_on_record(&loaded.project, document, &mut known);
        let checker = match self.check_conditions(loaded, document, &mut to_do)? {
            Ok(checker) => checker,
            Err(status) => return Ok(status),
        };
        if let Some(document) = document {
            let stacks: Vec<StackIndex> = to_do.recorded().collect();
            check_keys(&loaded.project.stacks, document, &stacks)?;
        }
        let folder = PrivateFolder::of(loaded, FOLDER)?;
        let generations = Arc::new(self.generations(loaded));
        let environments = loaded.evaluator().in_generations(generations);
        let extra: Vec<_> = self.saved.extra.iter().map(|word| word.0.clone()).collect();
        let mut removals = now.removals(&to_do);
        removals.check_out(loaded, &mut commits)?;
        let of_commits = removals.environments(&commits);
        let codes = removals.codes(loaded, document, &commits, &of_commits, &extra);
        self.check_removals(now, &to_do, &mut removals, &codes)?;
        let of_commands: Vec<RemovedCode<'_, '_>> = codes
            .iter()
            .map(|code| code.code(&removals.all[code.removal]))
            .collect();
        let removed = codes.iter().zip(&to_do.removed).enumerate();
        let removed = removed.map(|(position, (code, it))| it.stack(position, code.driver));
        let stacks: Vec<_> = to_do.stacks.iter().cloned().chain(removed).collect();
        let with_generations = removals.with_generations(document);
        let options = ApplyOptions {
            run,
            folder: folder.path(),
            init: self.planning.init,
            extra: &extra,
            jobs: self.planning.jobs(),
            on_error: self.args.on_error(),
            allows_new_changes: self.allows_new_changes,
            is_again: self.resumes,
            keeps_state: document.is_some(),
            done: &to_do.done,
        };
        let prepared = apply::prepare(
            Surroundings {
                codes: Codes {
                    tree: Code {
                        project: &loaded.project,
                        environments: &environments,
                    },
                    removed: &of_commands,
                },
                graph: &loaded.graph,
                references: &loaded.references,
                document: with_generations.as_ref().or(document),
            },
            &stacks,
            known,
            &options,
            &mut |stack, to| self.put_plan(stack, to),
        );
        match prepared {
            Ok(mut applying) => {
                if let Some(checker) = checker {
                    applying.director.check_with(checker);
                }
                self.run(now, run, applying, &to_do, lock)
            }
            Err(cannot) => cannot_ask(loaded, cannot),
        }
    }

    /// Returns the generations that the commands of stacks are for.
    fn generations(&self, loaded: &Loaded) -> Generations {
        let entries = self.saved.plan.entries.iter();
        let made = entries.filter_map(|entry| Some((entry.stack.clone(), entry.generation?)));
        loaded.generations.with(made)
    }

    /// Locks the state; may wait for the lock.
    fn lock(&self, now: &Now, lockable: Lockable, run: &str, may_wait: bool) -> Result<StateLock> {
        let timeout = self.args.lock_timeout.filter(|_| may_wait);
        let request = LockRequest {
            run,
            action: match self.saved.plan.mode {
                PlanMode::Destroy => &Action::Destroy,
                PlanMode::Normal | PlanMode::RefreshOnly => &Action::Apply,
            },
            timeout: timeout.unwrap_or_default(),
        };
        lockable.lock(&now.loaded.project, &request)
    }

    /// Puts the plan of the tool of a stack that was shown at a place.
    fn put_plan(&self, stack: &StackPath, to: &Path) -> io::Result<()> {
        let saved = self.saved.stack(stack);
        let plan = saved.and_then(|saved| saved.plan);
        let plan = plan.ok_or(io::ErrorKind::NotFound)?;
        self.archive.extract(plan, to).map_err(io::Error::other)
    }

    /// Runs the turns.
    fn run(
        &self,
        now: &Now,
        run: &str,
        applying: Applying<'_>,
        to_do: &Todo<'_>,
        mut lock: Option<StateLock>,
    ) -> Result<ExitStatus> {
        let loaded = &now.loaded;
        let removed = to_do.removed.iter().map(|it| it.entry.stack.clone());
        let removed: Vec<StackPath> = removed.collect();
        let Applying {
            execution,
            tasks,
            mut director,
            turns,
        } = applying;
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
        };
        let circumstances = Circumstances {
            is_recorded: loaded.rule != RootRule::WorkingDirectory,
            allow_concurrent: false,
            uncommitted: now.uncommitted.clone(),
            is_reported: false,
            events: None,
            inbox: lock.as_mut().and_then(StateLock::inbox),
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
        let begun = match lock {
            None => begun,
            Some(lock) => {
                let recording = Recording {
                    project: &loaded.project,
                    lock: &lock,
                    saved: self.saved,
                    run,
                    removed: &removed,
                };
                let drivers = director.drivers();
                let plan = recording.plan(&turns, &drivers, to_do, director.upstream());
                lock.begin(begun, plan, &loaded.project, run)?
            }
        };
        let output = self.output(loaded, run, &begun, turns.is_empty());
        let (begun, mut output) = held::or_give_up(begun, output)?;
        let ended = begun.carry_out(output.streams(), &mut [&mut output], Some(&mut director));
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
        let is_lost = held::is_lost(ended.state.as_ref(), run);
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
        if !summary.is_success() {
            let is_refused =
                |ending: &Ending| matches!(ending.outcome, Outcome::Failed(Failure::Refused(_)));
            console::note(if summary.endings.iter().any(is_refused) {
                "a new plan shows what was not carried out"
            } else if self.is_from_file {
                "`orch apply FILE --resume` goes on with this plan"
            } else {
                "`orch plan` shows what is left to do"
            });
        }
        if is_lost && summary.signal.is_none() {
            return Ok(ExitStatus::External);
        }
        Ok(ExitStatus::Run(summary.exit_status()))
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
