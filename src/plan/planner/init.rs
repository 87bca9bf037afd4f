//! Runs `init` before anything else, where it has not run yet. This module does not report failed tools: the turns
//! that need them do.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use super::tools::{Ask, RunOrigin};
use crate::context::{Context, PLANS as FOLDER, PrivateFolder};
use crate::driver::Driver;
use crate::error::Result;
use crate::plan::Purpose;
use crate::plan::ask::{self, AskOptions};
use crate::plan::code::PlanCode;
use crate::plan::inputs::StackInputs;
use crate::plan::stack::PlanStack;
use crate::run::request::new_id;

impl Context {
    /// Runs `init` in the stacks whose outputs some stacks need for their inputs, unless it has run. If a
    /// tool fails, the step that reads the outputs reports the failure.
    pub fn init_sources(
        &self,
        tools: &dyn Ask,
        jobs: NonZeroUsize,
        inputs: &StackInputs<'_>,
        stacks: impl Iterator<Item = PlanStack>,
    ) -> Result<()> {
        let sources = stacks
            .flat_map(|stack| inputs.needed(stack))
            .map(|position| inputs.source(position))
            // Removed stacks are ready.
            .filter(|source| source.stack.here().is_some())
            .map(|source| (source.stack, source.driver));
        let sources: BTreeMap<PlanStack, Driver<'_>> = sources.collect();
        let sources: Vec<_> = sources.into_iter().collect();
        let environments = self.evaluator();
        let codes = PlanCode::of_tree(&self.project, &environments);
        self.init(tools, jobs, codes, &sources)
    }

    /// Runs `init` in the stacks in which it has not run yet.
    pub(super) fn init(
        &self,
        tools: &dyn Ask,
        jobs: NonZeroUsize,
        codes: PlanCode<'_, '_>,
        stacks: &[(PlanStack, Driver<'_>)],
    ) -> Result<()> {
        if stacks.is_empty() {
            return Ok(());
        }
        let id = new_id(&self.project.root);
        let place = PrivateFolder::of(self, FOLDER)?;
        let options = AskOptions::new(&id, place.path(), jobs);
        let Ok(asking) = ask::prepare_init(codes, stacks, &options) else {
            return Ok(());
        };
        if asking.execution.turns.is_empty() {
            return Ok(());
        }
        let origin = RunOrigin {
            purpose: Purpose::Plan,
            base: None,
            is_recorded: false,
        };
        tools.run(self, &options, origin, asking)?;
        Ok(())
    }
}
