//! The commands of a driver, and their arguments.

use std::ffi::OsString;
use std::path::Path;

use super::{Driver, Tool};
use crate::diagnostic::Diagnostic;
use crate::language::syntax::Expr;
use crate::project::attempt::ExitCodes;
use crate::project::command::words_of_list;
use crate::project::driver::DriverStep;
use crate::project::namespaces::StackNamespaces;

/// The exit statuses with which `plan` reports changes, by default.
const CHANGES: [i32; 1] = [2];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanKind {
    Normal,
    Destroy,
    /// To compare the resources with the tool's own state.
    RefreshOnly,
}

#[derive(Debug, Clone)]
pub struct StepPlan<'p> {
    pub role: StepRole,
    pub name: &'static str,
    pub words: Words<'p>,
    pub exit_codes: ExitCodes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepRole {
    Init,
    /// Writes the plan, and perhaps an answer.
    Plan,
    /// Prints the plan as an answer, which is kept out of logs: it may hold secrets.
    Show,
    /// Checks only the configuration, not the resources that exist.
    Validate,
    Act,
    /// Prints the outputs, which are kept out of logs too.
    Outputs,
    /// Prints the tool's state, which is kept out of logs too.
    State,
}

#[derive(Debug, Clone)]
pub enum Words<'p> {
    BuiltIn(Vec<OsString>),
    /// A list that is evaluated for each stack, and words to add.
    Written(&'p Expr, Vec<OsString>),
}

impl<'p> Driver<'p> {
    pub fn init(&self) -> Option<StepPlan<'p>> {
        let init = |tool: Tool| words(tool, &["init", "-input=false"]);
        self.step(StepRole::Init, DriverStep::Init, init, &[])
    }

    /// Returns the planning commands in order. `plan_file` is the path for the plan, `extra` are the user's arguments
    /// for `plan`.
    pub fn asking(
        &self,
        kind: PlanKind,
        plan_file: &Path,
        extra: &[OsString],
    ) -> Vec<StepPlan<'p>> {
        let mut steps = Vec::new();
        let reads = self.tool.is_none() || self.writes(DriverStep::Read);
        let step = match kind {
            PlanKind::RefreshOnly if reads => DriverStep::Read,
            _ => DriverStep::Plan,
        };
        let plan = |tool: Tool| {
            let mut words = words(tool, &["plan", "-input=false", "-detailed-exitcode"]);
            let mut out = OsString::from("-out=");
            out.push(plan_file);
            words.push(out);
            match kind {
                PlanKind::Normal => {}
                PlanKind::Destroy => words.push("-destroy".into()),
                PlanKind::RefreshOnly => words.push("-refresh-only".into()),
            }
            words.extend(extra.iter().cloned());
            words
        };
        let plan = self.step(StepRole::Plan, step, plan, extra);
        steps.extend(plan.map(|step| StepPlan {
            exit_codes: ExitCodes {
                changes: Some(self.changes_on_exit().into()),
                ..step.exit_codes
            },
            ..step
        }));
        if let Some(tool) = self.tool {
            let mut words = words(tool, &["show", "-json"]);
            words.push(plan_file.into());
            steps.push(StepPlan {
                role: StepRole::Show,
                name: "show",
                words: Words::BuiltIn(words),
                exit_codes: ExitCodes::default(),
            });
        }
        steps
    }

    /// Returns the command that only validates the configuration, if the tool has one and plans the files in the
    /// directory of the stack. Terragrunt has none: its check reads the outputs of other units.
    pub fn validating(&self) -> Option<StepPlan<'p>> {
        let tool = self.tool.filter(|tool| *tool != Tool::Terragrunt)?;
        if self.writes(DriverStep::Init) || self.writes(DriverStep::Plan) {
            return None;
        }
        Some(StepPlan {
            role: StepRole::Validate,
            name: "validate",
            words: Words::BuiltIn(words(tool, &["validate", "-no-color"])),
            exit_codes: ExitCodes::default(),
        })
    }

    /// Returns the command that applies a plan, if there is one: the tools apply the plan in the file,
    /// also one that destroys.
    pub fn acting(&self, destroys: bool, plan_file: &Path) -> Option<StepPlan<'p>> {
        let step = if destroys {
            DriverStep::Destroy
        } else {
            DriverStep::Apply
        };
        let apply = |tool: Tool| {
            let mut words = words(tool, &["apply", "-input=false"]);
            words.push(plan_file.into());
            words
        };
        self.step(StepRole::Act, step, apply, &[])
    }

    /// Returns the `destroy` command of the driver block for the stack of the namespaces; `None` without one.
    pub fn destroy_words(
        &self,
        namespaces: &StackNamespaces<'_, '_>,
    ) -> Result<Option<Vec<OsString>>, Vec<Diagnostic>> {
        let block = self.block.map(|block| &block.commands);
        let written = block.and_then(|commands| commands.get(&DriverStep::Destroy));
        written
            .map(|words| words_of_list(words, namespaces))
            .transpose()
    }

    /// Returns the command that accepts drift into the tool's own state, if there is one: it applies a plan that only
    /// refreshes. A block with its own `read` or `apply` has no such command.
    pub fn accepting_drift(&self, plan_file: &Path) -> Option<StepPlan<'p>> {
        let is_own = self.writes(DriverStep::Read) || self.writes(DriverStep::Apply);
        self.tool.filter(|_| !is_own)?;
        self.acting(false, plan_file)
    }

    pub fn outputs(&self) -> Option<StepPlan<'p>> {
        let outputs = |tool: Tool| words(tool, &["output", "-json"]);
        self.step(StepRole::Outputs, DriverStep::Outputs, outputs, &[])
    }

    /// Returns the command that prints the tool's state, if it has one. Whatever its exit status, it doesn't fail
    /// the stack, which was applied.
    pub fn state(&self) -> Option<StepPlan<'p>> {
        Some(StepPlan {
            role: StepRole::State,
            name: "state",
            words: Words::BuiltIn(words(self.tool?, &["show", "-json"])),
            exit_codes: ExitCodes {
                success: Some((1..=255).collect()),
                ..ExitCodes::default()
            },
        })
    }

    fn step(
        &self,
        role: StepRole,
        step: DriverStep,
        built_in: impl FnOnce(Tool) -> Vec<OsString>,
        extra: &[OsString],
    ) -> Option<StepPlan<'p>> {
        let written = self.block.and_then(|block| block.commands.get(&step));
        let words = match (written, self.tool) {
            (Some(expr), _) => Words::Written(expr, extra.to_vec()),
            (None, Some(tool)) => Words::BuiltIn(built_in(tool)),
            (None, None) => return None,
        };
        Some(StepPlan {
            role,
            name: step.name(),
            words,
            exit_codes: ExitCodes {
                success_on_interrupt: self.block.map(|block| block.success_on_interrupt),
                ..ExitCodes::default()
            },
        })
    }

    pub fn writes(&self, step: DriverStep) -> bool {
        self.block.is_some_and(|it| it.commands.contains_key(&step))
    }

    fn changes_on_exit(&self) -> Vec<i32> {
        let written = self.block.and_then(|it| it.changes_on_exit.clone());
        written.unwrap_or_else(|| CHANGES.to_vec())
    }

    /// Returns the path in the stack directory that exists after `init`, if there is one; `data` is the tool's data
    /// directory.
    pub fn initialized(&self, data: Option<&str>) -> Option<String> {
        let written = self.block.and_then(|block| block.initialized.clone());
        let of_tool = || match self.tool? {
            Tool::Terraform | Tool::OpenTofu => Some(data.unwrap_or(".terraform").to_owned()),
            // Terragrunt runs `init` by itself.
            Tool::Terragrunt => None,
        };
        written.or_else(of_tool)
    }
}

fn words(tool: Tool, arguments: &[&str]) -> Vec<OsString> {
    let all = std::iter::once(tool.program()).chain(arguments.iter().copied());
    all.map(OsString::from).collect()
}
