//! Turns driver steps into commands and finds their programs before anything runs.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::code::PlanCode;
use super::entry::AskedAction;
use super::inputs::StackInputs;
use super::stack::PlanStack;
use crate::diagnostic::Diagnostic;
use crate::driver::{Driver, StepPlan, StepRole, Words, hidden_option_of, variables_with_words};
use crate::path::StackPath;
use crate::printable::{first_of, printable};
use crate::project::command::words_of_list;
use crate::project::driver::DriverStep;
use crate::project::environment::Environment;
use crate::project::host::host_variable;
use crate::project::per_stack::{SharedProblem, SharedProblems};
use crate::project::stack::StackIndex;
use crate::project::tool_options::hidden_option;
use crate::run::execute::{LookupError, ProgramFinder, Task};
use crate::run::turn::Step;

/// The file in a turn's folder that the tool writes its plan to.
pub const PLAN_FILE: &str = "plan";

pub(super) const SHOWN_FILE: &str = "show.json";

pub(super) const ANSWER_FILE: &str = "answer.json";

pub(super) const OUTPUTS_FILE: &str = "outputs.json";

pub(super) const STATE_FILE: &str = "state.json";

/// The environment variable with the driver's action.
pub(super) const ACTION: &str = "ORCH_ACTION";

pub(super) const DATA: &str = "TF_DATA_DIR";

pub(super) const WORKSPACE: &str = "TF_WORKSPACE";

pub enum CannotAsk {
    Problems(Vec<SharedProblem>),
    Programs(BTreeMap<LookupError, Vec<StackIndex>>),
    /// The code of a removed stack is unusable, with the reason.
    Removed(StackPath, String),
    Folder(io::Error),
    /// Environment variables would change the commands of the tools.
    Hidden(Vec<HiddenOption>),
}

/// An option that reaches a command through an environment variable, or through the driver's
/// `apply` command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenOption {
    source: &'static str,
    /// Without its dashes.
    option: &'static str,
    /// The file and line that set it; `None` if it comes from the environment of `orch`.
    place: Option<String>,
    stacks: Vec<StackPath>,
}

impl fmt::Display for HiddenOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 3;
        let HiddenOption { source, option, .. } = self;
        let place = match &self.place {
            Some(place) => format!("set at {place}"),
            None => "in the environment of `orch`".to_owned(),
        };
        let names = self.stacks.iter().map(|stack| printable(stack.as_str()));
        let names = first_of(names, MOST);
        write!(f, "`{source}` has `-{option}`, {place}: {names}")
    }
}

impl fmt::Display for CannotAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotAsk::Problems(problems) => {
                let messages = problems.iter().map(|it| it.diagnostic.message.as_str());
                f.write_str(&messages.collect::<Vec<_>>().join("; "))
            }
            CannotAsk::Programs(missing) => {
                let problems = missing.keys().map(ToString::to_string);
                f.write_str(&problems.collect::<Vec<_>>().join("; "))
            }
            CannotAsk::Removed(_, why) => f.write_str(why),
            CannotAsk::Folder(error) => error.fmt(f),
            CannotAsk::Hidden(found) => {
                let found = found.iter().map(ToString::to_string);
                f.write_str(&found.collect::<Vec<_>>().join("; "))
            }
        }
    }
}

pub(super) struct CommandPreparation<'a, 'p> {
    codes: PlanCode<'a, 'p>,
    run: &'a str,
    finders: HashMap<OsString, ProgramFinder>,
    problems: SharedProblems,
    missing: BTreeMap<LookupError, Vec<StackIndex>>,
    /// The first removed stack whose code is unusable, with the reason.
    removed: Option<(StackPath, String)>,
    lock_timeout: Option<Duration>,
    hidden: Vec<HiddenOption>,
}

pub(super) type StepCommands = Vec<(Step, Task)>;

pub(super) struct CommandPlace {
    stack: PlanStack,
    pub(super) directory: PathBuf,
    environment: Environment,
    folder: PathBuf,
    /// The path that exists once `init` has run, if the tool has one.
    initialized: Option<PathBuf>,
}

impl CommandPlace {
    pub(super) fn plan_file(&self) -> PathBuf {
        self.folder.join(PLAN_FILE)
    }

    pub(super) fn initialized(&self) -> Option<&Path> {
        self.initialized.as_deref()
    }

    /// Returns whether `init` leaves something behind that is missing.
    pub(super) fn needs_init(&self) -> bool {
        let path = self.initialized.as_ref();
        path.is_some_and(|path| path.symlink_metadata().is_err())
    }
}

impl<'a, 'p> CommandPreparation<'a, 'p> {
    pub(super) fn new(codes: PlanCode<'a, 'p>, run: &'a str) -> Self {
        CommandPreparation {
            codes,
            run,
            finders: HashMap::new(),
            problems: SharedProblems::default(),
            missing: BTreeMap::new(),
            removed: None,
            lock_timeout: None,
            hidden: Vec::new(),
        }
    }

    pub(super) fn waiting(self, lock_timeout: Option<Duration>) -> Self {
        CommandPreparation {
            lock_timeout,
            ..self
        }
    }

    /// Returns the inputs that the turns of an apply read.
    pub(super) fn inputs(&self) -> Option<&'a StackInputs<'p>> {
        self.codes.inputs
    }

    pub(super) fn finish(self) -> Result<(), CannotAsk> {
        let problems = self.problems.into_vec();
        if !problems.is_empty() {
            return Err(CannotAsk::Problems(problems));
        }
        if !self.missing.is_empty() {
            return Err(CannotAsk::Programs(self.missing));
        }
        if !self.hidden.is_empty() {
            return Err(CannotAsk::Hidden(self.hidden));
        }
        match self.removed {
            Some((stack, why)) => Err(CannotAsk::Removed(stack, why)),
            None => Ok(()),
        }
    }

    fn add_problems(&mut self, stack: PlanStack, found: Vec<Diagnostic>) {
        match stack {
            PlanStack::Here(stack) => self.problems.add(stack, found),
            PlanStack::Removed(_) => {
                let first = found
                    .into_iter()
                    .next()
                    .map(|diagnostic| diagnostic.message);
                self.add_removed(stack, first.unwrap_or_default());
            }
        }
    }

    fn add_removed(&mut self, stack: PlanStack, why: String) {
        let path = self.codes.path(stack);
        self.removed.get_or_insert_with(|| (path.clone(), why));
    }

    /// Returns where a turn with its own folder runs; `None` if there are problems.
    pub(super) fn place(
        &mut self,
        stack: PlanStack,
        driver: &Driver<'_>,
        asked: AskedAction,
        folder: PathBuf,
    ) -> Option<CommandPlace> {
        let (code, index) = self.codes.of(stack);
        let mut environment = match code.environments.of_stack(index) {
            Ok(environment) => environment,
            Err(found) => {
                self.add_problems(stack, found);
                return None;
            }
        };
        let directory = code.project.stacks[index]
            .path
            .directory()
            .to_host(&code.project.root);
        let data = self.set_variables(stack, driver, asked, &folder, &mut environment);
        let initialized = driver.initialized(data.as_deref());
        Some(CommandPlace {
            stack,
            initialized: initialized.map(|path| directory.join(path)),
            directory,
            environment,
            folder,
        })
    }

    /// Returns steps with their commands; `None` if there are problems.
    pub(super) fn commands<'s>(
        &mut self,
        steps: impl IntoIterator<Item = StepPlan<'s>>,
        place: &CommandPlace,
    ) -> Option<StepCommands> {
        let steps = steps.into_iter();
        steps
            .map(|step| Some((step_of(&step), self.command(step, place)?)))
            .collect()
    }

    pub(super) fn command(&mut self, step: StepPlan<'_>, place: &CommandPlace) -> Option<Task> {
        let words = match step.words {
            Words::BuiltIn(mut words) => {
                let locks = matches!(step.role, StepRole::Plan | StepRole::Act);
                if let Some(timeout) = self.lock_timeout.filter(|_| locks) {
                    // Right after the subcommand: options come before a file.
                    let option = format!("-lock-timeout={}ms", timeout.as_millis());
                    words.insert(2, option.into());
                }
                words
            }
            Words::Written(expr, extra) => {
                let (code, stack) = self.codes.of(place.stack);
                let namespaces = code.environments.namespaces().of_stack(stack);
                match words_of_list(expr, &namespaces) {
                    Ok(words) => {
                        let destroys = step.name == DriverStep::Destroy.name();
                        if step.role == StepRole::Act
                            && let Some(option) = hidden_option_of(&words, destroys)
                        {
                            let (file, line) = code.project.sources.file_and_line(expr.span);
                            let set_at = Some(format!("{}:{line}", printable(file)));
                            self.note_hidden(step.name, option, set_at, place.stack);
                        }
                        [words, extra].concat()
                    }
                    Err(found) => {
                        self.add_problems(place.stack, found);
                        return None;
                    }
                }
            }
        };
        self.add_hidden(step.role, place);
        let program = self.find(place, &words)?;
        Some(Task {
            name: words[0].clone(),
            program,
            arguments: words[1..].to_vec(),
            directory: place.directory.clone(),
            environment: place.environment.clone(),
            answer: match step.role {
                StepRole::Show => Some(place.folder.join(SHOWN_FILE)),
                StepRole::Outputs => Some(place.folder.join(OUTPUTS_FILE)),
                StepRole::State => Some(place.folder.join(STATE_FILE)),
                StepRole::Init | StepRole::Plan | StepRole::Validate | StepRole::Act => None,
            },
            stale: match step.role {
                StepRole::Plan => vec![place.plan_file(), place.folder.join(ANSWER_FILE)],
                _ => Vec::new(),
            },
        })
    }

    /// Collects options that reach a command through the environment. Any driver may call
    /// Terraform.
    fn add_hidden(&mut self, role: StepRole, place: &CommandPlace) {
        for &variable in variables_with_words(role) {
            let own = place.environment.get(variable);
            let value = match own {
                Some(own) => own.clone(),
                None => std::env::var_os(variable).map(|it| it.to_string_lossy().into_owned()),
            };
            let Some(option) = value.and_then(|value| hidden_option(&value)) else {
                continue;
            };
            let (code, stack) = self.codes.of(place.stack);
            let set_at = own.and_then(|_| {
                let origins = code.environments.definitions_of(stack);
                let span = origins.get(variable)?.span;
                let (file, line) = code.project.sources.file_and_line(span);
                Some(format!("{}:{line}", printable(file)))
            });
            self.note_hidden(variable, option, set_at, place.stack);
        }
    }

    fn note_hidden(
        &mut self,
        source: &'static str,
        option: &'static str,
        place: Option<String>,
        stack: PlanStack,
    ) {
        let path = self.codes.path(stack);
        let mut known = self.hidden.iter_mut();
        match known.find(|it| (it.source, it.option) == (source, option) && it.place == place) {
            Some(known) if known.stacks.last() == Some(path) => {}
            Some(known) => known.stacks.push(path.clone()),
            None => self.hidden.push(HiddenOption {
                source,
                option,
                place,
                stacks: vec![path.clone()],
            }),
        }
    }

    /// Sets the variables of drivers; returns the data directory unless it is the default.
    fn set_variables(
        &self,
        stack: PlanStack,
        driver: &Driver<'_>,
        asked: AskedAction,
        folder: &Path,
        environment: &mut Environment,
    ) -> Option<String> {
        let text = |path: PathBuf| Some(path.to_string_lossy().into_owned());
        let mut set = |name: &str, value: Option<String>| {
            environment.insert(name.to_owned(), value);
        };
        set("ORCH_RUN_ID", Some(self.run.to_owned()));
        set(ACTION, Some(asked.word().to_owned()));
        let (code, index) = self.codes.of(stack);
        let generation = code.environments.namespaces().generation_of(index);
        set("ORCH_GENERATION", Some(generation.to_string()));
        set("ORCH_PLAN_FILE", text(folder.join(PLAN_FILE)));
        set("ORCH_ANSWER", text(folder.join(ANSWER_FILE)));
        driver.tool?;
        let is_set = |name: &str| match environment.get(name) {
            Some(value) => value.is_some(),
            None => std::env::var_os(name).is_some(),
        };
        let workspace = self.codes.workspace(stack).filter(|_| !is_set(WORKSPACE));
        if !is_set("TF_IN_AUTOMATION") {
            environment.insert("TF_IN_AUTOMATION".to_owned(), Some("1".to_owned()));
        }
        if let Some(workspace) = workspace {
            environment.insert(WORKSPACE.to_owned(), Some(workspace.to_owned()));
        }
        // Terraform ignores an empty one.
        if let Some(own) = environment.get(DATA) {
            return own.clone().filter(|own| !own.is_empty());
        }
        if let Some(own) = host_variable(DATA) {
            return Some(own).filter(|own| !own.is_empty());
        }
        let data = usual_data(self.codes.path(stack))?;
        environment.insert(DATA.to_owned(), Some(data.clone()));
        Some(data)
    }

    fn find(&mut self, place: &CommandPlace, words: &[OsString]) -> Option<PathBuf> {
        let name = &words[0];
        let path = match place.environment.get("PATH") {
            Some(own) => own.clone().map(OsString::from),
            None => std::env::var_os("PATH"),
        };
        let finder = self
            .finders
            .entry(name.clone())
            .or_insert_with(|| ProgramFinder::new(name));
        match finder.find(&place.directory, path.as_deref().map(OsStr::new)) {
            Ok(program) => Some(program),
            Err(error) => {
                match place.stack {
                    PlanStack::Here(stack) => {
                        self.missing.entry(error).or_default().push(stack);
                    }
                    PlanStack::Removed(_) => self.add_removed(place.stack, error.to_string()),
                }
                None
            }
        }
    }
}

pub(super) fn step_of(step: &StepPlan<'_>) -> Step {
    let exit_codes = Arc::new(step.exit_codes.clone());
    Step::CommandWith(step.name.into(), exit_codes)
}

/// Returns the data directory to set; `None` for the default.
pub(super) fn usual_data(stack: &StackPath) -> Option<String> {
    let key = stack.key()?;
    Some(format!(".terraform/{}", file_name(key.as_str())))
}

fn file_name(key: &str) -> String {
    match key {
        "." | ".." => key.replace('.', "%2E"),
        key => key.replace('%', "%25").replace('/', "%2F"),
    }
}
