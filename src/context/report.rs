//! Prints the problems of a project; errors end the command.

use std::error::Error;

use super::Context;
use crate::diagnostic::{Diagnostic, Severity};
use crate::error::Result;
use crate::exit::ExitStatus;
use crate::selection::select::Selection;

#[derive(Clone, Copy)]
pub enum CyclesAre<'a> {
    Errors,
    Warnings,
    /// Errors if a selected stack is in the cycle.
    ErrorsWithin(&'a Selection),
}

impl Context {
    /// Adds the cycles of the graph to the problems.
    pub fn check_cycles(&mut self, cycles: CyclesAre<'_>) {
        let mut found = Vec::new();
        for knot in self.graph.cycles() {
            let is_fatal = match cycles {
                CyclesAre::Errors => true,
                CyclesAre::Warnings => false,
                CyclesAre::ErrorsWithin(selection) => {
                    knot.stacks.iter().any(|&stack| selection.contains(stack))
                }
            };
            for mut diagnostic in knot.diagnostics(&self.project.stacks, &self.project.sources) {
                if !is_fatal {
                    diagnostic.severity = Severity::Warning;
                }
                found.push(diagnostic);
            }
        }
        self.problems.diagnostics.append(&mut found);
    }

    /// Prints all problems. Call it once. Errors end the command, warnings do not.
    pub fn report(&mut self) -> Result<()> {
        self.add_sources();
        self.sort_problems();
        let (sources, problems) = (&self.project.sources, &self.problems);
        self.notices.annotated(&problems.diagnostics, sources);
        if !problems.errors.is_empty() {
            let errors = problems.errors.iter().map(|error| error as &dyn Error);
            self.notices.errors(&errors.collect::<Vec<_>>(), sources);
        }
        if !problems.has_errors() {
            return Ok(());
        }
        let is_configuration = problems.diagnostics.iter().any(Diagnostic::is_error);
        Err(if is_configuration {
            ExitStatus::Configuration.into()
        } else {
            ExitStatus::External.into()
        })
    }
}
