//! Unapproved follow-ups: one plan for all of them, stored with their run.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use super::Apply;
use super::approve::listed;
use super::policies::ApplyPolicies;
use crate::context::Context;
use crate::error::{ErrorKind, Result};
use crate::exit::ExitStatus;
use crate::path::StackPath;
use crate::printable::command_line;
use crate::record::journal::run_folder;

const FILE: &str = "followup.plan";

/// Follow-ups without approval.
#[derive(Default)]
pub(super) struct Unconfirmed {
    pub(super) stacks: Vec<StackPath>,
    /// The stacks that had turns in the run, by path.
    pub(super) had_turns: BTreeSet<StackPath>,
    /// The folder of the run, if it has one.
    pub(super) folder: Option<PathBuf>,
    /// Whether the run was interrupted: then no one waits for a plan.
    pub(super) is_interrupted: bool,
    /// Whether a follow-up lacked only the approval of destroyed resources.
    pub(super) refuses_destroy: bool,
}

impl Unconfirmed {
    /// Adds those of earlier runs, except for stacks that have had a turn since.
    pub(super) fn add(&mut self, earlier: Unconfirmed) {
        let earlier = earlier.stacks.into_iter();
        let open = earlier.filter(|stack| !self.had_turns.contains(stack));
        self.stacks.extend(open.collect::<Vec<_>>());
        self.stacks.sort_unstable();
        self.stacks.dedup();
    }
}

impl ApplyPolicies {
    /// Returns the follow-ups that earlier runs left unapproved and did not plan. The folder is
    /// that of the last of these runs.
    pub(super) fn unplanned(&self, context: &Context) -> Unconfirmed {
        let mut left = Unconfirmed::default();
        let Some(earlier) = &self.earlier else {
            return left;
        };
        let folder = |run: &str| run_folder(&context.project.root, run);
        let has_plan = |run: &&String| folder(run).join(FILE).symlink_metadata().is_ok();
        // A plan contains everything unapproved until then, in any run.
        let planned = earlier.runs.iter().rfind(has_plan).map(String::as_str);
        for (stack, run) in earlier.earlier.unconfirmed() {
            if planned.is_none_or(|planned| planned < run) {
                left.stacks.push(stack.clone());
                left.folder = left.folder.max(Some(folder(run)));
            }
        }
        left
    }
}

impl Apply<'_> {
    /// Plans the unapproved follow-ups after the run, shows the plan and stores it. Returns the
    /// exit status, given that of the run.
    pub(super) fn keep(&self, left: &Unconfirmed, status: ExitStatus) -> Result<ExitStatus> {
        if left.stacks.is_empty() {
            return Ok(status);
        }
        let of_run = status;
        let status = if left.refuses_destroy {
            worse(status, ExitStatus::Refused)
        } else {
            status
        };
        let wait = match left.stacks.len() {
            1 => "1 follow-up waits for approval".to_owned(),
            more => format!("{more} follow-ups wait for approval"),
        };
        let (Some(folder), false) = (&left.folder, left.is_interrupted) else {
            let plan = plan_again(&left.stacks);
            self.notices
                .note(&format!("{wait}: see the changes with `{plan}`"));
            return Ok(status);
        };
        self.notices.note(&format!("{wait}: planning them"));
        let planned = self.terminal.plan(&left.stacks);
        if let Err(error) = &planned
            && let ErrorKind::Reported(wrong) = error.kind()
        {
            self.notices
                .warning("the follow-ups that wait for approval could not be planned");
            return Ok(worse(status, wrong));
        }
        let mut planned = planned?;
        planned.saved.excluded.clone_from(&self.saved.excluded);
        self.terminal.show(&planned)?;
        let destroyed: Vec<_> = planned.saved.plan.destroyed_resources().collect();
        if !destroyed.is_empty() {
            self.notices.note(&format!(
                "these follow-ups would destroy resources without approval:{}",
                listed(&destroyed)
            ));
            self.notices
                .help("to destroy them, apply the plan below, or add `--allow-resource-destroy`");
        }
        if !planned.saved.plan.failed.is_empty() {
            let plan = plan_again(&left.stacks);
            self.notices.note(&format!(
                "a stack could not be planned, so no plan was kept: to plan the follow-ups again, run `{plan}`"
            ));
            return Ok(worse(status, ExitStatus::Run(1)));
        }
        if !planned.saved.plan.is_applyable() {
            self.notices
                .note("no follow-up waits for approval: nothing would change");
            return Ok(of_run);
        }
        let environment = planned.context.environment_of(&planned.saved);
        planned.saved.environment = Some(environment);
        let file = folder.join(FILE);
        let (saved, plans) = (&planned.saved, &planned.plans);
        saved.write(&file, plans)?;
        let context = &planned.context;
        let is_at_root = context.directory.is_root();
        let near = file
            .strip_prefix(&context.project.root)
            .ok()
            .filter(|_| is_at_root)
            .unwrap_or(&file);
        let words = ["orch".into(), "apply".into(), near.as_os_str().to_owned()];
        self.notices.note(&format!(
            "to apply this plan, run `{}`",
            command_line(&words)
        ));
        Ok(status)
    }
}

pub(super) fn plan_again(stacks: &[StackPath]) -> String {
    const MOST: usize = 5;
    let mut words: Vec<OsString> = vec!["orch".into(), "plan".into()];
    for stack in stacks.iter().filter(|_| stacks.len() <= MOST) {
        words.extend(["--match".into(), stack.as_str().into()]);
    }
    command_line(&words)
}

fn worse(status: ExitStatus, other: ExitStatus) -> ExitStatus {
    match status {
        ExitStatus::Success | ExitStatus::Run(0) => other,
        status => status,
    }
}
