//! Asking the tools: a run of its own, whose output is shown only where a tool fails.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use orch::driver::Answer;
use orch::folder::GuardedFolder;
use orch::path::StackPath;
use orch::plan::ask::{self, AskOptions, Asking, Question};
use orch::plan::{CannotAsk, DriverRun, PLAN_FILE, Purpose, begin};
use orch::printable::printable;
use orch::project::discover::RootRule;
use orch::project::environment::Environments;
use orch::project::stack::StackIndex;
use orch::record::logs::LogReader;
use orch::report::failure_text;
use orch::run::begun::Circumstances;
use orch::run::event::{Outcome, RunSummary};
use orch::run::execute::{Outlet, Task};
use orch::run::recording::RecordingNote;
use orch::run::request::{Typed, new_id};
use orch::run::run_command::RunCommand;
use orch::run::schedule::OnError;
use orch::selection::select::Query;
use tempfile::TempDir;

use super::entries::Needed;
use super::starts::PlanStarts;
use super::{PlanningArgs, Subject};
use crate::program::commands::run::command::CommandLines;
use crate::program::commands::run::output::{EndedOutput, How, Output, Show, Shown};
use crate::program::commands::run::{base_record, begin_error, holder, show_missing};
use crate::program::commands::{Loaded, host_environment};
use crate::program::console;
use crate::program::error::Result;
use crate::program::exit::ExitStatus;

/// The folder of `.orch` for answers and plans while they are made: both may hold secrets.
const FOLDER: &str = "plans";

/// How the names of these folders begin.
const PREFIX: &str = "orch-plan-";

/// The file of such a folder that is locked while it is used.
const IN_USE: &str = "in-use";

const NO_ROOM: &str = "failed to make room for the plans";

/// What the tools have answered.
pub(super) struct AskedTools {
    /// The id of the run.
    pub(super) id: String,
    /// The answers, or why there is none.
    pub(super) answers: BTreeMap<StackIndex, std::result::Result<Answer, String>>,
    /// The runs in which they were asked.
    rounds: Vec<Round>,
    turns: BTreeMap<StackPath, EndedTurn>,
    /// The folder of all rounds, until this is dropped.
    folder: Option<PrivateFolder>,
}

/// A run in which tools were asked.
struct Round {
    /// The folder of its answers and plans.
    folder: PrivateFolder,
    /// What the tools have printed.
    output: EndedOutput,
}

/// The turn of a tool.
struct EndedTurn {
    /// The round.
    round: usize,
    /// Its number in that, from 0.
    number: usize,
    /// Its last attempt.
    attempt: u32,
    /// Where in the log of that attempt the plan begins, if the tool has not failed.
    plan_from: Option<u64>,
    /// Whether the tool can show its plans.
    shows_plans: bool,
}

impl AskedTools {
    /// Returns what is known before anybody is asked.
    pub(super) fn none(loaded: &Loaded) -> Self {
        AskedTools {
            id: new_id(&loaded.project.root),
            answers: BTreeMap::new(),
            rounds: Vec::new(),
            turns: BTreeMap::new(),
            folder: None,
        }
    }

    /// Returns the plan that the tool of a stack has written, if it has.
    pub(super) fn plan_of(&self, stack: &StackPath) -> Option<PathBuf> {
        let turn = self.turns.get(stack)?;
        let folder = ask::folder_of(self.rounds[turn.round].folder.path(), turn.number);
        let plan = folder.join(PLAN_FILE);
        plan.is_file().then_some(plan)
    }

    /// Returns whether the tool of a stack has written a plan that it can show.
    pub(super) fn has_shown_plan(&self, stack: &StackPath) -> bool {
        let turn = self.turns.get(stack);
        turn.is_some_and(|turn| turn.shows_plans) && self.plan_of(stack).is_some()
    }

    /// Returns whether what the tools have printed stays on record.
    pub(super) fn is_recorded(&self) -> bool {
        let mut rounds = self.rounds.iter();
        rounds.any(|round| round.output.is_kept())
    }

    /// Returns what the tool of a stack has printed, if anything, and where in it the plan begins, if the
    /// tool has not failed.
    pub(super) fn log(&self, stack: &StackPath) -> Option<(io::Result<LogReader>, Option<u64>)> {
        let turn = self.turns.get(stack)?;
        let logs = self.rounds[turn.round].output.logs.as_ref()?;
        let log = logs.reader(turn.number + 1, stack.as_str(), turn.attempt);
        Some((log.transpose()?, turn.plan_from))
    }

    /// Shows on stderr what the tool of a stack has printed.
    pub(super) fn show_output(&self, stack: &StackPath, why: &str) -> Result<()> {
        let mut writers = console::writers_to_stderr();
        // A reason may quote what a driver has written.
        let why = printable(why);
        writers.say(&format!("orch: {}: {why}\n", printable(stack.as_str())));
        let Some((log, _)) = self.log(stack) else {
            return Ok(());
        };
        let failed = "failed to read what a tool has printed";
        writers.log(log.context(failed)?).context(failed)?;
        writers.end_text();
        Ok(())
    }
}

/// Asks the tools of all stacks that have to be asked, and have not been asked before; the exit status if that
/// is not possible.
pub(super) fn ask(
    loaded: &Loaded,
    args: &PlanningArgs,
    query: &Query,
    needs: &[Needed<'_, '_>],
    earlier: AskedTools,
) -> Result<std::result::Result<AskedTools, ExitStatus>> {
    let project = &loaded.project;
    let mut asked = earlier;
    let questions = needs.iter().filter_map(|needed| {
        let (kind, about) = needed.question()?;
        let stack = needed.subject.stack;
        let question = Question {
            stack,
            driver: needed.subject.driver,
            kind,
            asked: about,
        };
        let is_open = !asked.answers.contains_key(&stack);
        is_open.then_some((question, needed.subject))
    });
    let (questions, subjects): (Vec<Question<'_>>, Vec<&Subject<'_>>) = questions.unzip();
    if questions.is_empty() {
        return Ok(Ok(asked));
    }
    asked.id = new_id(&project.root);
    let place = match asked.folder.take() {
        Some(place) => place,
        None => private_folder(loaded)?,
    };
    let folder = private_in(Some(place.path())).context(NO_ROOM)?;
    let environments = Environments::new(project, host_environment());
    let options = AskOptions {
        run: &asked.id,
        folder: folder.path(),
        init: args.init,
        extra: &args.extra,
        jobs: args.jobs(),
    };
    let asking = match ask::prepare(project, &environments, &questions, &options) {
        Ok(asking) => asking,
        Err(cannot) => return cannot_ask(loaded, cannot).map(Err),
    };
    let plans = asking.tasks.iter().map(|tasks| {
        let mut tasks = tasks.iter();
        tasks.find(|task| task.arguments.first().is_some_and(|it| it == "plan"))
    });
    let plans: Vec<Option<Task>> = plans.map(Option::<&Task>::cloned).collect();
    let (summary, output, starts) =
        carry_out(loaded, args, query, &asked.id, place.path(), asking)?;
    if summary.signal.is_some() {
        return Ok(Err(ExitStatus::Run(summary.exit_status())));
    }
    for ending in &summary.endings {
        let number = ending.turn.get();
        let question = &questions[number];
        let path = &project.stacks[question.stack].path;
        let answer = if ending.outcome == Outcome::Succeeded {
            let has_changes = ending.changes.is_some_and(|changes| changes.has_changes);
            let folder = ask::folder_of(folder.path(), number);
            let answer = ask::answer(&question.driver, question.kind, &folder, has_changes);
            let mut answer = match (answer, &plans[number]) {
                (Ok(answer), Some(plan)) if question.driver.tool.is_some() => {
                    Ok(ask::of_command(answer, &project.root, plan))
                }
                (answer, _) => answer.map_err(|problem| problem.to_string()),
            };
            if let (Ok(answer), Some(backend)) = (&mut answer, &subjects[number].backend) {
                answer.backend = Some(backend.clone());
            }
            answer
        } else {
            Err(failure_text(ending).unwrap_or_else(|| "its tool was not asked".to_owned()))
        };
        let start = starts.get(&number).copied().unwrap_or_default();
        let turn = EndedTurn {
            round: asked.rounds.len(),
            number,
            attempt: ending.attempts,
            plan_from: answer.is_ok().then_some(start),
            shows_plans: question.driver.tool.is_some(),
        };
        asked.turns.insert(path.clone(), turn);
        asked.answers.insert(question.stack, answer);
    }
    asked.rounds.push(Round { folder, output });
    asked.folder = Some(place);
    Ok(Ok(asked))
}

/// Says why nobody can be asked.
pub(in crate::program::commands) fn cannot_ask(
    loaded: &Loaded,
    cannot: CannotAsk,
) -> Result<ExitStatus> {
    match cannot {
        CannotAsk::Problems(shared) => {
            loaded.show_shared(shared);
            Ok(ExitStatus::Configuration)
        }
        CannotAsk::Programs(missing) => {
            show_missing(loaded, &missing);
            Ok(ExitStatus::External)
        }
        CannotAsk::Folder(error) => Err(anyhow::Error::new(error).context(NO_ROOM).into()),
    }
}

/// Runs the tools; shows only how far they are, on a terminal. Also returns where plans begin that do not
/// begin with their logs, by turn.
fn carry_out(
    loaded: &Loaded,
    args: &PlanningArgs,
    query: &Query,
    id: &str,
    folder: &Path,
    asking: Asking,
) -> Result<(Arc<RunSummary>, EndedOutput, BTreeMap<usize, u64>)> {
    let root = &loaded.project.root;
    let jobs = args.jobs();
    let run = DriverRun {
        id,
        purpose: Purpose::Plan,
        plan: None,
        on_error: OnError::Continue,
        jobs,
        typed: Typed {
            arguments: std::env::args_os().skip(1).collect(),
            directory: loaded.directory.clone(),
        },
        base: base_record(query.since().as_ref()),
    };
    let circumstances = Circumstances {
        is_recorded: loaded.rule != RootRule::WorkingDirectory,
        allow_concurrent: false,
        uncommitted: None,
        is_reported: false,
        events: None,
        inbox: None,
    };
    let turns = asking.execution.turns.clone();
    let begun = begin(
        asking.execution,
        asking.tasks,
        &run,
        &loaded.project,
        &loaded.references,
        circumstances,
    );
    let begun = begun.map_err(|error| begin_error(error, false))?;
    begun.notes.iter().for_each(holder::show);
    let is_unlocked =
        |note: &RecordingNote| matches!(note, RecordingNote::NoLock(_) | RecordingNote::Nothing(_));
    if begun.folder().is_some() && !begun.notes.iter().any(is_unlocked) {
        sweep(folder);
    }
    let command = RunCommand::plain(vec!["plan".into()]);
    let mut output = Output::new(
        root,
        Shown {
            how: How::Captured {
                show: Show::Silent,
                outlet: Outlet::Pipes,
            },
            commands: CommandLines::new(&command, &[]),
            // Only a terminal shows how far it is.
            is_quiet: !std::io::stderr().is_terminal(),
            jobs,
            run_id: id,
            logs: begun.folder().map(|folder| folder.join("logs")),
            past: &HashMap::new,
        },
    )?;
    let logs = output.logs().expect("the output is captured");
    let mut starts = PlanStarts::new(logs, &turns);
    let ended = begun.carry_out(output.streams(), &mut [&mut output, &mut starts], None);
    let output = output.end();
    if let Some(problem) = ended.problem {
        console::warning(&problem.to_string());
    }
    Ok((ended.summary, output, starts.into_offsets()))
}

/// Removes the folders that killed plans have left beside ours. The others are in use: somebody may be
/// thinking about the plan in one.
fn sweep(own: &Path) {
    let beside = own.parent().and_then(|place| place.read_dir().ok());
    for entry in beside.into_iter().flatten().flatten() {
        let is_plan = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_plan && is_folder && entry.path() != own && is_left(&entry.path()) {
            // What cannot be removed is tried again by the next plan.
            _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns whether the process that has made a folder is gone.
fn is_left(folder: &Path) -> bool {
    match File::open(folder.join(IN_USE)) {
        Ok(file) => file.try_lock().is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// A folder that only its owner can look into, and that goes when this is dropped.
pub(in crate::program::commands) struct PrivateFolder {
    folder: TempDir,
    /// Locked, so that nobody takes the folder for one that a killed process has left.
    _in_use: File,
}

impl PrivateFolder {
    /// Returns where it is.
    pub(in crate::program::commands) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Makes a folder that only its owner can look into, and that goes with the plan.
pub(in crate::program::commands) fn private_folder(loaded: &Loaded) -> Result<PrivateFolder> {
    let place: Option<PathBuf> = if loaded.rule == RootRule::WorkingDirectory {
        None
    } else {
        let folder = GuardedFolder::create(&loaded.project.root).context(NO_ROOM)?;
        Some(folder.private_directory(FOLDER).context(NO_ROOM)?)
    };
    Ok(private_in(place.as_deref()).context(NO_ROOM)?)
}

/// Makes such a folder in another one, or where the system has these.
fn private_in(place: Option<&Path>) -> io::Result<PrivateFolder> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let folder = match place {
        Some(place) => builder.tempdir_in(place),
        None => builder.tempdir(),
    }?;
    let in_use = File::create_new(folder.path().join(IN_USE))?;
    in_use.lock()?;
    Ok(PrivateFolder {
        folder,
        _in_use: in_use,
    })
}
