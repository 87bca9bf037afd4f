//! Entries: what is to be done with each stack, and why.
//!
//! What is on record decides first whether the tools have to be asked; their answers decide the rest. This
//! module asks nobody and knows no order.

mod ignored;
mod mode;
mod reason;
mod removed;

use serde::{Deserialize, Serialize};

pub use self::ignored::IgnoredInputs;
pub use self::mode::PlanMode;
pub use self::reason::{Reason, ReasonSource};
pub use self::removed::Removed;
use crate::change::{Pending, Standing, part_label};
use crate::driver::{Answer, AnswerAction, Counts, Driver, PlanKind, ResourceChange};
use crate::path::{Generation, StackPath};
use crate::plan::conditions::Condition;
use crate::project::driver::DriverStep;
use crate::project::stack::StackMode;

/// What is done with a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Nothing.
    NoOp,
    /// What does not exist is made.
    Create,
    /// What exists is put on record.
    Adopt,
    /// What exists is brought forward.
    Update,
    /// What exists is destroyed and made anew.
    Replace,
    /// What exists is destroyed.
    Delete,
    /// What exists is read, for others.
    Read,
    /// The stack is taken off the record: nothing of it exists any more, or it belongs to others.
    Forget,
}

impl Action {
    pub fn word(self) -> &'static str {
        match self {
            Action::NoOp => "no-op",
            Action::Create => "create",
            Action::Adopt => "adopt",
            Action::Update => "update",
            Action::Replace => "replace",
            Action::Delete => "delete",
            Action::Read => "read",
            Action::Forget => "forget",
        }
    }

    /// Returns whether commands run for it that change something.
    pub fn is_work(self) -> bool {
        matches!(
            self,
            Action::Create | Action::Update | Action::Replace | Action::Delete
        )
    }
}

/// What is to be done with a stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct PlanEntry {
    pub stack: StackPath,
    /// What is done.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// How many resources change, if that is known.
    pub counts: Option<Counts>,
    /// What changes, if that is known.
    pub resources: Vec<ResourceChange>,
    /// Whether the tool's plan has everything.
    pub is_complete: bool,
    /// Whether it is known what would be done: else its tool has failed, and is asked again during the
    /// apply.
    pub is_planned: bool,
    /// The stacks with work that it runs after: it is decided when they have ended.
    pub after: Condition,
    /// Why nothing is done, although something should be.
    pub blocked: Option<String>,
    /// The stacks and outputs that replace it if they change, which is known during the apply: then a new plan
    /// is needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced_if: Vec<String>,
    /// The path that it has on record, if that is another one.
    pub previous_path: Option<String>,
    /// The generation that a replace makes before the old one is destroyed, which has an entry of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// The commit that was applied to it according to the record. A stack that was removed is destroyed with
    /// the code of this commit.
    pub source_commit: Option<String>,
    /// How it is known that it was removed, if it is on record and not in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removed>,
    /// Whether its tool found drift, if it was only asked to refresh.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_drifted: bool,
    /// Whether resources are destroyed and none of the stack is left, according to its tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_nothing: bool,
}

impl PlanEntry {
    /// Returns whether it destroys what exists: what is made anew first, an entry of its own destroys.
    pub fn destroys(&self) -> bool {
        match self.action {
            Action::Delete => true,
            Action::Replace => self.generation.is_none(),
            _ => false,
        }
    }

    /// Returns whether it is provisional: it was planned before a stack with work that it runs after, and is planned
    /// again once that is applied.
    pub fn is_provisional(&self) -> bool {
        self.action.is_work() && self.blocked.is_none() && !self.after.is_empty()
    }

    /// Returns whether it is decided only during the apply: it has no work of its own yet, and runs after
    /// stacks that have.
    pub fn is_undecided(&self) -> bool {
        !self.action.is_work() && self.blocked.is_none() && !self.after.is_empty()
    }
}

/// What is known of a stack before its tool is asked.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Known<'a> {
    /// How it stands according to the document; none if there is no document.
    pub standing: Option<&'a Standing>,
    pub driver: Driver<'a>,
    /// What `orch` does with it.
    pub mode: StackMode,
    /// Whether `--replace` names it.
    pub is_replaced: bool,
    /// Whether it is made anew before the old one is destroyed, if it is replaced.
    pub is_made_first: bool,
    /// Whether it is on record, was to be replaced, and nothing of it exists.
    pub is_gone: bool,
    /// Why `replace_triggered_by` replaces it, if it does.
    pub trigger: Option<&'a Reason>,
    /// Whether it is not on record, and known to be another stack on record that was moved.
    pub is_moved: bool,
    /// Which outputs differ from those that it was applied with, if any do: in words.
    pub outputs_differ: Option<&'a str>,
    /// What its `ignore_changes` leaves out, if it has one.
    pub ignored: Option<IgnoredInputs<'a>>,
    /// Whether drift was accepted since it was applied, so its tool has to plan.
    pub accepts_drift: bool,
    /// Whether it is planned because it calls a module that was released.
    pub is_released: bool,
}

/// What has to be found out about a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// Nothing: this is to be done.
    Settled(Action, Reason),
    /// Its tool is asked, for this action as far as is known.
    Ask(PlanKind, Asked),
}

/// The action that a driver is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Nothing is on record.
    Create,
    /// Something is on record, or it is not known whether anything is.
    Update,
    /// It is to go.
    Delete,
    /// It is to go, and to be made anew.
    Replace,
    /// It is to be made anew, beside what is there.
    Anew,
    /// It is looked at for drift.
    Refresh,
    /// It is read for others.
    Read,
}

impl Asked {
    /// Returns the word that the driver gets.
    pub fn word(self) -> &'static str {
        match self {
            Asked::Create | Asked::Anew => "create",
            Asked::Update => "update",
            // What is made anew is planned once the old one is gone.
            Asked::Delete | Asked::Replace => "delete",
            Asked::Refresh => "refresh",
            Asked::Read => "read",
        }
    }
}

/// Why an answer cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its driver answers `{answer}` when asked for `{asked}`; {hint}")]
pub struct NotAllowed {
    answer: &'static str,
    asked: &'static str,
    hint: &'static str,
}

/// What is wanted of all stacks.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanOptions {
    pub mode: PlanMode,
    /// Whether tools are asked although what is on record says that nothing has changed.
    pub is_full: bool,
}

impl Known<'_> {
    /// Returns what has to be found out.
    pub fn need(&self, options: PlanOptions) -> Need {
        let asks = |kind: PlanKind| match kind {
            PlanKind::RefreshOnly => {
                let prints = self.mode == StackMode::Read && self.driver.has(DriverStep::Outputs);
                self.driver.has(DriverStep::Read) || prints
            }
            _ => self.driver.has(DriverStep::Plan),
        };
        if options.mode == PlanMode::RefreshOnly || self.mode == StackMode::Read {
            let (action, asked, text) = match self.mode {
                StackMode::Read => (Action::Read, Asked::Read, "it is only read"),
                StackMode::Manage => (Action::NoOp, Asked::Refresh, "--refresh-only"),
            };
            if options.mode != PlanMode::Destroy && asks(PlanKind::RefreshOnly) {
                return Need::Ask(PlanKind::RefreshOnly, asked);
            }
            return Need::Settled(action, Reason::new(ReasonSource::Config, text));
        }
        if options.mode == PlanMode::Destroy {
            if self.driver.is_none() {
                let reason = "the driver `none` destroys nothing";
                return Need::Settled(Action::NoOp, Reason::new(ReasonSource::Driver, reason));
            }
            if asks(PlanKind::Destroy) {
                return Need::Ask(PlanKind::Destroy, Asked::Delete);
            }
            let reason = Reason::new(ReasonSource::Option, "--destroy");
            return Need::Settled(Action::Delete, reason);
        }
        let asked = match self.standing {
            Some(Standing::Pending(Pending::NeverApplied)) if !self.is_moved => Asked::Create,
            _ => Asked::Update,
        };
        if let Some(reason) = self.replaces() {
            if self.is_gone && asks(PlanKind::Normal) {
                return Need::Ask(PlanKind::Normal, Asked::Create);
            }
            let is_there = asked != Asked::Create && !self.is_gone;
            if is_there && self.driver.is_none() && !self.is_replaced {
                // No tool has made anything, so nothing is destroyed: the stack is put on record again.
                return Need::Settled(Action::NoOp, reason);
            }
            if is_there && self.is_made_first && asks(PlanKind::Normal) {
                return Need::Ask(PlanKind::Normal, Asked::Anew);
            }
            if is_there && !self.is_made_first && asks(PlanKind::Destroy) {
                return Need::Ask(PlanKind::Destroy, Asked::Replace);
            }
            if is_there {
                return Need::Settled(Action::Replace, reason);
            }
            if self.is_gone {
                return Need::Settled(Action::Create, reason);
            }
        }
        if self.is_as_applied() && (!options.is_full || self.is_never_updated()) {
            return Need::Settled(Action::NoOp, self.unchanged());
        }
        if asks(PlanKind::Normal) {
            return Need::Ask(PlanKind::Normal, asked);
        }
        let reason = self.because();
        Need::Settled(
            match (asked, self.driver.is_none(), self.standing) {
                _ if self.is_as_applied() => Action::NoOp,
                (Asked::Create, true, Some(_)) => Action::Adopt,
                (_, true, _) => Action::NoOp,
                (Asked::Create, false, _) => Action::Create,
                (_, false, _) => Action::Update,
            },
            reason,
        )
    }

    /// Returns whether it is as it was applied, and so are the outputs that it was applied with.
    fn is_as_applied(&self) -> bool {
        let is_untouched = self.outputs_differ.is_none() && !self.accepts_drift;
        self.standing == Some(&Standing::Applied) && (is_untouched || self.is_never_updated())
    }

    /// Returns whether nothing is done with it as long as it is as it was left.
    fn is_never_updated(&self) -> bool {
        let ignores_all = self.ignored.is_some_and(|ignored| ignored.is_all);
        ignores_all && self.standing == Some(&Standing::Applied)
    }

    /// Returns why nothing is done with it: nothing differs, or only what is ignored.
    fn unchanged(&self) -> Reason {
        let ignored = self.ignored.and_then(|ignored| ignored.reason());
        ignored.unwrap_or_else(|| Reason::new(ReasonSource::State, "unchanged"))
    }

    /// Returns why its tool finds changes. If no input differs from the applied ones, something
    /// else has changed.
    fn because_of_changes(&self) -> Reason {
        if self.standing != Some(&Standing::Applied) || self.outputs_differ.is_some() {
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
        Reason::new(ReasonSource::Driver, text)
    }

    /// Returns why the stack is to be replaced, if it is.
    fn replaces(&self) -> Option<Reason> {
        if self.is_replaced {
            return Some(Reason::new(ReasonSource::Option, "--replace"));
        }
        if let Some(trigger) = self.trigger {
            return Some(trigger.clone());
        }
        let is_tainted = matches!(self.standing, Some(Standing::Failed("tainted")));
        is_tainted.then(|| Reason::new(ReasonSource::State, "tainted"))
    }

    /// Returns whether anything is on record.
    fn is_on_record(&self) -> bool {
        let never = Standing::Pending(Pending::NeverApplied);
        self.is_moved || self.standing.is_some_and(|standing| *standing != never)
    }

    /// Returns why anything might have to be done, according to what is on record.
    fn because(&self) -> Reason {
        use ReasonSource::{Config, State};
        match self.standing {
            None => Reason::new(Config, "the project keeps no state"),
            Some(Standing::Pending(pending)) => match pending {
                Pending::NeverApplied => Reason::new(State, "not recorded"),
                Pending::Unknown(why) => Reason::new(State, why.clone()),
                Pending::Differs(difference) => {
                    let cause = difference.cause.as_ref();
                    let file = cause.map(|cause| cause.file.path.relative());
                    let what =
                        file.or_else(|| difference.parts.first().map(|part| part_label(part)));
                    let what = what.unwrap_or("an input");
                    Reason::new(Config, format!("{what} differs")).said_in(file, None)
                }
                Pending::OtherRules => Reason::new(State, "what counts as an input has changed"),
                Pending::OtherIgnored => {
                    Reason::new(State, "its inputs differ, and `ignore_changes` has changed")
                }
                Pending::Triggered(file) => {
                    let file = file.relative();
                    Reason::new(Config, format!("triggered by {file}")).said_in(Some(file), None)
                }
                Pending::Generation { of, now } => {
                    Reason::new(State, format!("{of} has generation {now} now"))
                }
            },
            Some(Standing::Failed(why)) => Reason::new(State, *why),
            Some(Standing::Running) => Reason::new(State, "a run is working on it"),
            Some(Standing::Applied | Standing::Removed | Standing::Absent) => {
                let differ = self.outputs_differ.map(|text| Reason::new(State, text));
                differ.unwrap_or_else(|| self.unchanged())
            }
        }
    }

    /// Returns what is to be done according to the answer of the driver.
    ///
    /// # Errors
    ///
    /// If the driver answers what it may not.
    pub fn decide(&self, asked: Asked, answer: &Answer) -> Result<(Action, Reason), NotAllowed> {
        allowed(&self.driver, asked, answer)?;
        let because = self.replaces().filter(|_| self.is_gone);
        let because = because.unwrap_or_else(|| self.because());
        let says = |text: &str| {
            let own = answer.reason.clone();
            Reason::new(ReasonSource::Driver, own.unwrap_or_else(|| text.to_owned()))
        };
        let has_changes = answer.changes_something();
        Ok(match asked {
            Asked::Read => (
                Action::Read,
                Reason::new(ReasonSource::Config, "it is only read"),
            ),
            Asked::Refresh if answer.has_drifted() => (Action::NoOp, says("has drifted")),
            Asked::Refresh => (Action::NoOp, says("has not drifted")),
            Asked::Replace => {
                let reason = self.replaces().unwrap_or(because);
                if answer.is_there(self.is_on_record()) {
                    (Action::Replace, reason)
                } else {
                    (Action::Create, reason)
                }
            }
            Asked::Anew => (Action::Replace, self.replaces().unwrap_or(because)),
            Asked::Delete if answer.is_there(self.is_on_record()) => (
                Action::Delete,
                Reason::new(ReasonSource::Option, "--destroy"),
            ),
            Asked::Delete => (Action::NoOp, says("nothing exists")),
            Asked::Create | Asked::Update if answer.action == Some(AnswerAction::Replace) => {
                (Action::Replace, says("the driver asks for it"))
            }
            Asked::Create => match (answer.exists, has_changes) {
                (Some(true), true) => (Action::Update, because),
                (_, true) => (Action::Create, because),
                (Some(false), false) => (Action::Adopt, says("there is nothing to create")),
                (_, false) => (Action::Adopt, says("exists, and is not recorded")),
            },
            Asked::Update if self.standing.is_none() => match (answer.exists, has_changes) {
                (Some(false), true) => (Action::Create, says("nothing exists")),
                (_, true) => (Action::Update, says("has changes")),
                (_, false) => (Action::NoOp, says("has no changes")),
            },
            Asked::Update => match (answer.exists, has_changes) {
                (Some(false), true) => {
                    // What was on its way may be the first that would exist.
                    let was_tried =
                        matches!(self.standing, Some(Standing::Failed(_) | Standing::Running));
                    let reason = if was_tried {
                        let text = format!("{}; nothing exists", because.text);
                        Reason::new(because.source, text)
                    } else {
                        let text = "recorded, and nothing exists any more";
                        Reason::new(ReasonSource::Driver, text)
                    };
                    (Action::Update, reason)
                }
                (_, true) if self.replaces().is_none() => {
                    (Action::Update, self.because_of_changes())
                }
                (_, true) => (Action::Update, because),
                (_, false) if self.is_as_applied() => (Action::NoOp, self.unchanged()),
                (_, false) if matches!(self.standing, Some(Standing::Failed(_))) => {
                    (Action::NoOp, because)
                }
                (_, false) => (Action::NoOp, says("normalised")),
            },
        })
    }
}

/// Checks that a driver only modifies the action that it was asked for.
///
/// # Errors
///
/// If it answers what it may not.
pub fn allowed(driver: &Driver<'_>, asked: Asked, answer: &Answer) -> Result<(), NotAllowed> {
    let Some(action) = answer.action else {
        return Ok(());
    };
    let may_replace = driver.block.is_some_and(|block| block.may_replace);
    let (is_allowed, hint) = match (asked, action) {
        (_, AnswerAction::NoOp)
        | (Asked::Create | Asked::Anew | Asked::Update, AnswerAction::Update) => (true, ""),
        (Asked::Update, AnswerAction::Replace) => {
            (may_replace, "it may do so only with `may_replace = true`")
        }
        _ => (
            false,
            "a driver modifies an action, and does not choose another one",
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

#[cfg(test)]
mod tests;
