//! The current generation of each stack, for commands and their environments.

use std::sync::Arc;

use super::Context;
use crate::error::Result;
use crate::project::environment::{Environment, Environments};
use crate::project::host::host_environment;
use crate::project::namespaces::Generations;
use crate::project::stack::StackIndex;
use crate::state::document::Document;

impl Context {
    /// Evaluates for the current generations. The state is read only if a value depends on it.
    /// Fails if the state cannot be read: a command must not run for the wrong generation.
    pub fn in_generations<T>(&mut self, evaluate: impl Fn(&Self) -> T) -> Result<T> {
        let value = evaluate(self);
        if !self.state.generations.were_asked() || self.project.settings.state.is_none() {
            return Ok(value);
        }
        self.opened()?;
        let opened = self.state.opened.take().expect("it has just been opened");
        let document = opened.read().and_then(|mut document| {
            opened.relocate(&self.project, &mut document)?;
            Ok(document)
        });
        self.state.opened = Some(opened);
        self.set_generations(&document?);
        Ok(evaluate(self))
    }

    /// Computes the environments of stacks, and adds their problems to the diagnostics. Fails if
    /// they depend on the state, and it cannot be read.
    pub fn environments(
        &mut self,
        stacks: impl Iterator<Item = StackIndex>,
    ) -> Result<Vec<(StackIndex, Environment)>> {
        let stacks: Vec<StackIndex> = stacks.collect();
        let evaluated = |context: &Self| context.evaluator().of_stacks(stacks.iter().copied());
        let (known, problems) = self.in_generations(evaluated)?;
        self.add_shared(problems);
        Ok(known)
    }

    /// Takes the generations of stacks from the state.
    pub fn set_generations(&mut self, document: &Document) {
        let mut all = document.stacks.values();
        if all.all(|entry| entry.generation.is_first()) {
            self.state.generations = Arc::default();
            return;
        }
        let entries = self.entries_of(document);
        let others = entries
            .iter()
            .filter(|(_, (_, entry))| !entry.generation.is_first());
        let stacks = &self.project.stacks;
        let others =
            others.map(|(stack, (_, entry))| (stacks[*stack].path.clone(), entry.generation));
        self.state.generations = Arc::new(others.collect::<Generations>());
    }

    /// Returns the evaluator of environments, with the generations found so far.
    pub fn evaluator(&self) -> Environments<'_> {
        Environments::new(&self.project, host_environment())
            .in_generations(self.state.generations.clone())
    }
}
