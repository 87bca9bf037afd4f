//! Reads the plan files of tools that a run applies.

use crate::context::Context;
use crate::project::config::{RecordKind, RecordPatterns};
use crate::project::environment::lookup;
use crate::project::host::host_variable;
use crate::project::tool_use::ToolUse;
use crate::run::request::PreparedRun;
use crate::run::run_command::RunCommand;
use crate::run::tool::AppliedPlan;

impl Context {
    /// Asks the tools of a run for the changes in the plan files that it applies: files that it
    /// applies directly, or that are recorded.
    pub(super) fn ask_tools(&self, run: &mut PreparedRun, command: &RunCommand) {
        let is_recorded = !matches!(run.recording(), None | Some(RecordKind::Never));
        let state = self.project.settings.state.as_ref();
        // A run that needs these patterns is refused later if they are invalid.
        let patterns = state
            .and_then(|block| block.patterns(&host_variable).ok())
            .unwrap_or_else(RecordPatterns::built_in);
        let turns = run.sequence.iter().zip(&run.tasks);
        let plans = turns.map(|(&stack, tasks)| {
            // A later command may apply what an earlier one plans.
            let (words, task) = (command.commands(stack).first()?, tasks.first()?);
            let variable = |name: &str| lookup(&task.environment, name);
            let uses = ToolUse::all(words, variable);
            let plan = AppliedPlan::of(&uses, task)?;
            let is_asked = uses.iter().any(|it| it.is_direct)
                || is_recorded
                || patterns.recognize(words, variable).is_some();
            is_asked.then_some(plan)
        });
        run.plan_files = plans.collect();
        AppliedPlan::ask_all(&mut run.plan_files);
    }
}
