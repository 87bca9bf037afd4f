//! The child process that loads and evaluates policies.
//!
//! One thread reads requests, another one evaluates. When the parent exits, the requests end, and
//! the process exits even during an evaluation.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use regorus::Value;

use super::Problem;
use super::protocol::{ListKind, WorkerReply, WorkerRequest};
use super::rego::{Policy, Suite};

/// The stack of the evaluating thread: rules may nest deeply.
const STACK_BYTES: usize = 64 << 20;

/// Answers requests until they end.
pub fn serve(requests: impl BufRead, replies: impl Write + Send + 'static) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel();
    let evaluator = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || evaluate(&receiver, replies))?;
    for line in requests.lines() {
        if sender.send(serde_json::from_str(&line?)?).is_err() {
            return match evaluator.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
        }
    }
    Ok(())
}

fn evaluate(requests: &Receiver<WorkerRequest>, mut replies: impl Write) -> io::Result<()> {
    let mut worker = Serving {
        policies: Vec::new(),
        stacks: Value::new_array(),
        workflow: Value::new_array(),
        suite: None,
    };
    let mut tell = |reply: &WorkerReply| {
        serde_json::to_writer(&mut replies, reply)?;
        writeln!(replies)?;
        replies.flush()
    };
    for request in requests {
        match request {
            WorkerRequest::Load { file, text } => {
                let loaded = Policy::load(&file, &text);
                let dialect = loaded.as_ref().map(|policy| policy.dialect);
                tell(&WorkerReply::Loaded(dialect.map_err(Clone::clone)))?;
                // Only loaded policies have numbers.
                worker.policies.extend(loaded);
            }
            WorkerRequest::Put { list, entries } => {
                worker.put(list, entries).map_err(io::Error::other)?;
            }
            WorkerRequest::Evaluate {
                policy,
                input,
                with_lists,
            } => {
                let input = worker.input(input.get(), with_lists);
                tell(&WorkerReply::Ready)?;
                let evaluated = input.and_then(|input| match worker.policies.get_mut(policy) {
                    Some(policy) => policy.evaluate(input),
                    None => Err(Problem::new("the policy was not loaded")),
                });
                tell(&WorkerReply::Evaluated(evaluated))?;
            }
            WorkerRequest::FindTests { files } => {
                let suite = Suite::load(&files);
                tell(&WorkerReply::Tests(
                    suite.as_ref().map(Suite::tests).map_err(Clone::clone),
                ))?;
                worker.suite = suite.ok();
            }
            WorkerRequest::Test { name } => {
                tell(&WorkerReply::Ready)?;
                let tested = match &mut worker.suite {
                    Some(suite) => suite.run(&name),
                    None => Err((0, Problem::new("the tests were not loaded"))),
                };
                tell(&WorkerReply::Tested(tested))?;
            }
        }
    }
    Ok(())
}

/// The data of the worker.
struct Serving {
    policies: Vec<Policy>,
    stacks: Value,
    workflow: Value,
    suite: Option<Suite>,
}

impl Serving {
    fn list(&mut self, list: ListKind) -> &mut Value {
        match list {
            ListKind::Stacks => &mut self.stacks,
            ListKind::Workflow => &mut self.workflow,
        }
    }

    fn put(
        &mut self,
        list: ListKind,
        entries: Vec<(usize, Box<serde_json::value::RawValue>)>,
    ) -> Result<(), String> {
        let list = self
            .list(list)
            .as_array_mut()
            .map_err(|error| error.to_string())?;
        for (position, entry) in entries {
            let value = Value::from_json_str(entry.get()).map_err(|error| error.to_string())?;
            if position == list.len() {
                list.push(value);
            } else if let Some(place) = list.get_mut(position) {
                *place = value;
            } else {
                return Err(format!("there is no entry before number {position}"));
            }
        }
        Ok(())
    }

    fn input(&mut self, input: &str, with_lists: bool) -> Result<Value, Problem> {
        let mut input = Value::from_json_str(input)
            .map_err(|error| Problem::new(format!("in the input: {error}")))?;
        if with_lists && let Ok(entries) = input.as_object_mut() {
            for list in ListKind::ALL {
                let name = match list {
                    ListKind::Stacks => "stacks",
                    ListKind::Workflow => "workflow",
                };
                entries.insert(name.into(), self.list(list).clone());
            }
        }
        Ok(input)
    }
}
