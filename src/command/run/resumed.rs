//! `orch run --resume` and `--only-failed`: the rest of an earlier run, and whether it can be
//! resumed.

use std::ffi::OsString;
use std::sync::Arc;

use super::options::RunOptions;
use crate::command::order_followups::{Claim, OpenFollowUps};
use crate::command::workflow::{EarlierWorkflow, warn_of_unevaluated};
use crate::context::{Context, GitSnapshot};
use crate::error::{Error, Result};
use crate::export::{OrderedTask, WorkOrder};
use crate::git::GitError;
use crate::notice::Notices;
use crate::printable::{count, listed, printable};
use crate::project::Project;
use crate::project::host::host_environment;
use crate::project::policy::PolicyRun;
use crate::project::stack::Stacks;
use crate::record::journal::Word;
use crate::record::journal::{Header, RunRecord};
use crate::run::resume::{
    ChangedStack, ChangesSinceRun, EarlierRun, ResumedRun, UnknownChanges, WorkingTree,
    unknown_word,
};
use crate::run::run_command::CommandKind;
use crate::run::settings::RunSettings;

const MAX_NAMED: usize = 5;

pub struct Resumed {
    /// The rest of it.
    pub run: ResumedRun,
    /// Its command, as written.
    pub(super) command: Vec<OsString>,
    pub(super) kind: CommandKind,
    /// Its settings, for those that the user does not set.
    pub(super) settings: RunSettings,
    /// Whether policies must evaluate turns that had ended.
    pub(super) is_open: bool,
    /// The workflow that is continued, if policies followed it.
    pub(super) workflow: Option<EarlierWorkflow>,
}

impl Resumed {
    /// Returns whether the exit status reports changes if no work is left.
    pub(super) fn reports_changes(&self, options: &RunOptions) -> bool {
        let settings = options.settings.clone().or(self.settings.clone());
        settings.detailed_exit_code && self.run.had_changes
    }

    /// Finds the run to resume, if one is requested. Notes if no work is left.
    pub fn find(context: &mut Context, options: &RunOptions) -> Result<Option<Self>> {
        let Some(asked) = &options.resume else {
            return Ok(None);
        };
        let root = &context.project.root;
        let earlier = EarlierRun::find(root, &asked.run, options.allow_concurrent)?;
        let header = &earlier.record.header;
        if let Some(named) = &earlier.named {
            context.notices.note(&format!(
                "run {named} was already resumed: resuming run {} instead",
                header.run
            ));
        }
        let changes = context.changes_since(&earlier);
        let context = &*context;
        check(context, &header.run, &changes, asked.allow_stale)?;
        let stacks = &context.project.stacks;
        let resumed = ResumedRun::new(&earlier, stacks, asked.only_failed)?;
        let notices = &context.notices;
        report_removed(notices, &resumed, asked.allow_stale)?;
        let mut workflow = workflow(&context.project, &earlier)?;
        if let Some(workflow) = &mut workflow {
            workflow.allows_changed_policies = asked.allow_stale;
        }
        if let Some(workflow) = &workflow {
            workflow.warn(notices);
        }
        let n_open = workflow
            .as_ref()
            .map_or(0, |it| it.earlier.unevaluated.len());
        let has_failed = earlier.record.has_unresolved_failure();
        let is_off = options.policies.mode == Some(PolicyRun::Off);
        if let Some(workflow) = workflow.as_ref().filter(|_| is_off) {
            check_without_policies(workflow)?;
        }
        match n_open {
            0 => note_rest(notices, &resumed, has_failed),
            more if is_off => {
                warn_of_unevaluated(notices, more);
                note_rest(notices, &resumed, has_failed);
            }
            1 => notices
                .note("1 turn ended before its policies were evaluated: they are evaluated first"),
            more => notices.note(&format!(
                "{more} turns ended before their policies were evaluated: they are evaluated first"
            )),
        }
        let (words, kind) = match (&header.script[..], header.eval) {
            ([], false) => (&header.command[..], CommandKind::Plain),
            ([], true) => (&header.command[..], CommandKind::Template),
            (labels, _) => (labels, CommandKind::Script),
        };
        Ok(Some(Resumed {
            is_open: n_open > 0 && !is_off,
            workflow,
            run: resumed,
            command: words.iter().map(|word| word.0.clone()).collect(),
            kind,
            settings: earlier_settings(options, header)?,
        }))
    }

    pub fn follow_ups(order: &WorkOrder, follow_ups: OpenFollowUps) -> Result<(Self, Claim)> {
        let OrderedTask::Command { words, eval, .. } = &order.task else {
            return Err(Error::refused("the work order has a plan"));
        };
        let resumed = Resumed {
            run: follow_ups.rest,
            command: words.iter().map(|word| word.0.clone()).collect(),
            kind: if *eval {
                CommandKind::Template
            } else {
                CommandKind::Plain
            },
            settings: order.run_settings().map_err(Error::refused)?,
            is_open: true,
            workflow: Some(follow_ups.workflow),
        };
        Ok((resumed, follow_ups.claim))
    }
}

/// Checks that a workflow can continue without policies: only these have the command of its
/// follow-ups.
fn check_without_policies(workflow: &EarlierWorkflow) -> Result<()> {
    let open = workflow.earlier.open_followups();
    match open.first().filter(|_| workflow.record.followup.is_some()) {
        None => Ok(()),
        Some(turn) => Err(Error::usage(format!(
            "`{}` cannot be resumed with `--policies=off`: it is a follow-up, and its command is that of `--followup`",
            printable(turn.path.as_str())
        ))
        .hint("remove `--policies=off`")),
    }
}

/// Returns the workflow that is continued, if policies followed the run.
fn workflow(project: &Project, earlier: &EarlierRun) -> Result<Option<EarlierWorkflow>> {
    let Some(record) = earlier.record.header.policies.clone() else {
        return Ok(None);
    };
    let before = earlier.resumed(&project.root)?;
    let all: Vec<&RunRecord> = before.iter().chain([&earlier.record]).collect();
    Ok(Some(EarlierWorkflow::new(project, &all, record)))
}

impl Context {
    fn changes_since(&mut self, earlier: &EarlierRun) -> ChangesSinceRun {
        let unknown = match self.git() {
            Ok(GitSnapshot { status: Ok(_), .. })
            | Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => None,
            Ok(GitSnapshot {
                status: Err(error), ..
            }) => Some(UnknownChanges::Status(Arc::clone(error))),
            Err(error) => Some(UnknownChanges::Head(error)),
        };
        let host: Vec<(String, String)> = host_environment().collect();
        let tree = self.git.known().and_then(|git| {
            Some(WorkingTree {
                repository: &git.repository,
                status: git.status.as_ref().ok()?,
                host: &host,
            })
        });
        let workspace = &self.workspace;
        earlier.changes(
            &workspace.project,
            &workspace.listing,
            &workspace.references,
            unknown.map_or(Ok(tree), Err),
            &mut self.problems,
        )
    }
}

/// Refuses if the selection or order would now be different, or if stacks that succeeded have
/// changed since. Otherwise notes the changes.
fn check(context: &Context, run: &str, changes: &ChangesSinceRun, allow_stale: bool) -> Result<()> {
    let (stacks, notices) = (&context.project.stacks, &context.notices);
    if changes.is_harmless() {
        if let Some(what) = harmless_changes(stacks, run, changes) {
            notices.note(&what);
        }
        return Ok(());
    }
    let mut problems = Vec::new();
    problems.extend(changes.unknown.as_ref().map(UnknownChanges::to_string));
    if changes.graph {
        problems.push(
            "the graph has changed: stacks, nesting, `after` or `before` are different".to_owned(),
        );
    }
    let invalidated: Vec<&ChangedStack> = changes.invalidated().collect();
    if !invalidated.is_empty() {
        problems.push(format!(
            "{} succeeded and {} changed since",
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
        notices.note(&format!("resuming run {run} anyway: {problems}"));
        return Ok(());
    }
    Err(
        Error::refused(format!("run {run} cannot be resumed: {problems}"))
            .hint("start a new run, or resume this one anyway with `--allow-stale`"),
    )
}

/// Returns a note of harmless changes, if there are any.
fn harmless_changes(stacks: &Stacks, run: &str, changes: &ChangesSinceRun) -> Option<String> {
    let what = match &changes.head {
        Some((then, now)) => format!(
            "HEAD was `{}` in run {run}, and is now `{}`",
            then.short(),
            now.short()
        ),
        None if changes.files => format!("uncommitted files have changed since run {run}"),
        None => return None,
    };
    let unfinished: Vec<&ChangedStack> = changes.stacks.iter().collect();
    let (has, it) = match unfinished.len() {
        0 => return Some(format!("{what}; none of its stacks has changed")),
        1 => ("has", "it"),
        _ => ("have", "they"),
    };
    Some(format!(
        "{what}; {} {has} changed; {it} had not succeeded, so that is fine",
        named(stacks, &unfinished, false)
    ))
}

/// Names the first of some stacks, with `with_files` each with its changed file, and counts the
/// others.
fn named(stacks: &Stacks, changed: &[&ChangedStack], with_files: bool) -> String {
    let name = |it: &&ChangedStack| {
        let path = printable(stacks[it.stack].path.as_str());
        if with_files {
            format!("`{path}` ({})", printable(it.file.relative()))
        } else {
            format!("`{path}`")
        }
    };
    listed(changed.iter().map(name), MAX_NAMED)
}

/// Refuses, or notes, that stacks no longer exist.
fn report_removed(notices: &Notices, resumed: &ResumedRun, allow_stale: bool) -> Result<()> {
    let Some(first) = resumed.gone.first() else {
        return Ok(());
    };
    let mut names = format!("`{}`", printable(first));
    let is_one = resumed.gone.len() == 1;
    if !is_one {
        names += &format!(" and {} more", resumed.gone.len() - 1);
    }
    let what = format!(
        "{names} from run {} no longer {}",
        resumed.run,
        if is_one { "exists" } else { "exist" }
    );
    if allow_stale {
        let is_left_out = if is_one { "it is" } else { "they are" };
        notices.note(&format!("{what}; {is_left_out} left out"));
        return Ok(());
    }
    Err(Error::refused(what).hint("start a new run, or leave them out with `--allow-stale`"))
}

/// Notes surprising remaining work. `has_failed` says whether a turn has failed without a
/// successful retry.
fn note_rest(notices: &Notices, resumed: &ResumedRun, has_failed: bool) {
    let run = &resumed.run;
    let (undone, left_out) = (resumed.n_undone(), resumed.left_out.len());
    if undone == 0 && !resumed.gone.is_empty() {
        notices.note(&format!(
            "nothing to resume in run {run}: the stacks that had not succeeded no longer exist"
        ));
    } else if undone == 0 && has_failed {
        notices.note(&format!(
            "nothing to resume in run {run}: the failed stacks have since succeeded"
        ));
    } else if undone == 0 {
        notices.note(&format!(
            "nothing to resume in run {run}: every stack has succeeded"
        ));
    } else if undone == left_out {
        let were = if undone == 1 { "was" } else { "were" };
        let undone = count(undone, "stack");
        notices.note(&format!(
            "nothing failed in run {run}, but {undone} {were} skipped, cancelled or interrupted; to run them, use `orch run --resume {run}`"
        ));
    } else if left_out > 0 {
        let (were, are) = match left_out {
            1 => ("was", "is"),
            _ => ("were", "are"),
        };
        let left_out = count(left_out, "stack");
        notices.note(&format!(
            "{left_out} of run {run} {were} skipped, cancelled or interrupted, and {are} left out; to run them too, use `orch run --resume`"
        ));
    }
}

/// Returns the settings of the earlier run, for those that the user does not set.
fn earlier_settings(options: &RunOptions, header: &Header) -> Result<RunSettings> {
    let mut settings = RunSettings::recorded(&header.settings);
    if options.settings.on_error.is_none() {
        let on_error = header.settings.on_error.known().map_err(|word| {
            Error::refused(unknown_word(header, "`--on-error`", word)).hint("set `--on-error`")
        })?;
        settings.on_error = Some(on_error);
    }
    if options.settings.recording.is_none() {
        let recording = header.settings.recording.as_ref().map(Word::known);
        let recording = recording.transpose();
        settings.recording = recording.map_err(|word| {
            Error::refused(unknown_word(header, "`--record`", word))
                .hint("say whether to record the run with `--record` or `--no-record`")
        })?;
    }
    Ok(settings)
}
