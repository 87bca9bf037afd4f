//! Evaluates expressions, with Terraform's numbers, conversions and ordering.
//!
//! [`evaluate`] takes an expression and [`Namespaces`] and returns a [`Value`], or the reason why there is
//! none: a diagnostic that points at the part of the expression that is wrong, or a name whose value is
//! not known yet. The caller decides which namespaces exist. Evaluation reads and runs nothing, except
//! through the functions that the namespaces allow. It evaluates only what decides the value: functions
//! get their arguments as written.
//!
//! There are three deliberate deviations from HCL: division by zero is an error rather than infinity;
//! the result of a condition that is not taken is not evaluated, not even for its type; and the work for
//! one expression is bounded, so that a hostile file cannot occupy the machine.

mod access;
mod conditional;
mod for_expr;
mod operators;
mod outcome;
mod template;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use self::access::NamePath;
pub use self::outcome::{EvalResult, EvalValue, NoValue, Unknown};
use self::outcome::{all, both, fail};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{BinaryOperator, Expr, ExprKind, Name};
use crate::language::value::{self, MAX_DEPTH, MAX_WEIGHT, Value};
use crate::source::Span;

/// How much work evaluation may do for the expressions that share a budget; see [`Budget`].
pub const MAX_WORK: u64 = 4_000_000;

/// How deeply expressions may be nested, including those of globals that refer to each other.
pub const MAX_NESTING: u32 = 400;

/// The remaining budget of an evaluation, about a unit for each step and for every eight bytes of text, and its
/// nesting depth. Limits the cost of a hostile file; expressions that need each other share it.
pub struct Budget {
    work: Cell<u64>,
    depth: Cell<u32>,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            work: Cell::new(MAX_WORK),
            depth: Cell::new(0),
        }
    }
}

impl Budget {
    /// Returns a full budget for an evaluation inside one that uses this budget: with all work left, but
    /// at the same depth.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Budget {
            depth: Cell::new(self.depth.get()),
            ..Budget::default()
        }
    }
}

pub trait Namespaces {
    /// Returns the value of a top-level name, such as `terramate`, or `None` if there is no such name
    /// here. Of an object, only the part that the path leads to is needed.
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>>;

    /// Returns the names that exist, for suggestions.
    fn names(&self) -> Vec<&str>;

    /// Calls a function; `None` if there is no function of that name here. Its arguments have not been
    /// evaluated: a function may use only some of them, or treat an error in one as an answer.
    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>>;

    /// Returns the functions that exist, for suggestions.
    fn functions(&self) -> Vec<String> {
        Vec::new()
    }
}

pub struct Call<'a> {
    pub name: &'a Name,
    pub arguments: &'a [Expr],
    /// Whether the last argument is a list of further arguments: `max(list...)`.
    pub expands: bool,
    scope: &'a EvalScope<'a>,
}

impl Call<'_> {
    /// Evaluates an argument, or a part of one, where the call is written: with its namespaces and `for`
    /// variables.
    pub fn evaluate(&self, argument: &Expr) -> EvalResult {
        self.scope.evaluate(argument)
    }

    /// Evaluates all arguments in order, each with its place. The elements of an expanded one have its
    /// place.
    pub fn values(&self) -> EvalResult<Vec<(Value, Span)>> {
        let arguments = self.arguments.iter();
        let evaluated = arguments.map(|argument| Ok((self.evaluate(argument)?, argument.span)));
        let mut values: Vec<(Value, Span)> = all(evaluated)?;
        if self.expands
            && let Some((last, span)) = values.pop()
        {
            let Some(items) = last.items() else {
                let label = self.scope.this_is(&self.arguments[values.len()], &last);
                return fail(Code::WrongType, "`...` needs a list", span, label);
            };
            values.extend(items.iter().map(|item| (item.clone(), span)));
        }
        Ok(values)
    }

    pub fn spend(&self, cost: u64) -> EvalResult<()> {
        self.scope.spend(cost, self.name.span)
    }

    /// Returns whether the expression has used anything that must not appear in a message.
    pub fn is_sensitive(&self) -> bool {
        self.scope.is_sensitive.get()
    }

    /// Evaluates the parts of another text, such as a file that is a template, with other names. They share
    /// the budget of the call.
    pub fn evaluate_with(&self, expr: &Expr, namespaces: &dyn Namespaces) -> EvalResult {
        let scope = EvalScope {
            namespaces,
            variable: None,
            outer: None,
            ..*self.scope
        };
        scope.evaluate(expr)
    }
}

/// Evaluates an expression.
///
/// A diagnostic for the first thing that is wrong, or for a name that has no value yet.
pub fn evaluate(expr: &Expr, namespaces: &dyn Namespaces) -> Result<Value, Box<Diagnostic>> {
    match evaluate_within(expr, namespaces, &Budget::default()) {
        Ok(answer) => Ok(answer.value),
        Err(none) => Err(Box::new(none.into_diagnostic())),
    }
}

pub fn evaluate_within(
    expr: &Expr,
    namespaces: &dyn Namespaces,
    budget: &Budget,
) -> EvalResult<EvalValue> {
    let scope = EvalScope {
        namespaces,
        budget,
        is_sensitive: &Cell::new(false),
        variable: None,
        outer: None,
    };
    let value = scope.evaluate(expr)?;
    Ok(EvalValue {
        value,
        is_sensitive: scope.is_sensitive.get(),
    })
}

/// Where an expression is evaluated: the namespaces, the `for` variables in force, and how much work
/// is left.
struct EvalScope<'a> {
    namespaces: &'a dyn Namespaces,
    budget: &'a Budget,
    /// Whether any name that was used so far is sensitive.
    is_sensitive: &'a Cell<bool>,
    variable: Option<(&'a str, Value)>,
    outer: Option<&'a EvalScope<'a>>,
}

impl EvalScope<'_> {
    fn evaluate(&self, expr: &Expr) -> EvalResult {
        self.spend(1, expr.span)?;
        let depth = self.budget.depth.get();
        if depth == MAX_NESTING {
            let label = "the limit is reached here";
            return fail(
                Code::Limit,
                format!("expressions are nested more than {MAX_NESTING} levels deep"),
                expr.span,
                label,
            );
        }
        self.budget.depth.set(depth + 1);
        let result = self.of_kind(expr);
        self.budget.depth.set(depth);
        result
    }

    fn of_kind(&self, expr: &Expr) -> EvalResult {
        match &expr.kind {
            ExprKind::Null => Ok(Value::Null),
            ExprKind::Bool(value) => Ok(Value::Bool(*value)),
            ExprKind::Number(number) if value::is_sane(number) => {
                Ok(Value::Number((**number).clone()))
            }
            ExprKind::Number(_) => fail(
                Code::Limit,
                "this number is too large or too small",
                expr.span,
                "the limits are 10^-1000, 10^4000 and 4000 digits",
            ),
            ExprKind::String(text) => {
                self.spend(text.len() as u64 / 8, expr.span)?;
                Ok(Value::string(&**text))
            }
            ExprKind::Template(parts) => self.template(parts, expr.span),
            ExprKind::List(items) => {
                let items: Vec<Value> = all(items.iter().map(|item| self.evaluate(item)))?;
                within_limits(Value::tuple(items), expr.span)
            }
            ExprKind::Object(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| both(self.key(key), self.evaluate(value)));
                let entries: BTreeMap<Arc<str>, Value> = all(entries)?;
                within_limits(Value::Object(entries.into()), expr.span)
            }
            ExprKind::Variable(name) => self.variable(&NamePath {
                name,
                span: expr.span,
                rest: Vec::new(),
                computed: &[],
            }),
            ExprKind::Traversal(base, steps) => self.traversal(base, steps),
            ExprKind::Unary(operator, operand) => {
                operators::unary(self, *operator, operand, &self.evaluate(operand)?)
            }
            ExprKind::Binary(operator, operands) => {
                let [left, right] = &**operands;
                if let BinaryOperator::And | BinaryOperator::Or = operator {
                    return self.logical(*operator, left, right);
                }
                let (left_value, right_value) = both(self.evaluate(left), self.evaluate(right))?;
                operators::binary(self, *operator, (left, &left_value), (right, &right_value))
            }
            ExprKind::Conditional(parts) => self.conditional(parts),
            ExprKind::For(for_expr) => self.for_expr(for_expr, expr.span),
            ExprKind::Call(call) => {
                let call = Call {
                    name: &call.name,
                    arguments: &call.arguments,
                    expands: call.expands,
                    scope: self,
                };
                match self.namespaces.call(&call)? {
                    Some(value) => within_limits(value, expr.span),
                    None => Err(unknown_function(call.name, &self.namespaces.functions()).into()),
                }
            }
        }
    }

    fn spend(&self, cost: u64, span: Span) -> EvalResult<()> {
        let Some(left) = self.budget.work.get().checked_sub(cost) else {
            self.budget.work.set(0);
            return fail(
                Code::Limit,
                "this expression is too large to evaluate",
                span,
                "the limit is reached here",
            );
        };
        self.budget.work.set(left);
        Ok(())
    }

    fn with<'b>(&'b self, name: &'b str, value: Value) -> EvalScope<'b> {
        EvalScope {
            variable: Some((name, value)),
            outer: Some(self),
            ..*self
        }
    }

    /// Returns the label for an expression with an unsuitable value. Shows the value, unless the text
    /// already does or it must not be shown.
    fn this_is(&self, expr: &Expr, value: &Value) -> String {
        let is_written = matches!(
            expr.kind,
            ExprKind::Null
                | ExprKind::Bool(_)
                | ExprKind::Number(_)
                | ExprKind::String(_)
                | ExprKind::List(_)
                | ExprKind::Object(_)
        );
        if is_written || self.is_sensitive.get() {
            format!("this is {}", value.type_name())
        } else {
            format!("this is {}", self.shown(value))
        }
    }

    /// Returns the showable part of a value.
    fn shown(&self, value: &Value) -> String {
        if self.is_sensitive.get() {
            value.type_name().to_owned()
        } else {
            value.description()
        }
    }

    /// Evaluates `&&` or `||` as Terraform has done since 1.12: the right side is evaluated only if the
    /// left side does not decide, and decides alone if the left side is not known yet.
    fn logical(&self, operator: BinaryOperator, left: &Expr, right: &Expr) -> EvalResult {
        let decisive = operator == BinaryOperator::Or;
        let side = |expr: &Expr| operators::boolean(self, expr, &self.evaluate(expr)?);
        let left = match side(left) {
            Ok(value) if value == decisive => return Ok(Value::Bool(decisive)),
            Err(wrong @ NoValue::Wrong(_)) => return Err(wrong),
            Err(NoValue::Undecided(undecided)) if undecided.is_on_demand => {
                return Err(NoValue::Undecided(undecided));
            }
            left => left,
        };
        // While the left side may still decide, an error on the right side does not matter.
        let right = match (side(right), &left) {
            (Ok(right), _) => right,
            (Err(_), Err(undecided)) => return Err(undecided.clone()),
            (Err(none), Ok(_)) => return Err(none),
        };
        if right == decisive {
            return Ok(Value::Bool(decisive));
        }
        left.map(|_| Value::Bool(right))
    }

    fn key(&self, key: &Expr) -> EvalResult<Arc<str>> {
        let value = self.evaluate(key)?;
        match value.to_text() {
            Some(text) => Ok(text),
            None => fail(
                Code::WrongType,
                "a key must be a string",
                key.span,
                self.this_is(key, &value),
            ),
        }
    }
}

/// Checks that a new value is not too large to process.
fn within_limits(value: Value, span: Span) -> EvalResult {
    if value.weight() > MAX_WEIGHT {
        return too_large(span);
    }
    if value.depth() > MAX_DEPTH {
        let message = format!("this value is nested more than {MAX_DEPTH} levels deep");
        return fail(Code::Limit, message, span, "one level too many");
    }
    Ok(value)
}

fn too_large<T>(span: Span) -> EvalResult<T> {
    let message = "this value is too large";
    fail(Code::Limit, message, span, "the limit is about 16 MB")
}

fn unknown_function(name: &Name, known: &[String]) -> Diagnostic {
    let message = format!("unknown function `{}`", name.text);
    let diagnostic =
        Diagnostic::error(Code::UnknownFunction, message).label(name.span, "unknown function");
    // Configuration files put a prefix before Terraform's names.
    let prefixed = known.iter().find(|it| {
        it.strip_suffix(&*name.text)
            .is_some_and(|it| it.ends_with('_'))
    });
    if let Some(prefixed) = prefixed {
        return diagnostic.help(format!("did you mean `{prefixed}`?"));
    }
    diagnostic.did_you_mean(&name.text, known.iter().map(String::as_str))
}
