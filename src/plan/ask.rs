//! Asks the tools what they would do: a turn for each stack, in any order.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::Asked;
use crate::driver::{Answer, BadAnswer, BadPlan, Driver, PlanKind, Words, read_plan};
use crate::project::Project;
use crate::project::attempt::Attempts;
use crate::project::command::words_of_list;
use crate::project::environment::{Environment, Environments};
use crate::project::per_stack::{SharedProblem, SharedProblems};
use crate::project::stack::StackIndex;
use crate::run::execute::{Execution, LookupError, ProgramFinder, Task};
use crate::run::schedule::{OnError, Schedule};
use crate::run::turn::{Operation, Step, Turn};
use crate::selection::graph::Precedence;

/// The file of a turn's folder that the tool writes its plan to.
pub const PLAN_FILE: &str = "plan";

/// The file that `show -json` prints to.
const SHOWN_FILE: &str = "show.json";

/// The file that a driver may write an answer to.
const ANSWER_FILE: &str = "answer.json";

/// How many bytes such an answer may have.
const MAX_ANSWER: u64 = 1 << 20;

/// The variable that says where Terraform keeps its data.
const DATA: &str = "TF_DATA_DIR";

/// A stack whose tool is asked.
#[derive(Debug, Clone)]
pub struct Question<'p> {
    /// The stack.
    pub stack: StackIndex,
    /// Its driver.
    pub driver: Driver<'p>,
    /// What is asked.
    pub kind: PlanKind,
    /// For which action.
    pub asked: Asked,
}

/// How tools are asked.
#[derive(Debug)]
pub struct AskOptions<'a> {
    /// The id of the run.
    pub run: &'a str,
    /// The folder that answers go to; only its owner can look into it.
    pub folder: &'a Path,
    /// Whether `init` runs in any case.
    pub init: bool,
    /// The words that every `plan` gets.
    pub extra: &'a [OsString],
    /// How many are asked at once.
    pub jobs: NonZeroUsize,
}

/// What is needed to ask.
#[derive(Debug)]
pub struct Asking {
    /// The turns, one for each question.
    pub execution: Execution,
    /// Their commands.
    pub tasks: Vec<Vec<Task>>,
}

/// Why nobody is asked.
#[derive(Debug)]
pub enum CannotAsk {
    /// The configuration is wrong.
    Problems(Vec<SharedProblem>),
    /// Programs are missing.
    Programs(BTreeMap<LookupError, Vec<StackIndex>>),
    /// The folder cannot be written to.
    Folder(io::Error),
}

/// Why an answer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// What the driver has written is malformed.
    #[error(transparent)]
    Written(#[from] BadAnswer),
    /// The plan is.
    #[error(transparent)]
    Plan(#[from] BadPlan),
    /// What the driver has written is no file.
    #[error("the answer cannot be read: it is not a file")]
    NotAFile,
    /// It is too long.
    #[error("the answer is longer than 1 MiB")]
    TooLong,
    /// It cannot be read.
    #[error("the answer cannot be read: {0}")]
    Read(#[from] io::Error),
}

/// Returns the folder of a question.
pub fn folder_of(folder: &Path, number: usize) -> PathBuf {
    folder.join(number.to_string())
}

/// Prepares to ask: evaluates commands, looks programs up and makes a folder for each question.
///
/// # Errors
///
/// If any of that fails; then nothing is to be run.
pub fn prepare(
    project: &Project,
    environments: &Environments<'_>,
    questions: &[Question<'_>],
    options: &AskOptions<'_>,
) -> Result<Asking, CannotAsk> {
    let mut asking = Preparation {
        project,
        environments,
        options,
        finders: HashMap::new(),
        problems: SharedProblems::default(),
        missing: BTreeMap::new(),
    };
    let mut turns = Vec::with_capacity(questions.len());
    let mut attempts = Vec::with_capacity(questions.len());
    let mut tasks = Vec::with_capacity(questions.len());
    for (number, question) in questions.iter().enumerate() {
        let folder = folder_of(options.folder, number);
        fs::create_dir_all(&folder).map_err(CannotAsk::Folder)?;
        let Some(commands) = asking.commands(question, &folder) else {
            continue;
        };
        let (steps, commands): (Vec<Step>, Vec<Task>) = commands.into_iter().unzip();
        turns.push(Turn {
            stack: project.stacks[question.stack].path.clone(),
            operation: Operation::Ask,
            steps: steps.into(),
        });
        let own = project.attempts_of(question.stack);
        attempts.push(Attempts {
            // They are about the command of `orch run`.
            exit_codes: crate::project::attempt::ExitCodes::default(),
            ..own
        });
        tasks.push(commands);
    }
    let problems = asking.problems.into_vec();
    if !problems.is_empty() {
        return Err(CannotAsk::Problems(problems));
    }
    if !asking.missing.is_empty() {
        return Err(CannotAsk::Programs(asking.missing));
    }
    let n = turns.len();
    let precedence = Precedence::from_edges(n, n, std::iter::empty());
    let ranks = (0..n).map(|node| (node, u32::try_from(node).unwrap_or(u32::MAX)));
    let schedule = Schedule::new(precedence, ranks).on_error(OnError::Continue);
    Ok(Asking {
        execution: Execution {
            schedule: schedule.at_once(options.jobs, &[]),
            turns,
            attempts,
            timeout: None,
            grace: crate::run::settings::RunSettings::default().grace(),
            detailed_exit_code: false,
            had_changes: false,
        },
        tasks,
    })
}

/// Returns what a question was answered, given whether the status of its `plan` means changes.
///
/// # Errors
///
/// If there is no answer that can be used.
pub fn answer(
    question: &Question<'_>,
    folder: &Path,
    number: usize,
    has_changes: bool,
) -> Result<Answer, NoAnswer> {
    let folder = folder_of(folder, number);
    if question.driver.tool.is_some() {
        let file = File::open(folder.join(SHOWN_FILE))?;
        return Ok(read_plan(BufReader::new(file), question.kind)?);
    }
    let text = written(&folder.join(ANSWER_FILE))?;
    Ok(Answer::written(has_changes, &text)?)
}

/// Returns what a driver has written to a file; nothing if there is no file.
fn written(path: &Path) -> Result<Vec<u8>, NoAnswer> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    // Nobody writes to a pipe any more: reading it would never end.
    if !found.is_file() {
        return Err(NoAnswer::NotAFile);
    }
    let mut text = Vec::new();
    let file = File::open(path)?;
    file.take(MAX_ANSWER + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_ANSWER {
        return Err(NoAnswer::TooLong);
    }
    Ok(text)
}

struct Preparation<'a, 'p> {
    project: &'a Project,
    environments: &'a Environments<'p>,
    options: &'a AskOptions<'a>,
    finders: HashMap<OsString, ProgramFinder>,
    problems: SharedProblems,
    missing: BTreeMap<LookupError, Vec<StackIndex>>,
}

impl Preparation<'_, '_> {
    /// Returns the steps of a question with their commands; `None` if something is wrong.
    fn commands(&mut self, question: &Question<'_>, folder: &Path) -> Option<Vec<(Step, Task)>> {
        let stack = question.stack;
        let mut environment = match self.environments.of_stack(stack) {
            Ok(environment) => environment,
            Err(found) => {
                self.problems.add(stack, found);
                return None;
            }
        };
        let directory = self.project.stacks[stack].path.directory();
        let directory = directory.to_host(&self.project.root);
        let data = self.set_variables(question, folder, &mut environment);
        let initialized = question.driver.initialized(data.as_deref());
        let needs_init = self.options.init
            || initialized.is_some_and(|path| directory.join(path).symlink_metadata().is_err());
        let plan_file = folder.join(PLAN_FILE);
        let steps =
            question
                .driver
                .steps(question.kind, needs_init, &plan_file, self.options.extra);
        let namespaces = self.environments.namespaces().of_stack(stack);
        let mut commands = Vec::with_capacity(steps.len());
        for step in steps {
            let words = match step.words {
                Words::BuiltIn(words) => words,
                Words::Written(expr, extra) => match words_of_list(expr, &namespaces) {
                    Ok(words) => [words, extra].concat(),
                    Err(found) => {
                        self.problems.add(stack, found);
                        return None;
                    }
                },
            };
            let program = self.find(stack, &words, &directory, &environment)?;
            let task = Task {
                name: words[0].clone(),
                program,
                arguments: words[1..].to_vec(),
                directory: directory.clone(),
                environment: environment.clone(),
                answer: step.is_answer.then(|| folder.join(SHOWN_FILE)),
                stale: if step.is_plan {
                    vec![plan_file.clone(), folder.join(ANSWER_FILE)]
                } else {
                    Vec::new()
                },
            };
            let exit_codes = Arc::new(step.exit_codes);
            commands.push((Step::CommandWith(step.name.into(), exit_codes), task));
        }
        Some(commands)
    }

    /// Adds what a driver gets besides the environment of the stack; returns where the tool keeps its data,
    /// if that is not its usual place.
    fn set_variables(
        &self,
        question: &Question<'_>,
        folder: &Path,
        environment: &mut Environment,
    ) -> Option<String> {
        let text = |path: PathBuf| Some(path.to_string_lossy().into_owned());
        let mut set = |name: &str, value: Option<String>| {
            environment.insert(name.to_owned(), value);
        };
        set("ORCH_RUN_ID", Some(self.options.run.to_owned()));
        set("ORCH_ACTION", Some(question.asked.word().to_owned()));
        set("ORCH_PLAN_FILE", text(folder.join(PLAN_FILE)));
        set("ORCH_ANSWER", text(folder.join(ANSWER_FILE)));
        question.driver.tool?;
        let is_set = |name: &str| match environment.get(name) {
            Some(value) => value.is_some(),
            None => std::env::var_os(name).is_some(),
        };
        if !is_set("TF_IN_AUTOMATION") {
            environment.insert("TF_IN_AUTOMATION".to_owned(), Some("1".to_owned()));
        }
        // Terraform takes an empty one for none.
        if let Some(own) = environment.get(DATA) {
            return own.clone().filter(|own| !own.is_empty());
        }
        if let Ok(own) = std::env::var(DATA) {
            return Some(own).filter(|own| !own.is_empty());
        }
        let key = self.project.stacks[question.stack].path.key()?;
        let data = format!(".terraform/{}", file_name(key.as_str()));
        environment.insert(DATA.to_owned(), Some(data.clone()));
        Some(data)
    }

    fn find(
        &mut self,
        stack: StackIndex,
        words: &[OsString],
        directory: &Path,
        environment: &Environment,
    ) -> Option<PathBuf> {
        let name = &words[0];
        let path = match environment.get("PATH") {
            Some(own) => own.clone().map(OsString::from),
            None => std::env::var_os("PATH"),
        };
        let finder = self
            .finders
            .entry(name.clone())
            .or_insert_with(|| ProgramFinder::new(name));
        match finder.find(directory, path.as_deref().map(OsStr::new)) {
            Ok(program) => Some(program),
            Err(error) => {
                self.missing.entry(error).or_default().push(stack);
                None
            }
        }
    }
}

/// Returns a key as the name of a file.
fn file_name(key: &str) -> String {
    match key {
        "." | ".." => key.replace('.', "%2E"),
        key => key.replace('%', "%25").replace('/', "%2F"),
    }
}
