//! Progress of applying a plan file: `.orch/applied/<plan id>`, one per plan. It outlives the
//! journals of the runs.
//!
//! A run writes a numbered line before its first command, after each successful operation, and at
//! the end. An incomplete last line is dropped. Any other damaged or missing line is an error, and
//! so is an empty file: otherwise a finished operation could run twice.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::stale::{DoneOperations, LastRun, OperationKey};
use crate::error::{BoxedError, Error, Result};
use crate::folder::{GuardedFolder, Unusable, failed};
use crate::path::StackPath;
use crate::record::journal::line;
use crate::run::event::{Outcome, RunEvent, Sink, Turns};
use crate::run::turn::{Operation, TurnIndex};

/// In `.orch`.
const FOLDER: &str = "applied";

const FORMAT: u32 = 2;

#[derive(Debug, Clone)]
pub struct PlanProgress {
    pub progress: DoneOperations,
    /// The file's path in `.orch`.
    path: String,
    text: Vec<u8>,
}

fn unknown(why: impl Into<BoxedError>, hint: &str) -> Error {
    let error = Error::described("the progress of this plan is unknown", why);
    error.refusing().hint(hint)
}

fn unusable(why: Unusable) -> Error {
    let hint = "make it readable and writable for this user, or make a new plan";
    unknown(why, hint)
}

fn damaged(path: &str, line: usize, why: &serde_json::Error) -> Error {
    let why = format!("line {line} of `.orch/{path}` is damaged: {why}");
    unknown(why, "make a new plan")
}

#[derive(Debug, Serialize, Deserialize)]
struct NumberedLine {
    line: usize,
    #[serde(flatten)]
    event: Line,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Begun {
        format: u32,
        orch: String,
        run: String,
        at: Timestamp,
        /// Whether it may start a command of the plan.
        is_work: bool,
        /// Whether policies run after it.
        is_followed: bool,
    },
    Done {
        at: Timestamp,
        stack: StackPath,
        operation: OperationKey,
    },
    Ended {
        at: Timestamp,
        status: u8,
    },
}

#[derive(Debug, Clone, Copy)]
pub struct ApplyRun<'a> {
    pub id: &'a str,
    /// Whether it may start a command of the plan.
    pub is_work: bool,
    /// Whether policies run after it.
    pub is_followed: bool,
}

impl PlanProgress {
    /// Reads the progress of a plan; it is empty if no run has begun.
    pub fn read(root: &Path, plan: &str) -> Result<Self> {
        // The plan file is untrusted: its id must not lead to another path.
        if !Uuid::try_parse(plan).is_ok_and(|id| id.to_string() == plan) {
            let why = format!("`{plan}` is not the id of a plan");
            return Err(unknown(why, "make a new plan"));
        }
        let path = format!("{FOLDER}/{plan}");
        let text = GuardedFolder::find(root).and_then(|folder| match folder {
            Some(folder) => folder.read(&path),
            None => Ok(None),
        });
        let text = text.map_err(unusable)?;
        if text.as_ref().is_some_and(Vec::is_empty) {
            let error = serde_json::Error::custom("the file is empty");
            return Err(damaged(&path, 1, &error));
        }
        let text = text.unwrap_or_default();
        Ok(PlanProgress {
            progress: progress(&path, &text)?,
            path,
            text,
        })
    }

    /// Starts recording a run's progress. The caller holds the project lock. Fails if the file
    /// cannot be written, or was written since it was read.
    pub fn begin(&self, root: &Path, run: &ApplyRun<'_>) -> Result<ProgressWriter> {
        let folder = GuardedFolder::create(root).map_err(unusable)?;
        let text = folder.read(&self.path).map_err(unusable)?;
        if text.unwrap_or_default() != self.text {
            let message = "another run has partially applied the plan meanwhile";
            return Err(Error::refused(message).hint("run the same command again"));
        }
        folder.make_directory(FOLDER).map_err(unusable)?;
        let options = &mut OpenOptions::new();
        let complete = complete(&self.text);
        let file = folder.open(&self.path, options.append(true).create(true));
        let mut writer = ProgressWriter {
            file: file.map_err(unusable)?,
            path: self.path.clone(),
            length: complete.len() as u64,
            n_lines: complete.split_inclusive(|&byte| byte == b'\n').count(),
            pending: Vec::new(),
            has_complained: false,
            turns: Turns::default(),
            n_planned: 0,
            started: BTreeSet::new(),
        };
        let begun = Line::Begun {
            format: FORMAT,
            orch: env!("CARGO_PKG_VERSION").to_owned(),
            run: run.id.to_owned(),
            at: Timestamp::now(),
            is_work: run.is_work,
            is_followed: run.is_followed,
        };
        let written = writer.write(begun);
        let path = format!(".orch/{}", self.path);
        written.map_err(|error| unusable(failed("write", &path, error)))?;
        Ok(writer)
    }
}

fn complete(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte == b'\n');
    &text[..end.map_or(0, |end| end + 1)]
}

fn progress(path: &str, text: &[u8]) -> Result<DoneOperations> {
    let mut progress = DoneOperations::default();
    let lines = complete(text).split_inclusive(|&byte| byte == b'\n');
    for (text, number) in lines.zip(1..) {
        let line = serde_json::from_slice(text).and_then(|line: NumberedLine| {
            let is_next = line.line == number;
            let missing = || serde_json::Error::custom(format!("it has the number {}", line.line));
            is_next.then_some(line.event).ok_or_else(missing)
        });
        let line = line.map_err(|error| damaged(path, number, &error))?;
        match line {
            Line::Begun { format, orch, .. } if format > FORMAT => {
                let why = format!(
                    "`.orch/{path}` has format {format}, written by orch {orch}; this orch reads formats up to {FORMAT}"
                );
                let hint = "use that version of orch, or make a new plan";
                return Err(unknown(why, hint));
            }
            Line::Begun {
                run,
                at,
                is_work,
                is_followed,
                ..
            } => {
                progress.has_begun |= is_work;
                progress.followed.extend(is_followed.then(|| run.clone()));
                progress.last_run = Some(LastRun {
                    run,
                    at,
                    has_succeeded: false,
                });
            }
            Line::Done {
                at,
                stack,
                operation,
            } => {
                progress.done.insert((stack, operation));
                progress.last_run.iter_mut().for_each(|last| last.at = at);
            }
            Line::Ended { at, status } => progress.last_run.iter_mut().for_each(|last| {
                last.at = at;
                last.has_succeeded = status == 0;
            }),
        }
    }
    Ok(progress)
}

pub struct ProgressWriter {
    file: File,
    path: String,
    /// The length of the complete lines in the file.
    length: u64,
    /// The number of lines in the file, plus pending ones.
    n_lines: usize,
    /// Lines that could not be written yet.
    pending: Vec<u8>,
    has_complained: bool,
    turns: Turns,
    /// How many turns belong to the plan; the others were added.
    n_planned: usize,
    /// The stacks whose planned `apply` has started.
    started: BTreeSet<StackPath>,
}

impl ProgressWriter {
    fn write(&mut self, event: Line) -> io::Result<()> {
        self.n_lines += 1;
        self.pending.extend(line(&NumberedLine {
            line: self.n_lines,
            event,
        })?);
        // Part of a line may have been written.
        self.file.set_len(self.length)?;
        self.file.write_all(&self.pending)?;
        self.file.sync_data()?;
        self.length += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Returns the plan's operation that is done once a turn succeeds. An added turn counts only if
    /// it repeats a planned one that has started.
    fn done_with(&self, turn: TurnIndex) -> Option<OperationKey> {
        let is_planned = turn.get() < self.n_planned;
        match self.turns[turn].operation {
            Operation::Destroy if is_planned => Some(OperationKey::Destroy),
            Operation::Apply if is_planned || self.started.contains(&self.turns[turn].stack) => {
                Some(OperationKey::Apply)
            }
            _ => None,
        }
    }
}

impl Sink for ProgressWriter {
    fn event(&mut self, event: &RunEvent) -> io::Result<()> {
        self.turns.follow(event);
        let at = Timestamp::now();
        let line = match event {
            RunEvent::RunStarted { turns } => {
                self.n_planned = turns.len();
                return Ok(());
            }
            RunEvent::Started { turn, .. } => {
                let started = &self.turns[*turn];
                if turn.get() < self.n_planned && started.operation == Operation::Apply {
                    self.started.insert(started.stack.clone());
                }
                return Ok(());
            }
            RunEvent::Ended(ending) if ending.outcome == Outcome::Succeeded => {
                let Some(operation) = self.done_with(ending.turn) else {
                    return Ok(());
                };
                let stack = self.turns[ending.turn].stack.clone();
                Line::Done {
                    at,
                    stack,
                    operation,
                }
            }
            RunEvent::RunFinished(summary) => Line::Ended {
                at,
                status: summary.status_of_turns(),
            },
            _ => return Ok(()),
        };
        match self.write(line) {
            Err(error) if !std::mem::replace(&mut self.has_complained, true) => {
                Err(io::Error::other(format!(
                    "`.orch/{}` can no longer be written: {error}; the run continues, but `--resume` may later repeat stacks that succeed from now on",
                    self.path
                )))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::with_causes;

    const BEGUN: &str = r#"{"line":1,"event":"begun","format":2,"orch":"1","run":"r1","at":"2026-01-02T03:04:05Z","is_work":true,"is_followed":false}"#;
    const DONE: &str =
        r#"{"line":2,"event":"done","at":"2026-01-02T03:04:06Z","stack":"/a","operation":"apply"}"#;
    const ENDED: &str = r#"{"line":3,"event":"ended","at":"2026-01-02T03:04:07Z","status":0}"#;

    fn read(text: &str) -> Result<(bool, usize, bool), String> {
        let read = progress("applied/x", text.as_bytes()).map_err(|error| with_causes(&error))?;
        let has_succeeded = read.last_run.is_some_and(|last| last.has_succeeded);
        Ok((read.has_begun, read.done.len(), has_succeeded))
    }

    #[test]
    fn progress_reads_complete_lines_only() {
        let all = format!("{BEGUN}\n{DONE}\n{ENDED}\n");
        for (text, expected) in [
            ("", (false, 0, false)),
            (BEGUN, (false, 0, false)), // its run has started no command
            (&all[..=BEGUN.len()], (true, 0, false)),
            (&all[..BEGUN.len() + DONE.len()], (true, 0, false)),
            (&all[..all.len() - 1], (true, 1, false)),
            (&all, (true, 1, true)),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn progress_fails_if_unreadable() {
        let damaged = |text: &str, line: &str| {
            let error = read(text).unwrap_err();
            assert!(error.contains(line), "{error}");
        };
        damaged(&format!("{BEGUN}\n{}\n", &DONE[1..]), "line 2");
        damaged(&format!("{BEGUN}\n\n{ENDED}\n"), "line 2");
        let unknown = DONE.replace("done", "undone");
        damaged(&format!("{BEGUN}\n{unknown}\n"), "line 2");
        let newer = BEGUN.replace("\"format\":2", "\"format\":3");
        damaged(&format!("{newer}\n"), "format 3");
        damaged(&format!("{BEGUN}\n{ENDED}\n"), "line 2");
        damaged(&format!("{DONE}\n{ENDED}\n"), "line 1");
    }

    #[test]
    fn progress_refuses_invalid_plan_ids() {
        let root = tempfile::tempdir().unwrap();
        for id in ["", "..", "../lock", "0194B6F0-0000-7000-8000-000000000000"] {
            let read = PlanProgress::read(root.path(), id);
            let error = with_causes(&read.unwrap_err());
            assert!(error.ends_with("is not the id of a plan"), "{error}");
        }
    }
}
