//! The concurrency and the environment in `config.run`.

use std::num::NonZeroUsize;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::NoNamespaces;
use crate::language::syntax::{Attribute, Expr, ExprKind, Name};
use crate::project::attempt::block;
use crate::project::blocks::value;
use crate::project::tag::tag_problem;
use crate::source::{Span, Spanned};

/// At most this many stacks with a tag run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagLimit {
    pub tag: String,
    pub at_once: NonZeroUsize,
}

/// A variable of `config.run.env`, as written.
#[derive(Debug, Clone)]
pub struct EnvDefinition {
    pub name: Name,
    /// Its value; `null` and `unset` remove the variable.
    pub value: Expr,
}

/// A value of `config.run.lets`, as written.
#[derive(Debug, Clone)]
pub struct LetDefinition {
    pub name: Name,
    /// The value of `let.NAME` in `env` and `lets` of the same directory.
    pub value: Expr,
}

/// The variable with the key of an instance; other stacks do not have it.
pub(crate) const STACK_KEY: &str = "ORCH_STACK_KEY";

/// The variables that `orch` itself sets for a command; `ORCH_RUN_ID` is new in each run.
const OWN_VARIABLES: [&str; 7] = [
    "ORCH_RUN_ID",
    "ORCH_ROOT",
    "ORCH_STACK_PATH",
    "ORCH_STACK_NAME",
    "ORCH_STACK_ID",
    "ORCH_STACK_TAGS",
    STACK_KEY,
];

const HELP: &str =
    "write it as in `concurrency = { database = 2 }`: at most two stacks with that tag run at once";

pub(super) fn env_definition(
    attribute: &Attribute,
    problems: &mut Vec<Diagnostic>,
) -> EnvDefinition {
    let name = &attribute.name;
    if OWN_VARIABLES.contains(&&*name.text) {
        let message = format!("orch sets `{}` itself and ignores this value", name.text);
        let diagnostic =
            Diagnostic::warning(Code::ReservedVariable, message).label(name.span, "no effect");
        problems.push(diagnostic.help("choose another name"));
    }
    EnvDefinition {
        name: name.clone(),
        value: attribute.value.clone(),
    }
}

pub(super) fn concurrency(
    attribute: &Attribute,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Spanned<TagLimit>> {
    let mut limits = Vec::new();
    let whole = attribute.value.span;
    let names = NoNamespaces("the project configuration");
    let Some(value) = value(&attribute.value, &names, problems) else {
        return limits;
    };
    let Some(entries) = value.entries() else {
        let diagnostic =
            Diagnostic::error(Code::WrongType, "`concurrency` must map tags to numbers")
                .label(whole, block::this_is(&value));
        problems.push(diagnostic.help(HELP));
        return limits;
    };
    for (tag, number) in entries.iter() {
        let (tag_span, number_span) = places(attribute, tag).unwrap_or((whole, whole));
        let problem = match tag_problem(tag) {
            None if tag.is_empty() => Some("a tag cannot be empty"),
            problem => problem,
        };
        if let Some(problem) = problem {
            let message = format!("`{tag}` in `concurrency` cannot be a tag");
            let diagnostic = Diagnostic::error(Code::InvalidTag, message).label(tag_span, problem);
            problems.push(diagnostic.help(HELP));
            continue;
        }
        let at_once = block::whole_number(number, 1, u32::MAX).and_then(|number| {
            let number = usize::try_from(number).ok()?;
            NonZeroUsize::new(number)
        });
        let Some(at_once) = at_once else {
            let message = format!("`{tag}` in `concurrency` must be a whole number from 1");
            let diagnostic = Diagnostic::error(Code::InvalidValue, message)
                .label(number_span, block::this_is(number));
            problems.push(diagnostic.help(HELP));
            continue;
        };
        let tag = tag.to_string();
        limits.push(Spanned {
            value: TagLimit { tag, at_once },
            span: tag_span,
        });
    }
    limits
}

/// Returns the places of the key and the value of an entry in a literal object.
fn places(attribute: &Attribute, key: &str) -> Option<(Span, Span)> {
    let ExprKind::Object(entries) = &attribute.value.kind else {
        return None;
    };
    let is_key = |kind: &ExprKind| match kind {
        ExprKind::String(name) | ExprKind::Variable(name) => **name == *key,
        _ => false,
    };
    let mut entries = entries.iter().rev();
    entries
        .find(|(written, _)| is_key(&written.kind))
        .map(|(written, value)| (written.span, value.span))
}
