//! Asks the tools about stacks that are put into the state without an apply.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use orch::exit::ExitStatus;
use orch::path::StackPath;
use orch::plan::entry::{PlanMode, PlanOptions};
use orch::plan::planner::Drivers;
use orch::project::driver::{DriverStep, NONE};
use orch::project::per_stack::SharedProblems;
use orch::project::stack::{StackIndex, StackMode};

use super::{PlanRequest, Planned, PlanningArgs, planned};
use crate::program::commands::Loaded;
use crate::program::commands::selection_flags::SelectArgs;
use crate::program::commands::state::existing::{ExistingStack, ExistingStacks, Verification};
use crate::program::console;
use crate::program::error::Result;

/// Asks the tools of stacks, unless there is none to ask.
pub(in crate::program::commands) fn find_existing(
    chdir: &[PathBuf],
    loaded: &Loaded,
    stacks: &[StackIndex],
    verification: Verification,
) -> Result<ExistingStacks> {
    let mut existing = unasked(loaded, stacks)?;
    let Verification::Tools(jobs) = verification else {
        return Ok(existing);
    };
    let unverified = existing.unverified.values().flatten();
    let unverified: BTreeSet<&StackPath> = unverified.collect();
    let paths = existing.stacks.iter();
    let paths = paths.filter(|(path, it)| it.driver != NONE && !unverified.contains(path));
    let paths: Vec<StackPath> = paths.map(|(path, _)| path.clone()).collect();
    if paths.is_empty() {
        return Ok(existing);
    }
    let select = SelectArgs::default();
    let planning = PlanningArgs {
        extra: Vec::new(),
        init: false,
        allow_rollback: true,
        no_removals: true,
        skip_protected: true,
        parallel: Some(jobs),
    };
    let request = PlanRequest {
        select: &select,
        planning: &planning,
        options: PlanOptions {
            mode: PlanMode::Normal,
            is_full: true,
        },
        replace: &[],
        is_kept: true,
        guard: None,
        policies: None,
        is_verification: true,
        only: Some(&paths),
        document: None,
        leaves_out_failed: false,
        lock_timeout: None,
    };
    let planned = planned(chdir, &request)?;
    if !planned.saved.plan.failed.is_empty() {
        console::note("nothing was recorded because the tools of some stacks failed");
        console::help("mend them, leave them out, or add `--no-verify` to record them unverified");
        return Err(ExitStatus::Run(1).into());
    }
    learn(&mut existing, &planned, &paths);
    Ok(existing)
}

/// Returns what the configuration says of stacks.
fn unasked(loaded: &Loaded, stacks: &[StackIndex]) -> Result<ExistingStacks> {
    let mut existing = ExistingStacks {
        run: String::new(),
        stacks: BTreeMap::new(),
        unverified: BTreeMap::new(),
    };
    let drivers = Drivers::new(loaded, None);
    let environments = loaded.evaluator();
    let mut problems = SharedProblems::default();
    for &stack in stacks {
        let of_stack = &loaded.project.stacks[stack];
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
    loaded.give_shared(problems);
    Err(ExitStatus::Configuration.into())
}

/// Takes what the tools have answered.
fn learn(existing_stacks: &mut ExistingStacks, planned: &Planned, asked: &[StackPath]) {
    existing_stacks.run.clone_from(&planned.asked.id);
    for path in asked {
        let (Some(existing), Some(entry)) = (
            existing_stacks.stacks.get_mut(path),
            planned.saved.plan.entry(path),
        ) else {
            continue;
        };
        if let Some(saved) = planned.saved.stack(path) {
            existing.driver.clone_from(&saved.driver);
            existing.backend.clone_from(&saved.backend);
            existing.outputs.clone_from(&saved.outputs);
        }
        let answer = planned.asked.answers.get(path);
        let answer = answer.and_then(|answer| answer.as_ref().ok());
        existing.exists = answer.and_then(|answer| answer.exists);
        if answer.is_some() || entry.blocked.is_some() {
            existing.planned = Some(entry.clone());
        } else {
            let why = entry.reason.text.clone();
            existing_stacks.leave_unverified(&why, path.clone());
        }
    }
}
