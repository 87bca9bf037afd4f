//! The `input` blocks of stacks in plans and applies: the outputs that they need, and the commands that print
//! them.
//!
//! A plan uses the outputs of the present state, or a mock if their stack was never applied. An apply uses no
//! mocks, and reads outputs again once their stack has changed. Values are passed on only in the environment
//! of commands. This module runs no commands.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use crate::diagnostic::Diagnostic;
use crate::driver::{Driver, StepPlan, StepRole, Words};
use crate::language::value::Value;
use crate::project::Project;
use crate::project::attempt::ExitCodes;
use crate::project::stack::StackIndex;
use crate::run::sharing::{InputVariables, RunInputs};

/// The inputs of the stacks of a plan.
#[derive(Debug)]
pub struct StackInputs<'p> {
    inputs: RunInputs<'p>,
    /// The driver of each source.
    drivers: Vec<Driver<'p>>,
}

/// A stack whose outputs others need, and the command that prints them.
#[derive(Debug)]
pub struct InputSource<'p> {
    pub position: usize,
    pub stack: StackIndex,
    pub driver: Driver<'p>,
    pub command: StepPlan<'p>,
    /// The name of the step that runs the command.
    pub name: String,
}

/// The outputs that were read for inputs, or why they cannot be used, by stack and backend.
#[derive(Debug, Default)]
pub struct KnownOutputs(BTreeMap<(StackIndex, String), Result<Value, String>>);

impl<'p> StackInputs<'p> {
    /// Finds the inputs of some stacks. `driver` returns the driver of a stack, if it has one. Adds an error for
    /// each input whose backend or stack does not exist.
    pub fn find(
        project: &'p Project,
        stacks: &[StackIndex],
        driver: impl Fn(StackIndex) -> Option<Driver<'p>>,
        problems: &mut Vec<Diagnostic>,
    ) -> Self {
        let inputs = RunInputs::find(project, stacks, problems);
        let sources = inputs.sources().iter();
        let drivers = sources.map(|it| driver(it.stack).unwrap_or_else(|| Driver::none(project)));
        let drivers = drivers.collect();
        StackInputs { inputs, drivers }
    }

    /// Returns the positions of the sources that a stack needs.
    pub fn needed(&self, stack: StackIndex) -> BTreeSet<usize> {
        self.inputs.needed(stack)
    }

    pub fn source(&self, position: usize) -> InputSource<'p> {
        let source = self.inputs.sources()[position];
        let words = source.backend.command.iter();
        InputSource {
            position,
            stack: source.stack,
            driver: self.drivers[position],
            name: self.inputs.step_name(position),
            command: StepPlan {
                role: StepRole::Outputs,
                name: "outputs",
                words: Words::BuiltIn(words.map(OsString::from).collect()),
                exit_codes: ExitCodes::default(),
            },
        }
    }

    /// Evaluates the inputs of a stack from the known outputs of its sources. `may_mock` returns whether mocks
    /// may replace the outputs of a stack.
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
        self.inputs.variables(stack, outputs, may_mock)
    }

    fn key(&self, position: usize) -> (StackIndex, String) {
        let source = &self.inputs.sources()[position];
        (source.stack, source.backend.name.value.clone())
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

    /// Returns whether a stack has no outputs: everything that was read of it is an empty object.
    pub fn are_empty(&self, stack: StackIndex) -> bool {
        let mut of_stack = self.0.iter().filter(|((of, _), _)| *of == stack);
        of_stack
            .all(|(_, outputs)| matches!(outputs, Ok(Value::Object(fields)) if fields.is_empty()))
    }

    /// Forgets the outputs of a stack that has changed.
    pub fn forget(&mut self, stack: StackIndex) {
        self.0.retain(|(of, _), _| *of != stack);
    }
}
