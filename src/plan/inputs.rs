//! The `input` blocks of stacks in plans and applies: the outputs that they need, and the commands that print
//! them.
//!
//! A plan uses the outputs of the present state, or a mock if their stack was never applied. An apply uses no
//! mocks, and reads outputs again once their stack has changed. Values are passed on only in the environment
//! of commands. This module runs no commands.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::rc::Rc;

use super::stack::{PlanStack, RemovedCode};
use crate::diagnostic::Diagnostic;
use crate::driver::{Driver, StepPlan, StepRole, Words};
use crate::language::value::Value;
use crate::path::StackPath;
use crate::project::Project;
use crate::project::attempt::ExitCodes;
use crate::project::sharing::SharingBackend;
use crate::project::stack::{Stack, StackIndex, StacksById};
use crate::run::sharing::{InputVariables, RunInputs};

#[derive(Debug)]
pub struct StackInputs<'p> {
    sources: Vec<InputSource<'p>>,
    by_command: BTreeMap<(PlanStack, &'p [String]), usize>,
    /// The stacks with inputs, or why those of a removed stack cannot be found.
    of_stacks: BTreeMap<PlanStack, Result<InputsOfStack<'p>, String>>,
}

/// A stack whose outputs others need, and the command that prints them.
#[derive(Debug, Clone)]
pub struct InputSource<'p> {
    pub position: usize,
    pub stack: PlanStack,
    pub driver: Driver<'p>,
    pub command: StepPlan<'p>,
    /// The name of the step that runs the command.
    pub name: String,
    words: &'p [String],
}

#[derive(Debug)]
struct InputsOfStack<'p> {
    /// Of the project that has the stack, which may be that of an earlier commit.
    inputs: Rc<RunInputs<'p>>,
    stack: StackIndex,
    /// The positions of their sources here.
    positions: Rc<[usize]>,
}

/// The outputs that were read for inputs, or why they cannot be used, by stack and command.
#[derive(Debug, Default)]
pub struct KnownOutputs(BTreeMap<(PlanStack, Vec<String>), Result<Value, String>>);

impl<'p> StackInputs<'p> {
    /// Finds the inputs of some stacks. `driver` returns the driver of a stack, if it has one. Adds an error for
    /// each input whose backend or stack does not exist, except for those of removed stacks.
    pub fn find(
        project: &'p Project,
        stacks: &[StackIndex],
        removed: &[RemovedCode<'_, 'p>],
        driver: impl Fn(StackIndex) -> Option<Driver<'p>>,
        problems: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut all = StackInputs {
            sources: Vec::new(),
            by_command: BTreeMap::new(),
            of_stacks: BTreeMap::new(),
        };
        let here = |stack| {
            let driver = driver(stack).unwrap_or_else(|| Driver::none(project));
            (PlanStack::Here(stack), driver)
        };
        let inputs = Rc::new(RunInputs::find(project, stacks, problems));
        let sources = inputs.sources().iter();
        let positions: Rc<[usize]> = sources
            .map(|it| all.add(here(it.stack), &project.stacks[it.stack].path, it.backend))
            .collect();
        for &stack in stacks {
            let of_stack = InputsOfStack {
                inputs: Rc::clone(&inputs),
                stack,
                positions: Rc::clone(&positions),
            };
            all.of_stacks.insert(PlanStack::Here(stack), Ok(of_stack));
        }
        let by_id = StacksById::new(&project.stacks);
        let mut removed_by_id: BTreeMap<String, usize> = BTreeMap::new();
        for (position, it) in removed.iter().enumerate() {
            let stack = &it.code.project.stacks[it.stack];
            // Old generations have the id of their stack.
            if let Some(id) = stack.id.as_ref().filter(|_| it.path.generation().is_none()) {
                removed_by_id.insert(id.value.to_ascii_lowercase(), position);
            }
        }
        for (position, it) in removed.iter().enumerate() {
            if it.inputs().is_empty() {
                continue;
            }
            let mut problems = Vec::new();
            let inputs = RunInputs::find(it.code.project, &[it.stack], &mut problems);
            let mut source = |stack: StackIndex, backend| {
                // By its id, as in the block: it may have moved.
                let Stack { id, path, .. } = &it.code.project.stacks[stack];
                let id = id.as_ref().map_or("", |id| &id.value);
                if let Some(stack) = by_id.find(id) {
                    let path = &project.stacks[stack].path;
                    return Ok(all.add(here(stack), path, backend));
                }
                let removed_with_id = removed_by_id.get(&id.to_ascii_lowercase());
                let position = *removed_with_id
                    .ok_or_else(|| format!("no stack has the id of `{path}` any more"))?;
                let source = (PlanStack::Removed(position), removed[position].driver);
                Ok(all.add(source, path, backend))
            };
            let sources = inputs.sources().iter();
            let found = match problems.into_iter().next() {
                Some(problem) => Err(problem.message),
                None => sources.map(|it| source(it.stack, it.backend)).collect(),
            };
            let of_stack = found.map(|positions| InputsOfStack {
                inputs: Rc::new(inputs),
                stack: it.stack,
                positions,
            });
            all.of_stacks.insert(PlanStack::Removed(position), of_stack);
        }
        all
    }

    /// Adds a source, and returns its position.
    fn add(
        &mut self,
        (stack, driver): (PlanStack, Driver<'p>),
        path: &StackPath,
        backend: &'p SharingBackend,
    ) -> usize {
        let words = &backend.command[..];
        let position = self.sources.len();
        let known = self.by_command.entry((stack, words)).or_insert(position);
        if *known != position {
            return *known;
        }
        self.sources.push(InputSource {
            position,
            stack,
            driver,
            name: format!("outputs of {path}"),
            command: StepPlan {
                role: StepRole::Outputs,
                name: "outputs",
                words: Words::BuiltIn(words.iter().map(OsString::from).collect()),
                exit_codes: ExitCodes::default(),
            },
            words,
        });
        position
    }

    pub fn needed(&self, stack: PlanStack) -> BTreeSet<usize> {
        let of_stack = self.of_stacks.get(&stack).and_then(|it| it.as_ref().ok());
        let needed = of_stack.into_iter().flat_map(|it| {
            let needed = it.inputs.needed(it.stack).into_iter();
            needed.map(|position| it.positions[position])
        });
        needed.collect()
    }

    pub fn source(&self, position: usize) -> &InputSource<'p> {
        &self.sources[position]
    }

    /// Evaluates the inputs of a stack; `None` if it has none. `outputs` returns the outputs of the
    /// source at a position, or why they cannot be used; `may_mock` returns whether mocks may
    /// replace those of a stack. The error says why an input has no value, and quotes none.
    pub fn variables<'v>(
        &self,
        stack: PlanStack,
        outputs: impl Fn(usize) -> Result<&'v Value, &'v str>,
        may_mock: impl Fn(PlanStack) -> bool,
    ) -> Option<Result<InputVariables, String>> {
        let it = match self.of_stacks.get(&stack)? {
            Ok(it) => it,
            Err(why) => return Some(Err(format!("its inputs cannot be found: {why}"))),
        };
        if it.inputs.needed(it.stack).is_empty() {
            return None;
        }
        let outputs = |position: usize| outputs(it.positions[position]);
        let may_mock = |position: usize| may_mock(self.sources[it.positions[position]].stack);
        Some(it.inputs.variables(it.stack, outputs, may_mock))
    }

    fn key(&self, position: usize) -> (PlanStack, Vec<String>) {
        let source = &self.sources[position];
        (source.stack, source.words.to_vec())
    }
}

impl KnownOutputs {
    /// Returns the outputs of a source. The error says why they cannot be used.
    pub fn get(&self, inputs: &StackInputs<'_>, position: usize) -> Result<&Value, &str> {
        let outputs = self.0.get(&inputs.key(position));
        let outputs = outputs.ok_or("they were not read")?;
        outputs.as_ref().map_err(String::as_str)
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
    pub fn are_empty(&self, stack: PlanStack) -> bool {
        let mut of_stack = self.0.iter().filter(|((of, _), _)| *of == stack);
        of_stack
            .all(|(_, outputs)| matches!(outputs, Ok(Value::Object(fields)) if fields.is_empty()))
    }
}
