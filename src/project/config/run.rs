//! What `config.run` says about attempts, and about how many commands run at once.

use std::num::NonZeroUsize;

use super::{ConfigReader, Place};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{NoNamespaces, Value, evaluate};
use crate::language::syntax::{Attribute, Block, ExprKind};
use crate::project::attempt::block;
use crate::project::tag::tag_problem;
use crate::source::{Span, Spanned};

/// At most this many stacks with a tag run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagLimit {
    /// The tag.
    pub tag: String,
    /// How many.
    pub at_once: NonZeroUsize,
}

const HELP: &str = "write it as in `concurrency = { database = 2 }`: at most two at once of the stacks with that tag";

impl ConfigReader<'_> {
    pub(super) fn timeout(&mut self, attribute: &Attribute) {
        self.config.attempts.timeout = block::timeout(attribute, self.problems);
    }

    pub(super) fn retry(&mut self, block: &Block) {
        let path = "config.run.retry";
        match self.seen.get(path) {
            Some(_) if self.imported => {}
            Some(&first) => self.problems.push(block::twice(block, first)),
            None => {
                self.seen.insert(path.to_owned(), block.kind.span);
                self.config.attempts.retry = block::retry(block, self.problems);
            }
        }
    }

    pub(super) fn concurrency(&mut self, attribute: &Attribute) {
        let whole = attribute.value.span;
        let value = match evaluate(&attribute.value, &NoNamespaces("the project configuration")) {
            Ok(value) => value,
            Err(diagnostic) => return self.problems.push(*diagnostic),
        };
        let Value::Object(entries) = value else {
            let diagnostic =
                Diagnostic::error(Code::WrongType, "`concurrency` must be numbers by tag")
                    .label(whole, block::this_is(&value));
            return self.problems.push(diagnostic.help(HELP));
        };
        for (tag, number) in &*entries {
            let (tag_span, number_span) = places(attribute, tag).unwrap_or((whole, whole));
            let problem = match tag_problem(tag) {
                None if tag.is_empty() => Some("the empty text is carried by no stack"),
                problem => problem,
            };
            if let Some(problem) = problem {
                let message = format!("`{tag}` in `concurrency` cannot be a tag");
                let diagnostic =
                    Diagnostic::error(Code::InvalidTag, message).label(tag_span, problem);
                self.problems.push(diagnostic.help(HELP));
                continue;
            }
            let at_once = block::whole(number, 1, u32::MAX).and_then(|number| {
                let number = usize::try_from(number).ok()?;
                NonZeroUsize::new(number)
            });
            let Some(at_once) = at_once else {
                let message = format!("`{tag}` in `concurrency` must be a whole number from 1");
                let diagnostic = Diagnostic::error(Code::InvalidValue, message)
                    .label(number_span, block::this_is(number));
                self.problems.push(diagnostic.help(HELP));
                continue;
            };
            if self.place == Place::Root {
                let tag = tag.to_string();
                self.config.settings.concurrency.push(Spanned {
                    value: TagLimit { tag, at_once },
                    span: tag_span,
                });
            }
        }
    }
}

/// Returns where an entry of an object that is written out has its key and its value.
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
