//! A page with a size limit: a headline, a table, and folded output below it.

use std::borrow::Cow;

use super::inert::{fenced, html_code};

pub(in crate::report) trait Content {
    /// The head of the table, with its last line break.
    const TABLE: &'static str;
    /// The most bytes that are quoted of a stack's output.
    const QUOTED: usize;
    /// If there is less room than this, output is not quoted.
    const LEAST_QUOTED: usize;
    /// Whether the table may use all the room until every stack has its row; otherwise half of it.
    const TABLE_FIRST: bool;

    /// Returns the part above the table, which is never cut. It ends with a line break.
    fn headline(&self) -> &str;

    /// Returns the part below the table: paragraphs, each after an empty line. Beyond this many
    /// bytes, it has only the parts that are never cut.
    fn notes(&self, limit: usize) -> Cow<'_, str>;

    fn n_rows(&self) -> usize;

    /// Returns a row, which ends with a line break.
    fn row(&self, number: usize) -> String;

    /// Returns how many stacks have output to quote.
    fn n_quotes(&self) -> usize;

    /// Returns the [`folded`] output of one of these stacks, about this many bytes of it; `None` if
    /// it has none.
    fn quote(&self, number: usize, limit: usize) -> Option<String>;

    /// Returns the line that counts the stacks whose output does not fit.
    fn unquoted(&self, count: usize) -> String;
}

/// Returns the whole page, or as much of it as fits.
pub(in crate::report) fn fit<C: Content>(content: &C, limit: usize) -> String {
    full_page(content, limit).unwrap_or_else(|| part(content, limit))
}

/// Returns folded output; `path` is the stack, `what` describes the output.
pub(in crate::report) fn folded(path: &str, what: &str, lines: &str) -> String {
    let (path, lines) = (html_code(path), fenced(lines));
    format!("\n<details>\n<summary>{path}: {what}</summary>\n\n{lines}\n</details>\n")
}

fn full_page<C: Content>(content: &C, limit: usize) -> Option<String> {
    let mut page = content.headline().to_owned();
    if content.n_rows() > 0 {
        page += "\n";
        page += C::TABLE;
    }
    for number in 0..content.n_rows() {
        page += &content.row(number);
        if page.len() > limit {
            return None;
        }
    }
    page += &content.notes(usize::MAX);
    for number in 0..content.n_quotes() {
        if page.len() > limit {
            return None;
        }
        let most = C::QUOTED.min(limit);
        page += &content.quote(number, most).unwrap_or_default();
    }
    (page.len() <= limit).then_some(page)
}

/// Returns as much of the page as fits.
fn part<C: Content>(content: &C, limit: usize) -> String {
    let (n_rows, n_quotes) = (content.n_rows(), content.n_quotes());
    let notes = content.notes(limit / 4);
    let fixed: usize = [content.headline(), "\n", C::TABLE, &notes]
        .iter()
        .map(|text| text.len())
        .sum();
    let counts = match n_quotes {
        0 => missing_rows(n_rows),
        _ => missing_rows(n_rows) + &content.unquoted(n_quotes),
    };
    let mut room = limit.saturating_sub(fixed + counts.len());
    let mut for_rows = if n_quotes > 0 && !C::TABLE_FIRST {
        room / 2
    } else {
        room
    };
    let mut rows: Vec<Option<String>> = vec![None; n_rows];
    take_rows(content, &mut rows, &mut for_rows, &mut room);
    let mut quotes = String::new();
    let mut n_unquoted = 0;
    for number in 0..n_quotes {
        // Room that one stack does not need is left for the others.
        let sharers = (n_quotes - number).min(room / C::LEAST_QUOTED).max(1);
        let share = (room / sharers).max(C::LEAST_QUOTED).min(room);
        match quote_within(content, number, share) {
            QuotedOutput::Nothing => {}
            QuotedOutput::NoRoom => n_unquoted += 1,
            QuotedOutput::Folded(quote) => {
                room -= quote.len();
                quotes += &quote;
            }
        }
    }
    let mut for_rows = room;
    take_rows(content, &mut rows, &mut for_rows, &mut room);
    let n_missing = rows.iter().filter(|row| row.is_none()).count();
    let mut page = content.headline().to_owned();
    if n_missing < rows.len() {
        page += "\n";
        page += C::TABLE;
        page.extend(rows.into_iter().flatten());
    }
    if n_missing > 0 {
        page += &missing_rows(n_missing);
    }
    page += &notes;
    if n_unquoted > 0 {
        page += &content.unquoted(n_unquoted);
    }
    page + &quotes
}

/// Returns the line that counts the rows that do not fit.
fn missing_rows(count: usize) -> String {
    match count {
        1 => "\n1 more stack is left out here.\n".to_owned(),
        more => format!("\n{more} more stacks are left out here.\n"),
    }
}

/// Takes the rows that fit and have not been taken yet.
fn take_rows<C: Content>(
    content: &C,
    rows: &mut [Option<String>],
    for_rows: &mut usize,
    room: &mut usize,
) {
    // The length of the shortest possible row.
    const SHORTEST: usize = 12;
    for (number, taken) in rows.iter_mut().enumerate() {
        if *for_rows < SHORTEST {
            return;
        }
        if taken.is_some() {
            continue;
        }
        let row = content.row(number);
        if row.len() <= *for_rows {
            *for_rows -= row.len();
            *room -= row.len();
            *taken = Some(row);
        }
    }
}

enum QuotedOutput {
    Nothing,
    /// It does not fit.
    NoRoom,
    /// As much as fits.
    Folded(String),
}

/// Returns the folded output of a stack, at most this many bytes.
fn quote_within<C: Content>(content: &C, number: usize, limit: usize) -> QuotedOutput {
    let mut most = C::QUOTED.min(limit);
    loop {
        let Some(quote) = content.quote(number, most) else {
            return QuotedOutput::Nothing;
        };
        if quote.len() <= limit {
            return QuotedOutput::Folded(quote);
        }
        most = match most.checked_sub(quote.len() - limit) {
            Some(fewer) if fewer >= C::LEAST_QUOTED / 2 => fewer,
            _ => return QuotedOutput::NoRoom,
        };
    }
}
