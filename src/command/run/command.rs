//! Evaluates the command of a run and its environment for each stack.

use std::ffi::OsString;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::project::command::CommandTemplate;
use crate::project::environment::Environment;
use crate::project::per_stack::SharedProblem;
use crate::project::script::labels;
use crate::project::scripts::{self, StackScript};
use crate::project::stack::StackIndex;
use crate::record::journal::Sharing;
use crate::run::run_command::{CommandKind, RunCommand};

/// The evaluated environments and commands of some stacks.
pub(super) struct EvaluatedCommand {
    pub(super) environments: Vec<(StackIndex, Environment)>,
    pub(super) command: RunCommand,
    /// How the command asks for the outputs of other stacks, if it does.
    pub(super) sharing: Option<Sharing>,
    pub(super) problems: Vec<SharedProblem>,
}

/// Evaluates the environments of some stacks and, unless it is plain, the command. Syntax errors in the
/// command are added to the problems of the project.
pub(super) fn evaluated(
    context: &mut Context,
    words: &[OsString],
    kind: CommandKind,
    stacks: &[StackIndex],
) -> Result<EvaluatedCommand> {
    let of_all = || stacks.iter().copied();
    if kind == CommandKind::Script {
        return of_script(context, words, stacks);
    }
    if kind == CommandKind::Plain {
        let known = context.in_generations(|context| context.evaluator().of_stacks(of_all()))?;
        return Ok(EvaluatedCommand {
            environments: known.0,
            command: RunCommand::plain(words.to_vec()),
            sharing: None,
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
        sharing: None,
        problems,
    })
}

/// Evaluates the environments of some stacks, and the script with these labels in those that have it.
fn of_script(
    context: &mut Context,
    words: &[OsString],
    stacks: &[StackIndex],
) -> Result<EvaluatedCommand> {
    let labels = labels(words);
    let (environments, scripts, problems) = context.in_generations(|context| {
        let environments = context.evaluator();
        let (known, shared) = environments.of_stacks(stacks.iter().copied());
        let namespaces = environments.namespaces();
        let (scripts, wrong) = scripts::of_stacks(&labels, namespaces, stacks.iter().copied());
        (known, scripts, [shared, wrong].concat())
    })?;
    let has = |wanted: fn(&StackScript) -> bool| scripts.iter().any(|(_, script)| wanted(script));
    let sharing = if !has(|script| script.wants_outputs) {
        None
    } else if has(|script| script.wants_mocks) {
        Some(Sharing::WithMocks)
    } else {
        Some(Sharing::On)
    };
    let words_of = |(stack, script): (StackIndex, StackScript)| (stack, script.commands);
    Ok(EvaluatedCommand {
        environments,
        command: RunCommand::script(words.to_vec(), scripts.into_iter().map(words_of)),
        sharing,
        problems,
    })
}
