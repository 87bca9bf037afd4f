//! The policies, the stacks and modules that they are attached to, their answers, and the stacks that they request when
//! others have ended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Write};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef as _;
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

/// Policies request a stack when another one has ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PolicyArrow {
    pub from: StackPath,
    pub state: &'static str,
    pub to: StackPath,
    pub policies: Vec<String>,
}

/// The requests of policies between stacks.
#[derive(Debug, Default)]
pub struct PolicyGraph {
    arrows: Vec<PolicyArrow>,
    loops: Vec<Vec<usize>>,
}

impl PolicyGraph {
    /// Returns the graph of these arrows, of which there is one for each pair of stacks and state.
    pub fn new(mut arrows: Vec<PolicyArrow>) -> Self {
        arrows.sort();
        let loops = loops(&arrows);
        PolicyGraph { arrows, loops }
    }

    /// Returns a chain of stacks and policies for each group of stacks in a loop: `/a → retry
    /// (FAILED) → /a`. In each group, it is a shortest one through its first stack.
    pub fn loops(&self) -> impl Iterator<Item = String> {
        self.loops.iter().map(|arrows| {
            let mut chain = String::new();
            for arrow in arrows.iter().map(|&arrow| &self.arrows[arrow]) {
                if chain.is_empty() {
                    chain = printable(arrow.from.as_str()).into_owned();
                }
                let (state, to) = (arrow.state, printable(arrow.to.as_str()));
                chain += &format!(" → {} ({state}) → {to}", arrow.policies.join(", "));
            }
            chain
        })
    }

    /// Writes a line for each arrow.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        for arrow in &self.arrows {
            let PolicyArrow {
                from, state, to, ..
            } = arrow;
            let (from, to) = (printable(from.as_str()), printable(to.as_str()));
            writeln!(
                out,
                "{from} {state} → {to}  ({})",
                arrow.policies.join(", ")
            )?;
        }
        Ok(())
    }

    /// Writes the graph for Graphviz: follow-ups of failures are dashed, loops are red.
    pub fn write_dot(&self, out: &mut impl Write) -> io::Result<()> {
        let quoted = |text: &str| {
            let text = printable(text);
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        };
        writeln!(out, "digraph policies {{")?;
        writeln!(out, "  rankdir = LR")?;
        writeln!(out, "  node [shape = box]")?;
        let in_loops: BTreeSet<usize> = self.loops.iter().flatten().copied().collect();
        for (position, arrow) in self.arrows.iter().enumerate() {
            let PolicyArrow {
                from, state, to, ..
            } = arrow;
            let (from, to) = (quoted(from.as_str()), quoted(to.as_str()));
            let label = quoted(&format!("{}: {state}", arrow.policies.join(", ")));
            let mut attributes = format!("label = {label}");
            if *state != "FINISHED" {
                attributes += ", style = dashed";
            }
            if in_loops.contains(&position) {
                attributes += ", color = red";
            }
            writeln!(out, "  {from} -> {to} [{attributes}]")?;
        }
        writeln!(out, "}}")
    }

    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct Document<'a> {
            arrows: &'a [PolicyArrow],
            loops: Vec<Vec<&'a PolicyArrow>>,
        }
        let loops = self
            .loops
            .iter()
            .map(|chain| chain.iter().map(|&arrow| &self.arrows[arrow]).collect());
        let document = Document {
            arrows: &self.arrows,
            loops: loops.collect(),
        };
        write_json_pretty(out, &document)
    }
}

/// Returns the arrows of a shortest loop through the first stack of each strongly connected group.
fn loops(arrows: &[PolicyArrow]) -> Vec<Vec<usize>> {
    let mut graph: DiGraph<&StackPath, usize> = DiGraph::new();
    let mut nodes: BTreeMap<&StackPath, NodeIndex> = BTreeMap::new();
    for path in arrows.iter().flat_map(|arrow| [&arrow.from, &arrow.to]) {
        nodes.entry(path).or_insert_with(|| graph.add_node(path));
    }
    for (position, arrow) in arrows.iter().enumerate() {
        graph.add_edge(nodes[&arrow.from], nodes[&arrow.to], position);
    }
    let mut loops: Vec<Vec<usize>> = Vec::new();
    for group in kosaraju_scc(&graph) {
        let first = group.iter().copied().min_by_key(|&node| graph[node]);
        let group: BTreeSet<NodeIndex> = group.into_iter().collect();
        loops.extend(first.and_then(|first| way_back(&graph, first, &group)));
    }
    loops.sort_unstable();
    loops
}

/// Returns the arrows of a shortest path from a stack to itself, within its group: no other leads back.
fn way_back(
    graph: &DiGraph<&StackPath, usize>,
    start: NodeIndex,
    group: &BTreeSet<NodeIndex>,
) -> Option<Vec<usize>> {
    // The arrow that led to each node, and where it begins.
    let mut by: BTreeMap<NodeIndex, (usize, NodeIndex)> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(node) = waiting.pop_front() {
        let within = graph
            .edges(node)
            .filter(|edge| group.contains(&edge.target()));
        let mut leaving: Vec<(usize, NodeIndex)> =
            within.map(|edge| (*edge.weight(), edge.target())).collect();
        leaving.sort_unstable();
        for (arrow, to) in leaving {
            if to == start {
                let mut way = vec![arrow];
                let mut at = node;
                while at != start {
                    let (arrow, from) = by[&at];
                    way.push(arrow);
                    at = from;
                }
                way.reverse();
                return Some(way);
            }
            if let std::collections::btree_map::Entry::Vacant(entry) = by.entry(to) {
                entry.insert((arrow, node));
                waiting.push_back(to);
            }
        }
    }
    None
}
