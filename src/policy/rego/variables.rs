//! Makes variables what they are in OPA.
//!
//! - A variable that is declared in a comprehension or in the body of `every` is another one than that of the rule
//!   around it, whatever its name. To the interpreter, the `i` of `some i` is the one of the rule: where the rule has
//!   chosen an `i`, `[x | some i; x := input.stacks[i]]` has one element. It refuses a policy in which the `x` of
//!   `some x in` hides anything; and the `x` of `some x` is a rule or an import of that name, if there is one. So the
//!   text that it evaluates has other names for such variables.
//! - It fails when it gets to `some x` a second time, for the next value of a variable before it. Once each variable
//!   has a name of its own, none has to be declared: `some x` becomes `true`.
//! - `x = "a"` in the body of `every x in` gives `x` that value instead of comparing it. So the body gets a variable
//!   of its own, which is given the value of the other one.
//! - After `x := y`, it may look for values of `x` before those of `y`, and refuse the policy. So that becomes
//!   `x := [y][0]`.
//! - After `[path, value] := walk(x)`, the variables have no values. So `walk(x)` becomes a list with all that
//!   `walk(x, w)` gives to `w`, of which each element is taken.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use regorus::unstable::{
    Expr, Literal, LiteralStmt, Module, Query, Rule, RuleBody, RuleHead, Span,
};

use super::edits::{Edit, Edited, place, range, with_quotes};
use super::references::names;
use super::walk::{assignment, comprehended, head_values, parts};

/// Returns the text of a module in which variables are what they are in OPA, or `None` if it has none that may differ.
pub(super) fn edited(module: &Module, text: &str) -> Option<Edited> {
    let mut marks = (0_u64..).map(|number| format!("_v{number}_"));
    let mark = marks.find(|mark| !text.contains(mark))?;
    let names = names(module);
    let mut edits = Vec::new();
    for rule in &module.policy {
        if let Rule::Spec { head, bodies, .. } = &**rule {
            let mut scopes = Scopes {
                text,
                mark: &mark,
                names: &names,
                kept: kept(head, bodies),
                depth: 0,
                visible: HashMap::new(),
                edits: &mut edits,
            };
            scopes.rule(head, bodies);
        }
    }
    Some(Edited::new(text, edits)?.with_mark(mark))
}

/// Returns the names in a rule that stay what they are in its bodies.
fn kept<'m>(head: &'m RuleHead, bodies: &[RuleBody]) -> HashSet<&'m str> {
    let mut waiting: Vec<&Expr> = Vec::new();
    // OPA lets nothing hide an argument.
    if let RuleHead::Func { args, .. } = head {
        waiting.extend(args.iter().map(|argument| &**argument));
    }
    // Bodies without `else` share the head, where a name must mean the same for all of them.
    if bodies.iter().skip(1).any(|body| !body.is_else) {
        waiting.extend(head_values(head));
    }
    let mut kept = HashSet::new();
    while let Some(expression) = waiting.pop() {
        if let Expr::Var { span, .. } = expression {
            kept.insert(span.text());
        }
        waiting.extend(parts(expression));
    }
    kept
}

struct Scopes<'m, 'e> {
    text: &'e str,
    /// What is appended to names.
    mark: &'e str,
    names: &'e HashSet<String>,
    /// The names that no variable of the rule itself hides.
    kept: HashSet<&'m str>,
    /// How many queries there are around what is read.
    depth: usize,
    /// The declarations that can be seen, by name, the innermost last: how many marks the name has there.
    visible: HashMap<&'m str, Vec<usize>>,
    edits: &'e mut Vec<Edit>,
}

impl<'m> Scopes<'m, '_> {
    fn rule(&mut self, head: &'m RuleHead, bodies: &'m [RuleBody]) {
        let Some((first, others)) = bodies.split_first() else {
            // There are no variables around but the arguments of a function.
            self.depth = 1;
            self.head(head);
            return;
        };
        self.query(&first.query, |scopes| scopes.head(head));
        for body in others {
            self.query(&body.query, |scopes| {
                if let Some(assign) = &body.assign {
                    scopes.expression(&assign.value);
                }
            });
        }
    }

    fn head(&mut self, head: &'m RuleHead) {
        for expression in head_values(head) {
            self.expression(expression);
        }
    }

    /// Reads a query, and what sees its variables too.
    fn query(&mut self, query: &'m Query, read_rest: impl FnOnce(&mut Self)) {
        self.depth += 1;
        let mut declared = Vec::new();
        for statement in &query.stmts {
            self.statement(statement, &mut declared);
        }
        read_rest(self);
        for name in declared {
            self.visible.entry(name).or_default().pop();
        }
        self.depth -= 1;
    }

    fn statement(&mut self, statement: &'m LiteralStmt, declared: &mut Vec<&'m str>) {
        for with in &statement.with_mods {
            self.expression(&with.r#as);
        }
        match &statement.literal {
            Literal::SomeVars { span, vars } => {
                self.edit(range(span), "true".to_owned());
                for variable in vars {
                    self.declare(variable, declared);
                }
            }
            Literal::SomeIn {
                key,
                value,
                collection,
                ..
            } => {
                self.expression(collection);
                for pattern in key.iter().chain([value]) {
                    self.pattern(pattern, declared);
                }
            }
            Literal::Expr { expr, .. } => match assignment(&statement.literal) {
                Some((left, right)) => {
                    self.aliases(right);
                    self.pattern(left, declared);
                }
                None => self.expression(expr),
            },
            Literal::NotExpr { expr, .. } => self.expression(expr),
            Literal::Every {
                key,
                value,
                domain,
                query,
                ..
            } => {
                self.expression(domain);
                let variables: Vec<&Span> = key.iter().chain([value]).collect();
                self.every(&variables, query);
            }
        }
    }

    /// Reads the body of `every`, which has its variables from its beginning on.
    fn every(&mut self, variables: &[&'m Span], body: &'m Query) {
        let variables = variables.iter().filter(|it| is_variable(it.text()));
        let variables: Vec<&Span> = variables.copied().collect();
        let own = 2 * (self.depth + 1);
        let first = body.stmts.first();
        let at = first.map_or(0, |it| with_quotes(self.text, range(&it.span)).start);
        for variable in &variables {
            let (name, end) = (variable.text(), range(variable).end);
            self.append(end, own + 1);
            let [inner, outer] = [own, own + 1].map(|n_marks| self.mark.repeat(n_marks));
            self.edit(at..at, format!("{name}{inner} := [{name}{outer}][0]; "));
            self.visible.entry(name).or_default().push(own);
        }
        self.query(body, |_| {});
        for variable in variables {
            self.visible.entry(variable.text()).or_default().pop();
        }
    }

    /// Declares the variables of a pattern. Keys of objects are no variables of theirs.
    fn pattern(&mut self, pattern: &'m Expr, declared: &mut Vec<&'m str>) {
        match pattern {
            Expr::Var { span, .. } => {
                self.declare(span, declared);
                self.mark(span);
            }
            Expr::Array { items, .. } => {
                for item in items {
                    self.pattern(item, declared);
                }
            }
            Expr::Object { fields, .. } => {
                for (_, key, value) in fields {
                    self.expression(key);
                    self.pattern(value, declared);
                }
            }
            other => self.expression(other),
        }
    }

    fn declare(&mut self, variable: &'m Span, declared: &mut Vec<&'m str>) {
        let name = variable.text();
        let hides_rule = self.names.contains(name) && !self.kept.contains(name);
        let may_hide = self.depth > 1 || hides_rule;
        if may_hide && is_variable(name) {
            self.visible.entry(name).or_default().push(2 * self.depth);
            declared.push(name);
        }
    }

    fn expression(&mut self, expression: &'m Expr) {
        if let Some(query) = comprehended(expression) {
            return self.query(query, |scopes| scopes.parts(expression));
        }
        match expression {
            Expr::Var { span, .. } => self.mark(span),
            Expr::Call {
                span, fcn, params, ..
            } => {
                self.parts(expression);
                if let (Expr::Var { span: name, .. }, [of]) = (&**fcn, &params[..])
                    && name.text() == "walk"
                    && !self.names.contains("walk")
                {
                    self.walk(range(span), place(self.text, of));
                }
            }
            _ => self.parts(expression),
        }
    }

    /// Makes `walk(x)` an element of the list of all values that `walk(x, w)` gives to `w`.
    fn walk(&mut self, call: Range<usize>, of: Range<usize>) {
        let element = format!("w{}", self.mark);
        self.edit(call.start..call.start, format!("[{element} | "));
        self.edit(of.end..of.end, format!(", {element}"));
        self.edit(call.end..call.end, "][_]".to_owned());
    }

    fn parts(&mut self, expression: &'m Expr) {
        for part in parts(expression) {
            self.expression(part);
        }
    }

    /// Reads what variables are given. A variable among it becomes the element of a list.
    fn aliases(&mut self, value: &'m Expr) {
        match value {
            Expr::Var { span, .. } if is_variable(span.text()) => {
                let Range { start, end } = range(span);
                self.edit(start..start, "[".to_owned());
                self.mark(span);
                self.edit(end..end, "][0]".to_owned());
            }
            Expr::Array { items, .. } => {
                for item in items {
                    self.aliases(item);
                }
            }
            Expr::Object { fields, .. } => {
                for (_, key, value) in fields {
                    self.expression(key);
                    self.aliases(value);
                }
            }
            other => self.expression(other),
        }
    }

    fn mark(&mut self, variable: &Span) {
        let visible = self.visible.get(variable.text());
        if let Some(&n_marks) = visible.and_then(|marks| marks.last()) {
            self.append(range(variable).end, n_marks);
        }
    }

    fn append(&mut self, end: usize, n_marks: usize) {
        self.edit(end..end, self.mark.repeat(n_marks));
    }

    fn edit(&mut self, replaced: Range<usize>, by: String) {
        self.edits.push(Edit::own(replaced, by));
    }
}

fn is_variable(name: &str) -> bool {
    !matches!(name, "_" | "input" | "data")
}
