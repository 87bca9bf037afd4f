//! Globs: `*` and `?` stop at delimiters, `**` does not; `[a-z]`, `[!abc]` and `{a,b}` are as in a shell.

use regex::{Regex, RegexBuilder};
use regorus::Value;

/// The function `glob.match`; undefined for what is no glob.
pub(super) fn is_match(arguments: &[Value]) -> Option<Value> {
    let [pattern, text] = [&arguments[0], &arguments[2]].map(|it| it.as_string().ok());
    let (pattern, text) = (pattern?, text?);
    let delimiters: String = match &arguments[1] {
        Value::Null => String::new(),
        Value::Array(items) if items.is_empty() => ".".to_owned(),
        Value::Array(items) => {
            let items = items.iter().map(|item| {
                let item = item.as_string().ok()?;
                let mut characters = item.chars();
                let only = characters.next()?;
                characters.next().is_none().then_some(only)
            });
            items.collect::<Option<_>>()?
        }
        _ => return None,
    };
    Some(compiled(pattern, &delimiters)?.is_match(text).into())
}

fn compiled(pattern: &str, delimiters: &str) -> Option<Regex> {
    let any = if delimiters.is_empty() {
        ".".to_owned()
    } else {
        let mut class = "[^".to_owned();
        for delimiter in delimiters.chars() {
            class.push_str(&escaped(delimiter));
        }
        class + "]"
    };
    let mut regex = "^".to_owned();
    let mut rest = pattern.chars().peekable();
    // How many braces are open.
    let mut depth = 0_usize;
    while let Some(character) = rest.next() {
        match character {
            '*' if rest.next_if_eq(&'*').is_some() => {
                while rest.next_if_eq(&'*').is_some() {}
                regex.push_str(".*");
            }
            '*' => regex.push_str(&format!("{any}*")),
            '?' => regex.push_str(&any),
            '\\' => regex.push_str(&escaped(rest.next()?)),
            '[' => {
                regex.push('[');
                if rest.next_if_eq(&'!').is_some() {
                    regex.push('^');
                }
                let inside: Vec<char> = rest.by_ref().take_while(|it| *it != ']').collect();
                match inside[..] {
                    [] => return None,
                    [first, '-', last] if first <= last => {
                        regex.push_str(&format!("{}-{}", escaped(first), escaped(last)));
                    }
                    _ if inside.contains(&'-') => return None,
                    _ => inside.iter().for_each(|it| regex.push_str(&escaped(*it))),
                }
                regex.push(']');
            }
            '{' => {
                depth += 1;
                regex.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth -= 1;
                regex.push(')');
            }
            ',' if depth > 0 => regex.push('|'),
            other => regex.push_str(&escaped(other)),
        }
    }
    regex.push('$');
    let built = RegexBuilder::new(&regex).dot_matches_new_line(true).build();
    built.ok().filter(|_| depth == 0)
}

fn escaped(character: char) -> String {
    regex::escape(character.encode_utf8(&mut [0; 4]))
}

pub(super) fn quote_meta(arguments: &[Value]) -> Option<Value> {
    let mut quoted = String::new();
    for character in arguments[0].as_string().ok()?.chars() {
        if r"*?\[]{}".contains(character) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    Some(quoted.into())
}
