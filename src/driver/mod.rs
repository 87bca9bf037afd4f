//! Drivers: the driver of a stack, its commands, and the meaning of their answers.
//!
//! A driver plans, applies and destroys a kind of stack. Three are built in and recognised by the files of a stack;
//! others are `driver` blocks. This module runs nothing, and doesn't know the state: it only creates commands and
//! reads answers.

mod answer;
mod backend;
mod changes;
mod command;
mod completeness;
mod hidden;
mod output_values;
mod outputs;
mod plan_file;
mod plan_json;
mod terraform;
mod value;
mod variables;

use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::discover::Listing;
use crate::project::driver::{DriverBlock, DriverStep, NONE};
use crate::project::stack::StackIndex;

pub use self::answer::{BadAnswer, ChangeCounts, DriverAction, DriverAnswer, ResourceChange};
pub use self::backend::{
    backend_of_tool, local_state, selected_workspace, usual_local_state, workspace_of,
};
pub use self::changes::{ChangeKind, Changed, ChangedPlan};
pub use self::command::{PlanKind, StepPlan, StepRole, Words};
pub use self::hidden::{hidden_option_of, is_tool, steering, variables_with_words};
pub use self::output_values::{OutputValue, OutputValues};
pub use self::outputs::{BadOutputs, Outputs, are_incomparable};

pub use self::completeness::IncompletePlan;
pub use self::plan_file::{ToolPlan, digest_of_file, read_tool_plan};
pub use self::terraform::{BadPlan, read_plan};
pub use self::variables::ModuleVariables;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    Terraform,
    OpenTofu,
    Terragrunt,
}

impl Tool {
    const ALL: [Tool; 3] = [Tool::Terraform, Tool::OpenTofu, Tool::Terragrunt];

    pub fn driver(self) -> &'static str {
        match self {
            Tool::Terraform => "terraform",
            Tool::OpenTofu => "opentofu",
            Tool::Terragrunt => "terragrunt",
        }
    }

    pub fn program(self) -> &'static str {
        match self {
            Tool::Terraform => "terraform",
            Tool::OpenTofu => "tofu",
            Tool::Terragrunt => "terragrunt",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Driver<'p> {
    pub name: &'p str,
    pub tool: Option<Tool>,
    pub block: Option<&'p DriverBlock>,
}

impl<'p> Driver<'p> {
    pub fn named(project: &'p Project, name: &str) -> Option<Self> {
        let block = project.drivers.get_key_value(name);
        let tool = Tool::ALL.into_iter().find(|tool| tool.driver() == name);
        let name = match (tool, block) {
            (Some(tool), _) => tool.driver(),
            (None, Some((name, _))) => name,
            (None, None) if name == NONE => NONE,
            (None, None) => return None,
        };
        Some(Driver {
            name,
            tool,
            block: block.map(|(_, block)| block),
        })
    }

    /// Returns the driver that only records stacks.
    pub fn none(project: &'p Project) -> Self {
        let none = Driver::named(project, NONE);
        none.expect("its name is built in")
    }

    /// Returns whether it only records stacks.
    pub fn is_none(&self) -> bool {
        self.name == NONE
    }

    pub fn selects_workspaces(&self) -> bool {
        matches!(self.tool, Some(Tool::Terraform | Tool::OpenTofu))
    }

    pub fn has(&self, step: DriverStep) -> bool {
        self.writes(step) || self.tool.is_some()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolsOnPath {
    pub terraform: bool,
    pub tofu: bool,
}

/// Returns the driver of a stack: the configured one; else Terragrunt's, if it has such a file; else the recorded
/// one; else that of its Terraform files. `None` if it has none.
pub fn driver_of<'p>(
    project: &'p Project,
    listing: &Listing,
    stack: StackIndex,
    recorded: Option<&str>,
    on_path: ToolsOnPath,
) -> Option<Driver<'p>> {
    if let Some(chosen) = project.driver_of(stack) {
        return Driver::named(project, &chosen.value);
    }
    let directory: &ProjectPath = project.stacks[stack].path.directory();
    let files = listing.tool_files(directory);
    let of_tool = |tool: Tool| Driver::named(project, tool.driver());
    if files.terragrunt {
        return of_tool(Tool::Terragrunt);
    }
    // The recorded driver may have been removed from the configuration since.
    let recorded = recorded.and_then(|name| Driver::named(project, name));
    if let Some(recorded) = recorded.filter(|driver| {
        let is_tool = driver.tool.is_some();
        !is_tool || files.terraform || files.tofu
    }) {
        return Some(recorded);
    }
    let tool = if files.tofu || files.terraform && on_path.tofu && !on_path.terraform {
        Tool::OpenTofu
    } else if files.terraform {
        Tool::Terraform
    } else {
        return None;
    };
    of_tool(tool)
}
