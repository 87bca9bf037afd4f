//! Carries a plan out: checks that it still holds, locks the state, runs its turns.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use orch::change::{Counted, causes_since};
use orch::git::CommitId;
use orch::path::StackPath;
use orch::plan::apply::{self, ApplyOptions, Applying, Surroundings};
use orch::plan::archive::Archive;
use orch::plan::entry::PlanMode;
use orch::plan::stale::{Grounds, Present, Progress, Stale};
use orch::plan::{DriverRun, Purpose, SavedPlan, begin};
use orch::printable::printable;
use orch::project::Problems;
use orch::project::discover::RootRule;
use orch::project::environment::Environments;
use orch::project::stack::StackIndex;
use orch::run::begun::{BegunRun, Circumstances};
use orch::run::execute::Outlet;
use orch::run::request::{Typed, new_id};
use orch::run::run_command::RunCommand;
use orch::run::safeguard::Disabled;
use orch::selection::select::Selection;
use orch::state::document::{Action, Document};

use super::approve::{Approval, approve};
use super::record::{Recording, upstream};
use super::turns::{Todo, todo};
use super::{CarryingArgs, OutputArg};
use crate::program::commands::plan::PlanningArgs;
use crate::program::commands::plan::ask::{cannot_ask, private_folder};
use crate::program::commands::plan::left_behind;
use crate::program::commands::plan::subjects::Drivers;
use crate::program::commands::run::command::CommandLines;
use crate::program::commands::run::output::{How, Output, Show, Shown, is_nobody_there};
use crate::program::commands::run::{begin_error, holder};
use crate::program::commands::state::held::{self, LockRequest, Lockable, StateLock, follow_moves};
use crate::program::commands::{CyclesAre, Loaded, ReadStatus, Reads, count, host_environment};
use crate::program::console;
use crate::program::error::{ProgramError, Result};
use crate::program::exit::ExitStatus;

/// Where the plans of the tools are.
pub(super) enum Plans<'a> {
    /// In files, as the plan counts them.
    Files(&'a [PathBuf]),
    /// In the file with the whole plan.
    Archive(&'a Archive),
}

impl Plans<'_> {
    /// Puts one of them at a place.
    fn put(&self, plan: usize, to: &Path) -> io::Result<()> {
        match self {
            Plans::Files(files) => {
                let from = files.get(plan).ok_or(io::ErrorKind::NotFound)?;
                fs::rename(from, to)
            }
            Plans::Archive(archive) => archive.extract(plan, to).map_err(io::Error::other),
        }
    }
}

/// A plan to carry out.
pub(super) struct Carrying<'a> {
    pub(super) chdir: &'a [PathBuf],
    pub(super) args: &'a CarryingArgs,
    pub(super) planning: &'a PlanningArgs,
    pub(super) saved: &'a SavedPlan,
    pub(super) plans: Plans<'a>,
    pub(super) approval: Approval,
    pub(super) allows_new_changes: bool,
    /// Whether it goes on with what has begun.
    pub(super) resumes: bool,
    /// The safeguards that are disabled, if they have not been checked.
    pub(super) disabled: Option<&'a Disabled>,
}

impl Carrying<'_> {
    /// Carries the plan out, of which something may have been done.
    pub(super) fn carry_out(&self, mut progress: Progress) -> Result<ExitStatus> {
        let mut loaded = match self.load()? {
            Ok(loaded) => loaded,
            Err(status) => return Ok(status),
        };
        let uncommitted = loaded.uncommitted();
        loaded.digest_grounds()?;
        let mut document = None;
        if loaded.project.settings.state.is_some() {
            let mut read = loaded.read_and_digest(Counted::default())?;
            follow_moves(&loaded.project.stacks, &mut read);
            document = Some(read);
        }
        self.check(&loaded, document.as_ref(), &mut progress)?;
        let lockable = match &document {
            Some(document) => Some(Lockable::new(&mut loaded, document)?),
            None => None,
        };
        let to_do = todo(&loaded.project, self.saved, document.as_ref(), &progress);
        let is_kept = document.is_some();
        if to_do.stacks.is_empty() && (to_do.records.is_empty() || !is_kept) {
            console::note("there is nothing to do");
            return Ok(ExitStatus::Success);
        }
        if progress.has_begun && !self.resumes {
            return Err(
                ProgramError::refused("this plan has begun to be carried out")
                    .hint("to go on with it, add `--resume`; or make a new plan"),
            );
        }
        self.check_left_behind(&loaded, document.as_ref())?;
        approve(to_do.n_destroys(), self.approval)?;
        let run = new_id(&loaded.project.root);
        let folder = private_folder(&loaded)?;
        let environments = Environments::new(&loaded.project, host_environment());
        let extra: Vec<_> = self.saved.extra.iter().map(|word| word.0.clone()).collect();
        let options = ApplyOptions {
            run: &run,
            folder: folder.path(),
            init: self.planning.init,
            extra: &extra,
            jobs: self.planning.jobs(),
            on_error: self.args.on_error(),
            allows_new_changes: self.allows_new_changes,
            is_again: self.resumes,
            keeps_state: is_kept,
        };
        let known = upstream(
            &loaded.project,
            &loaded.graph,
            document.as_ref(),
            &to_do,
            &run,
        );
        let prepared = apply::prepare(
            Surroundings {
                project: &loaded.project,
                graph: &loaded.graph,
                document: document.as_ref(),
                environments: &environments,
            },
            to_do.stacks.clone(),
            known,
            &options,
            &mut |stack, to| self.put_plan(stack, to),
        );
        let applying = match prepared {
            Ok(applying) => applying,
            Err(cannot) => return cannot_ask(&loaded, cannot),
        };
        let lock = match lockable {
            Some(lockable) => {
                let request = LockRequest {
                    run: &run,
                    action: match self.saved.plan.mode {
                        PlanMode::Destroy => &Action::Destroy,
                        PlanMode::Normal | PlanMode::RefreshOnly => &Action::Apply,
                    },
                    timeout: self.args.lock_timeout.unwrap_or_default(),
                };
                let lock = lockable.lock(&loaded.project, &request)?;
                let before = progress.clone();
                self.check(&loaded, Some(lock.document()), &mut progress)?;
                if progress.done != before.done {
                    return Err(ProgramError::refused(
                        "another run has carried out a part of this plan just now",
                    )
                    .hint("run the same command again"));
                }
                Some(lock)
            }
            None => None,
        };
        let circumstances = Circumstances {
            is_recorded: loaded.rule != RootRule::WorkingDirectory,
            allow_concurrent: false,
            uncommitted,
            is_reported: false,
            events: None,
            inbox: None,
        };
        self.run(&loaded, &run, applying, &to_do, lock, circumstances)
    }

    /// Loads the project as it is now; the exit status if the plan cannot be carried out in it.
    fn load(&self) -> Result<std::result::Result<Loaded, ExitStatus>> {
        let reads = Reads::CONFIGURATION
            .with_listing()
            .with_status(ReadStatus::Exact);
        let mut loaded = Loaded::new(self.chdir, None, reads)?;
        if let Some(status) = loaded.check(None)? {
            return Ok(Err(status));
        }
        if self.disabled.is_none() {
            // It has just been planned: these have been shown.
            loaded.problems = Problems::default();
        }
        let entries = self.saved.plan.entries.iter();
        let stacks = entries.filter_map(|entry| loaded.project.stacks.find(&entry.stack));
        let selection = Selection::recorded(stacks.collect::<Vec<_>>());
        loaded.check_cycles(CyclesAre::ErrorsWithin(&selection));
        if self.disabled.is_none() && !loaded.problems.has_errors() {
            loaded.problems = Problems::default();
        }
        if let Some(status) = loaded.report()? {
            return Ok(Err(status));
        }
        if let Some(disabled) = self.disabled
            && !loaded.is_safe(disabled)
        {
            return Ok(Err(ExitStatus::Refused));
        }
        Ok(Ok(loaded))
    }

    /// Checks that the plan still holds.
    fn check(
        &self,
        loaded: &Loaded,
        document: Option<&Document>,
        progress: &mut Progress,
    ) -> Result<()> {
        let project = &loaded.project;
        let present = Present {
            project,
            graph: &loaded.graph,
            digests: loaded.grounds.as_deref(),
            document,
        };
        let drivers = Drivers::new(loaded, document);
        let driver = |stack: StackIndex| Some(drivers.of(stack)?.name.to_owned());
        let mut grounds = Grounds::new(present);
        let Err(stale) = grounds.check(self.saved, &driver, progress) else {
            return Ok(());
        };
        Err(explained(&self.named(loaded, stale)))
    }

    /// Refuses to destroy what something that stays runs after.
    fn check_left_behind(&self, loaded: &Loaded, document: Option<&Document>) -> Result<()> {
        if self.saved.plan.mode != PlanMode::Destroy {
            return Ok(());
        }
        match left_behind::refused(&loaded.left_behind(&self.saved.plan, document)) {
            Some(refused) => Err(refused),
            None => Ok(()),
        }
    }

    /// Names the files that differ from the commit of the plan, as far as this clone has it.
    fn named(&self, loaded: &Loaded, mut stale: Vec<Stale>) -> Vec<Stale> {
        let commit = self.saved.plan.commit.as_deref().and_then(CommitId::new);
        let differing = stale.iter().filter_map(|why| match why {
            Stale::Inputs(path, _) => loaded.project.stacks.find(path),
            _ => None,
        });
        let differing: Vec<StackIndex> = differing.collect();
        let Some(commit) = commit.filter(|_| !differing.is_empty()) else {
            return stale;
        };
        let causes = loaded.with_present(Counted::default(), |present| {
            causes_since(present, &commit, &differing)
        });
        // A commit that is not here explains nothing.
        let causes = causes
            .ok()
            .and_then(std::result::Result::ok)
            .unwrap_or_default();
        for why in &mut stale {
            if let Stale::Inputs(path, part) = why
                && let Some(stack) = loaded.project.stacks.find(path)
                && let Some(cause) = causes.get(&stack)
            {
                cause.file.path.relative().clone_into(part);
            }
        }
        stale
    }

    /// Puts the plan of the tool of a stack that was shown at a place.
    fn put_plan(&self, stack: &StackPath, to: &Path) -> io::Result<()> {
        let saved = self.saved.stack(stack);
        let plan = saved.and_then(|saved| saved.plan);
        self.plans.put(plan.ok_or(io::ErrorKind::NotFound)?, to)
    }

    /// Runs the turns.
    fn run(
        &self,
        loaded: &Loaded,
        run: &str,
        applying: Applying<'_>,
        to_do: &Todo<'_>,
        mut lock: Option<StateLock>,
        circumstances: Circumstances,
    ) -> Result<ExitStatus> {
        let Applying {
            execution,
            tasks,
            mut director,
            turns,
        } = applying;
        let n_turns = turns.len();
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
            inbox: lock.as_mut().and_then(StateLock::inbox),
            ..circumstances
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
                };
                let drivers = director.drivers();
                let plan = recording.plan(&turns, &drivers, to_do, director.upstream());
                lock.begin(begun, plan, &loaded.project, run)?
            }
        };
        let output = self.output(loaded, run, &begun);
        let (begun, mut output) = held::or_give_up(begun, output)?;
        let ended = begun.carry_out(output.streams(), &mut [&mut output], Some(&mut director));
        output.end();
        if let Some(problem) = &ended.problem {
            console::warning(&problem.to_string());
        }
        for (stack, problem) in director.unread() {
            let stack = printable(stack.as_str());
            console::warning(&format!("{stack}: {problem}"));
        }
        let is_lost = held::is_lost(ended.state.as_ref(), run);
        if !to_do.records.is_empty() && !is_lost && ended.state.is_some() {
            let stacks = count(to_do.records.len(), "stack");
            console::note(&format!("{stacks} put on record"));
        }
        let summary = &ended.summary;
        if summary.stuck().next().is_some() {
            return Err(anyhow!("something could not start although nothing was running; this is a bug in orch, please report it").into());
        }
        if n_turns > 0 && !summary.is_success() && summary.signal.is_none() {
            console::note("what has not been done is planned by the next `orch plan`");
        }
        if is_lost && summary.signal.is_none() {
            return Ok(ExitStatus::External);
        }
        Ok(ExitStatus::Run(summary.exit_status()))
    }

    /// Begins to show the run.
    fn output(&self, loaded: &Loaded, run: &str, begun: &BegunRun) -> Result<Output> {
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
                is_quiet: false,
                jobs,
                run_id: run,
                logs: begun.folder().map(|folder| folder.join("logs")),
                past: &HashMap::new,
            },
        )
    }
}

/// Says why a plan does not hold any more.
fn explained(stale: &[Stale]) -> ProgramError {
    /// How many reasons are told.
    const MOST: usize = 20;
    let told = stale.iter().take(MOST).map(|why| format!("\n  {why}"));
    let mut text: String = told.collect();
    if stale.len() > MOST {
        text += &format!("\n  and {} more", stale.len() - MOST);
    }
    ProgramError::refused(format!(
        "the plan does not hold any more, and nothing was run:{text}"
    ))
    .hint("make a new plan")
}
