//! The graph of a selection, for Graphviz, Mermaid and programs.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use super::changes::SinceJson;
use super::document::{PathJson, write_with_problems};
use super::json::OriginJson;
use crate::printable::printable;
use crate::project::stack::StackIndex;
use crate::project::{Problems, Project};
use crate::selection::graph::{Arrow, ArrowEnd, Graph};
use crate::selection::select::Selection;

/// The nodes and arrows of a graph.
pub struct Drawing<'a> {
    project: &'a Project,
    selection: &'a Selection,
    /// The selected stacks in path order, then groups.
    nodes: Vec<ArrowEnd>,
    arrows: Vec<Arrow>,
}

impl<'a> Drawing<'a> {
    /// Collects nodes and arrows.
    pub fn new(project: &'a Project, graph: &Graph, selection: &'a Selection) -> Self {
        let mut arrows = graph.arrows(|stack| selection.contains(stack));
        arrows.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
        let mut nodes: Vec<ArrowEnd> = selection.stacks().map(ArrowEnd::Stack).collect();
        let ends = arrows.iter().flat_map(|arrow| [&arrow.from, &arrow.to]);
        let mut groups: Vec<ArrowEnd> = ends
            .filter(|end| matches!(end, ArrowEnd::Group(..)))
            .cloned()
            .collect();
        groups.sort();
        groups.dedup();
        nodes.extend(groups);
        Drawing {
            project,
            selection,
            nodes,
            arrows,
        }
    }

    fn path(&self, stack: StackIndex) -> &'a str {
        self.project.stacks[stack].path.as_str()
    }

    /// Returns a unique name of a node: for a stack its path, which is never a group's name.
    fn id(&self, end: &ArrowEnd) -> String {
        match end {
            ArrowEnd::Stack(stack) => self.path(*stack).to_owned(),
            ArrowEnd::Group(number, name) if name.is_empty() => format!("part {number}"),
            ArrowEnd::Group(_, name) => name.clone(),
        }
    }

    /// Returns the label of an arrow: the origin of each constraint on its own line, as
    /// `after b/stack.tm:3`. Of thousands, it shows the first few.
    fn labels(&self, arrow: &Arrow) -> Vec<String> {
        let origins = arrow.origins.iter().take(MAX_LABELS);
        let mut labels: Vec<String> = origins
            .map(|origin| format!("{} {}", origin.kind, self.project.sources.line(origin.span)))
            .collect();
        let via = arrow.via.iter().take(MAX_LABELS);
        labels.extend(via.map(|&stack| format!("via {}", self.path(stack))));
        let more = arrow
            .origins
            .len()
            .max(arrow.via.len())
            .saturating_sub(MAX_LABELS);
        if more > 0 {
            labels.push(format!("and {more} more"));
        }
        labels
    }
}

/// How many lines of each kind the label of an arrow has.
const MAX_LABELS: usize = 5;

pub fn write_dot(out: &mut impl Write, drawing: &Drawing) -> io::Result<()> {
    let quoted = |text: &str| {
        let text = printable(text);
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    };
    writeln!(out, "digraph orch {{")?;
    writeln!(out, "  rankdir = LR")?;
    writeln!(out, "  node [shape = box]")?;
    for node in &drawing.nodes {
        let shape = match node {
            ArrowEnd::Stack(_) => "",
            ArrowEnd::Group(_, name) if name.is_empty() => " [shape = point]",
            ArrowEnd::Group(..) => " [shape = folder, style = dashed]",
        };
        writeln!(out, "  {}{shape}", quoted(&drawing.id(node)))?;
    }
    for arrow in &drawing.arrows {
        let (from, to) = (
            quoted(&drawing.id(&arrow.from)),
            quoted(&drawing.id(&arrow.to)),
        );
        let labels: Vec<String> = drawing
            .labels(arrow)
            .iter()
            .map(|label| quoted(label))
            .collect();
        let mut attributes = Vec::new();
        if !labels.is_empty() {
            // Each label is quoted, so what joins them is the only line feed.
            attributes.push(format!(
                "label = {}",
                labels.join("").replace("\"\"", "\\n")
            ));
        }
        if arrow.in_cycle {
            attributes.push("color = red".to_owned());
        }
        if !arrow.via.is_empty() {
            attributes.push("style = dashed".to_owned());
        }
        let mut attributes = attributes.join(", ");
        if !attributes.is_empty() {
            attributes = format!(" [{attributes}]");
        }
        writeln!(out, "  {from} -> {to}{attributes}")?;
    }
    writeln!(out, "}}")
}

pub fn write_mermaid(out: &mut impl Write, drawing: &Drawing) -> io::Result<()> {
    // Mermaid reads some characters even inside quotes; it takes any as a numbered entity.
    let escaped = |text: &str| {
        let mut escaped = String::new();
        for character in printable(text).chars() {
            match character {
                '"' | '#' | '<' | '>' | '&' | '`' | '|' | '[' | ']' | '{' | '}' | '\\' | ';' => {
                    _ = write!(escaped, "#{};", u32::from(character));
                }
                plain => escaped.push(plain),
            }
        }
        escaped
    };
    writeln!(out, "flowchart LR")?;
    let position = |end: &ArrowEnd| drawing.nodes.binary_search(end).unwrap_or_default();
    for (index, node) in drawing.nodes.iter().enumerate() {
        let label = escaped(&drawing.id(node));
        match node {
            ArrowEnd::Stack(_) => writeln!(out, "  n{index}[\"{label}\"]")?,
            ArrowEnd::Group(..) => writeln!(out, "  n{index}([\"{label}\"])")?,
        }
    }
    let mut in_cycle = Vec::new();
    for (index, arrow) in drawing.arrows.iter().enumerate() {
        let (from, to) = (position(&arrow.from), position(&arrow.to));
        let labels: Vec<String> = drawing
            .labels(arrow)
            .iter()
            .map(|label| escaped(label))
            .collect();
        let line = if arrow.via.is_empty() { "-->" } else { "-.->" };
        if labels.is_empty() {
            writeln!(out, "  n{from} {line} n{to}")?;
        } else {
            writeln!(out, "  n{from} {line}|\"{}\"| n{to}", labels.join("<br>"))?;
        }
        if arrow.in_cycle {
            in_cycle.push(index.to_string());
        }
    }
    if !in_cycle.is_empty() {
        writeln!(out, "  linkStyle {} stroke:red", in_cycle.join(","))?;
    }
    Ok(())
}

/// Writes the graph as data.
pub fn write_graph_json(
    out: &mut impl Write,
    drawing: &Drawing,
    problems: &Problems,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct GraphJson<'a> {
        #[serde(flatten)]
        since: Option<SinceJson<'a>>,
        stacks: Vec<PathJson<'a>>,
        nodes: Vec<NodeJson<'a>>,
        edges: Vec<EdgeJson<'a>>,
    }
    #[derive(Serialize)]
    struct NodeJson<'a> {
        id: String,
        /// `stack`, or `group` for several stacks that are referred to together.
        kind: &'static str,
        path: Option<&'a str>,
        name: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct EdgeJson<'a> {
        from: String,
        to: String,
        origins: Vec<OriginJson<'a>>,
        /// Unselected stacks in between.
        via: Vec<&'a str>,
        cycle: bool,
    }
    let nodes = drawing.nodes.iter().map(|node| match node {
        ArrowEnd::Stack(stack) => NodeJson {
            id: drawing.id(node),
            kind: "stack",
            path: Some(drawing.path(*stack)),
            name: Some(&drawing.project.stacks[*stack].name),
        },
        ArrowEnd::Group(..) => NodeJson {
            id: drawing.id(node),
            kind: "group",
            path: None,
            name: None,
        },
    });
    let stacks = drawing
        .selection
        .stacks()
        .map(|stack| PathJson::new(&drawing.project.stacks[stack].path));
    let edges = drawing.arrows.iter().map(|arrow| EdgeJson {
        from: drawing.id(&arrow.from),
        to: drawing.id(&arrow.to),
        origins: OriginJson::all(&arrow.origins, &drawing.project.sources),
        via: arrow.via.iter().map(|&stack| drawing.path(stack)).collect(),
        cycle: arrow.in_cycle,
    });
    let document = GraphJson {
        since: drawing.selection.since().map(SinceJson::new),
        stacks: stacks.collect(),
        nodes: nodes.collect(),
        edges: edges.collect(),
    };
    write_with_problems(out, &document, drawing.project, problems)
}
