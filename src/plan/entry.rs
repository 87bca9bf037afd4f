//! Entries of a plan: the action for each stack and the reason.
//!
//! The state decides whether a tool must be asked; the tool's answer decides the rest. This module
//! calls no tool and does not know the order.

mod reason;

use serde::{Deserialize, Serialize};

pub use self::reason::{IgnoredInputs, PlanReason, ReasonSource, Removed};
use crate::change::{Pending, StackStatus, part_label};
use crate::driver::{ChangeCounts, Driver, DriverAction, DriverAnswer, PlanKind, ResourceChange};
use crate::path::{Generation, StackPath};
use crate::plan::conditions::WorkBefore;
use crate::project::driver::DriverStep;
use crate::project::stack::StackMode;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlannedAction {
    NoOp,
    /// Nothing exists yet.
    Create,
    /// The stack exists and is only recorded.
    Adopt,
    /// The stack exists and is applied.
    Update,
    /// The stack is destroyed and recreated.
    Replace,
    Delete,
    /// Its outputs are read for other stacks.
    Read,
    /// The stack is removed from the state: it has no resources, or others manage them.
    Forget,
}

impl PlannedAction {
    pub fn word(self) -> &'static str {
        match self {
            PlannedAction::NoOp => "no-op",
            PlannedAction::Create => "create",
            PlannedAction::Adopt => "adopt",
            PlannedAction::Update => "update",
            PlannedAction::Replace => "replace",
            PlannedAction::Delete => "delete",
            PlannedAction::Read => "read",
            PlannedAction::Forget => "forget",
        }
    }

    pub fn is_work(self) -> bool {
        matches!(
            self,
            PlannedAction::Create
                | PlannedAction::Update
                | PlannedAction::Replace
                | PlannedAction::Delete
        )
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct PlanEntry {
    pub stack: StackPath,
    pub action: PlannedAction,
    pub reason: PlanReason,
    pub counts: Option<ChangeCounts>,
    pub resources: Vec<ResourceChange>,
    /// The names of the outputs that change, if its tool reports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_outputs: Vec<String>,
    pub is_complete: bool,
    /// Whether the changes are known. If not, its tool failed, and the apply asks it again.
    pub is_planned: bool,
    /// The stacks with work that it runs after; its action is decided when they end.
    pub after: WorkBefore,
    /// Why it is not applied although it has changes.
    pub blocked: Option<String>,
    /// The stacks and outputs whose change during the apply would replace it, which needs a new
    /// plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced_if: Vec<String>,
    /// The inputs whose mocks it was planned with, in the order of their blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mocked: Vec<String>,
    /// Its recorded path, if it was moved.
    pub previous_path: Option<String>,
    /// The new generation, if it is created before the old one is destroyed. The old generation has
    /// its own entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// The commit of the last apply, if recorded. A removed stack is destroyed with that commit's
    /// code.
    pub source_commit: Option<String>,
    /// If it is in the state but not in this commit: why it counts as removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removed>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_drifted: bool,
    /// Whether the tool's plan destroys all resources.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_nothing: bool,
}

impl PlanEntry {
    /// Returns an entry without changes that waits for no other stack.
    pub fn new(stack: StackPath, action: PlannedAction, reason: PlanReason) -> Self {
        PlanEntry {
            stack,
            action,
            reason,
            counts: None,
            resources: Vec::new(),
            changed_outputs: Vec::new(),
            is_complete: true,
            is_planned: true,
            after: WorkBefore::default(),
            blocked: None,
            replaced_if: Vec::new(),
            mocked: Vec::new(),
            previous_path: None,
            generation: None,
            source_commit: None,
            removed: None,
            has_drifted: false,
            leaves_nothing: false,
        }
    }

    /// Returns whether it destroys the stack. If a replace creates first, another entry destroys.
    pub fn destroys(&self) -> bool {
        match self.action {
            PlannedAction::Delete => true,
            PlannedAction::Replace => self.generation.is_none(),
            _ => false,
        }
    }

    /// Returns whether it is planned again after a stack with work that it depends on is applied.
    pub fn is_provisional(&self) -> bool {
        self.action.is_work() && self.blocked.is_none() && !self.after.is_empty()
    }

    /// Returns whether the apply decides its action: it has no work, but runs after stacks with
    /// work.
    pub fn is_undecided(&self) -> bool {
        !self.action.is_work() && self.blocked.is_none() && !self.after.is_empty()
    }
}

/// The facts about a stack before its tool is asked.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct StackFacts<'a> {
    /// Its recorded status; `None` without a state.
    pub status: Option<&'a StackStatus>,
    pub driver: Driver<'a>,
    pub mode: StackMode,
    pub is_replaced: bool,
    /// Whether a replace creates the new stack before it destroys the old one.
    pub is_created_first: bool,
    /// Whether it is recorded as being replaced, and nothing of it exists.
    pub is_missing: bool,
    /// The `replace_triggered_by` that replaces it, if any.
    pub trigger: Option<&'a PlanReason>,
    /// Describes the outputs that differ from those of its last apply, if any.
    pub outputs_differ: Option<&'a str>,
    /// The inputs that its `ignore_changes` excludes, if it has one.
    pub ignored: Option<IgnoredInputs<'a>>,
    /// Whether drift was accepted since the last apply, so its tool must plan.
    pub accepts_drift: bool,
    /// Whether its outputs are unknown, so its tool must print them.
    pub lacks_outputs: bool,
    pub is_released: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Final(PlannedAction, PlanReason),
    /// Asks its tool; the action is a guess.
    Ask(PlanKind, AskedAction),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedAction {
    /// Nothing is recorded.
    Create,
    /// Something is recorded, or may be.
    Update,
    Delete,
    /// The stack is destroyed and recreated.
    Replace,
    /// A new generation is created before the old one is destroyed.
    CreateFirst,
    Refresh,
    Read,
}

impl AskedAction {
    pub fn word(self) -> &'static str {
        match self {
            AskedAction::Create | AskedAction::CreateFirst => "create",
            AskedAction::Update => "update",
            // A recreated stack is planned after the old one is destroyed.
            AskedAction::Delete | AskedAction::Replace => "delete",
            AskedAction::Refresh => "refresh",
            AskedAction::Read => "read",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its driver answers `{answer}` when asked for `{asked}`; {hint}")]
pub struct NotAllowed {
    answer: &'static str,
    asked: &'static str,
    hint: &'static str,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct PlanOptions {
    pub mode: PlanMode,
    /// Whether tools are asked even if the state says that nothing has changed.
    pub is_full: bool,
}

impl StackFacts<'_> {
    pub fn need(&self, options: PlanOptions) -> Decision {
        let asks = |kind: PlanKind| match kind {
            PlanKind::RefreshOnly => {
                let prints = self.mode == StackMode::Read && self.driver.has(DriverStep::Outputs);
                self.driver.has(DriverStep::Read) || prints
            }
            _ => self.driver.has(DriverStep::Plan),
        };
        if options.mode == PlanMode::RefreshOnly || self.mode == StackMode::Read {
            let (action, asked, text) = match self.mode {
                StackMode::Read => (PlannedAction::Read, AskedAction::Read, "it is only read"),
                StackMode::Manage => (PlannedAction::NoOp, AskedAction::Refresh, "--refresh-only"),
            };
            if options.mode != PlanMode::Destroy && asks(PlanKind::RefreshOnly) {
                return Decision::Ask(PlanKind::RefreshOnly, asked);
            }
            return Decision::Final(action, PlanReason::new(ReasonSource::Config, text));
        }
        if options.mode == PlanMode::Destroy {
            if self.driver.is_none() {
                let reason = "the driver `none` destroys nothing";
                return Decision::Final(
                    PlannedAction::NoOp,
                    PlanReason::new(ReasonSource::Driver, reason),
                );
            }
            if asks(PlanKind::Destroy) {
                return Decision::Ask(PlanKind::Destroy, AskedAction::Delete);
            }
            let reason = PlanReason::new(ReasonSource::Option, "--destroy");
            return Decision::Final(PlannedAction::Delete, reason);
        }
        let asked = match self.status {
            Some(StackStatus::Pending(Pending::NeverApplied)) => AskedAction::Create,
            _ => AskedAction::Update,
        };
        if let Some(reason) = self.replaces() {
            if self.is_missing && asks(PlanKind::Normal) {
                return Decision::Ask(PlanKind::Normal, AskedAction::Create);
            }
            let is_there = asked != AskedAction::Create && !self.is_missing;
            if is_there && self.driver.is_none() && !self.is_replaced {
                // No tool created anything, so there is nothing to destroy: the stack is recorded
                // again.
                return Decision::Final(PlannedAction::NoOp, reason);
            }
            if is_there && self.is_created_first && asks(PlanKind::Normal) {
                return Decision::Ask(PlanKind::Normal, AskedAction::CreateFirst);
            }
            if is_there && !self.is_created_first && asks(PlanKind::Destroy) {
                return Decision::Ask(PlanKind::Destroy, AskedAction::Replace);
            }
            if is_there {
                return Decision::Final(PlannedAction::Replace, reason);
            }
            if self.is_missing {
                return Decision::Final(PlannedAction::Create, reason);
            }
        }
        let is_read = options.is_full || self.lacks_outputs;
        if self.is_as_applied() && (!is_read || self.is_never_updated()) {
            return Decision::Final(PlannedAction::NoOp, self.unchanged());
        }
        if asks(PlanKind::Normal) {
            return Decision::Ask(PlanKind::Normal, asked);
        }
        let reason = self.because();
        Decision::Final(
            match (asked, self.driver.is_none(), self.status) {
                _ if self.is_as_applied() => PlannedAction::NoOp,
                (AskedAction::Create, true, Some(_)) => PlannedAction::Adopt,
                (_, true, _) => PlannedAction::NoOp,
                (AskedAction::Create, false, _) => PlannedAction::Create,
                (_, false, _) => PlannedAction::Update,
            },
            reason,
        )
    }

    /// Returns whether its inputs, and the outputs that it uses, are those of the last apply.
    fn is_as_applied(&self) -> bool {
        let is_untouched = self.outputs_differ.is_none() && !self.accepts_drift;
        self.status == Some(&StackStatus::Applied) && (is_untouched || self.is_never_updated())
    }

    /// Returns whether it is never updated because it ignores all changes.
    fn is_never_updated(&self) -> bool {
        let ignores_all = self.ignored.is_some_and(|ignored| ignored.is_all);
        ignores_all && self.status == Some(&StackStatus::Applied)
    }

    /// Returns why nothing is done: nothing differs, or only ignored inputs do.
    fn unchanged(&self) -> PlanReason {
        let ignored = self.ignored.and_then(|ignored| ignored.reason());
        ignored.unwrap_or_else(|| PlanReason::new(ReasonSource::State, "unchanged"))
    }

    /// Returns why its tool finds changes. If no input differs, something outside the inputs
    /// changed.
    fn because_of_changes(&self) -> PlanReason {
        if self.status != Some(&StackStatus::Applied) || self.outputs_differ.is_some() {
            return self.because();
        }
        if let Some(ignored) = self.ignored.and_then(|ignored| ignored.reason()) {
            return ignored;
        }
        let text = if self.is_released {
            "calls a released module"
        } else {
            "drift"
        };
        PlanReason::new(ReasonSource::Driver, text)
    }

    fn replaces(&self) -> Option<PlanReason> {
        if self.is_replaced {
            return Some(PlanReason::new(ReasonSource::Option, "--replace"));
        }
        if let Some(trigger) = self.trigger {
            return Some(trigger.clone());
        }
        let is_tainted = matches!(self.status, Some(StackStatus::Failed("tainted")));
        is_tainted.then(|| PlanReason::new(ReasonSource::State, "tainted"))
    }

    fn is_recorded(&self) -> bool {
        let never = StackStatus::Pending(Pending::NeverApplied);
        self.status.is_some_and(|status| *status != never)
    }

    /// Returns why it may need changes, according to the state.
    fn because(&self) -> PlanReason {
        use ReasonSource::{Config, State};
        match self.status {
            None => PlanReason::new(Config, "the project keeps no state"),
            Some(StackStatus::Pending(pending)) => match pending {
                Pending::NeverApplied => PlanReason::new(State, "not recorded"),
                Pending::Unknown(why) | Pending::Outputs(why) => {
                    PlanReason::new(State, why.clone())
                }
                Pending::Differs(difference) => {
                    let cause = difference.cause.as_ref();
                    let file = cause.map(|cause| cause.file.path.relative());
                    let what =
                        file.or_else(|| difference.parts.first().map(|part| part_label(part)));
                    let what = what.unwrap_or("an input");
                    PlanReason::new(Config, format!("{what} differs")).at(file, None)
                }
                Pending::OtherRules => {
                    PlanReason::new(State, "the definition of its inputs has changed")
                }
                Pending::OtherIgnored => {
                    PlanReason::new(State, "its inputs differ, and `ignore_changes` has changed")
                }
                Pending::Triggered(file) => {
                    let file = file.relative();
                    PlanReason::new(Config, format!("triggered by {file}")).at(Some(file), None)
                }
                Pending::Generation { of, now } => {
                    PlanReason::new(State, format!("{of} now has generation {now}"))
                }
            },
            Some(StackStatus::Failed(why)) => PlanReason::new(State, *why),
            Some(StackStatus::Running) => PlanReason::new(State, "a run is working on it"),
            Some(StackStatus::Applied | StackStatus::Removed | StackStatus::Absent) => {
                let differ = self.outputs_differ.map(|text| PlanReason::new(State, text));
                differ.unwrap_or_else(|| self.unchanged())
            }
        }
    }

    /// Decides by the driver's answer. Fails if the driver may not give that answer.
    pub fn decide(
        &self,
        asked: AskedAction,
        answer: &DriverAnswer,
    ) -> Result<(PlannedAction, PlanReason), NotAllowed> {
        allowed(&self.driver, asked, answer)?;
        let because = self
            .replaces()
            .filter(|_| self.is_missing)
            .unwrap_or_else(|| self.because());
        let says = |text: &str| {
            let own = answer.reason.clone();
            PlanReason::new(ReasonSource::Driver, own.unwrap_or_else(|| text.to_owned()))
        };
        let has_changes = answer.changes_something();
        Ok(match asked {
            AskedAction::Read => (
                PlannedAction::Read,
                PlanReason::new(ReasonSource::Config, "it is only read"),
            ),
            AskedAction::Refresh if answer.has_drifted() => {
                (PlannedAction::NoOp, says("has drifted"))
            }
            AskedAction::Refresh => (PlannedAction::NoOp, says("has not drifted")),
            AskedAction::Replace => {
                let reason = self.replaces().unwrap_or(because);
                if answer.is_there(self.is_recorded()) {
                    (PlannedAction::Replace, reason)
                } else {
                    (PlannedAction::Create, reason)
                }
            }
            AskedAction::CreateFirst => {
                (PlannedAction::Replace, self.replaces().unwrap_or(because))
            }
            AskedAction::Delete if answer.is_there(self.is_recorded()) => (
                PlannedAction::Delete,
                PlanReason::new(ReasonSource::Option, "--destroy"),
            ),
            AskedAction::Delete => (PlannedAction::NoOp, says("nothing exists")),
            AskedAction::Create | AskedAction::Update
                if answer.action == Some(DriverAction::Replace) =>
            {
                (PlannedAction::Replace, says("the driver asks for it"))
            }
            AskedAction::Create => match (answer.exists, has_changes) {
                (Some(true), true) => (PlannedAction::Update, because),
                (_, true) => (PlannedAction::Create, because),
                (Some(false), false) => (PlannedAction::Adopt, says("nothing to create")),
                (_, false) => (PlannedAction::Adopt, says("exists, and is not recorded")),
            },
            AskedAction::Update if self.status.is_none() => match (answer.exists, has_changes) {
                (Some(false), true) => (PlannedAction::Create, says("nothing exists")),
                (_, true) => (PlannedAction::Update, says("has changes")),
                (_, false) => (PlannedAction::NoOp, says("has no changes")),
            },
            AskedAction::Update => match (answer.exists, has_changes) {
                (Some(false), true) => {
                    // An interrupted apply may have been the first.
                    let was_tried = matches!(
                        self.status,
                        Some(StackStatus::Failed(_) | StackStatus::Running)
                    );
                    let reason = if was_tried {
                        let text = format!("{}; nothing exists", because.text);
                        PlanReason::new(because.source, text)
                    } else {
                        let text = "recorded, but its Terraform state is empty";
                        PlanReason::new(ReasonSource::Driver, text)
                    };
                    (PlannedAction::Update, reason)
                }
                (_, true) if self.replaces().is_none() => {
                    (PlannedAction::Update, self.because_of_changes())
                }
                (_, true) => (PlannedAction::Update, because),
                (_, false) if self.is_as_applied() => (PlannedAction::NoOp, self.unchanged()),
                (_, false) if matches!(self.status, Some(StackStatus::Failed(_))) => {
                    (PlannedAction::NoOp, because)
                }
                (_, false) => (PlannedAction::NoOp, says("no changes")),
            },
        })
    }
}

pub fn allowed(
    driver: &Driver<'_>,
    asked: AskedAction,
    answer: &DriverAnswer,
) -> Result<(), NotAllowed> {
    let Some(action) = answer.action else {
        return Ok(());
    };
    let may_replace = driver.block.is_some_and(|block| block.may_replace);
    let (is_allowed, hint) = match (asked, action) {
        (_, DriverAction::NoOp)
        | (
            AskedAction::Create | AskedAction::CreateFirst | AskedAction::Update,
            DriverAction::Update,
        ) => (true, ""),
        (AskedAction::Update, DriverAction::Replace) => {
            (may_replace, "that needs `may_replace = true`")
        }
        _ => (
            false,
            "a driver can only modify an action, not choose another one",
        ),
    };
    if is_allowed {
        return Ok(());
    }
    Err(NotAllowed {
        answer: action.word(),
        asked: asked.word(),
        hint,
    })
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanMode {
    #[default]
    Normal,
    Destroy,
    /// To show or accept drift; nothing else changes.
    RefreshOnly,
}

impl PlanMode {
    pub fn of_flags(destroy: bool, refresh_only: bool) -> Self {
        match (destroy, refresh_only) {
            (true, _) => PlanMode::Destroy,
            (_, true) => PlanMode::RefreshOnly,
            _ => PlanMode::Normal,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            PlanMode::Normal => "normal",
            PlanMode::Destroy => "destroy",
            PlanMode::RefreshOnly => "refresh-only",
        }
    }
}

#[cfg(test)]
mod tests;
