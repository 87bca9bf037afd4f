//! Patterns of commands: `make diff`.

use std::ffi::OsString;
use std::path::Path;

/// A program's file name and its first arguments, without its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern(Vec<String>);

impl CommandPattern {
    /// Reads a pattern: words separated by spaces.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let Some(program) = words.first() else {
            return Err("it is empty");
        };
        if program.contains(['/', '\\']) {
            return Err("the program is named without its directory");
        }
        if words.iter().any(|word| word.starts_with('-')) {
            return Err("options are not part of a pattern");
        }
        Ok(CommandPattern(words))
    }

    /// Returns whether a command matches, with any options and further arguments.
    ///
    /// A word right after an option may be the value of that option: `make -C diff apply` is no `make diff`. Such a
    /// word doesn't count unless the option has its value after a `=`, or is one of `flags`, which have none.
    pub fn matches(&self, command: &[OsString], flags: &[&str]) -> bool {
        let Some((program, arguments)) = command.split_first() else {
            return false;
        };
        let name = Path::new(program).file_name();
        let name = name.map(|name| name.to_string_lossy());
        let name = name.as_deref().unwrap_or_default();
        let name = name.strip_suffix(".exe").unwrap_or(name);
        let (wanted, others) = self.0.split_first().expect("a pattern has a program");
        if wanted != name {
            return false;
        }
        let mut others = others.iter().peekable();
        let mut may_be_value = false;
        for word in arguments {
            let Some(wanted) = others.peek() else {
                break;
            };
            if word.as_encoded_bytes().starts_with(b"-") {
                let has_value = word.as_encoded_bytes().contains(&b'=');
                may_be_value = !has_value && !flags.iter().any(|flag| word == flag);
            } else if may_be_value || word != wanted.as_str() {
                return false;
            } else {
                others.next();
            }
        }
        others.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, line: &str) -> bool {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        CommandPattern::parse(pattern).unwrap().matches(&words, &[])
    }

    #[test]
    fn the_program_and_the_first_arguments_count() {
        for line in [
            "make diff",
            "/usr/bin/make diff",
            "make.exe diff",
            "make --directory=x diff all",
            "make diff -j 8",
        ] {
            assert!(matches("make diff", line), "{line}");
        }
        for line in [
            "make",
            "make all diff",
            "gmake diff",
            "diff",
            "make -C x diff",
            "make -C diff",
            "make -C diff apply",
            "make diffs",
        ] {
            assert!(!matches("make diff", line), "{line}");
        }
        assert!(matches("make", "make all"));
        assert!(!CommandPattern::parse("make").unwrap().matches(&[], &[]));
    }

    #[test]
    fn what_can_never_match_is_no_pattern() {
        for text in ["", "  ", "./make diff", "make -k diff"] {
            assert!(CommandPattern::parse(text).is_err(), "{text}");
        }
    }
}
