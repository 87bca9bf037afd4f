//! Evaluates the command of a run and its environment for each stack.

use std::ffi::OsString;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::project::command::CommandTemplate;
use crate::project::environment::Environment;
use crate::project::per_stack::SharedProblem;
use crate::project::stack::StackIndex;
use crate::run::run_command::RunCommand;

/// The evaluated environments and commands of some stacks.
pub(super) struct EvaluatedCommand {
    pub(super) environments: Vec<(StackIndex, Environment)>,
    pub(super) command: RunCommand,
    /// Problems with the stacks that have them.
    pub(super) problems: Vec<SharedProblem>,
}

/// Evaluates the environments of some stacks and, with `is_eval`, the command. Syntax errors in the
/// command are added to the problems of the project.
pub(super) fn evaluated(
    context: &mut Context,
    words: &[OsString],
    is_eval: bool,
    stacks: &[StackIndex],
) -> Result<EvaluatedCommand> {
    let of_all = || stacks.iter().copied();
    if !is_eval {
        let known = context.in_generations(|context| context.evaluator().of_stacks(of_all()))?;
        return Ok(EvaluatedCommand {
            environments: known.0,
            command: RunCommand::plain(words.to_vec()),
            problems: known.1,
        });
    }
    let mut problems = Vec::new();
    let template = CommandTemplate::parse(words, &mut context.project.sources, &mut problems)
        .map_err(|not_unicode| {
            Error::usage(not_unicode.to_string()).hint("run it without `--eval`")
        })?;
    let has_template = problems.is_empty();
    context.problems.diagnostics.append(&mut problems);
    let (environments, commands, problems) = context.in_generations(|context| {
        let environments = context.evaluator();
        let (known, shared) = environments.of_stacks(of_all());
        if !has_template {
            return (known, Vec::new(), shared);
        }
        let namespaces = environments.namespaces();
        let (commands, wrong) = template.of_stacks(namespaces, of_all());
        (known, commands, [shared, wrong].concat())
    })?;
    Ok(EvaluatedCommand {
        environments,
        command: RunCommand::evaluated(words.to_vec(), commands),
        problems,
    })
}
