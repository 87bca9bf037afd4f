//! The child process that loads and evaluates policies.
//!
//! One thread reads requests, another one evaluates. When the parent exits, the requests end, and
//! the process exits even during an evaluation.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use regorus::Value;

use super::protocol::{ListKind, WorkerReply, WorkerRequest};
use super::rego::{self, InputStacks, Policy, Suite};
use super::{PolicyOutput, Problem};

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
        stacks: InputStacks::new(),
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
                let loaded = Policy::load(&file, &text, &worker.stacks);
                let outline = loaded.as_ref().map(|policy| policy.outline.clone());
                tell(&WorkerReply::Loaded(outline.map_err(Clone::clone)))?;
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
                is_large,
            } => {
                let input = worker.input(input.get(), with_lists);
                // Each reply wakes the parent.
                if is_large {
                    tell(&WorkerReply::Ready)?;
                }
                let evaluated = input.and_then(|input| worker.evaluate(policy, input, with_lists));
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
    stacks: InputStacks,
    workflow: Value,
    suite: Option<Suite>,
}

impl Serving {
    fn put(
        &mut self,
        list: ListKind,
        entries: Vec<(usize, Box<serde_json::value::RawValue>)>,
    ) -> Result<(), String> {
        for (position, entry) in entries {
            let value = Value::from_json_str(entry.get()).map_err(|error| error.to_string())?;
            let list = match list {
                ListKind::Stacks => {
                    self.stacks.put(position, value)?;
                    continue;
                }
                ListKind::Workflow => &mut self.workflow,
            };
            let list = list.as_array_mut().map_err(|error| error.to_string())?;
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

    fn input(&self, input: &str, with_lists: bool) -> Result<Value, Problem> {
        let mut input = rego::read_input(input)?;
        if with_lists && let Ok(entries) = input.as_object_mut() {
            entries.insert("stacks".into(), self.stacks.value());
            entries.insert("workflow".into(), self.workflow.clone());
        }
        Ok(input)
    }

    fn evaluate(
        &mut self,
        policy: usize,
        input: Value,
        with_lists: bool,
    ) -> Result<PolicyOutput, Problem> {
        let Some(policy) = self.policies.get_mut(policy) else {
            return Err(Problem::new("the policy was not loaded"));
        };
        if with_lists {
            return policy.evaluate(input);
        }
        let ours = self.stacks.replace(input["stacks"].clone());
        let evaluated = policy.evaluate(input);
        self.stacks.put_back(ours);
        evaluated
    }
}
