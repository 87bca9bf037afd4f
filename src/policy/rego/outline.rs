//! Finds out what a policy is about: what it reads, what it asks for, and what in it is hardly meant.

use std::collections::HashMap;

use regorus::unstable::{Expr, Literal, Module, Query, Rule, RuleHead};

use super::references::{self, first_place};
use super::results::RESULTS;
use super::walk::{self, Walker, assignment, indices, quoted};
use crate::diagnostic::closest;
use crate::policy::{Dialect, PolicyOutline, Problem};

/// The name of any item in a path of the input.
const ANY: &str = "*";

/// Returns the outline of a module.
pub(super) fn outline(module: &Module, dialect: Dialect) -> PolicyOutline {
    let mut reader = Reader {
        aliases: HashMap::new(),
        outline: PolicyOutline {
            dialect,
            inputs: Vec::new(),
            asked: Vec::new(),
            texts: Vec::new(),
            warnings: Vec::new(),
        },
    };
    reader.imports(module);
    reader.answers(module);
    let imported = reader.aliases.clone();
    for rule in &module.policy {
        reader.aliases.clone_from(&imported);
        reader.rule(rule);
    }
    reader.outline
}

struct Reader {
    /// What variables and imports stand for in the input. `None` if that differs.
    aliases: HashMap<String, Option<Vec<String>>>,
    outline: PolicyOutline,
}

impl Reader {
    fn warn(&mut self, place: (u32, u32), message: String) {
        let place = Some(place);
        self.outline.warnings.push(Problem { place, message });
    }

    fn imports(&mut self, module: &Module) {
        let package = references::package(module);
        for import in &module.imports {
            let path = references::ground(&import.refr).0;
            let place = (import.span.line, import.span.col);
            match path.split_first() {
                Some((root, rest)) if root == "input" => {
                    if let Some(name) = references::import_name(import, rest) {
                        self.outline.inputs.push((rest.to_vec(), place));
                        self.aliases.insert(name, Some(rest.to_vec()));
                    }
                }
                Some((root, rest)) if root == "data" && rest.starts_with(&package) => {}
                Some((root, rest))
                    if root == "rego" && rest == ["v1"]
                        || root == "future" && rest.first().is_some_and(|it| it == "keywords") => {}
                _ => self.warn(
                    place,
                    format!(
                        "nothing is imported by `{}`: a policy is one file, and has no data besides `input`",
                        path.join(".")
                    ),
                ),
            }
        }
    }

    /// Finds rules whose values have the wrong type, and policies without any result.
    fn answers(&mut self, module: &Module) {
        let mut has_any = false;
        let mut like = None;
        for rule in &module.policy {
            let (refr, key, value) = match &**rule {
                Rule::Spec { head, .. } => match head {
                    RuleHead::Compr { refr, assign, .. } => {
                        (refr, None, Some(assign.as_ref().map(|it| &*it.value)))
                    }
                    RuleHead::Set { refr, key, .. } => (refr, key.as_ref(), None),
                    RuleHead::Func { refr, .. } => (refr, None, None),
                },
                Rule::Default { refr, value, .. } => (refr, None, Some(Some(&**value))),
            };
            let path = references::ground(refr).0;
            let Some(name) = path.first() else { continue };
            let place = first_place(refr, refr.span());
            if !RESULTS.iter().any(|result| result.name() == name) {
                let results = RESULTS.iter().map(|result| result.name());
                like = like.or(closest(name, results).map(|it| (place, name.clone(), it)));
                continue;
            }
            has_any = true;
            let asked: Vec<&Expr> = key
                .map(|it| &**it)
                .into_iter()
                .chain(indices(refr))
                .collect();
            if name == "trigger" {
                let texts = asked.iter().filter_map(|it| quoted(it).map(str::to_owned));
                let texts: Vec<_> = texts.map(|text| (text, place)).collect();
                self.outline.asked.extend(texts);
            }
            let is_whole = path.len() == 1 && indices(refr).is_empty();
            let found = match value {
                _ if !is_whole => None,
                _ if name == "sample" => (key.is_some()
                    || value.flatten().is_some_and(|it| !is_scalar(it, true)))
                .then_some("`true` or `false`"),
                Some(None) => Some("a set or a list of strings"),
                Some(Some(value)) => {
                    is_scalar(value, false).then_some("a set or a list of strings")
                }
                None => None,
            };
            let is_no_text = |it: &&&Expr| {
                matches!(
                    **it,
                    Expr::Number { .. } | Expr::Bool { .. } | Expr::Null { .. }
                )
            };
            let items = asked.iter().find(is_no_text).map(|_| "a set of strings");
            if let Some(expected) = found.or(items.filter(|_| name != "sample")) {
                self.warn(place, format!("`{name}` must be {expected}"));
            }
        }
        if !has_any {
            let message = match like {
                Some((place, name, result)) => {
                    let message =
                        format!("nothing evaluates the rule `{name}`: did you mean `{result}`?");
                    return self.warn(place, message);
                }
                None => {
                    "it has no rule that is evaluated: `trigger`, `flag`, `reset_flag` or `sample`"
                }
            };
            let span = &module.package.span;
            self.warn((span.line, span.col), message.to_owned());
        }
    }

    fn aliases_of(&mut self, literal: &Literal) {
        if let Literal::SomeIn {
            value, collection, ..
        } = literal
            && let Expr::Var { span, .. } = &**value
        {
            let item = self.path(collection).map(item);
            self.alias(span.text(), item);
        }
        if let Some((Expr::Var { span, .. }, value)) = assignment(literal) {
            let path = self.path(value);
            self.alias(span.text(), path);
        }
    }

    fn alias(&mut self, name: &str, path: Option<Vec<String>>) {
        match self.aliases.get_mut(name) {
            Some(known) if *known != path => *known = None,
            Some(_) => {}
            None => {
                self.aliases.insert(name.to_owned(), path);
            }
        }
    }

    /// Returns the path of a reference below `input`, if it is one.
    fn path(&self, expression: &Expr) -> Option<Vec<String>> {
        match expression {
            Expr::Var { span, .. } if span.text() == "input" => Some(Vec::new()),
            Expr::Var { span, .. } => self.aliases.get(span.text())?.clone(),
            Expr::RefDot { refr, field, .. } => {
                let mut path = self.path(refr)?;
                path.push(field.0.text().to_owned());
                Some(path)
            }
            Expr::RefBrack { refr, index, .. } => {
                let mut path = self.path(refr)?;
                path.push(quoted(index).unwrap_or(ANY).to_owned());
                Some(path)
            }
            _ => None,
        }
    }
}

impl<'m> Walker<'m> for Reader {
    fn query(&mut self, query: &'m Query) {
        // A statement may come before the one that gives its variable a value.
        for _ in 0..2 {
            for statement in &query.stmts {
                self.aliases_of(&statement.literal);
            }
        }
        for statement in &query.stmts {
            if let Literal::Every { value, domain, .. } = &statement.literal {
                let item = self.path(domain).map(item);
                self.alias(value.text(), item);
            }
            self.statement(statement);
        }
    }

    fn expression(&mut self, expression: &'m Expr) {
        if let Expr::RefDot { .. } | Expr::RefBrack { .. } = expression
            && let Some(path) = self.path(expression)
        {
            let place = first_place(expression, expression.span());
            self.outline.inputs.push((path, place));
            for index in indices(expression) {
                self.expression(index);
            }
            return;
        }
        let text = quoted(expression).map(str::to_owned);
        self.outline.texts.extend(text);
        walk::expression(self, expression);
    }
}

fn item(mut path: Vec<String>) -> Vec<String> {
    path.push(ANY.to_owned());
    path
}

/// Returns whether an expression certainly is a single value; for `is_boolean`, whether it may be `true` or `false`.
fn is_scalar(expression: &Expr, is_boolean: bool) -> bool {
    match expression {
        Expr::Bool { .. } => true,
        Expr::String { .. } | Expr::RawString { .. } | Expr::Number { .. } | Expr::Null { .. } => {
            !is_boolean
        }
        Expr::Array { .. }
        | Expr::Set { .. }
        | Expr::Object { .. }
        | Expr::ArrayCompr { .. }
        | Expr::SetCompr { .. }
        | Expr::ObjectCompr { .. } => false,
        _ => is_boolean,
    }
}
