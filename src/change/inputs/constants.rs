//! The constant paths of a Terraform module: values of locals, possible values of variables, and pure functions.
//!
//! This module does not know where variables get their values.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::extract::{PathBase, plain_path};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{
    Budget, Call, EvalResult, EvalValue, NamePath, Namespaces, evaluate_within,
};
use crate::language::function::{self, FunctionContext};
use crate::language::syntax::{Body, Expr, ExprKind, TemplatePart, TraversalStepKind};
use crate::language::value::Value;
use crate::path::ProjectPath;
use crate::pattern::FilePattern;
use crate::source::Span;

/// The maximum number of combinations of variables for one path.
const MAX_COMBINATIONS: usize = 256;

/// The maximum nesting of templates and locals that are constant at one end only.
const MAX_NESTED: usize = 32;

/// Represents `path.module` in a value. No path contains this character.
const MODULE: &str = "\u{1}module";

/// Represents `path.root` and `path.cwd`.
const ROOT: &str = "\u{1}root";

/// The values of names in the files of a module. Each variable has one of its possible values at a time.
pub(super) struct Constants<'b> {
    locals: HashMap<&'b str, &'b Expr>,
    variables: &'b dyn Fn(&str) -> PossibleValues,
    budget: Budget,
    /// The values of locals; unknown during evaluation.
    known: RefCell<HashMap<String, EvalResult>>,
    /// The variables used so far, in the order of first use.
    choices: RefCell<Vec<Choice>>,
    /// The names of all variables that were ever used.
    used: RefCell<BTreeSet<Box<str>>>,
}

/// The possible values of a variable; `None` is a value that cannot be determined.
pub(super) type PossibleValues = Arc<[Option<Value>]>;

/// An end of a text.
#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

/// The current value of a variable.
struct Choice {
    name: Box<str>,
    values: PossibleValues,
    index: usize,
}

impl<'b> Constants<'b> {
    pub(super) fn new(files: &'b [Body], variables: &'b dyn Fn(&str) -> PossibleValues) -> Self {
        let mut locals = HashMap::new();
        for file in files {
            let blocks = file.blocks("locals");
            let found = blocks.flat_map(|block| &block.body.attributes);
            locals.extend(found.map(|local| (&*local.name.text, &local.value)));
        }
        Constants {
            locals,
            variables,
            budget: Budget::default(),
            known: RefCell::default(),
            choices: RefCell::default(),
            used: RefCell::default(),
        }
    }

    /// Returns the value of an expression, if it is constant.
    pub(super) fn value(&self, expr: &Expr) -> Option<Value> {
        let answer = evaluate_within(expr, self, &self.budget).ok()?;
        Some(answer.value)
    }

    /// Returns the text of an expression, if it is constant.
    pub(super) fn text(&self, expr: &Expr) -> Option<String> {
        self.value(expr)?.as_str().map(str::to_owned)
    }

    /// Returns the directory around a path of which only the beginning is constant; `None` if that names none.
    pub(super) fn directory(&self, path: &Expr) -> Option<String> {
        let (beginning, _) = self.end(path, End::First, MAX_NESTED);
        let (directory, _) = beginning.rsplit_once('/')?;
        (!directory.is_empty()).then(|| directory.to_owned())
    }

    /// Returns a pattern for the files that such a path may name in its directory.
    pub(super) fn names(&self, path: &Expr) -> String {
        let (end, _) = self.end(path, End::Last, MAX_NESTED);
        let is_literal = !FilePattern::is_pattern(&end) && !end.contains(['\\', '\u{1}']);
        match end.rsplit_once('/') {
            Some((_, name)) if is_literal && !name.is_empty() => format!("**/{name}"),
            None if is_literal && !end.is_empty() => format!("**/*{end}"),
            _ => "**".to_owned(),
        }
    }

    /// Returns what is constant of a text at one end, and whether that is all of it.
    fn end(&self, expr: &Expr, end: End, depth: usize) -> (String, bool) {
        if let Some(text) = self.text(expr) {
            return (text, true);
        }
        let mut known = String::new();
        if depth == 0 {
            return (known, false);
        }
        if let ExprKind::Template(parts) = &expr.kind {
            let parts: Vec<&TemplatePart> = match end {
                End::First => parts.iter().collect(),
                End::Last => parts.iter().rev().collect(),
            };
            for part in parts {
                let (text, is_all) = match part {
                    TemplatePart::Literal(text) => (text.to_string(), true),
                    TemplatePart::Interpolation(part) => self.end(part, end, depth - 1),
                    TemplatePart::If { .. } | TemplatePart::For { .. } => (String::new(), false),
                };
                match end {
                    End::First => known += &text,
                    End::Last => known.insert_str(0, &text),
                }
                if !is_all {
                    break;
                }
            }
        } else if let Some(definition) = self.definition(expr) {
            return self.end(definition, end, depth - 1);
        }
        (known, false)
    }

    /// Returns the definition of a local, if an expression only names one.
    fn definition(&self, expr: &Expr) -> Option<&'b Expr> {
        let ExprKind::Traversal(base, steps) = &expr.kind else {
            return None;
        };
        match (&base.kind, &**steps) {
            (ExprKind::Variable(local), [step]) if &**local == "local" => match &step.kind {
                TraversalStepKind::Attribute(name) => self.locals.get(&**name).copied(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Evaluates something for each combination of the variables that it uses. `None` replaces the combinations
    /// after the first [`MAX_COMBINATIONS`].
    pub(super) fn for_each_combination<T>(
        &self,
        evaluate: impl Fn() -> Option<T>,
    ) -> Vec<Option<T>> {
        let mut found = Vec::new();
        loop {
            self.known.borrow_mut().clear();
            found.push(evaluate());
            let mut choices = self.choices.borrow_mut();
            while let Some(last) = choices.last_mut() {
                last.index += 1;
                if last.index < last.values.len() {
                    break;
                }
                choices.pop();
            }
            if choices.is_empty() {
                return found;
            }
            if found.len() >= MAX_COMBINATIONS {
                choices.clear();
                found.push(None);
                return found;
            }
        }
    }

    /// Returns the variables that were used so far.
    pub(super) fn used(&self) -> BTreeSet<Box<str>> {
        self.used.borrow().clone()
    }

    fn local(&self, name: &str, span: Span) -> EvalResult {
        let Some(definition) = self.locals.get(name) else {
            return unknown(span);
        };
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let mut known = self.known.borrow_mut();
        known.insert(name.to_owned(), unknown(span));
        drop(known);
        let value = evaluate_within(definition, self, &self.budget).map(|answer| answer.value);
        self.known
            .borrow_mut()
            .insert(name.to_owned(), value.clone());
        value
    }

    fn variable(&self, name: &str, span: Span) -> EvalResult {
        let chosen = |choice: &Choice| choice.values[choice.index].clone();
        let choices = self.choices.borrow();
        let known = choices.iter().find(|choice| *choice.name == *name);
        let known = known.map(chosen);
        drop(choices);
        let value = known.unwrap_or_else(|| {
            let choice = Choice {
                name: name.into(),
                values: (self.variables)(name),
                index: 0,
            };
            let value = chosen(&choice);
            self.used.borrow_mut().insert(name.into());
            self.choices.borrow_mut().push(choice);
            value
        });
        value.map_or_else(|| unknown(span), Ok)
    }
}

impl Namespaces for Constants<'_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        let value = match (path.name, path.rest.first()) {
            ("path", _) => {
                let places = [("module", MODULE), ("root", ROOT), ("cwd", ROOT)]
                    .map(|(name, place)| (name, Value::string(place)));
                return Ok(Some(Value::object(places).into()));
            }
            ("local", Some((name, span))) => (*name, self.local(name, *span)?),
            ("var", Some((name, span))) => (*name, self.variable(name, *span)?),
            _ => return Ok(None),
        };
        Ok(Some(Value::object([value]).into()))
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        let name = &*call.name.text;
        let name = name.strip_prefix("core::").unwrap_or(name);
        if let ("abspath" | "dirname", [_]) = (name, call.arguments) {
            let values = call.values()?;
            let text = values.first().and_then(|(value, _)| value.as_str());
            let text = text.and_then(|text| match name {
                "abspath" => Some(absolute(text)),
                _ => parent_of_place(text),
            });
            if let Some(text) = text {
                return Ok(Some(Value::string(text)));
            }
        }
        let surroundings = FunctionContext {
            prefix: "",
            ..FunctionContext::none("a module")
        };
        function::call(call, &surroundings)
    }
}

fn absolute(path: &str) -> String {
    if path.starts_with(['/', '\u{1}']) {
        path.to_owned()
    } else {
        format!("{ROOT}/{path}")
    }
}

/// Returns the directory above a place such as `path.module`; `None` for an ordinary path. For a called
/// module, it is the directory around the module. In the stack itself, `path.module` is `.`, and everything
/// there belongs to the stack anyway.
fn parent_of_place(path: &str) -> Option<String> {
    let (base, rest) = place(path)?;
    Some(match rest.trim_end_matches('/').rsplit_once('/') {
        None | Some((_, "..")) => format!("{base}{rest}/.."),
        Some((above, _)) => format!("{base}{above}"),
    })
}

/// Splits a path that begins with `path.module` or the like.
fn place(path: &str) -> Option<(&'static str, &str)> {
    let path = path.strip_prefix("./").unwrap_or(path);
    [MODULE, ROOT]
        .into_iter()
        .find_map(|base| Some((base, path.strip_prefix(base)?)))
}

/// Returns a value of one module as another sees it, given the path to the first; `None` if it is unknown.
pub(super) fn rebase(value: Value, way: &str) -> Option<Value> {
    match &value {
        Value::String(text) if way != "." => Some(Value::string(
            text.replace(MODULE, &format!("{MODULE}/{way}")),
        )),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Some(value),
        _ => {
            let names_place = format!("{value:?}").contains(r"\u{1}module");
            (!names_place || way == ".").then_some(value)
        }
    }
}

/// Returns the path in the project that a text names, if it can be one.
pub(super) fn path_of(text: String) -> Option<(PathBase, String)> {
    let Some((base, rest)) = place(&text) else {
        return plain_path(text).filter(|(_, path)| !path.contains('\u{1}'));
    };
    let is_path = (rest.is_empty() || rest.starts_with('/'))
        && !rest.contains('\u{1}')
        && rest.len() <= ProjectPath::MAX_BYTES;
    let base = if base == MODULE {
        PathBase::Module
    } else {
        PathBase::Root
    };
    is_path.then(|| (base, format!("./{}", rest.trim_start_matches('/'))))
}

/// Gives up on an expression; the diagnostic is never shown.
fn unknown<T>(span: Span) -> EvalResult<T> {
    let diagnostic = Diagnostic::warning(Code::UnavailableName, "unknown");
    Err(diagnostic.label(span, "").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::parse::parse_whole;
    use crate::source::FileId;

    #[test]
    fn paths_are_evaluated_as_far_as_they_are_constant() {
        let text = r#"
            locals {
              here  = path.module
              dir   = "${local.here}/${var.dir}"
              self  = local.again
              again = "${local.self}x"
            }
            a = "${local.dir}/a.json"
            b = abspath("b")
            c = abspath("${path.module}/c")
            d = join("/", [path.root, "d", var.dir])
            e = format("%s/e-%d.txt", local.here, 1)
            f = "${dirname(path.module)}/f"
            g = "${dirname("${path.module}/../g/x")}/y"
            h = local.self
            i = var.none
            j = file("x")
            k = "${path.module}k"
            l = "x/${path.module}"
            m = dirname("m/x/y")
            n = "~/n"
        "#;
        let body = parse_whole(FileId::UNPLACED, text).unwrap();
        let files = [body.clone()];
        let variable = |name: &str| -> PossibleValues {
            match name {
                "dir" => [Some(Value::string("conf"))].into(),
                _ => [None].into(),
            }
        };
        let constants = Constants::new(&files, &variable);
        let paths = body.attributes.iter().map(|attribute| {
            let text = constants.text(&attribute.value);
            let place = match text.map(path_of) {
                None => "unknown".to_owned(),
                Some(None) => "elsewhere".to_owned(),
                Some(Some((base, path))) => format!("{base:?} {path}"),
            };
            format!("{} {place}", attribute.name.text)
        });
        let expected = [
            "a Module ./conf/a.json",
            "b Root ./b",
            "c Module ./c",
            "d Root ./d/conf",
            "e Module ./e-1.txt",
            "f Module ./../f",
            "g Module ./../g/y",
            "h unknown",
            "i unknown",
            "j unknown",
            "k elsewhere",
            "l elsewhere",
            "m Root m/x",
            "n elsewhere",
        ];
        assert_eq!(paths.collect::<Vec<String>>(), expected);
    }

    #[test]
    fn a_path_with_a_known_beginning_has_a_directory_and_a_pattern() {
        let text = r#"
            locals {
              conf  = "../conf/${each.key}"
              self  = local.again
              again = local.self
            }
            a = "${path.root}/../a/${var.x}.json"
            b = "${local.conf}/b.json"
            c = "c/${var.x}/${upper("d")}-${1}/"
            d = "d/${var.x}${path.module}"
            e = "e/${var.x}/[f]"
            f = local.self
            g = "/${var.x}"
            h = "${var.x}/h"
            i = "i-${var.x}"
            j = "j/%{ if var.x }k%{ endif }.yml"
        "#;
        let body = parse_whole(FileId::UNPLACED, text).unwrap();
        let files = [body.clone()];
        let unknown = |_: &str| -> PossibleValues { [None].into() };
        let constants = Constants::new(&files, &unknown);
        let found = body.attributes.iter().map(|attribute| {
            let name = &attribute.name.text;
            match constants.directory(&attribute.value) {
                None => format!("{name} unknown"),
                Some(directory) => {
                    let names = constants.names(&attribute.value);
                    format!("{name} {directory:?} {names}")
                }
            }
        });
        let expected = [
            r#"a "\u{1}root/../a" **/*.json"#,
            r#"b "../conf" **/b.json"#,
            r#"c "c" **"#,
            r#"d "d" **"#,
            r#"e "e" **"#,
            "f unknown",
            "g unknown",
            "h unknown",
            "i unknown",
            r#"j "j" **/*.yml"#,
        ];
        assert_eq!(found.collect::<Vec<String>>(), expected);
    }

    #[test]
    fn a_path_is_evaluated_for_each_combination_of_its_variables() {
        let text = r#"
            locals { dir = "${var.a}/${var.b}" }
            path = "${local.dir}/${var.a == "1" ? var.b : var.c}"
        "#;
        let body = parse_whole(FileId::UNPLACED, text).unwrap();
        let files = [body.clone()];
        let value = |text: &str| Some(Value::string(text));
        let variable = |name: &str| -> PossibleValues {
            match name {
                "a" => [value("1"), value("2")].into(),
                "b" => [value("x"), value("y")].into(),
                _ => [value("z"), None].into(),
            }
        };
        let constants = Constants::new(&files, &variable);
        let found = constants.for_each_combination(|| constants.text(&body.attributes[0].value));
        let found: Vec<&str> = found
            .iter()
            .map(|it| it.as_deref().unwrap_or("?"))
            .collect();
        assert_eq!(found, ["1/x/x", "1/y/y", "2/x/z", "?", "2/y/z", "?"]);
    }

    #[test]
    fn too_many_combinations_are_unknown() {
        let text = "path = \"${var.a}${var.b}${var.c}\"\n";
        let body = parse_whole(FileId::UNPLACED, text).unwrap();
        let values: PossibleValues = (0..20)
            .map(|n| Some(Value::string(n.to_string())))
            .collect();
        let variable = |_: &str| values.clone();
        let constants = Constants::new(&[], &variable);
        let found = constants.for_each_combination(|| constants.text(&body.attributes[0].value));
        assert_eq!(found.len(), MAX_COMBINATIONS + 1);
        assert!(found.last().unwrap().is_none());
    }
}
