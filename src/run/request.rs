//! A run from the request to the summary, for every command that runs something.
//!
//! [`RunRequest::prepare`] checks everything before the first command starts, [`PreparedRun::begin`] takes the lock
//! and begins the journal, and [`StartedRun::execute`] runs. The caller shows the output.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tracing::debug;
use uuid::Uuid;

use crate::author;
use crate::error::Result;
use crate::folder::GuardedFolder;
use crate::git::{GitError, Repository};
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::attempt::Attempts;
use crate::project::config::RecordKind;
use crate::project::environment::Environment;
use crate::project::stack::StackIndex;
use crate::record::journal::Word;
use crate::record::journal::{
    BaseRecord, FORMAT, Header, PoliciesRecord, RunRecord, Runs, UncommittedFile, arguments,
};
use crate::run::execute::{Execution, LookupError, ProgramFinder, Task};
use crate::run::order::{Direction, RunOrder};
use crate::run::resume::ResumedRun;
use crate::run::run_command::{CommandKind, RunCommand};
use crate::run::schedule::Schedule;
use crate::run::settings::{RunSettings, SettingsError};
use crate::run::started::{BeginOptions, StartedRun};
use crate::run::steps::command_steps;
use crate::run::tool::AppliedPlan;
use crate::run::turn::{Step, Turn};
use crate::selection::graph::digest;
use crate::selection::reference::References;

pub struct RunRequest {
    pub command: RunCommand,
    /// The stacks, in order.
    pub order: RunOrder,
    pub direction: Direction,
    pub settings: RunSettings,
    pub environments: Vec<(StackIndex, Environment)>,
    pub resumes: Option<ResumedRun>,
    pub base: Option<BaseRecord>,
    /// The command line of the user and its directory, only for the record.
    pub invocation: Invocation,
    /// The id of the run, if it has one already.
    pub id: Option<String>,
    /// Whether only other machines run it, so that programs may be missing here.
    pub runs_elsewhere: bool,
}

/// The command line after `orch`, and its directory.
pub struct Invocation {
    pub arguments: Vec<OsString>,
    pub directory: ProjectPath,
}

/// Why a run cannot be prepared.
#[derive(Debug)]
pub enum PrepareError {
    /// The settings cannot be applied.
    Settings(SettingsError),
    Programs(BTreeMap<LookupError, Vec<StackIndex>>),
}

/// A run that may start.
pub struct PreparedRun {
    request: RunRequest,
    pub id: String,
    /// The stacks, in the sequence of a serial run; each has the turn of its position.
    pub sequence: Vec<StackIndex>,
    /// The limits and retries of each turn.
    pub attempts: Vec<Attempts>,
    /// The commands of each turn.
    pub tasks: Vec<Vec<Task>>,
    /// For each turn, the plan file of a tool that it applies, and the effect of that.
    pub plan_files: Vec<Option<AppliedPlan>>,
    /// The record of the policies that follow the run, if any do.
    pub policies: Option<PoliciesRecord>,
}

impl RunRequest {
    /// Prepares the command of every stack of the project, so that nothing starts if one cannot.
    /// Fails if the settings cannot be applied, or a program is missing.
    pub fn prepare(mut self, project: &Project) -> Result<PreparedRun, PrepareError> {
        let sequence = self.order.sequence_of_turns(self.direction);
        let attempts = self
            .settings
            .attempts(project, &self.command, &sequence)
            .map_err(PrepareError::Settings)?;
        let id = self.id.take().unwrap_or_else(|| new_id(&project.root));
        let tasks = self
            .tasks(project, &sequence, &id)
            .map_err(PrepareError::Programs)?;
        Ok(PreparedRun {
            request: self,
            id,
            sequence,
            attempts,
            plan_files: vec![None; tasks.len()],
            tasks,
            policies: None,
        })
    }

    fn tasks(
        &mut self,
        project: &Project,
        sequence: &[StackIndex],
        id: &str,
    ) -> Result<Vec<Vec<Task>>, BTreeMap<LookupError, Vec<StackIndex>>> {
        let mut environments: HashMap<StackIndex, Environment> =
            std::mem::take(&mut self.environments).into_iter().collect();
        let mut tasks = Vec::with_capacity(sequence.len());
        let mut missing: BTreeMap<LookupError, Vec<StackIndex>> = BTreeMap::new();
        let mut finder = TaskFinder::new(project, id);
        finder.may_lack_programs = self.runs_elsewhere;
        for &stack in sequence {
            let environment = environments.remove(&stack).unwrap_or_default();
            match finder.find_all(stack, self.command.commands(stack), &environment) {
                Ok(of_stack) => tasks.push(of_stack),
                Err(error) => missing.entry(error).or_default().push(stack),
            }
        }
        for stacks in missing.values_mut() {
            stacks.sort_unstable();
        }
        if missing.is_empty() {
            Ok(tasks)
        } else {
            Err(missing)
        }
    }
}

impl PreparedRun {
    /// Makes room for the commands, takes the lock and begins the journal. From now on signals
    /// reach the run, whose journal records them. Fails if I/O or the operating system fails, or
    /// another run is in progress.
    pub fn begin(
        self,
        project: &Project,
        references: &References,
        circumstances: BeginOptions<'_>,
    ) -> Result<StartedRun> {
        let settings = &self.request.settings;
        let one: Arc<[Step]> = [Step::Command("command".into())].into();
        let turns = self.sequence.iter().zip(&self.tasks).zip(&self.attempts);
        let turns = turns.map(|((&stack, tasks), attempts)| {
            let path = project.stacks[stack].path.clone();
            match tasks.len() {
                1 => Turn::of_command(path, &one),
                _ => Turn::of_command(path, &command_steps(tasks, attempts)),
            }
        });
        let turns: Vec<Turn> = turns.collect();
        let jobs = settings.jobs();
        let execution = Execution {
            schedule: self.schedule().at_once(jobs, &settings.limits(project)),
            turns,
            attempts: self.attempts.clone(),
            timeout: settings.run_timeout,
            grace: settings.grace(),
            detailed_exit_code: settings.detailed_exit_code,
            had_changes: self
                .request
                .resumes
                .as_ref()
                .is_some_and(|run| run.had_changes),
            left_out_status: 0,
            n_earlier: 0,
            is_rejected: false,
        };
        let uncommitted = circumstances.uncommitted.clone();
        let header = || self.header(project, references, uncommitted);
        let tasks = self.tasks.clone();
        StartedRun::begin(
            &project.root,
            &self.id,
            execution,
            tasks,
            jobs,
            header,
            circumstances,
        )
    }

    pub fn schedule(&self) -> Schedule {
        let on_error = self.request.settings.on_error();
        self.request
            .order
            .schedule(self.request.direction, on_error)
    }

    /// Returns whether it runs the follow-ups of a work order.
    pub fn follows_order(&self) -> bool {
        let resumes = self.request.resumes.as_ref();
        resumes.is_some_and(|it| it.part_of.is_some())
    }

    pub fn settings(&self) -> &RunSettings {
        &self.request.settings
    }

    pub fn direction(&self) -> Direction {
        self.request.direction
    }

    /// Returns the tie-break of a stack: the lowest runs first.
    pub fn rank(&self, stack: StackIndex) -> u32 {
        self.request.order.rank(stack)
    }

    /// Returns how many commands run at the same time.
    pub fn jobs(&self) -> NonZeroUsize {
        self.request.settings.jobs()
    }

    /// Returns the kind of recording, if it is set explicitly.
    pub fn recording(&self) -> Option<RecordKind> {
        self.request.settings.recording
    }

    /// Returns the record that the run would begin with.
    pub fn plan(&self, project: &Project, references: &References) -> RunRecord {
        RunRecord::new(self.header(project, references, None))
    }

    fn header(
        &self,
        project: &Project,
        references: &References,
        uncommitted: Option<Vec<UncommittedFile>>,
    ) -> Header {
        let request = &self.request;
        let stacks = &project.stacks;
        let paths = |of: &[StackIndex]| -> Vec<String> {
            let path = |stack: &StackIndex| stacks[*stack].path.to_string();
            of.iter().map(path).collect()
        };
        let earlier = request.resumes.as_ref();
        let order = match earlier {
            Some(earlier) => earlier.undone(&self.sequence),
            None => self.sequence.clone(),
        };
        let earlier_base = || earlier?.base.clone();
        Header {
            format: FORMAT,
            run: self.id.clone(),
            orch: env!("CARGO_PKG_VERSION").to_owned(),
            at: Timestamp::now(),
            host: author::host(),
            process: std::process::id(),
            arguments: arguments(&request.invocation.arguments),
            directory: request.invocation.directory.to_string(),
            resumes: earlier.map(|earlier| earlier.run.clone()),
            command: arguments(request.command.given()),
            purpose: None,
            plan: None,
            eval: request.command.kind() == CommandKind::Template,
            script: match request.command.kind() {
                CommandKind::Script => arguments(request.command.words()),
                CommandKind::Plain | CommandKind::Template => Vec::new(),
            },
            edges: request.order.edges(request.direction, &order),
            order: paths(&order),
            left_out: earlier.map_or(Vec::new(), |earlier| paths(&earlier.left_out)),
            turns: Vec::new(),
            direction: Word::Known(request.direction),
            settings: (&request.settings).into(),
            base: request.base.clone().or_else(earlier_base),
            head: head(&project.root).unwrap_or_else(|error| {
                debug!(%error, "HEAD cannot be read");
                None
            }),
            uncommitted,
            policies: self.policies.clone(),
            graph: digest(stacks, references),
            environment: names(self.tasks.iter().flatten().map(|task| &task.environment)),
            part_of: earlier.and_then(|earlier| earlier.part_of.clone()),
        }
    }
}

/// Finds the programs of commands, each once for all stacks that find it in the same place.
pub struct TaskFinder<'a> {
    project: &'a Project,
    run: &'a str,
    host_path: Option<OsString>,
    finders: HashMap<OsString, ProgramFinder>,
    may_lack_programs: bool,
}

impl<'a> TaskFinder<'a> {
    /// Returns the finder for a run with this id.
    pub fn new(project: &'a Project, run: &'a str) -> Self {
        TaskFinder {
            project,
            run,
            host_path: std::env::var_os("PATH"),
            finders: HashMap::new(),
            may_lack_programs: false,
        }
    }

    /// Returns the commands of a stack, given the words of each, of which there is at least one. A
    /// program with a path may be made by an earlier command, so it need not exist yet. Fails if a
    /// program cannot be run.
    pub fn find_all(
        &mut self,
        stack: StackIndex,
        commands: &[Vec<OsString>],
        environment: &Environment,
    ) -> Result<Vec<Task>, LookupError> {
        let mut tasks: Vec<Task> = Vec::with_capacity(commands.len());
        for words in commands {
            let task = match (self.find(stack, words, environment.clone()), tasks.first()) {
                (Err(_), Some(first)) if Path::new(&words[0]).components().count() > 1 => Task {
                    name: words[0].clone(),
                    program: first.directory.join(&words[0]),
                    arguments: words[1..].to_vec(),
                    ..first.clone()
                },
                (found, _) => found?,
            };
            tasks.push(task);
        }
        Ok(tasks)
    }

    /// Returns a command in a stack, given its words, of which there is at least one. Fails if its
    /// program cannot be run.
    pub fn find(
        &mut self,
        stack: StackIndex,
        words: &[OsString],
        mut environment: Environment,
    ) -> Result<Task, LookupError> {
        let directory = self.project.stacks[stack]
            .path
            .directory()
            .to_host(&self.project.root);
        let search = match path_of(&environment) {
            Some(path) => path.clone().map(OsString::from),
            None => self.host_path.clone(),
        };
        environment.insert("ORCH_RUN_ID".to_owned(), Some(self.run.to_owned()));
        let (name, arguments) = words.split_first().expect("there is a command");
        let finder = self
            .finders
            .entry(name.clone())
            .or_insert_with(|| ProgramFinder::new(name));
        let program = match finder.find(&directory, search.as_deref()) {
            Err(_) if self.may_lack_programs => PathBuf::from(name),
            found => found?,
        };
        Ok(Task {
            name: name.clone(),
            program,
            arguments: arguments.to_vec(),
            directory,
            environment,
            answer: None,
            stale: Vec::new(),
        })
    }
}

/// Returns the id of a new run: greater than that of every recorded run.
pub fn new_id(root: &Path) -> String {
    let folder = GuardedFolder::find(root).ok().flatten();
    let runs = folder.and_then(|folder| Runs::find(folder).ok());
    runs.map_or_else(|| Uuid::now_v7().to_string(), |runs| runs.new_id())
}

/// Returns how long turns with the same command took in recorded runs, by the path of their stack.
pub fn past_durations(root: &Path, command: &RunCommand) -> HashMap<String, Duration> {
    let words = arguments(command.given());
    past(root, |header| {
        let is_template = command.kind() == CommandKind::Template;
        header.command == words && header.eval == is_template
    })
}

/// Returns how long applies took in recorded runs, by the path of their stack.
pub(crate) fn past_applies(root: &Path) -> HashMap<String, Duration> {
    past(root, |header| header.purpose.as_deref() == Some("apply"))
}

fn past(root: &Path, is_alike: impl Fn(&Header) -> bool) -> HashMap<String, Duration> {
    let folder = GuardedFolder::find(root).ok().flatten();
    let runs = folder.and_then(|folder| Runs::find(folder).ok());
    runs.map_or_else(HashMap::new, |runs| runs.past_durations(is_alike))
}

/// Returns the `PATH` of a stack's own environment. On Windows its name may be in any case.
fn path_of(environment: &Environment) -> Option<&Option<String>> {
    let is_path = |name: &str| name == "PATH" || cfg!(windows) && name.eq_ignore_ascii_case("PATH");
    environment
        .iter()
        .find(|(name, _)| is_path(name))
        .map(|(_, value)| value)
}

/// Returns the names of the variables that commands get, sorted; of different environments, those
/// that any of them has.
pub(crate) fn names<'e>(environments: impl Iterator<Item = &'e Environment>) -> Vec<String> {
    let host: BTreeSet<String> = std::env::vars_os()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    let mut set: BTreeSet<&str> = BTreeSet::new();
    let mut removed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut n_environments = 0;
    for environment in environments {
        n_environments += 1;
        for (name, value) in environment {
            match value {
                Some(_) => _ = set.insert(name),
                None => *removed.entry(name).or_default() += 1,
            }
        }
    }
    let inherited = host.iter().map(String::as_str);
    set.extend(inherited.filter(|name| removed.get(name) != Some(&n_environments)));
    set.into_iter().map(str::to_owned).collect()
}

/// Returns the commit of HEAD; nothing outside of git and before the first commit.
pub(crate) fn head(root: &Path) -> Result<Option<String>, GitError> {
    let head = Repository::open(root).and_then(|repository| repository.commit("HEAD"));
    match head {
        Ok(head) => Ok(head.map(|head| head.to_string())),
        Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
