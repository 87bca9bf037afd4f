//! What has been evaluated, what is being evaluated, and what it uses.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use crate::language::evaluate::{Answer, EvalResult};
use crate::project::function_files::FileRead;
use crate::project::globals::GlobalDefinition;
use crate::source::Span;

/// What has been evaluated so far, by the address of its definition or node.
#[derive(Debug, Default)]
pub(super) struct Evaluated<'p>(RefCell<HashMap<usize, Rc<Entry<'p>>>>);

/// The result of an evaluation.
#[derive(Debug)]
pub(super) struct Entry<'p> {
    /// The value; `None` if there is none.
    pub(super) answer: EvalResult<Option<Answer>>,
    /// What it was computed from.
    pub(super) uses: Rc<[Used<'p>]>,
    /// The first names of all globals that were looked up in the process, whether or not they exist.
    pub(super) looked_up: BTreeSet<Arc<str>>,
}

/// Something that a value was computed from.
#[derive(Debug, Clone)]
pub enum Used<'p> {
    /// A global, and what that was computed from.
    Global(&'p GlobalDefinition, Rc<[Used<'p>]>),
    /// A file that a function looked at.
    File(FileRead, Span),
}

/// The evaluations in progress.
#[derive(Debug, Default)]
pub(super) struct Progress<'p> {
    /// The definitions that are being evaluated, each with the place that needs it.
    pub(super) open: RefCell<Vec<(&'p GlobalDefinition, Span)>>,
    pub(super) frames: RefCell<Vec<Frame<'p>>>,
    /// Whether the stack has been left open.
    pub(super) is_shared: Cell<bool>,
}

#[derive(Debug, Default)]
pub(super) struct Frame<'p> {
    pub(super) uses: Vec<Used<'p>>,
    pub(super) looked_up: BTreeSet<Arc<str>>,
}

impl<'p> Progress<'p> {
    /// Calls a function, and returns its result and what it used.
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

    /// Records what the evaluation in progress uses.
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

impl<'p> Evaluated<'p> {
    pub(super) fn get(&self, address: usize) -> Option<Rc<Entry<'p>>> {
        self.0.borrow().get(&address).cloned()
    }

    pub(super) fn insert(&self, address: usize, entry: &Rc<Entry<'p>>) {
        self.0.borrow_mut().insert(address, entry.clone());
    }
}
