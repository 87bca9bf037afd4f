//! Evaluates globals: finds the definitions for a stack, and combines their values.
//!
//! Only what an expression needs is evaluated, so a broken global affects only what uses it. A definition with the
//! same value for all stacks below a directory is evaluated once for them: first with the stack left open, and once
//! for each stack only if the value depends on it. Definitions of a directory apply after those of the directories
//! above it, and every expression sees the final values for the stack.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::definition::Definition;
use super::progress::{EvaluatedValue, Used};
use super::scope::{GlobalItem, GlobalNode, GlobalScope};
use super::{EvaluationSubject, ExpressionPlace, Names, NamesScope, map};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{EvalResult, EvalValue, NamePath, NoValue};
use crate::language::value::Value;
use crate::project::globals::{DefinitionKind, GlobalDefinition, set_twice};
use crate::source::Span;

pub(super) struct Lookup<'a, 'p> {
    pub(super) scope: &'a Rc<GlobalScope<'p>>,
    pub(super) names: &'a Names<'a, 'p>,
}

/// The value of an entry in the definition of an object around it.
struct EnclosingEntry<'p> {
    answer: EvalValue,
    definition: &'p GlobalDefinition,
}

impl<'p> Lookup<'_, 'p> {
    /// Returns the part of `global` at a path, wrapped in the objects along the path.
    pub(super) fn get(&self, path: &NamePath) -> EvalResult<EvalValue> {
        let Some(&(first, first_span)) = path.rest.first() else {
            return self.everything(path.span);
        };
        self.names.progress.note_names([&first.into()]);
        let Some(mut node) = self.scope.node(first) else {
            let message = format!("no global `{first}`");
            let diagnostic = Diagnostic::error(Code::UnknownName, message).label(
                first_span,
                "not defined for this stack or a directory above it",
            );
            return Err(diagnostic.did_you_mean(first, self.scope.names()).into());
        };
        let mut walked = vec![first];
        // The value of the node's own definition, if it has one or gets one from above.
        let mut under: Option<EnclosingEntry<'p>> = None;
        // The last definition on the way that sets a name to `unset`, unless a later one sets a value.
        let mut unset: Option<&GlobalDefinition> = None;
        for &(name, span) in &path.rest[1..] {
            let inner = node.inner.get(name);
            let is_set = |base: &GlobalDefinition| !matches!(base.kind, DefinitionKind::Unset);
            if let Some(base) = node.base {
                unset = Some(base).filter(|base| !is_set(base));
            }
            if node.base.is_some_and(is_set) && inner.is_none_or(|inner| inner.base.is_none()) {
                under = self.base(first, node, span)?;
            }
            let Some(inner) = inner else {
                if let Some(under) = under {
                    // No other definition has the name. If this one lacks it, the evaluator reports it.
                    return Ok(wrapped(&walked, under.answer));
                }
                let mut diagnostic =
                    Diagnostic::error(Code::UnknownName, format!("no attribute `{name}`"))
                        .label(span, "it has no such attribute");
                if let Some(unset) = unset {
                    let label = format!("`{}` is removed here", unset.name());
                    diagnostic = diagnostic.label(unset.span, label);
                }
                return Err(diagnostic
                    .did_you_mean(name, node.inner.keys().copied())
                    .into());
            };
            under = match under {
                Some(EnclosingEntry { answer, definition }) if inner.base.is_none() => {
                    let entry = answer.value.entries().and_then(|it| it.get(name).cloned());
                    entry.map(|value| EnclosingEntry {
                        answer: EvalValue { value, ..answer },
                        definition,
                    })
                }
                _ => None,
            };
            walked.push(name);
            node = inner;
        }
        let span = path.rest.last().map_or(path.span, |(_, span)| *span);
        if let Some(answer) = self.node(first, node, under, span)? {
            return Ok(wrapped(&walked, answer));
        }
        let message = format!("`{}` is unset", dotted(&walked));
        let mut diagnostic = Diagnostic::error(Code::UnknownName, message)
            .label(span, "has no value for this stack");
        if let Some(removal) = first_definition(node) {
            diagnostic = diagnostic.label(removal.span, "removed here");
        }
        Err(diagnostic.into())
    }

    /// Returns the value of a global by its first name; `None` if it is unset.
    pub(super) fn first(&self, name: &str, span: Span) -> EvalResult<Option<EvalValue>> {
        match self.scope.node(name) {
            Some(node) => self.node(name, node, None, span),
            None => Ok(None),
        }
    }

    fn everything(&self, span: Span) -> EvalResult<EvalValue> {
        let mut all: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        let mut is_sensitive = false;
        for name in self.scope.names() {
            self.names.progress.note_names([&name.into()]);
            if let Some(answer) = self.first(name, span)? {
                is_sensitive |= answer.is_sensitive;
                all.insert(name.into(), answer.value);
            }
        }
        let value = Value::Object(all.into());
        Ok(EvalValue {
            value,
            is_sensitive,
        })
    }

    /// Returns the value of a node. `under` is its value according to the definition of an object around
    /// it.
    fn node(
        &self,
        first: &str,
        node: &Rc<GlobalNode<'p>>,
        under: Option<EnclosingEntry<'p>>,
        span: Span,
    ) -> EvalResult<Option<EvalValue>> {
        if node.inner.is_empty() && !node.is_object {
            return match node.base {
                Some(_) => Ok(self.base(first, node, span)?.map(|it| it.answer)),
                None => Ok(under.map(|it| it.answer)),
            };
        }
        if under.is_some() {
            return self.merged(first, node, under, span);
        }
        self.evaluated(first, GlobalItem::Node(node), span)
    }

    /// Returns the value of the definition of a node; `None` if it has none, or unsets it.
    fn base(
        &self,
        first: &str,
        node: &GlobalNode<'p>,
        span: Span,
    ) -> EvalResult<Option<EnclosingEntry<'p>>> {
        let Some(definition) = node.base else {
            return Ok(None);
        };
        let answer = self.evaluated(first, GlobalItem::Definition(definition), span)?;
        Ok(answer.map(|answer| EnclosingEntry { answer, definition }))
    }

    /// Returns whether two definitions are in files of one directory, or both on the command line, and apply to the
    /// same one. In different directories, one can override the other.
    fn is_beside(&self, one: &GlobalDefinition, other: &GlobalDefinition) -> bool {
        let sources = &self.names.project.project().sources;
        let folder = |it: &GlobalDefinition| sources.file(it.span.file).path.parent();
        one.directory == other.directory
            && (one.directory.is_none() || folder(one) == folder(other))
    }

    /// Puts the definitions of entries on top of the object that they belong to.
    fn merged(
        &self,
        first: &str,
        node: &Rc<GlobalNode<'p>>,
        under: Option<EnclosingEntry<'p>>,
        span: Span,
    ) -> EvalResult<Option<EvalValue>> {
        let under = match node.base {
            Some(_) => self.base(first, node, span)?,
            None => under,
        };
        let mut is_sensitive = under.as_ref().is_some_and(|it| it.answer.is_sensitive);
        let around = under.as_ref().map(|it| it.definition);
        let mut object: BTreeMap<Arc<str>, Value> = match under {
            None => BTreeMap::new(),
            Some(EnclosingEntry { answer, .. }) => match answer.value.entries() {
                Some(entries) => (**entries).clone(),
                None if node.inner.values().any(|inner| inner.adds()) => {
                    return Err(not_an_object(node, &answer).into());
                }
                None if node.block.is_some() => BTreeMap::new(),
                // Unsetting a part of a value that has no parts has no effect.
                None => return Ok(Some(answer)),
            },
        };
        for (&name, inner) in &node.inner {
            let below = object.remove(name);
            if let (Some(around), Some(own), Some(_)) = (around, inner.base, &below)
                && self.is_beside(around, own)
                && !matches!(own.kind, DefinitionKind::Unset)
            {
                return Err(set_twice(own, around.span).into());
            }
            let below =
                below
                    .filter(|_| inner.base.is_none())
                    .zip(around)
                    .map(|(value, definition)| EnclosingEntry {
                        answer: value.into(),
                        definition,
                    });
            if let Some(answer) = self.node(first, inner, below, span)? {
                is_sensitive |= answer.is_sensitive;
                object.insert(name.into(), answer.value);
            }
        }
        if object.is_empty() && around.is_none() && !node.is_object {
            return Ok(None);
        }
        let value = Value::Object(object.into());
        Ok(Some(EvalValue {
            value,
            is_sensitive,
        }))
    }

    /// Returns the value of an item, evaluated once for all stacks if it is the same for all of them,
    /// and otherwise for this one.
    fn evaluated(
        &self,
        first: &str,
        item: GlobalItem<'_, 'p>,
        span: Span,
    ) -> EvalResult<Option<EvalValue>> {
        let entry = self.entry(first, item, span);
        self.names.progress.note_names(&entry.looked_up);
        match item {
            GlobalItem::Definition(definition) => {
                let uses = entry.uses.clone();
                let definition = Definition::Global(definition);
                self.names.progress.note([Used::Value(definition, uses)]);
            }
            GlobalItem::Node(_) => self.names.progress.note(entry.uses.iter().cloned()),
        }
        entry.answer.clone()
    }

    fn entry(&self, first: &str, item: GlobalItem<'_, 'p>, span: Span) -> Rc<EvaluatedValue<'p>> {
        let is_shared = self.names.progress.is_shared.get();
        if !is_shared && let Some(known) = self.names.own.get(item.address()) {
            return known;
        }
        let shared = self.shared_entry(self.scope, first, item, span);
        let is_open = matches!(shared.answer, Err(NoValue::Undecided(_)));
        if is_shared || !is_open {
            return shared;
        }
        let entry = Rc::new(self.compute(self.names, first, item, span));
        if self.names.progress.is_final(&entry) {
            self.names.own.insert(item.address(), &entry);
        }
        entry
    }

    /// Returns the value of an item for all stacks of a scope; it is undecided if it depends on the stack.
    fn shared_entry(
        &self,
        scope: &Rc<GlobalScope<'p>>,
        first: &str,
        item: GlobalItem<'_, 'p>,
        span: Span,
    ) -> Rc<EvaluatedValue<'p>> {
        if let Some(known) = scope.shared.get(item.address()) {
            return known;
        }
        if let Some(above) = &scope.above
            && scope.is_as_above(first)
        {
            let entry = self.shared_entry(above, first, item, span);
            let mut looked_up = entry.looked_up.iter();
            if looked_up.all(|name| scope.is_as_above(name)) {
                return entry;
            }
        }
        // Work for all stacks must not count against the budget of the first one that needs it.
        let progress = &self.names.progress;
        let fresh = (!progress.is_shared.get()).then(|| self.names.budget.fresh());
        let names = Names {
            subject: EvaluationSubject::Open,
            scope: NamesScope::Given(scope.clone()),
            budget: fresh.as_ref().unwrap_or(self.names.budget),
            ..*self.names
        };
        let was_shared = progress.is_shared.replace(true);
        let entry = Rc::new(self.compute(&names, first, item, span));
        progress.is_shared.set(was_shared);
        if progress.is_final(&entry) {
            scope.shared.insert(item.address(), &entry);
        }
        entry
    }

    fn compute(
        &self,
        names: &Names<'_, 'p>,
        first: &str,
        item: GlobalItem<'_, 'p>,
        span: Span,
    ) -> EvaluatedValue<'p> {
        let scope = names.scope().unwrap_or(self.scope);
        let lookup = Lookup { scope, names };
        let (answer, frame) = names.progress.framed(|| match item {
            GlobalItem::Definition(definition) => lookup.definition(definition, span),
            GlobalItem::Node(node) => lookup.merged(first, node, None, span),
        });
        EvaluatedValue {
            answer,
            uses: frame.uses.into(),
            looked_up: frame.looked_up,
        }
    }

    fn definition(
        &self,
        definition: &'p GlobalDefinition,
        span: Span,
    ) -> EvalResult<Option<EvalValue>> {
        let names = Names {
            place: ExpressionPlace::Globals,
            scope: self.names.scope.clone(),
            ..*self.names
        };
        let evaluate = || match &definition.kind {
            DefinitionKind::Unset | DefinitionKind::Object => Ok(None),
            DefinitionKind::Value(expr) => names.evaluate(expr).map(Some),
            DefinitionKind::Map(block) => map::evaluate(block, &names).map(Some),
        };
        let progress = self.names.progress;
        progress.evaluating(Definition::Global(definition), span, evaluate)
    }
}

/// Returns the definition of a name, or else the first one in it.
fn first_definition<'p>(node: &GlobalNode<'p>) -> Option<&'p GlobalDefinition> {
    node.base
        .or_else(|| node.inner.values().find_map(|node| first_definition(node)))
}

/// Reports a value that is not an object, although entries are added to it.
fn not_an_object(node: &GlobalNode<'_>, found: &EvalValue) -> Diagnostic {
    let own = node.inner.values().find_map(|node| first_definition(node));
    let what = if found.is_sensitive {
        found.value.type_name().to_owned()
    } else {
        found.value.description()
    };
    let name = node
        .base
        .map_or_else(|| "this".to_owned(), |base| format!("`{}`", base.name()));
    let message = format!("{name} is not an object, so nothing can be added to it");
    let mut diagnostic = Diagnostic::error(Code::WrongType, message);
    if let Some(own) = own {
        diagnostic = diagnostic.label(own.span, "adds an entry");
    }
    if let Some(base) = node.base {
        diagnostic = diagnostic.label(base.span, format!("this is {what}"));
    }
    diagnostic
}

fn dotted(path: &[&str]) -> String {
    path.iter()
        .fold("global".to_owned(), |all, name| all + "." + name)
}

/// Wraps a value in the objects along a path.
fn wrapped(path: &[&str], answer: EvalValue) -> EvalValue {
    let value = path
        .iter()
        .rev()
        .fold(answer.value, |inner, name| Value::object([(*name, inner)]));
    EvalValue { value, ..answer }
}
