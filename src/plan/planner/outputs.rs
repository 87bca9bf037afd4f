//! Reads outputs for conditions, in a run of its own with one turn per stack. The values stay in
//! memory; the folder that they are printed to is removed at once.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::PlanRequest;
use super::ask::{Ask, AskRun, AskedRun, RunOrigin};
use super::subjects::Drivers;
use crate::context::{Context, PLANS as FOLDER, PrivateFolder};
use crate::error::Result;
use crate::exit::ExitStatus;
use crate::plan::ask::{AskOptions, NoAnswer, folder_of};
use crate::plan::checks::{Checker, StackOutputs};
use crate::plan::code::{PlanCode, StackCode};
use crate::plan::read_outputs::{
    OutputSource, lacks_state, no_outputs, prepare, printed, refreshed,
};
use crate::project::stack::StackIndex;
use crate::run::event::Outcome;
use crate::run::request::new_id;
use crate::selection::select::Query;
use crate::state::document::Document;

const MAX_SHOWN: usize = 10;

pub struct OutputReader<'l> {
    pub context: &'l Context,
    pub tools: &'l dyn Ask,
    pub jobs: NonZeroUsize,
    pub document: Option<&'l Document>,
    pub origin: RunOrigin,
}

impl<'l> OutputReader<'l> {
    pub(super) fn new(
        context: &'l Context,
        request: &PlanRequest<'l>,
        document: Option<&'l Document>,
        query: &Query,
    ) -> Self {
        OutputReader {
            context,
            tools: request.tools,
            jobs: request.jobs,
            document,
            origin: request.origin(query),
        }
    }
}

impl OutputReader<'_> {
    /// Reads the outputs of stacks. Conditions that need those of a failed tool cannot be
    /// evaluated.
    pub fn read(&self, stacks: &BTreeSet<StackIndex>, checker: &mut Checker<'_>) -> Result<()> {
        let drivers = Drivers::new(self.context, self.document);
        let mut readable: Vec<OutputSource<'_>> = Vec::new();
        for &stack in stacks {
            let driver = drivers.of(stack);
            match (no_outputs(driver.as_ref()), driver) {
                (None, Some(driver)) => readable.push(OutputSource {
                    stack,
                    driver,
                    is_refreshed: false,
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
        let context = self.context;
        let project = &context.project;
        let id = new_id(&project.root);
        let folder = PrivateFolder::of(context, FOLDER)?;
        // Other stacks use the current generation.
        let environments = context.evaluator();
        let codes = PlanCode {
            tree: StackCode {
                project,
                environments: &environments,
            },
            removed: &[],
        };
        let options = AskOptions {
            run: &id,
            folder: folder.path(),
            init: false,
            extra: &[],
            jobs: self.jobs,
            lock_timeout: None,
        };
        let asking = match prepare(codes, sources, &options) {
            Ok(asking) => asking,
            Err(cannot) => return Err(self.tools.refuse(context, cannot)),
        };
        let run = AskRun {
            id: &id,
            origin: self.origin.clone(),
            jobs: self.jobs,
            asking,
        };
        let AskedRun {
            summary, output, ..
        } = self.tools.run(context, run)?;
        if summary.signal.is_some() {
            return Err(ExitStatus::Run(summary.exit_status()).into());
        }
        let mut n_shown = 0;
        let mut unwritten = Vec::new();
        for ending in &summary.endings {
            let number = ending.turn.get();
            let source = &sources[number];
            let of_stack = &project.stacks[source.stack];
            let path = &of_stack.path;
            let outputs = if ending.outcome == Outcome::Succeeded {
                let folder = folder_of(folder.path(), number);
                let values = if source.is_refreshed {
                    refreshed(&folder)
                } else {
                    printed(&source.driver, &folder).map_err(NoAnswer::from)
                };
                match values {
                    Ok(values)
                        if !source.is_refreshed
                            && lacks_state(&source.driver, of_stack.mode, &values) =>
                    {
                        unwritten.push(OutputSource {
                            is_refreshed: true,
                            ..*source
                        });
                        continue;
                    }
                    Ok(values) => StackOutputs::Values(Arc::new(values)),
                    Err(problem) => StackOutputs::Unreadable(problem.to_string()),
                }
            } else {
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
                    self.tools.show_log(
                        path,
                        &format!("its outputs cannot be read: {why}"),
                        log,
                    )?;
                }
                StackOutputs::Unreadable("the command that prints them failed".to_owned())
            };
            checker.set(source.stack, outputs);
        }
        Ok(unwritten)
    }
}
