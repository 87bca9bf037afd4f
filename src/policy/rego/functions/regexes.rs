//! Regexes as RE2 reads them: its classes are ASCII, and the size of a compiled one surprises nobody.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::{Captures, NoExpand, Regex, RegexBuilder};
use regorus::Value;

use super::text;

/// How large a compiled regex may be, in bytes: enough for a thousand repetitions of any character.
const MAX_SIZE: usize = 64 << 20;

/// Compiles a regex.
///
/// What is wrong with it, or what RE2 reads differently.
pub(in crate::policy::rego) fn compiled(pattern: &str) -> Result<Regex, String> {
    let pattern = translated(pattern)?;
    let built = RegexBuilder::new(&pattern).size_limit(MAX_SIZE).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        error => {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        }
    })
}

/// The names of classes of characters.
const CLASSES: &str =
    "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit";

/// Returns a regex of RE2 as the library writes it.
fn translated(pattern: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = pattern.chars().peekable();
    // What comes first in a class may be a bracket that does not close it.
    let (mut is_class, mut is_first) = (false, false);
    // Of the character before: whether it repeats something, and whether it makes a repetition lazy.
    let (mut repeats, mut is_lazy) = (false, false);
    while let Some(character) = rest.next() {
        let was_first = std::mem::take(&mut is_first);
        let repeated = std::mem::take(&mut repeats);
        let was_lazy = std::mem::take(&mut is_lazy);
        match character {
            '\\' => match rest.next() {
                Some('d') => out += "[0-9]",
                Some('D') => out += "[^0-9]",
                Some('w') => out += "[0-9A-Za-z_]",
                Some('W') => out += "[^0-9A-Za-z_]",
                Some('s') => out += r"[\t\n\f\r ]",
                Some('S') => out += r"[^\t\n\f\r ]",
                Some('b') if !is_class => out += r"(?-u:\b)",
                Some('Q') => {
                    let quoted: String = rest.clone().collect();
                    let quoted = quoted.split("\\E").next().unwrap_or_default();
                    out += &regex::escape(quoted);
                    rest.by_ref()
                        .take(quoted.chars().count() + 2)
                        .for_each(drop);
                }
                Some(named @ ('p' | 'P' | 'x')) if rest.peek() == Some(&'{') => {
                    out.extend(['\\', named]);
                    for inner in rest.by_ref() {
                        out.push(inner);
                        if inner == '}' {
                            break;
                        }
                    }
                }
                Some(other @ ('B' | 'C' | 'E' | 'u' | 'U' | '<' | '>' | '8' | '9' | '0'..='7')) => {
                    return Err(format!("`\\{other}` is not supported"));
                }
                Some(other) => out.extend(['\\', other]),
                None => return Err("it ends in a backslash".to_owned()),
            },
            '[' if !is_class => {
                (is_class, is_first) = (true, true);
                out.push('[');
                out.extend(rest.next_if_eq(&'^'));
            }
            '[' if rest.peek() == Some(&':') => {
                let name: String = rest.by_ref().take_while(|it| *it != ']').collect();
                let known = name.trim_matches(':').trim_start_matches('^');
                if !CLASSES.split(' ').any(|class| class == known) {
                    return Err(format!("`[{name}]` is no class"));
                }
                out += &format!("[{name}]");
            }
            ']' if is_class && was_first => out += r"\]",
            ']' if is_class => {
                is_class = false;
                out.push(']');
            }
            // In a class these have a meaning of their own only to the library.
            '[' | '&' | '~' if is_class => out.extend(['\\', character]),
            '-' if is_class && rest.peek() == Some(&'-') => out += r"\-",
            '?' if !is_class && repeated => {
                is_lazy = true;
                out.push('?');
            }
            '*' | '+' | '?' if !is_class => {
                if repeated || was_lazy {
                    return Err("a repetition is repeated".to_owned());
                }
                repeats = true;
                out.push(character);
            }
            '{' if !is_class => match repetition(rest.clone())? {
                Some(_) if repeated || was_lazy => {
                    return Err("a repetition is repeated".to_owned());
                }
                Some(length) => {
                    repeats = true;
                    out.push('{');
                    out.extend(rest.by_ref().take(length));
                }
                None => out += r"\{",
            },
            '(' if !is_class && rest.peek() == Some(&'?') => {
                let mut ahead = rest.clone().skip(1);
                let mut flags = ahead
                    .by_ref()
                    .take_while(|it| it.is_ascii_alphabetic() || *it == '-');
                if let Some(flag) = flags.find(|it| !"imsUP-".contains(*it)) {
                    return Err(format!("the flag `{flag}` is not supported"));
                }
                out.push('(');
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

/// Returns how long the rest of `{1,2}` is, if these characters are it.
fn repetition(rest: impl Iterator<Item = char>) -> Result<Option<usize>, String> {
    let rest: String = rest.take(MAX_DIGITS).collect();
    let Some((inside, _)) = rest.split_once('}') else {
        return Ok(None);
    };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !is_number(least) || !most.is_empty() && !is_number(most) {
        return Ok(None);
    }
    let is_small = |text: &&str| text.is_empty() || text.parse().is_ok_and(|it: u32| it <= 1000);
    if ![least, most].iter().all(is_small) {
        return Err("nothing may be repeated more than 1000 times".to_owned());
    }
    Ok(Some(inside.chars().count() + 1))
}

/// How long what is in the braces of a repetition may be.
const MAX_DIGITS: usize = 32;

/// How many compiled regexes are kept.
const MAX_KEPT: usize = 64;

/// Returns a compiled regex; one that was used before is not compiled again.
fn regex(value: &Value) -> Option<Regex> {
    thread_local! {
        static KEPT: RefCell<HashMap<String, Option<Regex>>> = RefCell::default();
    }
    let pattern = text(value)?;
    KEPT.with_borrow_mut(|kept| {
        if let Some(regex) = kept.get(pattern) {
            return regex.clone();
        }
        if kept.len() == MAX_KEPT {
            kept.clear();
        }
        let regex = compiled(pattern).ok();
        kept.insert(pattern.to_owned(), regex.clone());
        regex
    })
}

/// Returns how many matches are wanted: a negative number means all.
fn wanted(value: &Value) -> Option<usize> {
    let number = value.as_i64().ok()?;
    Some(usize::try_from(number).unwrap_or(usize::MAX))
}

pub(super) fn is_match(arguments: &[Value]) -> Option<Value> {
    Some(regex(&arguments[0])?.is_match(text(&arguments[1])?).into())
}

pub(super) fn is_valid(arguments: &[Value]) -> Value {
    regex(&arguments[0]).is_some().into()
}

pub(super) fn find_n(arguments: &[Value]) -> Option<Value> {
    let (regex, wanted) = (regex(&arguments[0])?, wanted(&arguments[2])?);
    let found = regex.find_iter(text(&arguments[1])?).take(wanted);
    Some(Value::from(
        found.map(|it| it.as_str().into()).collect::<Vec<Value>>(),
    ))
}

pub(super) fn find_all_groups(arguments: &[Value]) -> Option<Value> {
    let (regex, wanted) = (regex(&arguments[0])?, wanted(&arguments[2])?);
    let groups = |found: Captures<'_>| {
        let groups = found
            .iter()
            .map(|group| group.map_or("", |it| it.as_str()).into());
        Value::from(groups.collect::<Vec<Value>>())
    };
    let found = regex.captures_iter(text(&arguments[1])?).take(wanted);
    Some(Value::from(found.map(groups).collect::<Vec<Value>>()))
}

pub(super) fn replace(arguments: &[Value]) -> Option<Value> {
    let (regex, by) = (regex(&arguments[1])?, text(&arguments[2])?);
    let before = text(&arguments[0])?;
    let replaced = if by.contains('$') {
        regex.replace_all(before, |found: &Captures<'_>| expanded(by, found))
    } else {
        regex.replace_all(before, NoExpand(by))
    };
    Some(replaced.as_ref().into())
}

/// Returns a text with the groups of a match that it names: `$1`, `${name}`. Anything else after `$` stands for itself.
fn expanded(mut by: &str, found: &Captures<'_>) -> String {
    let mut out = String::new();
    while let Some((before, after)) = by.split_once('$') {
        out += before;
        by = after;
        if let Some(after) = after.strip_prefix('$') {
            (out, by) = (out + "$", after);
            continue;
        }
        let is_braced = after.starts_with('{');
        let inside = after.strip_prefix('{').unwrap_or(after);
        let is_name = |character: char| character == '_' || character.is_alphanumeric();
        let end = inside.find(|it| !is_name(it)).unwrap_or(inside.len());
        let (name, rest) = inside.split_at(end);
        let rest = if is_braced {
            rest.strip_prefix('}')
        } else {
            Some(rest)
        };
        let Some(rest) = rest.filter(|_| !name.is_empty()) else {
            out.push('$');
            continue;
        };
        by = rest;
        let is_number = name == "0" || !name.starts_with('0');
        let group = match name.parse() {
            Ok(number) if is_number => found.get(number),
            _ => found.name(name),
        };
        out += group.map_or("", |it| it.as_str());
    }
    out + by
}

/// The function `regex.split`, as Go has it: an empty match at the beginning splits nothing off.
pub(super) fn split(arguments: &[Value]) -> Option<Value> {
    let (regex, text) = (regex(&arguments[0])?, text(&arguments[1])?);
    let (mut parts, mut begin, mut end) = (Vec::new(), 0, 0);
    let is_whole = text.is_empty() && !regex.as_str().is_empty();
    for found in regex.find_iter(text).filter(|_| !is_whole) {
        end = found.start();
        if found.end() != 0 {
            parts.push(Value::from(&text[begin..end]));
        }
        begin = found.end();
    }
    if end != text.len() || is_whole {
        parts.push(Value::from(&text[begin..]));
    }
    Some(Value::from(parts))
}

/// The function `regex.template_match`: a text with regexes between two delimiters.
pub(super) fn template_match(arguments: &[Value]) -> Option<Value> {
    let [template, matched, open, close] = [0, 1, 2, 3].map(|number| text(&arguments[number]));
    let (template, [open, close]) = (template?, [open?, close?]);
    if open.len() != 1 || close.len() != 1 {
        return None;
    }
    let mut pattern = "^".to_owned();
    let (mut depth, mut begin) = (0_usize, 0);
    for (at, character) in template.char_indices() {
        let delimiter = &template[at..at + character.len_utf8()];
        if delimiter == open {
            if depth == 0 {
                pattern += &regex::escape(&template[begin..at]);
                begin = at + 1;
            }
            depth += 1;
        } else if delimiter == close {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                let inner = &template[begin..at];
                compiled(&format!("^{inner}$")).ok()?;
                pattern += &format!("({inner})");
                begin = at + 1;
            }
        }
    }
    pattern += &regex::escape(&template[begin..]);
    let regex = compiled(&(pattern + "$")).ok().filter(|_| depth == 0)?;
    Some(regex.is_match(matched?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regexes_have_the_classes_of_re2() {
        let is_match = |pattern: &str, text: &str| compiled(pattern).map(|it| it.is_match(text));
        assert_eq!(is_match(r"^\w+$", "naïve"), Ok(false));
        assert_eq!(is_match(r"^[\w-]{1,64}$", "net-eu_1"), Ok(true));
        assert_eq!(is_match(r"^\d$", "٣"), Ok(false));
        assert_eq!(is_match(r"^[^\d]$", "٣"), Ok(true));
        assert_eq!(is_match("^.{1,1000}$", &"ü".repeat(1000)), Ok(true));
        assert_eq!(is_match("^[]a&&]+$", "]&a"), Ok(true));
        assert_eq!(is_match(r"^\p{L}\x{41}[\p{L}]{2}{$", "éAüe{"), Ok(true));
        assert_eq!(is_match(r"^\Qa.*\E+$", "a.**"), Ok(true));
        assert_eq!(is_match("^[[:alpha:][]+$", "[a"), Ok(true));
        assert!(is_match("(?x) a", "a").is_err());
        assert!(is_match("(", "a").is_err());
        assert!(is_match(r"\B", "a").is_err());
    }
}
