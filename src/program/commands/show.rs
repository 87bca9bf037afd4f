//! `orch show`

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow};
use clap::Args;
use orch::command::stack_arg::StackArg;
use orch::driver::Driver;
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::path::{ProjectPath, StackPath};
use orch::plan::archive::ArchiveReadError;
use orch::plan::entry::{PlanEntry, PlannedAction};
use orch::plan::{SavedPlan, SavedPlanError};
use orch::printable::printable;
use orch::project::environment::compose;
use orch::project::{Problems, Project};
use orch::report::{ToolTexts, write_plan, write_plan_entry, write_plan_json, write_plan_markdown};

use super::format::{PlanFormat, PlanFormatArgs};
use super::plan::shown::show_command;
use super::{CommandContext, Reads, working_directory};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Show a plan in a file
///
/// Prints the plan as `orch plan` did. With STACK, the tool of that stack prints its own plan in
/// full, which may include secrets; for a removed stack, its entry is printed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orch plan -o plan
  orch show plan
  orch show plan prod/network        Terraform's own plan of this stack
  orch show plan --format json")]
pub(crate) struct ShowArgs {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Let the tool of this stack show its plan
    #[arg(value_name = "STACK", conflicts_with_all = ["format", "max_bytes", "details"])]
    pub(crate) stack: Option<String>,

    #[command(flatten)]
    pub(crate) format: PlanFormatArgs,
}

pub(super) fn show(chdir: &[PathBuf], args: &ShowArgs) -> Result<ExitStatus> {
    let max_bytes = args.format.max_bytes()?;
    let file = working_directory(chdir)?.join(&args.file);
    let (saved, archive) = SavedPlan::read(&file).map_err(|error| unreadable(&args.file, error))?;
    let mut out = console::stdout();
    let details = args.format.details()?;
    let Some(written) = &args.stack else {
        let texts = ToolTexts {
            of: &|_| None,
            shown_by: &|stack| Some(show_command(&args.file, stack)),
            run: None,
        };
        match args.format.format {
            PlanFormat::Text => write_plan(&mut out, &saved.plan, details, &texts)?,
            PlanFormat::Markdown => {
                write_plan_markdown(&mut out, &saved.plan, &texts, max_bytes)?;
            }
            PlanFormat::Json => {
                write_plan_json(
                    &mut out,
                    &saved.plan,
                    &Project::default(),
                    &Problems::default(),
                )?;
            }
        }
        out.flush()?;
        return Ok(ExitStatus::Success);
    };
    let mut context = CommandContext::new(chdir, None, Reads::CONFIGURATION)?;
    context.check(None)?;
    if let Some(entry) = removed(&saved, written, &context.directory) {
        write_plan_entry(&mut out, entry)?;
        out.flush()?;
        note_code(entry);
        return Ok(ExitStatus::Success);
    }
    let stack = context.ask(|context| context.stack(written))?;
    let path: StackPath = context.project.stacks[stack].path.clone();
    let shown = printable(path.as_str());
    let refused = |what: String| ProgramError::refused(what);
    let of_stack = saved
        .stack(&path)
        .ok_or_else(|| refused(format!("the plan has no entry for `{shown}`")))?;
    let driver = Driver::named(&context.project, &of_stack.driver);
    let tool = driver.and_then(|driver| driver.tool);
    let (Some(plan), Some(tool)) = (of_stack.plan, tool) else {
        return Err(refused(format!(
            "the file has no plan of a tool for `{shown}`"
        )));
    };
    let folder = tempfile::Builder::new()
        .prefix("orch-show-")
        .tempdir()
        .context("failed to make room for the plan")?;
    let unpacked = folder.path().join("plan");
    archive
        .extract(plan, &unpacked)
        .map_err(|error| unreadable(&args.file, error.into()))?;
    let environment = context
        .in_generations(|context| context.evaluator().of_stack(stack))?
        .map_err(|problems| {
            console::diagnostics(&problems, &context.project.sources);
            let error = anyhow!("the environment of `{shown}` cannot be computed");
            ProgramError::new(ErrorKind::Configuration, error)
        })?;
    let mut command = Command::new(tool.program());
    command
        .arg("show")
        .args((!std::io::stdout().is_terminal()).then_some("-no-color"))
        .arg(&unpacked)
        .current_dir(path.directory().to_host(&context.project.root))
        .stdin(Stdio::null());
    compose(&mut command, &environment);
    let status = command
        .status()
        .with_context(|| format!("failed to start `{}`", tool.program()))?;
    if status.success() {
        return Ok(ExitStatus::Success);
    }
    let message = format!("`{} show` failed for `{shown}`", tool.program());
    Err(ProgramError::new(ErrorKind::External, anyhow!(message))
        .hint("the plan can be shown only where the tool is initialized as for that plan"))
}

/// Returns the entry of the removed stack that the user names, if it was removed.
fn removed<'p>(
    saved: &'p SavedPlan,
    written: &str,
    directory: &ProjectPath,
) -> Option<&'p PlanEntry> {
    let path = StackArg::new(directory, written).path();
    let entry = saved.plan.entry(&path.ok()?);
    entry.filter(|entry| entry.removed.is_some())
}

/// Notes why the tool of a removed stack does not show its plan: it would need the code.
fn note_code(entry: &PlanEntry) {
    if entry.action != PlannedAction::Delete {
        return;
    }
    let commit = entry.source_commit.as_deref().unwrap_or_default();
    let commit = printable(commit.get(..7).unwrap_or(commit));
    console::note(&format!(
        "its tool can show its own plan only where commit {commit} is checked out"
    ));
    console::help("to see the output of its plan, run `orch runs logs`");
}

/// Explains why a file cannot be used.
pub(super) fn unreadable(file: &Path, error: SavedPlanError) -> ProgramError {
    let kind = match &error {
        SavedPlanError::Archive(ArchiveReadError::Refused { .. })
        | SavedPlanError::Damaged(_)
        | SavedPlanError::Newer { .. }
        | SavedPlanError::Inconsistent(_) => ErrorKind::Configuration,
        SavedPlanError::Archive(_) => ErrorKind::External,
    };
    let file = file.display().to_string();
    let context = format!("`{}` cannot be used as a plan", printable(&file));
    let is_absent = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let is_missing = matches!(&error, SavedPlanError::Archive(ArchiveReadError::Io { error, .. }) if is_absent(error));
    let error = ProgramError::new(kind, anyhow::Error::new(error).context(context));
    if kind == ErrorKind::Configuration || is_missing {
        error.hint("make a new plan with `orch plan -o FILE`")
    } else {
        error
    }
}
