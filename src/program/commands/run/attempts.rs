//! What flags and configuration say about commands: how often and how long those of a stack may run,
//! and how many of those with a tag at once.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use orch::diagnostic::closest;
use orch::project::attempt::{Attempts, DEFAULT_BACKOFF, Retry, patterns};
use orch::project::stack::StackIndex;
use orch::run::schedule::Limit;
use regex::bytes::RegexSet;

use super::arguments::{AttemptArgs, LimitArg};
use crate::program::commands::Loaded;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Returns what each stack of a run allows its command, in their sequence. Flags replace what is configured, each what it is about.
pub(super) fn attempts(
    loaded: &Loaded,
    args: &AttemptArgs,
    sequence: &[StackIndex],
) -> Result<Vec<Attempts>> {
    let flags = Flags::new(args)?;
    let mut scopes = loaded.project.scopes.values();
    let is_configured = scopes.any(|scope| !scope.attempts.is_empty());
    let mut attempts = vec![Attempts::default(); sequence.len()];
    let mut without_condition = Vec::new();
    if is_configured || flags.say_something() {
        for (&stack, attempts) in sequence.iter().zip(&mut attempts) {
            let configured = loaded.project.attempts_of(stack);
            let Ok(retry) = flags.retry(configured.retry.as_ref()) else {
                without_condition.push(stack);
                continue;
            };
            let timeout = args.timeout.or(configured.timeout);
            *attempts = Attempts { timeout, retry };
        }
    }
    if !without_condition.is_empty() {
        let message = format!(
            "--retries {} does not say after which failures {} is tried again; add --retry-on-exit STATUS or --retry-on-output REGEX, or a `retry` block to the configuration",
            args.retries.unwrap_or_default(),
            loaded.names(&without_condition),
        );
        return Err(ProgramError::usage(message));
    }
    if let (Some(flag), None) = (flags.about_retries(), args.retries)
        && !attempts.iter().any(|attempts| attempts.retry.is_some())
    {
        let message = format!(
            "{flag} without --retries N changes nothing: no selected stack is configured to be tried again"
        );
        return Err(ProgramError::usage(message));
    }
    Ok(attempts)
}

/// What the flags say about retries.
struct Flags<'a> {
    args: &'a AttemptArgs,
    on_output: RegexSet,
}

/// Another attempt is wanted, and nothing says when.
struct NoCondition;

impl<'a> Flags<'a> {
    fn new(args: &'a AttemptArgs) -> Result<Self> {
        let on_output = patterns(&args.retry_on_output).map_err(|(index, problem)| {
            let pattern = &args.retry_on_output[index];
            ProgramError::usage(format!("in --retry-on-output: `{pattern}`: {problem}"))
        })?;
        Ok(Flags { args, on_output })
    }

    /// Says whether they change anything.
    fn say_something(&self) -> bool {
        let args = self.args;
        args.timeout.is_some() || args.retries.is_some() || self.about_retries().is_some()
    }

    /// Returns the first flag that is about retries and does not ask for them.
    fn about_retries(&self) -> Option<&'static str> {
        let args = self.args;
        let flags = [
            (!args.retry_on_exit.is_empty(), "--retry-on-exit"),
            (!args.retry_on_output.is_empty(), "--retry-on-output"),
            (args.retry_backoff.is_some(), "--retry-backoff"),
        ];
        let mut given = flags.into_iter().filter(|(is_given, _)| *is_given);
        given.next().map(|(_, flag)| flag)
    }

    /// Returns when a stack is tried again for which this is configured.
    fn retry(&self, configured: Option<&Arc<Retry>>) -> Result<Option<Arc<Retry>>, NoCondition> {
        let args = self.args;
        // As many as are wanted after the first; one attempt is none that follows another.
        let attempts = match args.retries {
            Some(retries) => NonZeroU32::MIN.saturating_add(retries),
            None => configured.map_or(NonZeroU32::MIN, |retry| retry.attempts),
        };
        if attempts.get() == 1 {
            return Ok(None);
        }
        if args.retries.is_none() && self.about_retries().is_none() {
            return Ok(configured.cloned());
        }
        let backoff = args.retry_backoff;
        let backoff = backoff.or(configured.map(|retry| retry.backoff));
        let has_conditions = !args.retry_on_exit.is_empty() || !self.on_output.is_empty();
        let (on_exit, on_output) = match configured {
            Some(retry) if !has_conditions => (&retry.on_exit, &retry.on_output),
            _ => (&args.retry_on_exit, &self.on_output),
        };
        if on_exit.is_empty() && on_output.is_empty() {
            return Err(NoCondition);
        }
        Ok(Some(Arc::new(Retry {
            attempts,
            backoff: backoff.unwrap_or(DEFAULT_BACKOFF),
            on_exit: on_exit.clone(),
            on_output: on_output.clone(),
        })))
    }
}

/// Returns how many of which stacks may run at once: as the flags say, and as `concurrency` does for
/// other tags.
pub(super) fn limits(loaded: &Loaded, flags: &[LimitArg]) -> Result<Vec<Limit>> {
    let stacks = &loaded.project.stacks;
    let mut seen = HashSet::new();
    for LimitArg { tag, at_once } in flags {
        if !seen.insert(tag.as_str()) {
            let message = format!("in --limit: `{tag}` is limited twice; remove one of them");
            return Err(ProgramError::usage(message));
        }
        if !stacks.has_tag(tag) {
            let meant = closest(tag, stacks.tags());
            let meant = meant.map_or(String::new(), |tag| format!("; did you mean `{tag}`?"));
            console::note(&format!(
                "`--limit {tag}={at_once}` limits nothing: no stack carries the tag{meant}"
            ));
        }
    }
    let configured = loaded.project.settings.concurrency.iter();
    let configured = configured.map(|limit| (limit.value.tag.as_str(), limit.value.at_once));
    let others = configured.filter(|(tag, _)| !seen.contains(tag));
    let flags = flags
        .iter()
        .map(|limit| (limit.tag.as_str(), limit.at_once));
    let limit = |(tag, at_once)| Limit {
        at_once,
        nodes: stacks
            .with_tag(tag)
            .iter()
            .map(|stack| stack.get())
            .collect(),
    };
    Ok(flags.chain(others).map(limit).collect())
}
