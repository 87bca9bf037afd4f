//! `orch script`

use std::io::Write;
use std::path::PathBuf;

use clap::{Arg, Args, Subcommand};
use orch::context::CyclesAre;
use orch::exit::ExitStatus;
use orch::report::{
    JsonDocument, write_script_info, write_script_info_json, write_script_tree, write_scripts,
    write_scripts_json,
};

use super::format::Format;
use super::run::{self, RunArgs};
use super::selection_flags::{SEE_SELECTION, SelectArgs};
use super::{CommandContext, Reads};
use crate::program::console;
use crate::program::error::Result;

const RUN_ABOUT: &str = "\
Run the commands of a script in each stack that has it, in order

The commands of all stacks are evaluated before the first one starts; --dry-run shows them. They run \
one after the other, and the first failure ends those of its stack: the flags about failures, \
attempts, parallel runs and reports mean the same as for `orch run`. Selected stacks without the \
script are left out.";

const RUN_USAGE: &str = "orch script run [OPTIONS] LABEL…
       orch script run [OPTIONS] --resume [RUN]";

const RUN_EXAMPLES: &str = "\
Examples:
  orch script run deploy
  orch script run --changed -j 4 terraform plan
  orch script run --dry-run deploy
  orch script run --resume            continue the last run";

/// Makes the command of `orch run` the labels of a script.
fn labels(command: Arg) -> Arg {
    command
        .trailing_var_arg(false)
        .value_name("LABEL")
        .help("The labels of the script")
        .long_help(None::<&str>)
}

/// Run named commands of the configuration, and list them
///
/// A `script` block gives a sequence of commands a name. It applies to the stacks at and below its
/// directory; a deeper one with the same labels replaces it there.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  orch script run deploy              in each selected stack that has this script
  orch script list                    the scripts that this directory knows
  orch script info deploy             where `deploy` is defined, and its stacks"
)]
pub(crate) struct ScriptArgs {
    #[command(subcommand)]
    pub(crate) command: ScriptCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScriptCommand {
    #[command(
        about = "Run the commands of a script in each stack that has it, in order",
        long_about = RUN_ABOUT,
        override_usage = RUN_USAGE,
        after_help = RUN_EXAMPLES,
        after_long_help = format!("{RUN_EXAMPLES}\n\n{SEE_SELECTION}"),
        mut_arg("command", labels),
        mut_arg("eval", |eval| eval.hide(true).conflicts_with("command")),
    )]
    Run(Box<RunArgs>),
    List(ScriptListArgs),
    Info(Box<ScriptInfoArgs>),
    Tree(ScriptTreeArgs),
}

/// List the scripts of this directory, those above and those below it
///
/// Of several with the same labels, the topmost is shown, and the others are counted.
#[derive(Debug, Args)]
pub(crate) struct ScriptListArgs {
    /// The format of the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Show where a script is defined, its stacks and its commands
///
/// Each definition is shown with the selected stacks that have it; commands are shown as written.
#[derive(Debug, Args)]
#[command(after_long_help = SEE_SELECTION)]
pub(crate) struct ScriptInfoArgs {
    /// The labels of the script
    #[arg(required = true, value_name = "LABEL")]
    pub(crate) labels: Vec<String>,

    /// The format of the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Draw the directories with their stacks and scripts
///
/// `#` marks a stack, `*` a script that is defined there, and `~` one that the stack inherits.
#[derive(Debug, Args)]
pub(crate) struct ScriptTreeArgs {}

pub(super) fn script(chdir: &[PathBuf], command: &ScriptCommand) -> Result<ExitStatus> {
    match command {
        ScriptCommand::Run(args) => run::run_script(chdir, args),
        ScriptCommand::List(args) => list(chdir, args),
        ScriptCommand::Info(args) => info(chdir, args),
        ScriptCommand::Tree(_) => tree(chdir),
    }
}

fn list(chdir: &[PathBuf], args: &ScriptListArgs) -> Result<ExitStatus> {
    let document = args.format.document(JsonDocument::Scripts);
    let mut context = CommandContext::new(chdir, document, Reads::CONFIGURATION)?;
    context.check(None)?;
    context.report()?;
    let (project, directory) = (&context.project, &context.directory);
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_scripts(&mut out, project, directory)?,
        Format::Json => write_scripts_json(&mut out, project, &context.problems, directory)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

fn info(chdir: &[PathBuf], args: &ScriptInfoArgs) -> Result<ExitStatus> {
    let filters = args.select.request(chdir)?;
    let document = args.format.document(JsonDocument::Scripts);
    let mut context = CommandContext::new(chdir, document, args.select.reads())?;
    context.check(filters.change.as_ref())?;
    context.ask(|context| context.script(&args.labels).map(drop))?;
    let query = context.ask(|context| context.query(filters))?;
    let selection = context.select(&query);
    context.check_cycles(CyclesAre::Warnings);
    context.report()?;
    let shown = context.script_info(&args.labels, &selection)?;
    let project = &context.project;
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_script_info(&mut out, project, &shown)?,
        Format::Json => write_script_info_json(&mut out, project, &context.problems, &shown)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

fn tree(chdir: &[PathBuf]) -> Result<ExitStatus> {
    let mut context = CommandContext::new(chdir, None, Reads::CONFIGURATION)?;
    context.check(None)?;
    context.report()?;
    let mut out = console::stdout();
    write_script_tree(&mut out, &context.project, &context.directory)?;
    out.flush()?;
    Ok(ExitStatus::Success)
}
