//! Which commands are recorded: `record { apply = ["make deploy"] }`.

use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

use super::RECORD;
use super::values::Values;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;

/// What a recorded command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recorded {
    /// It brings about what the configuration says.
    Apply,
    /// It removes what is there.
    Destroy,
    /// It does something by halves, and is not recorded.
    Never,
}

/// All patterns: the built-in ones and those of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPatterns(Vec<(Pattern, Recorded)>);

/// A command: the program's file name, the arguments that follow it, and options anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    text: String,
    program: String,
    words: Vec<String>,
    /// Without the dashes in front.
    options: Vec<String>,
}

/// The programs that read `TF_CLI_ARGS`.
const TERRAFORM: [&str; 3] = ["terraform", "tofu", TERRAGRUNT];

const TERRAGRUNT: &str = "terragrunt";

/// How many words of Terragrunt's may be the subcommand.
const MAX_SUBCOMMANDS: usize = 4;

/// Options with which an apply does only a part, or only prints something.
const PARTIAL: [&str; 8] = [
    "-target",
    "-target-file",
    "-exclude",
    "-exclude-file",
    "-refresh-only",
    "-help",
    "-h",
    "-version",
];

impl Pattern {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut words = text.split_whitespace();
        let program = words.next().ok_or("it is empty")?;
        if program.contains(['/', '\\']) {
            return Err("the program is named without its directory");
        }
        if program.starts_with('-') {
            return Err("the first word is the program");
        }
        let (options, words): (Vec<&str>, Vec<&str>) =
            words.partition(|word| word.starts_with('-'));
        let options: Vec<String> = options
            .into_iter()
            .map(|option| bare(option).to_owned())
            .collect();
        if options
            .iter()
            .any(|option| option.is_empty() || option.contains('='))
        {
            return Err("an option is written without its value");
        }
        Ok(Pattern {
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            program: program.to_owned(),
            words: words.into_iter().map(str::to_owned).collect(),
            options,
        })
    }

    /// Returns what two patterns have in common that match the same commands.
    fn meaning(&self) -> (&str, &[String], Vec<&str>) {
        let mut options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        options.sort_unstable();
        options.dedup();
        (&self.program, &self.words, options)
    }

    fn size(&self) -> usize {
        self.words.len() + self.options.len()
    }

    fn matches(&self, program: &str, arguments: &[String]) -> bool {
        let is_option = |argument: &&String| argument.starts_with('-');
        let mut words = arguments.iter().filter(|argument| !is_option(argument));
        let options = arguments.iter().filter(is_option);
        self.program == program
            && self.words.iter().all(|wanted| words.next() == Some(wanted))
            && self.options.iter().all(|wanted| {
                let name = |option: &String| bare(option).split('=').next() == Some(wanted);
                options.clone().any(name)
            })
    }
}

/// Takes off the dashes: `-destroy` and `--destroy` are the same.
fn bare(option: &str) -> &str {
    option
        .strip_prefix("--")
        .or_else(|| option.strip_prefix('-'))
        .unwrap_or(option)
}

impl RecordPatterns {
    /// Returns the patterns of a project that configures none.
    pub fn built_in() -> Self {
        RecordPatterns(BUILT_IN.clone())
    }

    /// Returns the pattern by which a command destroys what a stack has built, also in part; `None` if it does
    /// not. What the configuration says of the built-in patterns does not matter.
    pub fn destroys(
        &self,
        command: &[OsString],
        environment: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let (program, arguments) = words(command, environment)?;
        let patterns = self.0.iter().chain(BUILT_IN.iter());
        let mut destroying = patterns.filter(|(_, recorded)| *recorded == Recorded::Destroy);
        let found = destroying.find(|(pattern, _)| pattern.matches(&program, &arguments));
        if let Some((pattern, _)) = found {
            return Some(pattern.text.clone());
        }
        // `run --all destroy`, `run-all destroy`, `destroy-all`, `stack run destroy`, `run -- apply -destroy`
        let is = |word: &str| arguments.iter().any(|argument| argument == word);
        let is_applied =
            (is("apply") || is("apply-all")) && arguments.iter().any(|it| bare(it) == "destroy");
        (program == TERRAGRUNT && (is("destroy") || is("destroy-all") || is_applied))
            .then(|| format!("{TERRAGRUNT} destroy"))
    }

    /// Returns what a command is recorded as, and the pattern that it matches. `environment` looks up
    /// the environment that the command gets. Of the patterns that match, the one with the most words
    /// decides; among equals, what records less.
    pub fn recorded(
        &self,
        command: &[OsString],
        environment: impl Fn(&str) -> Option<String>,
    ) -> Option<(Recorded, &str)> {
        let (program, arguments) = words(command, environment)?;
        let matching = self
            .0
            .iter()
            .filter(|(pattern, _)| pattern.matches(&program, &arguments));
        let best = matching.max_by_key(|(pattern, recorded)| (pattern.size(), *recorded));
        best.map(|(pattern, recorded)| (*recorded, pattern.text.as_str()))
    }
}

/// Returns the program and the arguments of a command, with those that variables add.
fn words(
    command: &[OsString],
    environment: impl Fn(&str) -> Option<String>,
) -> Option<(String, Vec<String>)> {
    let (program, arguments) = command.split_first()?;
    let program = Path::new(program).file_name()?.to_string_lossy();
    let program = program.strip_suffix(".exe").unwrap_or(&program).to_owned();
    let arguments = arguments.iter();
    let mut arguments: Vec<String> = arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    if TERRAFORM.contains(&program.as_str()) {
        let n_words = if program == TERRAGRUNT {
            MAX_SUBCOMMANDS
        } else {
            1
        };
        arguments.extend(further(&arguments, n_words, environment));
        arguments.retain(|argument| !is_switched_off(argument));
    }
    Some((program, arguments))
}

/// Returns whether an argument only says that an option of Terraform is not meant: `-destroy=false`. If the option
/// is there as well, it counts.
fn is_switched_off(argument: &str) -> bool {
    let Some((name, value)) = bare(argument).split_once('=') else {
        return false;
    };
    let is_false = ["0", "f", "F", "false", "FALSE", "False"].contains(&value);
    is_false && ["destroy", "refresh-only"].contains(&name)
}

/// Returns the options that variables add to a command line of Terraform.
fn further(
    arguments: &[String],
    n_words: usize,
    environment: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    // Terragrunt has words of its own before the subcommand: `run --all apply`.
    let words = arguments.iter().filter(|word| !word.starts_with('-'));
    let words = words.take(n_words);
    let subcommand = |word: &String| word.strip_suffix("-all").unwrap_or(word).to_owned();
    let of_subcommands = words.map(|word| format!("TF_CLI_ARGS_{}", subcommand(word)));
    let names = ["TF_CLI_ARGS".to_owned()].into_iter().chain(of_subcommands);
    let texts = names.filter_map(|name| environment(&name));
    let words = texts.flat_map(|text| {
        let split = shell_words::split(&text);
        // What is not quoted well may still mean something.
        split.unwrap_or_else(|_| text.split_whitespace().map(str::to_owned).collect())
    });
    words.filter(|word| word.starts_with('-')).collect()
}

/// The built-in patterns.
static BUILT_IN: LazyLock<Vec<(Pattern, Recorded)>> = LazyLock::new(built_in);

fn built_in() -> Vec<(Pattern, Recorded)> {
    let mut patterns = Vec::new();
    for program in TERRAFORM {
        let mut add = |rest: &str, recorded| {
            let pattern = Pattern::parse(&format!("{program} {rest}"));
            patterns.push((pattern.expect("it is a pattern"), recorded));
        };
        add("apply", Recorded::Apply);
        add("destroy", Recorded::Destroy);
        add("apply -destroy", Recorded::Destroy);
        for option in PARTIAL {
            add(&format!("apply {option}"), Recorded::Never);
        }
    }
    patterns
}

/// Evaluates the patterns of the configuration, and adds them to the built-in ones.
pub(super) fn patterns(values: &mut Values<'_>) -> RecordPatterns {
    let mut own: Vec<(Pattern, Recorded, Span)> = Vec::new();
    for (name, recorded) in
        RECORD
            .into_iter()
            .zip([Recorded::Apply, Recorded::Destroy, Recorded::Never])
    {
        for written in values.texts(&format!("record.{name}")) {
            let pattern = match Pattern::parse(&written.value) {
                Ok(pattern) => pattern,
                Err(problem) => {
                    let message = format!("`{}` in `{name}` matches no command", written.value);
                    let help = "write the program's file name, its first arguments, and options: `\"make deploy\"`";
                    values.problems.push(
                        Diagnostic::error(Code::InvalidPattern, message)
                            .label(written.span, problem)
                            .help(help),
                    );
                    continue;
                }
            };
            let same = |(other, as_what, _): &&(Pattern, Recorded, Span)| {
                *as_what != recorded && other.meaning() == pattern.meaning()
            };
            if let Some((_, _, first)) = own.iter().find(same) {
                let message = format!("the pattern `{}` is in two lists", pattern.text);
                values.problems.push(
                    Diagnostic::error(Code::Conflict, message)
                        .label(written.span, "again here")
                        .label(*first, "first here")
                        .help("remove it from one of the lists"),
                );
                continue;
            }
            own.push((pattern, recorded, written.span));
        }
    }
    // What is configured replaces what is built in.
    let mut all = BUILT_IN.clone();
    all.retain(|(pattern, _)| {
        own.iter()
            .all(|(other, ..)| other.meaning() != pattern.meaning())
    });
    all.extend(
        own.into_iter()
            .map(|(pattern, recorded, _)| (pattern, recorded)),
    );
    RecordPatterns(all)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::values::HostVariables;
    use super::*;

    fn with(own: &[(&str, Recorded)]) -> RecordPatterns {
        let attributes = HashMap::new();
        let mut values = Values::new(&attributes, HostVariables::NotAsked);
        let RecordPatterns(mut all) = patterns(&mut values);
        for (text, recorded) in own {
            all.push((Pattern::parse(text).unwrap(), *recorded));
        }
        RecordPatterns(all)
    }

    fn recorded<'p>(
        patterns: &'p RecordPatterns,
        command: &str,
        variables: &[(&str, &str)],
    ) -> Option<(Recorded, &'p str)> {
        let command = shell_words::split(command).unwrap();
        let command: Vec<OsString> = command.into_iter().map(OsString::from).collect();
        patterns.recorded(&command, |name| {
            let mut variables = variables.iter();
            let found = variables.find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn commands_of_terraform_are_recorded_without_configuration() {
        let patterns = with(&[]);
        let table = [
            ("terraform apply", Some(Recorded::Apply)),
            (
                "/opt/bin/terraform apply -auto-approve plan",
                Some(Recorded::Apply),
            ),
            ("terraform.exe apply", Some(Recorded::Apply)),
            ("tofu -chdir=x apply", Some(Recorded::Apply)),
            ("terragrunt --non-interactive apply", Some(Recorded::Apply)),
            ("terraform destroy", Some(Recorded::Destroy)),
            ("terraform apply -destroy", Some(Recorded::Destroy)),
            ("terraform apply -destroy=true", Some(Recorded::Destroy)),
            ("terraform apply -destroy=false", Some(Recorded::Apply)),
            ("tofu apply --destroy=0 -destroy", Some(Recorded::Destroy)),
            ("terraform apply -refresh-only=false", Some(Recorded::Apply)),
            (
                "tofu apply --destroy -auto-approve",
                Some(Recorded::Destroy),
            ),
            ("terraform apply -target=x", Some(Recorded::Never)),
            ("terraform apply -target x", Some(Recorded::Never)),
            ("terraform apply --refresh-only", Some(Recorded::Never)),
            ("tofu apply -exclude=x", Some(Recorded::Never)),
            ("tofu apply -target-file=x", Some(Recorded::Never)),
            ("terraform apply -help", Some(Recorded::Never)),
            ("terraform apply -destroy -target=x", Some(Recorded::Never)),
            ("terraform plan", None),
            ("terraform plan apply", None),
            ("terraform -help", None),
            ("terraform", None),
            ("sh -c 'terraform apply'", None),
            ("terraformer apply", None),
        ];
        for (command, wanted) in table {
            let found = recorded(&patterns, command, &[]);
            assert_eq!(found.map(|(recorded, _)| recorded), wanted, "{command}");
        }
    }

    #[test]
    fn variables_of_terraform_count_as_if_written() {
        let table = [
            (
                "terraform apply",
                "TF_CLI_ARGS",
                "-no-color",
                Recorded::Apply,
            ),
            (
                "terraform apply",
                "TF_CLI_ARGS_apply",
                "-target=x -no-color",
                Recorded::Never,
            ),
            (
                "terraform apply",
                "TF_CLI_ARGS",
                "-destroy",
                Recorded::Destroy,
            ),
            (
                "terraform apply",
                "TF_CLI_ARGS_plan",
                "-destroy",
                Recorded::Apply,
            ),
            ("make apply", "TF_CLI_ARGS", "-destroy", Recorded::Apply),
        ];
        let patterns = with(&[("make apply", Recorded::Apply)]);
        for (command, name, value, wanted) in table {
            let found = recorded(&patterns, command, &[(name, value)]);
            let found = found.map(|(recorded, _)| recorded);
            assert_eq!(found, Some(wanted), "{command} {name}={value}");
        }
    }

    #[test]
    fn the_pattern_with_the_most_words_decides() {
        let patterns = with(&[
            ("make deploy", Recorded::Apply),
            ("make deploy -n", Recorded::Never),
            ("make  deploy   down", Recorded::Destroy),
        ]);
        for (command, wanted) in [
            ("make deploy", Some((Recorded::Apply, "make deploy"))),
            ("make -j deploy all", Some((Recorded::Apply, "make deploy"))),
            ("make deploy -n", Some((Recorded::Never, "make deploy -n"))),
            (
                "make -n=1 deploy",
                Some((Recorded::Never, "make deploy -n")),
            ),
            (
                "make deploy down",
                Some((Recorded::Destroy, "make deploy down")),
            ),
            ("make all deploy", None),
            ("make", None),
        ] {
            assert_eq!(recorded(&patterns, command, &[]), wanted, "{command}");
        }
    }

    #[test]
    fn what_can_never_match_is_no_pattern() {
        for text in [
            "",
            "  ",
            "./make deploy",
            "-make",
            "make deploy -x=y",
            "make -",
        ] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }
}
