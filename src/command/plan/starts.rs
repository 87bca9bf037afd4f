//! The offset of each tool's plan in its log: the output of `init` comes first.

use std::collections::BTreeMap;
use std::{fs, io};

use crate::path::StackPath;
use crate::project::driver::DriverStep;
use crate::record::logs::Logs;
use crate::run::event::{RunEvent, Sink};
use crate::run::turn::{Step, Turn};

pub(super) struct PlanStarts {
    logs: Logs,
    turns: Vec<Asked>,
    /// The offsets of the plans that have begun, by turn, from 0.
    starts: BTreeMap<usize, u64>,
}

struct Asked {
    stack: StackPath,
    /// The planning step.
    step: usize,
    attempt: u32,
}

impl PlanStarts {
    pub(super) fn new(logs: Logs, turns: &[Turn]) -> Self {
        let is_init = |step: &Step| match step {
            Step::CommandWith(name, _) => **name == *DriverStep::Init.name(),
            _ => false,
        };
        let turns = turns.iter().map(|turn| Asked {
            stack: turn.stack.clone(),
            step: turn.steps.iter().take_while(|step| is_init(step)).count(),
            attempt: 1,
        });
        PlanStarts {
            logs,
            turns: turns.collect(),
            starts: BTreeMap::new(),
        }
    }

    pub(super) fn into_offsets(self) -> BTreeMap<usize, u64> {
        self.starts
    }
}

impl Sink for PlanStarts {
    fn event(&mut self, event: &RunEvent) -> io::Result<()> {
        match *event {
            RunEvent::Started { turn, attempt } => {
                let asked = &mut self.turns[turn.get()];
                asked.attempt = attempt;
                if asked.step == 0 {
                    self.starts.insert(turn.get(), 0);
                } else {
                    self.starts.remove(&turn.get());
                }
            }
            // The output of the step before is in the log by now.
            RunEvent::StepStarted { turn, step } => {
                let asked = &self.turns[turn.get()];
                if asked.step == step {
                    let (position, path) = (turn.get() + 1, asked.stack.as_str());
                    let log = self.logs.file(position, path, asked.attempt);
                    let length = fs::metadata(log).map_or(0, |log| log.len());
                    self.starts.insert(turn.get(), length);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
