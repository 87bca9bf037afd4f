//! `orch run --resume` and `--only-failed`: what the program asks of an earlier run, and what it says.

use std::num::NonZeroUsize;
use std::time::Duration;

use orch::git::GitError;
use orch::printable::printable;
use orch::project::stack::Stacks;
use orch::record::journal::Header;
use orch::run::order::Direction;
use orch::run::resume::{
    EarlierRun, Moved, MovedStack, ResumeError, ResumedRun, UnknownChanges, WorkingTree,
};
use orch::run::schedule::OnError;

use super::arguments::{Jobs, LimitArg, OnErrorArg, RunArgs};
use crate::program::commands::changed::GitState;
use crate::program::commands::{Loaded, count};
use crate::program::console;
use crate::program::error::{ErrorKind, ProgramError, Result};

/// How many stacks a message names.
const MAX_NAMED: usize = 5;

/// Finds the run that the user wants to resume, if any, and takes over what they do not say anew: the
/// command, the direction, and how the run goes. Notes on stderr that nothing is left to do.
pub(super) fn resumed(loaded: &mut Loaded, args: &mut RunArgs) -> Result<Option<ResumedRun>> {
    let named = match (&args.resume.resume, args.resume.only_failed) {
        (Some(named), _) => named,
        (None, true) => "last",
        (None, false) => return Ok(None),
    };
    let earlier = EarlierRun::find(&loaded.project.root, named).map_err(explained)?;
    let header = &earlier.record.header;
    if let Some(named) = &earlier.named {
        console::note(&format!(
            "run {named} was resumed in run {}, which is now resumed",
            header.run
        ));
    }
    let allow_stale = args.resume.allow_stale;
    let moved = loaded.moved(&earlier);
    check(&loaded.project.stacks, &header.run, &moved, allow_stale)?;
    let only_failed = args.resume.only_failed;
    let resumed =
        ResumedRun::new(&earlier, &loaded.project.stacks, only_failed).map_err(explained)?;
    tell_gone(&resumed, allow_stale)?;
    tell_rest(&resumed);
    take_over(args, header, resumed.direction)?;
    Ok(Some(resumed))
}

impl Loaded {
    /// Finds what has changed since an earlier run.
    fn moved(&mut self, earlier: &EarlierRun) -> Moved {
        let read = match self.read() {
            Ok(read) => Ok(Some(read)),
            Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => Ok(None),
            Err(error) => Err(UnknownChanges::Head(error)),
        };
        let known = read.and_then(|read| match read {
            None => Ok(None),
            Some(GitState { repository, status }) => match status {
                Ok(files) => Ok(Some((repository, files))),
                Err(error) => Err(UnknownChanges::Status(error)),
            },
        });
        let (known, unknown) = match known {
            Ok(known) => (known, None),
            Err(unknown) => (None, Some(unknown)),
        };
        let tree = known.as_ref().map(|(repository, files)| WorkingTree {
            repository,
            status: files,
        });
        let moved = earlier.moved(
            &self.project,
            &self.listing,
            &self.references,
            unknown.map_or(Ok(tree), Err),
            &mut self.problems,
        );
        // The safeguards look at it once more.
        self.read = known.map(|(repository, files)| GitState {
            repository,
            status: Ok(files),
        });
        moved
    }
}

/// Adds the way out.
fn explained(error: ResumeError) -> ProgramError {
    let (kind, hint) = match &error {
        ResumeError::Find(_) => (ErrorKind::Usage, None),
        ResumeError::NoRuns => {
            let hint = "start one with `orch run COMMAND`".to_owned();
            (ErrorKind::Refused, Some(hint))
        }
        ResumeError::Alive(_) => {
            let hint = "wait until it has ended".to_owned();
            (ErrorKind::Refused, Some(hint))
        }
        ResumeError::Newer { .. } => {
            let hint = "resume it with the orch that wrote it".to_owned();
            (ErrorKind::Refused, Some(hint))
        }
        ResumeError::UnknownWord { orch, .. } => {
            let orch = printable(orch);
            let hint = format!("resume it with orch {orch}, which wrote its journal");
            (ErrorKind::Refused, Some(hint))
        }
        ResumeError::Unreadable { .. } | ResumeError::NoCommand(_) | ResumeError::Unusable(_) => {
            (ErrorKind::External, None)
        }
    };
    let error = ProgramError::new(kind, error.into());
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Refuses if what was decided then would be decided otherwise now, or what has succeeded has changed
/// since; otherwise notes what has changed.
fn check(stacks: &Stacks, run: &str, moved: &Moved, allow_stale: bool) -> Result<()> {
    if moved.is_harmless() {
        if let Some(what) = what_moved(stacks, run, moved) {
            console::note(&what);
        }
        return Ok(());
    }
    let mut problems = Vec::new();
    problems.extend(moved.unknown.as_ref().map(UnknownChanges::to_string));
    if moved.graph {
        problems.push(
            "the graph is another: stacks, `after` or `before` have changed since".to_owned(),
        );
    }
    let invalidated: Vec<&MovedStack> = moved.invalidated().collect();
    if !invalidated.is_empty() {
        problems.push(format!(
            "{} had succeeded and {} changed since",
            named(stacks, &invalidated, true),
            if invalidated.len() == 1 {
                "has"
            } else {
                "have"
            }
        ));
    }
    let problems = printable(&problems.join("; ")).into_owned();
    if allow_stale {
        console::note(&format!("resuming run {run} all the same: {problems}"));
        return Ok(());
    }
    Err(
        ProgramError::refused(format!("run {run} cannot be resumed as it was: {problems}"))
            .hint("start a new run, or resume this one all the same with `--allow-stale`"),
    )
}

/// Returns a note of what has changed and does no harm, if anything has.
fn what_moved(stacks: &Stacks, run: &str, moved: &Moved) -> Option<String> {
    let what = match &moved.head {
        Some((then, now)) => format!(
            "HEAD was `{}` in run {run} and is `{}` now",
            then.short(),
            now.short()
        ),
        None if moved.files => format!("uncommitted files have changed since run {run}"),
        None => return None,
    };
    let changed: Vec<&MovedStack> = moved.stacks.iter().collect();
    let (has, had) = match changed.len() {
        0 => return Some(format!("{what}; none of its stacks has changed")),
        1 => ("has", "had"),
        _ => ("have", "had"),
    };
    Some(format!(
        "{what}; {} {has} changed, which {had} not succeeded",
        named(stacks, &changed, false)
    ))
}

/// Names the first of some stacks, each with the file because of which it has changed if wanted, and
/// counts the others.
fn named(stacks: &Stacks, moved: &[&MovedStack], with_files: bool) -> String {
    let name = |moved: &&MovedStack| {
        let path = printable(stacks[moved.stack].path.as_str());
        if with_files {
            format!("`{path}` ({})", printable(moved.file.relative()))
        } else {
            format!("`{path}`")
        }
    };
    let mut names: Vec<String> = moved.iter().take(MAX_NAMED).map(name).collect();
    if moved.len() > MAX_NAMED {
        names.push(format!("{} more", moved.len() - MAX_NAMED));
    }
    let end = names.pop().unwrap_or_default();
    if names.is_empty() {
        end
    } else {
        format!("{} and {end}", names.join(", "))
    }
}

/// Refuses, or notes, that stacks no longer exist.
fn tell_gone(resumed: &ResumedRun, allow_stale: bool) -> Result<()> {
    let Some(first) = resumed.gone.first() else {
        return Ok(());
    };
    let mut names = format!("`{}`", printable(first));
    if resumed.gone.len() > 1 {
        names += &format!(" and {} more", resumed.gone.len() - 1);
    }
    let what = format!(
        "of run {}, {names} {} no more",
        resumed.run,
        if resumed.gone.len() == 1 { "is" } else { "are" }
    );
    if allow_stale {
        console::note(&format!("{what}: left out"));
        return Ok(());
    }
    Err(ProgramError::refused(what).hint("start a new run, or leave them out with `--allow-stale`"))
}

/// Notes what is left to do where that may surprise.
fn tell_rest(resumed: &ResumedRun) {
    let run = &resumed.run;
    let (undone, left_out) = (resumed.n_undone(), resumed.left_out.len());
    if undone == 0 && !resumed.gone.is_empty() {
        console::note(&format!(
            "nothing is left to do of run {run}: what had not succeeded is no more"
        ));
    } else if undone == 0 {
        console::note(&format!(
            "nothing is left to do of run {run}: everything has succeeded"
        ));
    } else if undone == left_out {
        let undone = count(undone, "stack");
        console::note(&format!(
            "nothing failed in run {run}, though {undone} did not run to the end; `orch run --resume {run}` runs all that is left"
        ));
    } else if left_out > 0 {
        let left_out = count(left_out, "stack");
        console::note(&format!(
            "left out for now: {left_out} of run {run} that did not fail, and did not run to the end either; `orch run --resume` runs what is left"
        ));
    }
}

/// Takes over what is not given anew.
fn take_over(args: &mut RunArgs, header: &Header, direction: Direction) -> Result<()> {
    let milliseconds = |known: Option<u64>| known.map(Duration::from_millis);
    let settings = &header.settings;
    args.command = header.command.iter().map(|word| word.0.clone()).collect();
    args.reverse = direction == Direction::Reverse;
    if args.on_error.is_none() && args.continue_on_error.is_none() {
        let on_error = OnError::recorded(&settings.on_error);
        let on_error = on_error.map_err(|word| {
            let unknown = ResumeError::unknown_word(header, "`--on-error`", word);
            ProgramError::refused(unknown.to_string())
                .hint("say what to do after a failure with `--on-error`")
        })?;
        args.on_error = Some(match on_error {
            OnError::Stop => OnErrorArg::Stop,
            OnError::SkipDependents => OnErrorArg::SkipDependents,
            OnError::Continue => OnErrorArg::Continue,
        });
    }
    let jobs = NonZeroUsize::new(settings.jobs).map(Jobs);
    args.parallel = args.parallel.or(jobs);
    for limit in &settings.limits {
        let is_given = args.limit.iter().any(|given| given.tag == limit.tag);
        if let (false, Some(at_once)) = (is_given, NonZeroUsize::new(limit.at_once)) {
            let tag = limit.tag.clone();
            args.limit.push(LimitArg { tag, at_once });
        }
    }
    let attempts = &mut args.attempts;
    attempts.timeout = attempts.timeout.or(milliseconds(settings.timeout_ms));
    attempts.run_timeout = attempts
        .run_timeout
        .or(milliseconds(settings.run_timeout_ms));
    attempts.grace = attempts.grace.or(milliseconds(settings.grace_ms));
    attempts.retries = attempts.retries.or(settings.retries);
    attempts.retry_backoff = attempts
        .retry_backoff
        .or(milliseconds(settings.retry_backoff_ms));
    if attempts.retry_on_exit.is_empty() && attempts.retry_on_output.is_empty() {
        attempts.retry_on_exit.clone_from(&settings.retry_on_exit);
        attempts
            .retry_on_output
            .clone_from(&settings.retry_on_output);
    }
    Ok(())
}
