//! Builds the flags of a command only when the command is used. Building those of all commands takes longer than many
//! commands do.

use std::ops::Deref;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The arguments of a command. If `IS_LATE`, their flags are built only when the command is used.
#[derive(Debug)]
pub(crate) struct Late<A, const IS_LATE: bool>(Box<A>);

impl<A: Args, const IS_LATE: bool> Args for Late<A, IS_LATE> {
    fn augment_args(command: Command) -> Command {
        if IS_LATE {
            command.defer(A::augment_args)
        } else {
            A::augment_args(command)
        }
    }

    fn augment_args_for_update(command: Command) -> Command {
        A::augment_args_for_update(command)
    }
}

impl<A: FromArgMatches, const IS_LATE: bool> FromArgMatches for Late<A, IS_LATE> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        A::from_arg_matches(matches).map(|args| Late(Box::new(args)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<A, const IS_LATE: bool> Deref for Late<A, IS_LATE> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}
