//! Evaluates expressions, with Terraform's numbers, conversions and ordering.
//!
//! [`evaluate`] takes an expression and [`Namespaces`] and returns a [`Value`] or a diagnostic that
//! points at the part of the expression that is wrong. The caller decides which namespaces exist.
//! Evaluation reads and runs nothing, except through the functions that the scope allows. It evaluates
//! only what decides the value: functions get their arguments as written.
//!
//! Three deviations from HCL, all on purpose: division by zero is an error rather than infinity; the
//! result of a condition that is not taken is not evaluated, not even for its type; and the work for
//! one expression is bounded, so that a hostile file cannot occupy the machine.

mod access;
mod conditional;
mod operators;
mod problem;
mod template;
mod value;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use self::problem::EvalResult;
use self::problem::fail;
pub use self::value::Value;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{BinaryOperator, Expr, ExprKind, ForExpr, Name};
use crate::source::Span;

/// How much work evaluation may still do, in steps and bytes. Limits what a hostile file can cost;
/// expressions that need each other share it.
#[derive(Debug)]
pub struct Budget(Cell<u64>);

impl Default for Budget {
    fn default() -> Self {
        Budget(Cell::new(4_000_000))
    }
}

/// What names mean.
pub trait Namespaces {
    /// Returns the value of a top-level name, such as `terramate`, or `None` if there is no such
    /// name here. `rest` holds the attribute names that follow it, so that only what is needed
    /// is evaluated.
    ///
    /// # Errors
    ///
    /// If the name exists and its value cannot be evaluated.
    fn get(&self, name: &str, rest: &[&str], span: Span) -> EvalResult<Option<Value>>;

    /// Returns the names that exist, for suggestions.
    fn names(&self) -> Vec<&str>;

    /// Returns whether there is a function of that name here.
    fn has_function(&self, _name: &str) -> bool {
        false
    }

    /// Calls a function that exists. Its arguments have not been evaluated: a function may use only
    /// some of them, or treat an error in one as an answer.
    ///
    /// # Errors
    ///
    /// If the call is wrong.
    fn call(&self, call: &Call<'_>) -> EvalResult {
        unreachable!("there is no function `{}`", call.name.text)
    }
}

/// A function call and the scope it is written in.
pub struct Call<'a> {
    /// The name of the function.
    pub name: &'a Name,
    /// The arguments, as written.
    pub arguments: &'a [Expr],
    scope: &'a EvalScope<'a>,
}

impl Call<'_> {
    /// Evaluates an argument, or a part of one, where the call is written: with its namespaces and `for`
    /// variables.
    ///
    /// # Errors
    ///
    /// A diagnostic for the first thing that is wrong.
    pub fn evaluate(&self, argument: &Expr) -> EvalResult {
        self.scope.evaluate(argument)
    }

    /// Evaluates all arguments in order.
    ///
    /// # Errors
    ///
    /// A diagnostic for the first thing that is wrong.
    pub fn values(&self) -> EvalResult<Vec<Value>> {
        let arguments = self.arguments.iter();
        arguments.map(|argument| self.evaluate(argument)).collect()
    }
}

/// No namespaces at all, for the `stack` block and the project configuration. The text names the
/// place in messages.
#[derive(Debug, Clone, Copy)]
pub struct NoNamespaces(pub &'static str);

impl Namespaces for NoNamespaces {
    fn get(&self, name: &str, _rest: &[&str], span: Span) -> EvalResult<Option<Value>> {
        if !["env", "global", "let", "orch", "terramate"].contains(&name) {
            return Ok(None);
        }
        let message = format!("`{name}` cannot be used in {}", self.0);
        Err(Box::new(
            Diagnostic::error(Code::UnavailableName, message)
                .label(span, "not available here")
                .help("only literals, operators, templates and `for` are evaluated here"),
        ))
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// Evaluates an expression.
///
/// # Errors
///
/// A diagnostic for the first thing that is wrong.
pub fn evaluate(expr: &Expr, namespaces: &dyn Namespaces) -> EvalResult {
    evaluate_within(expr, namespaces, &Budget::default())
}

/// Evaluates an expression within a budget that others share.
///
/// # Errors
///
/// A diagnostic for the first thing that is wrong.
pub fn evaluate_within(expr: &Expr, namespaces: &dyn Namespaces, budget: &Budget) -> EvalResult {
    let scope = EvalScope {
        namespaces,
        budget,
        variable: None,
        outer: None,
    };
    scope.evaluate(expr)
}

/// Where an expression is evaluated: the namespaces, the `for` variables in force, and how much work
/// is left.
struct EvalScope<'a> {
    namespaces: &'a dyn Namespaces,
    budget: &'a Budget,
    variable: Option<(&'a str, Value)>,
    outer: Option<&'a EvalScope<'a>>,
}

fn unknown_function(name: &Name) -> Diagnostic {
    Diagnostic::error(
        Code::UnknownFunction,
        format!("functions are not supported yet: `{}`", name.text),
    )
    .label(name.span, "this call cannot be evaluated")
    .help("write the value itself, or compute it with operators, templates and `for`")
}

impl EvalScope<'_> {
    fn evaluate(&self, expr: &Expr) -> EvalResult {
        self.spend(1, expr.span)?;
        match &expr.kind {
            ExprKind::Null => Ok(Value::Null),
            ExprKind::Bool(value) => Ok(Value::Bool(*value)),
            ExprKind::Number(number) if value::is_sane(number) => {
                Ok(Value::Number((**number).clone()))
            }
            ExprKind::Number(_) => fail(
                Code::Limit,
                "this number is too large or too small to work with",
                expr.span,
                "beyond a thousand digits",
            ),
            ExprKind::String(text) => {
                self.spend(text.len() as u64, expr.span)?;
                Ok(Value::string(&**text))
            }
            ExprKind::Template(parts) => self.template(parts),
            ExprKind::List(items) => {
                let items: EvalResult<Vec<Value>> =
                    items.iter().map(|item| self.evaluate(item)).collect();
                Ok(Value::list(items?))
            }
            ExprKind::Object(entries) => {
                let mut object = BTreeMap::new();
                for (key, value) in entries {
                    object.insert(self.key(key)?, self.evaluate(value)?);
                }
                Ok(Value::Object(Arc::new(object)))
            }
            ExprKind::Variable(name) => self.variable(name, &[], expr.span),
            ExprKind::Traversal(base, steps) => self.traversal(base, steps),
            ExprKind::Unary(operator, operand) => {
                operators::unary(*operator, &self.evaluate(operand)?, operand.span)
            }
            ExprKind::Binary(operator, operands) => {
                let [left, right] = &**operands;
                if let BinaryOperator::And | BinaryOperator::Or = operator {
                    return self.logical(*operator, left, right);
                }
                let values = (self.evaluate(left)?, self.evaluate(right)?);
                operators::binary(*operator, (&values.0, left.span), (&values.1, right.span))
            }
            ExprKind::Conditional(parts) => self.conditional(parts),
            ExprKind::For(for_expr) => self.for_expr(for_expr),
            ExprKind::Call(name, arguments) => {
                if !self.namespaces.has_function(&name.text) {
                    return Err(Box::new(unknown_function(name)));
                }
                self.namespaces.call(&Call {
                    name,
                    arguments,
                    scope: self,
                })
            }
        }
    }

    /// Counts work done.
    fn spend(&self, cost: u64, span: Span) -> EvalResult<()> {
        let Some(left) = self.budget.0.get().checked_sub(cost) else {
            return fail(
                Code::Limit,
                "this expression is too large to evaluate",
                span,
                "the limit is reached here",
            );
        };
        self.budget.0.set(left);
        Ok(())
    }

    fn with<'b>(&'b self, name: &'b str, value: Value) -> EvalScope<'b> {
        EvalScope {
            namespaces: self.namespaces,
            budget: self.budget,
            variable: Some((name, value)),
            outer: Some(self),
        }
    }

    /// Evaluates `&&` or `||` as Terraform has done since 1.12: the right side is evaluated only if the
    /// left side does not decide.
    fn logical(&self, operator: BinaryOperator, left: &Expr, right: &Expr) -> EvalResult {
        let decisive = operator == BinaryOperator::Or;
        let value = operators::boolean(&self.evaluate(left)?, left.span)?;
        if value == decisive {
            return Ok(Value::Bool(decisive));
        }
        let value = operators::boolean(&self.evaluate(right)?, right.span)?;
        Ok(Value::Bool(value))
    }

    fn key(&self, key: &Expr) -> EvalResult<Arc<str>> {
        let value = self.evaluate(key)?;
        match value.to_text() {
            Some(text) => Ok(text),
            None => fail(
                Code::WrongType,
                "a key must be a string",
                key.span,
                format!("this is {}", value.type_name()),
            ),
        }
    }

    /// Calls `body` for each element of a collection, with the variables set.
    fn each(
        &self,
        (key_variable, value_variable): (Option<&str>, &str),
        collection: &Expr,
        mut body: impl FnMut(&EvalScope) -> EvalResult<()>,
    ) -> EvalResult<()> {
        let entries: Vec<(Value, Value)> = match self.evaluate(collection)? {
            Value::List(items) => {
                let pairs = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| (Value::Number((index as u64).into()), item.clone()));
                pairs.collect()
            }
            Value::Object(object) => object
                .iter()
                .map(|(key, value)| (Value::String(key.clone()), value.clone()))
                .collect(),
            other => {
                return fail(
                    Code::WrongType,
                    "`for` needs a list or an object",
                    collection.span,
                    format!("this is {}", other.type_name()),
                );
            }
        };
        for (key, value) in entries {
            self.spend(1, collection.span)?;
            let with_value = self.with(value_variable, value);
            match key_variable {
                Some(key_variable) => body(&with_value.with(key_variable, key))?,
                None => body(&with_value)?,
            }
        }
        Ok(())
    }

    fn for_expr(&self, for_expr: &ForExpr) -> EvalResult {
        let variables = (for_expr.key_variable.as_deref(), &*for_expr.value_variable);
        let mut list = Vec::new();
        let mut object: BTreeMap<Arc<str>, Vec<Value>> = BTreeMap::new();
        self.each(variables, &for_expr.collection, |scope| {
            if let Some(condition) = &for_expr.condition
                && !scope.condition(condition)?
            {
                return Ok(());
            }
            let Some(key) = &for_expr.key else {
                list.push(scope.evaluate(&for_expr.value)?);
                return Ok(());
            };
            let values = object.entry(scope.key(key)?).or_default();
            if !values.is_empty() && !for_expr.grouping {
                return fail(
                    Code::DuplicateEntry,
                    "two elements have the same key",
                    key.span,
                    "add `...` after the value to group them",
                );
            }
            values.push(scope.evaluate(&for_expr.value)?);
            Ok(())
        })?;
        if for_expr.key.is_none() {
            return Ok(Value::list(list));
        }
        Ok(Value::object(object.into_iter().map(
            |(key, mut values)| {
                let value = if for_expr.grouping {
                    Value::list(values)
                } else {
                    values.pop().unwrap_or(Value::Null)
                };
                (key, value)
            },
        )))
    }
}

#[cfg(test)]
mod tests;
