//! Command lines of the tools, Terraform, `OpenTofu` and Terragrunt: options that keep them from applying or
//! destroying a whole stack, and the plan file of an apply.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The programs of the tools, without the suffix that Windows gives them.
pub const TOOLS: [&str; 3] = ["terraform", "tofu", TERRAGRUNT];

pub const TERRAGRUNT: &str = "terragrunt";

/// Returns the name of a program, without its directory and the suffix that Windows gives it.
pub(crate) fn program_name(program: &OsStr) -> Option<String> {
    let name = Path::new(program).file_name()?.to_string_lossy();
    Some(name.strip_suffix(".exe").unwrap_or(&name).to_owned())
}

/// Options for a part of a stack.
const PARTIAL: [&str; 4] = ["target", "target-file", "exclude", "exclude-file"];

const DESTROY: &str = "destroy";

/// Options with which a command has a state of its own.
const STATES: [&str; 2] = ["state", "state-out"];

const MODES: [&str; 2] = [DESTROY, "refresh-only"];

/// Options with which a command only prints something, and succeeds.
const IDLE: [&str; 4] = ["help", "h", "version", "v"];

/// Options whose values are addresses of resources.
const ADDRESSES: [&str; 3] = ["target", "exclude", "replace"];

/// Options whose value may be the next word.
const WITH_VALUE: [&str; 13] = [
    "target",
    "target-file",
    "exclude",
    "exclude-file",
    "var",
    "var-file",
    "replace",
    "parallelism",
    "lock-timeout",
    "state",
    "state-out",
    "backup",
    "working-dir",
];

pub fn option(word: &str) -> Option<(&str, Option<&str>)> {
    let option = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    Some(match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    })
}

/// Returns whether a `plan` with these words leaves something out.
pub fn leaves_out(words: &[OsString]) -> bool {
    let mut words = words.iter().map(|word| word.to_string_lossy());
    words.any(|word| option(&word).is_some_and(|(name, _)| PARTIAL.contains(&name)))
}

/// Returns the options among the words of a `plan`. Only values that are addresses are kept: others may be secret.
pub fn shown_options(words: &[OsString]) -> Vec<String> {
    let mut words = words.iter().map(|word| word.to_string_lossy());
    let mut shown: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        let Some((name, value)) = option(&word) else {
            continue;
        };
        let value = match value {
            None if WITH_VALUE.contains(&name) => words.next(),
            value => value.map(Cow::Borrowed),
        };
        let address = value.filter(|_| ADDRESSES.contains(&name));
        let option = address.map_or(format!("-{name}"), |address| format!("-{name}={address}"));
        if !shown.contains(&option) {
            shown.push(option);
        }
    }
    shown
}

pub fn words_of(value: &str) -> Vec<String> {
    // Terraform refuses words with open quotes.
    shell_words::split(value)
        .unwrap_or_else(|_| value.split_whitespace().map(str::to_owned).collect())
}

/// Returns the first option in the value of such a variable, without its dashes, that changes the command of `orch`.
pub fn hidden_option(value: &str) -> Option<&'static str> {
    words_of(value).iter().find_map(|word| steers(word))
}

/// Returns the first option, without its dashes, with which a command applies or destroys only a part, or nothing.
pub(crate) fn partial_option<'w>(
    words: impl IntoIterator<Item = &'w String>,
) -> Option<&'static str> {
    let mut found = words.into_iter().filter_map(|word| {
        let has_state = || {
            STATES
                .into_iter()
                .find(|it| option(word).is_some_and(|(name, _)| name == *it))
        };
        steers(word)
            .filter(|name| *name != DESTROY)
            .or_else(has_state)
    });
    found.next()
}

/// Returns the option of an argument, without its dashes, if it changes the effect of the tool.
pub(crate) fn steers(word: &str) -> Option<&'static str> {
    let (name, _) = option(word)?;
    let mut switches = MODES.into_iter().chain(IDLE);
    let switch = switches.find(|it| *it == name && !is_switched_off(word));
    switch.or_else(|| PARTIAL.into_iter().find(|it| *it == name))
}

/// Returns whether a word switches an option off: `-destroy=false`.
pub(crate) fn is_switched_off(word: &str) -> bool {
    let Some((name, Some(value))) = option(word) else {
        return false;
    };
    let is_false = matches!(value, "false" | "0" | "f" | "F" | "FALSE" | "False");
    is_false && (MODES.contains(&name) || IDLE.contains(&name))
}

/// Returns the plan file of an apply: its first argument that is neither an option nor the value of one.
pub(crate) fn plan_file<'w>(words: impl IntoIterator<Item = &'w String>) -> Option<&'w String> {
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match option(word) {
            None => return Some(word),
            Some(("", None)) => return words.next(),
            Some((name, None)) if WITH_VALUE.contains(&name) => _ = words.next(),
            Some(_) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_or_an_exclusion_leaves_something_out() {
        let cases = [
            ("plan -input=false -out=x", false),
            ("plan -target=a.b", true),
            ("plan --target a.b", true),
            ("plan -exclude=a.b", true),
            ("plan -var target=x -targets", false),
            ("plan -var=x=-target", false),
        ];
        for (line, expected) in cases {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(leaves_out(&words), expected, "{line}");
        }
    }

    #[test]
    fn only_addresses_are_shown_with_an_option() {
        let cases = [
            (
                "-target=a.b --target c.d -target=a.b",
                "-target=a.b -target=c.d",
            ),
            (
                "-var=x=secret -var y=secret -replace a.b",
                "-var -replace=a.b",
            ),
            (
                "-refresh=false -lock-timeout 5m stray",
                "-refresh -lock-timeout",
            ),
            ("-target", "-target"),
        ];
        for (line, expected) in cases {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(shown_options(&words).join(" "), expected, "{line}");
        }
    }

    #[test]
    fn an_option_that_changes_what_is_asked_is_found_in_a_variable() {
        let cases = [
            ("-destroy", Some("destroy")),
            ("-lock=false --destroy=true", Some("destroy")),
            ("-destroy=false -refresh-only=0", None),
            ("-refresh-only", Some("refresh-only")),
            ("-lock=false '-target=a[\"b\"]'", Some("target")),
            ("-target=false", Some("target")),
            ("--exclude a.b", Some("exclude")),
            ("-exclude-file=x", Some("exclude-file")),
            ("-help", Some("help")),
            ("-v", Some("v")),
            ("-destroy 'open", Some("destroy")),
            ("-parallelism=3 -lock-timeout=5m", None),
            ("-var=x=-destroy -var-file=target", None),
            ("-refresh=false -no-color -input=false", None),
            ("destroy", None),
            ("", None),
        ];
        for (value, expected) in cases {
            assert_eq!(hidden_option(value), expected, "{value}");
        }
    }

    #[test]
    fn a_plan_file_is_neither_an_option_nor_the_value_of_one() {
        let cases = [
            ("-auto-approve", None),
            ("-auto-approve out.tfplan", Some("out.tfplan")),
            ("out.tfplan -no-color", Some("out.tfplan")),
            ("-var a=b", None),
            ("--var-file x.tfvars out", Some("out")),
            ("-var=a=b out", Some("out")),
            ("-lock-timeout 5m -parallelism 3", None),
            ("-- -odd", Some("-odd")),
            ("", None),
        ];
        for (line, expected) in cases {
            let words = words_of(line);
            assert_eq!(plan_file(&words).map(String::as_str), expected, "{line}");
        }
    }
}
