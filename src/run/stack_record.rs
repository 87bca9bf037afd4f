//! The record of one stack in a run: its intent, and its result.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Map;

use super::event::Failure;
use super::tool::{AppliedPlan, ToolPlace};
use crate::context::used_outputs::UsedDigests;
use crate::path::Generation;
use crate::state::clock::{Clock as _, SystemClock};
use crate::state::document::{
    Applied, Attempt, AttemptOutcome as RecordedOutcome, CHECKS_FAILED, CONDITION,
    DeposedGeneration, Entry, Inputs, Intent, OTHER_BACKEND, REFUSED, Refreshed, RunAction,
    UNMERGED, unknown_outputs,
};
use crate::state::writer::Change;

/// The record of a stack whose command is recorded.
#[derive(Debug, Clone)]
pub struct NewEntry {
    /// The key in the document: the path of the stack.
    pub key: String,
    pub action: RunAction,
    pub command: String,
    /// The position of that command among those of the turn.
    pub command_position: usize,
    pub commit: Option<String>,
    /// The commit to record as the newest with these inputs, if it is published.
    pub seen: Option<String>,
    /// Whether an input is uncommitted.
    pub is_dirty: bool,
    pub inputs: Inputs,
    pub triggers: Vec<String>,
    /// The generations of other stacks that its environment uses, by key.
    pub generations: BTreeMap<String, Generation>,
    pub declared: Entry,
    pub earlier: Option<Entry>,
    /// The plan that is applied, if any.
    pub plan: Option<String>,
    /// The run of the work order, if a job of one runs the command.
    pub order: Option<String>,
    /// Whether the command recreates the stack, after it was destroyed.
    pub is_made_anew: bool,
    /// The new generation that the command creates beside the current one, if it creates one.
    pub made: Option<NewGeneration>,
    /// The old generation that the command destroys, if any.
    pub destroyed: Option<Generation>,
    /// Why the command may do only a part of its work, or nothing: see [`Attempt::failure`].
    pub unknown: Option<String>,
    /// The plan file of the tool that the command applies, if it applies one.
    pub plan_file: Option<Box<AppliedPlan>>,
    /// The backends that the command configures for its tool, to compare with the recorded backend.
    pub places: Vec<ToolPlace>,
}

/// A generation that is created beside the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGeneration {
    pub generation: Generation,
    /// Its backend, if known.
    pub backend: Option<String>,
    pub driver: String,
}

/// The findings of a turn, which are recorded with its result.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    pub driver: Option<String>,
    pub backend: Option<String>,
    /// The mode of the stack, if it is not managed.
    pub mode: Option<String>,
    /// The digests of the outputs, if they are known.
    pub outputs: Option<BTreeMap<String, String>>,
    pub used: Option<UsedDigests>,
    pub is_complete: bool,
    pub effect: Effect,
    /// Whether it was applied, but a postcondition failed.
    pub has_failed_checks: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Effect {
    #[default]
    Nothing,
    Created,
    Updated,
}

impl NewEntry {
    /// Asks the tool for the effect of the applied plan file, if there is one. Fails if its effect
    /// has changed since the run was prepared.
    pub(super) fn ask_tool(&mut self) -> Result<(), String> {
        let Some(plan) = self.plan_file.take() else {
            return Ok(());
        };
        let answer = plan.confirmed()?;
        match answer.destroys {
            Some(true) => self.action = RunAction::Destroy,
            Some(false) => self.action = RunAction::Apply,
            None => {}
        }
        let unknown = answer.unknown.map(str::to_owned);
        self.unknown = self.unknown.take().or(unknown);
        Ok(())
    }

    /// Returns why the command may have done only a part of its work, or nothing.
    fn unknown(&self) -> Option<String> {
        let recorded = self.earlier.as_ref().and_then(|it| it.backend.as_ref());
        let is_elsewhere = || {
            let is_other = |place: &ToolPlace| place.backend().as_ref() != recorded;
            recorded.is_some() && self.places.iter().any(is_other)
        };
        let elsewhere = || is_elsewhere().then(|| OTHER_BACKEND.to_owned());
        self.unknown.clone().or_else(elsewhere)
    }

    pub(super) fn intent(&self, run: &str) -> Change {
        match self.destroyed {
            Some(_) => Change::Destroying,
            None => Change::Put(Box::new(self.intended(run))),
        }
    }

    fn intended(&self, run: &str) -> Entry {
        let mut entry = match &self.earlier {
            Some(earlier) => earlier.clone(),
            None => self.declared.clone(),
        };
        self.depose_unfinished(&mut entry);
        // If this never ends, they are unknown.
        if self.made.is_none() {
            entry.outputs = self.unknown_outputs(run);
        }
        self.note_attempt(&mut entry);
        // Even if this never ends, the stack has been replaced.
        if self.is_made_anew {
            entry.changed = Some(UNMERGED);
        }
        entry.intent = Some(Intent {
            action: self.action.clone(),
            run: run.to_owned(),
            since: SystemClock::default().now(),
            plan: self.plan.clone(),
            order: self.order.clone(),
            other: Map::new(),
        });
        entry
    }

    /// Returns the change to the entry of a stack that needed no work.
    pub fn unchanged(&self, run: &str, findings: Findings) -> Change {
        self.ended(run, None, Some(findings))
    }

    /// Returns the change to the entry after the last attempt.
    pub(super) fn ended(
        &self,
        run: &str,
        failure: Option<&Failure>,
        findings: Option<Findings>,
    ) -> Change {
        if self.action == RunAction::Refresh {
            return self.refreshed(run, failure.is_some(), findings);
        }
        let outcome = failure;
        let has_failed_checks = findings.as_ref().is_some_and(|it| it.has_failed_checks);
        // The work was done.
        let failure = failure.filter(|_| !has_failed_checks);
        let is_complete = findings
            .as_ref()
            .is_none_or(|findings| findings.is_complete);
        let is_done = failure.is_none() && is_complete;
        let destroys_part =
            self.action == RunAction::Destroy && self.destroyed.is_none() && !is_complete;
        let unknown = self.unknown().filter(|_| failure.is_none());
        if unknown.is_some() || failure.is_none() && destroys_part {
            let mut entry = self.earlier.as_ref().unwrap_or(&self.declared).clone();
            self.note_attempt(&mut entry);
            entry.outputs = self.unknown_outputs(run);
            return self.attempted(run, entry, RecordedOutcome::Unknown, unknown);
        }
        match self.destroyed {
            Some(generation) if is_done => return Change::DestroyedGeneration(generation),
            Some(_) => return Change::Destroying,
            None if is_done && self.action == RunAction::Destroy => return Change::Destroyed,
            None => {}
        }
        let at = SystemClock::default().now();
        let earlier = self.earlier.as_ref();
        let mut entry = if is_done {
            let used = findings.as_ref().and_then(|it| it.used.clone());
            Entry {
                changed: earlier.and_then(Entry::may_have_changed),
                modified: earlier.and_then(|it| it.modified),
                made: earlier.and_then(|it| it.made),
                other: earlier.map(|it| it.other.clone()).unwrap_or_default(),
                applied: Some(self.applied(run, at, used)),
                driver: earlier.and_then(|it| it.driver.clone()),
                backend: earlier.and_then(|it| it.backend.clone()),
                mode: earlier.and_then(|it| it.mode.clone()),
                generation: earlier.map(|it| it.generation).unwrap_or_default(),
                deposed: earlier.map(|it| it.deposed.clone()).unwrap_or_default(),
                ..self.declared.clone()
            }
        } else {
            earlier.unwrap_or(&self.declared).clone()
        };
        match (&self.made, earlier) {
            (Some(made), Some(earlier)) if failure.is_none() => {
                entry.generation = made.generation;
                entry.made = Some(UNMERGED);
                entry.forget_generation(made.generation);
                entry.depose(earlier.as_deposed());
            }
            _ => self.depose_unfinished(&mut entry),
        }
        if failure.is_none() {
            entry.lifecycle = self.declared.lifecycle.clone();
        }
        let effect = findings.as_ref().map(|findings| findings.effect);
        let has_changed = match effect {
            Some(effect) => effect == Effect::Updated,
            // The effect of the command is unknown; it applied these inputs.
            None => self.updates(),
        };
        let has_changed = has_changed || self.made.is_some();
        if failure.is_none() && has_changed || self.is_made_anew {
            entry.changed = Some(UNMERGED);
        }
        if failure.is_none() && effect.is_some_and(|effect| effect != Effect::Nothing) {
            entry.modified = Some(UNMERGED);
        }
        if failure.is_some_and(Failure::may_have_effect) {
            self.note_attempt(&mut entry);
        }
        // The result of an unfinished generation does not describe the current one.
        let is_about_current = self.made.is_none() || failure.is_none();
        if is_about_current {
            let is_known = failure.is_none() && findings.is_some();
            entry.outputs = self.unknown_outputs(run).filter(|_| !is_known);
        }
        if let Some(findings) = findings.filter(|_| is_about_current) {
            entry.driver = findings.driver;
            entry.backend = findings.backend.or(entry.backend);
            entry.mode = findings.mode;
            entry.outputs = findings.outputs.or(entry.outputs);
        }
        if let Some(applied) = entry.applied.as_mut().filter(|it| it.serial == UNMERGED) {
            applied.checks = has_failed_checks.then(|| CHECKS_FAILED.to_owned());
        }
        let (outcome, failure) = match outcome {
            None if is_complete => (RecordedOutcome::Succeeded, None),
            None => (RecordedOutcome::Unknown, None),
            Some(failure) => (RecordedOutcome::Failed, Some(kind(failure).to_owned())),
        };
        self.attempted(run, entry, outcome, failure)
    }

    /// Returns the change to the entry of an applied stack whose turn failed before it could be updated: only the
    /// attempt is recorded.
    pub(super) fn refused(&self, run: &str, failure: &Failure) -> Option<Change> {
        let earlier = self.earlier.as_ref().filter(|it| it.applied.is_some())?;
        let is_update = self.action == RunAction::Apply && self.made.is_none();
        // Each plan checks conditions.
        let is_recorded = failure.may_have_effect() || matches!(failure, Failure::Refused(_));
        if !is_update || !is_recorded {
            return None;
        }
        let failure = Some(kind(failure).to_owned());
        Some(self.attempted(run, earlier.clone(), RecordedOutcome::Failed, failure))
    }

    /// Returns the mark of unknown outputs; `None` if those of the stack are never recorded.
    fn unknown_outputs(&self, run: &str) -> Option<BTreeMap<String, String>> {
        let earlier = self.earlier.as_ref().and_then(|it| it.outputs.as_ref());
        let is_recorded = self.plan.is_some() || earlier.is_some();
        is_recorded.then(|| unknown_outputs(run))
    }

    /// Notes that the command may have updated the stack.
    fn note_attempt(&self, entry: &mut Entry) {
        let updates = self.action == RunAction::Apply && self.made.is_none();
        if updates && entry.applied.is_some() {
            entry.attempted = Some(UNMERGED);
        }
    }

    fn attempted(
        &self,
        run: &str,
        mut entry: Entry,
        outcome: RecordedOutcome,
        failure: Option<String>,
    ) -> Change {
        entry.intent = None;
        entry.last = Some(Attempt {
            serial: UNMERGED,
            action: self.action.clone(),
            outcome,
            failure,
            run: Some(run.to_owned()),
            at: SystemClock::default().now(),
            commit: self.commit.clone(),
            plan: self.plan.clone(),
            order: self.order.clone(),
            other: Map::new(),
        });
        Change::Put(Box::new(entry))
    }

    /// Returns the entry after drift was accepted, or the attempt failed. No configuration was applied.
    fn refreshed(&self, run: &str, has_failed: bool, findings: Option<Findings>) -> Change {
        let mut entry = self.earlier.as_ref().unwrap_or(&self.declared).clone();
        entry.intent = None;
        let outputs = findings.and_then(|it| it.outputs);
        entry.outputs = if has_failed {
            self.unknown_outputs(run)
        } else {
            outputs
        };
        if !has_failed {
            entry.refreshed = Some(Refreshed {
                serial: UNMERGED,
                run: run.to_owned(),
                at: SystemClock::default().now(),
                plan: self.plan.clone(),
                other: Map::new(),
            });
        }
        Change::Put(Box::new(entry))
    }

    /// Records the new generation: until it is finished, the previous one is current.
    fn depose_unfinished(&self, entry: &mut Entry) {
        if let Some(made) = &self.made {
            entry.depose(DeposedGeneration {
                generation: made.generation,
                commit: self.commit.clone(),
                seen: self.seen.clone(),
                backend: made.backend.clone(),
                driver: Some(made.driver.clone()),
                inputs: Some(self.inputs.clone()),
                generations: self.generations.clone(),
                released: false,
                other: Map::new(),
            });
        }
    }

    /// Returns whether a command applies other inputs than the recorded ones.
    fn updates(&self) -> bool {
        let applied = self.earlier.as_ref().and_then(|it| it.applied.as_ref());
        applied.is_some_and(|applied| applied.inputs.as_ref() != Some(&self.inputs))
    }

    fn applied(&self, run: &str, at: Timestamp, used: Option<UsedDigests>) -> Applied {
        let (inputs_used, upstream) = match used {
            Some(UsedDigests { inputs, upstream }) => (inputs, Some(upstream)),
            None => (BTreeMap::new(), None),
        };
        let earlier = self
            .earlier
            .as_ref()
            .and_then(|entry| entry.applied.as_ref());
        // Equal inputs were seen at the same commits.
        let same = earlier.filter(|applied| applied.inputs.as_ref() == Some(&self.inputs));
        let seen_before = || same.and_then(|applied| applied.seen.clone());
        Applied {
            serial: UNMERGED,
            run: Some(run.to_owned()),
            at,
            command: Some(self.command.clone()),
            commit: self.commit.clone(),
            dirty: self.is_dirty,
            seen: self.seen.clone().or_else(seen_before),
            inputs: Some(self.inputs.clone()),
            triggers: self.triggers.clone(),
            upstream,
            inputs_used,
            triggered_by: earlier
                .map(|it| it.triggered_by.clone())
                .unwrap_or_default(),
            generations: self.generations.clone(),
            plan: self.plan.clone(),
            checks: None,
            other: Map::new(),
        }
    }
}

/// Returns the word for the failure of a command, never its output.
fn kind(failure: &Failure) -> &'static str {
    match failure {
        Failure::Exited(_) => "exited",
        Failure::Signalled(_) | Failure::Interrupted(_) => "signalled",
        Failure::TimedOut(_) => "timed-out",
        Failure::RunTimedOut(_) => "run-timed-out",
        Failure::WantedTerminal => "wanted-terminal",
        Failure::NotStarted(_) => "not-started",
        Failure::Refused(_) => REFUSED,
        Failure::Condition(_) => CONDITION,
        Failure::Lost(_) => "lost",
    }
}
