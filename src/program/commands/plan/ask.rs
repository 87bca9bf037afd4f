//! Asking the tools: a run of its own, whose output is shown only where a tool fails.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use orch::driver::{Answer, ChangedPlan};
use orch::path::StackPath;
use orch::plan::ask::{self, AskOptions, Asking, Question};
use orch::plan::code::{Code, Codes, PlanStack, RemovedCode};
use orch::plan::{CannotAsk, DriverRun, HiddenOption, PLAN_FILE, Purpose, begin};
use orch::printable::printable;
use orch::project::discover::RootRule;
use orch::record::journal::BaseRecord;
use orch::record::logs::{LogReader, Logs};
use orch::report::{failure_reason, first_error};
use orch::run::begun::Circumstances;
use orch::run::event::{Ending, Outcome, RunSummary};
use orch::run::execute::{Outlet, Task};
use orch::run::request::{Typed, new_id};
use orch::run::run_command::RunCommand;
use orch::run::schedule::OnError;
use orch::selection::select::Query;

use super::entries::Needed;
use super::starts::PlanStarts;
use super::{PlanRequest, PlanningArgs};
use crate::program::commands::Loaded;
use crate::program::commands::private_folder::PrivateFolder;
use crate::program::commands::run::command::CommandLines;
use crate::program::commands::run::output::{EndedOutput, How, Output, Show, Shown};
use crate::program::commands::run::{begin_error, holder, show_missing};
use crate::program::console;
use crate::program::error::{ProgramError, Result};
use orch::exit::ExitStatus;

pub(in crate::program::commands) use crate::program::commands::private_folder::PLANS as FOLDER;

const NO_ROOM: &str = "failed to make room for the plans";

/// What the tools have answered.
pub(super) struct AskedTools {
    /// The id of the run.
    pub(super) id: String,
    /// The answers, or why there is none.
    pub(super) answers: BTreeMap<StackPath, std::result::Result<Answer, String>>,
    /// The runs in which they were asked.
    rounds: Vec<Round>,
    turns: BTreeMap<StackPath, EndedTurn>,
    /// The folder of all rounds, until this is dropped.
    folder: Option<PrivateFolder>,
}

/// A run in which tools were asked.
struct Round {
    /// Its id.
    run: String,
    /// The folder of its answers and plans.
    folder: PrivateFolder,
    /// What the tools have printed.
    output: EndedOutput,
}

impl Round {
    fn new(run: &str, folder: PrivateFolder, output: EndedOutput) -> Self {
        Round {
            run: run.to_owned(),
            folder,
            output,
        }
    }
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
    /// How it ended.
    end: AskEnd,
}

/// How the turn of a tool ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AskEnd {
    /// The tool has answered, perhaps with nothing usable.
    Answered,
    /// Its plan failed.
    PlanFailed,
    /// A step before its plan failed.
    NotPlanned,
}

impl AskEnd {
    /// Returns how a turn ended. The offset says where its plan began, if it did.
    fn new(outcome: &Outcome, start: Option<u64>) -> Self {
        match (outcome, start) {
            (Outcome::Succeeded, _) => AskEnd::Answered,
            (_, Some(_)) => AskEnd::PlanFailed,
            (_, None) => AskEnd::NotPlanned,
        }
    }
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

    /// Forgets what a tool has answered that did not fail, so that it is asked again.
    pub(super) fn forget(&mut self, stack: &StackPath) {
        if let Some(Ok(_)) = self.answers.get(stack) {
            self.answers.remove(stack);
        }
    }

    /// Returns whether any tool was asked.
    pub(super) fn has_asked(&self) -> bool {
        !self.rounds.is_empty()
    }

    /// Returns the plan that the tool of a stack has written, if it has.
    pub(super) fn plan_of(&self, stack: &StackPath) -> Option<PathBuf> {
        let turn = self.turns.get(stack)?;
        let folder = ask::folder_of(self.rounds[turn.round].folder.path(), turn.number);
        let plan = folder.join(PLAN_FILE);
        plan.is_file().then_some(plan)
    }

    /// Returns the changes that the tool of a stack has planned, if it ran and names resources.
    pub(super) fn changed(&self, stack: &StackPath) -> Option<ChangedPlan> {
        let turn = self.turns.get(stack).filter(|turn| turn.shows_plans)?;
        let folder = self.rounds[turn.round].folder.path();
        // The caller reports that they are unknown.
        ask::changed(&ask::folder_of(folder, turn.number)).ok()
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

    /// Returns the run in which the tool of a stack ran, if the run is recorded.
    pub(super) fn run_of(&self, stack: &StackPath) -> Option<&str> {
        let turn = self.turns.get(stack)?;
        let round = &self.rounds[turn.round];
        round.output.is_kept().then_some(&*round.run)
    }

    /// Returns what the tool of a stack has printed, if anything, and where in it the plan begins, if the
    /// tool has not failed.
    pub(super) fn log(&self, stack: &StackPath) -> Option<(io::Result<LogReader>, Option<u64>)> {
        let turn = self.turns.get(stack)?;
        let logs = self.rounds[turn.round].output.logs.as_ref()?;
        let log = logs.reader(turn.number + 1, stack.as_str(), turn.attempt);
        Some((log.transpose()?, turn.plan_from))
    }

    /// Returns how the turn of a tool ended, if it ran.
    pub(super) fn end(&self, stack: &StackPath) -> Option<AskEnd> {
        self.turns.get(stack).map(|turn| turn.end)
    }

    /// Shows on stderr what the tool of a stack has printed.
    pub(super) fn show_output(&self, stack: &StackPath, why: &str) -> Result<()> {
        show_log(stack, why, self.log(stack).map(|(log, _)| log))
    }
}

/// Shows on stderr why a tool has failed in a stack, and what it has printed.
pub(super) fn show_log(
    stack: &StackPath,
    why: &str,
    log: Option<io::Result<LogReader>>,
) -> Result<()> {
    let mut writers = console::writers_to_stderr();
    // A reason may quote what a driver has written.
    let why = printable(why);
    writers.say(&format!("orch: {}: {why}\n", printable(stack.as_str())));
    let Some(log) = log else {
        return Ok(());
    };
    let failed = "failed to read what a tool has printed";
    writers.log(log.context(failed)?).context(failed)?;
    writers.end_text();
    Ok(())
}

/// What is asked about stacks that were removed.
#[derive(Default)]
pub(super) struct RemovedQuestions<'a, 'p> {
    /// Their code.
    pub(super) codes: &'a [RemovedCode<'a, 'p>],
    /// The questions, each with where the block of the driver says that its state is.
    pub(super) questions: Vec<(Question<'p>, Option<String>)>,
}

/// Asks the tools of all stacks that have to be asked, and have not been asked before.
pub(super) fn ask<'p>(
    loaded: &'p Loaded,
    request: &PlanRequest<'_>,
    query: &Query,
    needs: &[Needed<'_, '_>],
    removed: RemovedQuestions<'_, 'p>,
    earlier: AskedTools,
) -> Result<AskedTools> {
    let project = &loaded.project;
    let args = request.planning;
    let mut asked = earlier;
    let paths = |it: &Needed<'_, '_>| {
        Some((
            project.stacks[it.subject.stack].path.clone(),
            it.generation()?,
        ))
    };
    let generations = loaded.generations.planning(needs.iter().filter_map(paths));
    let environments = loaded.evaluator().in_generations(Arc::new(generations));
    let codes = Codes {
        tree: Code {
            project,
            environments: &environments,
        },
        removed: removed.codes,
    };
    let of_tree = needs.iter().filter_map(|needed| {
        let (kind, about) = needed.question()?;
        let question = Question {
            stack: PlanStack::Here(needed.subject.stack),
            driver: needed.subject.driver,
            kind,
            asked: about,
        };
        let made = needed.subject.made();
        let backend = made.map_or(&needed.subject.backend, |next| &next.backend);
        Some((question, backend.clone()))
    });
    let questions = of_tree.chain(removed.questions);
    let questions = questions.filter(|(it, _)| !asked.answers.contains_key(codes.path(it.stack)));
    let (questions, backends): (Vec<Question<'_>>, Vec<Option<String>>) = questions.unzip();
    if questions.is_empty() {
        return Ok(asked);
    }
    asked.id = new_id(&project.root);
    let place = match asked.folder.take() {
        Some(place) => place,
        None => PrivateFolder::of(loaded, FOLDER)?,
    };
    let folder = PrivateFolder::inside(Some(place.path())).context(NO_ROOM)?;
    let options = AskOptions {
        run: &asked.id,
        folder: folder.path(),
        init: args.init,
        extra: &args.extra,
        jobs: args.jobs(),
        lock_timeout: request.lock_timeout,
    };
    let asking = match ask::prepare(codes, &questions, &options) {
        Ok(asking) => asking,
        Err(cannot) => return Err(cannot_ask(loaded, cannot)),
    };
    let plans: Vec<Option<Task>> = asking.tasks.iter().map(|tasks| plan_of(tasks)).collect();
    let origin = request.origin(query);
    let ended = carry_out(loaded, args, origin, &asked.id, asking)?;
    let (summary, output, starts) = ended;
    if summary.signal.is_some() {
        return Err(ExitStatus::Run(summary.exit_status()).into());
    }
    for ending in &summary.endings {
        let number = ending.turn.get();
        let question = &questions[number];
        let (code, _) = codes.of(question.stack);
        let path = codes.path(question.stack);
        let answer = if ending.outcome == Outcome::Succeeded {
            let has_changes = ending.changes.is_some_and(|changes| changes.has_changes);
            let folder = ask::folder_of(folder.path(), number);
            let (driver, plan) = (&question.driver, &plans[number]);
            let is_partial = ask::is_partial(driver, &args.extra, plan.as_ref());
            let answer = ask::answer(driver, question.kind, &folder, has_changes, is_partial);
            let mut answer = match (answer, driver.tool, plan) {
                (Ok(answer), Some(tool), Some(plan)) => {
                    Ok(ask::of_command(answer, tool, &code.project.root, plan))
                }
                (answer, ..) => answer.map_err(|problem| problem.to_string()),
            };
            if let (Ok(answer), Some(backend)) = (&mut answer, &backends[number]) {
                answer.backend = Some(backend.clone());
            }
            answer
        } else {
            Err(why_failed(ending, path, output.logs.as_ref()))
        };
        let start = starts.get(&number).copied();
        let turn = EndedTurn {
            end: AskEnd::new(&ending.outcome, start),
            round: asked.rounds.len(),
            number,
            attempt: ending.attempts,
            plan_from: answer.is_ok().then_some(start.unwrap_or_default()),
            shows_plans: question.driver.tool.is_some(),
        };
        asked.turns.insert(path.clone(), turn);
        asked.answers.insert(path.clone(), answer);
    }
    asked.rounds.push(Round::new(&asked.id, folder, output));
    asked.folder = Some(place);
    Ok(asked)
}

/// Returns the command that plans.
fn plan_of(tasks: &[Task]) -> Option<Task> {
    let mut tasks = tasks.iter();
    let is_plan = |task: &&Task| task.arguments.first().is_some_and(|it| it == "plan");
    tasks.find(is_plan).cloned()
}

/// Returns why a tool has failed, with the first error that it has printed.
fn why_failed(ending: &Ending, path: &StackPath, logs: Option<&Logs>) -> String {
    let how = failure_reason(ending).unwrap_or_else(|| "its tool was not asked".to_owned());
    let log = logs.map(|logs| logs.reader(ending.turn.get() + 1, path.as_str(), ending.attempts));
    match log.and_then(|log| first_error(log.transpose()?)) {
        Some(error) => format!("{error} ({how})"),
        None => how,
    }
}

/// Returns why the tools cannot be asked.
pub(in crate::program::commands) fn cannot_ask(loaded: &Loaded, cannot: CannotAsk) -> ProgramError {
    match cannot {
        CannotAsk::Problems(shared) => {
            loaded.give_shared(shared);
            ExitStatus::Configuration.into()
        }
        CannotAsk::Programs(missing) => {
            show_missing(loaded, &missing);
            ExitStatus::External.into()
        }
        CannotAsk::Removed(stack, why) => anyhow::anyhow!(
            "`{}` was removed, and its code cannot be used: {}",
            printable(stack.as_str()),
            printable(&why)
        )
        .into(),
        CannotAsk::Hidden(found) => hidden(&found),
        CannotAsk::Folder(error) => anyhow::Error::new(error).context(NO_ROOM).into(),
    }
}

/// Refuses options that would change what the tools do.
fn hidden(found: &[HiddenOption]) -> ProgramError {
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    let message = format!(
        "options would change what the tools do, so nothing was run:\n  {}",
        lines.join("\n  ")
    );
    ProgramError::refused(message).hint("remove the option; instead, run `orch destroy` or `orch plan --refresh-only`, or add `-target` after `--`")
}

/// Where a run comes from in which tools are asked, for its journal.
#[derive(Clone)]
pub(in crate::program::commands) struct Origin {
    /// What it is for.
    pub(in crate::program::commands) purpose: Purpose,
    /// What changes were measured from.
    pub(in crate::program::commands) base: Option<BaseRecord>,
    /// Whether the run has a journal.
    pub(in crate::program::commands) is_recorded: bool,
}

/// Runs the tools; shows only how far they are, on a terminal. Also returns where plans begin that do not
/// begin with their logs, by turn.
pub(in crate::program::commands) fn carry_out(
    loaded: &Loaded,
    args: &PlanningArgs,
    origin: Origin,
    id: &str,
    asking: Asking,
) -> Result<(Arc<RunSummary>, EndedOutput, BTreeMap<usize, u64>)> {
    let root = &loaded.project.root;
    let jobs = args.jobs();
    let run = DriverRun {
        id,
        purpose: origin.purpose,
        plan: None,
        on_error: OnError::Continue,
        jobs,
        typed: Typed {
            arguments: std::env::args_os().skip(1).collect(),
            directory: loaded.directory.clone(),
        },
        policies: None,
        base: origin.base,
    };
    let circumstances = Circumstances {
        is_recorded: origin.is_recorded && loaded.rule != RootRule::WorkingDirectory,
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
    let ended = begun.carry_out(output.streams()?, &mut [&mut output, &mut starts], None);
    let output = output.end();
    if let Some(problem) = ended.problem {
        console::warning(&problem.to_string());
    }
    Ok((ended.summary, output, starts.into_offsets()))
}
