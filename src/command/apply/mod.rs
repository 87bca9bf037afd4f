//! `orch apply` and `orch destroy`: verify a plan, ask for approval, apply it.

mod approve;
mod execute;
mod job;
mod lock;
mod part;
mod policies;
mod run;
mod unconfirmed;
mod verified;

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use serde_json::value::RawValue;

pub use self::approve::Approval;
pub use self::lock::{HeldLock, before_planning};
pub use self::part::{PlanOperation, PlanPart, PriorOperation, SkipReason, WorkLeft};
use super::RunTerminal;
use super::load::KeptProject;
use super::order_followups::EndedOrder;
use super::plan::{Planned, Tools};
use crate::context::{Context, RollbackFlags};
use crate::error::Result;
use crate::notice::Notices;
use crate::path::StackPath;
use crate::plan::archive::Archive;
use crate::plan::{SavedPlan, SavedPolicies};
use crate::run::safeguard::Disabled;
use crate::run::schedule::OnError;

/// The program's part of an apply.
pub trait ApplyTerminal: RunTerminal {
    /// Loads the current project, with its listing and the exact git status. Errors in it end the
    /// command.
    fn load(&self) -> Result<Context>;

    /// Plans these stacks, ignoring the state.
    fn plan(&self, stacks: &[StackPath]) -> Result<Planned>;

    fn show(&self, planned: &Planned) -> Result<()>;

    fn can_ask(&self) -> bool;

    /// Prints a question unchanged, and returns the line that the user types, trimmed.
    fn ask(&self, question: &str) -> Result<String>;
}

#[derive(Clone)]
pub struct Apply<'a> {
    pub terminal: &'a dyn ApplyTerminal,
    pub notices: Notices,
    pub saved: &'a SavedPlan,
    pub archive: Option<&'a Archive>,
    /// The file with the plan, as the user named it. If there is none, the plan was just made, after the safeguards
    /// were checked.
    pub file: Option<&'a Path>,
    /// Whether the plan may have begun.
    pub resumes: bool,
    /// The part to apply, if this is a job of a work order.
    pub part: Option<&'a PlanPart>,
    /// The work order whose follow-ups run now, instead of the plan: its jobs have ended.
    pub ended_order: Option<EndedOrder<'a>>,
    /// The project that the jobs of a worker share.
    pub kept: Option<&'a KeptProject>,
    pub approval: Approval,
    pub allows: AllowedChanges,
    pub rollback: RollbackFlags,
    pub disabled: &'a Disabled,
    pub policies: SavedPolicies,
    /// The inputs that a module's policies asked to keep.
    pub release_samples: Vec<(String, Box<RawValue>)>,
    /// Whether `init` runs in each stack.
    pub init: bool,
    pub jobs: NonZeroUsize,
    pub on_error: OnError,
    pub lock_timeout: Option<Duration>,
}

/// The changes that an apply may make although the plan has not shown them.
#[derive(Clone, Copy)]
pub struct AllowedChanges {
    /// Changes that turn up during the apply.
    pub new_changes: bool,
    /// Destroying resources in kept stacks.
    pub resource_destroy: bool,
}

impl Apply<'_> {
    /// Returns the apply of a part of the plan, without policies.
    pub fn of_part<'a>(&'a self, part: &'a PlanPart, kept: &'a KeptProject) -> Apply<'a> {
        Apply {
            part: Some(part),
            kept: Some(kept),
            policies: SavedPolicies {
                is_off: true,
                metadata: Vec::new(),
            },
            ..self.clone()
        }
    }

    /// Returns the apply of the follow-ups of a work order, whose jobs have applied the plan.
    pub fn of_follow_ups<'a>(&'a self, ended: EndedOrder<'a>) -> Apply<'a> {
        Apply {
            ended_order: Some(ended),
            ..self.clone()
        }
    }

    fn is_from_file(&self) -> bool {
        self.file.is_some()
    }

    fn tools(&self) -> Tools<'_> {
        Tools {
            terminal: self.terminal,
        }
    }
}
