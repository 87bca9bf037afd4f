//! Buildkite: steps for `buildkite-agent pipeline upload`, in several files if there are many.
//!
//! Each file waits only for steps of its own and of earlier ones, so upload them in their order.

use yaml_serde::{Mapping, Value};

use super::limits::{Engine, LimitKind};
use super::shape::{ExportError, PipelineJobs, Shape, check, keys, yaml_file};
use super::template::ARTIFACT_PATHS;
use super::{JobGraph, PipelineJob};

pub(super) fn write(shape: &Shape<'_>) -> Result<Vec<String>, ExportError> {
    let mut steps: Vec<Value> = Vec::new();
    let last = match shape.jobs {
        PipelineJobs::Graph(graph) => {
            let jobs = graph.jobs.iter();
            steps.extend(jobs.map(|job| Value::from(step(shape, graph, job))));
            depends_on(graph, &graph.last, false)
        }
        PipelineJobs::Workers(workers) => {
            check(Engine::Buildkite, LimitKind::JobsInFile, workers.get() + 1)?;
            let mut work = of(shape, "work", &shape.command("work"), Vec::new());
            work.insert("parallelism".into(), workers.get().into());
            steps.push(work.into());
            vec![dependency("work", false)]
        }
    };
    let mut finish = of(shape, "finish", &shape.command("finish"), last);
    if let Some(folder) = shape.results {
        // Stacks without a result count as not run.
        let download = format!(
            "buildkite-agent artifact download --include-retried-jobs \"{folder}/**/*\" . || echo \"no results were downloaded\" >&2"
        );
        let command = finish.remove("command").unwrap_or_default();
        finish.insert("command".into(), vec![download.into(), command].into());
    }
    steps.push(finish.into());
    let most = Engine::Buildkite.most(LimitKind::JobsInFile);
    let files = steps.chunks(most.unwrap_or(usize::MAX));
    let file = |steps: &[Value]| yaml_file(&keys([("steps", steps.to_vec().into())]));
    Ok(files.map(file).collect())
}

fn step(shape: &Shape<'_>, graph: &JobGraph, job: &PipelineJob) -> Mapping {
    let depends_on = depends_on(graph, &job.needs, shape.stops);
    if job.turns.is_empty() {
        return of(shape, &job.id, "true", depends_on);
    }
    let command = shape.command(&format!("job {}", job.id));
    of(shape, &job.id, &command, depends_on)
}

fn depends_on(graph: &JobGraph, jobs: &[usize], stops: bool) -> Vec<Value> {
    let jobs = jobs.iter();
    jobs.map(|&job| dependency(&graph.jobs[job].id, stops))
        .collect()
}

fn dependency(id: &str, stops: bool) -> Value {
    keys([("step", id.into()), ("allow_failure", (!stops).into())]).into()
}

fn of(shape: &Shape<'_>, key: &str, command: &str, depends_on: Vec<Value>) -> Mapping {
    let mut step = keys([
        ("key", key.into()),
        ("label", key.into()),
        // The upload replaces variables with a single `$`.
        ("command", command.replace('$', "$$").into()),
    ]);
    if !depends_on.is_empty() {
        step.insert("depends_on".into(), depends_on.into());
    }
    step.extend(shape.template.job.clone());
    let paths = shape.artifact_paths();
    if !paths.is_empty() {
        step.insert(ARTIFACT_PATHS.into(), paths.into());
    }
    step.insert("env".into(), shape.environment().into());
    step
}
