//! Moves what the head of a rule computes into its bodies.
//!
//! In `trigger contains s.owner if some s in input.stacks`, a stack without an owner adds nothing. The
//! interpreter drops all that the body has found so far as well, since it takes an undefined head for the
//! end of the rule. An undefined statement of a body it gets right: so the text that it evaluates is
//! `trigger contains owner if { some s in input.stacks; owner := s.owner }`.

use std::ops::Range;

use regorus::unstable::{
    AssignOp, Expr, Module, Query, Ref, Rule, RuleAssign, RuleBody, RuleHead, Span,
};

use crate::policy::Problem;
use crate::policy::brackets::Inside;

/// The text of a policy with other heads, and where each part of it comes from.
pub(super) struct Moved {
    pub(super) text: String,
    /// The beginning of each part: in this text, and in the one that was written.
    parts: Vec<(usize, usize)>,
}

impl Moved {
    /// Returns a problem of this text as one of the text as it was written.
    pub(super) fn problem(&self, written: &str, problem: Problem) -> Problem {
        Problem {
            place: problem.place.map(|place| self.place(written, place)),
            ..problem
        }
    }

    /// Returns the place in the text as it was written, of a place in this one: lines and columns from 1.
    fn place(&self, written: &str, (line, column): (u32, u32)) -> (u32, u32) {
        let at = offset(&self.text, line, column);
        let after = self.parts.partition_point(|(begin, _)| *begin <= at);
        let (begin, origin) = self.parts[after.saturating_sub(1)];
        let end = self.parts.get(after).map_or(self.text.len(), |part| part.0);
        let mut at = (origin + (at.min(end) - begin)).min(written.len());
        while !written.is_char_boundary(at) {
            at -= 1;
        }
        let before = &written[..at];
        let line_begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
        (
            number(before.matches('\n').count()),
            number(before[line_begin..].chars().count()),
        )
    }
}

fn offset(text: &str, line: u32, column: u32) -> usize {
    let lines = text.split_inclusive('\n');
    let mut at = 0;
    for (number, content) in (1..).zip(lines) {
        if number == line {
            let characters = content.char_indices().map(|(index, _)| index);
            let skipped = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
            return at
                + characters
                    .chain([content.len()])
                    .nth(skipped)
                    .unwrap_or(content.len());
        }
        at += content.len();
    }
    at
}

/// Returns the text of a module with the heads moved, or `None` if no head computes anything.
pub(super) fn moved(module: &Module, text: &str) -> Option<Moved> {
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
            let end = mover.with_quotes(range(span)).end;
            mover.rule(head, bodies, end, module.rego_v1);
        }
    }
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|edit| (edit.replaced.start, edit.replaced.end));
    Some(applied(text, &edits))
}

/// A change to the text.
struct Edit {
    /// What goes.
    replaced: Range<usize>,
    /// What comes: a text of our own or one from elsewhere.
    by: Vec<Piece>,
}

enum Piece {
    Own(String),
    From(Range<usize>),
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
        // What a function returns is undefined alone.
        let (span, refr, key, assign) = match head {
            RuleHead::Set { span, refr, key } => (span, refr, key.as_ref(), None),
            RuleHead::Compr { span, refr, assign } => (span, refr, None, assign.as_ref()),
            RuleHead::Func { .. } => return,
        };
        let name = Name::read(self.text, range(span).start);
        let mut expressions = indices(refr);
        expressions.extend(key.map(|key| &**key));
        let mut places = name.indices;
        if key.is_some() && places.len() < expressions.len() {
            // `contains` has eight letters.
            places.push(name.end + 8..self.with_quotes(range(span)).end);
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
        self.edits.push(Edit {
            replaced: place.clone(),
            by: vec![Piece::Own(format!(" {name} "))],
        });
        computed.push((name, place));
    }

    /// Adds what is computed to the end of a body.
    fn add(&mut self, query: &Query, computed: &Computed) {
        let (Some(first), Some(last), false) =
            (query.stmts.first(), query.stmts.last(), computed.is_empty())
        else {
            return;
        };
        let end = self.with_quotes(range(&last.span)).end;
        let has_braces = range(&first.span).start > range(&query.span).start;
        let mut by = vec![Piece::Own(";".to_owned())];
        by.extend(statements(computed));
        if !has_braces {
            let start = self.with_quotes(range(&query.span)).start;
            self.insert(start, vec![Piece::Own("{".to_owned())]);
            by.push(Piece::Own("}".to_owned()));
        }
        self.insert(end, by);
    }

    /// Returns where the value of an assignment is.
    fn assigned(&self, assign: &RuleAssign) -> Range<usize> {
        let whole = self.with_quotes(range(&assign.span));
        let operator = if assign.op == AssignOp::ColEq {
            ":="
        } else {
            "="
        };
        whole.start + operator.len()..whole.end
    }

    /// Returns a range with the quotes at its ends: to the parser, a string is what is between its quotes.
    fn with_quotes(&self, mut range: Range<usize>) -> Range<usize> {
        let is_quote = |character: Option<&u8>| matches!(character, Some(b'"' | b'`'));
        let text = self.text.as_bytes();
        if is_quote(text.get(range.end)) {
            range.end += 1;
        }
        if is_quote(text[..range.start].last()) {
            range.start -= 1;
        }
        range
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

fn range(span: &Span) -> Range<usize> {
    span.start as usize..span.end as usize
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

/// Returns what stands in the brackets of the name of a rule: `a` and `b` of `x[a].y[b]`.
fn indices(mut refr: &Ref<Expr>) -> Vec<&Expr> {
    let mut indices = Vec::new();
    loop {
        refr = match &**refr {
            Expr::RefDot { refr, .. } => refr,
            Expr::RefBrack { refr, index, .. } => {
                indices.push(&**index);
                refr
            }
            _ => break,
        };
    }
    indices.reverse();
    indices
}

/// Returns whether an expression may have a value for some of the values of its variables, and none for others.
fn may_be_undefined(expression: &Expr) -> bool {
    match expression {
        Expr::String { .. }
        | Expr::RawString { .. }
        | Expr::Number { .. }
        | Expr::Bool { .. }
        | Expr::Null { .. }
        | Expr::Var { .. }
        | Expr::ArrayCompr { .. }
        | Expr::SetCompr { .. }
        | Expr::ObjectCompr { .. } => false,
        Expr::Array { items, .. } | Expr::Set { items, .. } => {
            items.iter().any(|item| may_be_undefined(item))
        }
        Expr::Object { fields, .. } => fields
            .iter()
            .any(|(_, key, value)| may_be_undefined(key) || may_be_undefined(value)),
        _ => true,
    }
}

fn applied(text: &str, edits: &[Edit]) -> Moved {
    let mut moved = Moved {
        text: String::new(),
        parts: Vec::new(),
    };
    let mut copied = 0;
    let copy = |moved: &mut Moved, range: Range<usize>| {
        moved.parts.push((moved.text.len(), range.start));
        moved.text += &text[range];
    };
    for edit in edits {
        copy(&mut moved, copied..edit.replaced.start);
        copied = edit.replaced.end;
        for piece in &edit.by {
            match piece {
                Piece::Own(own) => {
                    moved.parts.push((moved.text.len(), edit.replaced.start));
                    moved.text += own;
                }
                Piece::From(range) => copy(&mut moved, range.clone()),
            }
        }
    }
    copy(&mut moved, copied..text.len());
    moved
}
