//! The common fields of all JSON documents, and the shape of an empty one.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::error::Refusal;
use crate::path::{Generation, InstanceKey, ProjectPath, StackPath};
use crate::project::{Problems, Project};
use crate::source::Sources;

/// The first field of each document. Within a format number, fields are only added.
pub(super) const FORMAT: u32 = 1;

#[derive(Serialize)]
struct DiagnosticJson<'a> {
    severity: &'static str,
    code: &'static str,
    message: &'a str,
    /// The file, line and column of the first label, for programs that want one place.
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    labels: Vec<LabelJson<'a>>,
    notes: &'a [String],
    help: &'a [String],
}

#[derive(Serialize)]
struct LabelJson<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    text: &'a str,
}

impl<'a> DiagnosticJson<'a> {
    fn new(diagnostic: &'a Diagnostic, sources: &'a Sources) -> Self {
        let labels: Vec<LabelJson> = diagnostic
            .labels
            .iter()
            .map(|label| LabelJson::new(label, sources))
            .collect();
        let first = labels.first();
        DiagnosticJson {
            severity: match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            code: diagnostic.code.name(),
            message: &diagnostic.message,
            file: first
                .map(|label| label.file)
                .or(diagnostic.file.as_ref().map(ProjectPath::relative)),
            line: first.map(|label| label.line),
            column: first.map(|label| label.column),
            labels,
            notes: &diagnostic.notes,
            help: &diagnostic.help,
        }
    }
}

impl<'a> LabelJson<'a> {
    fn new(label: &'a Label, sources: &'a Sources) -> Self {
        let file = sources.file(label.span.file);
        let start = file.position(label.span.range().start);
        let end = file.position(label.span.range().end);
        LabelJson {
            file: file.path.relative(),
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            text: &label.text,
        }
    }
}

/// A document: the format, the fields of its kind and, if it is about the configuration, the problems.
#[derive(Serialize)]
struct DocumentJson<'a, T> {
    format: u32,
    #[serde(flatten)]
    fields: &'a T,
    #[serde(flatten)]
    problems: Option<ProblemsJson<'a>>,
}

impl<'a, T> DocumentJson<'a, T> {
    fn new(fields: &'a T) -> Self {
        DocumentJson {
            format: FORMAT,
            fields,
            problems: None,
        }
    }
}

/// Writes a document on one line, without problems of the configuration.
pub(super) fn write_json(out: &mut impl Write, fields: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &DocumentJson::new(fields))?;
    writeln!(out)
}

/// Like [`write_json`], but indented.
pub(super) fn write_json_pretty(out: &mut impl Write, fields: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &DocumentJson::new(fields))?;
    writeln!(out)
}

/// Like [`write_json`], but with the problems of the configuration.
pub(super) fn write_with_problems(
    out: &mut impl Write,
    fields: &impl Serialize,
    project: &Project,
    problems: &Problems,
) -> io::Result<()> {
    let document = DocumentJson {
        problems: Some(ProblemsJson::new(problems, project)),
        ..DocumentJson::new(fields)
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

#[derive(Serialize)]
pub(super) struct ProblemsJson<'a> {
    /// Whether there are no problems except warnings.
    valid: bool,
    diagnostics: Vec<DiagnosticJson<'a>>,
    /// The files that could not be read, as sentences.
    errors: Vec<String>,
}

impl<'a> ProblemsJson<'a> {
    pub(super) fn new(problems: &'a Problems, project: &'a Project) -> Self {
        let errors = problems
            .errors
            .iter()
            .map(|error| format!("{error}: {}", error.source));
        ProblemsJson {
            valid: !problems.has_errors(),
            diagnostics: problems
                .diagnostics
                .iter()
                .map(|diagnostic| DiagnosticJson::new(diagnostic, &project.sources))
                .collect(),
            errors: errors.collect(),
        }
    }
}

/// The document that a command writes. It keeps its shape even if errors leave no data: then lists
/// are empty, and all other fields are null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonDocument {
    /// Of `orch list`, `orch env`, `orch globals` and `orch validate`.
    Stacks,
    /// Of `orch eval`.
    Evaluation,
    /// Of `orch graph`.
    Graph,
    /// Of `orch graph suggest`.
    MissingOrder,
    /// Of `orch why`.
    Why,
    /// Of `orch why --after`.
    WhyAfter,
    /// Of `orch script list` and `orch script info`.
    Scripts,
    /// Of `orch policy validate`.
    Policies,
    /// Of `orch policy graph`.
    PolicyGraph,
}

impl JsonDocument {
    /// Returns the fields that are lists.
    fn lists(self) -> &'static [&'static str] {
        match self {
            JsonDocument::Stacks | JsonDocument::MissingOrder => &["stacks"],
            JsonDocument::Evaluation => &["stacks", "expressions"],
            JsonDocument::Graph => &["stacks", "nodes", "edges"],
            JsonDocument::Why => &[
                "stacks",
                "tags",
                "reasons",
                "left_out",
                "inputs",
                "uses",
                "runs_after",
                "runs_before",
            ],
            JsonDocument::WhyAfter => &["stacks", "chain"],
            JsonDocument::Scripts => &["scripts"],
            JsonDocument::Policies => &["policies"],
            JsonDocument::PolicyGraph => &["arrows", "loops"],
        }
    }

    /// Returns the other fields.
    fn values(self) -> &'static [&'static str] {
        match self {
            JsonDocument::Stacks
            | JsonDocument::Graph
            | JsonDocument::MissingOrder
            | JsonDocument::Scripts
            | JsonDocument::Policies
            | JsonDocument::PolicyGraph => &[],
            JsonDocument::Evaluation => &["path"],
            JsonDocument::Why => &["path", "name", "id", "selected", "would_select"],
            JsonDocument::WhyAfter => &["path", "after", "runs_after", "runs_before"],
        }
    }
}

/// The fields of a document without data.
impl Serialize for JsonDocument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for value in self.values() {
            map.serialize_entry(value, &())?;
        }
        for list in self.lists() {
            map.serialize_entry(list, &[(); 0])?;
        }
        map.end()
    }
}

/// The base of the changes if it is unknown.
#[derive(Default, Serialize)]
struct UnknownSinceJson {
    base: Option<()>,
    removed: [(); 0],
    changed_outside: Option<()>,
}

/// Writes a document without data, with the problems; `is_about_changes` says whether it would have
/// a base.
pub fn write_problems(
    out: &mut impl Write,
    document: JsonDocument,
    project: &Project,
    problems: &Problems,
    refused: Option<&Refusal>,
    is_about_changes: bool,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct UnfilledJson<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        refused: Option<&'a Refusal>,
        #[serde(flatten)]
        document: JsonDocument,
        #[serde(flatten)]
        since: Option<UnknownSinceJson>,
    }
    let document = UnfilledJson {
        refused,
        document,
        since: is_about_changes.then(UnknownSinceJson::default),
    };
    write_with_problems(out, &document, project, problems)
}

/// Writes that a project is valid: the output of `orch validate`.
pub fn write_validation(
    out: &mut impl Write,
    project: &Project,
    problems: &Problems,
) -> io::Result<()> {
    let stacks = project.stacks.iter();
    let stacks: Vec<_> = stacks
        .map(|(_, stack)| PathJson::new(&stack.path))
        .collect();
    write_with_problems(
        out,
        &BTreeMap::from([("stacks", stacks)]),
        project,
        problems,
    )
}

/// The name of a stack; only an instance has a directory and a key.
#[derive(Serialize)]
pub(super) struct PathJson<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    /// Of a generation that is not current.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
}

impl<'a> PathJson<'a> {
    pub(super) fn new(path: &'a StackPath) -> Self {
        let (key, generation) = (path.key(), path.generation());
        let is_directory = key.is_none() && generation.is_none();
        PathJson {
            path: path.as_str(),
            directory: (!is_directory).then(|| path.directory().as_str()),
            key: key.map(InstanceKey::as_str),
            generation: generation.map(Generation::get),
        }
    }
}
