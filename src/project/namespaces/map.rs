//! Evaluates `map` blocks: objects computed from a collection.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Names;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{
    Call, EvalResult, EvalValue, NamePath, Namespaces, evaluate_within,
};
use crate::language::syntax::Expr;
use crate::language::value::Value;
use crate::project::globals::{MapBlock, MapValue};

/// Returns the object that a block describes. Of several elements with the same key, the last one
/// counts; each sees the value of the one before it.
pub(super) fn evaluate(block: &MapBlock, names: &Names<'_, '_>) -> EvalResult<EvalValue> {
    let scope = MapScope {
        names,
        is_sensitive: std::cell::Cell::new(false),
    };
    let value = object(block, names, &scope)?;
    Ok(EvalValue {
        value,
        is_sensitive: scope.is_sensitive.get(),
    })
}

/// The context of a whole block, including nested blocks.
struct MapScope<'a, 'p> {
    names: &'a Names<'a, 'p>,
    is_sensitive: std::cell::Cell<bool>,
}

impl MapScope<'_, '_> {
    fn value(&self, expr: &Expr, namespaces: &dyn Namespaces) -> EvalResult {
        let answer = evaluate_within(expr, namespaces, self.names.budget)?;
        if answer.is_sensitive {
            self.is_sensitive.set(true);
        }
        Ok(answer.value)
    }
}

fn object(block: &MapBlock, outer: &dyn Namespaces, scope: &MapScope) -> EvalResult {
    let collection = scope.value(&block.for_each, outer)?;
    let elements: Vec<Value> = match (collection.items(), collection.entries()) {
        (Some(items), _) => items.to_vec(),
        (None, Some(entries)) => entries.values().cloned().collect(),
        (None, None) => {
            let found = collection.type_name();
            let diagnostic =
                Diagnostic::error(Code::WrongType, "`for_each` needs a list or an object");
            return Err(diagnostic
                .label(block.for_each.span, format!("this is {found}"))
                .into());
        }
    };
    let mut object: BTreeMap<Arc<str>, Value> = BTreeMap::new();
    for element in elements {
        let mut variable = vec![("new", element)];
        let with = |variable: &[(&'static str, Value)]| WithVariable {
            outer,
            name: &block.iterator,
            value: Value::object(variable.iter().cloned()),
        };
        let key = match scope.value(&block.key, &with(&variable))? {
            Value::String(key) => key,
            other => {
                let diagnostic = Diagnostic::error(Code::WrongType, "`key` must be a string");
                let label = format!("this is {}", other.type_name());
                return Err(diagnostic.label(block.key.span, label).into());
            }
        };
        variable.extend(object.get(&key).map(|old| ("old", old.clone())));
        let namespaces = with(&variable);
        let value = match &block.value {
            MapValue::Expr(expr) => scope.value(expr, &namespaces)?,
            MapValue::Block { attributes, maps } => {
                let mut inner: BTreeMap<Arc<str>, Value> = BTreeMap::new();
                for attribute in attributes {
                    let value = scope.value(&attribute.value, &namespaces)?;
                    inner.insert((&*attribute.name.text).into(), value);
                }
                for map in maps {
                    let value = self::object(map, &namespaces, scope)?;
                    inner.insert((&*map.name.text).into(), value);
                }
                Value::Object(inner.into())
            }
        };
        object.insert(key, value);
    }
    Ok(Value::Object(object.into()))
}

/// Other namespaces, with one more variable.
struct WithVariable<'a> {
    outer: &'a dyn Namespaces,
    name: &'a str,
    value: Value,
}

impl Namespaces for WithVariable<'_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        if path.name == self.name {
            return Ok(Some(self.value.clone().into()));
        }
        self.outer.get(path)
    }

    fn names(&self) -> Vec<&str> {
        let mut names = self.outer.names();
        names.push(self.name);
        names
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        self.outer.call(call)
    }

    fn functions(&self) -> Vec<String> {
        self.outer.functions()
    }
}
