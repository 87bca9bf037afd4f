//! `make`: a Makefile for `make -k -j N`.
//!
//! All targets are phony: a second run asks each job, which does what is left. Unless the run stops after
//! a failure, `make` goes on after a failed job, and `orch` decides for each stack. Then the last target
//! has the status of the whole run.

use super::pipeline::{Jobs, Shape, sealed};
use super::{Job, JobGraph};

pub(super) fn write(shape: &Shape<'_>) -> String {
    let targets: Vec<Target<'_>> = match shape.jobs {
        Jobs::Graph(graph) => {
            let jobs = graph.jobs.iter();
            jobs.map(|job| target_of(shape, graph, job)).collect()
        }
        Jobs::Workers(workers) => {
            let numbers = 1..=workers.get();
            let worker = |number| Target {
                id: format!("work-{number}"),
                needs: Vec::new(),
                recipe: recipe(shape, "work"),
            };
            numbers.map(worker).collect()
        }
    };
    let last: Vec<&str> = match shape.jobs {
        Jobs::Graph(graph) => ids(graph, &graph.last),
        Jobs::Workers(_) => targets.iter().map(|target| &*target.id).collect(),
    };
    let finish = Target {
        id: "finish".to_owned(),
        needs: last,
        recipe: format!("\t@{}\n", escaped(&shape.command("finish"))),
    };
    let mut text = String::new();
    for (name, value) in shape.variables() {
        text += &format!("export {name} := {value}\n");
    }
    let all: Vec<&Target> = [&finish].into_iter().chain(&targets).collect();
    let names: Vec<&str> = all.iter().map(|target| &*target.id).collect();
    text += &format!("\n.PHONY: {}\n", names.join(" "));
    for Target { id, needs, recipe } in all {
        let line = [&[format!("\n{id}:").as_str()], &needs[..]]
            .concat()
            .join(" ");
        text += &format!("{line}\n{recipe}");
    }
    sealed(&text)
}

struct Target<'g> {
    id: String,
    needs: Vec<&'g str>,
    recipe: String,
}

fn target_of<'g>(shape: &Shape<'_>, graph: &'g JobGraph, job: &Job) -> Target<'g> {
    Target {
        id: job.id.clone(),
        needs: ids(graph, &job.needs),
        recipe: match job.turns[..] {
            [] => String::new(),
            _ => recipe(shape, &format!("job {}", job.id)),
        },
    }
}

fn ids<'g>(graph: &'g JobGraph, jobs: &[usize]) -> Vec<&'g str> {
    jobs.iter()
        .map(|&job| graph.jobs[job].id.as_str())
        .collect()
}

fn recipe(shape: &Shape<'_>, words: &str) -> String {
    let ignores = if shape.stops { "" } else { "-" };
    format!("\t{ignores}@{}\n", escaped(&shape.command(words)))
}

fn escaped(command: &str) -> String {
    command.replace('$', "$$")
}
