//! Outputs of stacks as variables of others, in `orch run --enable-sharing`.

use std::collections::{BTreeSet, HashMap};

use super::show_missing;
use crate::context::Context;
use crate::error::{ErrorContext as _, Result};
use crate::exit::ExitStatus;
use crate::project::environment::Environment;
use crate::project::stack::StackIndex;
use crate::run::request::PreparedRun;
use crate::run::sharing::{RunInputs, SharedInputs};

/// The environments of the stacks whose outputs a run reads; `None` if it reads none.
pub(super) type SourceEnvironments = Option<HashMap<StackIndex, Environment>>;

/// Evaluates the environments of the stacks whose outputs a run reads, and reports inputs without a
/// source.
pub(super) fn environments(context: &mut Context, run: &PreparedRun) -> Result<SourceEnvironments> {
    if run.settings().sharing.is_none() {
        return Ok(None);
    }
    let mut problems = Vec::new();
    let inputs = RunInputs::find(&context.project, &run.sequence, &mut problems);
    let sources: BTreeSet<StackIndex> = inputs.sources().iter().map(|it| it.stack).collect();
    context.problems.diagnostics.append(&mut problems);
    let (known, problems) = context.in_generations(|context| {
        let sources = sources.iter().copied();
        context.evaluator().of_stacks(sources)
    })?;
    context.add_shared(problems);
    context.report()?;
    Ok(Some(known.into_iter().collect()))
}

/// Prepares the inputs of a run whose sources have these environments.
pub(super) fn shared<'c>(
    context: &'c Context,
    run: &PreparedRun,
    environments: &SourceEnvironments,
) -> Result<Option<SharedInputs<'c>>> {
    let Some((environments, sharing)) = environments.as_ref().zip(run.settings().sharing) else {
        return Ok(None);
    };
    let inputs = RunInputs::find(&context.project, &run.sequence, &mut Vec::new());
    match inputs.prepare(&run.id, &run.sequence, environments, sharing) {
        Ok(shared) => Ok(Some(shared.context("failed to make a folder for outputs")?)),
        Err(missing) => {
            show_missing(context, &missing);
            Err(ExitStatus::External.into())
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
