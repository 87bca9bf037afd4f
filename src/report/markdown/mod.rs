//! The report of a run as Markdown, for a comment or the summary of a CI job: failures first,
//! within a size limit.

pub(super) mod inert;
pub(super) mod page;

use std::borrow::Cow;
use std::io::{self, Write};

use self::inert::{code, shortened, text};
use self::page::{Content, fit, folded};
use super::quote::quote;
use super::resources::changes_text;
use super::runs::{Causes, Followed, ShownRun, ShownStack, policy_problems, words};
use crate::duration;
use crate::record::journal::{OutcomeRecord, RunStatus, StackState};
use crate::record::logs::Logs;

/// The default limit in bytes: the longest comment on GitHub.
pub const MARKDOWN_BYTES: usize = 64 << 10;

/// The smallest limit: there is always room for the headline and the counts of what is left out.
pub const LEAST_MARKDOWN_BYTES: usize = 1 << 10;

/// The longest command in the headline, and the longest cause in the table, in characters.
const LONGEST_COMMAND: usize = 60;
const LONGEST: usize = 100;

/// The longest chain of turns in the table, and the longest problem of a policy, in characters.
const LONGEST_CHAIN: usize = 200;
const LONGEST_PROBLEM: usize = 300;

/// The position of a stack in the table: stacks that need attention come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Failed,
    NotEnded,
    Changed,
    NotRun,
    Succeeded,
    /// It has succeeded without changes, and is only counted.
    Unchanged,
}

impl Rank {
    fn of(stack: &ShownStack) -> Self {
        match &stack.record.state {
            state if state.is_failure() => Rank::Failed,
            StackState::Started { .. } => Rank::NotEnded,
            state if state.is_success() => match stack.changes() {
                Some(changes) if changes.has_changes => Rank::Changed,
                Some(_) => Rank::Unchanged,
                None => Rank::Succeeded,
            },
            _ => Rank::NotRun,
        }
    }
}

/// Writes a run as Markdown within a limit in bytes, which is at least [`LEAST_MARKDOWN_BYTES`].
pub(super) fn write_markdown(
    out: &mut impl Write,
    run: &ShownRun,
    logs: &Logs,
    limit: usize,
) -> io::Result<()> {
    out.write_all(fit(&RunPage::new(run, logs), limit).as_bytes())
}

struct RunPage<'a> {
    headline: String,
    /// A line that counts what the table leaves out.
    unchanged: String,
    /// The stacks in the table, in its order.
    stacks: Vec<ShownStack<'a>>,
    causes: Causes<'a>,
    /// A line for each problem of a policy.
    problems: Vec<String>,
    /// How many of these have output to quote.
    n_failed: usize,
    logs: &'a Logs,
}

impl<'a> RunPage<'a> {
    fn new(run: &'a ShownRun, logs: &'a Logs) -> Self {
        let mut stacks: Vec<ShownStack> = run.stacks().collect();
        let headline = headline(run, &stacks);
        let causes = Causes::new(run);
        let has_followed = |stack: &ShownStack| !causes.of(&stack.record.path).is_empty();
        let is_shown =
            |stack: &ShownStack| Rank::of(stack) != Rank::Unchanged || has_followed(stack);
        let n_all = stacks.len();
        stacks.retain(is_shown);
        let unchanged = match n_all - stacks.len() {
            0 => String::new(),
            1 => "\n1 stack succeeded without changes.\n".to_owned(),
            many => format!("\n{many} stacks succeeded without changes.\n"),
        };
        stacks.sort_by_key(Rank::of);
        let has_failed = |stack: &&ShownStack| Rank::of(stack) <= Rank::NotEnded;
        RunPage {
            headline,
            unchanged,
            n_failed: stacks.iter().filter(has_failed).count(),
            stacks,
            causes,
            problems: problem_lines(run),
            logs,
        }
    }
}

impl Content for RunPage<'_> {
    const TABLE: &'static str =
        "| stack | outcome | changes | time | |\n| --- | --- | --- | --- | --- |\n";
    const QUOTED: usize = 8 << 10;
    const LEAST_QUOTED: usize = 200;
    const TABLE_FIRST: bool = false;

    fn headline(&self) -> &str {
        &self.headline
    }

    fn notes(&self, limit: usize) -> Cow<'_, str> {
        let mut notes = self.unchanged.clone();
        for (number, problem) in self.problems.iter().enumerate() {
            let gap = if number == 0 { "\n" } else { "" };
            if notes.len() + gap.len() + problem.len() > limit {
                notes += &missing_problems(self.problems.len() - number);
                break;
            }
            notes += gap;
            notes += problem;
        }
        Cow::Owned(notes)
    }

    fn n_rows(&self) -> usize {
        self.stacks.len()
    }

    fn row(&self, number: usize) -> String {
        let stack = &self.stacks[number];
        row(stack, &self.causes.of(&stack.record.path))
    }

    fn n_quotes(&self) -> usize {
        self.n_failed
    }

    fn quote(&self, number: usize, limit: usize) -> Option<String> {
        let stack = self.stacks[number];
        let quote = quote(stack, self.logs, limit)?;
        let what = if quote.left_out == 0 {
            "output"
        } else {
            "the end of the output"
        };
        Some(folded(&stack.record.path, what, &quote.text))
    }

    fn unquoted(&self, count: usize) -> String {
        match count {
            1 => "\nThe output of 1 failed stack is left out here.\n".to_owned(),
            more => format!("\nThe output of {more} failed stacks is left out here.\n"),
        }
    }
}

/// Returns the command and its result.
fn headline(run: &ShownRun, stacks: &[ShownStack]) -> String {
    let command = code(&shortened(
        &words(&run.record.header.command),
        LONGEST_COMMAND,
    ));
    let went = match run.state {
        RunStatus::Running => "is running",
        RunStatus::Succeeded => "succeeded",
        RunStatus::Failed => "failed",
        RunStatus::Interrupted => "was interrupted",
        RunStatus::Killed => "was killed",
        RunStatus::Unknown => "has not finished",
        RunStatus::DryRun => "would run",
    };
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let mut ranked: Vec<&ShownStack> = stacks.iter().collect();
    ranked.sort_by_key(|stack| Rank::of(stack));
    for stack in ranked {
        let word = match &stack.record.state {
            // A later `orch` may know more outcomes.
            StackState::Ended(ended) if matches!(ended.outcome, OutcomeRecord::Other(_)) => "other",
            _ => stack.outcome(),
        };
        match counts.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => counts.push((word, 1)),
        }
    }
    let is_changed = |stack: &&ShownStack| Rank::of(stack) == Rank::Changed;
    let n_changed = stacks.iter().filter(is_changed).count();
    let mut counts = counts
        .iter()
        .map(|(word, count)| match *word {
            "succeeded" if n_changed > 0 => format!("{count} succeeded ({n_changed} with changes)"),
            word => format!("{count} {word}"),
        })
        .collect::<Vec<_>>()
        .join(", ");
    if counts.is_empty() {
        "There is nothing to do.".clone_into(&mut counts);
    } else if let Some(finished) = &run.record.finished {
        let elapsed = std::time::Duration::from_millis(finished.elapsed_ms);
        counts += &format!(" in {}", duration::show(elapsed));
    }
    format!("### {command} {went}\n\n{counts}\n")
}

/// Returns a line for each problem of a policy, as a list.
fn problem_lines(run: &ShownRun) -> Vec<String> {
    let problems = policy_problems(&run.record).into_iter();
    let lines =
        problems.map(|problem| format!("- {}\n", text(&shortened(&problem, LONGEST_PROBLEM))));
    lines.collect()
}

/// Returns the line that counts the problems of policies that have no room.
fn missing_problems(count: usize) -> String {
    match count {
        1 => "\n1 more problem with policies is left out here.\n".to_owned(),
        more => format!("\n{more} more problems with policies are left out here.\n"),
    }
}

fn row(stack: &ShownStack, turns: &[Followed<'_>]) -> String {
    let changes = stack
        .changes()
        .map(|changes| text(&shortened(&changes_text(changes), LONGEST)));
    let cause = stack.cause().map(|cause| text(&shortened(&cause, LONGEST)));
    let chains: Vec<String> = turns.iter().map(Followed::arrows).collect();
    let chains = text(&shortened(&chains.join("; "), LONGEST_CHAIN));
    let why: Vec<String> = cause
        .into_iter()
        .chain((!turns.is_empty()).then_some(chains))
        .collect();
    let elapsed = stack.elapsed().map(duration::show);
    format!(
        "| {} | {} | {} | {} | {} |\n",
        code(&stack.record.path),
        text(&shortened(stack.outcome(), LONGEST)),
        changes.unwrap_or_default(),
        elapsed.unwrap_or_default(),
        why.join(" "),
    )
}

#[cfg(test)]
mod tests;
