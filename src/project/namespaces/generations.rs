//! Which generation of each stack expressions are evaluated for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ProjectNamespaces;
use crate::path::{Generation, StackPath};
use crate::project::stack::StackIndex;

/// The generations of stacks, by path: those that are named, and that of all others, which is usually the first.
#[derive(Debug, Clone, Default)]
pub struct Generations {
    named: BTreeMap<StackPath, Generation>,
    others: Generation,
    is_asked: Arc<AtomicBool>,
}

impl Generations {
    /// Returns what says that every stack has this generation.
    pub fn all(generation: Generation) -> Self {
        Generations {
            others: generation,
            ..Generations::default()
        }
    }

    /// Returns the same with other generations of some stacks.
    #[must_use]
    pub fn with(&self, others: impl Iterator<Item = (StackPath, Generation)>) -> Self {
        let mut generations = self.clone();
        generations.named.extend(others);
        generations
    }

    /// Returns the generation of a stack.
    pub fn of(&self, stack: &StackPath) -> Generation {
        self.named.get(stack).copied().unwrap_or(self.others)
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
    /// Makes `terramate.stack.generation` these numbers. Without this, it is 1 for every stack.
    #[must_use]
    pub fn in_generations(mut self, generations: Arc<Generations>) -> Self {
        self.basis.generations = generations;
        self
    }

    /// Returns the generation that a stack is evaluated for.
    pub fn generation_of(&self, stack: StackIndex) -> Generation {
        let path = &self.basis.project.stacks[stack].path;
        self.basis.generations.of(path)
    }
}
