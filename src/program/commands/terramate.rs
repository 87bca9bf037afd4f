//! Terramate's command names, such as `orch experimental eval` and `orch debug show globals`, for
//! users and scripts that still use them. The help hides them.
//!
//! Commands for what `orch` does not do name the command that does.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use orch::exit::ExitStatus;

use super::clone::{self, CloneArgs};
use super::debug_show::{self, Shown};
use super::eval::{self, EvalArgs};
use super::graph::{self, GraphArgs};
use super::trigger::{self, TriggerArgs};
use crate::program::error::{ProgramError, Result};

/// The commands that Terramate calls experimental.
#[derive(Debug, Args)]
pub(crate) struct ExperimentalArgs {
    #[command(subcommand)]
    pub(crate) command: Experimental,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Experimental {
    Clone(CloneArgs),
    Eval(EvalArgs),
    GetConfigValue(EvalArgs),
    Cloud(AnyArgs),
    PartialEval(AnyArgs),
    RunGraph(Box<GraphArgs>),
    Trigger(Box<TriggerArgs>),
    Vendor(AnyArgs),
}

/// The commands for things that `orch` does not do.
#[derive(Debug, Subcommand)]
pub(crate) enum Elsewhere {
    #[command(hide = true)]
    Cloud(AnyArgs),
    #[command(hide = true)]
    Component(AnyArgs),
    #[command(hide = true)]
    Generate(AnyArgs),
    #[command(hide = true)]
    InstallCompletions(AnyArgs),
    #[command(hide = true)]
    Package(AnyArgs),
    #[command(hide = true)]
    Scaffold(AnyArgs),
    #[command(hide = true)]
    Ui(AnyArgs),
}

/// The commands with which Terramate shows a project.
#[derive(Debug, Args)]
pub(crate) struct DebugArgs {
    #[command(subcommand)]
    pub(crate) command: TerramateDebug,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TerramateDebug {
    #[command(subcommand)]
    Show(Shown),
}

/// Any arguments.
#[derive(Debug, Clone, Args)]
pub(crate) struct AnyArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<String>,
}

pub(super) fn experimental(chdir: &[PathBuf], command: &Experimental) -> Result<ExitStatus> {
    match command {
        Experimental::Clone(args) => clone::clone(chdir, args),
        Experimental::Eval(args) | Experimental::GetConfigValue(args) => eval::eval(chdir, args),
        Experimental::RunGraph(args) => graph::graph(chdir, args),
        Experimental::Trigger(args) => trigger::trigger(chdir, args),
        Experimental::Cloud(args) => elsewhere(&Elsewhere::Cloud(args.clone())),
        Experimental::Vendor(_) => {
            let message = "orch copies no modules";
            Err(ProgramError::usage(message).hint("run `terramate experimental vendor download`"))
        }
        Experimental::PartialEval(_) => {
            let message = "orch has no partial evaluation, which only code generation needs";
            Err(ProgramError::usage(message).hint("`orch eval` evaluates whole expressions"))
        }
    }
}

pub(super) fn debug(chdir: &[PathBuf], command: &TerramateDebug) -> Result<ExitStatus> {
    match command {
        TerramateDebug::Show(shown) => debug_show::show(chdir, shown),
    }
}

/// Names the command that does it.
pub(super) fn elsewhere(command: &Elsewhere) -> Result<ExitStatus> {
    let (message, hint) = match command {
        Elsewhere::Generate(_) => (
            "orch generates no code",
            "run `terramate generate` before orch; both read the same files",
        ),
        Elsewhere::Cloud(_) => (
            "orch needs no cloud and no login",
            "`orch runs` shows past runs, and `orch plan` shows drift; for Terramate Cloud, run `terramate cloud`",
        ),
        Elsewhere::Component(_) | Elsewhere::Package(_) | Elsewhere::Scaffold(_) => (
            "orch has no bundles and no components, which generate code",
            "run the same command with `terramate`; to create a stack, run `orch create PATH`",
        ),
        Elsewhere::Ui(_) => (
            "orch has no user interface of its own",
            "run `terramate ui`; for a page about a run, run `orch runs report`",
        ),
        Elsewhere::InstallCompletions(_) => (
            "orch prints completions and does not install them",
            "run `orch completions --help`",
        ),
    };
    Err(ProgramError::usage(message).hint(hint))
}
