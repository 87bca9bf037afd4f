//! Terramate's command names, such as `orch experimental eval` and `orch debug show globals`, for
//! users and scripts that still use them. The help hides them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use orch::exit::ExitStatus;

use super::env::{self, EnvArgs};
use super::eval::{self, EvalArgs};
use super::globals::{self, GlobalsArgs};
use super::graph::{self, GraphArgs};
use super::trigger::{self, TriggerArgs};
use crate::program::error::{ProgramError, Result};

/// The commands that Terramate calls experimental.
#[derive(Debug, Subcommand)]
pub(crate) enum Experimental {
    Eval(EvalArgs),
    GetConfigValue(EvalArgs),
    PartialEval(PartialEvalArgs),
    RunGraph(Box<GraphArgs>),
    Trigger(Box<TriggerArgs>),
}

/// The commands with which Terramate shows a project.
#[derive(Debug, Subcommand)]
pub(crate) enum TerramateDebug {
    #[command(subcommand)]
    Show(TerramateShow),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TerramateShow {
    Globals(GlobalsArgs),
    RuntimeEnv(EnvArgs),
}

/// Any arguments.
#[derive(Debug, Args)]
pub(crate) struct PartialEvalArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<String>,
}

pub(super) fn experimental(chdir: &[PathBuf], command: &Experimental) -> Result<ExitStatus> {
    match command {
        Experimental::Eval(args) | Experimental::GetConfigValue(args) => eval::eval(chdir, args),
        Experimental::RunGraph(args) => graph::graph(chdir, args),
        Experimental::Trigger(args) => trigger::trigger(chdir, args),
        Experimental::PartialEval(_) => {
            let message = "orch has no partial evaluation, which only code generation needs";
            Err(ProgramError::usage(message).hint("`orch eval` evaluates whole expressions"))
        }
    }
}

pub(super) fn debug(chdir: &[PathBuf], command: &TerramateDebug) -> Result<ExitStatus> {
    match command {
        TerramateDebug::Show(TerramateShow::Globals(args)) => globals::globals(chdir, args),
        TerramateDebug::Show(TerramateShow::RuntimeEnv(args)) => env::env(chdir, args),
    }
}
