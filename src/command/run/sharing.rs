//! Outputs of stacks as variables of others, in `orch run --enable-sharing`.

use std::collections::{BTreeSet, HashMap};

use super::show_missing;
use crate::context::Context;
use crate::error::{ErrorContext as _, Result};
use crate::exit::ExitStatus;
use crate::project::environment::Environment;
use crate::project::stack::StackIndex;
use crate::record::journal::Sharing;
use crate::run::request::PreparedRun;
use crate::run::sharing::{RunInputs, SharedInputs};

pub(super) struct SharingStacks {
    sharing: Sharing,
    stacks: Vec<StackIndex>,
    /// The environments of those whose outputs are read.
    environments: HashMap<StackIndex, Environment>,
}

impl SharingStacks {
    /// Evaluates the environments of the stacks whose outputs a run may read; `None` if it reads none. Reports
    /// inputs without a source. If the run has policies, any stack may follow.
    pub(super) fn new(
        context: &mut Context,
        run: &PreparedRun,
        has_policies: bool,
    ) -> Result<Option<Self>> {
        let Some(sharing) = run.settings().sharing else {
            return Ok(None);
        };
        let stacks: Vec<StackIndex> = if has_policies {
            context.project.stacks.iter().map(|(it, _)| it).collect()
        } else {
            run.sequence.clone()
        };
        let mut problems = Vec::new();
        let inputs = RunInputs::find(&context.project, &stacks, &mut problems);
        let sources: BTreeSet<StackIndex> = inputs.sources().iter().map(|it| it.stack).collect();
        context.problems.diagnostics.append(&mut problems);
        let (known, problems) = context.in_generations(|context| {
            let sources = sources.iter().copied();
            context.evaluator().of_stacks(sources)
        })?;
        context.add_shared(problems);
        context.report()?;
        Ok(Some(SharingStacks {
            sharing,
            stacks,
            environments: known.into_iter().collect(),
        }))
    }

    pub(super) fn prepare<'c>(
        &self,
        context: &'c Context,
        run: &PreparedRun,
    ) -> Result<SharedInputs<'c>> {
        let inputs = RunInputs::find(&context.project, &self.stacks, &mut Vec::new());
        match inputs.prepare(&run.id, &run.sequence, &self.environments, self.sharing) {
            Ok(shared) => Ok(shared.context("failed to make a folder for outputs")?),
            Err(missing) => {
                show_missing(context, &missing);
                Err(ExitStatus::External.into())
            }
        }
    }
}

/// Notes which commands did not run for want of outputs, and which mocks were used.
pub(super) fn note_unread(context: &Context, shared: &SharedInputs<'_>) {
    let stacks = &context.project.stacks;
    for &(stack, source) in shared.unread() {
        context.notices.note(&format!(
            "`{}` did not run its command: the outputs of `{}` could not be read",
            stacks[stack].path, stacks[source].path
        ));
    }
    for (stack, input) in shared.mocked() {
        let path = &stacks[*stack].path;
        context.notices.note(&format!(
            "`{path}` ran with the mock of its input `{input}`"
        ));
    }
}
