//! Makes policies look up the stacks that they compare with something, instead of going through all of them.
//!
//! In a body with `some s in input.stacks` and `label in s.labels`, stacks without the label add nothing. So the text
//! that is evaluated is `s := orch.stacks_with(["item", "labels"], label)[_]` and `label in s.labels`. The other
//! statements stay as they are, so only what is looked up must have the same value before the stack is known: it is made
//! of `input`, rules, literals and functions of the language.

use std::collections::HashSet;
use std::ops::Range;

use regorus::unstable::{
    AssignOp, BoolOp, Expr, Literal, LiteralStmt, Module, Query, Rule, RuleHead,
};

use super::builtins;
use super::edits::{Edit, Edited, Piece, place, range, with_quotes};
use super::input_stacks::{FUNCTION, NUMBERS, VOLATILE};
use super::references::{declared, names, pattern_names};
use super::walk::{self, Walker, assignment, function_name, parts};

/// Returns the text of a module that looks stacks up, or `None` if it looks for none.
pub(super) fn edited(module: &Module, text: &str) -> Option<Edited> {
    let mut queries = Queries::default();
    queries.module(module);
    // A replaced input has other stacks, and a print of each stack is not one of each that is found.
    if queries.replaces_or_prints {
        return None;
    }
    // A variable may hide a rule.
    let mut names = names(module);
    names.retain(|name| !queries.declared.contains(name));
    let reader = Reader { text, names };
    let mut edits = Vec::new();
    for (query, is_body) in queries.all {
        edits.extend(reader.edits(query));
        edits.extend(reader.numbered(query, is_body, &queries.declared));
    }
    Edited::new(text, edits)
}

/// All queries of a module.
#[derive(Default)]
struct Queries<'m> {
    /// Each with whether it is the body of a rule.
    all: Vec<(&'m Query, bool)>,
    /// How many queries there are around what is read.
    depth: usize,
    /// The variables that they, and the arguments of functions, declare.
    declared: HashSet<String>,
    /// Whether there is a `with`, or a call of `print` or `trace`.
    replaces_or_prints: bool,
}

impl<'m> Walker<'m> for Queries<'m> {
    fn rule(&mut self, rule: &'m Rule) {
        if let Rule::Spec {
            head: RuleHead::Func { args, .. },
            ..
        } = rule
        {
            for argument in args {
                pattern_names(argument, &mut self.declared);
            }
        }
        walk::rule(self, rule);
    }

    fn query(&mut self, query: &'m Query) {
        self.all.push((query, self.depth == 0));
        self.depth += 1;
        walk::query(self, query);
        self.depth -= 1;
    }

    fn statement(&mut self, statement: &'m LiteralStmt) {
        self.replaces_or_prints |= !statement.with_mods.is_empty();
        declared(&statement.literal, &mut self.declared);
        if let Literal::Every { key, value, .. } = &statement.literal {
            let names = key.iter().chain([value]);
            self.declared.extend(names.map(|it| it.text().to_owned()));
        }
        walk::statement(self, statement);
    }

    fn expression(&mut self, expression: &'m Expr) {
        if let Expr::Call { fcn, .. } = expression {
            self.replaces_or_prints |= matches!(&*function_name(fcn), "print" | "trace");
        }
        walk::expression(self, expression);
    }
}

struct Reader<'t> {
    text: &'t str,
    /// The names of rules and imports that no variable hides.
    names: HashSet<String>,
}

/// What is looked up: the text of the words for it, and where the text of the value is.
struct Found {
    words: Vec<Piece>,
    wanted: Range<usize>,
}

impl Found {
    /// Returns the text that gives a name what is found, by a function.
    fn call(self, name: &str, function: &str) -> Vec<Piece> {
        let mut by = vec![Piece::Own(format!("{name} := {function}(["))];
        by.extend(self.words);
        by.push(Piece::Own("], ".to_owned()));
        by.push(Piece::From(self.wanted));
        by.push(Piece::Own(")[_]".to_owned()));
        by
    }
}

/// How the text names a stack.
#[derive(Clone, Copy)]
enum Stack<'e> {
    Named(&'e str),
    /// `input.stacks[i]`
    At(&'e str),
}

impl Stack<'_> {
    fn is(self, expression: &Expr) -> bool {
        match self {
            Stack::Named(name) => variable(expression) == Some(name),
            Stack::At(name) => stack_number(expression) == Some(name),
        }
    }
}

impl Reader<'_> {
    fn edits(&self, query: &Query) -> Vec<Edit> {
        let statements = query.stmts.iter().enumerate();
        let edits = statements.filter_map(|(position, statement)| {
            let name = taken(statement)?;
            // Before it, the name may mean something else.
            let others = &query.stmts[position + 1..];
            let found = self.first_of(others, Stack::Named(name), query)?;
            let replaced = with_quotes(self.text, range(&statement.span));
            Some(Edit {
                replaced,
                by: found.call(name, FUNCTION),
            })
        });
        edits.collect()
    }

    /// Returns the edits for stacks with a variable as their number: `input.stacks[i]`.
    fn numbered(&self, query: &Query, is_body: bool, declared: &HashSet<String>) -> Vec<Edit> {
        let mut edits = Vec::new();
        let mut done = HashSet::new();
        for (position, statement) in query.stmts.iter().enumerate() {
            let Some(number) = number_in(statement).filter(|number| done.insert(*number)) else {
                continue;
            };
            let before = &query.stmts[..position];
            let declaration = before.iter().find(|it| declares(it, number));
            // Without a declaration, it might be the variable of a query around this one, a rule or an argument.
            let is_own = is_body && !declared.contains(number) && !self.is_known(number);
            if before.iter().any(|it| mentions(it, number)) || declaration.is_none() && !is_own {
                continue;
            }
            let start = with_quotes(self.text, range(&statement.span)).start;
            let has_braces = position > 0 || start > range(&query.span).start;
            let of = match numbered_stack(statement) {
                Some((name, _)) => Stack::Named(name),
                None => Stack::At(number),
            };
            let others = &query.stmts[position..];
            let found = self
                .first_of(others, of, query)
                .or_else(|| self.first_of(others, Stack::At(number), query));
            let Some(found) = found.filter(|_| has_braces) else {
                continue;
            };
            if let Some(declaration) = declaration {
                let replaced = range(&declaration.span);
                edits.push(Edit::own(replaced, "true".to_owned()));
            }
            let mut by = found.call(number, NUMBERS);
            by.push(Piece::Own("; ".to_owned()));
            let replaced = start..start;
            edits.push(Edit { replaced, by });
        }
        edits
    }

    fn first_of(&self, statements: &[LiteralStmt], stack: Stack, query: &Query) -> Option<Found> {
        let mut found = statements.iter();
        found.find_map(|it| self.looked_up(it, stack, query))
    }

    /// Returns what a statement looks for in a stack.
    fn looked_up(&self, statement: &LiteralStmt, stack: Stack, query: &Query) -> Option<Found> {
        let Literal::Expr { expr, .. } = &statement.literal else {
            return None;
        };
        match &**expr {
            Expr::Membership {
                key: None,
                value,
                collection,
                ..
            } => self.item(collection, value, stack, query),
            Expr::BoolExpr {
                op: BoolOp::Eq,
                lhs,
                rhs,
                ..
            }
            | Expr::AssignExpr {
                op: AssignOp::Eq,
                lhs,
                rhs,
                ..
            } => [(lhs, rhs), (rhs, lhs)]
                .into_iter()
                .find_map(|(own, wanted)| {
                    if let Some(field) = field(own, stack) {
                        let words = vec![Piece::Own(format!("\"value\", \"{field}\""))];
                        let wanted = self.wanted(wanted, query)?;
                        return Some(Found { words, wanted });
                    }
                    if let Some(field) = variable(own).and_then(|it| each_of(it, stack, query)) {
                        let words = vec![Piece::Own(format!("\"item\", \"{field}\""))];
                        let wanted = self.wanted(wanted, query)?;
                        return Some(Found { words, wanted });
                    }
                    self.item(each(own)?, wanted, stack, query)
                }),
            _ => None,
        }
    }

    /// Returns what is looked for among the items of a collection: those of a field, or parts of these.
    fn item(&self, collection: &Expr, wanted: &Expr, stack: Stack, query: &Query) -> Option<Found> {
        let wanted = self.wanted(wanted, query)?;
        if let Some(field) = field(collection, stack) {
            let words = vec![Piece::Own(format!("\"item\", \"{field}\""))];
            return Some(Found { words, wanted });
        }
        // `split(trim_prefix(label, "prefix"), ",")`, with or without a prefix.
        let parts = assigned(variable(collection)?, query)?;
        let [of, separator] = self.arguments(parts, "split")?;
        let (of, prefix) = match self.arguments(of, "trim_prefix") {
            Some([of, prefix]) => (of, Some(prefix)),
            None => (of, None),
        };
        let field = each_of(variable(of)?, stack, query)?;
        let mut words = vec![Piece::Own(format!("\"part\", \"{field}\", "))];
        words.push(match prefix {
            Some(prefix) => self.literal(prefix)?,
            None => Piece::Own("\"\"".to_owned()),
        });
        words.push(Piece::Own(", ".to_owned()));
        words.push(self.literal(separator)?);
        Some(Found { words, wanted })
    }

    /// Returns the two arguments of a call of this function of the language.
    fn arguments<'e>(&self, call: &'e Expr, function: &str) -> Option<[&'e Expr; 2]> {
        let Expr::Call { fcn, params, .. } = call else {
            return None;
        };
        let is_it = variable(fcn) == Some(function) && !self.names.contains(function);
        match &params[..] {
            [one, other] if is_it => Some([one, other]),
            _ => None,
        }
    }

    /// Returns the text of a literal that is not empty.
    fn literal(&self, expression: &Expr) -> Option<Piece> {
        let (Expr::String { value, span, .. } | Expr::RawString { value, span, .. }) = expression
        else {
            return None;
        };
        let is_empty = value.as_string().is_ok_and(|text| text.is_empty());
        (!is_empty).then(|| Piece::From(with_quotes(self.text, range(span))))
    }

    /// Returns where the text of an expression is whose value doesn't depend on a stack. A variable stands for what it
    /// is given.
    fn wanted(&self, expression: &Expr, query: &Query) -> Option<Range<usize>> {
        let given = variable(expression).filter(|name| !self.is_known(name));
        let expression = match given {
            Some(name) => assigned(name, query)?,
            None => expression,
        };
        self.is_known_before(expression)
            .then(|| place(self.text, expression))
    }

    fn is_known(&self, name: &str) -> bool {
        name == "input" || self.names.contains(name)
    }

    fn is_known_before(&self, expression: &Expr) -> bool {
        let are_known = || {
            parts(expression)
                .into_iter()
                .all(|it| self.is_known_before(it))
        };
        match expression {
            Expr::String { .. } | Expr::RawString { .. } | Expr::Number { .. } => true,
            Expr::Var { span, .. } => self.is_known(span.text()),
            Expr::RefDot { .. } | Expr::RefBrack { .. } | Expr::Array { .. } => are_known(),
            Expr::Call { fcn, .. } => {
                let name = function_name(fcn);
                let root = name.split('.').next().unwrap_or_default();
                builtins::is_allowed(&name) && !self.names.contains(root) && are_known()
            }
            _ => false,
        }
    }
}

/// Returns the name that a statement gives each stack.
fn taken(statement: &LiteralStmt) -> Option<&str> {
    let (name, collection) = match &statement.literal {
        Literal::SomeIn {
            key: None,
            value,
            collection,
            ..
        } => (variable(value)?, &**collection),
        other => {
            let (name, each_of) = assignment(other)?;
            (variable(name)?, each(each_of)?)
        }
    };
    (is_stacks(collection) && name != "_").then_some(name)
}

fn is_stacks(expression: &Expr) -> bool {
    field(expression, Stack::Named("input")) == Some("stacks")
}

/// Returns the variable of `input.stacks[i]`.
fn stack_number(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::RefBrack { refr, index, .. } if is_stacks(refr) => {
            variable(index).filter(|name| *name != "_")
        }
        _ => None,
    }
}

/// Returns the name and the number of a stack in `s := input.stacks[i]`.
fn numbered_stack(statement: &LiteralStmt) -> Option<(&str, &str)> {
    let (name, stack) = assignment(&statement.literal)?;
    Some((variable(name)?, stack_number(stack)?))
}

/// Returns the variable of the number of a stack, if a statement goes through the stacks before anything else.
fn number_in(statement: &LiteralStmt) -> Option<&str> {
    if let Some((_, given)) = assignment(&statement.literal) {
        return stack_number(given).or_else(|| number_of_field(given));
    }
    match &statement.literal {
        Literal::SomeIn {
            key: None,
            collection,
            ..
        } => number_of_field(collection),
        Literal::Expr { expr, .. } => match &**expr {
            Expr::BoolExpr { lhs, rhs, .. } | Expr::AssignExpr { lhs, rhs, .. } => {
                number_of_field(lhs).or_else(|| number_of_field(rhs))
            }
            Expr::Membership {
                key: None,
                collection,
                ..
            } => number_of_field(collection),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the variable of `input.stacks[i].field`, with or without `[_]` behind it.
fn number_of_field(expression: &Expr) -> Option<&str> {
    match each(expression).unwrap_or(expression) {
        Expr::RefDot { refr, .. } => stack_number(refr),
        _ => None,
    }
}

/// Returns whether a statement declares a variable, and nothing else.
fn declares(statement: &LiteralStmt, name: &str) -> bool {
    match &statement.literal {
        Literal::SomeVars { vars, .. } => vars.len() == 1 && vars[0].text() == name,
        _ => false,
    }
}

/// Returns whether a variable is in a statement.
fn mentions(statement: &LiteralStmt, name: &str) -> bool {
    struct Mentions<'n>(&'n str, bool);
    impl<'m> Walker<'m> for Mentions<'_> {
        fn expression(&mut self, expression: &'m Expr) {
            self.1 |= variable(expression) == Some(self.0);
            walk::expression(self, expression);
        }
    }
    let mut found = Mentions(name, false);
    found.statement(statement);
    if let Literal::SomeIn { key, value, .. } = &statement.literal {
        for pattern in key.iter().chain([value]) {
            found.expression(pattern);
        }
    }
    found.1
}

fn variable(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Var { span, .. } => Some(span.text()),
        _ => None,
    }
}

/// Returns the collection of `collection[_]`.
fn each(expression: &Expr) -> Option<&Expr> {
    match expression {
        Expr::RefBrack { refr, index, .. } if variable(index) == Some("_") => Some(refr),
        _ => None,
    }
}

/// Returns the field of a stack, unless it changes during a run.
fn field<'e>(expression: &'e Expr, stack: Stack) -> Option<&'e str> {
    match expression {
        Expr::RefDot { refr, field, .. } if stack.is(refr) => {
            Some(field.0.text()).filter(|field| !VOLATILE.contains(field))
        }
        _ => None,
    }
}

/// Returns the field of a stack that a variable goes through.
fn each_of<'q>(name: &str, stack: Stack, query: &'q Query) -> Option<&'q str> {
    let mut taken = query.stmts.iter().filter_map(|it| match &it.literal {
        Literal::SomeIn {
            key: None,
            value,
            collection,
            ..
        } if variable(value) == Some(name) => Some(&**collection),
        _ => None,
    });
    let collection = taken.next();
    let collection = collection.or_else(|| each(assigned(name, query)?))?;
    field(collection, stack)
}

/// Returns what a statement of a query gives a variable by `:=`.
fn assigned<'q>(name: &str, query: &'q Query) -> Option<&'q Expr> {
    let mut given = query.stmts.iter().filter_map(|it| assignment(&it.literal));
    let (_, value) = given.find(|(left, _)| variable(left) == Some(name))?;
    Some(value)
}
