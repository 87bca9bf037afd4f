//! GitLab: a child pipeline, whose jobs start as soon as those that they need have ended.
//!
//! All jobs are in one stage. What they have in common is in a hidden job, once.

use yaml_serde::{Mapping, Value};

use super::limits::{Engine, LimitKind};
use super::shape::{ExportError, PipelineJobs, Shape, check, keys, yaml_file};
use super::{JobGraph, PipelineJob};

/// The hidden job.
const COMMON: &str = ".orch";

pub(super) fn write(shape: &Shape<'_>) -> Result<String, ExportError> {
    let mut common = shape.template.job.clone();
    common.insert("stage".into(), "orch".into());
    common.insert("variables".into(), shape.environment().into());
    let mut artifacts = shape.template.artifacts.clone();
    let paths = shape.artifact_paths();
    if !paths.is_empty() {
        artifacts.insert("paths".into(), paths.into());
    }
    if shape.results.is_some() {
        artifacts.insert("when".into(), "always".into());
        // Logs may have secrets.
        if !artifacts.contains_key("access") {
            artifacts.insert("access".into(), "developer".into());
        }
    }
    if !artifacts.is_empty() {
        common.insert("artifacts".into(), artifacts.into());
    }
    // A job that the engine skips hands on no results, so `orch` skips its stacks instead.
    if !shape.stops || shape.results.is_some() {
        common.insert("when".into(), "always".into());
    }
    let mut pipeline = keys([
        ("stages", vec![Value::from("orch")].into()),
        (COMMON, common.into()),
    ]);
    let last = match shape.jobs {
        PipelineJobs::Graph(graph) => {
            for job in &graph.jobs {
                let id = job.id.as_str();
                pipeline.insert(id.into(), graph_job(shape, graph, job).into());
            }
            needs(shape, graph, &graph.last)
        }
        PipelineJobs::Workers(workers) => {
            check(Engine::Gitlab, LimitKind::Workers, workers.get())?;
            let mut work = of(shape, &shape.command("work"), Vec::new());
            work.insert("parallel".into(), workers.get().into());
            pipeline.insert("work".into(), work.into());
            vec![need(shape, "work")]
        }
    };
    let mut finish = of(shape, &shape.command("finish"), last);
    finish.insert("when".into(), "always".into());
    pipeline.insert("finish".into(), finish.into());
    Ok(yaml_file(&pipeline))
}

fn graph_job(shape: &Shape<'_>, graph: &JobGraph, job: &PipelineJob) -> Mapping {
    let needs = needs(shape, graph, &job.needs);
    if job.turns.is_empty() {
        let mut barrier = of(shape, "true", needs);
        let variables = keys([("GIT_STRATEGY", "none".into())]);
        barrier.insert("variables".into(), variables.into());
        return barrier;
    }
    of(shape, &shape.command(&format!("job {}", job.id)), needs)
}

fn needs(shape: &Shape<'_>, graph: &JobGraph, jobs: &[usize]) -> Vec<Value> {
    let jobs = jobs.iter();
    jobs.map(|&job| need(shape, &graph.jobs[job].id)).collect()
}

/// Returns the dependency on a job. Each job has the results of those before it among its artifacts, so the last one has
/// all.
fn need(shape: &Shape<'_>, id: &str) -> Value {
    let has_results = shape.results.is_some();
    keys([("job", id.into()), ("artifacts", has_results.into())]).into()
}

fn of(shape: &Shape<'_>, command: &str, mut needs: Vec<Value>) -> Mapping {
    needs.extend(shape.template.needs.iter().cloned());
    keys([
        ("extends", COMMON.into()),
        ("needs", needs.into()),
        ("script", vec![Value::from(command)].into()),
    ])
}
