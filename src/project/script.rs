//! `script` blocks: commands with a name, for the stacks at and below a directory.
//!
//! Their expressions are evaluated for each stack, when the script is run.

use std::ffi::OsString;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{Block, Expr};
use crate::printable::command_line;
use crate::project::blocks::{expr, no_blocks, no_labels, only_listed, unknown_block};
use crate::project::config::LetDefinition;
use crate::source::Span;

pub(crate) const SCRIPT: &str = "script";

const SCRIPT_ATTRIBUTES: [&str; 2] = ["name", "description"];

const JOB_ATTRIBUTES: [&str; 4] = ["name", "description", "command", "commands"];

#[derive(Debug, Clone)]
pub struct ScriptBlock {
    /// What the user types to run it; at least one.
    pub labels: Vec<String>,
    pub name: Option<Expr>,
    pub description: Option<Expr>,
    /// Its `lets`, which only it sees; names are unique.
    pub lets: Vec<LetDefinition>,
    /// At least one.
    pub jobs: Vec<ScriptJob>,
    pub keyword: Span,
    /// The whole block.
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct ScriptJob {
    pub name: Option<Expr>,
    pub description: Option<Expr>,
    pub commands: JobCommands,
}

#[derive(Debug, Clone)]
pub enum JobCommands {
    /// `command`: the words of one.
    One(Expr),
    /// `commands`: a list of such lists.
    Several(Expr),
}

impl ScriptBlock {
    /// Returns the labels as a user types them.
    pub fn title(&self) -> String {
        title(&self.labels)
    }
}

/// Returns the labels of a script as a user types them.
pub fn title(labels: &[String]) -> String {
    let words: Vec<_> = labels.iter().map(Into::into).collect();
    command_line(&words)
}

/// Returns words of a command line as labels. One that is not Unicode is a label of no script.
pub fn labels(words: &[OsString]) -> Vec<String> {
    let label = |word: &OsString| word.to_string_lossy().into_owned();
    words.iter().map(label).collect()
}

pub(super) fn read<'b>(
    blocks: impl Iterator<Item = &'b Block>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<ScriptBlock> {
    let mut scripts: Vec<ScriptBlock> = Vec::new();
    for block in blocks {
        let Some(script) = read_script(block, problems) else {
            continue;
        };
        match scripts.iter().find(|it| it.labels == script.labels) {
            None => scripts.push(script),
            Some(first) => {
                let message = format!(
                    "the script `{}` is defined twice in this directory",
                    script.title()
                );
                let diagnostic = Diagnostic::error(Code::DuplicateDefinition, message)
                    .again(script.keyword, first.keyword);
                problems.push(diagnostic.help("rename one of them, or merge their jobs"));
            }
        }
    }
    scripts
}

fn read_script(block: &Block, problems: &mut Vec<Diagnostic>) -> Option<ScriptBlock> {
    let n_before = problems.len();
    only_listed(block, &SCRIPT_ATTRIBUTES, problems);
    let mut lets = Vec::new();
    let mut jobs = Vec::new();
    let mut has_job = false;
    for inner in &block.body.blocks {
        match &*inner.kind.text {
            "lets" => read_lets(inner, &mut lets, problems),
            "job" => {
                has_job = true;
                jobs.extend(read_job(inner, problems));
            }
            _ => {
                let diagnostic = unknown_block(inner, block);
                problems.push(diagnostic.did_you_mean(&inner.kind.text, ["job", "lets"]));
            }
        }
    }
    if block.labels.is_empty() {
        let message = "a script needs at least one label";
        let diagnostic = Diagnostic::error(Code::UnexpectedLabel, message)
            .label(block.kind.span, "there is none");
        problems.push(diagnostic.help("write it as in `script \"deploy\" { … }`"));
    }
    if let Some(empty) = block.labels.iter().find(|label| label.text.is_empty()) {
        let message = "a label of a script cannot be empty";
        problems
            .push(Diagnostic::error(Code::InvalidValue, message).label(empty.span, "this one is"));
    }
    if !has_job {
        let message = "a script needs at least one `job`";
        let diagnostic =
            Diagnostic::error(Code::MissingBlock, message).label(block.kind.span, "in this block");
        problems.push(diagnostic.help("add `job { command = [\"echo\", \"hello\"] }`"));
    }
    if problems.len() > n_before {
        return None;
    }
    Some(ScriptBlock {
        labels: block.labels.iter().map(|it| it.text.to_string()).collect(),
        name: expr(block, "name"),
        description: expr(block, "description"),
        lets,
        jobs,
        keyword: block.kind.span,
        span: block.span,
    })
}

fn read_lets(block: &Block, lets: &mut Vec<LetDefinition>, problems: &mut Vec<Diagnostic>) {
    no_labels(block, problems);
    no_blocks(block, "`lets` has only attributes", problems);
    for attribute in &block.body.attributes {
        let name = &attribute.name;
        match lets.iter().find(|it| it.name.text == name.text) {
            None => lets.push(LetDefinition {
                name: name.clone(),
                value: attribute.value.clone(),
            }),
            Some(first) => {
                let message = format!("`let.{}` is set twice in one script", name.text);
                let diagnostic = Diagnostic::error(Code::DuplicateDefinition, message)
                    .again(name.span, first.name.span);
                problems.push(diagnostic.help("remove one of them"));
            }
        }
    }
}

fn read_job(block: &Block, problems: &mut Vec<Diagnostic>) -> Option<ScriptJob> {
    no_labels(block, problems);
    no_blocks(block, "`job` has only attributes", problems);
    only_listed(block, &JOB_ATTRIBUTES, problems);
    let place = |name| block.body.attribute(name).map(|it| it.name.span);
    let commands = match (expr(block, "command"), expr(block, "commands")) {
        (Some(one), None) => JobCommands::One(one),
        (None, Some(several)) => JobCommands::Several(several),
        (Some(one), Some(several)) => {
            let message = "a job has either `command` or `commands`";
            let diagnostic = Diagnostic::error(Code::Conflict, message)
                .label(place("commands").unwrap_or(several.span), "both are set")
                .label(place("command").unwrap_or(one.span), "here is the other");
            problems.push(diagnostic.help("remove one of them"));
            return None;
        }
        (None, None) => {
            let message = "a job needs `command` or `commands`";
            let diagnostic = Diagnostic::error(Code::MissingAttribute, message)
                .label(block.kind.span, "in this block");
            problems.push(diagnostic.help("write `command = [\"echo\", \"hello\"]`"));
            return None;
        }
    };
    Some(ScriptJob {
        name: expr(block, "name"),
        description: expr(block, "description"),
        commands,
    })
}
