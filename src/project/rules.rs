//! The lifecycle rules that apply to a stack, and their places.
//!
//! This module doesn't know the state, and enforces nothing.

use super::lifecycle::{Condition, IgnoredChanges, Lifecycle, ProtectedResources, ReplaceTrigger};
use super::load::Project;
use super::stack::{StackIndex, StackMode};
use crate::path::StackPath;
use crate::source::{Span, Spanned};

#[derive(Debug, Clone, Default)]
pub struct Rules<'p> {
    pub prevent_destroy: Option<&'p Spanned<bool>>,
    pub prevent_resource_destroy: Option<&'p Spanned<ProtectedResources>>,
    /// `create_before_destroy`, if it is stated anywhere, or extends to the stack from another one.
    pub create_before_destroy: Option<CreateBeforeDestroyRule<'p>>,
    pub ignore_changes: Option<&'p Spanned<IgnoredChanges>>,
    pub replace_triggered_by: &'p [Spanned<ReplaceTrigger>],
    /// The conditions, those of the outermost directory first.
    pub conditions: Vec<&'p Condition>,
}

/// `create_before_destroy`, as it is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreateBeforeDestroyRule<'p> {
    pub value: bool,
    /// Its place, if it is in the project.
    pub span: Option<Span>,
    /// The stack that it extends from, if that is another one.
    pub from: Option<&'p StackPath>,
}

impl Rules<'_> {
    pub fn is_empty(&self) -> bool {
        self.prevent_destroy.is_none()
            && self.prevent_resource_destroy.is_none()
            && self.create_before_destroy.is_none()
            && self.ignore_changes.is_none()
            && self.replace_triggered_by.is_empty()
            && self.conditions.is_empty()
    }
}

impl Project {
    /// Returns the rules that apply to a stack: for each rule the stack's own value, else that of the nearest
    /// directory; and the conditions of all of them. A stack that is only read inherits only conditions.
    /// [`Self::forced_create_before_destroy`] has the stacks to which `create_before_destroy` extends.
    pub fn rules_of(&self, index: StackIndex) -> Rules<'_> {
        let stack = &self.stacks[index];
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
                prevent_resource_destroy,
                create_before_destroy,
                ignore_changes,
                ..
            } = &mut rules;
            *prevent_destroy = prevent_destroy.or(lifecycle.prevent_destroy.as_ref());
            *prevent_resource_destroy =
                prevent_resource_destroy.or(lifecycle.prevent_resource_destroy.as_ref());
            *create_before_destroy = create_before_destroy.or_else(|| {
                let stated = lifecycle.create_before_destroy.as_ref()?;
                Some(CreateBeforeDestroyRule {
                    value: stated.value,
                    span: Some(stated.span),
                    from: None,
                })
            });
            *ignore_changes = ignore_changes.or(lifecycle.ignore_changes.as_ref());
        }
        rules.conditions.reverse();
        if let Some(extended) = self.forced_create_before_destroy.get(&index)
            && !rules.create_before_destroy.is_some_and(|rule| rule.value)
        {
            rules.create_before_destroy = Some(CreateBeforeDestroyRule {
                value: true,
                span: extended.span,
                from: Some(&extended.from),
            });
        }
        rules
    }

    /// Returns whether `create_before_destroy` is `true` anywhere.
    pub fn states_create_before_destroy(&self) -> bool {
        let is_stated = |lifecycle: &Lifecycle| {
            let rule = lifecycle.create_before_destroy.as_ref();
            rule.is_some_and(|rule| rule.value)
        };
        let mut scopes = self.scopes.values();
        let mut stacks = self.stacks.iter();
        scopes.any(|scope| is_stated(&scope.lifecycle))
            || stacks.any(|(_, stack)| stack.lifecycle.as_deref().is_some_and(is_stated))
    }
}
