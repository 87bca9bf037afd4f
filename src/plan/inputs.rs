//! The `input` blocks of stacks in plans and applies: which outputs they need, and the commands that print
//! these.
//!
//! While planning, outputs are those of the present state; a mock takes their place if the stack was never
//! applied. An apply uses no mock, and reads outputs anew once their stack has changed. Values reach only
//! the environment of commands. This module runs no commands.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use crate::diagnostic::Diagnostic;
use crate::driver::{Driver, StepPlan, StepRole, Words};
use crate::language::value::Value;
use crate::path::StackPath;
use crate::project::Project;
use crate::project::attempt::ExitCodes;
use crate::project::namespaces::ProjectNamespaces;
use crate::project::stack::StackIndex;
use crate::run::sharing::{InputVariables, RunInputs};

/// The inputs of the stacks of a plan.
#[derive(Debug)]
pub struct StackInputs<'p> {
    project: &'p Project,
    inputs: RunInputs<'p>,
    namespaces: ProjectNamespaces<'p>,
    /// The driver of each source.
    drivers: Vec<Driver<'p>>,
}

/// A stack whose outputs others need, and the command that prints them.
#[derive(Debug)]
pub struct InputSource<'p> {
    pub stack: StackIndex,
    pub driver: Driver<'p>,
    pub command: StepPlan<'p>,
}

/// What is known about the outputs that stacks need, by stack and backend: they, or why they cannot be used.
#[derive(Debug, Default)]
pub struct KnownOutputs(BTreeMap<(StackPath, String), Result<Value, String>>);

impl<'p> StackInputs<'p> {
    /// Finds the inputs of some stacks; `None` if they have none. `driver` returns the driver of a stack,
    /// if it has one. Adds an error for each input whose backend or stack does not exist.
    pub fn find(
        project: &'p Project,
        stacks: impl Iterator<Item = StackIndex>,
        driver: impl Fn(StackIndex) -> Option<Driver<'p>>,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let has_inputs = |stack: &StackIndex| {
            let directory = project.stacks[*stack].path.directory();
            let scope = project.scopes.get(directory);
            scope.is_some_and(|scope| !scope.inputs.is_empty())
        };
        let stacks: Vec<StackIndex> = stacks.filter(has_inputs).collect();
        if stacks.is_empty() {
            return None;
        }
        let inputs = RunInputs::find(project, &stacks, problems);
        let sources = inputs.sources().iter();
        let drivers = sources.map(|it| driver(it.stack).unwrap_or_else(|| Driver::none(project)));
        Some(StackInputs {
            project,
            drivers: drivers.collect(),
            namespaces: ProjectNamespaces::new(project, std::iter::empty()),
            inputs,
        })
    }

    /// Returns the positions of the sources that a stack needs.
    pub fn needed(&self, stack: StackIndex) -> BTreeSet<usize> {
        self.inputs.needed(stack)
    }

    pub fn source(&self, position: usize) -> InputSource<'p> {
        let source = self.inputs.sources()[position];
        let words = source.backend.command.iter();
        InputSource {
            stack: source.stack,
            driver: self.drivers[position],
            command: StepPlan {
                role: StepRole::Outputs,
                name: "outputs",
                words: Words::BuiltIn(words.map(OsString::from).collect()),
                exit_codes: ExitCodes::default(),
            },
        }
    }

    /// Returns the name of the step that reads a source.
    pub fn step_name(&self, position: usize) -> String {
        let source = self.inputs.sources()[position].stack;
        format!("outputs of {}", self.project.stacks[source].path)
    }

    /// Evaluates the inputs of a stack from the known outputs of its sources. `may_mock` says whether mocks
    /// may take the place of those of a stack.
    ///
    /// # Errors
    ///
    /// Why an input has no value. No value is in the message.
    pub fn variables(
        &self,
        stack: StackIndex,
        known: &KnownOutputs,
        may_mock: impl Fn(StackIndex) -> bool,
    ) -> Result<InputVariables, String> {
        let outputs = |position| match known.0.get(&self.key(position)) {
            Some(Ok(outputs)) => Ok(outputs),
            Some(Err(why)) => Err(why.as_str()),
            None => Err("they were not read"),
        };
        let may_mock = |position: usize| may_mock(self.inputs.sources()[position].stack);
        self.inputs
            .variables(stack, &self.namespaces, outputs, may_mock)
    }

    fn key(&self, position: usize) -> (StackPath, String) {
        let source = &self.inputs.sources()[position];
        let path = self.project.stacks[source.stack].path.clone();
        (path, source.backend.name.value.clone())
    }
}

impl KnownOutputs {
    /// Returns whether the outputs of a source are known.
    pub fn has(&self, inputs: &StackInputs<'_>, position: usize) -> bool {
        let known = self.0.get(&inputs.key(position));
        known.is_some_and(Result::is_ok)
    }

    /// Returns whether a source was read, whether or not it has outputs.
    pub fn was_read(&self, inputs: &StackInputs<'_>, position: usize) -> bool {
        self.0.contains_key(&inputs.key(position))
    }

    pub fn set(
        &mut self,
        inputs: &StackInputs<'_>,
        position: usize,
        outputs: Result<Value, String>,
    ) {
        self.0.insert(inputs.key(position), outputs);
    }

    /// Returns whether all that was read of a stack is an empty object: it has no outputs.
    pub fn are_empty(&self, stack: &StackPath) -> bool {
        let mut of_stack = self.0.iter().filter(|((path, _), _)| path == stack);
        of_stack
            .all(|(_, outputs)| matches!(outputs, Ok(Value::Object(fields)) if fields.is_empty()))
    }

    /// Forgets the outputs of a stack that has changed.
    pub fn forget(&mut self, stack: &StackPath) {
        self.0.retain(|(path, _), _| path != stack);
    }
}
