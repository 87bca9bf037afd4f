//! The policies, the stacks and modules that they are attached to, and their answers.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::Serialize;

use super::document::{ProblemsJson, write_json_pretty};
use crate::path::StackPath;
use crate::policy::{Dialect, PolicyOutput, Problem};
use crate::printable::printable;
use crate::project::{Problems, Project};

/// A policy without problems.
#[derive(Debug, Serialize)]
pub struct ValidPolicy<'a> {
    pub name: &'a str,
    /// Its file, from the project root.
    pub file: &'a str,
    /// The Rego version that it is written in.
    #[serde(rename = "rego")]
    pub dialect: Dialect,
    /// The stacks that it is attached to, in path order.
    pub stacks: Vec<&'a StackPath>,
    pub modules: Vec<&'a str>,
}

pub fn write_policies(
    out: &mut impl Write,
    is_json: bool,
    policies: &[ValidPolicy<'_>],
    project: &Project,
    problems: &Problems,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        problems: ProblemsJson<'a>,
        policies: &'a [ValidPolicy<'a>],
    }
    if is_json {
        let document = Document {
            problems: ProblemsJson::new(problems, project),
            policies,
        };
        return write_json_pretty(out, &document);
    }
    for policy in policies {
        let plural = |number: usize, thing: &str| match number {
            0 => None,
            1 => Some(format!("1 {thing}")),
            more => Some(format!("{more} {thing}s")),
        };
        let of_stacks = plural(policy.stacks.len(), "stack");
        let of_modules = plural(policy.modules.len(), "module");
        let attached: Vec<String> = of_stacks.into_iter().chain(of_modules).collect();
        let attached = match &attached[..] {
            [] => "nothing".to_owned(),
            attached => attached.join(" and "),
        };
        let file = policy.file.trim_start_matches('/');
        let ValidPolicy { name, dialect, .. } = policy;
        writeln!(
            out,
            "{name}  {} ({dialect}), attached to {attached}",
            printable(file)
        )?;
    }
    Ok(())
}

/// Writes the answer of a policy; as text, nothing if it fails.
pub fn write_answer(
    out: &mut impl Write,
    is_json: bool,
    (file, dialect): (&str, Dialect),
    answer: Result<&PolicyOutput, &Problem>,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Answered<'a> {
        file: &'a str,
        rego: Dialect,
        trigger: &'a BTreeSet<String>,
        flag: &'a BTreeSet<String>,
        reset_flag: &'a BTreeSet<String>,
        sample: bool,
        prints: &'a [String],
    }
    #[derive(Serialize)]
    struct Failed<'a> {
        file: &'a str,
        rego: Dialect,
        problem: ShownProblem<'a>,
    }
    #[derive(Serialize)]
    struct ShownProblem<'a> {
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<u32>,
    }
    let answer = match (answer, is_json) {
        (Ok(answer), true) => {
            let answered = Answered {
                file,
                rego: dialect,
                trigger: &answer.trigger,
                flag: &answer.flag,
                reset_flag: &answer.reset_flag,
                sample: answer.sample,
                prints: &answer.prints,
            };
            return write_json_pretty(out, &answered);
        }
        (Err(problem), true) => {
            let failed = Failed {
                file,
                rego: dialect,
                problem: ShownProblem {
                    message: &problem.message,
                    line: problem.place.map(|(line, _)| line),
                    column: problem.place.map(|(_, column)| column),
                },
            };
            return write_json_pretty(out, &failed);
        }
        (Ok(answer), false) => answer,
        (Err(_), false) => return Ok(()),
    };
    for print in &answer.prints {
        writeln!(out, "print: {}", printable(print))?;
    }
    let results = [
        ("trigger", &answer.trigger),
        ("flag", &answer.flag),
        ("reset_flag", &answer.reset_flag),
    ];
    for (name, texts) in results {
        for text in texts {
            writeln!(out, "{name}: {}", printable(text))?;
        }
    }
    if answer.sample {
        writeln!(out, "sample: true")?;
    }
    if *answer == PolicyOutput::default() {
        writeln!(out, "nothing follows")?;
    }
    Ok(())
}
