//! Which lifecycle rules are in force for a stack, and where each is written.
//!
//! This module does not know what is on record, and enforces nothing.

use super::lifecycle::{Condition, IgnoredChanges, ReplaceTrigger};
use super::load::Project;
use super::stack::{StackIndex, StackMode};
use crate::source::Spanned;

/// The rules in force for a stack.
#[derive(Debug, Clone, Default)]
pub struct Rules<'p> {
    /// `prevent_destroy`, if it is stated anywhere.
    pub prevent_destroy: Option<&'p Spanned<bool>>,
    /// `create_before_destroy`, if it is stated anywhere.
    pub create_before_destroy: Option<&'p Spanned<bool>>,
    /// `ignore_changes`, if it is stated anywhere.
    pub ignore_changes: Option<&'p Spanned<IgnoredChanges>>,
    /// `replace_triggered_by`.
    pub replace_triggered_by: &'p [Spanned<ReplaceTrigger>],
    /// The conditions, those of the outermost directory first.
    pub conditions: Vec<&'p Condition>,
}

impl Rules<'_> {
    /// Returns whether no rule is in force.
    pub fn is_empty(&self) -> bool {
        self.prevent_destroy.is_none()
            && self.create_before_destroy.is_none()
            && self.ignore_changes.is_none()
            && self.replace_triggered_by.is_empty()
            && self.conditions.is_empty()
    }
}

impl Project {
    /// Returns the rules in force for a stack: of each rule the stack's own value, else that of the nearest
    /// directory; and the conditions of all of them. A stack that is only read inherits conditions alone.
    pub fn rules_of(&self, stack: StackIndex) -> Rules<'_> {
        let stack = &self.stacks[stack];
        let own = stack.lifecycle.as_deref();
        let scopes = self.scopes_of(stack.path.directory());
        let inherited = scopes.map(|scope| &scope.lifecycle);
        let mut rules = Rules {
            replace_triggered_by: own.map_or(&[], |own| &own.replace_triggered_by),
            ..Rules::default()
        };
        for lifecycle in own.into_iter().chain(inherited) {
            let conditions = lifecycle.conditions.iter().rev();
            rules.conditions.extend(conditions.map(|it| &**it));
            if stack.mode == StackMode::Read {
                continue;
            }
            let Rules {
                prevent_destroy,
                create_before_destroy,
                ignore_changes,
                ..
            } = &mut rules;
            *prevent_destroy = prevent_destroy.or(lifecycle.prevent_destroy.as_ref());
            *create_before_destroy =
                create_before_destroy.or(lifecycle.create_before_destroy.as_ref());
            *ignore_changes = ignore_changes.or(lifecycle.ignore_changes.as_ref());
        }
        rules.conditions.reverse();
        rules
    }
}
