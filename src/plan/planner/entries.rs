//! Turns the state and the tools' answers into the entries of a plan.

use std::collections::{BTreeMap, BTreeSet};

use super::{Planning, RecordedState, StackToPlan, StacksToPlan};
use crate::change::StackStatus;
use crate::context::Context;
use crate::driver::{Driver, DriverAnswer, PlanKind};
use crate::path::{Generation, StackPath};
use crate::plan::backends::StackBackend;
use crate::plan::entry::{
    AskedAction, Decision, IgnoredInputs, PlanEntry, PlanMode, PlanReason, PlannedAction,
    ReasonSource, StackFacts,
};
use crate::plan::protection::DestroyedPart;
use crate::plan::{FailedAsk, WorkBefore};
use crate::project::Project;
use crate::project::driver::DriverStep;
use crate::project::lifecycle::IgnoredChanges;
use crate::project::stack::StackIndex;

pub(super) struct OpenQuestion<'s, 'p> {
    pub(super) subject: &'s StackToPlan<'p>,
    pub(super) need: Decision,
}

impl OpenQuestion<'_, '_> {
    pub(super) fn question(&self) -> Option<(PlanKind, AskedAction)> {
        match self.need {
            Decision::Ask(kind, asked) if !self.subject.is_waiting => Some((kind, asked)),
            Decision::Ask(..) | Decision::Final(..) => None,
        }
    }

    /// Returns the generation that its tool is asked about, unless it is the current one.
    pub(super) fn generation(&self) -> Option<Generation> {
        self.subject.made().map(|next| next.generation)
    }
}

impl<'a> Planning<'a> {
    /// Finds the stacks that are created before the old ones are destroyed, as far as known.
    pub(super) fn find_created_first(self, subjects: &mut StacksToPlan<'_>) {
        if subjects.all.iter().all(|subject| subject.next.is_none()) {
            return;
        }
        let needs = self.needs(subjects).into_iter();
        let is_made: Vec<bool> = needs
            .map(|needed| {
                matches!(
                    needed.need,
                    Decision::Ask(_, AskedAction::CreateFirst)
                        | Decision::Final(PlannedAction::Replace, _)
                )
            })
            .collect();
        for (subject, is_made) in subjects.all.iter_mut().zip(is_made) {
            if let Some(next) = &mut subject.next {
                next.is_made = is_made;
            }
        }
    }

    fn known<'s>(self, subject: &'s StackToPlan<'s>) -> StackFacts<'s>
    where
        'a: 's,
    {
        let (context, recorded) = (self.context, self.recorded);
        StackFacts {
            status: recorded.and_then(|recorded| recorded.statuses.stacks.get(&subject.stack)),
            driver: subject.driver,
            mode: context.project.stacks[subject.stack].mode,
            is_replaced: subject.is_replaced,
            is_created_first: subject.next.is_some(),
            is_missing: subject.is_missing,
            trigger: subject.trigger.as_ref(),
            outputs_differ: subject.outputs_differ.as_deref(),
            ignored: recorded.and_then(|recorded| ignored(context, subject, recorded)),
            accepts_drift: subject.accepts_drift,
            lacks_outputs: subject.lacks_outputs,
            is_released: subject.is_released,
        }
    }

    pub(super) fn needs<'s, 'p>(self, subjects: &'s StacksToPlan<'p>) -> Vec<OpenQuestion<'s, 'p>> {
        let all = subjects.all.iter();
        let need = |subject: &'s StackToPlan<'p>| OpenQuestion {
            subject,
            need: match &subject.blocked {
                // Nothing is done with a blocked stack, so its tool is not asked.
                Some(why) => Decision::Final(
                    PlannedAction::NoOp,
                    PlanReason::new(ReasonSource::State, why),
                ),
                None => self.known(subject).need(self.request.options),
            },
        };
        all.map(need).collect()
    }

    /// Decides the actions from the tools' answers so far.
    pub(super) fn decisions(
        self,
        needs: &[OpenQuestion<'_, '_>],
        subjects: &StacksToPlan<'_>,
        places: &BTreeMap<StackIndex, StackBackend>,
        answers: &BTreeMap<StackPath, Result<DriverAnswer, String>>,
    ) -> Decisions {
        let blocked = self
            .context
            .find_blocked(subjects, self.document(), places)
            .stacks;
        self.settle(needs, answers, &blocked)
    }

    /// Decides the actions from the tools' answers and the blocked stacks.
    pub(super) fn settle(
        self,
        needs: &[OpenQuestion<'_, '_>],
        answers: &BTreeMap<StackPath, Result<DriverAnswer, String>>,
        blocked: &BTreeMap<StackIndex, String>,
    ) -> Decisions {
        let context = self.context;
        let settled = needs.iter().map(|needed| {
            let stack = needed.subject.stack;
            let settled = |action: PlannedAction, reason: PlanReason| DecidedAction {
                action,
                reason,
                answer: DriverAnswer {
                    is_complete: true,
                    ..DriverAnswer::default()
                },
                has_drifted: false,
            };
            if let Some(why) = blocked.get(&stack) {
                let reason = PlanReason::new(ReasonSource::State, why);
                return (stack, Ok(settled(PlannedAction::NoOp, reason)));
            }
            let decided = match &needed.need {
                Decision::Final(action, reason) => {
                    let reason = placed(context, needed.subject, *action, reason.clone());
                    Ok(settled(*action, reason))
                }
                Decision::Ask(_, asked) => match answers.get(&context.project.stacks[stack].path) {
                    Some(Ok(answer)) => self
                        .known(needed.subject)
                        .decide(*asked, answer)
                        .map(|(action, reason)| DecidedAction {
                            action,
                            reason: placed(context, needed.subject, action, reason),
                            answer: answer.clone(),
                            has_drifted: matches!(asked, AskedAction::Refresh | AskedAction::Read)
                                && answer.has_drifted(),
                        })
                        .map_err(|problem| problem.to_string()),
                    Some(Err(why)) => Err(why.clone()),
                    None => Err("its tool was not asked".to_owned()),
                },
            };
            let decided = decided.map(|it| it.reverts(needed.subject));
            (stack, decided)
        });
        Decisions(settled.collect())
    }
}

/// The action for each stack, decided before the order is known.
pub(super) struct Decisions(Vec<(StackIndex, Result<DecidedAction, String>)>);

struct DecidedAction {
    action: PlannedAction,
    reason: PlanReason,
    answer: DriverAnswer,
    has_drifted: bool,
}

impl DecidedAction {
    /// Adds the commit that an allowed rollback reverts.
    fn reverts(mut self, subject: &StackToPlan<'_>) -> Self {
        if let Some(effect) = subject.reverts.as_ref().filter(|_| self.action.is_work()) {
            self.reason.text = format!("{effect}: {}", self.reason.text);
        }
        self
    }
}

/// Adds the position of the block behind the reason: the driver's, or that of a read-only stack.
fn placed(
    context: &Context,
    subject: &StackToPlan<'_>,
    action: PlannedAction,
    reason: PlanReason,
) -> PlanReason {
    let span = match reason.source {
        ReasonSource::Driver => subject.driver.block.map(|block| block.name.span),
        ReasonSource::Config if action == PlannedAction::Read => {
            Some(context.project.stacks[subject.stack].span)
        }
        _ => None,
    };
    let Some(span) = span else { return reason };
    let (file, line) = context.project.sources.file_and_line(span);
    reason.at(Some(file), Some(line))
}

/// Returns the stacks whose new generation is created before the old one is destroyed.
fn created_first(subjects: &StacksToPlan<'_>) -> BTreeSet<StackIndex> {
    let made = subjects.all.iter().filter(|it| it.made().is_some());
    made.map(|it| it.stack).collect()
}

impl Decisions {
    pub(super) fn actions(&self) -> impl Iterator<Item = (StackIndex, PlannedAction)> {
        let settled = self.0.iter();
        settled.filter_map(|(stack, decided)| Some((*stack, decided.as_ref().ok()?.action)))
    }

    /// Returns the action on each stack itself: if it is created first, another entry destroys.
    pub(super) fn steps(
        &self,
        subjects: &StacksToPlan<'_>,
    ) -> impl Iterator<Item = (StackIndex, PlannedAction)> {
        let made = created_first(subjects);
        self.actions().map(move |(stack, action)| match action {
            PlannedAction::Replace if made.contains(&stack) => (stack, PlannedAction::Create),
            action => (stack, action),
        })
    }

    fn position(&self, stack: StackIndex) -> Option<usize> {
        self.0
            .binary_search_by_key(&stack, |(stack, _)| *stack)
            .ok()
    }

    pub(super) fn reason(&self, stack: StackIndex) -> Option<&PlanReason> {
        let (_, decided) = &self.0[self.position(stack)?];
        Some(&decided.as_ref().ok()?.reason)
    }

    pub(super) fn action(&self, stack: StackIndex) -> Option<PlannedAction> {
        let (_, decided) = &self.0[self.position(stack)?];
        Some(decided.as_ref().ok()?.action)
    }

    /// Returns the stacks whose actions are unknown because their tools failed.
    pub(super) fn unknown(&self) -> impl Iterator<Item = StackIndex> {
        let unknown = self.0.iter().filter(|(_, decided)| decided.is_err());
        unknown.map(|(stack, _)| *stack)
    }

    /// Returns the updated stacks whose drivers do not report how many resources change.
    pub(super) fn unreported(&self) -> impl Iterator<Item = StackIndex> {
        let unreported = self.0.iter().filter(|(_, decided)| {
            let decided = decided.as_ref();
            decided.is_ok_and(|it| it.action == PlannedAction::Update && it.answer.counts.is_none())
        });
        unreported.map(|(stack, _)| *stack)
    }

    pub(super) fn going(&self) -> impl Iterator<Item = StackIndex> {
        let going = self
            .actions()
            .filter(|(_, it)| matches!(it, PlannedAction::Delete | PlannedAction::Replace));
        going.map(|(stack, _)| stack)
    }

    pub(super) fn destroyed(
        &self,
        subjects: &StacksToPlan<'_>,
    ) -> impl Iterator<Item = (StackIndex, &PlanReason, DestroyedPart<'_>)> {
        let made = created_first(subjects);
        self.0.iter().filter_map(move |(stack, decided)| {
            let decided = decided.as_ref().ok()?;
            let is_created_first = made.contains(stack);
            let destroyed =
                DestroyedPart::of_answer(decided.action, &decided.answer, is_created_first)?;
            Some((*stack, &decided.reason, destroyed))
        })
    }

    /// Returns whether the inputs of a stack without changes differ from the recorded ones.
    pub(super) fn differs(&self, stack: StackIndex) -> bool {
        let decided = self.position(stack).map(|position| &self.0[position].1);
        let decided = decided.and_then(|decided| decided.as_ref().ok());
        decided.is_some_and(|decided| {
            decided.action == PlannedAction::NoOp && decided.reason.source == ReasonSource::Config
        })
    }

    /// Returns whether a stack's action is unknown because its tool failed.
    pub(super) fn is_unknown(&self, stack: StackIndex) -> bool {
        let position = self.position(stack);
        position.is_some_and(|position| self.0[position].1.is_err())
    }

    pub(super) fn block(&mut self, stack: StackIndex, why: &str) {
        let Some(position) = self.position(stack) else {
            return;
        };
        let decided = &mut self.0[position].1;
        let answer = decided.as_ref().map(|decided| decided.answer.clone());
        *decided = Ok(DecidedAction {
            action: PlannedAction::NoOp,
            reason: PlanReason::new(ReasonSource::Config, why),
            answer: answer.unwrap_or_default(),
            has_drifted: false,
        });
    }

    /// Blocks destroys by drivers without a destroy command. Returns the stacks with the reasons.
    pub(super) fn block_without_destroy(
        &mut self,
        subjects: &StacksToPlan<'_>,
    ) -> BTreeMap<StackIndex, String> {
        let drivers: BTreeMap<StackIndex, &Driver<'_>> = subjects
            .all
            .iter()
            .map(|subject| (subject.stack, &subject.driver))
            .collect();
        let mut blocked = BTreeMap::new();
        for (stack, decided) in &mut self.0 {
            let (Ok(decided), Some(driver)) = (decided, drivers.get(stack)) else {
                continue;
            };
            let destroys = matches!(
                decided.action,
                PlannedAction::Delete | PlannedAction::Replace
            );
            if destroys && !driver.has(DriverStep::Destroy) {
                let why = format!("its driver `{}` has no `destroy`", driver.name);
                decided.action = PlannedAction::NoOp;
                decided.reason = PlanReason::new(ReasonSource::Driver, &why);
                blocked.insert(*stack, why);
            }
        }
        blocked
    }

    pub(super) fn working(&self) -> BTreeSet<StackIndex> {
        let settled = self.0.iter();
        let is_working = |decided: &Result<DecidedAction, String>| {
            decided
                .as_ref()
                .is_ok_and(|decided| decided.action.is_work())
        };
        settled
            .filter(|(_, decided)| is_working(decided))
            .map(|(stack, _)| *stack)
            .collect()
    }

    /// Returns the entries and the failed stacks, given the stacks with work that each runs after.
    /// A failed tool may succeed after these are applied, unless its configuration is `invalid`.
    pub(super) fn entries(
        self,
        project: &Project,
        mut after: BTreeMap<StackIndex, WorkBefore>,
        invalid: &BTreeSet<StackIndex>,
    ) -> (Vec<PlanEntry>, Vec<FailedAsk>) {
        let mut entries = Vec::with_capacity(self.0.len());
        let mut failed = Vec::new();
        let path = |stack: &StackIndex| project.stacks[*stack].path.clone();
        for (stack, decided) in self.0 {
            let after = after.remove(&stack).unwrap_or_default();
            match decided {
                Ok(DecidedAction {
                    action,
                    reason,
                    answer,
                    has_drifted,
                }) => entries.push(PlanEntry {
                    counts: answer.counts,
                    resources: answer.resources,
                    changed_outputs: answer.changed_outputs,
                    is_complete: answer.is_complete,
                    after,
                    has_drifted,
                    leaves_nothing: answer.leaves_nothing,
                    ..PlanEntry::new(path(&stack), action, reason)
                }),
                Err(why) if !after.is_empty() && !invalid.contains(&stack) => {
                    let reason = PlanReason::new(ReasonSource::Driver, why);
                    entries.push(PlanEntry {
                        is_complete: false,
                        is_planned: false,
                        after,
                        ..PlanEntry::new(path(&stack), PlannedAction::NoOp, reason)
                    });
                }
                Err(why) => failed.push(FailedAsk {
                    stack: path(&stack),
                    why,
                    conditions: Vec::new(),
                }),
            }
        }
        (entries, failed)
    }
}

/// Adds to entries why their stacks are blocked, and their recorded facts.
pub(super) fn add_known(
    subjects: &StacksToPlan<'_>,
    blocked: &BTreeMap<StackIndex, String>,
    project: &Project,
    plan_mode: PlanMode,
    entries: &mut [PlanEntry],
) {
    let by_path: BTreeMap<_, _> = subjects
        .all
        .iter()
        .map(|subject| (&project.stacks[subject.stack].path, subject))
        .collect();
    for entry in entries {
        let Some(subject) = by_path.get(&entry.stack) else {
            continue;
        };
        let why = subject.blocked.as_ref();
        entry.replaced_if.clone_from(&subject.open_triggers);
        entry.blocked = why.or_else(|| blocked.get(&subject.stack)).cloned();
        entry.previous_path.clone_from(&subject.previous_path);
        let is_idle = entry.action == PlannedAction::NoOp && !entry.is_undecided();
        if plan_mode == PlanMode::Normal && entry.previous_path.is_some() && is_idle {
            entry.reason = PlanReason::new(ReasonSource::State, "only its record is moved");
        }
        entry.source_commit.clone_from(&subject.source_commit);
        let made = subject.made();
        entry.generation = made
            .map(|next| next.generation)
            .filter(|_| entry.action == PlannedAction::Replace && entry.blocked.is_none());
    }
}

pub(super) fn ignored<'a>(
    context: &'a Context,
    subject: &'a StackToPlan<'_>,
    recorded: &'a RecordedState,
) -> Option<IgnoredInputs<'a>> {
    let stack = subject.stack;
    let rule = context.project.rules_of(stack).ignore_changes?;
    let (file, line) = context.project.sources.file_and_line(rule.span);
    let names = recorded.statuses.ignored.get(&stack);
    Some(IgnoredInputs {
        names: names.map_or(&[], Vec::as_slice),
        inputs: &subject.ignored_inputs,
        is_all: rule.value == IgnoredChanges::All,
        file,
        line,
    })
}

/// Returns the stacks that may change. Excludes those that ignore all changes and exist unchanged.
pub(super) fn may_change(
    planning: Planning<'_>,
    subjects: &StacksToPlan<'_>,
    working: &BTreeSet<StackIndex>,
) -> Vec<StackIndex> {
    let stacks = subjects.all.iter().map(|subject| subject.stack);
    stacks
        .filter(|stack| working.contains(stack) || !ignores_changes(planning, *stack))
        .collect()
}

/// Returns whether a stack exists unchanged and ignores all changes.
pub(super) fn ignores_changes(planning: Planning<'_>, stack: StackIndex) -> bool {
    let recorded = planning.recorded;
    let status = recorded.and_then(|recorded| recorded.statuses.stacks.get(&stack));
    let rule = planning.context.project.rules_of(stack).ignore_changes;
    status == Some(&StackStatus::Applied)
        && rule.is_some_and(|rule| rule.value == IgnoredChanges::All)
}

pub(super) fn note_without_state(planning: Planning<'_>, subjects: &StacksToPlan<'_>) {
    if planning.recorded.is_some() {
        return;
    }
    let context = planning.context;
    let mut rules = subjects
        .all
        .iter()
        .filter_map(|subject| context.project.rules_of(subject.stack).ignore_changes);
    if let Some(first) = rules.next() {
        let place = context.project.sources.line(first.span);
        context.notices.note(&format!(
            "`ignore_changes` has no effect without a state ({place}); see `orch help state`"
        ));
    }
}
