//! What the rules of a policy refer to: other rules, and functions of the language.
//!
//! The interpreter finds out about an unknown function, and overflows its stack on recursion, only when it
//! gets there. Here both are found before anything is evaluated.

use std::collections::HashSet;

use regorus::unstable::{
    AssignOp, Expr, Import, Literal, LiteralStmt, Module, Query, Ref, Rule, RuleHead, Span,
};

use super::builtins;
use super::walk::{assignment, comprehended, head_values, parts, quoted};

/// A path below `data`: of a rule, or as far as the one of a reference is known.
pub(super) type Path = Vec<String>;

/// A rule, or a part of one.
pub(super) struct RuleDefinition {
    pub(super) path: Path,
    /// Where it stands: the line and the column, from 1.
    pub(super) place: (u32, u32),
    pub(super) is_function: bool,
    pub(super) references: Vec<RuleReference>,
}

/// A name in a body that is not local.
pub(super) struct RuleReference {
    pub(super) target: RuleTarget,
    /// Where it stands: the line and the column, from 1.
    pub(super) place: (u32, u32),
    /// With how many arguments it is called, if it is.
    pub(super) n_arguments: Option<usize>,
    /// Whether it stands where a variable can be given a value: in brackets, or beside `=`.
    pub(super) may_bind: bool,
}

pub(super) enum RuleTarget {
    /// Something below `data`: what is at, above or below this path.
    Data(Path),
    /// A name that is neither below `data` or `input` nor local; a function of the language, if anything.
    Function(String),
}

pub(super) fn package(module: &Module) -> Path {
    ground(&module.package.refr).0
}

/// Returns what the rules of a module define, in its order. `among` are all modules that are loaded: rules of the
/// same package need no path.
pub(super) fn definitions(module: &Module, among: &[Ref<Module>]) -> Vec<RuleDefinition> {
    let package = package(module);
    let mut imports = Vec::new();
    for import in &module.imports {
        let path = ground(&import.refr).0;
        if let Some(name) = import_name(import, &path) {
            imports.push((name, path));
        }
    }
    let mut own = HashSet::new();
    let same = among.iter().filter(|it| self::package(it) == package);
    for rule in same.flat_map(|module| &module.policy) {
        own.extend(ground(head_of(rule)).0.first().cloned());
    }
    let rules = module.policy.iter();
    rules
        .map(|rule| {
            let mut reader = Reader {
                package: &package,
                imports: &imports,
                own: &own,
                locals: Vec::new(),
                references: Vec::new(),
                may_bind: false,
            };
            let is_function = reader.rule(rule);
            let path = [&package[..], &ground(head_of(rule)).0].concat();
            RuleDefinition {
                path,
                place: (rule.span().line, rule.span().col),
                is_function,
                references: reader.references,
            }
        })
        .collect()
}

/// Returns the names that stand for something of a module or elsewhere: of its rules and imports.
pub(super) fn names(module: &Module) -> HashSet<String> {
    let rules = module.policy.iter();
    let rules = rules.filter_map(|rule| ground(head_of(rule)).0.first().cloned());
    let imports = module.imports.iter();
    let imports = imports.filter_map(|it| import_name(it, &ground(&it.refr).0));
    rules.chain(imports).collect()
}

/// Returns the name of what an import of this path brings in.
pub(super) fn import_name(import: &Import, path: &[String]) -> Option<String> {
    let name = import.r#as.as_ref().map(|name| name.text().to_owned());
    name.or_else(|| path.last().cloned())
}

/// Returns the name of a rule or function, unless its head has a path.
pub(super) fn rule_name(rule: &Rule) -> Option<&str> {
    match head_of(rule) {
        Expr::Var { span, .. } => Some(span.text()),
        _ => None,
    }
}

fn head_of(rule: &Rule) -> &Expr {
    match rule {
        Rule::Default { refr, .. }
        | Rule::Spec {
            head:
                RuleHead::Compr { refr, .. } | RuleHead::Set { refr, .. } | RuleHead::Func { refr, .. },
            ..
        } => refr,
    }
}

/// Returns the known part of a reference from its root on, and the indices behind it.
pub(super) fn ground(expression: &Expr) -> (Path, Vec<&Expr>) {
    let mut steps = Vec::new();
    let mut at = expression;
    let root = loop {
        match at {
            Expr::RefDot { refr, field, .. } => {
                steps.push(Ok(field.0.text().to_owned()));
                at = refr;
            }
            Expr::RefBrack { refr, index, .. } => {
                steps.push(quoted(index).map(str::to_owned).ok_or(&**index));
                at = refr;
            }
            root => break root,
        }
    };
    let mut path = Vec::new();
    let mut indices = Vec::new();
    match (root, quoted(root)) {
        (Expr::Var { span, .. }, _) => path.push(span.text().to_owned()),
        (_, Some(text)) => path.push(text.to_owned()),
        (other, None) => indices.push(other),
    }
    for step in steps.into_iter().rev() {
        match step {
            Ok(field) if indices.is_empty() => path.push(field),
            Ok(_) => {}
            Err(index) => indices.push(index),
        }
    }
    (path, indices)
}

struct Reader<'m> {
    package: &'m [String],
    imports: &'m [(String, Path)],
    /// The first names of the rules of the module.
    own: &'m HashSet<String>,
    /// The names that are declared in each of the bodies around.
    locals: Vec<HashSet<String>>,
    references: Vec<RuleReference>,
    /// Whether what is read stands where a variable can be given a value.
    may_bind: bool,
}

impl Reader<'_> {
    fn rule(&mut self, rule: &Rule) -> bool {
        match rule {
            Rule::Default { args, value, .. } => {
                self.declare(args);
                self.expression(value);
                !args.is_empty()
            }
            Rule::Spec { head, bodies, .. } => {
                let is_function = matches!(head, RuleHead::Func { .. });
                if let RuleHead::Func { args, .. } = head {
                    self.declare(args);
                }
                // What a body declares may stand in the head and in the value of the body.
                for body in bodies {
                    self.scope(&body.query);
                    self.query(&body.query);
                    if let Some(assign) = &body.assign {
                        self.expression(&assign.value);
                    }
                    if !body.is_else {
                        self.head_values(head);
                    }
                    self.locals.pop();
                }
                if bodies.is_empty() {
                    self.head_values(head);
                }
                is_function
            }
        }
    }

    fn head_values(&mut self, head: &RuleHead) {
        for value in head_values(head) {
            self.expression(value);
        }
    }

    fn declare(&mut self, arguments: &[Ref<Expr>]) {
        let mut names = HashSet::new();
        for argument in arguments {
            pattern_names(argument, &mut names);
        }
        self.locals.push(names);
    }

    fn scope(&mut self, query: &Query) {
        let mut names = HashSet::new();
        for statement in &query.stmts {
            declared(&statement.literal, &mut names);
        }
        self.locals.push(names);
    }

    fn query(&mut self, query: &Query) {
        for statement in &query.stmts {
            self.statement(statement);
        }
    }

    fn inner(&mut self, query: &Query, terms: &[&Expr], names: impl IntoIterator<Item = String>) {
        self.scope(query);
        self.locals
            .last_mut()
            .expect("it was just pushed")
            .extend(names);
        self.query(query);
        for term in terms {
            self.expression(term);
        }
        self.locals.pop();
    }

    fn statement(&mut self, statement: &LiteralStmt) {
        match &statement.literal {
            Literal::SomeVars { .. } => {}
            Literal::SomeIn {
                key,
                value,
                collection,
                ..
            } => {
                self.binding(key.iter().chain([value]).map(|name| &**name));
                self.expression(collection);
            }
            Literal::Expr { expr, .. } | Literal::NotExpr { expr, .. } => self.expression(expr),
            Literal::Every {
                key,
                value,
                domain,
                query,
                ..
            } => {
                self.expression(domain);
                let names = key.iter().chain([value]);
                self.inner(query, &[], names.map(|name| name.text().to_owned()));
            }
        }
        for replaced in &statement.with_mods {
            // What is replaced is not used; what it is replaced by may be a function.
            self.replacement(&replaced.r#as);
        }
    }

    fn expression(&mut self, expression: &Expr) {
        if let Some(query) = comprehended(expression) {
            return self.inner(query, &parts(expression), []);
        }
        match expression {
            Expr::Var { .. } | Expr::RefDot { .. } | Expr::RefBrack { .. } => {
                self.reference(expression, None);
            }
            Expr::Call { fcn, params, .. } => {
                self.reference(fcn, Some(params.len()));
                let name = ground(fcn).0.join(".");
                let n_parameters = builtins::n_parameters(&name).unwrap_or(0);
                let (given, others) = params.split_at(params.len().min(n_parameters));
                for parameter in given {
                    self.expression(parameter);
                }
                self.binding(others.iter().map(|other| &**other));
            }
            Expr::AssignExpr {
                op: AssignOp::Eq, ..
            } => self.binding(parts(expression)),
            _ => {
                for part in parts(expression) {
                    self.expression(part);
                }
            }
        }
    }

    /// Reads expressions that may give variables a value.
    fn binding<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr>) {
        let before = std::mem::replace(&mut self.may_bind, true);
        for expression in expressions {
            self.expression(expression);
        }
        self.may_bind = before;
    }

    /// Reads what replaces something: a value, or a function.
    fn replacement(&mut self, expression: &Expr) {
        let (path, indices) = ground(expression);
        let name = path.join(".");
        // A local variable of this name would not keep the interpreter from calling the function.
        if indices.is_empty() && builtins::refused(&name).is_some() {
            self.add(expression, RuleTarget::Function(name), None);
        } else {
            self.expression(expression);
        }
    }

    fn reference(&mut self, expression: &Expr, n_arguments: Option<usize>) {
        let (mut path, indices) = ground(expression);
        self.binding(indices);
        let Some(root) = path.first() else {
            return;
        };
        // A call names a function, whatever the variables around are called, and the functions of the
        // language are called through other things of the same name.
        let is_call = n_arguments.is_some();
        let name = path.join(".");
        if is_call && builtins::refused(&name).is_some() {
            self.add(expression, RuleTarget::Function(name), n_arguments);
            return;
        }
        let is_local = root == "input" || self.locals.iter().any(|names| names.contains(root));
        if is_local && !is_call {
            return;
        }
        let imported = self.imports.iter().find(|(name, _)| name == root);
        let target = if self.own.contains(root) {
            RuleTarget::Data([self.package, &path].concat())
        } else if root == "data" {
            path.remove(0);
            RuleTarget::Data(path)
        } else if let Some((_, target)) = imported {
            let full: Path = [target, &path[1..]].concat();
            match full.split_first() {
                Some((root, rest)) if root == "data" => RuleTarget::Data(rest.to_vec()),
                _ if is_call => RuleTarget::Function(name),
                _ => return, // of the input, or of the language: `rego.v1`
            }
        } else {
            RuleTarget::Function(name)
        };
        self.add(expression, target, n_arguments);
    }

    fn add(&mut self, expression: &Expr, target: RuleTarget, n_arguments: Option<usize>) {
        self.references.push(RuleReference {
            target,
            place: first_place(expression, expression.span()),
            n_arguments,
            may_bind: self.may_bind,
        });
    }
}

/// Returns where a reference begins: the span of `a.b` is that of the dot.
pub(super) fn first_place(mut expression: &Expr, span: &Span) -> (u32, u32) {
    let mut place = (span.line, span.col);
    while let Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } = expression {
        expression = refr;
        place = (expression.span().line, expression.span().col);
    }
    place
}

pub(super) fn declared(literal: &Literal, names: &mut HashSet<String>) {
    match literal {
        Literal::SomeVars { vars, .. } => {
            names.extend(vars.iter().map(|name| name.text().to_owned()));
        }
        Literal::SomeIn { key, value, .. } => {
            if let Some(key) = key {
                pattern_names(key, names);
            }
            pattern_names(value, names);
        }
        other => {
            if let Some((left, _)) = assignment(other) {
                pattern_names(left, names);
            }
        }
    }
}

/// Collects the names in a pattern: `[a, {"b": c}]`.
pub(super) fn pattern_names(pattern: &Expr, names: &mut HashSet<String>) {
    match pattern {
        Expr::Var { span, .. } => {
            names.insert(span.text().to_owned());
        }
        Expr::Array { items, .. } | Expr::Set { items, .. } => {
            for item in items {
                pattern_names(item, names);
            }
        }
        Expr::Object { fields, .. } => {
            for (_, _, value) in fields {
                pattern_names(value, names);
            }
        }
        _ => {}
    }
}
