//! Shared outputs: what the `input` blocks of a stack name is read before its command, and becomes variables.
//!
//! The command of a sharing backend prints the outputs of a stack into a private folder, at the start of
//! the first turn that needs them, so after the turn of that stack in the same run. No value reaches a
//! command line, a log, the journal or a message.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::directed::Director;
use super::event::{Ending, Failure, Outcome};
use super::execute::{LookupError, Task, UpcomingStep};
use super::output_reads::OutputReads;
use super::request::TaskFinder;
use super::state::Findings;
use super::turn::{Step, Turn, TurnIndex};
use crate::diagnostic::{Code, Diagnostic};
use crate::driver::ModuleVariables;
use crate::language::evaluate::{Call, EvalResult, EvalValue, NamePath, Namespaces, evaluate};
use crate::language::syntax::Expr;
use crate::language::value::{Value, to_hcl};
use crate::path::StackPath;
use crate::project::Project;
use crate::project::attempt::ExitCodes;
use crate::project::environment::Environment;
use crate::project::namespaces::ProjectNamespaces;
use crate::project::sharing::{InputBlock, OUTPUTS, SharingBackend};
use crate::project::stack::{StackIndex, StacksById};
use crate::record::journal::Sharing;

#[derive(Debug)]
pub struct RunInputs<'p> {
    project: &'p Project,
    namespaces: ProjectNamespaces<'p>,
    sources: Vec<SharedSource<'p>>,
    /// The inputs of each stack, each with the position of its source.
    of_stacks: BTreeMap<StackIndex, Vec<(&'p InputBlock, usize)>>,
}

/// A stack and the backend that prints its outputs.
#[derive(Debug, Clone, Copy)]
pub struct SharedSource<'p> {
    pub stack: StackIndex,
    pub backend: &'p SharingBackend,
}

/// The inputs of a stack as variables.
#[derive(Debug, Default)]
pub struct InputVariables {
    pub variables: Environment,
    /// The names of the inputs whose mocks were used, in the order of their blocks.
    pub mocked: Vec<String>,
}

impl<'p> RunInputs<'p> {
    /// Finds the sources of all inputs of some stacks. Adds an error for each input whose backend or stack
    /// does not exist.
    pub fn find(
        project: &'p Project,
        stacks: &[StackIndex],
        problems: &mut Vec<Diagnostic>,
    ) -> Self {
        let by_id = StacksById::new(&project.stacks);
        let mut inputs = RunInputs {
            project,
            namespaces: ProjectNamespaces::new(project, std::iter::empty()),
            sources: Vec::new(),
            of_stacks: BTreeMap::new(),
        };
        let mut known: BTreeMap<(StackIndex, &'p str), usize> = BTreeMap::new();
        for &stack in stacks {
            let blocks = project.inputs_of(stack);
            if blocks.is_empty() {
                continue;
            }
            let directory = project.stacks[stack].path.directory();
            let of_stack = inputs.namespaces.of_stack(stack);
            let own = of_stack.of_conditions();
            for input in blocks {
                let text =
                    |expr| evaluate(expr, &own).map(|value| value.as_str().map(str::to_owned));
                let found = text(&input.from_stack_id).and_then(|id| {
                    let named = id.as_deref().and_then(|id| by_id.find(id));
                    let named = named.ok_or_else(|| {
                        Box::new(wrong(
                            input,
                            &input.from_stack_id,
                            "comes from no stack",
                            "no stack has this id",
                        ))
                    })?;
                    let name = text(&input.backend)?;
                    let backend = name.as_deref().and_then(|name| {
                        let mut scopes = project.scopes_of(directory);
                        scopes.find_map(|scope| {
                            let mut backends = scope.sharing_backends.iter();
                            backends.find(|backend| backend.name.value == name)
                        })
                    });
                    let backend = backend.ok_or_else(|| {
                        Box::new(wrong(
                            input,
                            &input.backend,
                            "has no backend",
                            "no `sharing_backend` has this name",
                        ))
                    })?;
                    Ok((named, backend))
                });
                match found {
                    Ok((of_outputs, backend)) => {
                        let next = inputs.sources.len();
                        let key = (of_outputs, &*backend.name.value);
                        let position = *known.entry(key).or_insert(next);
                        if position == next {
                            let stack = of_outputs;
                            inputs.sources.push(SharedSource { stack, backend });
                        }
                        let of_stack = inputs.of_stacks.entry(stack).or_default();
                        of_stack.push((input, position));
                    }
                    // Instances share their blocks.
                    Err(problem) if problems.contains(&problem) => {}
                    Err(problem) => problems.push(*problem),
                }
            }
        }
        inputs
    }

    /// Returns the sources; other methods take or return their positions.
    pub fn sources(&self) -> &[SharedSource<'p>] {
        &self.sources
    }

    pub fn needed(&self, stack: StackIndex) -> BTreeSet<usize> {
        let inputs = self.of_stacks.get(&stack).into_iter().flatten();
        inputs.map(|(_, position)| *position).collect()
    }

    fn step_name(&self, position: usize) -> String {
        let stack = self.sources[position].stack;
        format!("outputs of {}", self.project.stacks[stack].path)
    }

    /// Evaluates the inputs of a stack. `outputs` returns the outputs of a source, or why they
    /// cannot be used; `may_mock` returns whether mocks may replace them. The error says why an
    /// input has no value, and quotes none.
    pub fn variables<'v>(
        &self,
        stack: StackIndex,
        outputs: impl Fn(usize) -> Result<&'v Value, &'v str>,
        may_mock: impl Fn(usize) -> bool,
    ) -> Result<InputVariables, String> {
        let namespaces = self.namespaces.of_stack(stack);
        let own = namespaces.of_conditions();
        let directory = self.project.stacks[stack].path.directory();
        let directory = directory.to_host(&self.project.root);
        let declared = LazyCell::new(|| ModuleVariables::read(&self.project.root, &directory));
        let mut found = InputVariables::default();
        for (input, position) in self.of_stacks.get(&stack).into_iter().flatten() {
            let name = &input.name.value;
            let no_value = |why: &str| format!("the input `{name}` has no value: {why}");
            let value = match outputs(*position) {
                Ok(outputs) => evaluate(&input.value, &WithOutputs { own: &own, outputs })
                    .map_err(|problem| problem.message),
                Err(why) => {
                    let source = self.sources[*position].stack;
                    let path = &self.project.stacks[source].path;
                    Err(format!("the outputs of `{path}` cannot be used: {why}"))
                }
            };
            let value = match (value, &input.mock) {
                (Ok(value), _) => value,
                (Err(_), Some(mock)) if may_mock(*position) => {
                    found.mocked.push(name.clone());
                    evaluate(mock, &own).map_err(|problem| no_value(&problem.message))?
                }
                (Err(why), _) => return Err(no_value(&why)),
            };
            let text = match value.as_str() {
                Some(text) => declared
                    .is_text(name)
                    .map(|is_text| is_text.then_some(text)),
                None => Ok(None),
            };
            let text = text.map_err(|file| {
                no_value(&format!("`{file}`, which may declare it, cannot be read"))
            })?;
            let text = text.map_or_else(|| to_hcl(&value), str::to_owned);
            found.variables.insert(format!("TF_VAR_{name}"), Some(text));
        }
        Ok(found)
    }

    /// Finds the programs of the backends, given the environments of the stacks whose outputs are read.
    /// `sequence` has the stack of each turn of the run with this id.
    /// Fails with the stacks in which a program cannot be run; or, as the second, with the reason
    /// why there is no private folder.
    pub fn prepare(
        self,
        run: &str,
        sequence: &[StackIndex],
        environments: &HashMap<StackIndex, Environment>,
        sharing: Sharing,
    ) -> Result<io::Result<SharedInputs<'p>>, BTreeMap<LookupError, Vec<StackIndex>>> {
        let mut finder = TaskFinder::new(self.project, run);
        let mut missing: BTreeMap<LookupError, Vec<StackIndex>> = BTreeMap::new();
        let mut tasks = Vec::with_capacity(self.sources.len());
        for SharedSource { stack, backend } in &self.sources {
            let words: Vec<_> = backend.command.iter().map(Into::into).collect();
            let environment = environments.get(stack).cloned().unwrap_or_default();
            match finder.find(*stack, &words, environment) {
                Ok(task) => tasks.push(task),
                Err(error) => missing.entry(error).or_default().push(*stack),
            }
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        Ok(tempfile::Builder::new()
            .prefix("orch-")
            .tempdir()
            .map(|folder| SharedInputs {
                sequence: sequence.to_vec(),
                inputs: self,
                tasks,
                sharing,
                folder,
                reads: OutputReads::default(),
                variables: HashMap::new(),
                unread: BTreeSet::new(),
                mocked: BTreeSet::new(),
            }))
    }
}

fn wrong(input: &InputBlock, expr: &Expr, what: &str, label: &str) -> Diagnostic {
    let message = format!("the input `{}` {what}", input.name.value);
    Diagnostic::error(Code::UnknownReference, message).label(expr.span, label)
}

/// Reads outputs during a run, and makes variables of them.
pub struct SharedInputs<'p> {
    inputs: RunInputs<'p>,
    /// The stack of each turn.
    sequence: Vec<StackIndex>,
    /// The command of each source.
    tasks: Vec<Task>,
    sharing: Sharing,
    folder: TempDir,
    reads: OutputReads,
    variables: HashMap<TurnIndex, Environment>,
    /// The stacks whose command did not run, each with the stack whose outputs could not be read.
    unread: BTreeSet<(StackIndex, StackIndex)>,
    mocked: BTreeSet<(StackIndex, String)>,
}

impl SharedInputs<'_> {
    /// Returns the positions of the sources that a turn reads, in order.
    fn needed(&self, step: &UpcomingStep<'_>) -> Vec<usize> {
        let stack = self.sequence[step.index.get()];
        let needed: Vec<usize> = self.inputs.needed(stack).into_iter().collect();
        // A follow-up that cannot run only fails.
        let first = step.turn.steps.iter().find(|step| step.is_command());
        let reads = needed.first().is_some_and(|&source| {
            let name = self.inputs.step_name(source);
            matches!(first, Some(Step::CommandWith(first, _)) if **first == *name)
        });
        if reads { needed } else { Vec::new() }
    }

    /// Returns the steps before the command of each stack, with their tasks.
    pub fn steps(&self) -> HashMap<StackPath, Vec<(Step, Task)>> {
        let all: Arc<[i32]> = (1..=255).collect();
        let steps = self.inputs.of_stacks.keys().map(|&stack| {
            let sources = self.inputs.needed(stack).into_iter();
            let steps = sources.map(|position| {
                let name = self.inputs.step_name(position);
                // The exit statuses of the stack's own command mean nothing here.
                let codes = ExitCodes {
                    // Without outputs, there are mocks.
                    success: (self.sharing == Sharing::WithMocks).then(|| all.clone()),
                    ..ExitCodes::default()
                };
                let step = Step::CommandWith(name.into(), Arc::new(codes));
                (step, self.tasks[position].clone())
            });
            let path = self.inputs.project.stacks[stack].path.clone();
            (path, steps.collect())
        });
        steps.collect()
    }

    /// Returns the stacks whose command did not run, each with the stack whose outputs could not be read.
    pub fn unread(&self) -> &BTreeSet<(StackIndex, StackIndex)> {
        &self.unread
    }

    /// Returns the inputs whose mocks were used, each with its stack.
    pub fn mocked(&self) -> &BTreeSet<(StackIndex, String)> {
        &self.mocked
    }

    fn set_variables(&mut self, turn: TurnIndex) -> Result<(), Failure> {
        let stack = self.sequence[turn.get()];
        let has_mocks = self.sharing == Sharing::WithMocks;
        let outputs = |position| self.reads.get(turn, position);
        let found = self.inputs.variables(stack, outputs, |_| has_mocks);
        let found = found.map_err(Failure::NotStarted)?;
        let mocked = found.mocked.into_iter().map(|input| (stack, input));
        self.mocked.extend(mocked);
        self.variables.insert(turn, found.variables);
        Ok(())
    }
}

impl Director for SharedInputs<'_> {
    fn is_held(&mut self, step: &UpcomingStep<'_>) -> bool {
        let needed = self.needed(step);
        if needed.is_empty() {
            return false;
        }
        let folder = self.folder.path();
        self.reads
            .take(step, |position| file(folder, step.index, position));
        let source = command_number(step).and_then(|number| needed.get(number));
        source.is_some_and(|source| self.reads.is_held(step, *source))
    }

    fn is_needed(&mut self, step: &UpcomingStep<'_>) -> Result<bool, Failure> {
        let needed = self.needed(step);
        let Some(number) = command_number(step).filter(|_| !needed.is_empty()) else {
            return Ok(true);
        };
        if let Some(source) = needed.get(number) {
            return Ok(self.reads.is_needed(step, *source));
        }
        if number == needed.len() {
            self.set_variables(step.index)?;
        }
        Ok(true)
    }

    fn added(&mut self, turn: &Turn) {
        let stack = self.inputs.project.stacks.find(&turn.stack);
        self.sequence
            .push(stack.expect("only stacks of the project are added"));
    }

    fn amend(&self, turn: TurnIndex, task: &mut Task) {
        if let Some(source) = self.reads.reading(turn) {
            task.answer = Some(file(self.folder.path(), turn, source));
        } else if let Some(variables) = self.variables.get(&turn) {
            let variables = variables.iter();
            task.environment
                .extend(variables.map(|(name, value)| (name.clone(), value.clone())));
        }
    }

    fn retries(&mut self, turn: TurnIndex) {
        self.reads.end(turn);
    }

    fn ended(&mut self, ending: &Ending) -> Option<Findings> {
        let stack = self.sequence[ending.turn.get()];
        self.variables.remove(&ending.turn);
        if let Some(source) = self.reads.end(ending.turn)
            && matches!(ending.outcome, Outcome::Failed(_))
        {
            let source = self.inputs.sources[source].stack;
            self.unread.insert((stack, source));
        }
        let sources = &self.inputs.sources;
        self.reads.forget(|source| sources[source].stack == stack);
        None
    }
}

fn file(folder: &Path, turn: TurnIndex, source: usize) -> PathBuf {
    folder.join(format!("{}-{source}", turn.get()))
}

/// Returns the number of a command among those of its turn, if the step is one.
fn command_number(step: &UpcomingStep<'_>) -> Option<usize> {
    let (before, from) = step.turn.steps.split_at(step.step);
    let is_command = from.first().is_some_and(Step::is_command);
    is_command.then(|| before.iter().filter(|step| step.is_command()).count())
}

/// The names of a stack, and the outputs of another one.
struct WithOutputs<'a> {
    own: &'a dyn Namespaces,
    outputs: &'a Value,
}

impl Namespaces for WithOutputs<'_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        if path.name == OUTPUTS {
            // They may hold secrets, which no message may show.
            return Ok(Some(EvalValue {
                value: self.outputs.clone(),
                is_sensitive: true,
            }));
        }
        self.own.get(path)
    }

    fn names(&self) -> Vec<&str> {
        let mut names = self.own.names();
        names.push(OUTPUTS);
        names
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        self.own.call(call)
    }

    fn functions(&self) -> Vec<String> {
        self.own.functions()
    }
}
