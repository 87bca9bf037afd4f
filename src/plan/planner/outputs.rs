//! Reads outputs for conditions and for inputs, in a run of its own with one turn per stack. The
//! values stay in memory; the folder that they are printed to is removed at once.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::Planning;
use super::subjects::Drivers;
use super::tools::{Ask, AskedRun, RunOrigin};
use crate::context::{Context, PLANS as FOLDER, PrivateFolder};
use crate::error::Result;
use crate::exit::ExitStatus;
use crate::plan::ask::{AskOptions, NoAnswer, folder_of};
use crate::plan::checks::{Checker, StackOutputs};
use crate::plan::code::PlanCode;
use crate::plan::commands::OUTPUTS_FILE;
use crate::plan::inputs::{KnownOutputs, StackInputs};
use crate::plan::read_outputs::{
    OutputPrinting, OutputSource, lacks_state, no_outputs, prepare, printed, refreshed,
};
use crate::plan::stack::{PlanStack, RemovedCode};
use crate::project::stack::StackIndex;
use crate::run::event::Outcome;
use crate::run::output_reads::read_outputs;
use crate::run::request::new_id;
use crate::run::sharing::InputVariables;
use crate::state::document::Document;

const MAX_SHOWN: usize = 10;

/// Why there are no outputs, if their command failed.
const FAILED: &str = "the command that prints them failed";

/// Why there are no outputs, if the state has no entry for their stack.
const NEVER_APPLIED: &str = "the stack was never applied";

/// The inputs of stacks as variables, or why one has no value.
pub(super) type InputsOfStacks = BTreeMap<PlanStack, std::result::Result<InputVariables, String>>;

pub struct OutputReader<'c, 'l> {
    pub context: &'c Context,
    pub tools: &'l dyn Ask,
    pub jobs: NonZeroUsize,
    pub document: Option<&'l Document>,
    pub origin: RunOrigin,
}

impl<'a> OutputReader<'a, 'a> {
    pub(super) fn new(planning: Planning<'a>) -> Self {
        OutputReader {
            context: planning.context,
            tools: planning.request.tools,
            jobs: planning.request.jobs,
            document: planning.document(),
            origin: planning.origin(),
        }
    }
}

impl Context {
    /// Finds the inputs of some stacks and of removed ones; `None` if they have none.
    /// Fails if the backend or the stack of an input does not exist.
    pub fn stack_inputs<'c>(
        &'c self,
        stacks: impl Iterator<Item = StackIndex>,
        removed: &[RemovedCode<'_, 'c>],
        document: Option<&Document>,
    ) -> Result<Option<StackInputs<'c>>> {
        let project = &self.project;
        let stacks = stacks.filter(|stack| !project.inputs_of(*stack).is_empty());
        let stacks: Vec<StackIndex> = stacks.collect();
        if stacks.is_empty() && removed.iter().all(|it| it.inputs().is_empty()) {
            return Ok(None);
        }
        let drivers = Drivers::new(self, document);
        let mut problems = Vec::new();
        let inputs = StackInputs::find(
            project,
            &stacks,
            removed,
            |it| drivers.of(it),
            &mut problems,
        );
        if problems.is_empty() {
            return Ok(Some(inputs));
        }
        self.notices.annotated(&problems, &project.sources);
        Err(ExitStatus::Configuration.into())
    }
}

impl<'c> OutputReader<'c, '_> {
    /// Reads the outputs of stacks. Conditions that need those of a failed tool cannot be
    /// evaluated.
    pub fn read(&self, stacks: &BTreeSet<StackIndex>, checker: &mut Checker<'_>) -> Result<()> {
        let drivers = Drivers::new(self.context, self.document);
        let mut readable: Vec<OutputSource<'_>> = Vec::new();
        for &stack in stacks {
            let driver = drivers.of(stack);
            match (no_outputs(driver.as_ref()), driver) {
                (None, Some(driver)) => readable.push(OutputSource {
                    stack: PlanStack::Here(stack),
                    driver,
                    printing: OutputPrinting::Driver,
                }),
                (why, _) => {
                    let why = why.unwrap_or_default();
                    checker.set(stack, StackOutputs::Unreadable(why));
                }
            }
        }
        while !readable.is_empty() {
            readable = self.read_from(&readable, checker)?;
        }
        Ok(())
    }

    /// Reads the outputs of stacks; returns those that need a refresh.
    fn read_from<'p>(
        &self,
        sources: &[OutputSource<'p>],
        checker: &mut Checker<'_>,
    ) -> Result<Vec<OutputSource<'p>>> {
        let mut unwritten = Vec::new();
        let PrintedOutputs { folder, ended } = self.print(sources, &[])?;
        for (number, ended) in ended {
            let source = &sources[number];
            let stack = source.stack.here();
            let stack = stack.expect("conditions use stacks of this commit");
            let is_refreshed = matches!(source.printing, OutputPrinting::Refresh);
            let folder = folder_of(folder.path(), number);
            let values = ended.map(|()| {
                if is_refreshed {
                    refreshed(&folder)
                } else {
                    printed(&source.driver, &folder).map_err(NoAnswer::from)
                }
            });
            let mode = self.context.project.stacks[stack].mode;
            let outputs = match values {
                Ok(Ok(values)) if !is_refreshed && lacks_state(&source.driver, mode, &values) => {
                    unwritten.push(OutputSource {
                        printing: OutputPrinting::Refresh,
                        ..source.clone()
                    });
                    continue;
                }
                Ok(Ok(values)) => StackOutputs::Values(Arc::new(values)),
                Ok(Err(problem)) => StackOutputs::Unreadable(problem.to_string()),
                Err(why) => StackOutputs::Unreadable(why),
            };
            checker.set(stack, outputs);
        }
        Ok(unwritten)
    }

    /// Evaluates the inputs of stacks; those without inputs are left out. Reads the outputs that are not known
    /// yet. An input whose outputs come from a stack that was never applied gets its mock.
    pub(super) fn inputs<'a, 'p>(
        &self,
        stacks: impl Iterator<Item = PlanStack>,
        codes: &'a [RemovedCode<'a, 'p>],
        known: &mut KnownOutputs,
    ) -> Result<InputsOfStacks>
    where
        'c: 'p,
    {
        let context: &'p Context = self.context;
        let stacks: Vec<PlanStack> = stacks.collect();
        let here = stacks.iter().filter_map(|stack| stack.here());
        let found = context.stack_inputs(here, codes, self.document)?;
        let Some(inputs) = found else {
            return Ok(BTreeMap::new());
        };
        let drivers = Drivers::new(self.context, self.document);
        let is_absent = |source: PlanStack| {
            let here = source.here().filter(|_| self.document.is_some());
            here.is_some_and(|here| drivers.entry(here).is_none())
        };
        self.read_inputs(&inputs, &stacks, codes, is_absent, known)?;
        let may_mock = |source| match self.document {
            Some(_) => is_absent(source),
            None => known.are_empty(source),
        };
        let outputs = |position| known.get(&inputs, position);
        let variables = |stack| Some((stack, inputs.variables(stack, outputs, may_mock)?));
        Ok(stacks.into_iter().filter_map(variables).collect())
    }

    /// Reads the outputs that the inputs of stacks need, unless they are known. Those of an absent stack are not
    /// read.
    fn read_inputs<'a, 'p>(
        &self,
        inputs: &StackInputs<'p>,
        stacks: &[PlanStack],
        codes: &'a [RemovedCode<'a, 'p>],
        is_absent: impl Fn(PlanStack) -> bool,
        known: &mut KnownOutputs,
    ) -> Result<()>
    where
        'c: 'p,
    {
        let needed = stacks.iter().flat_map(|stack| inputs.needed(*stack));
        let mut positions: BTreeSet<usize> = needed.collect();
        positions.retain(|position| !known.was_read(inputs, *position));
        let (absent, positions): (Vec<usize>, Vec<usize>) = positions
            .into_iter()
            .partition(|position| is_absent(inputs.source(*position).stack));
        for position in absent {
            known.set(inputs, position, Err(NEVER_APPLIED.to_owned()));
        }
        if positions.is_empty() {
            return Ok(());
        }
        let sources = positions.iter().map(|position| {
            let source = inputs.source(*position);
            OutputSource {
                stack: source.stack,
                driver: source.driver,
                printing: OutputPrinting::Command(source.command.clone()),
            }
        });
        let PrintedOutputs { folder, ended } = self.print(&sources.collect::<Vec<_>>(), codes)?;
        for (number, ended) in ended {
            let folder = folder_of(folder.path(), number);
            let outputs = ended.and_then(|()| read_outputs(&folder.join(OUTPUTS_FILE)));
            known.set(inputs, positions[number], outputs);
        }
        Ok(())
    }

    /// Runs the commands that print outputs, and shows what failed ones print.
    fn print<'a, 'p>(
        &self,
        sources: &[OutputSource<'p>],
        removed: &'a [RemovedCode<'a, 'p>],
    ) -> Result<PrintedOutputs>
    where
        'c: 'p,
    {
        let context: &'p Context = self.context;
        let project = &context.project;
        let id = new_id(&project.root);
        let folder = PrivateFolder::of(context, FOLDER)?;
        // Other stacks use the current generation.
        let environments = context.evaluator();
        let codes = PlanCode {
            removed,
            ..PlanCode::of_tree(project, &environments)
        };
        let options = AskOptions::new(&id, folder.path(), self.jobs);
        let asking = prepare(codes, sources, &options)
            .map_err(|cannot| self.tools.refuse(context, cannot))?;
        let origin = self.origin.clone();
        let AskedRun {
            summary, output, ..
        } = self.tools.run(context, &options, origin, asking)?;
        let mut n_shown = 0;
        let mut ended = Vec::with_capacity(sources.len());
        for ending in &summary.endings {
            let number = ending.turn.get();
            if ending.outcome == Outcome::Succeeded {
                ended.push((number, Ok(())));
                continue;
            }
            let path = codes.path(sources[number].stack);
            let why = self
                .tools
                .failure(ending)
                .unwrap_or_else(|| "its tool was not asked".to_owned());
            n_shown += 1;
            if n_shown <= MAX_SHOWN {
                let logs = output.logs.as_ref();
                let log = logs.and_then(|logs| {
                    let log = logs.reader(number + 1, path.as_str(), ending.attempts);
                    log.transpose()
                });
                self.tools
                    .show_log(path, &format!("its outputs cannot be read: {why}"), log)?;
            }
            ended.push((number, Err(FAILED.to_owned())));
        }
        Ok(PrintedOutputs { folder, ended })
    }
}

struct PrintedOutputs {
    /// Has a folder for each source that succeeded; removed on drop.
    folder: PrivateFolder,
    /// The positions of the sources, and why one has no outputs.
    ended: Vec<(usize, std::result::Result<(), String>)>,
}
