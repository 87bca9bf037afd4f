//! Words that make `plan` of a tool do something else than what it is asked for.

use std::ffi::OsStr;

/// Options of `plan` that `orch` gives itself, or that change what is printed.
const STEERING: [&str; 4] = ["out", "destroy", "refresh-only", "json"];

/// Returns the option that a word for `plan` gives, without its dashes, if `orch` has to decide on it:
/// what is planned, and where to.
pub fn steering(word: &OsStr) -> Option<&'static str> {
    let word = word.to_string_lossy();
    let option = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    let name = option.split('=').next()?;
    STEERING.into_iter().find(|&it| it == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_orch_says_what_is_planned_and_where_to() {
        let cases = [
            ("-out=x", Some("out")),
            ("--out", Some("out")),
            ("-destroy", Some("destroy")),
            ("--destroy=true", Some("destroy")),
            ("-refresh-only", Some("refresh-only")),
            ("-json", Some("json")),
            ("-refresh=false", None),
            ("-target=-destroy", None),
            ("-var=out=1", None),
            ("destroy", None),
            ("-", None),
            ("", None),
        ];
        for (word, expected) in cases {
            assert_eq!(steering(OsStr::new(word)), expected, "{word}");
        }
    }
}
