//! The report of a run as Markdown, for a comment or the summary of a CI job: failures first,
//! within a size limit.

mod inert;

use std::io::{self, Write};

use self::inert::{code, fenced, html_code, shortened, text};
use super::quote::quote;
use super::resources::changes_text;
use super::runs::{ShownRun, ShownStack, words};
use crate::duration;
use crate::record::journal::{OutcomeRecord, RunState, StackState};
use crate::record::logs::Logs;

/// The default limit in bytes: the longest comment on GitHub.
pub const MARKDOWN_BYTES: usize = 64 << 10;

/// The smallest limit: there is always room for the headline and the counts of what is left out.
pub const LEAST_MARKDOWN_BYTES: usize = 1 << 10;

/// How many bytes of the output of a failed stack are quoted at most, and at least.
const QUOTED: usize = 8 << 10;
const LEAST_QUOTED: usize = 200;

/// The longest command in the headline, and the longest cause in the table, in characters.
const LONGEST_COMMAND: usize = 60;
const LONGEST: usize = 100;

/// Room for the counts of what is left out.
const ROOM_FOR_REST: usize = 150;

const TABLE: &str = "| stack | outcome | changes | time | |\n| --- | --- | --- | --- | --- |\n";

/// The position of a stack in the table: what needs attention comes first.
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
                Some(changes) if changes.any => Rank::Changed,
                Some(_) => Rank::Unchanged,
                None => Rank::Succeeded,
            },
            _ => Rank::NotRun,
        }
    }
}

/// Writes a run as Markdown within a limit in bytes, which is at least [`LEAST_MARKDOWN_BYTES`].
///
/// # Errors
///
/// If it cannot be written.
pub(super) fn write_markdown(
    out: &mut impl Write,
    run: &ShownRun,
    logs: &Logs,
    limit: usize,
) -> io::Result<()> {
    out.write_all(Page::new(run).fit(logs, limit).as_bytes())
}

/// The content of the report.
struct Page<'a> {
    headline: String,
    /// A line that counts what the table leaves out.
    unchanged: String,
    /// The stacks in the table, in its order.
    stacks: Vec<ShownStack<'a>>,
    /// How many of these have output that is worth quoting.
    n_failed: usize,
}

impl<'a> Page<'a> {
    fn new(run: &'a ShownRun) -> Self {
        let mut stacks: Vec<ShownStack> = run.stacks().collect();
        let headline = headline(run, &stacks);
        let is_shown = |stack: &ShownStack| Rank::of(stack) != Rank::Unchanged;
        let n_all = stacks.len();
        stacks.retain(is_shown);
        let unchanged = match n_all - stacks.len() {
            0 => String::new(),
            1 => "\n1 stack succeeded without changes.\n".to_owned(),
            many => format!("\n{many} stacks succeeded without changes.\n"),
        };
        stacks.sort_by_key(Rank::of);
        let has_failed = |stack: &&ShownStack| Rank::of(stack) <= Rank::NotEnded;
        Page {
            headline,
            unchanged,
            n_failed: stacks.iter().filter(has_failed).count(),
            stacks,
        }
    }

    /// Returns the whole report, or as much as fits.
    fn fit(&self, logs: &Logs, limit: usize) -> String {
        let all = self.all(logs, limit);
        all.unwrap_or_else(|| self.part(logs, limit))
    }

    /// Returns the whole report, if it fits.
    fn all(&self, logs: &Logs, limit: usize) -> Option<String> {
        let mut page = self.headline.clone();
        if !self.stacks.is_empty() {
            page += "\n";
            page += TABLE;
        }
        for stack in &self.stacks {
            page += &row(stack);
            if page.len() > limit {
                return None;
            }
        }
        page += &self.unchanged;
        for stack in &self.stacks[..self.n_failed] {
            if page.len() > limit {
                return None;
            }
            page += &details(stack, logs, QUOTED).unwrap_or_default();
        }
        (page.len() <= limit).then_some(page)
    }

    /// Returns as much as fits: half of the room is for rows, if there is output to quote.
    fn part(&self, logs: &Logs, limit: usize) -> String {
        let fixed = self.headline.len() + 1 + TABLE.len() + self.unchanged.len() + ROOM_FOR_REST;
        let mut room = limit.saturating_sub(fixed);
        let mut for_rows = if self.n_failed > 0 { room / 2 } else { room };
        let mut rows: Vec<Option<String>> = vec![None; self.stacks.len()];
        take_rows(&self.stacks, &mut rows, &mut for_rows, &mut room);
        let mut quotes = String::new();
        let mut n_unquoted = 0;
        for (done, stack) in self.stacks[..self.n_failed].iter().enumerate() {
            // What one stack does not need is left for the others.
            let share = room / (self.n_failed - done).min(room / LEAST_QUOTED).max(1);
            match details_within(stack, logs, share.max(LEAST_QUOTED).min(room)) {
                Quoted::Nothing => {}
                Quoted::NoRoom => n_unquoted += 1,
                Quoted::Details(details) => {
                    room -= details.len();
                    quotes += &details;
                }
            }
        }
        let mut for_rows = room;
        take_rows(&self.stacks, &mut rows, &mut for_rows, &mut room);
        let n_missing = rows.iter().filter(|row| row.is_none()).count();
        let mut page = self.headline.clone();
        if n_missing < rows.len() {
            page += "\n";
            page += TABLE;
            page.extend(rows.into_iter().flatten());
        }
        if n_missing > 0 {
            page += &match n_missing {
                1 => "
1 more stack is left out here.
"
                .to_owned(),
                more => format!(
                    "
{more} more stacks are left out here.
"
                ),
            };
        }
        page += &self.unchanged;
        if n_unquoted > 0 {
            page += &match n_unquoted {
                1 => "
The output of 1 failed stack is left out here.
"
                .to_owned(),
                more => format!(
                    "
The output of {more} failed stacks is left out here.
"
                ),
            };
        }
        page + &quotes
    }
}

/// Takes the rows that fit and have not been taken yet.
fn take_rows(
    stacks: &[ShownStack],
    rows: &mut [Option<String>],
    for_rows: &mut usize,
    room: &mut usize,
) {
    // The length of the shortest possible row.
    const SHORTEST: usize = 12;
    for (stack, taken) in stacks.iter().zip(rows) {
        if *for_rows < SHORTEST {
            return;
        }
        if taken.is_some() {
            continue;
        }
        let row = row(stack);
        if row.len() <= *for_rows {
            *for_rows -= row.len();
            *room -= row.len();
            *taken = Some(row);
        }
    }
}

/// Returns the command and how it went.
fn headline(run: &ShownRun, stacks: &[ShownStack]) -> String {
    let command = code(&shortened(
        &words(&run.record.header.command),
        LONGEST_COMMAND,
    ));
    let went = match run.state {
        RunState::Running => "is running",
        RunState::Succeeded => "succeeded",
        RunState::Failed => "failed",
        RunState::Interrupted => "was interrupted",
        RunState::Killed => "was killed",
        RunState::Unknown => "has not finished",
        RunState::DryRun => "would run",
    };
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let mut ranked: Vec<&ShownStack> = stacks.iter().collect();
    ranked.sort_by_key(|stack| Rank::of(stack));
    for stack in ranked {
        let word = match &stack.record.state {
            // A later orch may know many more words.
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
    let counts = counts.iter().map(|(word, count)| match *word {
        "succeeded" if n_changed > 0 => format!("{count} succeeded ({n_changed} with changes)"),
        word => format!("{count} {word}"),
    });
    let mut counts = counts.collect::<Vec<_>>().join(", ");
    if counts.is_empty() {
        "There is nothing to do.".clone_into(&mut counts);
    } else if let Some(finished) = &run.record.finished {
        let elapsed = std::time::Duration::from_millis(finished.elapsed_ms);
        counts += &format!(" in {}", duration::show(elapsed));
    }
    format!("### {command} {went}\n\n{counts}\n")
}

/// Returns the row of a stack.
fn row(stack: &ShownStack) -> String {
    let changes = stack
        .changes()
        .map(|changes| text(&shortened(&changes_text(changes), LONGEST)));
    let cause = stack.cause().map(|cause| text(&shortened(&cause, LONGEST)));
    let elapsed = stack.elapsed().map(duration::show);
    format!(
        "| {} | {} | {} | {} | {} |\n",
        code(&stack.record.path),
        text(&shortened(stack.outcome(), LONGEST)),
        changes.unwrap_or_default(),
        elapsed.unwrap_or_default(),
        cause.unwrap_or_default(),
    )
}

/// The output of a failed stack.
enum Quoted {
    /// There is none.
    Nothing,
    /// It does not fit.
    NoRoom,
    /// The end of the output.
    Details(String),
}

/// Returns the end of the output of a stack, folded, of about this many bytes.
fn details(stack: &ShownStack, logs: &Logs, limit: usize) -> Option<String> {
    let quote = quote(*stack, logs, limit)?;
    let what = if quote.is_whole {
        "output"
    } else {
        "the end of the output"
    };
    let path = html_code(&stack.record.path);
    let lines = fenced(&quote.text);
    Some(format!(
        "\n<details>\n<summary>{path}: {what}</summary>\n\n{lines}\n</details>\n"
    ))
}

/// Returns the end of the output of a stack, folded, of at most this many bytes.
fn details_within(stack: &ShownStack, logs: &Logs, limit: usize) -> Quoted {
    let mut quoted = QUOTED.min(limit);
    loop {
        let Some(details) = details(stack, logs, quoted) else {
            return Quoted::Nothing;
        };
        if details.len() <= limit {
            return Quoted::Details(details);
        }
        quoted = match quoted.checked_sub(details.len() - limit) {
            Some(fewer) if fewer >= LEAST_QUOTED / 2 => fewer,
            _ => return Quoted::NoRoom,
        };
    }
}

#[cfg(test)]
mod tests;
