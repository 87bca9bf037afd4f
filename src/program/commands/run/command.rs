//! The command of a run and the environments in which it runs, both evaluated for each stack.

use orch::printable::command_line;
use orch::project::command::CommandTemplate;
use orch::project::environment::Environment;
use orch::project::stack::StackIndex;
use orch::run::run_command::RunCommand;
use orch::selection::select::Selection;

use super::RunArgs;
use super::resume::Resumed;
use crate::program::commands::Loaded;
use crate::program::error::{ProgramError, Result};

/// Evaluates the environment of each selected stack and, with `--eval`, the command. Adds what is wrong
/// to the problems.
pub(super) fn prepared(
    loaded: &mut Loaded,
    args: &RunArgs,
    selection: &Selection,
    resumed: Option<&Resumed>,
) -> Result<(Vec<(StackIndex, Environment)>, RunCommand)> {
    let (words, is_eval) = match resumed {
        Some(resumed) => (&resumed.command, resumed.is_eval),
        None => (&args.command, args.eval),
    };
    if !is_eval {
        let environments = loaded.environments(selection.stacks())?;
        return Ok((environments, RunCommand::plain(words.clone())));
    }
    let mut problems = Vec::new();
    let template = CommandTemplate::parse(words, &mut loaded.project.sources, &mut problems);
    let template = template.map_err(|not_unicode| {
        ProgramError::usage(not_unicode.to_string()).hint("run it without `--eval`")
    })?;
    let has_template = problems.is_empty();
    loaded.problems.diagnostics.append(&mut problems);
    let evaluated = |loaded: &Loaded| {
        let environments = loaded.evaluator();
        let (known, shared) = environments.of_stacks(selection.stacks());
        if !has_template {
            return (known, Vec::new(), shared);
        }
        let namespaces = environments.namespaces();
        let (commands, wrong) = template.of_stacks(namespaces, selection.stacks());
        (known, commands, [shared, wrong].concat())
    };
    let (known, commands, shared) = loaded.in_generations(evaluated)?;
    loaded.add_shared(shared);
    Ok((known, RunCommand::evaluated(words.clone(), commands)))
}

/// The command of each turn as text, made printable.
pub(in crate::program::commands) struct CommandLines {
    /// The command of all turns, if it is the same in all.
    same: String,
    /// The command of each turn, if they differ.
    by_turn: Vec<String>,
}

impl CommandLines {
    /// Makes it from the stacks of the turns.
    pub(in crate::program::commands) fn new(command: &RunCommand, sequence: &[StackIndex]) -> Self {
        let evaluated = if command.is_evaluated() {
            sequence
        } else {
            &[]
        };
        CommandLines {
            same: command_line(command.given()),
            by_turn: evaluated
                .iter()
                .map(|&stack| command_line(command.of(stack)))
                .collect(),
        }
    }

    /// Returns the command of the turn at a position.
    pub(in crate::program::commands) fn of(&self, turn: usize) -> &str {
        self.by_turn.get(turn).unwrap_or(&self.same)
    }
}
