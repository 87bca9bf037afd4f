//! The constant paths of a Terraform module: values of locals, defaults of variables, and pure functions.
//!
//! A caller may override a default. Then a file counts as an input that is none, which is better than the
//! opposite.

use std::cell::RefCell;
use std::collections::HashMap;

use super::extract::{PathBase, plain_path};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{
    Budget, Call, EvalResult, EvalValue, NamePath, Namespaces, evaluate_within,
};
use crate::language::function::{self, FunctionContext};
use crate::language::syntax::{Body, Expr};
use crate::language::value::Value;
use crate::path::ProjectPath;
use crate::source::Span;

/// Represents `path.module` in a value. No path contains this character.
const MODULE: &str = "\u{1}module";

/// Represents `path.root` and `path.cwd`.
const ROOT: &str = "\u{1}root";

/// The values of names in the files of a module.
pub(super) struct Constants<'b> {
    locals: HashMap<&'b str, &'b Expr>,
    defaults: HashMap<&'b str, &'b Expr>,
    budget: Budget,
    /// By namespace and name; unknown during evaluation.
    known: RefCell<HashMap<(&'static str, String), EvalResult>>,
}

impl<'b> Constants<'b> {
    pub(super) fn new(files: &'b [Body]) -> Self {
        let mut constants = Constants {
            locals: HashMap::new(),
            defaults: HashMap::new(),
            budget: Budget::default(),
            known: RefCell::default(),
        };
        for file in files {
            let locals = file
                .blocks("locals")
                .flat_map(|block| &block.body.attributes);
            constants
                .locals
                .extend(locals.map(|local| (&*local.name.text, &local.value)));
            for variable in file.blocks("variable") {
                let default = variable.body.attribute("default");
                if let (Some(name), Some(default)) = (variable.labels.first(), default) {
                    constants.defaults.insert(&name.text, &default.value);
                }
            }
        }
        constants
    }

    /// Returns the text of an expression, if it is constant.
    pub(super) fn text(&self, expr: &Expr) -> Option<String> {
        let answer = evaluate_within(expr, self, &self.budget).ok()?;
        answer.value.as_str().map(str::to_owned)
    }

    fn definition(&self, namespace: &'static str, name: &str, span: Span) -> EvalResult {
        let definitions = match namespace {
            "local" => &self.locals,
            _ => &self.defaults,
        };
        let Some(definition) = definitions.get(name) else {
            return unknown(span);
        };
        let key = (namespace, name.to_owned());
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let mut known = self.known.borrow_mut();
        known.insert(key.clone(), unknown(span));
        drop(known);
        let value = evaluate_within(definition, self, &self.budget).map(|answer| answer.value);
        self.known.borrow_mut().insert(key, value.clone());
        value
    }
}

impl Namespaces for Constants<'_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        let namespace = match path.name {
            "path" => {
                let places = [("module", MODULE), ("root", ROOT), ("cwd", ROOT)]
                    .map(|(name, place)| (name, Value::string(place)));
                return Ok(Some(Value::object(places).into()));
            }
            "local" => "local",
            "var" => "var",
            _ => return Ok(None),
        };
        let Some((name, span)) = path.rest.first() else {
            return Ok(None);
        };
        let value = self.definition(namespace, name, *span)?;
        Ok(Some(Value::object([(*name, value)]).into()))
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
            variable "dir" { default = "conf" }
            variable "none" {}
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
        let constants = Constants::new(&files);
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
}
