//! Commands whose words are templates, evaluated for each stack: `orch run --eval`.

use std::ffi::OsString;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::NoValue;
use crate::language::parse::parse_word;
use crate::language::syntax::{Expr, ExprKind};
use crate::language::value::Value;
use crate::project::namespaces::{ProjectNamespaces, StackNamespaces};
use crate::project::per_stack::{SharedProblem, for_each, needed_at};
use crate::project::stack::StackIndex;
use crate::source::Sources;

pub struct CommandTemplate {
    words: Vec<Expr>,
}

/// A word that cannot be a template, since it is not Unicode; counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("argument {0} is not UTF-8, so it cannot be evaluated")]
pub struct NotUnicode(pub usize);

impl CommandTemplate {
    /// Parses the arguments of a command. Each becomes a source, so that its errors are shown like those of files, in
    /// `argument 2`.
    pub fn parse(
        words: &[OsString],
        sources: &mut Sources,
        problems: &mut Vec<Diagnostic>,
    ) -> Result<Self, NotUnicode> {
        let mut parsed = Vec::with_capacity(words.len());
        for (index, word) in words.iter().enumerate() {
            let number = index + 1;
            let text = word.to_str().ok_or(NotUnicode(number))?;
            let file = sources.add_argument(&format!("argument {number}"), text);
            match parse_word(file, text) {
                Ok(expr) => parsed.push(expr),
                Err(diagnostic) => problems.push(*diagnostic),
            }
        }
        Ok(CommandTemplate { words: parsed })
    }

    pub fn of_stacks(
        &self,
        namespaces: &ProjectNamespaces<'_>,
        stacks: impl IntoIterator<Item = StackIndex>,
    ) -> (Vec<(StackIndex, Vec<OsString>)>, Vec<SharedProblem>) {
        for_each(stacks, |stack| self.of_stack(&namespaces.of_stack(stack)))
    }

    fn of_stack(
        &self,
        namespaces: &StackNamespaces<'_, '_>,
    ) -> Result<Vec<OsString>, Vec<Diagnostic>> {
        let mut problems = Vec::new();
        let mut words = Vec::with_capacity(self.words.len());
        for (index, expr) in self.words.iter().enumerate() {
            match word(expr, namespaces) {
                Ok(text) if index == 0 && text.is_empty() => problems.push(empty_name(expr)),
                Ok(text) => words.push(text),
                Err(diagnostic) => problems.push(diagnostic),
            }
        }
        if problems.is_empty() {
            Ok(words)
        } else {
            Err(problems)
        }
    }
}

/// Returns the words of a command that is written as a list, for the stack that the namespaces are of.
pub fn words_of_list(
    expr: &Expr,
    namespaces: &StackNamespaces<'_, '_>,
) -> Result<Vec<OsString>, Vec<Diagnostic>> {
    let answer = namespaces
        .evaluate(expr)
        .map_err(|none| vec![needed_at(none.into_diagnostic(), expr.span, expr.span)])?;
    let wrong = |label: String| {
        let message = "a command must be a list of strings";
        let diagnostic = Diagnostic::error(Code::WrongType, message).label(expr.span, label);
        vec![diagnostic.help("write it as in `[\"make\", \"apply\"]`")]
    };
    let Some(items) = answer.value.sequence() else {
        return Err(wrong(format!("this is {}", answer.value.type_name())));
    };
    let mut words = Vec::with_capacity(items.len());
    for item in items.iter() {
        match item {
            Value::String(text) if text.contains('\0') => {
                return Err(wrong("a word has a NUL character".to_owned()));
            }
            Value::String(text) => words.push(OsString::from(&*text.to_string())),
            other => return Err(wrong(format!("an element is {}", other.type_name()))),
        }
    }
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => Err(vec![empty_name(expr)]),
    }
}

fn word(expr: &Expr, namespaces: &StackNamespaces<'_, '_>) -> Result<OsString, Diagnostic> {
    if let ExprKind::String(text) = &expr.kind
        && !text.contains('\0')
    {
        return Ok(OsString::from(&**text));
    }
    let answer = namespaces
        .evaluate(expr)
        .map_err(|none: NoValue| needed_at(none.into_diagnostic(), expr.span, expr.span))?;
    let problem = match answer.value {
        Value::String(text) if text.contains('\0') => "this text has a NUL character".to_owned(),
        Value::String(text) => return Ok(OsString::from(&*text)),
        other => format!("this is {}", other.type_name()),
    };
    let message = "a word of a command must be a string";
    let diagnostic = Diagnostic::error(Code::WrongType, message).label(expr.span, problem);
    Err(diagnostic.help(
        "convert it, as in `${tm_tostring(global.number)}` or `${tm_join(\",\", global.list)}`, or put text beside it",
    ))
}

fn empty_name(expr: &Expr) -> Diagnostic {
    let message = "the name of the program is empty";
    Diagnostic::error(Code::InvalidValue, message).label(expr.span, "this is an empty string")
}
