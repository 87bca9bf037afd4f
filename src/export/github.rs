//! GitHub Actions: a workflow with `needs`, or a matrix of equal workers.

use yaml_serde::{Mapping, Value};

use super::limits::{Engine, LimitKind};
use super::pipeline::{ExportError, Jobs, Shape, check, keys, yaml_file};
use super::{Job, JobGraph};

/// The condition of a job that also starts after a failure.
const UNLESS_CANCELLED: &str = "${{ !cancelled() }}";

pub(super) fn write(shape: &Shape<'_>) -> Result<String, ExportError> {
    let mut jobs = Mapping::new();
    let last = match shape.jobs {
        Jobs::Graph(graph) => {
            for job in &graph.jobs {
                jobs.insert(job.id.as_str().into(), graph_job(shape, graph, job).into());
            }
            needs(graph, &graph.last)
        }
        Jobs::Workers(workers) => {
            check(Engine::Github, LimitKind::Workers, workers.get())?;
            let numbers: Vec<Value> = (1..=workers.get()).map(Value::from).collect();
            let matrix = keys([("worker", numbers.into())]);
            let strategy = keys([("fail-fast", false.into()), ("matrix", matrix.into())]);
            let mut work = keys([("strategy", strategy.into())]);
            work.extend(of(shape, &shape.command("work"), Vec::new()));
            jobs.insert("work".into(), work.into());
            vec!["work".into()]
        }
    };
    let mut finish = of(shape, &shape.command("finish"), last);
    finish.insert("if".into(), "${{ always() }}".into());
    jobs.insert("finish".into(), finish.into());
    let mut workflow = shape.template.workflow.clone();
    if !workflow.contains_key("on") {
        let dispatch = keys([("workflow_dispatch", Value::Null)]);
        workflow.insert("on".into(), dispatch.into());
    }
    workflow.insert("jobs".into(), jobs.into());
    Ok(yaml_file(&workflow))
}

fn graph_job(shape: &Shape<'_>, graph: &JobGraph, job: &Job) -> Mapping {
    let needs = needs(graph, &job.needs);
    let is_waiting = !needs.is_empty();
    let mut keys = if job.turns.is_empty() {
        barrier(shape, needs)
    } else {
        of(shape, &shape.command(&format!("job {}", job.id)), needs)
    };
    if is_waiting && !shape.stops {
        keys.insert("if".into(), UNLESS_CANCELLED.into());
    }
    keys
}

/// Returns a job that only makes others wait: nothing of the template but its runner.
fn barrier(shape: &Shape<'_>, needs: Vec<Value>) -> Mapping {
    let runner = shape.template.job.get("runs-on").cloned();
    keys([
        ("needs", needs.into()),
        ("runs-on", runner.unwrap_or_default()),
        (
            "steps",
            vec![Value::from(keys([("run", "true".into())]))].into(),
        ),
    ])
}

fn needs(graph: &JobGraph, jobs: &[usize]) -> Vec<Value> {
    let ids = jobs.iter().map(|&job| graph.jobs[job].id.as_str());
    ids.map(Value::from).collect()
}

fn of(shape: &Shape<'_>, command: &str, needs: Vec<Value>) -> Mapping {
    let mut job = Mapping::new();
    if !needs.is_empty() {
        job.insert("needs".into(), needs.into());
    }
    job.extend(shape.template.job.clone());
    job.insert("env".into(), shape.environment().into());
    let mut steps = shape.template.steps.clone();
    steps.push(keys([("run", command.into())]).into());
    job.insert("steps".into(), steps.into());
    job
}
