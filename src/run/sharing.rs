//! Shared outputs: what the `input` blocks of a stack name is read before its command, and becomes variables.
//!
//! The command of a sharing backend prints the outputs of a stack into a private folder, at the start of
//! the first turn that needs them, so after the turn of that stack in the same run. No value reaches a
//! command line, a log, the journal or a message.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::directed::Director;
use super::event::{Ending, Failure, Outcome};
use super::execute::{LookupError, Task, UpcomingStep};
use super::request::TaskFinder;
use super::state::Findings;
use super::turn::{Step, TurnIndex};
use crate::diagnostic::{Code, Diagnostic};
use crate::driver::ModuleVariables;
use crate::language::evaluate::{Call, EvalResult, EvalValue, NamePath, Namespaces, evaluate};
use crate::language::function::from_json;
use crate::language::syntax::Expr;
use crate::language::value::{Value, to_hcl};
use crate::project::Project;
use crate::project::attempt::ExitCodes;
use crate::project::environment::Environment;
use crate::project::namespaces::ProjectNamespaces;
use crate::project::sharing::{InputBlock, OUTPUTS, SharingBackend};
use crate::project::stack::{StackIndex, StacksById};
use crate::record::journal::Sharing;

/// The largest size of the outputs of a stack.
const MAX_BYTES: u64 = 16 << 20;

/// The inputs of the stacks of a run.
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
            let directory = project.stacks[stack].path.directory();
            let of_stack = inputs.namespaces.of_stack(stack);
            let own = of_stack.of_conditions();
            for input in project.inputs_of(stack) {
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

    /// Returns the positions of the sources that a stack needs.
    pub fn needed(&self, stack: StackIndex) -> BTreeSet<usize> {
        let inputs = self.of_stacks.get(&stack).into_iter().flatten();
        inputs.map(|(_, position)| *position).collect()
    }

    /// Returns the name of the step that reads a source.
    fn step_name(&self, position: usize) -> String {
        let stack = self.sources[position].stack;
        format!("outputs of {}", self.project.stacks[stack].path)
    }

    /// Evaluates the inputs of a stack. `outputs` returns the outputs of a source, or why they cannot be
    /// used; `may_mock` returns whether mocks may replace them.
    ///
    /// # Errors
    ///
    /// Why an input has no value. No value is in the message.
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
    ///
    /// # Errors
    ///
    /// The stacks in which a program cannot be run; or, as the second, why there is no private folder.
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
                known: HashMap::new(),
                variables: HashMap::new(),
                reading: HashMap::new(),
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
#[derive(Debug)]
pub struct SharedInputs<'p> {
    inputs: RunInputs<'p>,
    /// The stack of each turn.
    sequence: Vec<StackIndex>,
    /// The command of each source.
    tasks: Vec<Task>,
    sharing: Sharing,
    folder: TempDir,
    /// The outputs that have been read, or why they cannot be used, by source.
    known: HashMap<usize, Result<Value, String>>,
    /// The variables of turns that are about to start.
    variables: HashMap<TurnIndex, Environment>,
    /// The sources that turns are reading.
    reading: HashMap<TurnIndex, usize>,
    /// The stacks whose command did not run, each with the stack whose outputs could not be read.
    unread: BTreeSet<(StackIndex, StackIndex)>,
    /// The inputs whose mocks were used.
    mocked: BTreeSet<(StackIndex, String)>,
}

impl SharedInputs<'_> {
    /// Returns the positions of the sources that a turn needs, in order.
    fn needed(&self, turn: TurnIndex) -> Vec<usize> {
        let stack = self.sequence.get(turn.get());
        let needed = stack.map(|stack| self.inputs.needed(*stack));
        needed.into_iter().flatten().collect()
    }

    /// Returns the steps before the command of each turn, with their tasks.
    pub fn steps(&self) -> Vec<Vec<(Step, Task)>> {
        let all: Arc<[i32]> = (1..=255).collect();
        let turns = (0..self.sequence.len()).map(TurnIndex::new);
        let steps = turns.map(|turn| {
            let sources = self.needed(turn).into_iter();
            let steps = sources.map(|position| {
                let name = self.inputs.step_name(position);
                // The exit statuses of the stack's own command mean nothing here.
                let codes = ExitCodes {
                    // Without outputs, there are mocks.
                    success: (self.sharing == Sharing::WithMocks).then(|| all.clone()),
                    ..ExitCodes::default()
                };
                let step = Step::CommandWith(name.into(), Arc::new(codes));
                let mut task = self.tasks[position].clone();
                task.answer = Some(self.answer(turn, position));
                (step, task)
            });
            steps.collect()
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

    fn is_known(&self, position: usize) -> bool {
        self.known.get(&position).is_some_and(Result::is_ok)
    }

    fn answer(&self, turn: TurnIndex, position: usize) -> PathBuf {
        self.folder
            .path()
            .join(format!("{}-{position}", turn.get()))
    }

    /// Returns the variables of a turn whose outputs have been printed.
    fn evaluate(&mut self, turn: TurnIndex) -> Result<Environment, Failure> {
        let stack = self.sequence[turn.get()];
        let has_mocks = self.sharing == Sharing::WithMocks;
        for position in self.needed(turn) {
            if !self.is_known(position) {
                let read = read_outputs(&self.answer(turn, position));
                self.known.insert(position, read);
            }
        }
        let known = |position| match &self.known[&position] {
            Ok(outputs) => Ok(outputs),
            Err(why) => Err(why.as_str()),
        };
        let found = self.inputs.variables(stack, known, |_| has_mocks);
        let found = found.map_err(Failure::NotStarted)?;
        let mocked = found.mocked.into_iter().map(|input| (stack, input));
        self.mocked.extend(mocked);
        Ok(found.variables)
    }
}

/// Reads outputs that a backend has printed to a file, and removes the file: it may hold secrets.
///
/// # Errors
///
/// Why they cannot be used.
pub fn read_outputs(path: &Path) -> Result<Value, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    _ = fs::remove_file(path);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("they are larger than {} MiB", MAX_BYTES >> 20));
    }
    from_json(&text).ok_or_else(|| "they are not JSON".to_owned())
}

impl Director for SharedInputs<'_> {
    fn is_needed(&mut self, step: &UpcomingStep<'_>) -> Result<bool, Failure> {
        let needed = self.needed(step.index);
        if needed.is_empty() || !step.turn.steps[step.step].is_command() {
            return Ok(true);
        }
        let before = step.turn.steps[..step.step].iter();
        let number = before.filter(|step| step.is_command()).count();
        if let Some(position) = needed.get(number) {
            self.reading.insert(step.index, *position);
            return Ok(!self.is_known(*position));
        }
        self.reading.remove(&step.index);
        if number == needed.len() {
            let variables = self.evaluate(step.index)?;
            self.variables.insert(step.index, variables);
        }
        Ok(true)
    }

    fn amend(&self, turn: TurnIndex, task: &mut Task) {
        if task.answer.is_none()
            && let Some(variables) = self.variables.get(&turn)
        {
            let variables = variables.iter();
            task.environment
                .extend(variables.map(|(name, value)| (name.clone(), value.clone())));
        }
    }

    fn ended(&mut self, ending: &Ending) -> Option<Findings> {
        self.variables.remove(&ending.turn);
        if let Some(position) = self.reading.remove(&ending.turn)
            && matches!(ending.outcome, Outcome::Failed(_))
        {
            let source = self.inputs.sources[position].stack;
            self.unread
                .insert((self.sequence[ending.turn.get()], source));
        }
        None
    }
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
