//! Asks tools in rounds: tools that wait for others, and tools whose question has changed.

use std::collections::{BTreeMap, BTreeSet};

use super::Planning;
use super::ask::AskedTools;
use super::checks::Conditions;
use super::subjects::StacksToPlan;
use crate::context::Entries;
use crate::error::Result;
use crate::plan::backends::StackBackend;
use crate::plan::entry::{AskedAction, Decision, PlannedAction};
use crate::project::stack::StackIndex;
use crate::selection::reference::{Reference, ReferenceKind};

impl Planning<'_> {
    /// Asks the tools of stacks with undecided preconditions in rounds, each once the actions of
    /// the stacks are known whose outputs they need.
    pub(super) fn ask_waiting(
        self,
        subjects: &mut StacksToPlan<'_>,
        entries: &Entries<'_>,
        checks: &mut Conditions<'_>,
        mut asked: AskedTools,
    ) -> Result<AskedTools> {
        while subjects.all.iter().any(|subject| subject.is_waiting) {
            let places = self.context.places(subjects, entries, &asked);
            asked = self.ask_again(subjects, &places, asked)?;
            let settled = self.decisions(&self.needs(subjects), subjects, &places, &asked.answers);
            checks.decide_waiting(subjects, &settled)?;
            asked = self.ask(&self.needs(subjects), asked)?;
        }
        Ok(asked)
    }

    /// Asks tools again whose question has changed: to replace, or because nothing is left to
    /// replace.
    pub(super) fn ask_again(
        self,
        subjects: &mut StacksToPlan<'_>,
        places: &BTreeMap<StackIndex, StackBackend>,
        mut asked: AskedTools,
    ) -> Result<AskedTools> {
        let Planning {
            context, request, ..
        } = self;
        loop {
            let needs = self.needs(subjects);
            let may_change = needs.iter().any(|it| {
                it.subject.next.is_some()
                    || matches!(it.need, Decision::Ask(_, AskedAction::Replace))
            });
            let is_trigger = |it: &Reference| it.kind == ReferenceKind::ReplaceTriggeredBy;
            if !may_change && !context.references.list.iter().any(is_trigger) {
                return Ok(asked);
            }
            let settled = self.decisions(&needs, subjects, places, &asked.answers);
            let replaced = needs.iter().filter(|needed| {
                let is_asked = matches!(needed.need, Decision::Ask(_, AskedAction::Replace));
                is_asked && settled.action(needed.subject.stack) == Some(PlannedAction::Create)
            });
            let gone: BTreeSet<StackIndex> = replaced.map(|it| it.subject.stack).collect();
            drop(needs);
            let mut others = subjects.find_made_by_driver(&settled);
            others.extend(subjects.find_removed(&gone));
            let (document, mode) = (self.document(), request.options.mode);
            others.extend(context.find_triggered(subjects, &settled, document, mode));
            if others.is_empty() {
                return Ok(asked);
            }
            for &stack in &others {
                asked.forget(&context.project.stacks[stack].path);
            }
            self.find_created_first(subjects);
            asked = self.ask(&self.needs(subjects), asked)?;
        }
    }
}
