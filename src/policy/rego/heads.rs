//! Moves what the head of a rule computes into its bodies.
//!
//! In `trigger contains s.owner if some s in input.stacks`, a stack without an owner adds nothing. The
//! interpreter drops all that the body has found so far as well, since it takes an undefined head for the
//! end of the rule. An undefined statement of a body it gets right: so the text that it evaluates is
//! `trigger contains owner if { some s in input.stacks; owner := s.owner }`.

use std::ops::Range;

use regorus::unstable::{AssignOp, Expr, Module, Query, Rule, RuleAssign, RuleBody, RuleHead};

use super::edits::{Edit, Edited, Piece, range, with_quotes};
use super::walk::{indices, is_scalar, parts};
use crate::policy::brackets::Inside;

/// Returns the text of a module with the heads moved, or `None` if no head computes anything.
pub(super) fn edited(module: &Module, text: &str) -> Option<Edited> {
    let mut edits = Vec::new();
    let mut prefix = "head".to_owned();
    while text.contains(&prefix) {
        prefix.push('_');
    }
    for rule in &module.policy {
        if let Rule::Spec { head, bodies, span } = &**rule {
            let mut mover = Mover {
                text,
                edits: &mut edits,
                prefix: &prefix,
            };
            let end = with_quotes(text, range(span)).end;
            mover.rule(head, bodies, end, module.rego_v1);
        }
    }
    Edited::new(text, edits)
}

struct Mover<'e> {
    text: &'e str,
    edits: &'e mut Vec<Edit>,
    prefix: &'e str,
}

/// What a body has to compute: its name, and where its text is.
type Computed = Vec<(String, Range<usize>)>;

impl Mover<'_> {
    fn rule(&mut self, head: &RuleHead, bodies: &[RuleBody], end: usize, is_v1: bool) {
        let (span, refr, key, assign) = match head {
            RuleHead::Set { span, refr, key } => (span, refr, key.as_ref(), None),
            RuleHead::Compr { span, refr, assign } => (span, refr, None, assign.as_ref()),
            // An undefined value of a function makes no difference to other calls, but leads to its `else`.
            RuleHead::Func {
                span, refr, assign, ..
            } if bodies.iter().any(|body| body.is_else) => (span, refr, None, assign.as_ref()),
            RuleHead::Func { .. } => return,
        };
        let name = Name::read(self.text, range(span).start);
        let mut expressions = indices(refr);
        expressions.extend(key.map(|key| &**key));
        let mut places = name.indices;
        if key.is_some() && places.len() < expressions.len() {
            // `contains` has eight letters.
            places.push(name.end + 8..with_quotes(self.text, range(span)).end);
        }
        if bodies.is_empty() && places.is_empty() {
            return;
        }
        let mut computed = Computed::new();
        for (expression, place) in expressions.into_iter().zip(places) {
            self.replace(expression, place, &mut computed);
        }
        if let Some(assign) = assign {
            self.replace(&assign.value, self.assigned(assign), &mut computed);
        }
        if bodies.is_empty() && !computed.is_empty() {
            let keyword = if is_v1 { " if" } else { "" };
            let mut by = vec![Piece::Own(format!("{keyword} {{"))];
            by.extend(statements(&computed));
            by.push(Piece::Own("}".to_owned()));
            self.insert(end, by);
        }
        for body in bodies {
            let mut own = Computed::new();
            if let Some(assign) = &body.assign {
                // Without a query there is one value, and nothing that it could take along.
                if !body.query.stmts.is_empty() {
                    self.replace(&assign.value, self.assigned(assign), &mut own);
                }
            } else if !body.is_else {
                own.clone_from(&computed);
            }
            self.add(&body.query, &own);
        }
    }

    /// Puts a name in the place of an expression, if that may be undefined.
    fn replace(&mut self, expression: &Expr, place: Range<usize>, computed: &mut Computed) {
        if !may_be_undefined(expression) {
            return;
        }
        let name = format!("{}{}", self.prefix, place.start);
        let edit = Edit::own(place.clone(), format!(" {name} "));
        self.edits.push(edit);
        computed.push((name, place));
    }

    fn add(&mut self, query: &Query, computed: &Computed) {
        let (Some(first), Some(last), false) =
            (query.stmts.first(), query.stmts.last(), computed.is_empty())
        else {
            return;
        };
        let end = with_quotes(self.text, range(&last.span)).end;
        let has_braces = range(&first.span).start > range(&query.span).start;
        let mut by = vec![Piece::Own(";".to_owned())];
        by.extend(statements(computed));
        if !has_braces {
            let start = with_quotes(self.text, range(&query.span)).start;
            self.insert(start, vec![Piece::Own("{".to_owned())]);
            by.push(Piece::Own("}".to_owned()));
        }
        self.insert(end, by);
    }

    fn assigned(&self, assign: &RuleAssign) -> Range<usize> {
        let whole = with_quotes(self.text, range(&assign.span));
        let operator = if assign.op == AssignOp::ColEq {
            ":="
        } else {
            "="
        };
        whole.start + operator.len()..whole.end
    }

    fn insert(&mut self, at: usize, by: Vec<Piece>) {
        let replaced = at..at;
        self.edits.push(Edit { replaced, by });
    }
}

/// Returns the statements that compute something, in the line that they come into.
fn statements(computed: &Computed) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (index, (name, range)) in computed.iter().enumerate() {
        let separator = if index > 0 { "; " } else { " " };
        pieces.push(Piece::Own(format!("{separator}{name} := ")));
        pieces.push(Piece::From(range.clone()));
    }
    pieces
}

/// The name of a rule, as it is written.
struct Name {
    /// Where the insides of its brackets are.
    indices: Vec<Range<usize>>,
    /// Where the next word begins.
    end: usize,
}

impl Name {
    fn read(text: &str, start: usize) -> Self {
        let mut indices = Vec::new();
        let mut at = start;
        loop {
            let rest = &text[at..];
            let is_word = |character: char| character.is_alphanumeric() || "_.".contains(character);
            at += rest
                .find(|character| !is_word(character))
                .unwrap_or(rest.len());
            if !text[at..].starts_with('[') {
                break;
            }
            let end = at + closing(&text[at..]);
            indices.push(at + 1..end);
            at = (end + 1).min(text.len());
        }
        let code = skipped_blanks(&text[at..]);
        Name {
            indices,
            end: text.len() - code.len(),
        }
    }
}

fn skipped_blanks(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        match text.strip_prefix('#') {
            Some(comment) => text = comment.find('\n').map_or("", |end| &comment[end..]),
            None => return text,
        }
    }
}

/// Returns where the bracket closes that a text begins with.
fn closing(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = Inside::Code;
    for (index, character) in text.char_indices() {
        let is_code = at == Inside::Code;
        at = at.after(character);
        match character {
            '(' | '[' | '{' if is_code => depth += 1,
            ')' | ']' | '}' if is_code => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Returns whether an expression may have a value for some of the values of its variables, and none for others.
pub(super) fn may_be_undefined(expression: &Expr) -> bool {
    match expression {
        _ if is_scalar(expression) => false,
        Expr::Var { .. }
        | Expr::ArrayCompr { .. }
        | Expr::SetCompr { .. }
        | Expr::ObjectCompr { .. } => false,
        Expr::Array { .. } | Expr::Set { .. } | Expr::Object { .. } => {
            parts(expression).into_iter().any(may_be_undefined)
        }
        _ => true,
    }
}
