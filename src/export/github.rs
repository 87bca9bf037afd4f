//! GitHub Actions: a workflow with `needs`, or a matrix of equal workers.

use yaml_serde::{Mapping, Value};

use super::job_name::JobNames;
use super::limits::{Engine, LimitKind};
use super::shape::{ExportError, PipelineJobs, Shape, check, keys, yaml_file};
use super::{JobGraph, PipelineJob};

/// The actions that hand on artifacts.
const UPLOAD: &str = "actions/upload-artifact@v4";
const DOWNLOAD: &str = "actions/download-artifact@v4";

/// The condition of a job that also starts after a failure.
const UNLESS_CANCELLED: &str = "${{ !cancelled() }}";

pub(super) fn write(shape: &Shape<'_>) -> Result<String, ExportError> {
    let mut jobs = Mapping::new();
    let last = match shape.jobs {
        PipelineJobs::Graph(graph) => {
            for job in &graph.jobs {
                jobs.insert(job.id.as_str().into(), graph_job(shape, graph, job).into());
            }
            needs(graph, &graph.last)
        }
        PipelineJobs::Workers(workers) => {
            check(Engine::Github, LimitKind::Workers, workers.get())?;
            let numbers: Vec<Value> = (1..=workers.get()).map(Value::from).collect();
            let matrix = keys([("worker", numbers.into())]);
            let strategy = keys([("fail-fast", false.into()), ("matrix", matrix.into())]);
            let mut work = keys([("strategy", strategy.into())]);
            work.extend(of(shape, None, &shape.command("work"), Vec::new()));
            jobs.insert("work".into(), work.into());
            vec!["work".into()]
        }
    };
    let mut finish = of(shape, download(shape), &shape.command("finish"), last);
    // They show a second attempt which policies were evaluated.
    add_upload(shape, &mut finish, "finish");
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

fn graph_job(shape: &Shape<'_>, graph: &JobGraph, job: &PipelineJob) -> Mapping {
    let needs = needs(graph, &job.needs);
    let is_waiting = !needs.is_empty();
    let mut keys = if job.turns.is_empty() {
        barrier(shape, needs)
    } else {
        let command = shape.command(&format!("job {}", job.id));
        let mut job_keys = of(shape, None, &command, needs);
        add_upload(shape, &mut job_keys, &job.id);
        job_keys
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

/// Returns how the names of the artifacts of a pipeline begin.
fn artifact(shape: &Shape<'_>) -> String {
    format!("orch-results-{}", JobNames::default().name(shape.order))
}

/// Adds the step that hands on the results of a job, if the engine does that.
fn add_upload(shape: &Shape<'_>, job: &mut Mapping, id: &str) {
    if let Some(Value::Sequence(steps)) = job.get_mut("steps") {
        steps.extend(shape.results.map(|_| upload(shape, id)));
    }
}

fn upload(shape: &Shape<'_>, id: &str) -> Value {
    let paths: Vec<String> = shape.result_paths().collect();
    let name = format!("{}-{id}-${{{{ github.run_attempt }}}}", artifact(shape));
    let with = keys([
        ("name", name.into()),
        ("path", paths.join("\n").into()),
        ("include-hidden-files", true.into()),
    ]);
    let step = keys([
        ("if", "${{ always() }}".into()),
        ("uses", UPLOAD.into()),
        ("with", with.into()),
        // The job has done its work.
        ("continue-on-error", true.into()),
    ]);
    step.into()
}

/// Returns the step that gets the results of all jobs, if the engine hands them on.
fn download(shape: &Shape<'_>) -> Option<Value> {
    let with = keys([
        ("pattern", format!("{}-*", artifact(shape)).into()),
        ("path", shape.results?.into()),
        ("merge-multiple", true.into()),
    ]);
    let step = keys([
        ("uses", DOWNLOAD.into()),
        ("with", with.into()),
        // Stacks without a result count as not run.
        ("continue-on-error", true.into()),
    ]);
    Some(step.into())
}

fn of(shape: &Shape<'_>, before: Option<Value>, command: &str, needs: Vec<Value>) -> Mapping {
    let mut job = Mapping::new();
    if !needs.is_empty() {
        job.insert("needs".into(), needs.into());
    }
    job.extend(shape.template.job.clone());
    job.insert("env".into(), shape.environment().into());
    let mut steps = shape.template.steps.clone();
    steps.extend(before);
    steps.push(keys([("run", command.into())]).into());
    job.insert("steps".into(), steps.into());
    job
}
