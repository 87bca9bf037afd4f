//! Sets an attribute in the text of a file, and keeps every other byte.

use std::ops::Range;
use std::str::FromStr;

use hcl_edit::Span as _;
use hcl_edit::structure::{Attribute, Block, Body};

use crate::language::parse::parse_whole;
use crate::language::syntax::ExprKind;
use crate::language::value::{Value, to_hcl};
use crate::source::FileId;

const INDENT: &str = "  ";

/// Returns the text with a string attribute in the top-level block whose keyword is at an offset: in place of its
/// value, or on a line of its own at the end of the block. `None` if the text has no such block, or one whose
/// layout is not understood.
pub fn with_attribute(text: &str, keyword: usize, name: &str, value: &str) -> Option<String> {
    let body = Body::from_str(text).ok()?;
    let is_meant = |block: &&Block| block.ident.span().is_some_and(|it| it.start == keyword);
    let block = body.blocks().find(is_meant)?;
    let written = to_hcl(&Value::string(value));
    let edited = match block.body.get_attribute(name) {
        Some(attribute) => {
            let place = attribute.value.span()?;
            spliced(text, place, &written)
        }
        None => appended(text, block, name, &written)?,
    };
    is_set(&edited, keyword, name, value).then_some(edited)
}

fn spliced(text: &str, place: Range<usize>, inserted: &str) -> String {
    [&text[..place.start], inserted, &text[place.end..]].concat()
}

/// Returns the text with an attribute at the end of a block.
fn appended(text: &str, block: &Block, name: &str, written: &str) -> Option<String> {
    let start = block.ident.span()?.start;
    let end = block.span()?.end.checked_sub(1)?;
    if text.as_bytes().get(end) != Some(&b'}') {
        return None;
    }
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let before = &text[..end];
    let line_start = before.rfind('\n').map_or(0, |feed| feed + 1);
    let last = block.body.attributes().last();
    if line_start > start {
        // The brace that closes the block is on a line of its own.
        let indent = &text[line_start..end];
        if !indent.trim().is_empty() {
            return None;
        }
        let own = last.and_then(|last| indent_of(text, last));
        let indent = own.map_or_else(|| format!("{indent}{INDENT}"), str::to_owned);
        let gap = last
            .and_then(|last| width_of_name(text, last, line_start))
            .map_or(1, |width| width.saturating_sub(name.len()).max(1));
        let gap = " ".repeat(gap);
        let line = format!("{indent}{name}{gap}= {written}{line_end}");
        return Some(spliced(text, line_start..line_start, &line));
    }
    // The block is on one line.
    let open = match last {
        Some(last) => text[..last.key.span()?.start].rfind('{')?,
        None => start + text[start..end].find('{')?,
    };
    let line = &text[text[..start].rfind('\n').map_or(0, |feed| feed + 1)..start];
    let outer = &line[..line.len() - line.trim_start().len()];
    let inner = text[open + 1..end].trim();
    let mut lines = line_end.to_owned();
    for inner in [inner, &format!("{name} = {written}")] {
        if !inner.is_empty() {
            lines += &format!("{outer}{INDENT}{inner}{line_end}");
        }
    }
    Some(spliced(text, open + 1..end, &(lines + outer)))
}

/// Returns the blanks before an attribute that begins its line.
fn indent_of<'t>(text: &'t str, attribute: &Attribute) -> Option<&'t str> {
    let key = attribute.key.span()?.start;
    let start = text[..key].rfind('\n')? + 1;
    let before = &text[start..key];
    before.trim().is_empty().then_some(before)
}

/// Returns the width of the name of an attribute with the blanks before its sign, if the attribute is the line
/// before an offset, so that signs can be aligned.
fn width_of_name(text: &str, attribute: &Attribute, line_start: usize) -> Option<usize> {
    let key = attribute.key.span()?;
    let value = attribute.value.span()?;
    let line = text.get(key.start..line_start)?;
    let is_line_before = line.trim_end_matches(['\r', '\n']).find('\n').is_none();
    let between = text.get(key.end..value.start)?;
    let sign = between.find('=')?;
    let is_blank = between[..sign].bytes().all(|byte| byte == b' ');
    (is_line_before && is_blank && sign > 0).then_some(key.len() + sign)
}

/// Returns whether the block at an offset has an attribute with this value.
fn is_set(text: &str, keyword: usize, name: &str, value: &str) -> bool {
    let Ok(body) = parse_whole(FileId::UNPLACED, text) else {
        return false;
    };
    let mut blocks = body.blocks.iter();
    let block = blocks.find(|block| block.kind.span.start as usize == keyword);
    let attribute = block.and_then(|block| block.body.attribute(name));
    attribute.is_some_and(|it| matches!(&it.value.kind, ExprKind::String(text) if **text == *value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str) -> Option<String> {
        let keyword = text.find("stack")?;
        with_attribute(text, keyword, "id", "new")
    }

    #[test]
    fn attribute_is_added_at_the_end_of_a_block() {
        let table = [
            ("stack {\n}\n", "stack {\n  id = \"new\"\n}\n"),
            ("stack {}", "stack {\n  id = \"new\"\n}"),
            (
                "stack { name = \"{a}\" } # x\n",
                "stack {\n  name = \"{a}\"\n  id = \"new\"\n} # x\n",
            ),
            (
                "stack {\n\tname        = \"a\" # x\n\tdescription = \"b\"\n\t// end\n}\n",
                "stack {\n\tname        = \"a\" # x\n\tdescription = \"b\"\n\t// end\n\tid = \"new\"\n}\n",
            ),
            (
                "stack {\n  name        = \"a\"\n  description = \"b\" # x\n}\nglobals {\n}\n",
                "stack {\n  name        = \"a\"\n  description = \"b\" # x\n  id          = \"new\"\n}\nglobals {\n}\n",
            ),
            (
                "# é\nstack {\r\n  name = \"a\"\r\n}\r\n",
                "# é\nstack {\r\n  name = \"a\"\r\n  id   = \"new\"\r\n}\r\n",
            ),
            (
                "stack {\n  run {\n    timeout = \"1m\"\n  }\n}\n",
                "stack {\n  run {\n    timeout = \"1m\"\n  }\n  id = \"new\"\n}\n",
            ),
            (
                "stack {\n  tags = [\n    \"a\",\n  ]\n}\n",
                "stack {\n  tags = [\n    \"a\",\n  ]\n  id = \"new\"\n}\n",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(edited(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn value_of_an_attribute_is_replaced_in_its_place() {
        let text = "stack {\n  // the id\n  id = \"old\" // after\n  name = \"x\"\n}\n";
        let expected = text.replace("old", "new");
        assert_eq!(edited(text), Some(expected));
    }

    #[test]
    fn block_with_an_unusual_layout_is_left_alone() {
        assert_eq!(edited("stack { // x\n name = 1\n}"), {
            let expected = "stack { // x\n name = 1\n id   = \"new\"\n}";
            Some(expected.to_owned())
        });
        for text in ["globals {\n}\n", "stack {"] {
            assert_eq!(edited(text), None, "{text}");
        }
    }
}
