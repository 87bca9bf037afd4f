//! Checks stacks that are recorded without an apply: whether they match the configuration, and
//! where their states are.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use crate::command::RunTerminal;
use crate::command::plan::Tools;
use crate::context::{Context, CyclesAre};
use crate::driver::Outputs;
use crate::error::{Error, Result};
use crate::exit::ExitStatus;
use crate::notice::Notices;
use crate::path::StackPath;
use crate::plan::SavedPlan;
use crate::plan::entry::{PlanEntry, PlanMode, PlanOptions, PlannedAction};
use crate::plan::planner::{AskedTools, Drivers, NewPlan, PlanRequest, Planner, Removals};
use crate::printable::printable;
use crate::project::Problems;
use crate::project::driver::{DriverStep, NONE};
use crate::project::per_stack::SharedProblems;
use crate::project::stack::{StackIndex, StackMode};
use crate::selection::select::{Query, Selection};

/// The tools that are asked about such stacks.
#[derive(Clone, Copy)]
pub struct ToolCheck<'a> {
    pub terminal: &'a dyn RunTerminal,
    /// How many of them run at once.
    pub jobs: NonZeroUsize,
}

/// The note if no tool is asked.
pub(super) const NOTHING_VERIFIED: &str = "nothing was verified with the tools (`--no-verify`)";

const MAX_NAMED: usize = 5;

/// How many stacks an error names, each with its tool's changes.
const MAX_DIFFERENT: usize = 10;

/// The facts about a stack that is recorded without an apply.
pub(super) struct ExistingStack {
    pub(super) driver: String,
    /// Its tool's backend, if known.
    pub(super) backend: Option<String>,
    pub(super) outputs: Option<Outputs>,
    /// What an apply would do, if its tool was asked.
    pub(super) planned: Option<PlanEntry>,
    /// Whether any of its resources exist, if its tool reports that.
    pub(super) exists: Option<bool>,
}

/// The facts about stacks that are recorded without an apply.
pub(super) struct ExistingStacks {
    pub(super) run: String,
    /// Those that have a driver, by path.
    pub(super) stacks: BTreeMap<StackPath, ExistingStack>,
    /// Those that were not verified, by reason.
    pub(super) unverified: BTreeMap<String, Vec<StackPath>>,
}

impl ExistingStacks {
    pub(super) fn leave_unverified(&mut self, why: &str, stack: StackPath) {
        let stacks = self.unverified.entry(why.to_owned()).or_default();
        stacks.push(stack);
    }

    /// Returns whether a stack's tool has been asked.
    pub(super) fn is_verified(&self, stack: &StackPath) -> bool {
        let existing = self.stacks.get(stack);
        existing.is_some_and(|existing| existing.planned.is_some())
    }

    /// Refuses stacks that do not match the configuration, according to their tools.
    pub(super) fn check_applied(&self) -> Result<()> {
        self.check(
            |entry, _| {
                let is_as_applied = matches!(entry.action, PlannedAction::NoOp | PlannedAction::Adopt | PlannedAction::Read);
                is_as_applied && entry.after.is_empty()
            },
            "differ from HEAD, according to their tools",
            "apply them with `orch apply`, leave them out with `--exclude`, or add `--no-verify` to record them anyway",
        )
    }

    /// Refuses stacks without any resources, according to their tools. Notes those whose tools do
    /// not report that.
    pub(super) fn check_existence(&mut self) -> Result<()> {
        self.check(
            |entry, exists| entry.action != PlannedAction::Create || exists != Some(false),
            "do not exist, according to their tools",
            "remove them from the file, or add `--no-verify` to record them anyway",
        )?;
        let stacks = self.stacks.iter();
        let untold: Vec<(StackPath, String)> = stacks
            .filter(|(_, it)| {
                let action = it.planned.as_ref().map(|entry| entry.action);
                action == Some(PlannedAction::Create) && it.exists.is_none()
            })
            .map(|(path, it)| {
                (
                    path.clone(),
                    format!(
                        "the driver `{}` does not report whether anything exists",
                        it.driver
                    ),
                )
            })
            .collect();
        for (path, why) in untold {
            self.leave_unverified(&why, path);
        }
        Ok(())
    }

    fn check(
        &self,
        is_right: impl Fn(&PlanEntry, Option<bool>) -> bool,
        what: &str,
        hint: &str,
    ) -> Result<()> {
        let different: Vec<&PlanEntry> = self
            .stacks
            .values()
            .filter_map(|existing| {
                let entry = existing.planned.as_ref()?;
                let is_right = entry.blocked.is_none() && is_right(entry, existing.exists);
                (!is_right).then_some(entry)
            })
            .collect();
        if different.is_empty() {
            return Ok(());
        }
        let mut text = format!("nothing was recorded: these stacks {what}");
        for entry in different.iter().take(MAX_DIFFERENT) {
            let path = printable(entry.stack.as_str());
            let does = match &entry.blocked {
                Some(why) => format!("blocked: {}", printable(why)),
                None if !entry.after.is_empty() => "runs after stacks that would change".to_owned(),
                None => format!("{}: {}", entry.action.word(), printable(&entry.reason.text)),
            };
            text += &format!("\n    {path} ({does})");
        }
        if let Some(more @ 1..) = different.len().checked_sub(MAX_DIFFERENT) {
            text += &format!("\n    and {more} more");
        }
        Err(Error::refused(text).hint(hint))
    }

    fn learn(&mut self, saved: &SavedPlan, asked: &AskedTools, paths: &[StackPath]) {
        self.run.clone_from(&asked.id);
        for path in paths {
            let (Some(existing), Some(entry)) = (self.stacks.get_mut(path), saved.plan.entry(path))
            else {
                continue;
            };
            if let Some(saved) = saved.stack(path) {
                existing.driver.clone_from(&saved.driver);
                existing.backend.clone_from(&saved.backend);
                existing.outputs.clone_from(&saved.outputs);
            }
            let answer = asked.answers.get(path);
            let answer = answer.and_then(|answer| answer.as_ref().ok());
            existing.exists = answer.and_then(|answer| answer.exists);
            if answer.is_some() || entry.blocked.is_some() {
                existing.planned = Some(entry.clone());
            } else {
                self.leave_unverified(&entry.reason.text, path.clone());
            }
        }
    }

    pub(super) fn note_unverified(&self, notices: &Notices) {
        for (why, stacks) in &self.unverified {
            let first = stacks
                .iter()
                .take(MAX_NAMED)
                .map(|path| format!("`{}`", printable(path.as_str())));
            let mut names = first.collect::<Vec<String>>().join(", ");
            if let Some(more @ 1..) = stacks.len().checked_sub(MAX_NAMED) {
                names += &format!(" and {more} more");
            }
            notices.note(&format!(
                "not verified with a tool: {names} ({})",
                printable(why)
            ));
        }
    }
}

/// Asks the tools of stacks, if there are any.
pub(super) fn find_existing(
    context: &mut Context,
    stacks: &[StackIndex],
    verification: Option<ToolCheck<'_>>,
) -> Result<ExistingStacks> {
    let mut existing = unasked(context, stacks)?;
    let Some(verification) = verification else {
        return Ok(existing);
    };
    let unverified: BTreeSet<&StackPath> = existing.unverified.values().flatten().collect();
    let paths: Vec<StackPath> = existing
        .stacks
        .iter()
        .filter(|(path, it)| it.driver != NONE && !unverified.contains(path))
        .map(|(path, _)| path.clone())
        .collect();
    if paths.is_empty() {
        return Ok(existing);
    }
    let (saved, asked) = planned(context, &paths, verification)?;
    if !saved.plan.failed.is_empty() {
        let notices = &context.notices;
        notices.note("nothing was recorded because the tools of some stacks failed");
        notices.help("fix them, leave them out, or add `--no-verify` to record them unverified");
        return Err(ExitStatus::Run(1).into());
    }
    existing.learn(&saved, &asked, &paths);
    Ok(existing)
}

/// Plans stacks as if nothing were recorded. The problems of the project have been shown.
fn planned(
    context: &mut Context,
    paths: &[StackPath],
    verification: ToolCheck<'_>,
) -> Result<(SavedPlan, AskedTools)> {
    let request = PlanRequest {
        tools: &Tools {
            terminal: verification.terminal,
        },
        extra: &[],
        init: false,
        jobs: verification.jobs,
        options: PlanOptions {
            mode: PlanMode::Normal,
            is_full: true,
        },
        replace: &[],
        allow_rollback: true,
        no_removals: true,
        skip_protected: true,
        fetches: false,
        is_release: false,
        is_kept: true,
        is_verification: true,
        only: Some(paths),
        leaves_out_failed: false,
        lock_timeout: None,
    };
    context.state.fetches_seen = false;
    let query = Query::at_or_below(context.directory.clone());
    let stacks = paths.iter();
    let selection =
        Selection::recorded(stacks.filter_map(|path| context.project.stacks.find(path)));
    context.check_cycles(CyclesAre::ErrorsWithin(&selection));
    context.check_conditions(selection.stacks());
    let recorded = context.recorded_state(&request, &selection)?;
    if !context.problems.has_errors() {
        context.problems = Problems::default();
    }
    context.report()?;
    context.sweep();
    let planner = Planner {
        request: &request,
        query: &query,
        selection: &selection,
        replaced: &BTreeSet::new(),
        recorded: recorded.as_ref(),
        is_applied_now: false,
    };
    let NewPlan { saved, asked, .. } = planner.plan(context, Removals::default())?;
    Ok((saved, asked))
}

fn unasked(context: &Context, stacks: &[StackIndex]) -> Result<ExistingStacks> {
    let mut existing = ExistingStacks {
        run: String::new(),
        stacks: BTreeMap::new(),
        unverified: BTreeMap::new(),
    };
    let drivers = Drivers::new(context, None);
    let environments = context.evaluator();
    let mut problems = SharedProblems::default();
    for &stack in stacks {
        let of_stack = &context.project.stacks[stack];
        let path = of_stack.path.clone();
        let Some(driver) = drivers.of(stack) else {
            existing.leave_unverified("no driver", path);
            continue;
        };
        let namespaces = environments.namespaces().of_stack(stack);
        let backend = match driver.backend(&namespaces) {
            Ok(backend) => backend,
            Err(found) => {
                problems.add(stack, found);
                None
            }
        };
        let can_plan = driver.has(DriverStep::Plan) || of_stack.mode == StackMode::Read;
        if !can_plan && !driver.is_none() {
            let why = format!("the driver `{}` has no `plan`", driver.name);
            existing.leave_unverified(&why, path.clone());
        }
        let of_stack = ExistingStack {
            driver: driver.name.to_owned(),
            backend,
            outputs: None,
            planned: None,
            exists: None,
        };
        existing.stacks.insert(path, of_stack);
    }
    let problems = problems.into_vec();
    if problems.is_empty() {
        return Ok(existing);
    }
    context.report_shared(problems);
    Err(ExitStatus::Configuration.into())
}
