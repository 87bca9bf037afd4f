//! The command of a run and the environments in which it runs, both evaluated for each stack.

use std::collections::HashMap;
use std::ffi::OsString;

use orch::path::StackPath;
use orch::printable::command_line;
use orch::project::command::CommandTemplate;
use orch::project::environment::Environment;
use orch::project::per_stack::SharedProblem;
use orch::project::stack::{Stack, StackIndex, Stacks};
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
    let stacks: Vec<StackIndex> = selection.stacks().collect();
    let evaluated = evaluated(loaded, words, is_eval, &stacks)?;
    loaded.add_shared(evaluated.problems);
    Ok((evaluated.environments, evaluated.command))
}

/// What was evaluated for some stacks.
pub(super) struct Evaluated {
    pub(super) environments: Vec<(StackIndex, Environment)>,
    pub(super) command: RunCommand,
    /// What is wrong, with the stacks for which it is.
    pub(super) problems: Vec<SharedProblem>,
}

/// Evaluates the environment of some stacks and, with `is_eval`, a command. A command that cannot be parsed adds to
/// the problems of the project.
pub(super) fn evaluated(
    loaded: &mut Loaded,
    words: &[OsString],
    is_eval: bool,
    stacks: &[StackIndex],
) -> Result<Evaluated> {
    let of_all = || stacks.iter().copied();
    if !is_eval {
        let known = loaded.in_generations(|loaded| loaded.evaluator().of_stacks(of_all()))?;
        return Ok(Evaluated {
            environments: known.0,
            command: RunCommand::plain(words.to_vec()),
            problems: known.1,
        });
    }
    let mut problems = Vec::new();
    let template = CommandTemplate::parse(words, &mut loaded.project.sources, &mut problems);
    let template = template.map_err(|not_unicode| {
        ProgramError::usage(not_unicode.to_string()).hint("run it without `--eval`")
    })?;
    let has_template = problems.is_empty();
    loaded.problems.diagnostics.append(&mut problems);
    let (environments, commands, problems) = loaded.in_generations(|loaded| {
        let environments = loaded.evaluator();
        let (known, shared) = environments.of_stacks(of_all());
        if !has_template {
            return (known, Vec::new(), shared);
        }
        let namespaces = environments.namespaces();
        let (commands, wrong) = template.of_stacks(namespaces, of_all());
        (known, commands, [shared, wrong].concat())
    })?;
    Ok(Evaluated {
        environments,
        command: RunCommand::evaluated(words.to_vec(), commands),
        problems,
    })
}

/// The command of each turn as text, made printable.
pub(in crate::program::commands) struct CommandLines {
    /// The command of all turns, if it is the same in all.
    same: String,
    /// The command of each turn, if they differ.
    by_turn: Vec<String>,
    /// Those of what policies ask for, if it can follow.
    followup: Option<FollowUpLines>,
}

/// The command of what policies ask for.
struct FollowUpLines {
    /// The command in all stacks, if it is the same in all.
    same: String,
    /// The command in each stack, if they differ.
    by_stack: HashMap<StackPath, String>,
    /// Which of the turns that the run begins with have it.
    are_followups: Vec<bool>,
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
            followup: None,
        }
    }

    /// Adds the command of what policies ask for, given which of the turns that the run begins with have it.
    pub(in crate::program::commands) fn with_followup(
        mut self,
        command: &RunCommand,
        stacks: &Stacks,
        are_followups: Vec<bool>,
    ) -> Self {
        let evaluated = command.is_evaluated().then(|| stacks.iter());
        let line =
            |(stack, it): (StackIndex, &Stack)| (it.path.clone(), command_line(command.of(stack)));
        self.followup = Some(FollowUpLines {
            same: command_line(command.given()),
            by_stack: evaluated.into_iter().flatten().map(line).collect(),
            are_followups,
        });
        self
    }

    /// Returns the command of the turn at a position, which is one of this stack.
    pub(in crate::program::commands) fn of(&self, turn: usize, stack: &StackPath) -> &str {
        match &self.followup {
            Some(followup) if *followup.are_followups.get(turn).unwrap_or(&true) => {
                followup.by_stack.get(stack).unwrap_or(&followup.same)
            }
            _ => self.by_turn.get(turn).unwrap_or(&self.same),
        }
    }
}
