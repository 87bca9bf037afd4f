//! Makes a plan: compares the state with the project, asks the tools, and turns their answers into
//! ordered entries.
//!
//! This module runs no commands and prints nothing: [`Ask`] and the context's notices do.

mod ask;
mod checks;
mod commits;
mod dependents;
mod destroy_commands;
mod entries;
mod failing;
mod make;
mod outputs;
mod protection;
mod recorded_facts;
mod removal_code;
mod removal_outlook;
mod removals;
mod rounds;
mod saved_facts;
mod subjects;
mod succession;
mod tools;
mod triggers;
mod warnings;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::time::Duration;

pub use self::ask::{AskEnd, AskedTools};
pub use self::commits::Commits;
pub use self::make::{NewPlan, Planner};
pub use self::outputs::OutputReader;
pub use self::protection::{Protections, refuse};
pub use self::removal_code::{CommitEnvironments, RemovalCode};
pub use self::removal_outlook::RemovalOutlook;
pub use self::removals::{Removal, Removals};
pub use self::subjects::{Drivers, RecordedState, taken};
use self::subjects::{StackToPlan, StacksToPlan};
pub use self::tools::{Ask, AskedRun, EndedOutput, NO_FOLDER, RunOrigin};
pub use self::warnings::{refuse_left_behind, warn_of_left_behind};
use super::entry::PlanOptions;
use super::{Purpose, RequestedOptions};
use crate::context::{Context, Entries};
use crate::path::StackPath;
use crate::project::tool_options::shown_options;
use crate::record::journal::BaseRecord;
use crate::selection::select::Query;
use crate::state::document::Document;

#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct PlanRequest<'a> {
    pub tools: &'a dyn Ask,
    pub extra: &'a [OsString],
    /// Whether `init` runs in every stack that is asked.
    pub init: bool,
    pub jobs: NonZeroUsize,
    /// The mode, and whether unchanged stacks are planned.
    pub options: PlanOptions,
    /// As written.
    pub replace: &'a [String],
    /// Whether stacks are planned that were applied from a commit that HEAD lacks.
    pub allow_rollback: bool,
    pub no_removals: bool,
    /// Whether protected stacks are excluded, instead of refusing the plan.
    pub skip_protected: bool,
    pub fetches: bool,
    /// Whether stacks are planned because a module that they call has a new version.
    pub is_release: bool,
    /// Whether the plan will be applied, now or later.
    pub is_kept: bool,
    /// Whether the plan only verifies that stacks match the configuration, ignoring the state.
    pub is_verification: bool,
    /// The only stacks to plan, if they are already known.
    pub only: Option<&'a [StackPath]>,
    /// Whether the apply leaves out failing stacks and those that run after them.
    pub leaves_out_failed: bool,
    pub lock_timeout: Option<Duration>,
}

/// What all steps of planning read.
#[derive(Clone, Copy)]
struct Planning<'a> {
    context: &'a Context,
    request: &'a PlanRequest<'a>,
    query: &'a Query,
    recorded: Option<&'a RecordedState>,
}

impl<'a> Planning<'a> {
    fn document(self) -> Option<&'a Document> {
        self.recorded.map(|recorded| &recorded.document)
    }

    /// Returns the recorded entries of this commit's stacks.
    fn entries(self) -> Entries<'a> {
        let document = self.document();
        let entries = document.map(|document| self.context.entries_of(document));
        entries.unwrap_or_default()
    }

    /// Returns the origin of the planning runs.
    fn origin(self) -> RunOrigin {
        RunOrigin {
            purpose: match self.request.only {
                None => Purpose::Plan,
                Some(_) => Purpose::PlanFollowUps,
            },
            base: self.query.since().as_ref().map(BaseRecord::of),
            is_recorded: true,
        }
    }
}

impl PlanRequest<'_> {
    fn requested(&self) -> RequestedOptions {
        RequestedOptions {
            full: self.options.is_full,
            init: self.init,
            allow_rollback: self.allow_rollback,
            replace: self.replace.to_vec(),
            arguments: !self.extra.is_empty(),
            tool_options: shown_options(self.extra),
        }
    }
}
