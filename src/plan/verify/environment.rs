//! Checks that a plan file is applied in the environment, and with the tool versions, of the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::Verification;
use crate::context::Context;
use crate::driver::{Driver, Tool};
use crate::error::{BoxedError, Error, ErrorContext as _, Result};
use crate::path::StackPath;
use crate::plan::entry::PlannedAction;
use crate::plan::stale::{DoneOperations, OperationKey, Stale};
use crate::plan::{SavedEnvironment, SavedStack};
use crate::project::driver::DriverStep;
use crate::project::environment::{Environment, compose};
use crate::run::execute::ProgramFinder;

/// The relevant part of `terraform version -json`. `OpenTofu` prints the same.
#[derive(Deserialize)]
struct VersionJson {
    terraform_version: String,
}

/// A tool of a stack, shared by all stacks planned by the same program and version.
struct PlannedTool<'s> {
    directory: PathBuf,
    environment: Environment,
    stacks: Vec<&'s StackPath>,
}

impl Verification<'_> {
    /// Returns the unfinished stacks of a plan file whose environment differs.
    pub(super) fn other_environments(
        &self,
        context: &Context,
        keeps_state: bool,
        progress: &DoneOperations,
    ) -> Vec<Stale> {
        let Some(planned) = &self.saved.environment else {
            return Vec::new();
        };
        let now: SavedEnvironment = context.environment_of(self.saved);
        let left = self.left(keeps_state, progress);
        left.flat_map(|of_stack| {
            let stack = &of_stack.stack;
            let differing: BTreeSet<String> = planned.differences(&now, stack);
            let stale = |what| Stale::Environment(stack.clone(), what);
            differing.into_iter().map(stale).collect::<Vec<_>>()
        })
        .collect()
    }

    fn left(
        &self,
        keeps_state: bool,
        progress: &DoneOperations,
    ) -> impl Iterator<Item = &SavedStack> {
        self.saved.stacks.iter().filter(move |of_stack| {
            let entry = self.saved.plan.entry(&of_stack.stack);
            let has_turn = entry.is_some_and(|entry| {
                let plan = &self.saved.plan;
                entry.action.is_work() || entry.is_undecided() || plan.accepts_drift(entry)
            });
            let is_deleted = entry.is_some_and(|entry| {
                entry.removed.is_some() || entry.action == PlannedAction::Delete
            });
            let last = if is_deleted {
                OperationKey::Destroy
            } else {
                OperationKey::Apply
            };
            let is_done = progress.done.contains(&(of_stack.stack.clone(), last));
            (has_turn || keeps_state) && !is_done
        })
    }

    /// Returns the unfinished stacks that another version of the tool has planned. Asks each
    /// program once per version that has planned with it: a version manager may choose the version
    /// by directory.
    pub(super) fn other_versions(
        &self,
        context: &Context,
        keeps_state: bool,
        progress: &DoneOperations,
    ) -> Result<Vec<Stale>> {
        let mut tools: BTreeMap<(PathBuf, Tool, &str), PlannedTool<'_>> = BTreeMap::new();
        let environments = context.evaluator();
        let project = &context.project;
        for of_stack in self.left(keeps_state, progress) {
            let driver = Driver::named(project, &of_stack.driver);
            let (Some(version), Some(tool)) =
                (&of_stack.tool_version, driver.and_then(own_program))
            else {
                continue;
            };
            let (directory, environment) = match project.stacks.find(&of_stack.stack) {
                Some(stack) => {
                    let directory = project.stacks[stack].path.directory();
                    // A driver that cannot be evaluated is refused later.
                    let environment = environments.of_stack(stack).unwrap_or_default();
                    (directory.to_host(&project.root), environment)
                }
                None => (project.root.clone(), Environment::new()),
            };
            // A missing program is refused later.
            let Some(program) = find(tool, &directory, &environment) else {
                continue;
            };
            let known = tools
                .entry((program, tool, version))
                .or_insert_with(|| PlannedTool {
                    directory,
                    environment,
                    stacks: Vec::new(),
                });
            known.stacks.push(&of_stack.stack);
        }
        let mut stale = Vec::new();
        for ((program, tool, planned), of_tool) in tools {
            let failed = || format!("failed to find the version of `{}`", program.display());
            let now =
                version(&program, &of_tool).map_err(|error| Error::described(failed(), error))?;
            if now == planned {
                continue;
            }
            let of_stacks = of_tool.stacks.into_iter().map(|stack| Stale::Version {
                stack: stack.clone(),
                planned: format!("{} {planned}", tool.program()),
                now: now.clone(),
            });
            stale.extend(of_stacks);
        }
        stale.sort_by_key(ToString::to_string);
        Ok(stale)
    }
}

/// Returns the tool that a driver runs, if versions can be compared. Terragrunt chooses its own
/// tool, so that version is not checked.
fn own_program(driver: Driver<'_>) -> Option<Tool> {
    let is_own = driver.writes(DriverStep::Plan) || driver.writes(DriverStep::Apply);
    driver
        .tool
        .filter(|tool| *tool != Tool::Terragrunt && !is_own)
}

fn find(tool: Tool, directory: &Path, environment: &Environment) -> Option<PathBuf> {
    let host = std::env::var_os("PATH");
    let path = match environment.get("PATH") {
        Some(own) => own.as_deref().map(OsStr::new),
        None => host.as_deref(),
    };
    ProgramFinder::new(tool.program())
        .find(directory, path)
        .ok()
}

fn version(program: &Path, of_tool: &PlannedTool<'_>) -> Result<String, BoxedError> {
    let mut command = Command::new(program);
    command
        .args(["version", "-json"])
        .current_dir(&of_tool.directory)
        .stdin(Stdio::null());
    compose(&mut command, &of_tool.environment);
    // Otherwise, it asks a server for new versions.
    command.env("CHECKPOINT_DISABLE", "1");
    let output = command.output()?;
    let VersionJson { terraform_version } = serde_json::from_slice(&output.stdout)
        .context(format!("`version -json` ended with {}", output.status))?;
    Ok(terraform_version)
}
