//! `orch export`

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use orch::command::export::{Export, ExportOptions, ExportedCommand, sha256_of};
use orch::context::CyclesAre;
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::export::{Engine, Template};
use orch::plan::SavedPlan;
use orch::printable::printable;
use orch::run::settings::RunSettings;
use orch::selection::select::Selection;

use super::reports::target;
use super::run::arguments::{AttemptArgs, OnErrorArg};
use super::run::flags::{ExitCodeArgs, RecordArgs, SafeguardArgs};
use super::run::recorded::SELECTION;
use super::run::safeguards::disabled;
use super::run::{check_program, jobs};
use super::selection_flags::{SEE_SELECTION, SelectArgs};
use super::show::unreadable;
use super::{CommandContext, Reads, working_directory};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

const EXPORT_EXAMPLES: &str = "\
Examples:
  orch export gitlab --changed -o pipeline.yml --template job.yml -- terraform plan
  orch export gitlab plan -o pipeline.yml --template job.yml     the plan of `orch plan -o plan`
  orch export github --workers 20 -o .github/workflows/apply.yml --template job.yml plan
  orch export make -o Makefile.orch -- terraform plan
  make -k -j 8 -f Makefile.orch";

const EXPORT_USAGE: &str = "orch export [OPTIONS] ENGINE FILE
       orch export [OPTIONS] ENGINE -- COMMAND…";

/// Flags about a command that clap refuses beside a plan file.
const OF_COMMAND: [&str; 16] = [
    "eval",
    "reverse",
    "timeout",
    "run_timeout",
    "grace",
    "retries",
    "retry_on_exit",
    "retry_on_output",
    "retry_backoff",
    "success_exit_code",
    "changes_exit_code",
    "detailed_exitcode",
    "record",
    "no_record",
    "allow_rollback",
    "fetch",
];

/// Write a run as the pipeline of a CI system, or as a Makefile
///
/// The run is the apply of a plan file, or a command in the selected stacks. A job runs a list of
/// stacks: chains of stacks that wait for each other, and others that take as long together. Earlier
/// runs on this machine show how long a stack takes.
///
/// A command that `orch run` would refuse is not exported. Programs, uncommitted changes, and variables
/// that are not set here are checked only in the jobs.
///
/// Beside the pipeline, a work order is written: a file that each job needs. The pipeline itself has no
/// path of a stack and no word of the command. Neither file counts as an uncommitted change. See `orch
/// help engines`.
#[derive(Debug, Args)]
#[command(
    override_usage = EXPORT_USAGE,
    after_help = EXPORT_EXAMPLES,
    after_long_help = format!("{EXPORT_EXAMPLES}\n\n{SEE_SELECTION}")
)]
pub(crate) struct EngineExportArgs {
    /// Where the pipeline will run
    #[arg(value_enum)]
    pub(crate) engine: EngineArg,

    /// A plan of `orch plan -o FILE`
    #[arg(
        value_name = "FILE",
        conflicts_with = "command",
        conflicts_with_all = SELECTION,
        conflicts_with_all = OF_COMMAND
    )]
    pub(crate) file: Option<PathBuf>,

    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "file")]
    pub(crate) command: Vec<OsString>,

    /// Write the pipeline to this file [default: stdout]
    ///
    /// Buildkite accepts only some hundred jobs in a file; more of them go to files whose names end with
    /// `-2`, `-3`, … Upload them in this order.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Write the work order to this file [default: beside that of -o, ending with `.order.json`]
    #[arg(long, value_name = "FILE", required_unless_present = "out")]
    pub(crate) work_order: Option<PathBuf>,

    /// Run at most N jobs at once, up to 1000 [default: 20, and 64 for make]
    #[arg(long, value_name = "N", value_parser = number_of_jobs, conflicts_with = "workers")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Instead of jobs with stacks of their own, start N equal jobs that share the stacks
    ///
    /// Each runs `orch work`, which takes the next stack that may run until none is left. That needs a
    /// state in a store that all of them reach.
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<NonZeroUsize>,

    /// Run up to N stacks at once in each job; `auto` is one for each processor [default: 1]
    #[arg(short = 'j', long, value_name = "N|auto", value_parser = jobs)]
    pub(crate) parallel: Option<NonZeroUsize>,

    /// What all jobs have, in YAML: the keys of a job as the CI system documents them
    ///
    /// For example the image, the runner, permissions and secrets. `orch` adds what a job runs and
    /// waits for.
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,

    /// How to continue after a stack fails [default: as `orch run` and `orch apply`]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_error: Option<OnErrorArg>,

    /// Evaluate each word of the command for each stack, as `orch run --eval`
    #[arg(long)]
    pub(crate) eval: bool,

    /// Run in exactly the opposite order
    #[arg(long)]
    pub(crate) reverse: bool,

    #[command(flatten)]
    pub(crate) attempts: AttemptArgs,

    #[command(flatten)]
    pub(crate) exit_codes: ExitCodeArgs,

    #[command(flatten)]
    pub(crate) record: RecordArgs,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// GitLab CI: a child pipeline
    Gitlab,
    /// GitHub Actions: a workflow
    Github,
    /// Buildkite: steps to upload
    Buildkite,
    /// A Makefile
    Make,
}

impl EngineArg {
    fn engine(self) -> Engine {
        match self {
            EngineArg::Gitlab => Engine::Gitlab,
            EngineArg::Github => Engine::Github,
            EngineArg::Buildkite => Engine::Buildkite,
            EngineArg::Make => Engine::Make,
        }
    }
}

pub(super) fn export(chdir: &[PathBuf], args: &EngineExportArgs) -> Result<ExitStatus> {
    let directory = working_directory(chdir)?;
    let order = args.order_file();
    let options = ExportOptions {
        engine: args.engine.engine(),
        jobs: args.jobs,
        workers: args.workers,
        template: args.template(&directory)?,
        order: order.to_string_lossy().into_owned(),
        settings: args.settings(),
    };
    let export = match &args.file {
        Some(file) => plan(chdir, &options, &directory, file)?,
        None => command(chdir, &options, args)?,
    };
    let text = export.order.to_text();
    write_file(&directory, &order, &text)?;
    let files = &export.pipeline.files;
    match (&args.out, &files[..]) {
        (None, [pipeline]) => {
            let mut out = console::stdout();
            out.write_all(pipeline.as_bytes())?;
            out.flush()?;
        }
        (None, files) => {
            let message = format!("the pipeline has {} files", files.len());
            return Err(ProgramError::refused(message).hint("write them with `-o FILE`"));
        }
        (Some(out), files) => {
            for (number, text) in (1..).zip(files) {
                write_file(&directory, &numbered(out, number), text)?;
            }
        }
    }
    Ok(ExitStatus::Success)
}

/// Exports a command in the selected stacks.
fn command(chdir: &[PathBuf], options: &ExportOptions, args: &EngineExportArgs) -> Result<Export> {
    check_program(&args.command)?;
    let filters = args.select.request(chdir)?;
    let mut context = CommandContext::new(chdir, None, args.select.reads())?;
    context.check(filters.change.as_ref())?;
    let query = context.ask(|context| context.query(filters))?;
    let command = ExportedCommand {
        words: args.command.clone(),
        is_eval: args.eval,
        is_reverse: args.reverse,
        allows_rollback: args.record.allow_rollback,
        excluded: context.excluded_paths(&query),
        disabled: disabled(&SafeguardArgs::default(), std::iter::empty(), false)?.of_job(),
    };
    let selection = context.select(&query);
    context.ask(|context| context.export_command(options, &command, &selection))
}

/// Exports the apply of a plan file.
fn plan(
    chdir: &[PathBuf],
    options: &ExportOptions,
    directory: &Path,
    file: &Path,
) -> Result<Export> {
    let place = directory.join(file);
    let (saved, _) = SavedPlan::read(&place).map_err(|error| unreadable(file, error))?;
    let sha256 = sha256_of(&place)?;
    let mut context = CommandContext::new(chdir, None, Reads::CONFIGURATION)?;
    context.check(None)?;
    let stacks = saved.plan.entries.iter();
    let stacks = stacks.filter_map(|entry| context.project.stacks.find(&entry.stack));
    let selection = Selection::recorded(stacks.collect::<Vec<_>>());
    context.check_cycles(CyclesAre::ErrorsWithin(&selection));
    context.report()?;
    context.ask(|context| context.export_plan(options, &saved, file.as_os_str(), sha256))
}

impl EngineExportArgs {
    fn settings(&self) -> RunSettings {
        RunSettings {
            on_error: self.on_error.map(OnErrorArg::on_error),
            jobs: self.parallel,
            exit_codes: self.exit_codes.exit_codes(),
            detailed_exit_code: self.exit_codes.detailed_exitcode,
            recording: self.record.recording(),
            ..self.attempts.settings()
        }
    }

    /// Returns the file of the work order, as the jobs name it.
    fn order_file(&self) -> PathBuf {
        let beside = || {
            self.out
                .as_ref()
                .map(|out| out.with_extension("order.json"))
        };
        self.work_order.clone().or_else(beside).unwrap_or_default()
    }

    fn template(&self, directory: &Path) -> Result<Template> {
        let Some(file) = &self.template else {
            return Ok(Template::default());
        };
        let shown = file.display().to_string();
        let shown = printable(&shown);
        let text = fs::read_to_string(directory.join(file))
            .with_context(|| format!("failed to read the template `{shown}`"))?;
        Template::parse(self.engine.engine(), &text).map_err(|error| {
            let error = anyhow::Error::new(error);
            let error = error.context(format!("`{shown}` cannot be used as a template"));
            ProgramError::new(ErrorKind::Configuration, error)
        })
    }
}

/// Parses how many jobs run at once.
fn number_of_jobs(text: &str) -> Result<NonZeroUsize, &'static str> {
    let number = text.parse().ok();
    let number = number.filter(|number: &NonZeroUsize| number.get() <= 1000);
    number.ok_or("not a number from 1 to 1000")
}

/// Returns the name of a further file of a pipeline: `pipeline-2.yml`.
fn numbered(file: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return file.to_owned();
    }
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}

fn write_file(directory: &Path, file: &Path, text: &str) -> Result<()> {
    let shown = file.display().to_string();
    let written = target(&directory.join(file), file)
        .and_then(|target| target.write(|out| out.write_all(text.as_bytes())));
    Ok(written.with_context(|| format!("failed to write `{}`", printable(&shown)))?)
}
