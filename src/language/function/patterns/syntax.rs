//! Translates Terraform's syntax of regular expressions to that of the library.
//!
//! The two agree on most of it. Here `\w`, `\d`, `\s` and `\b` know only ASCII, classes are not nested, a brace that
//! begins no repetition is literal, and two groups may have the same name. Syntax that only the library has is
//! refused.

use std::iter::Peekable;
use std::str::Chars;

/// Returns a regular expression for the library, and the name of each of its groups.
pub(super) fn translate(source: &str) -> Result<(String, Vec<Option<String>>), String> {
    let mut translation = Translation {
        rest: source.chars().peekable(),
        result: String::with_capacity(source.len() + 16),
        names: Vec::new(),
    };
    translation.run()?;
    Ok((translation.result, translation.names))
}

struct Translation<'a> {
    rest: Peekable<Chars<'a>>,
    result: String,
    names: Vec<Option<String>>,
}

impl Translation<'_> {
    fn run(&mut self) -> Result<(), String> {
        let mut follows_repetition = false;
        while let Some(c) = self.rest.next() {
            let is_repetition = match c {
                '*' | '+' | '?' => {
                    self.result.push(c);
                    true
                }
                '{' => self.repetition()?,
                _ => false,
            };
            if is_repetition {
                if follows_repetition {
                    return Err("a repetition follows another one".to_owned());
                }
                if self.rest.next_if_eq(&'?').is_some() {
                    self.result.push('?');
                }
                follows_repetition = true;
                continue;
            }
            follows_repetition = false;
            match c {
                '{' => {}
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' => self.group()?,
                '.' | '^' | '$' | '|' | ')' => self.result.push(c),
                c => self.literal(c),
            }
        }
        Ok(())
    }

    /// Appends a literal character.
    fn literal(&mut self, c: char) {
        if c.is_ascii_punctuation() && c != '_' {
            self.result.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
        } else {
            self.result.push(c);
        }
    }

    /// Translates the text after `{`; false if it begins no repetition and is literal.
    fn repetition(&mut self) -> Result<bool, String> {
        const MOST: u32 = 1_000;
        let mut ahead = self.rest.clone();
        let mut inside = String::new();
        let is_closed = loop {
            match ahead.next() {
                Some('}') => break true,
                Some(c) if (c.is_ascii_digit() || c == ',') && inside.len() < 20 => inside.push(c),
                _ => break false,
            }
        };
        let (least, most) = inside.split_once(',').unwrap_or((&inside, ""));
        if !is_closed || least.is_empty() || most.contains(',') {
            self.literal('{');
            return Ok(false);
        }
        let is_small = |count: &str| count.parse::<u32>().is_ok_and(|count| count <= MOST);
        if !is_small(least) || !(most.is_empty() || is_small(most)) {
            return Err(format!("something is repeated more than {MOST} times"));
        }
        self.rest = ahead;
        self.result.push_str(&format!("{{{inside}}}"));
        Ok(true)
    }

    /// Translates the text after a backslash.
    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(c) = self.rest.next() else {
            return Err("there is nothing after the last backslash".to_owned());
        };
        match c {
            'd' => self.result.push_str("[0-9]"),
            'D' => self.result.push_str("[^0-9]"),
            's' => self.result.push_str(r"[\t\n\f\r\x20]"),
            'S' => self.result.push_str(r"[^\t\n\f\r\x20]"),
            'w' => self.result.push_str("[0-9A-Za-z_]"),
            'W' => self.result.push_str("[^0-9A-Za-z_]"),
            'b' | 'B' if !in_class => self.result.push_str(&format!("(?-u:\\{c})")),
            'A' | 'z' if !in_class => self.result.push_str(&format!("\\{c}")),
            'Q' if !in_class => self.quoted(),
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => self.result.push_str(&format!("\\{c}")),
            'p' | 'P' => self.property(c)?,
            'x' => {
                let character = self.hexadecimal()?;
                self.result.push_str(&format!("\\x{{{character:x}}}"));
            }
            '0'..='7' => {
                let follows = self.rest.peek().is_some_and(|c| ('0'..='7').contains(c));
                if c != '0' && !follows {
                    return Err(format!("`\\{c}` has no meaning"));
                }
                let mut character = c.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.rest.next_if(|c| ('0'..='7').contains(c)) else {
                        break;
                    };
                    character = character * 8 + digit.to_digit(8).unwrap_or(0);
                }
                self.result.push_str(&format!("\\x{{{character:x}}}"));
            }
            c if c.is_ascii_punctuation() || c.is_ascii_whitespace() => self.literal(c),
            c if c.is_ascii_control() => self.literal(c),
            c => return Err(format!("`\\{c}` has no meaning")),
        }
        Ok(())
    }

    /// Translates the text after `\Q`, up to `\E` or the end.
    fn quoted(&mut self) {
        while let Some(c) = self.rest.next() {
            if c == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return;
            }
            self.literal(c);
        }
    }

    /// Translates the text after `\p` or `\P`: the name of a class of characters.
    fn property(&mut self, letter: char) -> Result<(), String> {
        let mut name = String::new();
        let mut is_negated = letter == 'P';
        match self.rest.next() {
            Some('{') => {
                if self.rest.next_if_eq(&'^').is_some() {
                    is_negated = !is_negated;
                }
                while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphabetic() || *c == '_') {
                    name.push(c);
                }
                if self.rest.next() != Some('}') {
                    return Err("a class of characters has no such name".to_owned());
                }
            }
            Some(c) if c.is_ascii_alphabetic() => name.push(c),
            _ => {
                return Err(format!(
                    "`\\{letter}` needs the name of a class of characters"
                ));
            }
        }
        let letter = if is_negated { 'P' } else { 'p' };
        self.result.push_str(&format!("\\{letter}{{{name}}}"));
        Ok(())
    }

    /// Reads the text after `\x`.
    fn hexadecimal(&mut self) -> Result<u32, String> {
        let wrong = || "`\\x` needs two hexadecimal digits, or some in braces".to_owned();
        let mut digits = String::new();
        if self.rest.next_if_eq(&'{').is_some() {
            while let Some(c) = self.rest.next_if(char::is_ascii_hexdigit) {
                digits.push(c);
            }
            if self.rest.next() != Some('}') {
                return Err(wrong());
            }
        } else {
            for _ in 0..2 {
                digits.push(
                    self.rest
                        .next_if(char::is_ascii_hexdigit)
                        .ok_or_else(wrong)?,
                );
            }
        }
        u32::from_str_radix(&digits, 16).map_err(|_| wrong())
    }

    /// Translates the text after `[`.
    fn class(&mut self) -> Result<(), String> {
        self.result.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.result.push('^');
        }
        let mut is_first = true;
        loop {
            let Some(c) = self.rest.next() else {
                return Err("`[` has no `]`".to_owned());
            };
            match c {
                ']' if !is_first => break,
                '[' if self.rest.peek() == Some(&':') => self.named_class(),
                '\\' => self.escape(true)?,
                '-' => {
                    // It is literal at either end, and after a class.
                    let is_last = self.rest.peek() == Some(&']');
                    if is_first
                        || is_last
                        || self.result.ends_with([']', '}']) && !self.after_code()
                    {
                        self.literal('-');
                    } else {
                        self.result.push('-');
                        // Two would be an operator.
                        if self.rest.next_if_eq(&'-').is_some() {
                            self.literal('-');
                        }
                    }
                }
                c => self.literal(c),
            }
            is_first = false;
        }
        self.result.push(']');
        Ok(())
    }

    /// Returns whether the last thing in a class is the code of a character, which may begin a range.
    fn after_code(&self) -> bool {
        self.result.rfind('\\').is_some_and(|start| {
            let last = &self.result[start..];
            last.starts_with("\\x{") && last.find('}') == Some(last.len() - 1)
        })
    }

    /// Translates a class such as `[:alpha:]`, or a bracket that begins none.
    fn named_class(&mut self) {
        let mut ahead = self.rest.clone();
        let mut name = String::new();
        ahead.next();
        while let Some(c) = ahead.next_if(|c| c.is_ascii_lowercase() || *c == '^') {
            name.push(c);
        }
        if ahead.next() == Some(':') && ahead.next() == Some(']') {
            self.rest = ahead;
            self.result.push_str(&format!("[:{name}:]"));
        } else {
            self.literal('[');
        }
    }

    /// Translates the text after `(`.
    fn group(&mut self) -> Result<(), String> {
        self.result.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            self.names.push(None);
            return Ok(());
        }
        if self.rest.next_if_eq(&'P').is_some() {
            if self.rest.next() != Some('<') {
                return Err("`(?P` needs a name: `(?P<name>`".to_owned());
            }
            return self.name();
        }
        if self.rest.next_if_eq(&'<').is_some() {
            return self.name();
        }
        self.result.push('?');
        while let Some(c) = self.rest.next_if(|c| "imsU-".contains(*c)) {
            self.result.push(c);
        }
        match self.rest.next() {
            Some(c @ (':' | ')')) => self.result.push(c),
            Some(c) => return Err(format!("`{c}` after `(?` has no meaning")),
            None => return Err("`(` has no `)`".to_owned()),
        }
        Ok(())
    }

    /// Reads the name of a group. The library gets the group without its name, since names may occur
    /// twice.
    fn name(&mut self) -> Result<(), String> {
        let mut name = String::new();
        while let Some(c) = self
            .rest
            .next_if(|c| c.is_ascii_alphanumeric() || *c == '_')
        {
            name.push(c);
        }
        if name.is_empty() || self.rest.next() != Some('>') {
            return Err("the name of a group consists of letters, digits and `_`".to_owned());
        }
        self.names.push(Some(name));
        Ok(())
    }
}
