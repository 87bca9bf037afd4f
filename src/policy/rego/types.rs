//! Refuses type errors, as OPA does when it compiles a policy: `1 + "a"`, `count(1)`, `x.id` of a string.
//!
//! A value of an unknown type fits everywhere, so OPA refuses more policies than this module.

use std::collections::{BTreeMap, HashMap, HashSet};

use regorus::unstable::{
    ArithOp, AssignOp, BinOp, BoolOp, Expr, Literal, LiteralStmt, Module, Query, Ref, Rule,
    RuleBody, RuleHead, Span,
};

use super::checks::at;
use super::walk::{assignment, function_name, indices, quoted};
use super::{builtins, references};
use crate::policy::Problem;

#[derive(Debug, Clone, PartialEq)]
enum RegoType {
    Null,
    Boolean,
    Number,
    Text,
    /// The types of the first items, and that of all others, if there may be any.
    Array(Vec<RegoType>, Option<Box<RegoType>>),
    /// The fields, if all are known.
    Object(Option<BTreeMap<String, RegoType>>),
    Set(Box<RegoType>),
    /// One of these; any type if there are none.
    Any(Vec<RegoType>),
}

const ANY: RegoType = RegoType::Any(Vec::new());

/// Types above this size count as unknown: each rule could double the size of the type it uses.
const MAX_SIZE: usize = 1000;

impl RegoType {
    fn array_of(items: RegoType) -> Self {
        RegoType::Array(Vec::new(), Some(Box::new(items)))
    }

    fn set_of(items: RegoType) -> Self {
        RegoType::Set(Box::new(items))
    }

    /// Returns the type of an argument or result, by its letter in the table of [`builtins`].
    fn of_letter(letter: char) -> Self {
        let lists = |items: RegoType| {
            RegoType::Any(vec![
                RegoType::array_of(items.clone()),
                RegoType::set_of(items),
            ])
        };
        match letter {
            'n' => RegoType::Number,
            's' => RegoType::Text,
            'b' => RegoType::Boolean,
            'a' => RegoType::array_of(ANY),
            'o' => RegoType::Object(None),
            't' => RegoType::set_of(ANY),
            'l' => lists(ANY),
            'c' => RegoType::Any(vec![lists(ANY), RegoType::Object(None)]),
            'C' => RegoType::Any(vec![lists(ANY), RegoType::Object(None), RegoType::Text]),
            'L' => lists(RegoType::Text),
            'N' => lists(RegoType::Number),
            'P' => RegoType::Any(vec![RegoType::Text, lists(RegoType::Text)]),
            'S' => RegoType::array_of(RegoType::Text),
            'R' => RegoType::array_of(RegoType::Number),
            'D' => RegoType::Any(vec![RegoType::Null, RegoType::array_of(RegoType::Text)]),
            'T' => RegoType::set_of(RegoType::set_of(ANY)),
            'v' => RegoType::Any(vec![
                RegoType::Null,
                RegoType::Boolean,
                RegoType::Number,
                RegoType::Text,
            ]),
            'd' => RegoType::Any(vec![RegoType::Number, RegoType::array_of(ANY)]),
            _ => ANY,
        }
    }

    /// Returns whether a value may have both types.
    fn fits(&self, other: &RegoType) -> bool {
        match (self, other) {
            (RegoType::Any(of), other) | (other, RegoType::Any(of)) => {
                of.is_empty() || of.iter().any(|it| it.fits(other))
            }
            (RegoType::Array(..), RegoType::Array(..)) => {
                let items = |one: &RegoType, other: &RegoType| {
                    let RegoType::Array(first, _) = one else {
                        return true;
                    };
                    (0..).zip(first).all(|(index, item)| {
                        let found = other.item(Some(index));
                        found.is_some_and(|it| it.fits(item))
                    })
                };
                let rests = match (self, other) {
                    (RegoType::Array(_, Some(one)), RegoType::Array(_, Some(other))) => {
                        one.fits(other)
                    }
                    _ => true,
                };
                items(self, other) && items(other, self) && rests
            }
            (RegoType::Object(Some(one)), RegoType::Object(Some(other))) => {
                let is_in = |(key, value): (&String, &RegoType)| {
                    other.get(key).is_some_and(|it| it.fits(value))
                };
                one.len() == other.len() && one.iter().all(is_in)
            }
            (RegoType::Object(_), RegoType::Object(_)) => true,
            (RegoType::Set(one), RegoType::Set(other)) => one.fits(other),
            (one, other) => one == other,
        }
    }

    /// Returns the type of an item of an array, if it can have one. Without an index, of any.
    fn item(&self, index: Option<usize>) -> Option<RegoType> {
        let RegoType::Array(first, rest) = self else {
            return None;
        };
        let rest = || rest.as_deref().cloned();
        match index {
            Some(index) => first.get(index).cloned().or_else(rest),
            None => Some(one_of(first.iter().cloned().chain(rest()))),
        }
    }

    /// Returns the type of the value at a key; `None` if there cannot be one.
    fn at(&self, key: &Key) -> Option<RegoType> {
        match (self, key) {
            (RegoType::Any(of), _) if of.is_empty() => Some(ANY),
            (RegoType::Any(of), _) => {
                let found: Vec<RegoType> = of.iter().filter_map(|it| it.at(key)).collect();
                (!found.is_empty()).then(|| one_of(found))
            }
            (RegoType::Array(..), Key::Number(index)) => self.item(Some(*index)),
            (RegoType::Array(..), Key::Unknown) => self.item(None),
            (RegoType::Set(item), Key::Text(_)) => {
                item.fits(&RegoType::Text).then_some(RegoType::Text)
            }
            (RegoType::Set(item), Key::Number(_)) => {
                item.fits(&RegoType::Number).then_some(RegoType::Number)
            }
            (RegoType::Set(item), Key::Unknown) => Some((**item).clone()),
            (RegoType::Object(Some(fields)), Key::Text(key)) => fields.get(key).cloned(),
            (RegoType::Object(Some(fields)), Key::Unknown) => {
                Some(one_of(fields.values().cloned()))
            }
            (RegoType::Object(None), _) => Some(ANY),
            _ => None,
        }
    }

    /// Returns whether it may contain both sets and objects, which the interpreter orders differently from OPA.
    fn is_mixed(&self) -> bool {
        fn add(of: &RegoType, found: &mut [bool; 2]) {
            match of {
                RegoType::Set(_) => found[0] = true,
                RegoType::Object(_) => found[1] = true,
                RegoType::Array(first, rest) => {
                    for item in first.iter().chain(rest.as_deref()) {
                        add(item, found);
                    }
                }
                RegoType::Any(of) => of.iter().for_each(|it| add(it, found)),
                _ => {}
            }
        }
        let mut found = [false; 2];
        add(self, &mut found);
        found == [true, true]
    }

    /// Returns how many types it consists of.
    fn size(&self) -> usize {
        let all = |of: &[RegoType]| of.iter().map(RegoType::size).sum::<usize>();
        1 + match self {
            RegoType::Array(first, rest) => all(first) + rest.as_ref().map_or(0, |it| it.size()),
            RegoType::Object(Some(fields)) => fields.values().map(RegoType::size).sum(),
            RegoType::Set(item) => item.size(),
            RegoType::Any(of) => all(of),
            _ => 0,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            RegoType::Null => "`null`",
            RegoType::Boolean => "`true` or `false`",
            RegoType::Number => "a number",
            RegoType::Text => "a string",
            RegoType::Array(..) => "an array like this",
            RegoType::Object(_) => "an object like this",
            RegoType::Set(_) => "a set like this",
            RegoType::Any(_) => "values of these types",
        }
    }
}

enum Key {
    Text(String),
    Number(usize),
    Unknown,
}

fn one_of(types: impl IntoIterator<Item = RegoType>) -> RegoType {
    let mut all: Vec<RegoType> = Vec::new();
    for it in types {
        match it {
            RegoType::Any(of) if of.is_empty() => return ANY,
            RegoType::Any(of) => all.extend(of),
            other if !all.contains(&other) => all.push(other),
            _ => {}
        }
    }
    match all.len() {
        1 => all.remove(0),
        _ => RegoType::Any(all),
    }
}

/// Fails with the first type error of a module.
pub(super) fn check(module: &Module) -> Result<(), Problem> {
    let mut definitions: HashMap<&str, Vec<&Rule>> = HashMap::new();
    for rule in &module.policy {
        if let Some(name) = references::rule_name(rule) {
            definitions.entry(name).or_default().push(rule);
        }
    }
    let mut checker = Checker {
        definitions,
        names: references::names(module),
        types: HashMap::new(),
        problem: None,
    };
    for rule in &module.policy {
        checker.rule(rule);
        if let Some(problem) = checker.problem.take() {
            return Err(problem);
        }
    }
    Ok(())
}

/// The types of variables.
type Variables<'m> = HashMap<&'m str, RegoType>;

struct Checker<'m> {
    /// The rules and functions, by name.
    definitions: HashMap<&'m str, Vec<&'m Rule>>,
    /// The names of all rules and imports.
    names: HashSet<String>,
    /// The types of rules, and of the results of functions.
    types: HashMap<&'m str, RegoType>,
    problem: Option<Problem>,
}

impl<'m> Checker<'m> {
    fn wrong(&mut self, span: &Span, message: String) -> RegoType {
        self.problem.get_or_insert_with(|| at(span, message));
        ANY
    }

    /// Returns the type of a rule, or of the result of a function, in one of its definitions.
    fn rule(&mut self, rule: &'m Rule) -> RegoType {
        match rule {
            Rule::Default { value, .. } => self.expression(value, &Variables::new()),
            Rule::Spec { head, bodies, .. } => {
                let mut arguments = Variables::new();
                if let RuleHead::Func { args, .. } = head {
                    for argument in args {
                        bind(argument, None, &mut arguments);
                    }
                }
                if bodies.is_empty() {
                    return self.head(head, &arguments);
                }
                let types = bodies.iter().map(|body| self.body(head, body, &arguments));
                let types: Vec<RegoType> = types.collect();
                one_of(types)
            }
        }
    }

    fn body(&mut self, head: &'m RuleHead, body: &'m RuleBody, outer: &Variables<'m>) -> RegoType {
        let variables = self.query(&body.query, outer);
        match &body.assign {
            Some(assign) => self.expression(&assign.value, &variables),
            None if body.is_else => RegoType::Boolean,
            None => self.head(head, &variables),
        }
    }

    fn head(&mut self, head: &'m RuleHead, variables: &Variables<'m>) -> RegoType {
        let (RuleHead::Set { refr, .. }
        | RuleHead::Compr { refr, .. }
        | RuleHead::Func { refr, .. }) = head;
        for index in indices(refr) {
            self.expression(index, variables);
        }
        match head {
            RuleHead::Set { key, .. } => {
                let item = key.as_ref().map(|key| self.expression(key, variables));
                RegoType::set_of(item.unwrap_or(ANY))
            }
            RuleHead::Compr { assign, .. } | RuleHead::Func { assign, .. } => {
                let assign = assign.as_ref();
                assign.map_or(RegoType::Boolean, |it| {
                    self.expression(&it.value, variables)
                })
            }
        }
    }

    /// Returns the type of a rule, or of the result of a function.
    fn named(&mut self, name: &'m str) -> RegoType {
        if let Some(known) = self.types.get(name) {
            return known.clone();
        }
        let Some(definitions) = self.definitions.get(name).cloned() else {
            return ANY;
        };
        // Its own definition may refer to it.
        self.types.insert(name, ANY);
        let before = self.problem.take();
        let types: Vec<RegoType> = definitions
            .into_iter()
            .map(|rule| self.rule(rule))
            .collect();
        let found = match self.problem.take() {
            // It is reported with its own rule.
            Some(_) => ANY,
            None => one_of(types),
        };
        self.problem = before;
        self.types.insert(name, found.clone());
        found
    }

    /// Checks a query, and returns the types of its variables.
    fn query(&mut self, query: &'m Query, outer: &Variables<'m>) -> Variables<'m> {
        let mut variables = outer.clone();
        for statement in &query.stmts {
            for name in declared(&statement.literal) {
                variables.insert(name, ANY);
            }
        }
        // A statement may come before the one that gives its variable a value.
        let before = self.problem.clone();
        for statement in &query.stmts {
            self.statement(statement, &mut variables);
        }
        self.problem = before;
        for statement in &query.stmts {
            self.statement(statement, &mut variables);
        }
        variables
    }

    fn statement(&mut self, statement: &'m LiteralStmt, variables: &mut Variables<'m>) {
        // A replaced rule may have another type.
        let is_replaced = statement.with_mods.iter().any(|it| {
            let root = references::ground(&it.refr).0;
            root.first().is_none_or(|it| it != "input")
        });
        let before = self.problem.clone();
        match &statement.literal {
            Literal::SomeVars { .. } => {}
            Literal::SomeIn {
                key,
                value,
                collection,
                span,
            } => {
                let of = self.expression(collection, variables);
                let Some(item) = of.at(&Key::Unknown) else {
                    self.wrong(span, format!("there are no items in {}", of.name()));
                    return;
                };
                if let Some(key) = key {
                    self.order(span, &of);
                    let of = match of {
                        RegoType::Array(..) => Some(RegoType::Number),
                        RegoType::Set(ref item) => Some((**item).clone()),
                        _ => None,
                    };
                    bind(key, of, variables);
                }
                bind(value, Some(item), variables);
            }
            Literal::Expr { expr, .. } => match assignment(&statement.literal) {
                Some((left, right)) => {
                    let of = self.expression(right, variables);
                    bind(left, Some(of), variables);
                }
                None => _ = self.expression(expr, variables),
            },
            Literal::NotExpr { expr, .. } => _ = self.expression(expr, variables),
            // OPA doesn't look into the body.
            Literal::Every { domain, .. } => _ = self.expression(domain, variables),
        }
        if is_replaced {
            self.problem = before;
        }
    }

    fn expression(&mut self, expression: &'m Expr, variables: &Variables<'m>) -> RegoType {
        let found = self.exact(expression, variables);
        if found.size() > MAX_SIZE { ANY } else { found }
    }

    fn exact(&mut self, expression: &'m Expr, variables: &Variables<'m>) -> RegoType {
        match expression {
            Expr::String { .. } | Expr::RawString { .. } => RegoType::Text,
            Expr::Number { .. } => RegoType::Number,
            Expr::Bool { .. } => RegoType::Boolean,
            Expr::Null { .. } => RegoType::Null,
            Expr::Var { span, .. } => match variables.get(span.text()) {
                Some(known) => known.clone(),
                None if self.is_function(span.text()) => ANY,
                None => self.named(span.text()),
            },
            Expr::Array { items, .. } => {
                let items = items.iter().map(|item| self.expression(item, variables));
                RegoType::Array(items.collect(), None)
            }
            Expr::Set { items, .. } => {
                let items = items.iter().map(|it| self.expression(it, variables));
                let items: Vec<RegoType> = items.collect();
                RegoType::set_of(one_of(items))
            }
            Expr::Object { fields, .. } => {
                let mut known = Some(BTreeMap::new());
                let mut keys = Vec::new();
                for (_, key, value) in fields {
                    keys.push(self.expression(key, variables));
                    let of = self.expression(value, variables);
                    match (quoted(key).map(str::to_owned), &mut known) {
                        (Some(key), Some(known)) => _ = known.insert(key, of),
                        _ => known = None,
                    }
                }
                self.order(expression.span(), &RegoType::set_of(one_of(keys)));
                RegoType::Object(known)
            }
            Expr::ArrayCompr { term, query, .. } => {
                let inner = self.query(query, variables);
                RegoType::array_of(self.expression(term, &inner))
            }
            Expr::SetCompr { term, query, .. } => {
                let inner = self.query(query, variables);
                RegoType::set_of(self.expression(term, &inner))
            }
            Expr::ObjectCompr {
                key, value, query, ..
            } => {
                let inner = self.query(query, variables);
                let key = self.expression(key, &inner);
                self.order(expression.span(), &RegoType::set_of(key));
                self.expression(value, &inner);
                RegoType::Object(None)
            }
            Expr::Call { fcn, params, .. } => self.call(fcn, params, variables),
            Expr::RefDot {
                refr, field, span, ..
            } => {
                let of = self.expression(refr, variables);
                self.reference(span, &of, &Key::Text(field.0.text().to_owned()))
            }
            Expr::RefBrack {
                refr, index, span, ..
            } => {
                let of = self.expression(refr, variables);
                self.expression(index, variables);
                let key = match &**index {
                    Expr::Number { span, .. } => {
                        span.text().parse().map_or(Key::Unknown, Key::Number)
                    }
                    other => quoted(other).map_or(Key::Unknown, |it| Key::Text(it.to_owned())),
                };
                self.reference(span, &of, &key)
            }
            Expr::Membership {
                key,
                value,
                collection,
                ..
            } => {
                for part in key.iter().chain([value, collection]) {
                    self.expression(part, variables);
                }
                RegoType::Boolean
            }
            _ => self.operation(expression, variables),
        }
    }

    /// Returns the type of the result of an operator.
    fn operation(&mut self, expression: &'m Expr, variables: &Variables<'m>) -> RegoType {
        match expression {
            Expr::UnaryExpr { span, expr, .. } => {
                self.operand(span, "-", expr, &RegoType::Number, variables);
                RegoType::Number
            }
            Expr::ArithExpr {
                span, op, lhs, rhs, ..
            } => {
                let (operator, wanted) = match op {
                    ArithOp::Add => ("+", RegoType::Number),
                    ArithOp::Sub => (
                        "-",
                        RegoType::Any(vec![RegoType::Number, RegoType::set_of(ANY)]),
                    ),
                    ArithOp::Mul => ("*", RegoType::Number),
                    ArithOp::Div => ("/", RegoType::Number),
                    ArithOp::Mod => ("%", RegoType::Number),
                };
                self.operand(span, operator, lhs, &wanted, variables);
                self.operand(span, operator, rhs, &wanted, variables);
                wanted
            }
            Expr::BinExpr {
                span, op, lhs, rhs, ..
            } => {
                let operator = match op {
                    BinOp::Union => "|",
                    BinOp::Intersection => "&",
                };
                let wanted = RegoType::set_of(ANY);
                self.operand(span, operator, lhs, &wanted, variables);
                self.operand(span, operator, rhs, &wanted, variables);
                wanted
            }
            Expr::BoolExpr {
                op: BoolOp::Eq,
                span,
                lhs,
                rhs,
                ..
            }
            | Expr::AssignExpr {
                op: AssignOp::Eq,
                span,
                lhs,
                rhs,
                ..
            } => {
                let left = self.expression(lhs, variables);
                let right = self.expression(rhs, variables);
                if !left.fits(&right) {
                    let [left, right] = [left.name(), right.name()];
                    self.wrong(span, format!("{left} never equals {right}"));
                }
                RegoType::Boolean
            }
            Expr::BoolExpr { lhs, rhs, .. } | Expr::AssignExpr { lhs, rhs, .. } => {
                self.expression(lhs, variables);
                self.expression(rhs, variables);
                RegoType::Boolean
            }
            _ => ANY,
        }
    }

    fn operand(
        &mut self,
        span: &Span,
        operator: &str,
        operand: &'m Expr,
        wanted: &RegoType,
        variables: &Variables<'m>,
    ) {
        let of = self.expression(operand, variables);
        if !of.fits(wanted) {
            let message = format!("`{operator}` has no meaning for {}", of.name());
            self.wrong(span, message);
        }
    }

    /// Refuses to go through a set that has sets and objects.
    fn order(&mut self, span: &Span, of: &RegoType) {
        if matches!(of, RegoType::Set(item) if item.is_mixed()) {
            let message = "it has sets and objects, which would be in another order than in OPA: go through them with `some x in`";
            self.wrong(span, message.to_owned());
        }
    }

    /// Refuses to go through all that is in a value, if there is such a set.
    fn orders(&mut self, span: &Span, of: &RegoType) {
        self.order(span, of);
        match of {
            RegoType::Set(item) => self.orders(span, item),
            RegoType::Any(of) => of.iter().for_each(|it| self.orders(span, it)),
            RegoType::Array(first, rest) => {
                for item in first.iter().chain(rest.as_deref()) {
                    self.orders(span, item);
                }
            }
            RegoType::Object(Some(fields)) => fields.values().for_each(|it| self.orders(span, it)),
            _ => {}
        }
    }

    fn reference(&mut self, span: &Span, of: &RegoType, key: &Key) -> RegoType {
        if let Key::Unknown = key {
            self.order(span, of);
        }
        if let Some(found) = of.at(key) {
            return found;
        }
        let name = of.name();
        let message = match key {
            Key::Text(key) => format!("there is no `{key}` in {name}"),
            Key::Number(index) => format!("there is no item {index} in {name}"),
            Key::Unknown => format!("there are no items in {name}"),
        };
        self.wrong(span, message)
    }

    fn is_function(&self, name: &str) -> bool {
        let first = self.definitions.get(name).and_then(|it| it.first());
        matches!(
            first,
            Some(Rule::Spec {
                head: RuleHead::Func { .. },
                ..
            })
        )
    }

    /// Returns the type of an argument of a function.
    fn argument(&self, function: &str, index: usize) -> RegoType {
        let definitions = self.definitions.get(function).into_iter().flatten();
        one_of(definitions.filter_map(|rule| match rule {
            Rule::Spec {
                head: RuleHead::Func { args, .. },
                ..
            } => Some(args.get(index).map_or(ANY, |it| pattern_type(it))),
            _ => None,
        }))
    }

    fn call(
        &mut self,
        function: &'m Expr,
        parameters: &'m [Ref<Expr>],
        variables: &Variables<'m>,
    ) -> RegoType {
        let given = parameters.iter().map(|it| self.expression(it, variables));
        let given: Vec<RegoType> = given.collect();
        let name = function_name(function);
        let is_wrong = |given: &RegoType| format!("`{name}` does not take {}", given.name());
        if let Expr::Var { span, .. } = function
            && self.is_function(span.text())
        {
            for (index, given) in given.iter().enumerate() {
                if !self.argument(&name, index).fits(given) {
                    return self.wrong(parameters[index].span(), is_wrong(given));
                }
            }
            return self.named(span.text());
        }
        let root = name.split('.').next().unwrap_or_default();
        let signature = builtins::signature(&name);
        let Some((wanted, result)) = signature.filter(|_| !self.names.contains(root)) else {
            return ANY;
        };
        for ((given, letter), parameter) in given.iter().zip(wanted.chars()).zip(parameters) {
            if !given.fits(&RegoType::of_letter(letter)) {
                return self.wrong(parameter.span(), is_wrong(given));
            }
        }
        if let ("walk", Some(of)) = (&*name, given.first()) {
            self.orders(function.span(), of);
        }
        if parameters.len() > wanted.len() {
            return RegoType::Boolean;
        }
        result.chars().next().map_or(ANY, RegoType::of_letter)
    }
}

/// Returns the type of what may match a pattern.
fn pattern_type(pattern: &Expr) -> RegoType {
    match pattern {
        Expr::String { .. } | Expr::RawString { .. } => RegoType::Text,
        Expr::Number { .. } => RegoType::Number,
        Expr::Bool { .. } => RegoType::Boolean,
        Expr::Null { .. } => RegoType::Null,
        Expr::Array { items, .. } => {
            RegoType::Array(items.iter().map(|it| pattern_type(it)).collect(), None)
        }
        Expr::Object { .. } => RegoType::Object(None),
        _ => ANY,
    }
}

/// Returns the names that a statement declares.
fn declared(literal: &Literal) -> Vec<&str> {
    let mut names = Variables::new();
    match literal {
        Literal::SomeVars { vars, .. } => return vars.iter().map(Span::text).collect(),
        Literal::SomeIn { key, value, .. } => {
            for pattern in key.iter().chain([value]) {
                bind(pattern, None, &mut names);
            }
        }
        other => {
            if let Some((left, _)) = assignment(other) {
                bind(left, None, &mut names);
            }
        }
    }
    names.into_keys().collect()
}

/// Gives the variables of a pattern their types.
fn bind<'m>(pattern: &'m Expr, of: Option<RegoType>, variables: &mut Variables<'m>) {
    match pattern {
        Expr::Var { span, .. } => _ = variables.insert(span.text(), of.unwrap_or(ANY)),
        Expr::Array { items, .. } => {
            for (index, item) in items.iter().enumerate() {
                let of = of.as_ref().and_then(|it| it.item(Some(index)));
                bind(item, of, variables);
            }
        }
        Expr::Object { fields, .. } => {
            for (_, _, value) in fields {
                bind(value, None, variables);
            }
        }
        _ => {}
    }
}
