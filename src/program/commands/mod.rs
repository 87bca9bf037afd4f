//! The commands. Each file has one, with its arguments.
//!
//! This file has what they share: finding and loading the project, and reporting problems.

mod apply;
pub(crate) mod command_line;
mod completions;
mod env;
mod eval;
mod follow_flags;
mod format;
mod globals;
mod graph;
mod help;
mod list;
mod man;
mod neighbour_flags;
mod plan;
mod policy;
mod reads;
mod reports;
mod run;
mod runs;
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
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;
use orch::context::{ChangeQuery, Context, CyclesAre, GitReader, MARK_ROOT};
use orch::error::{ErrorKind, Refusal};
use orch::exit::ExitStatus;
use orch::git::missing_submodules;
use orch::path::ProjectPath;
use orch::printable::printable;
use orch::project::{Problems, discover};
use orch::report::{Document, write_problems};
use orch::run::own_process::{KEEPER, WORKER};
use orch::workspace::LocatedProject;
use tracing::{debug, info};

pub(crate) use self::completions::answer as answer_completion;
use self::reads::{ReadStatus, Reads};
pub(crate) use self::run::flag_on_record;
pub(crate) use self::stray_path::stray_path;
pub(crate) use self::version::version;
use crate::program::commands::command_line::Cli;
use crate::program::error::{ProgramError, Result};
use crate::program::{console, notices};

/// The commands, in the order in which the help shows them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(list::ListArgs),
    Plan(Box<plan::PlanArgs>),
    Show(show::ShowArgs),
    Apply(Box<apply::ApplyArgs>),
    Destroy(Box<apply::DestroyArgs>),
    Run(Box<run::RunArgs>),
    Runs(runs::RunsArgs),
    State(state::StateArgs),
    Why(why::WhyArgs),
    Graph(graph::GraphArgs),
    Trigger(trigger::TriggerArgs),
    Policy(policy::PolicyArgs),
    Validate(validate::ValidateArgs),
    Env(env::EnvArgs),
    Globals(globals::GlobalsArgs),
    Eval(eval::EvalArgs),
    Help(help::HelpArgs),
    Man(man::ManArgs),
    Completions(completions::CompletionsArgs),
    Version(version::VersionArgs),
    #[command(subcommand, hide = true)]
    Experimental(terramate::Experimental),
    #[command(subcommand, hide = true)]
    Debug(terramate::Debug),
    /// The process in which policies are evaluated
    #[command(name = WORKER, hide = true)]
    PolicyWorker,
    /// The process that keeps the output of commands if `orch` is killed
    #[command(name = KEEPER, hide = true)]
    OutputKeeper,
}

/// Carries out the command line.
pub(crate) fn run(cli: Cli) -> Result<ExitStatus> {
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
        Command::State(args) => state::state(&chdir, &args.command),
        Command::Why(args) => why::why(&chdir, &args),
        Command::Graph(args) => graph::graph(&chdir, &args),
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
        Command::Experimental(command) => terramate::experimental(&chdir, &command),
        Command::Debug(command) => terramate::debug(&chdir, &command),
    }
}

/// Evaluates policies for the `orch` that has started this process.
fn policy_worker() -> Result<ExitStatus> {
    let served = orch::policy::serve(io::stdin().lock(), io::stdout());
    served.context("failed to evaluate policies")?;
    Ok(ExitStatus::Success)
}

/// Keeps the output of commands for the `orch` that started this process.
fn output_keeper() -> Result<ExitStatus> {
    orch::run::execute::keep_output().context("failed to keep output")?;
    Ok(ExitStatus::Success)
}

fn working_directory(chdir: &[PathBuf]) -> Result<PathBuf> {
    let mut current = std::env::current_dir().context("failed to find the current directory")?;
    current.extend(chdir);
    Ok(current)
}

/// Prints a note if nothing marks the root; `meaning` is what else that means.
fn note_unmarked(found: &LocatedProject, meaning: &str) {
    if !found.is_marked() {
        console::note(&format!(
            "nothing marks the root of a project here, so it is `{}`{meaning}; {MARK_ROOT}",
            found.root.display()
        ));
    }
}

/// Prints a note if stacks may be missing because submodules are not checked out.
fn note_missing_submodules(root: &Path) {
    let missing = match missing_submodules(root) {
        Ok(missing) => missing,
        Err(error) => {
            let error = format!("{:#}", anyhow::Error::new(error));
            console::note(&format!(
                "failed to look for submodules, so stacks may be missing: {error}"
            ));
            return;
        }
    };
    let path = |it: &ProjectPath| format!("`{}`", printable(it.relative()));
    let submodules = match missing.as_slice() {
        [] => return,
        [only] => format!("the submodule {} is not checked out", path(only)),
        [first, rest @ ..] => {
            format!(
                "the submodule {} and {} more are not checked out",
                path(first),
                rest.len()
            )
        }
    };
    console::note(&format!(
        "{submodules}, so stacks may be missing; run `git submodule update --init --recursive`"
    ));
}

/// Finds the root of the project around the working directory.
fn find_project(chdir: &[PathBuf]) -> Result<LocatedProject> {
    let current = working_directory(chdir)?;
    let current = dunce::canonicalize(&current).map_err(|error| {
        ProgramError::usage(format!("cannot change to `{}`: {error}", current.display()))
    })?;
    if !current.is_dir() {
        return Err(ProgramError::usage(format!(
            "cannot change to `{}`: not a directory",
            current.display()
        )));
    }
    let (root, rule) = discover::find_root(&current)?;
    info!(root = %root.display(), ?rule, "project root");
    let directory = ProjectPath::from_host(&root, &current)
        .with_context(|| format!("the path of `{}` is not UTF-8", current.display()))?;
    Ok(LocatedProject {
        root,
        rule,
        directory,
    })
}

/// What a command knows, and how it reports what is wrong.
struct Loaded {
    context: Context,
    /// The JSON document that standard output expects, if any.
    document: Option<Document>,
    /// Whether that document has a base.
    is_about_changes: bool,
}

impl Deref for Loaded {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl DerefMut for Loaded {
    fn deref_mut(&mut self) -> &mut Context {
        &mut self.context
    }
}

impl Loaded {
    /// Loads the project around the working directory.
    ///
    /// Where git is asked for, it is read at the same time.
    fn new(chdir: &[PathBuf], document: Option<Document>, reads: Reads) -> Result<Self> {
        let found = find_project(chdir)?;
        note_unmarked(&found, "");
        Loaded::of(found, document, reads)
    }

    /// Loads a project; see [`Self::new`].
    fn of(found: LocatedProject, document: Option<Document>, reads: Reads) -> Result<Self> {
        note_missing_submodules(&found.root);
        let reading = (reads.status != ReadStatus::Nothing)
            .then(|| GitReader::start(&found.root, reads.status == ReadStatus::Rough));
        let mut problems = Problems::default();
        let workspace = found
            .load(reads.listing, &mut problems)
            .context("failed to start the threads that read files")?;
        debug!(
            files = workspace.project.sources.len(),
            stacks = workspace.project.stacks.len(),
            "project loaded"
        );
        let notices = notices::of(&workspace.project.root);
        Ok(Loaded {
            context: Context::new(workspace, problems, reading, notices),
            document,
            is_about_changes: false,
        })
    }

    /// Ends the command and shows the problems if any of them is an error. `change` says what the
    /// command asks of change detection, if anything.
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

    /// Shows what is wrong, but no warnings if these were shown before. Must be called once.
    fn report_unless_shown(&mut self, is_shown: bool) -> Result<()> {
        if is_shown && !self.problems.has_errors() {
            self.problems = Problems::default();
        }
        self.report()
    }

    /// Shows what is wrong. Must be called once. Errors end the command, warnings do not.
    fn report(&mut self) -> Result<()> {
        self.ask(Context::report)
    }

    /// Asks the library. If there is an error instead of an answer, the document says so.
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Context) -> orch::error::Result<T>,
    ) -> Result<T> {
        match question(&mut self.context) {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let is_reported = matches!(error.kind(), ErrorKind::Reported(_));
                if error.refusal().is_some() || is_reported && self.problems.has_errors() {
                    self.settle_problems();
                    self.write_problems(error.refusal())?;
                }
                Err(error.into())
            }
        }
    }

    /// Writes the problems as JSON if the format asks for it, and why the command refuses, if it does.
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
            // A reader that is gone still sees the exit status.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }
}
