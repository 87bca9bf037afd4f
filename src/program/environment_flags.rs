//! Flags by environment: the variables `TM_ARG_…` with which Terramate is configured in CI.
//!
//! They hold for the commands that Terramate has too. A flag on the command line wins.

use std::env;

use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction, Command};

/// The variable of the only flag that each command has.
const CHDIR: [(&str, &str); 1] = [("chdir", "TM_ARG_CHDIR")];

/// The variables of flags that select stacks.
const SELECTION: [(&str, &str); 4] = [
    ("changed", "TM_ARG_CHANGED"),
    ("base", "TM_ARG_GIT_CHANGE_BASE"),
    ("tags", "TM_ARG_TAGS"),
    ("no_tags", "TM_ARG_NO_TAGS"),
];

const RUN: [(&str, &str); 9] = [
    ("quiet", "TM_ARG_QUIET"),
    ("no_recursive", "TM_ARG_RUN_NO_RECURSIVE"),
    ("continue_on_error", "TM_ARG_RUN_CONTINUE_ON_ERROR"),
    ("dry_run", "TM_ARG_RUN_DRY_RUN"),
    ("reverse", "TM_ARG_RUN_REVERSE"),
    ("parallel", "TM_ARG_RUN_PARALLEL"),
    ("eval", "TM_ARG_RUN_EVAL"),
    ("enable_sharing", "TM_ARG_RUN_ENABLE_SHARING"),
    ("mock_on_fail", "TM_ARG_RUN_MOCK_ON_FAIL"),
];

/// The flags with an optional value, which is a switch.
const SWITCHES: [&str; 1] = ["continue_on_error"];

pub(crate) fn is_any_set() -> bool {
    let mut all = CHDIR.iter().chain(&SELECTION).chain(&RUN);
    all.any(|(_, variable)| is_set(variable))
}

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Adds the variables that are set to the flags of a command line.
pub(crate) fn with_environment(root: Command) -> Command {
    let root = with_variables(root, &CHDIR);
    root.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        match &*name {
            "list" | "globals" | "env" => with_variables(command, &SELECTION),
            "run" => with_variables(with_variables(command, &SELECTION), &RUN),
            "script" => command.mut_subcommands(|nested| match nested.get_name() {
                "run" => with_variables(with_variables(nested, &SELECTION), &RUN),
                _ => nested,
            }),
            "debug" => command.mut_subcommands(|show| {
                show.mut_subcommands(|shown| with_variables(shown, &SELECTION))
            }),
            _ => command,
        }
    })
}

fn with_variables(command: Command, variables: &'static [(&str, &str)]) -> Command {
    command.mut_args(|arg| {
        let mut known = variables.iter();
        match known.find(|(id, _)| arg.get_id().as_str() == *id) {
            Some((_, variable)) => with_variable(arg, variable),
            None => arg,
        }
    })
}

fn with_variable(arg: Arg, variable: &'static str) -> Arg {
    if !is_set(variable) {
        return arg;
    }
    let is_switch =
        matches!(arg.get_action(), ArgAction::SetTrue) || SWITCHES.contains(&arg.get_id().as_str());
    let arg = arg.env(variable).hide_env(true);
    if is_switch {
        arg.value_parser(BoolishValueParser::new())
    } else {
        arg
    }
}
