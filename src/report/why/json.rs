//! The explanation of a stack as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::{FilterRemedy, PolicyStarter, Story, flag_text, obstacle_kind};
use crate::change::trigger::Trigger;
use crate::project::Problems;
use crate::project::stack::{StackIndex, StackUse};
use crate::report::changes::{InputJson, SinceJson, TriggerJson, UseJson};
use crate::report::document::{PathJson, write_with_problems};
use crate::report::json::OriginJson;
use crate::report::reasons::{EvidenceJson, ReasonJson, ReleasedJson, reason_json};
use crate::report::rules::RulesJson;
use crate::selection::graph::{Origin, RelatedStack};
use crate::selection::select::Obstacle;
use crate::selection::why::{Alternative, WhyQuestion};
use crate::source::Sources;

#[derive(Serialize)]
struct WhyJson<'a> {
    #[serde(flatten)]
    since: Option<SinceJson<'a>>,
    stacks: Vec<PathJson<'a>>,
    /// The explanation of the stack, if the path names only one.
    #[serde(flatten)]
    only: Option<StoryJson<'a>>,
    /// The explanation of each instance, if the path names several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    instances: Vec<StoryJson<'a>>,
}

#[derive(Serialize)]
struct StoryJson<'a> {
    #[serde(flatten)]
    path: PathJson<'a>,
    name: &'a str,
    id: Option<&'a str>,
    tags: Vec<&'a str>,
    selected: bool,
    reasons: Vec<ReasonJson<'a>>,
    left_out: Vec<ReasonJson<'a>>,
    inputs: Vec<InputJson<'a>>,
    /// The variables of `run.env` that `ignore_changes` excludes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignored_variables: Vec<UseJson<'a>>,
    /// The references to files whose paths cannot be determined.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown_paths: Vec<UseJson<'a>>,
    /// The data of other stacks that it uses.
    uses: Vec<UsedJson<'a>>,
    /// The lifecycle rules, if any is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    lifecycle: Option<RulesJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    policies: Vec<&'a str>,
    /// The policies that ask for it when other stacks end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    started_by: Vec<StarterJson<'a>>,
    runs_after: Vec<NeighbourJson<'a>>,
    runs_before: Vec<NeighbourJson<'a>>,
    would_select: WouldSelectJson<'a>,
}

#[derive(Serialize)]
struct StarterJson<'a> {
    policy: &'a str,
    file: &'a str,
    after: Vec<AfterJson<'a>>,
}

#[derive(Serialize)]
struct AfterJson<'a> {
    path: &'a str,
    state: &'static str,
}

#[derive(Serialize)]
struct NeighbourJson<'a> {
    path: &'a str,
    selected: bool,
    origins: Vec<OriginJson<'a>>,
    /// The unselected stacks in between.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    via: Vec<&'a str>,
}

#[derive(Serialize)]
struct WouldSelectJson<'a> {
    /// Flags to leave out in any case.
    leaving_out: Vec<String>,
    /// The changes that let it pass all filters; empty if it passes them.
    filters: Vec<FilterRemedy>,
    /// Alternatives to all of `filters` together.
    or: Vec<WayJson<'a>>,
}

#[derive(Serialize)]
struct WayJson<'a> {
    kind: &'static str,
    detail: String,
    /// The stack that would add it.
    stack: Option<&'a str>,
    flag: Option<String>,
    file: Option<&'a str>,
    line: Option<usize>,
}

/// Writes the explanations of stacks as JSON: of one, or of the instances of a directory.
pub fn write_why_json(
    out: &mut impl Write,
    stories: &[Story<'_>],
    problems: &Problems,
) -> io::Result<()> {
    let Some(WhyQuestion {
        project, selection, ..
    }) = stories.first().map(|story| story.question)
    else {
        return Ok(());
    };
    let mut told: Vec<StoryJson<'_>> = stories.iter().map(story_json).collect();
    let document = WhyJson {
        since: selection.since().map(SinceJson::new),
        stacks: stories
            .iter()
            .map(|story| PathJson::new(&story.stack().path))
            .collect(),
        only: told.pop_if(|_| stories.len() == 1),
        instances: told,
    };
    write_with_problems(out, &document, project, problems)
}

/// A use of data of another stack.
#[derive(Serialize)]
pub(in crate::report) struct UsedJson<'a> {
    stack: &'a str,
    kind: String,
    file: &'a str,
    line: usize,
    orders: bool,
}

impl<'a> UsedJson<'a> {
    pub(in crate::report) fn new(used: &'a StackUse, sources: &'a Sources) -> Self {
        let (file, line) = sources.file_and_line(used.span);
        UsedJson {
            stack: used.stack.as_str(),
            kind: used.kind.to_string(),
            file,
            line,
            orders: used.orders,
        }
    }
}

fn story_json<'a>(story: &Story<'a>) -> StoryJson<'a> {
    let Story { question, why, .. } = *story;
    let WhyQuestion {
        project, selection, ..
    } = *question;
    let stack = story.stack();
    let reasons = selection.reasons(question.stack).iter();
    let left_out = why.obstacles.iter();
    let starter = |starter: &'a PolicyStarter| {
        let policy = &project.policies[starter.policy];
        let after = starter.after.iter().map(|(stack, state)| AfterJson {
            path: project.stacks[*stack].path.as_str(),
            state: state.word(),
        });
        StarterJson {
            policy: &policy.name.value,
            file: policy.file.value.as_str(),
            after: after.collect(),
        }
    };
    StoryJson {
        path: PathJson::new(&stack.path),
        name: &stack.name,
        id: stack.id.as_ref().map(|id| id.value.as_str()),
        tags: stack.tags().collect(),
        selected: story.is_selected(),
        reasons: reasons.map(|reason| reason_json(reason, project)).collect(),
        left_out: left_out.flat_map(|it| obstacle_json(it, story)).collect(),
        inputs: why.inputs.iter().map(InputJson::new).collect(),
        ignored_variables: story.ignored_variables.iter().map(UseJson::new).collect(),
        unknown_paths: story.unknown_paths.iter().map(UseJson::new).collect(),
        uses: (stack.uses.iter())
            .map(|used| UsedJson::new(used, &project.sources))
            .collect(),
        lifecycle: RulesJson::new(&project.rules_of(story.question.stack), project),
        policies: (story.policies.iter())
            .map(|policy| policy.name.value.as_str())
            .collect(),
        started_by: story.starters.iter().map(starter).collect(),
        runs_after: neighbours(story, &why.after, &why.after_through),
        runs_before: neighbours(story, &why.before, &why.before_through),
        would_select: WouldSelectJson {
            leaving_out: why.in_the_way.iter().map(flag_text).collect(),
            filters: story.remedies(),
            or: why.ways.iter().map(|way| way_json(way, story)).collect(),
        },
    }
}

/// Returns the obstacle that leaves the stack out, with a separate entry for each trigger.
fn obstacle_json<'a>(obstacle: &'a Obstacle, story: &Story<'a>) -> Vec<ReasonJson<'a>> {
    let kind = obstacle_kind(obstacle);
    let evidence = match obstacle {
        Obstacle::Dismissed(triggers) => {
            let reason = |trigger: &'a Trigger| ReasonJson {
                kind,
                detail: story.dismissed_text(std::slice::from_ref(trigger)),
                evidence: Some(EvidenceJson::Trigger(TriggerJson::new(trigger))),
            };
            return triggers.iter().map(reason).collect();
        }
        Obstacle::Unreleased(released) => Some(EvidenceJson::Released(ReleasedJson::new(released))),
        Obstacle::Neighbour(_, step) => {
            let (file, line) = story
                .question
                .project
                .sources
                .file_and_line(step.origin.span);
            let stack = story.question.project.stacks[step.from].path.as_str();
            let evidence = EvidenceJson::Stack { stack, file, line };
            Some(evidence)
        }
        _ => None,
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
    through: &[RelatedStack],
) -> Vec<NeighbourJson<'a>> {
    let WhyQuestion {
        project, selection, ..
    } = *story.question;
    let path = |stack: StackIndex| project.stacks[stack].path.as_str();
    let neighbour = |stack: StackIndex, origins: &[Origin], via: &[StackIndex]| NeighbourJson {
        path: path(stack),
        selected: selection.contains(stack),
        origins: OriginJson::all(origins, &project.sources),
        via: via.iter().map(|&stack| path(stack)).collect(),
    };
    let direct = constraints
        .iter()
        .map(|(&stack, origins)| neighbour(stack, origins, &[]));
    let through = through
        .iter()
        .map(|it| neighbour(it.stack, &it.origins, &it.via));
    direct.chain(through).collect()
}

fn way_json<'a>(way: &Alternative, story: &Story<'a>) -> WayJson<'a> {
    let path = |stack: StackIndex| Some(story.question.project.stacks[stack].path.as_str());
    let (kind, stack, span) = match way {
        Alternative::Wants(by, span) => ("wants", path(*by), Some(*span)),
        Alternative::WantedBy(named, span) => ("wanted_by", path(*named), Some(*span)),
        Alternative::Neighbour(_, selected, _) => ("neighbour", path(*selected), None),
    };
    let place = span.map(|span| story.question.project.sources.file_and_line(span));
    WayJson {
        kind,
        detail: story.way_text(way),
        stack,
        flag: match way {
            Alternative::Neighbour(reach, ..) => Some(reach.to_string()),
            Alternative::Wants(..) | Alternative::WantedBy(..) => None,
        },
        file: place.map(|(file, _)| file),
        line: place.map(|(_, line)| line),
    }
}
