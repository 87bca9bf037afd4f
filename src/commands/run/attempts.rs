//! How long commands may run: what flags say.

use std::collections::HashMap;

use orch::attempt::Attempts;
use orch::stack::StackIndex;

use crate::cli::AttemptArgs;

/// Returns what the stacks of a run allow their commands.
pub(super) fn attempts(
    args: &AttemptArgs,
    sequence: &[StackIndex],
) -> HashMap<StackIndex, Attempts> {
    let attempts = Attempts {
        timeout: args.timeout,
        retry: None,
    };
    sequence
        .iter()
        .map(|&stack| (stack, attempts.clone()))
        .collect()
}
