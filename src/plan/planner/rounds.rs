//! Asks tools in rounds: tools that wait for others, and tools whose question has changed.

use std::collections::{BTreeMap, BTreeSet};

use super::PlanRequest;
use super::ask::{self, AskedTools, RemovedQuestions};
use super::checks::Conditions;
use super::entries::{self, find_created_first};
use super::subjects::{RecordedState, StacksToPlan};
use crate::context::{Context, Entries};
use crate::error::Result;
use crate::plan::backends::StackBackend;
use crate::plan::entry::{AskedAction, Decision, PlannedAction};
use crate::project::stack::StackIndex;
use crate::selection::reference::{Reference, ReferenceKind};
use crate::selection::select::Query;

pub(super) struct Waiting<'a, 'l> {
    pub(super) request: &'a PlanRequest<'a>,
    pub(super) query: &'a Query,
    pub(super) recorded: Option<&'a RecordedState>,
    pub(super) recorded_entries: &'a Entries<'a>,
    pub(super) checks: &'a mut Conditions<'l>,
}

impl Context {
    /// Asks the tools of stacks with undecided preconditions in rounds, each once the actions of
    /// the stacks are known whose outputs they need.
    pub(super) fn ask_waiting(
        &self,
        waiting: Waiting<'_, '_>,
        subjects: &mut StacksToPlan<'_>,
        mut asked: AskedTools,
    ) -> Result<AskedTools> {
        let Waiting {
            request,
            query,
            recorded,
            recorded_entries,
            checks,
        } = waiting;
        let document = recorded.map(|recorded| &recorded.document);
        while subjects.all.iter().any(|subject| subject.is_waiting) {
            let places = self.places(subjects, recorded_entries, &asked);
            asked = self.ask_again(request, query, subjects, recorded, &places, asked)?;
            let needs = entries::needs(self, subjects, recorded, request.options);
            let blocked = self.find_blocked(subjects, &places).stacks;
            let settled = entries::settle(self, recorded, &needs, &asked.answers, &blocked);
            drop(needs);
            checks.decide_waiting(subjects, &settled)?;
            let needs = entries::needs(self, subjects, recorded, request.options);
            let nothing = RemovedQuestions::default();
            asked = ask::ask(self, request, query, document, &needs, nothing, asked)?;
        }
        Ok(asked)
    }

    /// Asks tools again whose question has changed: to replace, or because nothing is left to
    /// replace.
    pub(super) fn ask_again(
        &self,
        request: &PlanRequest<'_>,
        query: &Query,
        subjects: &mut StacksToPlan<'_>,
        recorded: Option<&RecordedState>,
        places: &BTreeMap<StackIndex, StackBackend>,
        mut asked: AskedTools,
    ) -> Result<AskedTools> {
        let document = recorded.map(|recorded| &recorded.document);
        loop {
            let needs = entries::needs(self, subjects, recorded, request.options);
            let may_change = needs.iter().any(|it| {
                it.subject.next.is_some()
                    || matches!(it.need, Decision::Ask(_, AskedAction::Replace))
            });
            let is_trigger = |it: &Reference| it.kind == ReferenceKind::ReplaceTriggeredBy;
            if !may_change && !self.references.list.iter().any(is_trigger) {
                return Ok(asked);
            }
            let blocked = self.find_blocked(subjects, places).stacks;
            let settled = entries::settle(self, recorded, &needs, &asked.answers, &blocked);
            let replaced = needs.iter().filter(|needed| {
                let is_asked = matches!(needed.need, Decision::Ask(_, AskedAction::Replace));
                is_asked && settled.action(needed.subject.stack) == Some(PlannedAction::Create)
            });
            let gone: BTreeSet<StackIndex> = replaced.map(|it| it.subject.stack).collect();
            drop(needs);
            let mut others = subjects.find_made_by_driver(&settled);
            others.extend(subjects.find_removed(&gone));
            others.extend(self.find_triggered(subjects, &settled, document, request.options.mode));
            if others.is_empty() {
                return Ok(asked);
            }
            for &stack in &others {
                asked.forget(&self.project.stacks[stack].path);
            }
            find_created_first(self, subjects, recorded, request.options);
            let needs = entries::needs(self, subjects, recorded, request.options);
            let nothing = RemovedQuestions::default();
            asked = ask::ask(self, request, query, document, &needs, nothing, asked)?;
        }
    }
}
