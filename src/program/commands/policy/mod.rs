//! `orch policy`

mod end_state;
mod eval;
mod graph;
mod input;
mod samples;
mod schema;
mod test;
mod validate;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use orch::exit::ExitStatus;

use crate::program::error::Result;

/// Check and try out trigger policies
///
/// A trigger policy is a Rego file that decides which stacks follow when a stack has ended. Declare
/// it with a block `policy "trigger" "name" { file = "….rego" }`; `orch run --policies` and `orch
/// apply` evaluate it. See `orch help policies`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  orch policy validate                                load every policy of the project
  orch policy input --stack net > failed.json         an input to try policies with
  orch policy eval retry --input failed.json          the answer for an input
  orch policy eval retry --stack net --state FAILED   the same if a stack had just failed
  orch policy eval policies/retry.rego --input -      the same for a file, and an input from a pipe
  orch policy test policies                           run the tests below a directory
  orch policy graph                                   the follow-ups of each stack, and loops"
)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    Eval(eval::PolicyEvalArgs),
    Test(test::TestArgs),
    Graph(graph::PolicyGraphArgs),
    Input(input::PolicyInputArgs),
    Samples(samples::SamplesArgs),
    Schema(schema::SchemaArgs),
    Validate(validate::PolicyValidateArgs),
}

pub(super) fn policy(chdir: &[PathBuf], command: &PolicyCommand) -> Result<ExitStatus> {
    match command {
        PolicyCommand::Eval(args) => eval::eval(chdir, args),
        PolicyCommand::Test(args) => test::test(chdir, args),
        PolicyCommand::Graph(args) => graph::graph(chdir, args),
        PolicyCommand::Input(args) => input::input(chdir, args),
        PolicyCommand::Samples(args) => samples::samples(chdir, args),
        PolicyCommand::Schema(_) => schema::schema(),
        PolicyCommand::Validate(args) => validate::validate(chdir, args),
    }
}
