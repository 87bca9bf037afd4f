//! Asking the tools: a run of its own, whose output is shown only where a tool fails.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use super::PlanRequest;
use super::entries::Needed;
use crate::context::{Context, PLANS as FOLDER, PrivateFolder};
use crate::driver::{Answer, ChangedPlan};
use crate::error::{Error, ErrorContext as _, Result};
use crate::exit::ExitStatus;
use crate::path::StackPath;
use crate::plan::ask::{self, AskOptions, Asking, Question};
use crate::plan::code::{Code, Codes, PlanStack, RemovedCode};
use crate::plan::{CannotAsk, PLAN_FILE, Purpose};
use crate::record::journal::BaseRecord;
use crate::record::logs::{LogReader, Logs};
use crate::run::event::{Ending, Outcome, RunSummary};
use crate::run::execute::Task;
use crate::run::request::new_id;
use crate::selection::select::Query;

/// What has failed where there is no place for answers and plans.
pub const NO_ROOM: &str = "failed to make room for the plans";

/// Asks the tools of stacks. The planner decides what is asked; this runs the commands, and shows those that fail.
pub trait Ask {
    /// Runs the tools, and returns how each ended.
    ///
    /// # Errors
    ///
    /// If the run cannot begin.
    fn run(&self, context: &Context, run: AskRun<'_>) -> Result<AskedRun>;

    /// Describes why a tool failed, with the first error that it printed.
    fn why_failed(&self, ending: &Ending, stack: &StackPath, logs: Option<&Logs>) -> String;

    /// Describes how a command failed, if it did.
    fn failure(&self, ending: &Ending) -> Option<String>;

    /// Shows why a tool failed in a stack, and what it printed.
    ///
    /// # Errors
    ///
    /// If its log cannot be read.
    fn show_log(
        &self,
        stack: &StackPath,
        why: &str,
        log: Option<io::Result<LogReader>>,
    ) -> Result<()>;

    /// Shows why the tools cannot be asked, and returns the error.
    fn refuse(&self, context: &Context, cannot: CannotAsk) -> Error;
}

/// A run in which tools are asked.
pub struct AskRun<'a> {
    /// The id of the run.
    pub id: &'a str,
    /// Where it comes from.
    pub origin: Origin,
    /// How many tools run at once.
    pub jobs: NonZeroUsize,
    /// What is run.
    pub asking: Asking,
}

/// A run in which tools were asked.
pub struct AskedRun {
    /// How each tool ended.
    pub summary: Arc<RunSummary>,
    /// What they printed.
    pub output: EndedOutput,
    /// Where plans begin that do not begin with their logs, by turn.
    pub starts: BTreeMap<usize, u64>,
}

/// The output of a run that is over.
pub struct EndedOutput {
    /// Its logs, if it was captured.
    pub logs: Option<Logs>,
    /// Their temporary location, if they are not kept.
    pub temporary: Option<TempDir>,
}

impl EndedOutput {
    /// Returns whether its logs stay.
    pub fn is_kept(&self) -> bool {
        self.logs.is_some() && self.temporary.is_none()
    }
}

/// What the tools have answered.
pub struct AskedTools {
    /// The id of the run.
    pub id: String,
    /// The answers, or why there is none.
    pub answers: BTreeMap<StackPath, std::result::Result<Answer, String>>,
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
    round: usize,
    /// Its number in that, from 0.
    number: usize,
    /// Its last attempt.
    attempt: u32,
    /// Where in the log of that attempt the plan begins, if the tool has not failed.
    plan_from: Option<u64>,
    /// Whether the tool can show its plans.
    shows_plans: bool,
    end: AskEnd,
}

/// How the turn of a tool ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AskEnd {
    /// The tool has answered, perhaps with nothing usable.
    Answered,
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
    pub fn none(context: &Context) -> Self {
        AskedTools {
            id: new_id(&context.project.root),
            answers: BTreeMap::new(),
            rounds: Vec::new(),
            turns: BTreeMap::new(),
            folder: None,
        }
    }

    /// Forgets what a tool has answered that did not fail, so that it is asked again.
    pub fn forget(&mut self, stack: &StackPath) {
        if let Some(Ok(_)) = self.answers.get(stack) {
            self.answers.remove(stack);
        }
    }

    /// Returns whether any tool was asked.
    pub fn has_asked(&self) -> bool {
        !self.rounds.is_empty()
    }

    /// Returns the plan that the tool of a stack has written, if it has.
    pub fn plan_of(&self, stack: &StackPath) -> Option<PathBuf> {
        let turn = self.turns.get(stack)?;
        let folder = ask::folder_of(self.rounds[turn.round].folder.path(), turn.number);
        let plan = folder.join(PLAN_FILE);
        plan.is_file().then_some(plan)
    }

    /// Returns the changes that the tool of a stack has planned, if it ran and names resources.
    pub fn changed(&self, stack: &StackPath) -> Option<ChangedPlan> {
        let turn = self.turns.get(stack).filter(|turn| turn.shows_plans)?;
        let folder = self.rounds[turn.round].folder.path();
        // The caller reports that they are unknown.
        ask::changed(&ask::folder_of(folder, turn.number)).ok()
    }

    /// Returns whether the tool of a stack has written a plan that it can show.
    pub fn has_shown_plan(&self, stack: &StackPath) -> bool {
        let turn = self.turns.get(stack);
        turn.is_some_and(|turn| turn.shows_plans) && self.plan_of(stack).is_some()
    }

    /// Returns whether what the tools have printed stays on record.
    pub fn is_recorded(&self) -> bool {
        let mut rounds = self.rounds.iter();
        rounds.any(|round| round.output.is_kept())
    }

    /// Returns the run in which the tool of a stack ran, if the run is recorded.
    pub fn run_of(&self, stack: &StackPath) -> Option<&str> {
        let turn = self.turns.get(stack)?;
        let round = &self.rounds[turn.round];
        round.output.is_kept().then_some(&*round.run)
    }

    /// Returns what the tool of a stack has printed, if anything, and where in it the plan begins, if the
    /// tool has not failed.
    pub fn log(&self, stack: &StackPath) -> Option<(io::Result<LogReader>, Option<u64>)> {
        let turn = self.turns.get(stack)?;
        let logs = self.rounds[turn.round].output.logs.as_ref()?;
        let log = logs.reader(turn.number + 1, stack.as_str(), turn.attempt);
        Some((log.transpose()?, turn.plan_from))
    }

    /// Returns how the turn of a tool ended, if it ran.
    pub fn end(&self, stack: &StackPath) -> Option<AskEnd> {
        self.turns.get(stack).map(|turn| turn.end)
    }

    /// Shows what the tool of a stack has printed.
    pub fn show_output(&self, tools: &dyn Ask, stack: &StackPath, why: &str) -> Result<()> {
        tools.show_log(stack, why, self.log(stack).map(|(log, _)| log))
    }
}

/// What is asked about stacks that were removed.
#[derive(Default)]
pub(super) struct RemovedQuestions<'a, 'p> {
    pub(super) codes: &'a [RemovedCode<'a, 'p>],
    /// The questions, each with where the block of the driver says that its state is.
    pub(super) questions: Vec<(Question<'p>, Option<String>)>,
}

/// Returns what the tool of a stack of the project is asked, and where the block of its driver says that its state is.
fn question<'p>(needed: &Needed<'_, 'p>) -> Option<(Question<'p>, Option<String>)> {
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
}

/// Asks the tools of all stacks that have to be asked, and have not been asked before.
pub(super) fn ask<'p>(
    context: &'p Context,
    request: &PlanRequest<'_>,
    query: &Query,
    needs: &[Needed<'_, 'p>],
    removed: RemovedQuestions<'_, 'p>,
    earlier: AskedTools,
) -> Result<AskedTools> {
    let project = &context.project;
    let mut asked = earlier;
    let paths = |it: &Needed<'_, '_>| {
        Some((
            project.stacks[it.subject.stack].path.clone(),
            it.generation()?,
        ))
    };
    let generations = context.generations.planning(needs.iter().filter_map(paths));
    let environments = context.evaluator().in_generations(Arc::new(generations));
    let codes = Codes {
        tree: Code {
            project,
            environments: &environments,
        },
        removed: removed.codes,
    };
    let of_project = needs.iter().filter_map(question);
    let questions = of_project.chain(removed.questions);
    let questions = questions.filter(|(it, _)| !asked.answers.contains_key(codes.path(it.stack)));
    let (questions, backends): (Vec<Question<'_>>, Vec<Option<String>>) = questions.unzip();
    if questions.is_empty() {
        return Ok(asked);
    }
    asked.id = new_id(&project.root);
    let place = match asked.folder.take() {
        Some(place) => place,
        None => PrivateFolder::of(context, FOLDER)?,
    };
    let folder = PrivateFolder::inside(Some(place.path())).context(NO_ROOM)?;
    let options = AskOptions {
        run: &asked.id,
        folder: folder.path(),
        init: request.init,
        extra: request.extra,
        jobs: request.jobs,
        lock_timeout: request.lock_timeout,
    };
    let asking = match ask::prepare(codes, &questions, &options) {
        Ok(asking) => asking,
        Err(cannot) => return Err(request.tools.refuse(context, cannot)),
    };
    let plans: Vec<Option<Task>> = asking.tasks.iter().map(|tasks| plan_of(tasks)).collect();
    let run = AskRun {
        id: &asked.id,
        origin: request.origin(query),
        jobs: request.jobs,
        asking,
    };
    let AskedRun {
        summary,
        output,
        starts,
    } = request.tools.run(context, run)?;
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
            let is_partial = ask::is_partial(driver, request.extra, plan.as_ref());
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
            Err(request.tools.why_failed(ending, path, output.logs.as_ref()))
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

/// Where a run comes from in which tools are asked, for its journal.
#[derive(Clone)]
pub struct Origin {
    /// What it is for.
    pub purpose: Purpose,
    /// What changes were measured from.
    pub base: Option<BaseRecord>,
    /// Whether the run has a journal.
    pub is_recorded: bool,
}
