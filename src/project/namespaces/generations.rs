//! The generations for which expressions are evaluated: that of their own stack, and those of others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::progress::Used;
use super::{EvaluationSubject, ExpressionPlace, Names, ProjectNamespaces, undecided};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{EvalResult, NamePath};
use crate::language::value::Value;
use crate::path::{Generation, StackPath};
use crate::project::lifecycle::STACKS;
use crate::project::stack::StackIndex;

pub(crate) const GENERATION: &str = "generation";

/// The generations of stacks, by path: of those that are not named, the first.
#[derive(Debug, Clone, Default)]
pub struct Generations {
    named: BTreeMap<StackPath, Generation>,
    /// Those that only their own stacks see: nothing has been made of them yet.
    planned: BTreeMap<StackPath, Generation>,
    /// The generation of every other stack, as it sees itself.
    own: Generation,
    is_asked: Arc<AtomicBool>,
}

impl Generations {
    /// Returns the same generation for every stack.
    pub fn all(generation: Generation) -> Self {
        Generations {
            own: generation,
            ..Generations::default()
        }
    }

    #[must_use]
    pub fn with(&self, others: impl Iterator<Item = (StackPath, Generation)>) -> Self {
        let mut generations = self.clone();
        generations.named.extend(others);
        generations
    }

    /// Returns the same with generations of some stacks that are yet to be made, so that only these stacks see them.
    #[must_use]
    pub fn planning(&self, planned: impl Iterator<Item = (StackPath, Generation)>) -> Self {
        let mut generations = self.clone();
        generations.planned.extend(planned);
        generations
    }

    /// Returns the generation of a stack, as the stack itself sees it.
    pub fn of(&self, stack: &StackPath) -> Generation {
        let known = self.planned.get(stack).or_else(|| self.named.get(stack));
        known.copied().unwrap_or(self.own)
    }

    /// Returns the generation of a stack, as others see it.
    pub fn for_others(&self, stack: &StackPath) -> Generation {
        self.named.get(stack).copied().unwrap_or_default()
    }

    /// Returns whether any value has depended on a generation so far.
    pub fn were_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// Notes that a value depends on a generation.
    pub(super) fn ask(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }
}

impl FromIterator<(StackPath, Generation)> for Generations {
    fn from_iter<I: IntoIterator<Item = (StackPath, Generation)>>(generations: I) -> Self {
        Generations::default().with(generations.into_iter())
    }
}

impl ProjectNamespaces<'_> {
    /// Sets the numbers for `terramate.stack.generation`. The default is 1 for every stack.
    #[must_use]
    pub fn in_generations(mut self, generations: Arc<Generations>) -> Self {
        self.basis.generations = generations;
        self
    }

    /// Returns the generation of a stack, as others see it.
    pub fn generation_for_others(&self, stack: StackIndex) -> Generation {
        let path = &self.basis.project.stacks[stack].path;
        self.basis.generations.for_others(path)
    }

    pub fn generation_of(&self, stack: StackIndex) -> Generation {
        let path = &self.basis.project.stacks[stack].path;
        self.basis.generations.of(path)
    }
}

impl Names<'_, '_> {
    /// Returns the object that contains the generation of another stack: `stacks["/network"].generation`.
    pub(super) fn stacks(&self, path: &NamePath<'_>) -> EvalResult {
        let wrong = |message: &str, label: &str, help: &str| {
            let diagnostic = Diagnostic::error(Code::UnavailableName, message);
            diagnostic.label(path.whole_span(), label).help(help)
        };
        let stack = match (self.place, self.subject) {
            (ExpressionPlace::Environment(_), EvaluationSubject::Stack(stack)) => stack,
            (_, EvaluationSubject::Open) => return Err(undecided(STACKS, path.span)),
            _ => {
                return Err(wrong(
                    "`stacks` cannot be used here",
                    "other stacks are available only in `run.env` and conditions",
                    "use it in `run.env`: commands get these variables in their environment",
                )
                .into());
            }
        };
        // A computed path may be secret.
        let hidden = || path.computed.first().and_then(Value::to_text);
        let (written, span) = match path.rest.first() {
            Some(&(written, span)) => (written.to_owned(), span),
            None => match hidden() {
                Some(written) => (written.to_string(), path.span),
                None => {
                    return Err(wrong(
                        "`stacks` needs the path of a stack",
                        "which stack?",
                        "write `stacks[\"/path\"].generation`",
                    )
                    .into());
                }
            },
        };
        if let Some((name, _)) = path.rest.get(1).filter(|(name, _)| *name != GENERATION) {
            return Err(wrong(
                &format!("`{name}` of another stack is not available in `run.env`"),
                "only `generation`",
                "write `stacks[\"/path\"].generation`; conditions can also use `outputs`",
            )
            .into());
        }
        let project = self.project.basis.project;
        let named = project
            .stacks
            .one_written(stack.path.directory(), &written, span);
        let named = match named {
            Ok(named) => named,
            Err(_) if path.rest.is_empty() => {
                // The error would show the path.
                return Err(wrong(
                    "this is not a stack",
                    "its path was computed, and may be secret",
                    "write `stacks[\"/path\"].generation`",
                )
                .into());
            }
            Err(problem) => return Err(problem.into()),
        };
        self.project.basis.generations.ask();
        self.progress
            .note([Used::Generation(named, path.whole_span())]);
        let generation = self.project.generation_for_others(named).get();
        let generation = Value::object([(GENERATION, Value::from(u64::from(generation)))]);
        Ok(Value::object([(written, generation)]))
    }
}
