//! The commands, one per file with its arguments.
//!
//! This file has their shared parts: finding and loading the project, and printing problems.

mod apply;
mod clone;
pub(crate) mod command_line;
mod completions;
mod create;
mod debug_show;
mod env;
mod eval;
mod export;
mod fmt;
mod follow_flags;
mod format;
mod globals;
mod graph;
mod help;
mod job;
mod list;
mod man;
mod neighbour_flags;
mod plan;
mod policy;
mod reports;
mod run;
mod runs;
mod script;
mod selection_flags;
mod show;
mod state;
mod step_summary;
mod stray_path;
mod terminal;
mod terramate;
mod trigger;
mod validate;
mod version;
mod why;

use std::io::{self, Write};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;
use orch::command::load::{self, ReadStatus, Reads, note_unmarked};
use orch::context::{ChangeQuery, Context, CyclesAre};
use orch::error::{ErrorKind, Refusal};
use orch::exit::ExitStatus;
use orch::project::Problems;
use orch::report::{JsonDocument, write_problems};
use orch::run::own_process::{KEEPER, WORKER};
use orch::workspace::LocatedProject;

pub(crate) use self::completions::answer as answer_completion;
pub(crate) use self::run::contradicting_flag;
pub(crate) use self::stray_path::stray_path;
pub(crate) use self::version::version;
use crate::program::commands::command_line::Late;
use crate::program::commands::command_line::LateCli;
use crate::program::error::Result;
use crate::program::{console, notices};

/// The commands, in the order in which the help shows them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command<const IS_LATE: bool> {
    List(Late<list::ListArgs, IS_LATE>),
    Plan(Late<plan::PlanArgs, IS_LATE>),
    Show(Late<show::ShowArgs, IS_LATE>),
    Apply(Late<apply::ApplyArgs, IS_LATE>),
    Destroy(Late<apply::DestroyArgs, IS_LATE>),
    Run(Late<run::RunArgs, IS_LATE>),
    Runs(Late<runs::RunsArgs, IS_LATE>),
    Script(Late<script::ScriptArgs, IS_LATE>),
    Export(Late<export::EngineExportArgs, IS_LATE>),
    Job(Late<job::JobArgs, IS_LATE>),
    Work(Late<job::WorkArgs, IS_LATE>),
    Finish(Late<job::FinishArgs, IS_LATE>),
    State(Late<state::StateArgs, IS_LATE>),
    Why(Late<why::WhyArgs, IS_LATE>),
    Graph(Late<graph::GraphArgs, IS_LATE>),
    Trigger(Late<trigger::TriggerArgs, IS_LATE>),
    Create(Late<create::CreateArgs, IS_LATE>),
    Clone(Late<clone::CloneArgs, IS_LATE>),
    Fmt(Late<fmt::FmtArgs, IS_LATE>),
    Policy(Late<policy::PolicyArgs, IS_LATE>),
    Validate(Late<validate::ValidateArgs, IS_LATE>),
    Env(Late<env::EnvArgs, IS_LATE>),
    Globals(Late<globals::GlobalsArgs, IS_LATE>),
    Eval(Late<eval::EvalArgs, IS_LATE>),
    Help(Late<help::HelpArgs, IS_LATE>),
    Man(Late<man::ManArgs, IS_LATE>),
    Completions(Late<completions::CompletionsArgs, IS_LATE>),
    Version(Late<version::VersionArgs, IS_LATE>),
    #[command(hide = true)]
    Experimental(Late<terramate::ExperimentalArgs, IS_LATE>),
    #[command(hide = true)]
    Debug(Late<terramate::DebugArgs, IS_LATE>),
    #[command(flatten)]
    Elsewhere(terramate::Elsewhere),
    /// The process in which policies are evaluated
    #[command(name = WORKER, hide = true)]
    PolicyWorker,
    /// The process that keeps the output of commands if `orch` is killed
    #[command(name = KEEPER, hide = true)]
    OutputKeeper,
}

pub(crate) fn run(cli: LateCli) -> Result<ExitStatus> {
    let mut chdir = cli.chdir;
    if cli.root {
        chdir = vec![find_project(&chdir)?.root];
    }
    let is_verbose = cli.verbose > 0;
    match cli.command {
        Command::List(args) => list::list(&chdir, &args),
        Command::Plan(args) => plan::plan(&chdir, &args),
        Command::Show(args) => show::show(&chdir, &args),
        Command::Apply(args) => apply::apply(&chdir, &args),
        Command::Destroy(args) => apply::destroy(&chdir, &args),
        Command::Run(args) => run::run(&chdir, &args),
        Command::Runs(args) => runs::runs(&chdir, &args.command),
        Command::Script(args) => script::script(&chdir, &args.command),
        Command::Export(args) => export::export(&chdir, &args),
        Command::Job(args) => job::job(&chdir, &args),
        Command::Work(args) => job::work(&chdir, &args),
        Command::Finish(args) => job::finish(&chdir, &args),
        Command::State(args) => state::state(&chdir, &args.command),
        Command::Why(args) => why::why(&chdir, &args),
        Command::Graph(args) => graph::graph(&chdir, &args),
        Command::Create(args) => create::create(&chdir, &args),
        Command::Fmt(args) => fmt::fmt(&chdir, &args),
        Command::Clone(args) => clone::clone(&chdir, &args),
        Command::Policy(args) => policy::policy(&chdir, &args.command),
        Command::PolicyWorker => policy_worker(),
        Command::OutputKeeper => output_keeper(),
        Command::Trigger(args) => trigger::trigger(&chdir, &args),
        Command::Validate(args) => validate::validate(&chdir, &args, is_verbose),
        Command::Env(args) => env::env(&chdir, &args),
        Command::Globals(args) => globals::globals(&chdir, &args),
        Command::Eval(args) => eval::eval(&chdir, &args),
        Command::Help(args) => help::help(&args),
        Command::Man(args) => man::man(&chdir, &args),
        Command::Completions(args) => completions::completions(&args),
        Command::Version(_) => version(cli.verbose > 0),
        Command::Experimental(args) => terramate::experimental(&chdir, &args.command),
        Command::Elsewhere(command) => terramate::elsewhere(&command),
        Command::Debug(args) => terramate::debug(&chdir, &args.command),
    }
}

/// Evaluates policies for the `orch` that started this process.
fn policy_worker() -> Result<ExitStatus> {
    let served = orch::policy::serve(io::stdin().lock(), io::stdout());
    served.context("failed to evaluate policies")?;
    Ok(ExitStatus::Success)
}

/// Stores the output of commands for the `orch` that started this process.
fn output_keeper() -> Result<ExitStatus> {
    orch::run::execute::keep_output().context("failed to keep output")?;
    Ok(ExitStatus::Success)
}

fn working_directory(chdir: &[PathBuf]) -> Result<PathBuf> {
    let mut current = std::env::current_dir().context("failed to find the current directory")?;
    current.extend(chdir);
    Ok(current)
}

fn find_project(chdir: &[PathBuf]) -> Result<LocatedProject> {
    Ok(load::find_project(&working_directory(chdir)?)?)
}

/// A context, and how its command reports problems.
struct CommandContext {
    context: Context,
    /// The JSON document that standard output expects, if any.
    document: Option<JsonDocument>,
    /// Whether that document has a base.
    is_about_changes: bool,
}

impl Deref for CommandContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl DerefMut for CommandContext {
    fn deref_mut(&mut self) -> &mut Context {
        &mut self.context
    }
}

impl CommandContext {
    /// Loads the project around the working directory, reading git at the same time if requested.
    fn new(chdir: &[PathBuf], document: Option<JsonDocument>, reads: Reads) -> Result<Self> {
        let found = find_project(chdir)?;
        note_unmarked(&notices::of(&found.root), &found, "");
        CommandContext::of(found, document, reads)
    }

    /// Loads a project; see [`Self::new`].
    fn of(found: LocatedProject, document: Option<JsonDocument>, reads: Reads) -> Result<Self> {
        let notices = notices::of(&found.root);
        Ok(CommandContext {
            context: Context::load(found, reads, notices)?,
            document,
            is_about_changes: false,
        })
    }

    /// Prints the problems and ends the command if any is an error. `change` is the command's
    /// request for change detection, if any.
    fn check(&mut self, change: Option<&ChangeQuery>) -> Result<()> {
        self.is_about_changes = change.is_some();
        if self.problems.has_errors() {
            if let Some(query) = change {
                self.explain_references(query);
            }
            self.report()?;
        }
        Ok(())
    }

    /// Prints all problems, but no warnings that were shown before. Call it once.
    fn report_unless_shown(&mut self, is_shown: bool) -> Result<()> {
        if is_shown && !self.problems.has_errors() {
            self.problems = Problems::default();
        }
        self.report()
    }

    /// Prints all problems. Call it once. Errors end the command, warnings do not.
    fn report(&mut self) -> Result<()> {
        self.ask(Context::report)
    }

    /// Calls the library. If it fails, the JSON document contains the error.
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Context) -> orch::error::Result<T>,
    ) -> Result<T> {
        match question(&mut self.context) {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let is_reported = matches!(error.kind(), ErrorKind::Reported(_));
                if error.refusal().is_some() || is_reported && self.problems.has_errors() {
                    self.add_sources();
                    self.write_problems(error.refusal())?;
                }
                Err(error.into())
            }
        }
    }

    /// Writes the problems, and a refusal of the command, as JSON if the format requires it.
    fn write_problems(&self, refused: Option<&Refusal>) -> Result<()> {
        let Some(document) = self.document else {
            return Ok(());
        };
        let mut out = console::stdout();
        let (project, problems) = (&self.project, &self.problems);
        let written = write_problems(
            &mut out,
            document,
            project,
            problems,
            refused,
            self.is_about_changes,
        );
        match written.and_then(|()| out.flush()) {
            // Even if the reader has exited, the exit status matters.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }
}
