//! A verb in a format, such as `%-5.2[3]f`.

pub(super) struct FormatVerb {
    /// As written, percent sign included.
    pub(super) written: String,
    flags: String,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    /// The number of its value, counted from 1, if it is written.
    pub(super) argument: Option<usize>,
    pub(super) letter: char,
}

impl FormatVerb {
    /// Parses what follows a percent sign, and returns the text after the verb.
    pub(super) fn parse(text: &str) -> Result<(FormatVerb, &str), String> {
        let flags = text.trim_start_matches(['0', '#', '-', '+', ' ']);
        let (width, rest) = digits(flags);
        let (precision, rest) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (precision, rest) = digits(rest);
                // A point alone means that there is nothing after the decimal point.
                (Some(precision.unwrap_or(0)), rest)
            }
            None => (None, rest),
        };
        let (argument, rest) = match rest.strip_prefix('[') {
            Some(rest) => match digits(rest) {
                (Some(number), after) if !rest.starts_with('0') && after.starts_with(']') => {
                    (Some(number), &after[1..])
                }
                _ => return Err("`[` in a verb needs the number of a value: `%[1]s`".to_owned()),
            },
            None => (None, rest),
        };
        let written = |rest: &str| format!("%{}", &text[..text.len() - rest.len()]);
        let mut after = rest.chars();
        let Some(letter) = after.next() else {
            return Err(format!(
                "the verb `{}` has no letter; `%%` is a percent sign",
                written(rest)
            ));
        };
        let verb = FormatVerb {
            written: written(after.as_str()),
            flags: text[..text.len() - flags.len()].to_owned(),
            width,
            precision,
            argument,
            letter,
        };
        if !"vtbdoxXeEfgGsq".contains(letter) {
            return Err(format!(
                "unknown verb `{}`; `%%` is a percent sign",
                verb.written
            ));
        }
        Ok((verb, after.as_str()))
    }

    /// Returns whether a flag is written: `0`, `#`, `-`, `+` or a space.
    pub(super) fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }
}

/// Splits a number off the start of a text. One that is too large becomes larger than any useful one.
fn digits(text: &str) -> (Option<usize>, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    let number = (!digits.is_empty()).then(|| digits.parse().unwrap_or(usize::MAX / 2));
    (number, rest)
}
