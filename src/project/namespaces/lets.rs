//! Evaluates `let`: the values in `lets`, for `run.env` in the same directory or in a script.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::definition::Definition;
use super::progress::{EvaluatedValue, Used};
use super::{ExpressionPlace, Names};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{EvalResult, EvalValue, NamePath};
use crate::language::value::Value;
use crate::project::config::LetDefinition;
use crate::source::Span;

impl<'p> Names<'_, 'p> {
    /// Returns the part of `let` that a path leads to.
    pub(super) fn lets(&self, path: &NamePath<'_>) -> EvalResult<EvalValue> {
        let (lets, label) = match self.place {
            ExpressionPlace::Environment(lets) => (lets, "not in the `lets` of this directory"),
            ExpressionPlace::Script(lets) => (lets, "not in the `lets` of this script"),
            ExpressionPlace::Command => {
                return Err(unavailable("outside of `run.env` and scripts", path).into());
            }
            ExpressionPlace::Globals => return Err(unavailable("in `globals`", path).into()),
        };
        let Some(&(name, span)) = path.rest.first() else {
            return self.all_lets(lets, path.span);
        };
        let Some(definition) = lets.iter().find(|it| *it.name.text == *name) else {
            let message = format!("no `let.{name}`");
            let diagnostic = Diagnostic::error(Code::UnknownName, message).label(span, label);
            let names = lets.iter().map(|it| &*it.name.text);
            let diagnostic = diagnostic.did_you_mean(name, names);
            if matches!(self.place, ExpressionPlace::Script(_)) {
                return Err(diagnostic.into());
            }
            let help = "`env` sees only the `lets` of its own directory, not those above it";
            return Err(diagnostic.help(help).into());
        };
        let EvalValue {
            value,
            is_sensitive,
        } = self.one_let(definition, span)?;
        let value = Value::object([(name, value)]);
        Ok(EvalValue {
            value,
            is_sensitive,
        })
    }

    fn all_lets(&self, lets: &'p [LetDefinition], span: Span) -> EvalResult<EvalValue> {
        let mut all: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        let mut is_sensitive = false;
        for definition in lets {
            let answer = self.one_let(definition, span)?;
            is_sensitive |= answer.is_sensitive;
            all.insert((&*definition.name.text).into(), answer.value);
        }
        let value = Value::Object(all.into());
        Ok(EvalValue {
            value,
            is_sensitive,
        })
    }

    fn one_let(&self, definition: &'p LetDefinition, span: Span) -> EvalResult<EvalValue> {
        let one = Definition::Let(definition);
        let entry = self.own.get(one.address()).unwrap_or_else(|| {
            let evaluate = || self.evaluate(&definition.value);
            let (answer, frame) = self
                .progress
                .framed(|| self.progress.evaluating(one, span, evaluate));
            let entry = Rc::new(EvaluatedValue {
                answer: answer.map(Some),
                uses: frame.uses.into(),
                looked_up: frame.looked_up,
            });
            if self.progress.is_final(&entry) {
                self.own.insert(one.address(), &entry);
            }
            entry
        });
        self.progress.note_names(&entry.looked_up);
        self.progress.note([Used::Value(one, entry.uses.clone())]);
        let answer = entry.answer.clone()?;
        Ok(answer.expect("a `let` cannot be unset"))
    }
}

fn unavailable(place: &str, path: &NamePath<'_>) -> Diagnostic {
    let message = format!("`let` cannot be used {place}");
    Diagnostic::error(Code::UnavailableName, message)
        .label(path.span, "not available here")
        .help("`lets` in `config.run` names values for `env` in the same directory, and `lets` in a `script` for that script; elsewhere, use `global`")
}
