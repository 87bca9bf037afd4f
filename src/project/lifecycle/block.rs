//! Reads `lifecycle` blocks.
//!
//! This module doesn't know the inheritance.

use std::collections::HashMap;
use std::sync::Arc;

use super::resources::PREVENT_RESOURCE_DESTROY;
use super::{
    Condition, ConditionKind, IgnoredChanges, IgnoredInput, Lifecycle, ProtectedResources,
    ReplaceTrigger,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::Namespaces;
use crate::language::syntax::{Attribute, Block, Expr, ExprKind, TraversalStepKind, is_identifier};
use crate::language::value::Value;
use crate::path::ProjectPath;
use crate::pattern::{BadPattern, FilePattern};
use crate::project::blocks::{elements, misplaced_block, no_labels, value, wrong_type};
use crate::project::sharing::INPUT;
use crate::source::{Span, Spanned};

pub(crate) const LIFECYCLE: &str = "lifecycle";

pub(crate) const PREVENT_DESTROY: &str = "prevent_destroy";
pub(crate) const CREATE_BEFORE_DESTROY: &str = "create_before_destroy";
pub(crate) const IGNORE_CHANGES: &str = "ignore_changes";
pub(crate) const REPLACE_TRIGGERED_BY: &str = "replace_triggered_by";

const ATTRIBUTES: [&str; 5] = [
    PREVENT_DESTROY,
    PREVENT_RESOURCE_DESTROY,
    CREATE_BEFORE_DESTROY,
    IGNORE_CHANGES,
    REPLACE_TRIGGERED_BY,
];

const CONDITION_BLOCKS: [ConditionKind; 2] =
    [ConditionKind::Precondition, ConditionKind::Postcondition];

/// The word for every input.
pub(super) const ALL: &str = "all";

/// The namespace of variables in `ignore_changes`.
pub(super) const ENV: &str = "env";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockPlace {
    Stack,
    ReadStack,
    Directory,
}

/// The rules of the `lifecycle` blocks of one place, while they are read.
pub(crate) struct LifecycleReader<'a> {
    place: BlockPlace,
    directory: &'a ProjectPath,
    names: &'a dyn Namespaces,
    lifecycle: Lifecycle,
    seen: HashMap<String, Span>,
}

impl<'a> LifecycleReader<'a> {
    pub(crate) fn new(
        place: BlockPlace,
        directory: &'a ProjectPath,
        names: &'a dyn Namespaces,
    ) -> Self {
        LifecycleReader {
            place,
            directory,
            names,
            lifecycle: Lifecycle::default(),
            seen: HashMap::new(),
        }
    }

    /// Reads a block of the place itself. Its rules add to those of other blocks there. Errors are added to
    /// `problems`. An invalid rule counts as unset, but one that protects something still does: problems in the code
    /// of a commit are not reported.
    pub(crate) fn local(&mut self, block: &Block, problems: &mut Vec<Diagnostic>) {
        let conditions = self.block(block, false, problems);
        self.lifecycle.conditions.extend(conditions);
    }

    /// Reads a block of an imported file, after those of the place itself and of later imports, which
    /// override its rules.
    pub(crate) fn imported(&mut self, block: &Block, problems: &mut Vec<Diagnostic>) {
        let mut conditions = self.block(block, true, problems);
        conditions.append(&mut self.lifecycle.conditions);
        self.lifecycle.conditions = conditions;
    }

    pub(crate) fn finish(self) -> Lifecycle {
        self.lifecycle
    }

    fn block(
        &mut self,
        block: &Block,
        is_imported: bool,
        problems: &mut Vec<Diagnostic>,
    ) -> Vec<Arc<Condition>> {
        no_labels(block, problems);
        for attribute in &block.body.attributes {
            let name = &*attribute.name.text;
            if !ATTRIBUTES.contains(&name) {
                problems.push(unknown_attribute(attribute, block));
                continue;
            }
            if let Some(problem) = self.misplaced(attribute) {
                problems.push(problem);
                continue;
            }
            match self.seen.get(name) {
                Some(_) if is_imported => continue,
                Some(&first) => {
                    problems.push(twice(attribute, first));
                    continue;
                }
                None => _ = self.seen.insert(name.to_owned(), attribute.name.span),
            }
            self.attribute(attribute, problems);
        }
        let mut conditions = Vec::new();
        for inner in &block.body.blocks {
            let kind = CONDITION_BLOCKS
                .into_iter()
                .find(|kind| kind.word() == &*inner.kind.text);
            match kind {
                Some(kind) => conditions.extend(condition(inner, kind, problems).map(Arc::new)),
                None => problems.push(unknown_block(inner, block)),
            }
        }
        conditions
    }

    /// Returns why a rule is not allowed here, if it isn't.
    fn misplaced(&self, attribute: &Attribute) -> Option<Diagnostic> {
        let name = &*attribute.name.text;
        let span = attribute.name.span;
        match self.place {
            BlockPlace::Directory if name == REPLACE_TRIGGERED_BY => {
                let message = format!("`{name}` is a rule of one stack, and is not inherited");
                let diagnostic = Diagnostic::error(Code::Misplaced, message)
                    .label(span, "not in a `stack` block");
                Some(diagnostic.help("move it to the `lifecycle` block of the stack"))
            }
            BlockPlace::ReadStack => {
                let message = format!("`{name}` has no effect in a stack that is only read");
                let diagnostic = Diagnostic::error(Code::Misplaced, message)
                    .label(span, "the stack sets `mode = \"read\"`");
                Some(diagnostic.help(
                    "remove it; only `precondition` and `postcondition` apply to such a stack",
                ))
            }
            _ => None,
        }
    }

    fn attribute(&mut self, attribute: &Attribute, problems: &mut Vec<Diagnostic>) {
        let n_problems = problems.len();
        match &*attribute.name.text {
            PREVENT_DESTROY => {
                self.lifecycle.prevent_destroy = self.bool(attribute, problems);
            }
            PREVENT_RESOURCE_DESTROY => {
                let (written, stands) = (attribute.value.span, attribute.name.span);
                let value = self.value(&attribute.value, problems);
                self.lifecycle.prevent_resource_destroy = value
                    .and_then(|value| ProtectedResources::read(&value, written, stands, problems));
            }
            CREATE_BEFORE_DESTROY => {
                self.lifecycle.create_before_destroy = self.bool(attribute, problems);
            }
            IGNORE_CHANGES => {
                self.lifecycle.ignore_changes = self.ignored(attribute, problems);
            }
            _ => self.lifecycle.replace_triggered_by = self.triggers(attribute, problems),
        }
        if problems.len() > n_problems {
            self.protect(attribute);
        }
    }

    /// Makes an invalid rule protect everything that it could.
    fn protect(&mut self, attribute: &Attribute) {
        let span = attribute.name.span;
        match &*attribute.name.text {
            PREVENT_DESTROY => {
                self.lifecycle.prevent_destroy = Some(Spanned { value: true, span });
            }
            PREVENT_RESOURCE_DESTROY => {
                let value = ProtectedResources::All(true);
                self.lifecycle.prevent_resource_destroy = Some(Spanned { value, span });
            }
            _ => {}
        }
    }

    fn value(&self, expr: &Expr, problems: &mut Vec<Diagnostic>) -> Option<Value> {
        value(expr, self.names, problems)
    }

    /// Reads a rule that holds or not; `null` counts as not stated.
    fn bool(&self, attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Option<Spanned<bool>> {
        let span = attribute.name.span;
        match self.value(&attribute.value, problems)? {
            Value::Null => None,
            Value::Bool(value) => Some(Spanned { value, span }),
            other => {
                let place = attribute.value.span;
                problems.push(wrong_type(attribute, place, "`true` or `false`", &other));
                None
            }
        }
    }

    /// Reads `ignore_changes`: the word `all`, or a list of globs and variables.
    fn ignored(
        &self,
        attribute: &Attribute,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Spanned<IgnoredChanges>> {
        let span = attribute.value.span;
        let spanned = |value| Some(Spanned { value, span });
        let items = match &attribute.value.kind {
            ExprKind::Variable(word) if &**word == ALL => return spanned(IgnoredChanges::All),
            ExprKind::Null => return None,
            ExprKind::List(items) => items.as_slice(),
            // Something that computes a list of globs.
            _ => std::slice::from_ref(&attribute.value),
        };
        let mut inputs = Vec::new();
        for item in items {
            let is_whole = std::ptr::eq(item, &raw const attribute.value);
            inputs.extend(self.ignored_inputs(item, is_whole, problems));
        }
        spanned(IgnoredChanges::Inputs(inputs))
    }

    /// Reads an element of `ignore_changes`, or all of it if it is not written as a list.
    fn ignored_inputs(
        &self,
        item: &Expr,
        is_whole: bool,
        problems: &mut Vec<Diagnostic>,
    ) -> Vec<Spanned<IgnoredInput>> {
        let span = item.span;
        let wrong = |label: String| {
            let message = "`ignore_changes` names files, variables, inputs, or `all` of them";
            Diagnostic::error(Code::WrongType, message)
                .label(span, label)
                .help(
                    "write `ignore_changes = [\"**/*.md\", env.BUILD]`, or `ignore_changes = all`",
                )
        };
        let word = match &item.kind {
            ExprKind::Variable(word) => Some(word),
            ExprKind::Traversal(base, _) => match &base.kind {
                ExprKind::Variable(word) => Some(word),
                _ => None,
            },
            _ => None,
        };
        let named: Option<fn(String) -> IgnoredInput> = match word.map(|word| &**word) {
            Some(ALL) if !is_whole => {
                problems.push(wrong("`all` cannot be in a list".to_owned()));
                return Vec::new();
            }
            Some(ENV) if !is_whole => Some(IgnoredInput::Variable),
            Some(INPUT) if !is_whole => Some(IgnoredInput::Input),
            _ => None,
        };
        if let (Some(word), Some(named)) = (word, named) {
            let Some(name) = name(item) else {
                problems.push(wrong(format!("expected a name: `{word}.NAME`")));
                return Vec::new();
            };
            let value = named(name);
            return vec![Spanned { value, span }];
        }
        let globs = match self.value(item, problems) {
            None => return Vec::new(),
            Some(Value::String(text)) if !is_whole => vec![text],
            Some(Value::Tuple(items) | Value::List(items))
                if is_whole && items.iter().all(|it| matches!(it, Value::String(_))) =>
            {
                let texts = items.iter().filter_map(|it| match it {
                    Value::String(text) => Some(text.clone()),
                    _ => None,
                });
                texts.collect()
            }
            Some(other) => {
                problems.push(wrong(format!("this is {}", other.type_name())));
                return Vec::new();
            }
        };
        let globs = globs.into_iter().filter_map(|glob| {
            let glob = glob.to_string();
            let problem = self.glob_problem(&glob, span);
            if let Some(problem) = problem {
                problems.push(problem);
                return None;
            }
            let value = IgnoredInput::Files(glob);
            Some(Spanned { value, span })
        });
        globs.collect()
    }

    fn glob_problem(&self, glob: &str, span: Span) -> Option<Diagnostic> {
        let wrong = |label: String, help: &str| {
            let message = format!("`{glob}` in `ignore_changes` names no files");
            let diagnostic = Diagnostic::error(Code::InvalidPattern, message);
            Some(diagnostic.label(span, label).help(help))
        };
        if glob.starts_with('!') {
            let help = "list only globs of files to ignore";
            return wrong("`!` does not re-include files".to_owned(), help);
        }
        if glob.trim_matches('/').is_empty() {
            let help = "for every input, write `ignore_changes = all`";
            return wrong("names no file".to_owned(), help);
        }
        // Below this directory a relative glob leads less far up.
        match FilePattern::new(self.directory, glob) {
            Ok(_) => None,
            Err(BadPattern::LeavesProject) => wrong(
                "leads out of the project".to_owned(),
                "a leading `/` is the project root",
            ),
            Err(BadPattern::Syntax(problem)) => wrong(
                problem,
                "`*` and `?` match within a name, `**` across directories, `{a,b}` either of two",
            ),
        }
    }

    fn triggers(
        &self,
        attribute: &Attribute,
        problems: &mut Vec<Diagnostic>,
    ) -> Vec<Spanned<ReplaceTrigger>> {
        let whole = attribute.value.span;
        let wrong = |span: Span, found: &Value| {
            let message = "`replace_triggered_by` must be a list of strings";
            Diagnostic::error(Code::WrongType, message)
                .label(span, format!("this is {}", found.type_name()))
                .help("write `replace_triggered_by = [\"/network\", \"tag:base\", \"/cluster#endpoint\"]`")
        };
        let items = match self.value(&attribute.value, problems) {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Tuple(items) | Value::List(items)) => items,
            Some(other) => {
                problems.push(wrong(whole, &other));
                return Vec::new();
            }
        };
        let mut triggers: Vec<Spanned<ReplaceTrigger>> = Vec::new();
        for (span, item) in elements(&attribute.value, &items) {
            let Value::String(text) = item else {
                problems.push(wrong(span, item));
                continue;
            };
            let value = trigger(text);
            if value.output.is_some() && value.reference.starts_with("tag:") {
                let message = format!("`{text}` names an output of several stacks");
                problems.push(
                    Diagnostic::error(Code::InvalidValue, message)
                        .label(span, "a tag can match several stacks")
                        .help("name the output of one stack: `\"/cluster#endpoint\"`"),
                );
                continue;
            }
            if let Some(first) = triggers.iter().find(|first| first.value == value) {
                let message = format!("`{text}` occurs twice in `replace_triggered_by`");
                let diagnostic =
                    Diagnostic::error(Code::DuplicateEntry, message).again(span, first.span);
                problems.push(diagnostic.help("remove one of them"));
                continue;
            }
            triggers.push(Spanned { value, span });
        }
        triggers
    }
}

/// Splits the output off a reference. The part after the last `#` is an output only if it is a name, because a
/// directory may have a name like `a#1`.
fn trigger(written: &str) -> ReplaceTrigger {
    match written.rsplit_once('#') {
        Some((reference, output)) if is_identifier(output) => ReplaceTrigger {
            reference: reference.to_owned(),
            output: Some(output.to_owned()),
        },
        _ => ReplaceTrigger {
            reference: written.to_owned(),
            output: None,
        },
    }
}

/// Returns the name in `env.NAME` or `env["NAME"]`.
fn name(expr: &Expr) -> Option<String> {
    let ExprKind::Traversal(_, steps) = &expr.kind else {
        return None;
    };
    let [step] = steps.as_slice() else {
        return None;
    };
    match &step.kind {
        TraversalStepKind::Attribute(name) => Some(name.to_string()),
        TraversalStepKind::Index(index) => match &index.kind {
            ExprKind::String(name) if !name.is_empty() => Some(name.to_string()),
            _ => None,
        },
        _ => None,
    }
}

fn unknown_attribute(attribute: &Attribute, block: &Block) -> Diagnostic {
    let name = &*attribute.name.text;
    if name == "destroy" {
        let message = "`destroy` is a rule of a `removed` block";
        return Diagnostic::error(Code::Misplaced, message)
            .label(attribute.name.span, "not in a `removed` block")
            .help("to protect its resources, write `prevent_destroy = true`");
    }
    let message = format!("unknown attribute `{name}` in `{LIFECYCLE}`");
    Diagnostic::error(Code::UnknownAttribute, message)
        .label(attribute.name.span, "not a lifecycle rule")
        .label(block.kind.span, "in this block")
        .did_you_mean(name, ATTRIBUTES)
}

fn unknown_block(inner: &Block, block: &Block) -> Diagnostic {
    let kind = &*inner.kind.text;
    misplaced_block(inner, block, "not a lifecycle rule")
        .label(block.kind.span, "in this block")
        .did_you_mean(kind, CONDITION_BLOCKS.map(ConditionKind::word))
}

fn twice(attribute: &Attribute, first: Span) -> Diagnostic {
    let message = format!("`{}` is set twice", attribute.name.text);
    Diagnostic::error(Code::DuplicateDefinition, message)
        .again(attribute.name.span, first)
        .help("remove one of them")
}

/// The attributes of a condition, both required.
const CONDITION: &str = "condition";
const ERROR_MESSAGE: &str = "error_message";

pub(super) fn condition(
    block: &Block,
    kind: ConditionKind,
    problems: &mut Vec<Diagnostic>,
) -> Option<Condition> {
    let before = problems.len();
    no_labels(block, problems);
    for inner in &block.body.blocks {
        let diagnostic = misplaced_block(inner, block, "a condition has no blocks");
        problems.push(diagnostic.label(block.kind.span, "in this block"));
    }
    for attribute in &block.body.attributes {
        let name = &*attribute.name.text;
        if ![CONDITION, ERROR_MESSAGE].contains(&name) {
            let message = format!("unknown attribute `{name}` in `{}`", kind.word());
            problems.push(
                Diagnostic::error(Code::UnknownAttribute, message)
                    .label(attribute.name.span, "not an attribute of a condition")
                    .label(block.kind.span, "in this block")
                    .did_you_mean(name, [CONDITION, ERROR_MESSAGE]),
            );
        }
    }
    let mut required = |name: &str| {
        let attribute = block.body.attribute(name);
        if attribute.is_none() {
            let message = format!("this `{}` has no `{name}`", kind.word());
            let help = match name {
                CONDITION => "add `condition = …`, an expression that must be true",
                _ => "add `error_message = \"…\"`, which is shown if the condition does not hold",
            };
            problems.push(
                Diagnostic::error(Code::MissingAttribute, message)
                    .label(block.kind.span, format!("`{name}` is missing"))
                    .help(help),
            );
        }
        attribute.map(|attribute| attribute.value.clone())
    };
    let (condition, error_message) = (required(CONDITION), required(ERROR_MESSAGE));
    let (condition, error_message) = (condition?, error_message?);
    (problems.len() == before).then_some(Condition {
        kind,
        condition,
        error_message,
        span: block.kind.span,
    })
}
