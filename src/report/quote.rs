//! Excerpts of a command's output for reports: its end, or its beginning and its end.

use std::io;

use super::runs::ShownStack;
use super::size::bytes;
use crate::printable::needs_escape;
use crate::record::logs::{LogReader, Logs, Stream};

/// The end of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Quote {
    /// Lines without escape sequences and control characters, with no line feed after the last.
    pub(super) text: String,
    /// How many bytes before these are left out.
    pub(super) left_out: u64,
}

/// Returns the end of the output of the last attempt in a stack, of at most this many bytes, if there
/// is any. If the output cannot be read, the text says so.
pub(super) fn quote(stack: ShownStack, logs: &Logs, limit: usize) -> Option<Quote> {
    let attempt = stack.record.attempts.last()?;
    let log = stack.log(logs, attempt).transpose()?;
    end(log, limit)
}

/// Returns the end of a log, of at most this many bytes, if there is any. If it cannot be read, the text
/// says so.
pub(super) fn end(log: io::Result<LogReader>, limit: usize) -> Option<Quote> {
    let quote = log
        .and_then(|log| end_of(log, limit))
        .unwrap_or_else(|error| Quote {
            text: unreadable(&error),
            left_out: 0,
        });
    Some(quote).filter(|quote| !quote.text.is_empty())
}

/// Returns the first error of a log that names its place (`Error: Unsupported argument, on main.tf
/// line 3`), else the first error. None if no line begins with `Error:`.
pub fn first_error(log: io::Result<LogReader>) -> Option<String> {
    /// How much of a log is searched.
    const MOST: usize = 1 << 20;
    let mut log = log.ok()?;
    let mut bytes = Vec::new();
    let mut room = vec![0; 64 << 10];
    while bytes.len() < MOST
        && let Ok(Some((_, length))) = log.read(&mut room)
    {
        bytes.extend_from_slice(&room[..length]);
    }
    error_in(&clean(&bytes))
}

fn error_in(text: &str) -> Option<String> {
    /// How many lines below the error may name its place.
    const BELOW: usize = 3;
    let is_error = |line: &&str| {
        let start = line.get(..6);
        start.is_some_and(|start| start.eq_ignore_ascii_case("error:"))
    };
    // Terraform draws a frame around its errors.
    let lines: Vec<&str> = text
        .lines()
        .map(|line| without_prefix(line).trim_matches(['│', '╷', '╵', ' ', '\t']))
        .filter(|line| !line.is_empty())
        .collect();
    let errors = || (0..lines.len()).filter(|&at| is_error(&lines[at]));
    let place_of = |error: usize| {
        let mut below = lines[error + 1..]
            .iter()
            .take(BELOW)
            .take_while(|line| !is_error(line));
        below.find(|line| line.starts_with("on ") && line.contains(" line "))
    };
    // Terraform's first error of a configuration only says that there are errors.
    let placed = errors().find_map(|at| Some((at, *place_of(at)?)));
    let Some((at, place)) = placed else {
        return errors().next().map(|at| lines[at].to_owned());
    };
    let place = place.split([',', ':']).next().unwrap_or(place);
    Some(format!("{}, {place}", lines[at]))
}

/// Returns a line without what Terragrunt puts before it: `10:04:30.967 ERROR  [../unit] terraform: `.
fn without_prefix(line: &str) -> &str {
    let rest = || {
        let (time, rest) = line.split_once(' ')?;
        let is_time = time.len() == 12
            && time
                .bytes()
                .all(|it| matches!(it, b'0'..=b'9' | b':' | b'.'));
        let (level, rest) = rest.split_once(' ')?;
        (is_time && level.bytes().all(|it| it.is_ascii_uppercase())).then(|| rest.trim_start())
    };
    let Some(rest) = rest() else {
        return line;
    };
    let unit = rest
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let rest = unit.map_or(rest, |(_, rest)| rest);
    let tools = ["terraform: ", "tofu: "];
    let of_tool = tools.iter().find_map(|tool| rest.strip_prefix(tool));
    of_tool.unwrap_or(rest)
}

/// Returns stdout of a log from an offset on, about this many bytes of it, if there is any. If it
/// is too long, the middle is left out, with a line that gives the size and a command that shows
/// all. If the log cannot be read, the text says so.
pub(super) fn excerpt(
    log: io::Result<LogReader>,
    from: u64,
    shown_by: Option<&str>,
    limit: usize,
) -> Option<String> {
    let text = log
        .and_then(|log| excerpt_of(log, from, shown_by, limit))
        .unwrap_or_else(|error| unreadable(&error));
    Some(text).filter(|text| !text.is_empty())
}

/// Returns the line in place of the left-out part, with its size and the command that shows all, if
/// there is one.
pub(super) fn left_out_line(left_out: u64, shown_by: Option<&str>) -> String {
    let size = bytes(left_out);
    match shown_by {
        Some(command) => format!("orch: {size} are left out here; all of it: {command}"),
        None => format!("orch: {size} are left out here"),
    }
}

fn unreadable(error: &io::Error) -> String {
    clean(format!("orch: the output cannot be read: {error}").as_bytes())
}

fn excerpt_of(
    mut log: LogReader,
    from: u64,
    shown_by: Option<&str>,
    limit: usize,
) -> io::Result<String> {
    log.skip_to(from)?;
    let mut at = from;
    let mut first = Vec::new();
    let mut room = vec![0; limit.clamp(1, 64 << 10)];
    while first.len() < limit {
        let most = room.len().min(limit - first.len());
        let Some((stream, length)) = log.read(&mut room[..most])? else {
            break;
        };
        at += length as u64;
        if stream == Stream::Stdout {
            first.extend_from_slice(&room[..length]);
        }
    }
    // The part between the two may be long, and is not read.
    let start = log.tail(usize::MAX, limit as u64)?.max(at);
    log.skip_to(start)?;
    let mut last = Vec::new();
    while let Some((stream, length)) = log.read(&mut room)? {
        if stream == Stream::Stdout {
            last.extend_from_slice(&room[..length]);
        }
    }
    let mut left_out = start - at;
    let half = limit / 2;
    let (first, last) = if left_out == 0 {
        first.append(&mut last);
        let mut first = clean(&first);
        if first.len() <= limit {
            return Ok(first);
        }
        let last = first.split_off(kept(&first, half));
        (first, last)
    } else {
        let first = clean(&first);
        let end = kept(&first, half);
        left_out += (first.len() - end) as u64;
        (first[..end].to_owned(), clean(&last))
    };
    let start = cut(&last, half);
    let line = left_out_line(left_out + start as u64, shown_by);
    Ok(format!("{first}\n\n{line}\n\n{}", &last[start..]))
}

fn end_of(mut log: LogReader, limit: usize) -> io::Result<Quote> {
    let start = log.tail(usize::MAX, limit as u64)?;
    log.skip_to(start)?;
    let mut bytes = Vec::new();
    let mut room = vec![0; limit.clamp(1, 8 << 10)];
    while bytes.len() < limit
        && let Some((_, length)) = log.read(&mut room)?
    {
        bytes.extend_from_slice(&room[..length]);
    }
    let text = clean(&bytes);
    let cut = cut(&text, limit);
    Ok(Quote {
        left_out: start + cut as u64,
        text: text[cut..].to_owned(),
    })
}

/// Returns where a suffix of at most this length begins: at the beginning of a line, if that leaves
/// anything.
fn cut(text: &str, limit: usize) -> usize {
    if text.len() <= limit {
        return 0;
    }
    let mut start = text.len() - limit;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    match text[start..].find('\n') {
        Some(end) if start + end + 1 < text.len() => start + end + 1,
        _ => start,
    }
}

/// Returns where a prefix of at most this length ends: at the end of a line, if that leaves anything.
fn kept(text: &str, limit: usize) -> usize {
    if text.len() <= limit {
        return text.len();
    }
    let within = &text.as_bytes()[..=limit];
    match memchr::memrchr(b'\n', within) {
        Some(end) if end > 0 => end,
        _ => text.floor_char_boundary(limit),
    }
}

/// Turns command output into text that any format can quote. A carriage return starts a new line:
/// text that a terminal would overwrite was printed, too.
fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = anstream::adapter::strip_str(&text)
        .to_string()
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let mut cleaned = String::with_capacity(text.len());
    for character in text.trim_matches('\n').chars() {
        match character {
            '\n' | '\t' => cleaned.push(character),
            // XML cannot represent these.
            '\u{fffe}' | '\u{ffff}' => cleaned.push(char::REPLACEMENT_CHARACTER),
            character if needs_escape(character) => cleaned.extend(character.escape_default()),
            character => cleaned.push(character),
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_or_xml_would_choke_on_is_left() {
        let bytes = b"\x1b[31mred\x1b[0m\r\n\x1b]0;title\x07 10%\r 20%\r\n\xff\x00\xef\xbf\xbf\n\n";
        assert_eq!(clean(bytes), "red\n 10%\n 20%\n\u{fffd}\u{fffd}");
        assert_eq!(
            clean("a\u{202e}b\tc\u{9b}".as_bytes()),
            "a\\u{202e}b\tc\\u{9b}"
        );
    }

    #[test]
    fn the_first_error_is_found_with_its_place() {
        let terraform = "Planning\n╷\n│ Error: Unsupported argument\n│ \n│   on main.tf line 3, in resource \"x\" \"y\":\n│    3:   inptu = 1\n╵\n╷\n│ Error: Another\n╵\n";
        let table = [
            (
                terraform,
                Some("Error: Unsupported argument, on main.tf line 3"),
            ),
            (
                "error: no such cluster\nhelp",
                Some("error: no such cluster"),
            ),
            ("ERROR: upper\non the way\n", Some("ERROR: upper")),
            ("│ Error: no place\n│ \n│ text\n", Some("Error: no place")),
            (
                "Error: there are problems,\nas follows.\nError: No brace\n  on b.tf line 8, in x:",
                Some("Error: No brace, on b.tf line 8"),
            ),
            ("an error: is not first\n", None),
            (
                "12:49:30.967 INFO   done\n12:49:30.967 ERROR  Error: Unknown variable\n12:49:30.967 ERROR    on /p/b/terragrunt.hcl line 6:\n",
                Some("Error: Unknown variable, on /p/b/terragrunt.hcl line 6"),
            ),
            (
                "12:49:30.967 STDERR [../a] terraform: │ Error: no such bucket\n",
                Some("Error: no such bucket"),
            ),
            ("12:49 ERROR Error: x\n", None),
            ("\u{e9}rror", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(error_in(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_text_is_cut_at_a_line_or_else_at_a_character() {
        let rest = |text: &'static str, limit| &text[cut(text, limit)..];
        assert_eq!(rest("one\ntwo", 7), "one\ntwo");
        assert_eq!(rest("one\ntwo", 6), "two");
        assert_eq!(rest("one\ntwo", 2), "wo");
        assert_eq!(rest("äöü", 3), "ü");
        assert_eq!(rest("äöü", 0), "");
        let begin = |text: &'static str, limit| &text[..kept(text, limit)];
        assert_eq!(begin("one\ntwo", 7), "one\ntwo");
        assert_eq!(begin("one\ntwo", 6), "one");
        assert_eq!(begin("one\ntwo", 3), "one");
        assert_eq!(begin("one\ntwo", 2), "on");
        assert_eq!(begin("äöü", 3), "ä");
        assert_eq!(begin("äöü", 0), "");
    }

    #[test]
    fn the_middle_of_a_log_is_left_out_and_stderr_is_not_part_of_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let logs = Logs::new(folder.path().join("logs"));
        let mut log = logs.writer(1, "/a", 1);
        log.write(Stream::Stdout, b"init\n").unwrap();
        log.write(Stream::Stderr, b"warning\n").unwrap();
        log.write(Stream::Stdout, b"one\ntwo\x1b[0m\nthree\nfour\n")
            .unwrap();
        log.write(Stream::Stderr, b"trouble\n").unwrap();
        log.write(Stream::Stdout, b"five").unwrap();
        let excerpt = |from, limit| {
            let log = logs.reader(1, "/a", 1).map(|log| log.unwrap());
            excerpt(log, from, Some("command"), limit)
        };
        let whole = "one\ntwo\nthree\nfour\nfive";
        assert_eq!(excerpt(13, 100).as_deref(), Some(whole));
        assert_eq!(excerpt(13, whole.len()).as_deref(), Some(whole));
        let cut = "one\ntwo\n\norch: 7 bytes are left out here; all of it: command\n\nfour\nfive";
        assert_eq!(excerpt(13, whole.len() - 1).as_deref(), Some(cut));
        let cut = "one\n\norch: 27 bytes are left out here; all of it: command\n\nfive";
        assert_eq!(excerpt(13, 8).as_deref(), Some(cut));
        assert_eq!(excerpt(999, 8), None);
    }
}
