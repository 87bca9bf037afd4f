//! Line ends in `{ for … }`. HCL ignores them, but the parser takes them for the end of the expression.

use super::skim::blank_lines;

/// How deep strings may stand in templates of strings.
const MAX_DEPTH: u32 = 64;

/// Returns the text with blanks instead of the line ends and comments directly inside of `{ for … }`, so its length
/// is the same. `None` if there are none, or if the text has a heredoc or an unclosed string.
pub(super) fn on_one_line(text: &str) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    // For each open bracket, whether it is that of a `{ for … }`.
    let mut open: Vec<bool> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let is_ignored = open.last() == Some(&true);
        let next = bytes.get(at + 1).copied();
        at = match (byte, next) {
            (b'{' | b'[' | b'(', _) => {
                open.push(byte == b'{' && is_for(&text[at + 1..]));
                at + 1
            }
            (b'}' | b']' | b')', _) => {
                open.pop();
                at + 1
            }
            (b'"', _) => end_of_string(&bytes, at, 0)?,
            (b'<', Some(b'<')) => return None,
            (b'#', _) | (b'/', Some(b'/')) => {
                let line = bytes[at..].iter().position(|&it| it == b'\n');
                let end = line.map_or(bytes.len(), |length| at + length);
                if is_ignored {
                    bytes[at..end].fill(b' ');
                }
                end
            }
            (b'/', Some(b'*')) => at + text[at..].find("*/")? + 2,
            (b'\n' | b'\r', _) if is_ignored => {
                bytes[at] = b' ';
                at + 1
            }
            _ => at + 1,
        };
    }
    let changed = String::from_utf8(bytes).expect("only whole characters are replaced");
    (changed != text).then_some(changed)
}

/// Returns whether what follows a brace begins with `for`.
fn is_for(text: &str) -> bool {
    let rest = blank_lines(text.as_bytes());
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
    rest.starts_with(b"for") && is_end(rest.get(3))
}

/// Returns the position after the string that begins at a position; `None` if it is not closed. A template in it may
/// have strings of its own.
fn end_of_string(bytes: &[u8], start: usize, depth: u32) -> Option<usize> {
    let depth = depth.checked_add(1).filter(|&depth| depth < MAX_DEPTH)?;
    let mut at = start + 1;
    loop {
        at = match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'"', _) => return Some(at + 1),
            (b'\\', _) => at + 2,
            (b'$' | b'%', Some(b'{')) if bytes[at - 1] != bytes[at] => {
                end_of_template(bytes, at + 2, depth)?
            }
            _ => at + 1,
        };
    }
}

/// Returns the position after the brace that closes a template.
fn end_of_template(bytes: &[u8], start: usize, depth: u32) -> Option<usize> {
    let mut n_open = 0;
    let mut at = start;
    loop {
        at = match bytes.get(at)? {
            b'"' => end_of_string(bytes, at, depth)?,
            b'}' if n_open == 0 => return Some(at + 1),
            b'}' => {
                n_open -= 1;
                at + 1
            }
            b'{' => {
                n_open += 1;
                at + 1
            }
            _ => at + 1,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::on_one_line;
    use crate::language::parse::parse_whole;
    use crate::source::FileId;

    #[test]
    fn conditional_in_a_for_object_may_span_lines() {
        let text = "a = {\n  for k in b : k =>\n  k == 1\n  ? { x = 1 }\n  : { x = \"}\" }\n}\n";
        let body = parse_whole(FileId(0), text).unwrap();
        assert_eq!(body.attributes.len(), 1);
    }

    #[test]
    fn line_ends_become_blanks_only_in_for_objects() {
        let table = [
            (
                "a = {\n  for k in b : k =>\n  c # why\n  ? { x = 1\n y = 2 }\n  : d\n}\n",
                Some("a = {   for k in b : k =>   c         ? { x = 1\n y = 2 }   : d }\n"),
            ),
            ("a = [\n  for k in b : k\n]\n", None),
            ("a = {\n  b = 1\n}\n", None),
            ("a = { fortune = 1\n b = 2 }\n", None),
            ("a = \"{ for \\\" x\n\"\n", None),
            ("a = \"${{ for k in b : k => \"}\" }}\"\n", None),
            ("a = <<E\n{ for x\n}\nE\n", None),
        ];
        for (text, expected) in table {
            assert_eq!(on_one_line(text).as_deref(), expected, "{text}");
        }
        let deep = format!("a = {}", "\"${".repeat(100_000));
        assert_eq!(on_one_line(&deep), None);
    }
}
