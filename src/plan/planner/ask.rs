//! Asks the tools, in a run of its own. A tool's output is shown only if the tool fails.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Planning;
use super::entries::OpenQuestion;
use super::outputs::{InputsOfStacks, OutputReader};
use super::tools::{Ask, AskedRun, EndedOutput, NO_FOLDER};
use crate::context::{Context, PLANS as FOLDER, PrivateFolder};
use crate::driver::{ChangedPlan, DriverAnswer, PlanKind};
use crate::error::{ErrorContext as _, Result};
use crate::path::StackPath;
use crate::plan::PLAN_FILE;
use crate::plan::ask::{self, AskOptions, ToolQuestion};
use crate::plan::code::PlanCode;
use crate::plan::inputs::KnownOutputs;
use crate::plan::stack::{PlanStack, RemovedCode};
use crate::record::logs::LogReader;
use crate::run::event::{Ending, Outcome};
use crate::run::execute::Task;
use crate::run::request::new_id;

pub struct AskedTools {
    pub id: String,
    /// By stack: the answer, or why there is none.
    pub answers: BTreeMap<StackPath, std::result::Result<DriverAnswer, String>>,
    rounds: Vec<AskRound>,
    turns: BTreeMap<StackPath, EndedTurn>,
    /// The folder of all rounds, removed on drop.
    folder: Option<PrivateFolder>,
    /// The outputs that were read for inputs.
    outputs: KnownOutputs,
    /// The inputs that were planned with mocks, by stack.
    mocked: BTreeMap<StackPath, Vec<String>>,
}

struct AskRound {
    run: String,
    folder: PrivateFolder,
    output: EndedOutput,
}

struct EndedTurn {
    round: usize,
    /// Its number in the round, from 0.
    number: usize,
    attempt: u32,
    /// The offset of the plan in that attempt's log, unless the tool failed.
    plan_from: Option<u64>,
    shows_plans: bool,
    end: AskEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AskEnd {
    /// The tool answered, although the answer may be unusable.
    Answered,
    PlanFailed,
    /// A step before `plan` failed.
    NotPlanned,
}

impl AskEnd {
    /// `start` is the offset of the plan in the log, if there is one.
    fn new(outcome: &Outcome, start: Option<u64>) -> Self {
        match (outcome, start) {
            (Outcome::Succeeded, _) => AskEnd::Answered,
            (_, Some(_)) => AskEnd::PlanFailed,
            (_, None) => AskEnd::NotPlanned,
        }
    }
}

impl AskedTools {
    pub fn none(context: &Context) -> Self {
        AskedTools {
            id: new_id(&context.project.root),
            answers: BTreeMap::new(),
            rounds: Vec::new(),
            turns: BTreeMap::new(),
            folder: None,
            outputs: KnownOutputs::default(),
            mocked: BTreeMap::new(),
        }
    }

    /// Returns whether a stack can be asked. If one of its inputs has no value, the reason becomes its answer.
    fn may_be_asked(
        &mut self,
        stack: PlanStack,
        inputs: &InputsOfStacks,
        codes: PlanCode<'_, '_>,
    ) -> bool {
        match inputs.get(&stack) {
            Some(Err(why)) => {
                let path = codes.path(stack).clone();
                self.answers.insert(path, Err(why.clone()));
                false
            }
            Some(Ok(_)) | None => true,
        }
    }

    fn pass_inputs(
        &mut self,
        stack: PlanStack,
        inputs: &InputsOfStacks,
        codes: PlanCode<'_, '_>,
        tasks: &mut [Task],
    ) {
        let Some(Ok(found)) = inputs.get(&stack) else {
            return;
        };
        if !found.mocked.is_empty() {
            let path = codes.path(stack).clone();
            self.mocked.insert(path, found.mocked.clone());
        }
        // Commands that only print need no values.
        for task in tasks.iter_mut().filter(|task| task.answer.is_none()) {
            task.environment.extend(found.variables.clone());
        }
    }

    pub fn mocked(&self, stack: &StackPath) -> &[String] {
        self.mocked.get(stack).map_or(&[], Vec::as_slice)
    }

    /// Drops an answer so that its tool is asked again. Failures are kept.
    pub fn forget(&mut self, stack: &StackPath) {
        if let Some(Ok(_)) = self.answers.get(stack) {
            self.answers.remove(stack);
        }
    }

    pub fn has_asked(&self) -> bool {
        !self.rounds.is_empty()
    }

    pub fn plan_of(&self, stack: &StackPath) -> Option<PathBuf> {
        let turn = self.turns.get(stack)?;
        let folder = ask::folder_of(self.rounds[turn.round].folder.path(), turn.number);
        let plan = folder.join(PLAN_FILE);
        plan.is_file().then_some(plan)
    }

    /// Returns the planned changes of a stack, if its tool ran and names resources.
    pub fn changed(&self, stack: &StackPath, kind: PlanKind) -> Option<ChangedPlan> {
        let turn = self.turns.get(stack).filter(|turn| turn.shows_plans)?;
        let folder = self.rounds[turn.round].folder.path();
        // The caller reports that the changes are unknown.
        ask::changed(&ask::folder_of(folder, turn.number), kind).ok()
    }

    pub fn has_shown_plan(&self, stack: &StackPath) -> bool {
        let turn = self.turns.get(stack);
        turn.is_some_and(|turn| turn.shows_plans) && self.plan_of(stack).is_some()
    }

    pub fn is_recorded(&self) -> bool {
        let mut rounds = self.rounds.iter();
        rounds.any(|round| round.output.is_kept())
    }

    /// Returns the recorded run in which a stack's tool ran.
    pub fn run_of(&self, stack: &StackPath) -> Option<&str> {
        let turn = self.turns.get(stack)?;
        let round = &self.rounds[turn.round];
        round.output.is_kept().then_some(&*round.run)
    }

    /// Returns the log of a stack's tool, and the offset of the plan in it unless the tool failed.
    pub fn log(&self, stack: &StackPath) -> Option<(io::Result<LogReader>, Option<u64>)> {
        let turn = self.turns.get(stack)?;
        let logs = self.rounds[turn.round].output.logs.as_ref()?;
        let log = logs.reader(turn.number + 1, stack.as_str(), turn.attempt);
        Some((log.transpose()?, turn.plan_from))
    }

    pub fn end(&self, stack: &StackPath) -> Option<AskEnd> {
        self.turns.get(stack).map(|turn| turn.end)
    }

    pub fn show_output(&self, tools: &dyn Ask, stack: &StackPath, why: &str) -> Result<()> {
        tools.show_log(stack, why, self.log(stack).map(|(log, _)| log))
    }
}

#[derive(Default)]
pub(super) struct RemovedQuestions<'a, 'p> {
    pub(super) codes: &'a [RemovedCode<'a, 'p>],
    /// The questions, each with the backend in its driver's block.
    pub(super) questions: Vec<(ToolQuestion<'p>, Option<String>)>,
}

/// Returns the question for a stack, and the backend in its driver's block.
fn question<'p>(needed: &OpenQuestion<'_, 'p>) -> Option<(ToolQuestion<'p>, Option<String>)> {
    let (kind, about) = needed.question()?;
    let question = ToolQuestion {
        stack: PlanStack::Here(needed.subject.stack),
        driver: needed.subject.driver,
        kind,
        asked: about,
    };
    let made = needed.subject.made();
    let backend = made.map_or(&needed.subject.backend, |next| &next.backend);
    Some((question, backend.clone()))
}

impl Planning<'_> {
    /// Asks the tools of this commit's stacks; see [`ask()`].
    pub(super) fn ask(
        self,
        needs: &[OpenQuestion<'_, '_>],
        earlier: AskedTools,
    ) -> Result<AskedTools> {
        ask(self, needs, RemovedQuestions::default(), earlier)
    }
}

/// Asks the tools of all stacks whose questions have not been asked before. A stack with an input that has
/// no value is not asked: the reason is its answer.
pub(super) fn ask<'p>(
    planning: Planning<'p>,
    needs: &[OpenQuestion<'_, 'p>],
    removed: RemovedQuestions<'_, 'p>,
    mut asked: AskedTools,
) -> Result<AskedTools> {
    let Planning {
        context, request, ..
    } = planning;
    let project = &context.project;
    let path = |it: &OpenQuestion<'_, '_>| project.stacks[it.subject.stack].path.clone();
    let made = needs
        .iter()
        .filter_map(|it| Some((path(it), it.generation()?)));
    let generations = context.state.generations.planning(made);
    let environments = context.evaluator().in_generations(Arc::new(generations));
    let codes = PlanCode {
        removed: removed.codes,
        ..PlanCode::of_tree(project, &environments)
    };
    let of_project = needs.iter().filter_map(question);
    let questions = of_project
        .chain(removed.questions)
        .filter(|(it, _)| !asked.answers.contains_key(codes.path(it.stack)));
    let mut questions: Vec<(ToolQuestion<'_>, Option<String>)> = questions.collect();
    let reader = OutputReader::new(planning);
    let stacks = questions.iter().map(|(it, _)| it.stack);
    let inputs = reader.inputs(stacks, removed.codes, &mut asked.outputs)?;
    questions.retain(|(question, _)| asked.may_be_asked(question.stack, &inputs, codes));
    let (questions, backends): (Vec<_>, Vec<_>) = questions.into_iter().unzip();
    if questions.is_empty() {
        return Ok(asked);
    }
    let id = new_id(&project.root);
    asked.id.clone_from(&id);
    let place = match asked.folder.take() {
        Some(place) => place,
        None => PrivateFolder::of(context, FOLDER)?,
    };
    let folder = PrivateFolder::inside(Some(place.path())).context(NO_FOLDER)?;
    let options = AskOptions {
        init: request.init,
        extra: request.extra,
        lock_timeout: request.lock_timeout,
        ..AskOptions::new(&id, folder.path(), request.jobs)
    };
    let mut asking = ask::prepare(codes, &questions, &options)
        .map_err(|cannot| request.tools.refuse(context, cannot))?;
    for (question, tasks) in questions.iter().zip(&mut asking.tasks) {
        asked.pass_inputs(question.stack, &inputs, codes, tasks);
    }
    let plans: Vec<Option<Task>> = asking.tasks.iter().map(|tasks| plan_of(tasks)).collect();
    let origin = planning.origin();
    let AskedRun {
        summary,
        output,
        starts,
    } = request.tools.run(context, &options, origin, asking)?;
    for ending in &summary.endings {
        let number = ending.turn.get();
        let question = &questions[number];
        let (code, _) = codes.of(question.stack);
        let path = codes.path(question.stack);
        let answer = if ending.outcome == Outcome::Succeeded {
            let folder = ask::folder_of(folder.path(), number);
            let plan = plans[number].as_ref();
            let is_partial = ask::is_partial(&question.driver, request.extra, plan);
            let root = &code.project.root;
            let mut answer = answer(question, ending, &folder, (root, plan, is_partial));
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
    asked.rounds.push(AskRound {
        run: id,
        folder,
        output,
    });
    asked.folder = Some(place);
    Ok(asked)
}

/// Returns the answer of a tool that succeeded, given the root, the command that planned, and whether that covers
/// only part of the stack.
fn answer(
    question: &ToolQuestion<'_>,
    ending: &Ending,
    folder: &Path,
    (root, plan, is_partial): (&Path, Option<&Task>, bool),
) -> std::result::Result<DriverAnswer, String> {
    let has_changes = ending.changes.is_some_and(|changes| changes.has_changes);
    let driver = &question.driver;
    let answer = ask::answer(driver, question.kind, folder, has_changes, is_partial);
    match (answer, driver.tool, plan) {
        (Ok(answer), Some(tool), Some(plan)) => Ok(ask::of_command(answer, tool, root, plan)),
        (answer, ..) => answer.map_err(|problem| problem.to_string()),
    }
}

fn plan_of(tasks: &[Task]) -> Option<Task> {
    let mut tasks = tasks.iter();
    let is_plan = |task: &&Task| task.arguments.first().is_some_and(|it| it == "plan");
    tasks.find(is_plan).cloned()
}
