//! The progress of an evaluation: finished and open definitions, and their inputs.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use super::definition::Definition;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{EvalResult, EvalValue, NoValue};
use crate::project::function_files::FileRead;
use crate::project::stack::StackIndex;
use crate::source::Span;

/// The results so far, by the address of the definition or node.
#[derive(Debug, Default)]
pub(super) struct EvaluatedValues<'p>(RefCell<HashMap<usize, Rc<EvaluatedValue<'p>>>>);

#[derive(Debug)]
pub(super) struct EvaluatedValue<'p> {
    /// The value; `None` if there is none.
    pub(super) answer: EvalResult<Option<EvalValue>>,
    pub(super) uses: Rc<[Used<'p>]>,
    /// The first names of all globals that were looked up in the process, whether or not they exist.
    pub(super) looked_up: BTreeSet<Arc<str>>,
}

#[derive(Debug, Clone)]
pub enum Used<'p> {
    /// A global or a `let`, and its inputs.
    Value(Definition<'p>, Rc<[Used<'p>]>),
    File(FileRead, Span),
    Generation(StackIndex, Span),
}

#[derive(Debug, Default)]
pub(super) struct EvaluationProgress<'p> {
    /// The definitions that are being evaluated, each with the place that needs it.
    open: RefCell<Vec<(Definition<'p>, Span)>>,
    frames: RefCell<Vec<Frame<'p>>>,
    /// Whether the stack has been left open.
    pub(super) is_shared: Cell<bool>,
}

#[derive(Debug, Default)]
pub(super) struct Frame<'p> {
    pub(super) uses: Vec<Used<'p>>,
    pub(super) looked_up: BTreeSet<Arc<str>>,
}

impl<'p> EvaluationProgress<'p> {
    /// Evaluates a definition that is needed at a place. If it is being evaluated already, returns the
    /// error for the cycle.
    pub(super) fn evaluating<T>(
        &self,
        definition: Definition<'p>,
        span: Span,
        evaluate: impl FnOnce() -> EvalResult<T>,
    ) -> EvalResult<T> {
        let address = definition.address();
        let mut open = self.open.borrow_mut();
        let position = open.iter().position(|(it, _)| it.address() == address);
        if let Some(position) = position {
            return Err(cycle(&open[position..], definition, span).into());
        }
        open.push((definition, span));
        drop(open);
        let result = evaluate();
        self.open.borrow_mut().pop();
        result
    }

    /// Returns whether a result is independent of where evaluation began. A cycle through an open definition, or an
    /// exhausted limit, says nothing about the item alone.
    pub(super) fn is_final(&self, entry: &EvaluatedValue<'p>) -> bool {
        let depends = matches!(
            &entry.answer,
            Err(NoValue::Wrong(diagnostic))
                if matches!(diagnostic.code, Code::CircularValue | Code::Limit)
        );
        !depends || self.open.borrow().is_empty()
    }

    /// Calls a function, and returns its result and its inputs.
    pub(super) fn record<T>(&self, evaluate: impl FnOnce() -> T) -> (T, Vec<Used<'p>>) {
        let (result, frame) = self.framed(evaluate);
        (result, frame.uses)
    }

    pub(super) fn framed<T>(&self, evaluate: impl FnOnce() -> T) -> (T, Frame<'p>) {
        self.frames.borrow_mut().push(Frame::default());
        let result = evaluate();
        let frame = self.frames.borrow_mut().pop().unwrap_or_default();
        (result, frame)
    }

    /// Records inputs of the evaluation in progress.
    pub(super) fn note(&self, used: impl IntoIterator<Item = Used<'p>>) {
        if let Some(frame) = self.frames.borrow_mut().last_mut() {
            frame.uses.extend(used);
        }
    }

    pub(super) fn note_names<'n>(&self, names: impl IntoIterator<Item = &'n Arc<str>>) {
        if let Some(frame) = self.frames.borrow_mut().last_mut() {
            frame.looked_up.extend(names.into_iter().cloned());
        }
    }
}

impl<'p> EvaluatedValues<'p> {
    pub(super) fn get(&self, address: usize) -> Option<Rc<EvaluatedValue<'p>>> {
        self.0.borrow().get(&address).cloned()
    }

    pub(super) fn insert(&self, address: usize, entry: &Rc<EvaluatedValue<'p>>) {
        self.0.borrow_mut().insert(address, entry.clone());
    }
}

/// Reports definitions that need each other, each with the place that uses the next.
fn cycle(open: &[(Definition<'_>, Span)], closing: Definition<'_>, span: Span) -> Diagnostic {
    if open.len() == 1 {
        let message = format!("`{}` depends on itself", closing.name());
        return Diagnostic::error(Code::CircularValue, message)
            .label(span, "used here in its own definition")
            .label(closing.span(), "defined here");
    }
    let names: Vec<String> = open
        .iter()
        .map(|(definition, _)| format!("`{}`", definition.name()))
        .collect();
    let what = match closing {
        Definition::Global(_) => "globals",
        Definition::Let(_) => "lets",
    };
    let message = format!("{what} depend on each other: {}", names.join(", then "));
    let mut diagnostic = Diagnostic::error(Code::CircularValue, message);
    for ((_, place), name) in open.iter().zip(&names).skip(1) {
        diagnostic = diagnostic.label(*place, format!("{name} is used here"));
    }
    let first = names.first().map_or("", String::as_str);
    diagnostic.label(span, format!("and here {first} again"))
}
