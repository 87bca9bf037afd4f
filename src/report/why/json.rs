//! The story for programs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::{Story, flag_text};
use crate::change::trigger::Trigger;
use crate::project::Problems;
use crate::project::stack::StackIndex;
use crate::report::changes::{InputJson, SinceJson, TriggerJson};
use crate::report::json::{FORMAT, OriginJson, ProblemsJson, place};
use crate::report::reasons::{EvidenceJson, ReasonJson, reason_json};
use crate::selection::graph::Origin;
use crate::selection::select::Obstacle;
use crate::selection::why::{Question, Way};

#[derive(Serialize)]
struct WhyJson<'a> {
    format: u32,
    #[serde(flatten)]
    since: Option<SinceJson<'a>>,
    path: &'a str,
    name: &'a str,
    id: Option<&'a str>,
    tags: Vec<&'a str>,
    selected: bool,
    /// Why it is selected.
    reasons: Vec<ReasonJson<'a>>,
    /// Why it is not.
    left_out: Vec<ReasonJson<'a>>,
    inputs: Vec<InputJson<'a>>,
    runs_after: Vec<NeighbourJson<'a>>,
    runs_before: Vec<NeighbourJson<'a>>,
    would_select: WouldSelectJson<'a>,
    #[serde(flatten)]
    problems: ProblemsJson<'a>,
}

#[derive(Serialize)]
struct NeighbourJson<'a> {
    path: &'a str,
    selected: bool,
    origins: Vec<OriginJson<'a>>,
}

#[derive(Serialize)]
struct WouldSelectJson<'a> {
    /// Flags that must be left out in any case.
    leaving_out: Vec<String>,
    /// What together makes all filters let it pass; empty if they do.
    filters: Vec<String>,
    /// What would do as well as all of `filters`.
    or: Vec<WayJson<'a>>,
}

#[derive(Serialize)]
struct WayJson<'a> {
    kind: &'static str,
    detail: String,
    /// The stack that would bring it along.
    stack: Option<&'a str>,
    /// The flag that would.
    flag: Option<String>,
    file: Option<&'a str>,
    line: Option<usize>,
}

/// Writes the story of a stack as one document.
///
/// # Errors
///
/// If it cannot be written.
pub fn write_why_json(
    out: &mut impl Write,
    story: &Story<'_>,
    problems: &Problems,
) -> io::Result<()> {
    let Story { question, why, .. } = *story;
    let Question {
        project, selection, ..
    } = *question;
    let stack = story.stack();
    let reasons = selection.reasons(question.stack).iter();
    let left_out = why.obstacles.iter();
    let document = WhyJson {
        format: FORMAT,
        since: selection.since().map(SinceJson::new),
        path: stack.path.as_str(),
        name: &stack.name,
        id: stack.id.as_ref().map(|id| id.value.as_str()),
        tags: stack.tags().collect(),
        selected: story.is_selected(),
        reasons: reasons.map(|reason| reason_json(reason, project)).collect(),
        left_out: left_out.flat_map(|it| obstacle_json(it, story)).collect(),
        inputs: why.inputs.iter().map(InputJson::new).collect(),
        runs_after: neighbours(story, &why.after),
        runs_before: neighbours(story, &why.before),
        would_select: WouldSelectJson {
            leaving_out: why.in_the_way.iter().map(flag_text).collect(),
            filters: story.remedies(),
            or: why.ways.iter().map(|way| way_json(way, story)).collect(),
        },
        problems: ProblemsJson::new(problems, project),
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

/// Says what leaves the stack out, each trigger for itself.
fn obstacle_json<'a>(obstacle: &'a Obstacle, story: &Story<'a>) -> Vec<ReasonJson<'a>> {
    let (kind, evidence) = match obstacle {
        Obstacle::Unchanged => ("changed", None),
        Obstacle::Dismissed(triggers) => {
            let reason = |trigger: &'a Trigger| ReasonJson {
                kind: "ignore_change",
                detail: story.dismissed_text(std::slice::from_ref(trigger)),
                evidence: Some(EvidenceJson::Trigger(TriggerJson::new(trigger))),
            };
            return triggers.iter().map(reason).collect();
        }
        Obstacle::Directory(..) => ("directory", None),
        Obstacle::Globs => ("match", None),
        Obstacle::Unnamed(_) => ("named", None),
        Obstacle::Tags => ("tags", None),
        Obstacle::NoTags(_) => ("no_tags", None),
        Obstacle::Excluded(_) => ("exclude", None),
        Obstacle::Only(_) => ("only", None),
        Obstacle::Neighbour(_, step) => {
            let (file, line) = place(step.origin.span, &story.question.project.sources);
            let stack = story.question.project.stacks[step.from].path.as_str();
            let evidence = EvidenceJson::Stack { stack, file, line };
            ("exclude_neighbour", Some(evidence))
        }
    };
    vec![ReasonJson {
        kind,
        detail: story.obstacle_text(obstacle),
        evidence,
    }]
}

fn neighbours<'a>(
    story: &Story<'a>,
    constraints: &BTreeMap<StackIndex, Vec<Origin>>,
) -> Vec<NeighbourJson<'a>> {
    let neighbour = |(&stack, origins): (&StackIndex, &Vec<Origin>)| NeighbourJson {
        path: story.question.project.stacks[stack].path.as_str(),
        selected: story.question.selection.contains(stack),
        origins: origins
            .iter()
            .map(|origin| OriginJson::new(origin, &story.question.project.sources))
            .collect(),
    };
    constraints.iter().map(neighbour).collect()
}

fn way_json<'a>(way: &Way, story: &Story<'a>) -> WayJson<'a> {
    let path = |stack: StackIndex| Some(story.question.project.stacks[stack].path.as_str());
    let (kind, stack, span) = match way {
        Way::Wants(by, span) => ("wants", path(*by), Some(*span)),
        Way::WantedBy(named, span) => ("wanted_by", path(*named), Some(*span)),
        Way::Neighbour(_, selected, _) => ("neighbour", path(*selected), None),
    };
    let place = span.map(|span| place(span, &story.question.project.sources));
    WayJson {
        kind,
        detail: story.way_text(way),
        stack,
        flag: match way {
            Way::Neighbour(reach, ..) => Some(reach.to_string()),
            Way::Wants(..) | Way::WantedBy(..) => None,
        },
        file: place.map(|(file, _)| file),
        line: place.map(|(_, line)| line),
    }
}
