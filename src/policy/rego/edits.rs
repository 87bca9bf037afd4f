//! Edits to the text of a policy before it is evaluated. Problems keep their places in the text as it was written.

use std::ops::Range;

use regorus::unstable::{Expr, Span};

use crate::policy::Problem;

/// The text of a policy after edits, and where each part of it comes from.
pub(super) struct Edited {
    pub(super) text: String,
    /// The beginning of each part: in this text, and in the one that was written.
    parts: Vec<(usize, usize)>,
    /// What has been appended to names; problems are told without it.
    mark: Option<String>,
}

impl Edited {
    /// Makes edits, which do not overlap; returns `None` if there are none. Of those at one place, the first comes
    /// first.
    pub(super) fn new(text: &str, mut edits: Vec<Edit>) -> Option<Self> {
        if edits.is_empty() {
            return None;
        }
        edits.sort_by_key(|edit| (edit.replaced.start, edit.replaced.end));
        Some(applied(text, &edits))
    }

    /// Records what was appended to names. The text before the edits must not contain it.
    pub(super) fn with_mark(self, mark: String) -> Self {
        Edited {
            mark: Some(mark),
            ..self
        }
    }

    /// Returns a problem of this text as one of the text as it was written.
    pub(super) fn problem(&self, written: &str, problem: Problem) -> Problem {
        let message = match &self.mark {
            Some(mark) => problem.message.replace(mark, ""),
            None => problem.message,
        };
        Problem {
            place: problem.place.map(|place| self.place(written, place)),
            message,
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

pub(super) struct Edit {
    pub(super) replaced: Range<usize>,
    /// What takes its place, in pieces.
    pub(super) by: Vec<Piece>,
}

impl Edit {
    pub(super) fn own(replaced: Range<usize>, by: String) -> Self {
        let by = vec![Piece::Own(by)];
        Edit { replaced, by }
    }
}

/// A piece of what takes its place.
pub(super) enum Piece {
    Own(String),
    /// A part of the text, copied from where it is.
    From(Range<usize>),
}

/// Returns where a part of the text is.
pub(super) fn range(span: &Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

/// Returns a range with the quotes at its ends: to the parser, a string is what is between its quotes.
pub(super) fn with_quotes(text: &str, mut range: Range<usize>) -> Range<usize> {
    let is_quote = |character: Option<&u8>| matches!(character, Some(b'"' | b'`'));
    let text = text.as_bytes();
    if is_quote(text.get(range.end)) {
        range.end += 1;
    }
    if is_quote(text[..range.start].last()) {
        range.start -= 1;
    }
    range
}

/// Returns where an expression is.
pub(super) fn place(text: &str, expression: &Expr) -> Range<usize> {
    let Range { start, end } = range(expression.span());
    match expression {
        // To the parser, an empty set ends after what comes next.
        Expr::Set { items, .. } if items.is_empty() => {
            let length = text[start..].find(')').map(|at| at + 1);
            start..length.map_or(end, |length| start + length)
        }
        _ => with_quotes(text, start..end),
    }
}

fn applied(text: &str, edits: &[Edit]) -> Edited {
    let mut edited = Edited {
        text: String::new(),
        parts: Vec::new(),
        mark: None,
    };
    let mut copied = 0;
    let copy = |edited: &mut Edited, range: Range<usize>| {
        edited.parts.push((edited.text.len(), range.start));
        edited.text += &text[range];
    };
    for edit in edits {
        copy(&mut edited, copied..edit.replaced.start);
        copied = edit.replaced.end;
        for piece in &edit.by {
            match piece {
                Piece::Own(own) => {
                    edited.parts.push((edited.text.len(), edit.replaced.start));
                    edited.text += own;
                }
                Piece::From(range) => copy(&mut edited, range.clone()),
            }
        }
    }
    copy(&mut edited, copied..text.len());
    edited
}
