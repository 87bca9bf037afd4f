//! Selects again under the lock of the state: another run may have written in the meantime.

use super::recorder::HeldState;
use super::{Prepared, PreparedCommand, RunOptions};
use crate::context::Context;
use crate::error::Result;
use crate::project::Problems;
use crate::selection::select::{Query, Selection, select as select_stacks};

/// Returns the run of the stacks that the query now selects; `prepared` if these have not changed.
/// Without a query, they come from an earlier run.
pub(super) fn select(
    context: &mut Context,
    options: &RunOptions,
    query: Option<&Query>,
    held: &HeldState,
    before: &Selection,
    prepared: PreparedCommand,
) -> Result<Prepared<PreparedCommand>> {
    let query = match query {
        Some(query) => context.by_document(query, held.document())?,
        None => None,
    };
    let Some(query) = query else {
        return Ok(Prepared::Run(prepared));
    };
    let stacks = &context.project.stacks;
    let selection = select_stacks(stacks, &context.references, &context.graph, &query);
    if selection.stacks().eq(before.stacks()) {
        return Ok(Prepared::Run(prepared));
    }
    context.notices.note(&format!(
        "another run has changed the state meanwhile: {}",
        match selection.len() {
            0 => "nothing is left to do".to_owned(),
            1 => "1 stack is selected now".to_owned(),
            stacks => format!("{stacks} stacks are selected now"),
        }
    ));
    // These have been shown.
    context.problems = Problems::default();
    let id = Some(prepared.run.id);
    let reselected = PreparedCommand::new(context, options, &selection, None, id)?;
    if let Prepared::Run(prepared) = &reselected {
        prepared.check(context, &options.disabled)?;
    }
    Ok(reselected)
}
