//! Stacks and their environments as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::changes::SinceJson;
use super::document::{PathJson, write_with_problems};
use super::missing::MissingJson;
use super::reasons::{ReasonJson, reason_json};
use super::rules::RulesJson;
use crate::change::{Baseline, MissingStack, StackStatuses};
use crate::project::environment::{EnvOrigin, Environment};
use crate::project::namespaces::Definition;
use crate::project::stack::{Stack, StackIndex};
use crate::project::{Problems, Project};
use crate::selection::graph::{Graph, Origin, RelatedStack, SearchDirection, Wave};
use crate::selection::select::Selection;
use crate::source::{Sources, Spanned};

#[derive(Serialize)]
struct StackJson<'a> {
    #[serde(flatten)]
    path: PathJson<'a>,
    dir: &'a str,
    id: Option<&'a str>,
    name: &'a str,
    description: Option<&'a str>,
    /// Its status, if the state was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    tags: Vec<&'a str>,
    after: Vec<&'a str>,
    before: Vec<&'a str>,
    wants: Vec<&'a str>,
    wanted_by: Vec<&'a str>,
    watch: Vec<String>,
    /// The lifecycle rules, if any is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    lifecycle: Option<RulesJson<'a>>,
    reasons: Vec<ReasonJson<'a>>,
    /// `null` if a cycle leaves it unknown.
    wave: Option<u32>,
    /// `null` if the stack is part of a cycle.
    runs_after: Option<Vec<PredecessorJson<'a>>>,
}

#[derive(Serialize)]
struct PredecessorJson<'a> {
    path: &'a str,
    origins: Vec<OriginJson<'a>>,
    /// Unselected stacks in between.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    via: Vec<&'a str>,
}

#[derive(Serialize)]
pub(super) struct OriginJson<'a> {
    kind: String,
    file: &'a str,
    line: usize,
}

impl<'a> OriginJson<'a> {
    pub(super) fn new(origin: &Origin, sources: &'a Sources) -> Self {
        let (file, line) = sources.file_and_line(origin.span);
        OriginJson {
            kind: origin.kind.to_string(),
            file,
            line,
        }
    }

    pub(super) fn all(origins: &[Origin], sources: &'a Sources) -> Vec<Self> {
        let origins = origins.iter();
        origins.map(|it| OriginJson::new(it, sources)).collect()
    }
}

fn strings<T>(list: &[Spanned<T>], text: impl Fn(&T) -> &str) -> Vec<&str> {
    list.iter().map(|item| text(&item.value)).collect()
}

#[derive(Serialize)]
struct ListJson<'a, T> {
    #[serde(flatten)]
    since: Option<SinceJson<'a>>,
    stacks: T,
    /// The recorded stacks that this commit lacks, if `--status` selects them.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<Vec<MissingJson<'a>>>,
}

/// The output of `orch list`.
pub struct StackList<'a> {
    pub graph: &'a Graph,
    pub selection: &'a Selection,
    /// The same stacks, in the order of the list.
    pub listed: &'a [StackIndex],
    /// The statuses of all stacks, if requested.
    pub statuses: Option<&'a StackStatuses>,
    /// The recorded stacks that this commit lacks, as far as they are requested.
    pub missing: &'a [(&'a str, &'a MissingStack)],
}

/// Stacks that are converted to JSON one at a time, so that memory never holds the predecessors of all
/// stacks at once.
struct StreamedStacks<'f, F>(&'f [StackIndex], F);

impl<'s, F: Fn(&StackIndex) -> StackJson<'s>> Serialize for StreamedStacks<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.0.len()))?;
        for stack in self.0 {
            sequence.serialize_element(&self.1(stack))?;
        }
        sequence.end()
    }
}

pub fn write_list(
    out: &mut impl Write,
    project: &Project,
    problems: &Problems,
    list: &StackList<'_>,
) -> io::Result<()> {
    let StackList {
        graph,
        selection,
        listed,
        statuses,
        missing,
    } = *list;
    let waves = graph.waves(|stack| selection.contains(stack));
    let searches = graph.searches(SearchDirection::Dependencies, |stack| {
        selection.contains(stack)
    });
    let stack_json = |&index: &StackIndex| {
        let stack: &Stack = &project.stacks[index];
        let wave = waves[index.get()];
        let predecessors = || {
            let predecessors = searches.from(index);
            let predecessors = predecessors.iter();
            predecessors
                .map(|predecessor| predecessor_json(predecessor, project))
                .collect()
        };
        StackJson {
            path: PathJson::new(&stack.path),
            dir: match stack.path.directory() {
                root if root.is_root() => ".",
                directory => directory.relative(),
            },
            id: stack.id.as_ref().map(|id| id.value.as_str()),
            name: &stack.name,
            description: stack.description.as_deref(),
            status: statuses
                .and_then(|statuses| statuses.stacks.get(&index))
                .map(|status| status.kind().word()),
            tags: stack.tags().collect(),
            after: strings(&stack.after, String::as_str),
            before: strings(&stack.before, String::as_str),
            wants: strings(&stack.wants, String::as_str),
            wanted_by: strings(&stack.wanted_by, String::as_str),
            watch: stack
                .watch
                .iter()
                .map(|entry| entry.value.to_string())
                .collect(),
            lifecycle: RulesJson::new(&project.rules_of(index), project),
            reasons: selection
                .reasons(index)
                .iter()
                .map(|reason| reason_json(reason, project))
                .collect(),
            wave: match wave {
                Wave::Number(number) => Some(number),
                Wave::AfterCycle | Wave::InCycle => None,
            },
            runs_after: (wave != Wave::InCycle).then(predecessors),
        }
    };
    let document = ListJson {
        since: selection.since().map(SinceJson::new),
        stacks: StreamedStacks(listed, stack_json),
        missing: statuses.map(|_| {
            let missing = missing.iter();
            missing
                .map(|(path, stack)| MissingJson::new(path, stack))
                .collect()
        }),
    };
    write_with_problems(out, &document, project, problems)
}

/// Writes removed stacks, in a list without any others.
pub fn write_removed(
    out: &mut impl Write,
    project: &Project,
    problems: &Problems,
    since: &Baseline,
) -> io::Result<()> {
    let document = ListJson {
        since: Some(SinceJson::new(since)),
        stacks: [(); 0],
        missing: None,
    };
    write_with_problems(out, &document, project, problems)
}

fn predecessor_json<'a>(predecessor: &RelatedStack, project: &'a Project) -> PredecessorJson<'a> {
    let path = |stack: StackIndex| project.stacks[stack].path.as_str();
    PredecessorJson {
        path: path(predecessor.stack),
        origins: OriginJson::all(&predecessor.origins, &project.sources),
        via: predecessor.via.iter().map(|&stack| path(stack)).collect(),
    }
}

pub struct ShownEnvironment<'a> {
    pub stack: StackIndex,
    /// The variables that a run adds or removes.
    pub environment: &'a Environment,
    pub origins: BTreeMap<&'a str, EnvOrigin<'a>>,
}

/// Writes the variables that a run would add to the environment of each stack.
pub fn write_environments(
    out: &mut impl Write,
    project: &Project,
    problems: &Problems,
    selection: &Selection,
    environments: &[ShownEnvironment<'_>],
) -> io::Result<()> {
    #[derive(Serialize)]
    struct EnvironmentListJson<'a> {
        #[serde(flatten)]
        since: Option<SinceJson<'a>>,
        stacks: Vec<EnvironmentJson<'a>>,
    }
    #[derive(Serialize)]
    struct EnvironmentJson<'a> {
        #[serde(flatten)]
        path: PathJson<'a>,
        /// `null` removes a variable.
        env: &'a Environment,
        /// The positions of the variables that the configuration sets or removes.
        definitions: BTreeMap<&'a str, DefinitionJson<'a>>,
    }
    #[derive(Serialize)]
    struct DefinitionJson<'a> {
        file: &'a str,
        line: usize,
        /// The globals that the value was computed from.
        globals: Vec<ValueJson<'a>>,
        lets: Vec<ValueJson<'a>>,
    }
    #[derive(Serialize)]
    struct ValueJson<'a> {
        name: String,
        file: &'a str,
        line: usize,
    }
    fn definition<'a>(origin: &EnvOrigin<'_>, sources: &'a Sources) -> DefinitionJson<'a> {
        let (file, line) = sources.file_and_line(origin.span);
        let value = |definition: &Definition<'_>| {
            let name = definition.name();
            let (file, line) = sources.file_and_line(definition.span());
            ValueJson { name, file, line }
        };
        let (globals, lets): (Vec<Definition<'_>>, Vec<Definition<'_>>) = origin
            .values
            .iter()
            .partition(|definition| matches!(definition, Definition::Global(_)));
        DefinitionJson {
            file,
            line,
            globals: globals.iter().map(value).collect(),
            lets: lets.iter().map(value).collect(),
        }
    }
    let stacks = environments.iter().map(|shown| EnvironmentJson {
        path: PathJson::new(&project.stacks[shown.stack].path),
        env: shown.environment,
        definitions: shown
            .origins
            .iter()
            .map(|(name, origin)| (*name, definition(origin, &project.sources)))
            .collect(),
    });
    let document = EnvironmentListJson {
        since: selection.since().map(SinceJson::new),
        stacks: stacks.collect(),
    };
    write_with_problems(out, &document, project, problems)
}
