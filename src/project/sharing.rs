//! `sharing_backend`, `input` and `output` blocks: the outputs of stacks that other stacks use.
//!
//! This module knows neither the stacks that an input names nor any values. `output` blocks are only
//! checked: they matter to the code that Terramate generates.

use std::collections::BTreeSet;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::NoNamespaces;
use crate::language::syntax::{Attribute, Block, Expr, ExprKind, TraversalStepKind, is_identifier};
use crate::language::value::Value;
use crate::project::blocks::{elements, expr, no_blocks, only_listed, string, value, wrong_type};
use crate::source::{Span, Spanned};

pub(crate) const INPUT: &str = "input";

pub(crate) const OUTPUT: &str = "output";

pub(crate) const SHARING_BACKEND: &str = "sharing_backend";

/// The name of the outputs in the value of an input.
pub const OUTPUTS: &str = "outputs";

/// The only kind of a backend.
const TERRAFORM: &str = "terraform";

const NAMES: NoNamespaces = NoNamespaces("a `sharing_backend` block");

/// The command that prints the outputs of a stack.
#[derive(Debug, Clone)]
pub struct SharingBackend {
    pub name: Spanned<String>,
    /// At least one word.
    pub command: Vec<String>,
}

/// An `input` block: an output of another stack, as a variable of this one.
#[derive(Debug, Clone)]
pub struct InputBlock {
    pub name: Spanned<String>,
    pub backend: Expr,
    pub from_stack_id: Expr,
    /// Its value; `outputs` are the outputs of that stack.
    pub value: Expr,
    pub sensitive: Option<Expr>,
    /// The value where the other stack has no outputs yet.
    pub mock: Option<Expr>,
    pub span: Span,
}

impl InputBlock {
    /// Returns the outputs that the value uses; `None` if it may use any.
    pub fn outputs(&self) -> Option<BTreeSet<&str>> {
        let is_outputs =
            |expr: &Expr| matches!(&expr.kind, ExprKind::Variable(name) if &**name == OUTPUTS);
        let mut names = BTreeSet::new();
        let (mut n_all, mut n_named) = (0, 0);
        self.value.each(&mut |expr| {
            if is_outputs(expr) {
                n_all += 1;
            }
            let ExprKind::Traversal(base, steps) = &expr.kind else {
                return;
            };
            let name = match steps.first().map(|step| &step.kind) {
                Some(TraversalStepKind::Attribute(name)) => name,
                Some(TraversalStepKind::Index(index)) => match &index.kind {
                    ExprKind::String(name) => name,
                    _ => return,
                },
                _ => return,
            };
            if is_outputs(base) {
                n_named += 1;
                names.insert(&**name);
            }
        });
        (n_all == n_named).then_some(names)
    }
}

/// Which attributes a block has, and which it needs.
struct Shape {
    kind: &'static str,
    known: &'static [&'static str],
    required: &'static [&'static str],
    example: &'static str,
}

const INPUT_SHAPE: Shape = Shape {
    kind: INPUT,
    known: &["backend", "from_stack_id", "value", "sensitive", "mock"],
    required: &["backend", "from_stack_id", "value"],
    example: "input \"vpc_id\" { … }",
};

const OUTPUT_SHAPE: Shape = Shape {
    kind: OUTPUT,
    known: &["backend", "value", "description", "sensitive"],
    required: &["backend", "value"],
    example: "output \"vpc_id\" { … }",
};

const BACKEND_SHAPE: Shape = Shape {
    kind: SHARING_BACKEND,
    known: &["type", "filename", "command"],
    required: &["type", "filename", "command"],
    example: "sharing_backend \"default\" { … }",
};

impl Shape {
    /// Checks a block, and returns its label; `None` if an attribute or the label is missing.
    fn check(&self, block: &Block, problems: &mut Vec<Diagnostic>) -> Option<Spanned<String>> {
        let kind = self.kind;
        no_blocks(block, &format!("`{kind}` has only attributes"), problems);
        only_listed(block, self.known, problems);
        let missing = self.required.iter();
        let missing = missing.filter(|name| block.body.attribute(name).is_none());
        let missing: Vec<Diagnostic> = missing
            .map(|name| {
                let message = format!("`{kind}` needs `{name}`");
                Diagnostic::error(Code::MissingAttribute, message)
                    .label(block.kind.span, "in this block")
            })
            .collect();
        let is_complete = missing.is_empty();
        problems.extend(missing);
        let [label] = &block.labels[..] else {
            let message = format!("`{kind}` has one label, its name");
            let span = block.labels.get(1).map_or(block.kind.span, |it| it.span);
            let diagnostic = Diagnostic::error(Code::UnexpectedLabel, message)
                .label(span, format!("there are {}", block.labels.len()));
            problems.push(diagnostic.help(format!("write `{}`", self.example)));
            return None;
        };
        is_complete.then(|| Spanned {
            value: label.text.to_string(),
            span: label.span,
        })
    }
}

pub(super) fn read_inputs<'b>(
    blocks: impl Iterator<Item = &'b Block>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<InputBlock> {
    let mut inputs: Vec<InputBlock> = Vec::new();
    for block in blocks {
        let Some(input) = read_input(block, problems) else {
            continue;
        };
        match inputs.iter().find(|it| it.name.value == input.name.value) {
            None => inputs.push(input),
            Some(first) => problems.push(twice(&first.name, &input.name, INPUT)),
        }
    }
    inputs
}

fn read_input(block: &Block, problems: &mut Vec<Diagnostic>) -> Option<InputBlock> {
    let name = INPUT_SHAPE.check(block, problems)?;
    if !is_identifier(&name.value) {
        let message = format!("`{}` cannot be the name of a variable", name.value);
        let diagnostic = Diagnostic::error(Code::InvalidValue, message);
        let label = "a name has only letters, digits, `_` and `-`, and does not begin with a digit";
        problems.push(diagnostic.label(name.span, label));
        return None;
    }
    let expr = |name| expr(block, name);
    Some(InputBlock {
        name,
        backend: expr("backend")?,
        from_stack_id: expr("from_stack_id")?,
        value: expr("value")?,
        sensitive: expr("sensitive"),
        mock: expr("mock"),
        span: block.kind.span,
    })
}

pub(super) fn check_outputs<'b>(
    blocks: impl Iterator<Item = &'b Block>,
    problems: &mut Vec<Diagnostic>,
) {
    for block in blocks {
        OUTPUT_SHAPE.check(block, problems);
    }
}

pub(super) fn read_backends<'b>(
    blocks: impl Iterator<Item = &'b Block>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<SharingBackend> {
    let mut backends: Vec<SharingBackend> = Vec::new();
    for block in blocks {
        let Some(backend) = read_backend(block, problems) else {
            continue;
        };
        let named = |it: &&SharingBackend| it.name.value == backend.name.value;
        match backends.iter().find(named) {
            None => backends.push(backend),
            Some(first) => problems.push(twice(&first.name, &backend.name, SHARING_BACKEND)),
        }
    }
    backends
}

fn read_backend(block: &Block, problems: &mut Vec<Diagnostic>) -> Option<SharingBackend> {
    let name = BACKEND_SHAPE.check(block, problems)?;
    let kind = block.body.attribute("type")?;
    if !matches!(&kind.value.kind, ExprKind::Variable(name) if &**name == TERRAFORM) {
        let message = format!("the `type` of a backend must be `{TERRAFORM}`");
        let diagnostic = Diagnostic::error(Code::InvalidValue, message)
            .label(kind.value.span, "another type, or not a bare keyword");
        problems.push(diagnostic.help(format!("write `type = {TERRAFORM}`, without quotes")));
    }
    let file = block.body.attribute("filename")?;
    string(file, "a string", &NAMES, problems);
    let command = command(block.body.attribute("command")?, problems)?;
    Some(SharingBackend { name, command })
}

fn command(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Option<Vec<String>> {
    let expected = "a list of strings";
    let list = value(&attribute.value, &NAMES, problems)?;
    let whole = attribute.value.span;
    let Some(items) = list.sequence() else {
        problems.push(wrong_type(attribute, whole, expected, &list));
        return None;
    };
    let mut words = Vec::new();
    for (span, item) in elements(&attribute.value, items) {
        match item {
            Value::String(word) => words.push(word.to_string()),
            other => {
                problems.push(wrong_type(attribute, span, expected, other));
                return None;
            }
        }
    }
    if words.first().is_none_or(String::is_empty) {
        let message = "`command` must name a program";
        let diagnostic = Diagnostic::error(Code::InvalidValue, message);
        problems.push(
            diagnostic
                .label(whole, "this names none")
                .help("write it as a list: `[\"terraform\", \"output\", \"-json\"]`"),
        );
        return None;
    }
    Some(words)
}

fn twice(first: &Spanned<String>, second: &Spanned<String>, kind: &str) -> Diagnostic {
    let message = format!("the {kind} `{}` is defined twice", second.value);
    Diagnostic::error(Code::DuplicateDefinition, message)
        .again(second.span, first.span)
        .help("rename one of them")
}
