//! Refuses mistakes that OPA finds when it compiles a policy, and the interpreter late or never: rules that contradict
//! each other, reserved names, duplicate imports, unused variables.

use std::collections::{BTreeMap, HashSet};

use regorus::unstable::{Expr, Literal, LiteralStmt, Module, Query, Rule, RuleHead, Span};

use super::builtins;
use super::checks::at;
use super::references::{self, declared, ground, import_name};
use super::walk::{self, Walker, head_values, indices, quoted};
use crate::policy::Problem;

/// What comes after `import future.keywords.`.
const KEYWORDS: [&str; 7] = ["and", "contains", "every", "if", "in", "not", "or"];

/// What a rule defines at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Value,
    Set,
    Function,
    /// Something below its path, by keys that are not known.
    Below,
}

/// Fails with the first problem of a module.
pub(super) fn check(module: &Module) -> Result<(), Problem> {
    imports(module)?;
    rules(module)?;
    let mut variables = Variables {
        names: references::names(module),
        problem: None,
        used: HashSet::new(),
    };
    variables.module(module);
    variables.problem.map_or(Ok(()), Err)
}

fn imports(module: &Module) -> Result<(), Problem> {
    let mut names = HashSet::new();
    for import in &module.imports {
        let path = ground(&import.refr).0;
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        match words[..] {
            ["rego", ..] | ["future", "keywords"] => {}
            ["future", "keywords", keyword] if KEYWORDS.contains(&keyword) => {}
            ["future", ..] => {
                let message = format!("`{}` is no import", path.join("."));
                return Err(at(&import.span, message));
            }
            _ => {
                if let Some(name) = import_name(import, &path)
                    && !names.insert(name.clone())
                {
                    return Err(at(&import.span, format!("`{name}` is imported twice")));
                }
            }
        }
    }
    Ok(())
}

fn rules(module: &Module) -> Result<(), Problem> {
    let mut kinds: BTreeMap<Vec<String>, (Kind, &Span)> = BTreeMap::new();
    let mut defaults = HashSet::new();
    for rule in &module.policy {
        let (refr, kind) = match &**rule {
            Rule::Default { refr, value, .. } => {
                let path = ground(refr).0;
                if let Some(span) = not_constant(value) {
                    let message = "the value of a default must be the same for every input";
                    return Err(at(span, message.to_owned()));
                }
                if !defaults.insert(path.clone()) {
                    let message = format!("`{}` has another default", path.join("."));
                    return Err(at(rule.span(), message));
                }
                continue;
            }
            Rule::Spec { head, .. } => match head {
                RuleHead::Compr { refr, .. } if !indices(refr).into_iter().all(is_text) => {
                    (refr, Kind::Below)
                }
                RuleHead::Compr { refr, .. } => (refr, Kind::Value),
                RuleHead::Set { span, .. } if !has_contains(module) && !has_brackets(span) => {
                    let message = "`contains` needs `import rego.v1`, and `if` before each body";
                    return Err(at(span, message.to_owned()));
                }
                RuleHead::Set { refr, key, .. } => {
                    let n_keys = indices(refr).into_iter().filter(|it| !is_text(it)).count();
                    let is_below = n_keys > usize::from(key.is_none());
                    (refr, if is_below { Kind::Below } else { Kind::Set })
                }
                RuleHead::Func { refr, .. } => (refr, Kind::Function),
            },
        };
        let path = ground(refr).0;
        let name = path.join(".");
        if let Some(first @ ("data" | "input")) = path.first().map(String::as_str) {
            return Err(at(rule.span(), format!("no rule may be called `{first}`")));
        }
        let (other, _) = kinds.entry(path).or_insert((kind, rule.span()));
        if *other != kind {
            let message = format!("`{name}` conflicts with another rule of this name");
            return Err(at(rule.span(), message));
        }
    }
    for (path, (kind, span)) in &kinds {
        for length in 1..path.len() {
            let is_wrong = match kinds.get(&path[..length]) {
                Some((Kind::Below, _)) => *kind == Kind::Value,
                above => above.is_some(),
            };
            if is_wrong {
                let [name, above] = [&path[..], &path[..length]].map(|it| it.join("."));
                let message = format!("the rules `{above}` and `{name}` conflict");
                return Err(at(span, message));
            }
        }
    }
    Ok(())
}

fn has_contains(module: &Module) -> bool {
    let mut imports = module.imports.iter();
    module.rego_v1
        || imports.any(|it| {
            let path = ground(&it.refr).0.join(".");
            ["future.keywords", "future.keywords.contains", "rego.v1"].contains(&&*path)
        })
}

/// Returns whether a head is `p[x]`, and not `p contains x`.
fn has_brackets(head: &Span) -> bool {
    let name = head.text().split_whitespace().next();
    name.is_some_and(|name| name.contains('['))
}

fn is_text(expression: &Expr) -> bool {
    quoted(expression).is_some()
}

/// Returns what in an expression depends on something.
fn not_constant(expression: &Expr) -> Option<&Span> {
    match expression {
        Expr::Var { .. } | Expr::RefDot { .. } | Expr::RefBrack { .. } | Expr::Call { .. } => {
            Some(expression.span())
        }
        // What is computed in it has variables of its own.
        Expr::ArrayCompr { .. } | Expr::SetCompr { .. } | Expr::ObjectCompr { .. } => None,
        _ => walk::parts(expression).into_iter().find_map(not_constant),
    }
}

struct Variables<'m> {
    /// The names of rules and imports.
    names: HashSet<String>,
    problem: Option<Problem>,
    /// The names that a rule uses.
    used: HashSet<&'m str>,
}

impl Variables<'_> {
    fn wrong(&mut self, span: &Span, message: String) {
        self.problem.get_or_insert_with(|| at(span, message));
    }
}

impl<'m> Walker<'m> for Variables<'m> {
    fn rule(&mut self, rule: &'m Rule) {
        let mut used = Used::default();
        walk::rule(&mut used, rule);
        if let Rule::Spec { head, .. } = rule {
            for value in head_values(head) {
                used.expression(value);
            }
        }
        self.used = used.0;
        walk::rule(self, rule);
    }

    fn query(&mut self, query: &'m Query) {
        let mut names = HashSet::new();
        for statement in &query.stmts {
            match &statement.literal {
                Literal::SomeVars { vars, .. } => {
                    for variable in vars {
                        let name = variable.text();
                        if !names.insert(name.to_owned()) {
                            self.wrong(variable, format!("`{name}` is declared twice"));
                        }
                        if !self.used.contains(name) {
                            self.wrong(variable, format!("`{name}` is declared, but never used"));
                        }
                    }
                }
                Literal::SomeIn { span, .. } => {
                    let mut own = HashSet::new();
                    declared(&statement.literal, &mut own);
                    own.remove("_");
                    if let Some(name) = own.iter().filter(|it| names.contains(*it)).min() {
                        self.wrong(span, format!("`{name}` is declared twice"));
                    }
                    names.extend(own);
                }
                _ => {}
            }
        }
        walk::query(self, query);
    }

    fn statement(&mut self, statement: &'m LiteralStmt) {
        let mut own = HashSet::new();
        declared(&statement.literal, &mut own);
        if let Literal::Every { key, value, .. } = &statement.literal {
            own.extend(key.iter().chain([value]).map(|it| it.text().to_owned()));
        }
        for name in ["data", "input"] {
            if own.contains(name) {
                let message = format!("no variable may be called `{name}`");
                self.wrong(&statement.span, message);
            }
        }
        for with in &statement.with_mods {
            let target = ground(&with.refr).0;
            let root = target.first().map_or("", String::as_str);
            let name = target.join(".");
            let is_known = matches!(root, "data" | "input")
                || self.names.contains(root)
                || builtins::is_allowed(&name)
                || builtins::refused(&name).is_some();
            if !is_known {
                let message = format!("`{name}` cannot be replaced: there is none");
                self.wrong(&with.span, message);
            }
        }
        walk::statement(self, statement);
    }
}

/// The names that are used in a rule.
#[derive(Default)]
struct Used<'m>(HashSet<&'m str>);

impl<'m> Walker<'m> for Used<'m> {
    fn statement(&mut self, statement: &'m LiteralStmt) {
        if let Literal::SomeIn { key, value, .. } = &statement.literal {
            for pattern in key.iter().chain([value]) {
                self.expression(pattern);
            }
        }
        walk::statement(self, statement);
    }

    fn expression(&mut self, expression: &'m Expr) {
        if let Expr::Var { span, .. } = expression {
            self.0.insert(span.text());
        }
        walk::expression(self, expression);
    }
}
