//! The generated part of the topic about functions.

use std::fmt::Write as _;

use orch::language::evaluate::{MAX_NESTING, MAX_WORK};
use orch::language::function::{Function, PREFIX, find, groups};
use orch::language::value::{MAX_DEPTH, MAX_WEIGHT};

/// Returns the limits, and every function by group, as Markdown.
pub(super) fn reference() -> String {
    let mut text = limits();
    for (title, functions) in groups().filter(|(_, functions)| !functions.is_empty()) {
        _ = write!(text, "## {title}\n\n");
        for function in functions {
            describe(function, &mut text);
        }
    }
    text
}

fn limits() -> String {
    let steps = MAX_WORK / 1_000_000;
    // A unit of weight is eight bytes of text.
    let megabytes = MAX_WEIGHT * 8 / 1_000_000;
    format!(
        "## Limits\n\n\
         The work for one stack is limited to about {steps} million steps; expressions may be nested \
         {MAX_NESTING} levels deep. A value may have about {megabytes} MB and {MAX_DEPTH} levels of lists and \
         objects. Exceeding a limit is an error.\n\n"
    )
}

fn describe(function: &Function, text: &mut String) {
    _ = writeln!(text, "```text\n{PREFIX}{}", function.signature());
    let (call, result) = function.example;
    if let Some(why) = function.refusal() {
        _ = write!(text, "```\n\n{}", function.description);
        _ = write!(text, " `orch` refuses to call it: it {why}.\n\n");
    } else {
        _ = writeln!(text, "{}  →  {result}", with_prefix(call));
        _ = write!(text, "```\n\n{}\n\n", function.description);
    }
}

/// Adds the prefix to the functions in an example, but not within its strings.
fn with_prefix(call: &str) -> String {
    let mut text = String::new();
    let mut is_string = false;
    let mut rest = call;
    while let Some(first) = rest.chars().next() {
        let is_in_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word = rest.find(|c| !is_in_word(c)).unwrap_or(rest.len());
        let (piece, after) = match first {
            '\\' => rest.split_at(
                rest.char_indices()
                    .nth(2)
                    .map_or(rest.len(), |(end, _)| end),
            ),
            _ if word > 0 => rest.split_at(word),
            _ => rest.split_at(first.len_utf8()),
        };
        if piece == "\"" {
            is_string = !is_string;
        }
        if !is_string && after.starts_with('(') && find(piece).is_some() {
            text += PREFIX;
        }
        text += piece;
        rest = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_get_the_prefix_outside_of_strings() {
        assert_eq!(
            with_prefix(r#"try(tostring(1), "try(\"a\")", can, [for try in x : ceil(1)])"#),
            r#"tm_try(tm_tostring(1), "try(\"a\")", can, [for try in x : tm_ceil(1)])"#
        );
    }
}
