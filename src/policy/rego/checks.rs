//! Refuses policies that OPA refuses for unsafe variables, and those that the interpreter answers differently.

use std::collections::{HashMap, HashSet};

use regorus::unstable::{Expr, Literal, LiteralStmt, Module, Query, Ref, Rule, RuleHead, Span};

use super::functions::regexes;
use super::walk::{assignment, comprehended, function_name, head_values, parts, quoted, wildcard};
use super::{builtins, references};
use crate::policy::Problem;

type Names<'m> = HashSet<&'m str>;

/// Checks a module. `among` are all modules that are loaded: rules of the same package are known in it.
///
/// The place of the first construct that has no answer, or might have another one than in OPA.
pub(super) fn check(module: &Module, among: &[Ref<Module>], text: &str) -> Result<(), Problem> {
    let package = references::package(module);
    let mut known = references::names(module);
    let mut n_arguments = HashMap::new();
    for other in among.iter().filter(|it| references::package(it) == package) {
        known.extend(references::names(other));
        for rule in &other.policy {
            if let Rule::Spec {
                head: RuleHead::Func { refr, args, .. },
                ..
            } = &**rule
                && let Expr::Var { span, .. } = &**refr
            {
                n_arguments.insert(span.text().to_owned(), args.len());
            }
        }
    }
    let checker = Checker {
        text,
        known,
        n_arguments,
    };
    module.policy.iter().try_for_each(|rule| checker.rule(rule))
}

struct Checker<'t> {
    text: &'t str,
    /// The names of rules and imports: all others are variables.
    known: HashSet<String>,
    /// How many arguments the functions of the package have.
    n_arguments: HashMap<String, usize>,
}

/// The variables of a statement.
#[derive(Default)]
struct Uses<'m> {
    /// Those that need a value before.
    needs: Vec<&'m Span>,
    /// Those that it gives a value.
    gives: Vec<&'m Span>,
    comprehensions: Vec<&'m Expr>,
    /// An object that gives variables a value.
    pattern: Option<&'m Span>,
}

impl<'m> Checker<'_> {
    fn rule(&self, rule: &'m Rule) -> Result<(), Problem> {
        let Rule::Spec { head, bodies, .. } = rule else {
            return Ok(());
        };
        let mut arguments = Uses::default();
        if let RuleHead::Func { args, .. } = head {
            for argument in args {
                self.pattern(argument, &mut arguments);
            }
        }
        refuse_pattern(&arguments)?;
        let arguments: Names = arguments.gives.iter().map(|it| it.text()).collect();
        let terms = head_values(head);
        if bodies.is_empty() {
            self.terms(&terms, &arguments)?;
        }
        // References of the head may give variables of the body their values: `trigger[stacks[i].id] { i > 0 }`.
        let given = self.given(&terms, &arguments)?;
        for body in bodies {
            let bound = self.query(&body.query, &given)?;
            match &body.assign {
                Some(assign) => self.terms(&[&assign.value], &bound)?,
                None if body.is_else => {}
                None => self.terms(&terms, &bound)?,
            }
        }
        Ok(())
    }

    /// Returns these variables, and those that the references of terms give a value.
    fn given(&self, terms: &[&'m Expr], bound: &Names<'m>) -> Result<Names<'m>, Problem> {
        let mut uses = Uses::default();
        for term in terms {
            self.expression(term, &mut uses)?;
        }
        let given = uses.gives.iter().map(|it| it.text());
        Ok(bound.iter().copied().chain(given).collect())
    }

    /// Checks what is computed from the variables of a query.
    fn terms(&self, terms: &[&'m Expr], bound: &Names<'m>) -> Result<(), Problem> {
        let mut uses = Uses::default();
        for term in terms {
            self.expression(term, &mut uses)?;
        }
        let mut bound = bound.clone();
        bound.extend(uses.gives.iter().map(|it| it.text()));
        match missing(&uses, &bound) {
            Some(variable) => Err(unsafe_variable(variable)),
            None => self.comprehensions(&uses, &bound),
        }
    }

    /// Returns the variables that have a value after a query: its statements may have any order.
    fn query(&self, query: &'m Query, outer: &Names<'m>) -> Result<Names<'m>, Problem> {
        let mut bound = outer.clone();
        for statement in &query.stmts {
            if let Literal::SomeVars { vars, .. } = &statement.literal {
                for variable in vars {
                    bound.remove(variable.text());
                }
            }
        }
        let mut waiting: Vec<&LiteralStmt> = query.stmts.iter().collect();
        let mut done = Vec::new();
        loop {
            let mut later = Vec::new();
            let n_waiting = waiting.len();
            let mut first = None;
            for statement in waiting {
                let uses = self.statement(statement, &bound)?;
                if let Some(variable) = missing(&uses, &bound) {
                    first = first.or(Some(variable));
                    later.push(statement);
                } else {
                    refuse_pattern(&uses)?;
                    bound.extend(uses.gives.iter().map(|it| it.text()));
                    done.push((statement, uses));
                }
            }
            match first {
                None => break,
                Some(variable) if later.len() == n_waiting => {
                    return Err(unsafe_variable(variable));
                }
                Some(_) => waiting = later,
            }
        }
        for (statement, uses) in &done {
            self.comprehensions(uses, &bound)?;
            if let Literal::Every {
                key, value, query, ..
            } = &statement.literal
            {
                let mut inner = bound.clone();
                inner.extend(key.iter().chain([value]).map(Span::text));
                self.query(query, &inner)?;
            }
        }
        Ok(bound)
    }

    fn comprehensions(&self, uses: &Uses<'m>, bound: &Names<'m>) -> Result<(), Problem> {
        for comprehension in &uses.comprehensions {
            if let Some(query) = comprehended(comprehension) {
                let terms = parts(comprehension);
                let bound = self.query(query, &self.given(&terms, bound)?)?;
                self.terms(&terms, &bound)?;
            }
        }
        Ok(())
    }

    fn statement(
        &self,
        statement: &'m LiteralStmt,
        bound: &Names<'m>,
    ) -> Result<Uses<'m>, Problem> {
        let mut uses = Uses::default();
        for with in &statement.with_mods {
            self.expression(&with.r#as, &mut uses)?;
        }
        match &statement.literal {
            Literal::SomeVars { .. } => {}
            Literal::SomeIn {
                key,
                value,
                collection,
                ..
            } => {
                self.expression(collection, &mut uses)?;
                for pattern in key.iter().chain([value]) {
                    self.pattern(pattern, &mut uses);
                }
            }
            Literal::Every { domain, .. } => self.expression(domain, &mut uses)?,
            Literal::NotExpr { expr, .. } => {
                self.expression(expr, &mut uses)?;
                if let Some(span) = wildcard(expr) {
                    return Err(at(
                        span,
                        "`_` has no value in `not`: move the expression to a rule of its own, and negate that"
                            .to_owned(),
                    ));
                }
                let given = std::mem::take(&mut uses.gives);
                uses.needs.extend(given);
            }
            Literal::Expr { expr, .. } => match (assignment(&statement.literal), &**expr) {
                (Some((left, right)), _) => {
                    self.expression(right, &mut uses)?;
                    self.pattern(left, &mut uses);
                }
                (_, Expr::AssignExpr { lhs, rhs, .. }) => {
                    self.unified(lhs, rhs, bound, &mut uses)?;
                }
                (_, other) => self.expression(other, &mut uses)?,
            },
        }
        Ok(uses)
    }

    /// Reads the sides of `=`: each may give the variables of the other one a value.
    fn unified(
        &self,
        left: &'m Expr,
        right: &'m Expr,
        bound: &Names<'m>,
        uses: &mut Uses<'m>,
    ) -> Result<(), Problem> {
        if let (Expr::Array { items: lefts, .. }, Expr::Array { items: rights, .. }) = (left, right)
            && lefts.len() == rights.len()
        {
            for (left, right) in lefts.iter().zip(rights) {
                self.unified(left, right, bound, uses)?;
            }
            return Ok(());
        }
        for (from, to) in [(right, left), (left, right)] {
            let mut own = Uses::default();
            self.expression(from, &mut own)?;
            if missing(&own, bound).is_none() {
                let mut other = Uses::default();
                self.pattern(to, &mut other);
                let is_new = |it: &&&Span| !bound.contains(it.text());
                if other.gives.iter().find(is_new).is_none() {
                    other.pattern = None;
                }
                self.expression(from, uses)?;
                self.inside(to, uses)?;
                uses.needs.extend(other.needs);
                uses.gives.extend(other.gives);
                uses.pattern = uses.pattern.or(other.pattern);
                return Ok(());
            }
        }
        self.expression(left, uses)?;
        self.expression(right, uses)
    }

    /// Checks the calls and comprehensions of a pattern.
    fn inside(&self, pattern: &'m Expr, uses: &mut Uses<'m>) -> Result<(), Problem> {
        let mut own = Uses::default();
        self.expression(pattern, &mut own)?;
        uses.comprehensions.extend(own.comprehensions);
        Ok(())
    }

    fn pattern(&self, pattern: &'m Expr, uses: &mut Uses<'m>) {
        match pattern {
            Expr::Var { span, .. } if self.is_variable(span.text()) => uses.gives.push(span),
            Expr::Array { items, .. } => {
                for item in items {
                    self.pattern(item, uses);
                }
            }
            Expr::Object { span, fields, .. } => {
                uses.pattern = uses.pattern.or(Some(span));
                for (_, _, value) in fields {
                    self.pattern(value, uses);
                }
            }
            other => {
                // Its calls are checked where it is read as an expression.
                let mut own = Uses::default();
                if self.expression(other, &mut own).is_ok() {
                    uses.needs.extend(own.needs);
                    uses.gives.extend(own.gives);
                }
            }
        }
    }

    fn expression(&self, expression: &'m Expr, uses: &mut Uses<'m>) -> Result<(), Problem> {
        match expression {
            Expr::Var { span, .. } => {
                if self.is_variable(span.text()) {
                    uses.needs.push(span);
                }
                Ok(())
            }
            Expr::RefBrack { refr, index, .. } => {
                self.expression(refr, uses)?;
                match &**index {
                    Expr::Var { .. } | Expr::Array { .. } => self.pattern(index, uses),
                    other => self.expression(other, uses)?,
                }
                Ok(())
            }
            Expr::ArrayCompr { .. } | Expr::SetCompr { .. } | Expr::ObjectCompr { .. } => {
                uses.comprehensions.push(expression);
                Ok(())
            }
            Expr::Call { fcn, params, .. } => self.call(fcn, params, uses),
            Expr::UnaryExpr { span, expr, .. }
                if matches!(
                    **expr,
                    Expr::ArithExpr { .. }
                        | Expr::AssignExpr { .. }
                        | Expr::BinExpr { .. }
                        | Expr::BoolExpr { .. }
                        | Expr::Membership { .. }
                ) =>
            {
                let message = "`-` would belong to the whole expression after it, unlike in OPA: write `0 - …`, or put what it belongs to in parentheses";
                Err(at(span, message.to_owned()))
            }
            Expr::Number { span, .. } if span.text().contains(['e', 'E']) => Err(at(
                span,
                format!("`{}` has an exponent: write all digits", span.text()),
            )),
            _ => {
                let mut parts = parts(expression).into_iter();
                parts.try_for_each(|part| self.expression(part, uses))
            }
        }
    }

    fn call(
        &self,
        function: &'m Expr,
        parameters: &'m [Ref<Expr>],
        uses: &mut Uses<'m>,
    ) -> Result<(), Problem> {
        let (span, end) = match function {
            Expr::RefDot { field, .. } => (&field.0, field.0.end),
            other => (other.span(), other.span().end),
        };
        if self
            .text
            .as_bytes()
            .get(end as usize)
            .is_some_and(u8::is_ascii_whitespace)
        {
            let message = "a blank before `(` makes no call: write it without, or end the statement before with `;`";
            return Err(at(span, message.to_owned()));
        }
        let name = function_name(function);
        let position = match &name[..] {
            "regex.match"
            | "regex.find_n"
            | "regex.split"
            | "re_match"
            | "regex.find_all_string_submatch_n" => Some(0),
            "regex.replace" => Some(1),
            _ => None,
        };
        if let Some(Expr::String { span, value, .. } | Expr::RawString { span, value, .. }) =
            position
                .and_then(|position| parameters.get(position))
                .map(|it| &**it)
            && let Ok(pattern) = value.as_string()
            && let Err(why) = regexes::compiled(pattern)
        {
            return Err(at(span, format!("the regex is wrong: {why}")));
        }
        if name == "time.format" && !parameters.first().is_some_and(|it| has_own_layout(it)) {
            let message = "`time.format` takes only literal layouts, without `MST`, `5`, `pm` or `.999`, or none";
            return Err(at(span, message.to_owned()));
        }
        let is_local = |it: &Ref<Expr>| match &**it {
            Expr::Array { items, .. } => items.get(1).and_then(|it| quoted(it)) == Some("Local"),
            _ => false,
        };
        if name.starts_with("time.") && parameters.iter().any(is_local) {
            let message = "the time zone `Local` is another one on other machines: name one";
            return Err(at(span, message.to_owned()));
        }
        let known = self.n_arguments.get(&name).copied();
        if let Some(known) = known
            && !(known..=known + 1).contains(&parameters.len())
        {
            let n_given = parameters.len();
            return Err(at(
                span,
                format!("`{name}` does not take {n_given} arguments"),
            ));
        }
        let n_given = known.or_else(|| builtins::n_parameters(&name));
        let (given, out) = parameters.split_at(n_given.unwrap_or(usize::MAX).min(parameters.len()));
        for parameter in given {
            self.expression(parameter, uses)?;
        }
        for pattern in out {
            self.pattern(pattern, uses);
        }
        Ok(())
    }

    fn is_variable(&self, name: &str) -> bool {
        !matches!(name, "_" | "input" | "data")
            && !self.known.contains(name)
            && !builtins::is_allowed(name)
    }
}

/// The layouts with names of time zones.
const WITH_ZONES: [&str; 4] = ["RFC1123", "RFC822", "RFC850", "UnixDate"];

/// Other layouts with a name.
const NAMED: [&str; 6] = [
    "ANSIC",
    "RFC1123Z",
    "RFC3339",
    "RFC3339Nano",
    "RFC822Z",
    "RubyDate",
];

/// Returns whether `time.format` writes no name of a time zone.
fn has_own_layout(argument: &Expr) -> bool {
    let Expr::Array { items, .. } = argument else {
        // A list from elsewhere may have a layout.
        return matches!(
            argument,
            Expr::Number { .. } | Expr::Call { .. } | Expr::ArithExpr { .. }
        );
    };
    let Some(layout) = items.get(2) else {
        return true;
    };
    quoted(layout).is_some_and(|it| {
        let without = it.replace("05", "").replace("15", "");
        let is_other = without.contains(['5', 'p'])
            || [".9", ",0", ",9"].iter().any(|other| it.contains(other));
        let has_zone = WITH_ZONES.contains(&it) || it.contains("MST");
        !has_zone && (NAMED.contains(&it) || !is_other)
    })
}

/// Returns the first variable that needs a value and has none.
fn missing<'m>(uses: &Uses<'m>, bound: &Names<'m>) -> Option<&'m Span> {
    let given = |it: &Span| uses.gives.iter().any(|other| other.text() == it.text());
    let mut needs = uses.needs.iter().copied();
    needs.find(|it| !bound.contains(it.text()) && !given(it))
}

fn refuse_pattern(uses: &Uses) -> Result<(), Problem> {
    uses.pattern.map_or(Ok(()), |span| {
        let message = "an object pattern would match objects with more keys, unlike in OPA: take the whole object, and compare its fields";
        Err(at(span, message.to_owned()))
    })
}

fn unsafe_variable(variable: &Span) -> Problem {
    let name = variable.text();
    at(
        variable,
        format!(
            "`{name}` is unsafe: give it a value first, outside of `not`, for example with `some {name} in …`"
        ),
    )
}

pub(super) fn at(span: &Span, message: String) -> Problem {
    Problem::at((span.line, span.col), message)
}
