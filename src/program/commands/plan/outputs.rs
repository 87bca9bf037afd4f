//! Reading the outputs of stacks for conditions: a run of its own, with a turn for each stack. The values are
//! kept in memory only, and the folder that they are printed to goes at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use orch::plan::ask::{AskOptions, NoAnswer, folder_of};
use orch::plan::checks::{Checker, StackOutputs};
use orch::plan::code::{Code, Codes};
use orch::plan::read_outputs::{Source, lacks_state, no_outputs, prepare, printed, refreshed};
use orch::project::stack::StackIndex;
use orch::report::failure_text;
use orch::run::event::Outcome;
use orch::run::request::new_id;
use orch::selection::select::Query;
use orch::state::document::Document;

use super::ask::{FOLDER, Origin, cannot_ask, carry_out, show_log};
use super::subjects::Drivers;
use super::{PlanRequest, PlanningArgs};
use crate::program::commands::Loaded;
use crate::program::commands::private_folder::PrivateFolder;
use crate::program::error::Result;
use orch::exit::ExitStatus;

/// How many failures are shown with what the tool has printed.
const MAX_SHOWN: usize = 10;

/// How outputs are read.
pub(in crate::program::commands) struct OutputReader<'l> {
    pub(in crate::program::commands) loaded: &'l Loaded,
    pub(in crate::program::commands) args: &'l PlanningArgs,
    /// What is on record, if the project keeps a state.
    pub(in crate::program::commands) document: Option<&'l Document>,
    pub(in crate::program::commands) origin: Origin,
}

impl<'l> OutputReader<'l> {
    /// Returns one for the conditions of a plan.
    pub(super) fn new(
        loaded: &'l Loaded,
        request: &PlanRequest<'l>,
        document: Option<&'l Document>,
        query: &Query,
    ) -> Self {
        OutputReader {
            loaded,
            args: request.planning,
            document,
            origin: request.origin(query),
        }
    }
}

impl OutputReader<'_> {
    /// Reads the outputs of stacks at once, for the conditions that need them. Where a tool fails, the conditions that need its outputs cannot be evaluated.
    pub(in crate::program::commands) fn read(
        &self,
        stacks: &BTreeSet<StackIndex>,
        checker: &mut Checker<'_>,
    ) -> Result<()> {
        let drivers = Drivers::new(self.loaded, self.document);
        let mut readable: Vec<Source<'_>> = Vec::new();
        for &stack in stacks {
            let driver = drivers.of(stack);
            match (no_outputs(driver.as_ref()), driver) {
                (None, Some(driver)) => readable.push(Source {
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

    /// Reads the outputs of stacks; returns those whose outputs only a refresh can find.
    fn read_from<'p>(
        &self,
        sources: &[Source<'p>],
        checker: &mut Checker<'_>,
    ) -> Result<Vec<Source<'p>>> {
        let loaded = self.loaded;
        let project = &loaded.project;
        let id = new_id(&project.root);
        let folder = PrivateFolder::of(loaded, FOLDER)?;
        // What others see is the generation that is current.
        let environments = loaded.evaluator();
        let codes = Codes {
            tree: Code {
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
            jobs: self.args.jobs(),
            lock_timeout: None,
        };
        let asking = match prepare(codes, sources, &options) {
            Ok(asking) => asking,
            Err(cannot) => return Err(cannot_ask(loaded, cannot)),
        };
        let (summary, output, _) = carry_out(loaded, self.args, self.origin.clone(), &id, asking)?;
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
                        unwritten.push(Source {
                            is_refreshed: true,
                            ..*source
                        });
                        continue;
                    }
                    Ok(values) => StackOutputs::Values(Arc::new(values)),
                    Err(problem) => StackOutputs::Unreadable(problem.to_string()),
                }
            } else {
                let why = failure_text(ending);
                let why = why.unwrap_or_else(|| "its tool was not asked".to_owned());
                n_shown += 1;
                if n_shown <= MAX_SHOWN {
                    let logs = output.logs.as_ref();
                    let log = logs.and_then(|logs| {
                        let log = logs.reader(number + 1, path.as_str(), ending.attempts);
                        log.transpose()
                    });
                    show_log(path, &format!("its outputs cannot be read: {why}"), log)?;
                }
                StackOutputs::Unreadable("the command that prints them failed".to_owned())
            };
            checker.set(source.stack, outputs);
        }
        Ok(unwritten)
    }
}
