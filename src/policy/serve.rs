//! The child process in which policies are loaded and evaluated.
//!
//! One thread reads requests, another one evaluates. When the parent is gone, the requests end, and so does the
//! process, even in the middle of an evaluation.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use regorus::Value;

use super::Problem;
use super::protocol::{List, Reply, Request};
use super::rego::{Policy, Suite};

/// The stack of the thread that evaluates: rules nest.
const STACK_BYTES: usize = 64 << 20;

/// Answers requests until they end.
pub fn serve(requests: impl BufRead, replies: impl Write + Send + 'static) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel();
    let evaluator = thread::Builder::new().stack_size(STACK_BYTES);
    let evaluator = evaluator.spawn(move || evaluate(&receiver, replies))?;
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

fn evaluate(requests: &Receiver<Request>, mut replies: impl Write) -> io::Result<()> {
    let mut worker = Serving {
        policies: Vec::new(),
        stacks: Value::new_array(),
        workflow: Value::new_array(),
        suite: None,
    };
    let mut tell = |reply: &Reply| {
        serde_json::to_writer(&mut replies, reply)?;
        writeln!(replies)?;
        replies.flush()
    };
    for request in requests {
        match request {
            Request::Load { file, text } => {
                let loaded = Policy::load(&file, &text);
                let dialect = loaded.as_ref().map(|policy| policy.dialect);
                tell(&Reply::Loaded(dialect.map_err(Clone::clone)))?;
                // Only those that are loaded have numbers.
                worker.policies.extend(loaded);
            }
            Request::Put { list, entries } => {
                worker.put(list, entries).map_err(io::Error::other)?;
            }
            Request::Evaluate {
                policy,
                input,
                with_lists,
            } => {
                let input = worker.input(input.get(), with_lists);
                tell(&Reply::Ready)?;
                let evaluated = input.and_then(|input| match worker.policies.get_mut(policy) {
                    Some(policy) => policy.evaluate(input),
                    None => Err(Problem::new("the policy was not loaded")),
                });
                tell(&Reply::Evaluated(evaluated))?;
            }
            Request::FindTests { files } => {
                let suite = Suite::load(&files);
                tell(&Reply::Tests(
                    suite.as_ref().map(Suite::tests).map_err(Clone::clone),
                ))?;
                worker.suite = suite.ok();
            }
            Request::Test { name } => {
                tell(&Reply::Ready)?;
                let tested = match &mut worker.suite {
                    Some(suite) => suite.run(&name),
                    None => Err((0, Problem::new("the tests were not loaded"))),
                };
                tell(&Reply::Tested(tested))?;
            }
        }
    }
    Ok(())
}

/// What the worker keeps.
struct Serving {
    policies: Vec<Policy>,
    stacks: Value,
    workflow: Value,
    suite: Option<Suite>,
}

impl Serving {
    fn list(&mut self, list: List) -> &mut Value {
        match list {
            List::Stacks => &mut self.stacks,
            List::Workflow => &mut self.workflow,
        }
    }

    fn put(
        &mut self,
        list: List,
        entries: Vec<(usize, Box<serde_json::value::RawValue>)>,
    ) -> Result<(), String> {
        let list = self.list(list).as_array_mut();
        let list = list.map_err(|error| error.to_string())?;
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
            for list in List::ALL {
                let name = match list {
                    List::Stacks => "stacks",
                    List::Workflow => "workflow",
                };
                entries.insert(name.into(), self.list(list).clone());
            }
        }
        Ok(input)
    }
}
