//! The recorded commands: `record { apply = ["make deploy"] }`.

use std::ffi::OsString;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::RECORD;
use super::values::Values;
use crate::diagnostic::{Code, Diagnostic};
use crate::project::tool_options::{TERRAGRUNT, TOOLS, is_switched_off, option, program_name};
use crate::project::tool_use::added_words;
use crate::source::Span;

/// How a command is recorded in the state. Journals and work orders record the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    Apply,
    Destroy,
    /// The configuration or a flag excludes it from recording.
    Never,
}

/// A command that is known to apply or destroy, or not to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecognizedCommand<'p> {
    pub recorded: RecordKind,
    pub pattern: &'p str,
    /// The options that the pattern names, without their dashes.
    pub options: &'p [String],
}

/// All patterns: the built-in ones and those of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPatterns(Vec<(RecordPattern, RecordKind)>);

/// A command: the program's file name, the arguments that follow it, and options anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RecordPattern {
    text: String,
    program: String,
    words: Vec<String>,
    /// Without the dashes in front.
    options: Vec<String>,
}

impl RecordPattern {
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
            .map(|word| {
                option(word).map_or("", |(name, value)| if value.is_none() { name } else { "" })
            })
            .map(str::to_owned)
            .collect();
        if options.iter().any(String::is_empty) {
            return Err("an option is written without its value");
        }
        Ok(RecordPattern {
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            program: program.to_owned(),
            words: words.into_iter().map(str::to_owned).collect(),
            options,
        })
    }

    /// Returns a form that is equal for patterns that match the same commands.
    fn meaning(&self) -> (&str, &[String], Vec<&str>) {
        let mut options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        options.sort_unstable();
        options.dedup();
        (&self.program, &self.words, options)
    }

    fn size(&self) -> usize {
        self.words.len() + self.options.len()
    }

    fn matches<'w>(
        &self,
        program: &str,
        arguments: impl Iterator<Item = &'w String> + Clone,
    ) -> bool {
        let is_option = |argument: &&String| argument.starts_with('-');
        let mut words = arguments.clone().filter(|argument| !is_option(argument));
        let options = arguments.filter(is_option);
        self.program == program
            && self.words.iter().all(|wanted| words.next() == Some(wanted))
            && self.options.iter().all(|wanted| {
                let is_same = |word: &String| option(word).is_some_and(|(name, _)| name == *wanted);
                options.clone().any(is_same)
            })
    }
}

impl RecordPatterns {
    pub fn built_in() -> Self {
        RecordPatterns(BUILT_IN.clone())
    }

    /// Returns the pattern by which a command destroys resources of a stack, possibly only some; `None` if it
    /// doesn't. Configured exceptions to the built-in patterns have no effect.
    pub fn destroys(
        &self,
        command: &[OsString],
        environment: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let command = CommandWords::of(command, environment)?;
        let patterns = self.0.iter().chain(BUILT_IN.iter());
        let mut destroying = patterns.filter(|(_, recorded)| *recorded == RecordKind::Destroy);
        if let Some((pattern, _)) = destroying.find(|(pattern, _)| command.matches(pattern)) {
            return Some(pattern.text.clone());
        }
        // `run --all destroy`, `run-all destroy`, `destroy-all`, `stack run destroy`, `run -- apply -destroy`
        let is = |word: &str| command.all().any(|argument| argument == word);
        let is_destroy =
            |word: &String| option(word).map_or(&**word, |(name, _)| name) == "destroy";
        let is_applied = (is("apply") || is("apply-all")) && command.all().any(is_destroy);
        let is_terragrunt = command.program == TERRAGRUNT;
        (is_terragrunt && (is("destroy") || is("destroy-all") || is_applied))
            .then(|| format!("{TERRAGRUNT} destroy"))
    }

    /// Returns how a command is recorded. `environment` looks up the command's environment. Of the patterns that
    /// match, the one with the most words decides; among equals, the one that records less.
    pub fn recognize(
        &self,
        command: &[OsString],
        environment: impl Fn(&str) -> Option<String>,
    ) -> Option<RecognizedCommand<'_>> {
        let words = CommandWords::of(command, environment)?;
        let matching = self.0.iter().filter(|(pattern, _)| words.matches(pattern));
        let best = matching.max_by_key(|(pattern, recorded)| (pattern.size(), *recorded));
        let (pattern, recorded) = best?;
        Some(RecognizedCommand {
            recorded: *recorded,
            pattern: &pattern.text,
            options: &pattern.options,
        })
    }
}

/// A command, as patterns see it.
struct CommandWords {
    program: String,
    /// Those that follow it, except for switches of Terraform that are switched off.
    arguments: Vec<String>,
    /// Those that variables add.
    added: Vec<String>,
}

impl CommandWords {
    fn of(command: &[OsString], environment: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let (program, arguments) = command.split_first()?;
        let program = program_name(program)?;
        let mut arguments: Vec<String> = arguments
            .iter()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        let mut added = Vec::new();
        if TOOLS.contains(&program.as_str()) {
            added = added_words(&program, &arguments, environment);
            arguments.retain(|argument| !is_switched_off(argument));
            added.retain(|argument| !is_switched_off(argument));
        }
        Some(CommandWords {
            program,
            arguments,
            added,
        })
    }

    /// Returns its words, and the options that variables add.
    fn all(&self) -> impl Iterator<Item = &String> + Clone {
        let options = self.added.iter().filter(|word| word.starts_with('-'));
        self.arguments.iter().chain(options)
    }

    fn matches(&self, pattern: &RecordPattern) -> bool {
        pattern.matches(&self.program, self.all())
    }
}

static BUILT_IN: LazyLock<Vec<(RecordPattern, RecordKind)>> = LazyLock::new(built_in);

fn built_in() -> Vec<(RecordPattern, RecordKind)> {
    let mut patterns = Vec::new();
    for program in TOOLS {
        let mut add = |rest: &str, recorded| {
            let pattern = RecordPattern::parse(&format!("{program} {rest}"));
            patterns.push((pattern.expect("it is a pattern"), recorded));
        };
        add("apply", RecordKind::Apply);
        add("destroy", RecordKind::Destroy);
        add("apply -destroy", RecordKind::Destroy);
    }
    patterns
}

/// The kind of recording of each list in `record`.
pub(super) const LISTS: [RecordKind; 3] =
    [RecordKind::Apply, RecordKind::Destroy, RecordKind::Never];

/// Evaluates some lists of patterns, and adds them to the built-in patterns.
pub(super) fn patterns(values: &mut Values<'_>, lists: &[RecordKind]) -> RecordPatterns {
    let mut own: Vec<(RecordPattern, RecordKind, Span)> = Vec::new();
    let wanted = RECORD.into_iter().zip(LISTS);
    for (name, recorded) in wanted.filter(|(_, recorded)| lists.contains(recorded)) {
        for written in values.texts(&format!("record.{name}")) {
            let pattern = match RecordPattern::parse(&written.value) {
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
            let same = |(other, as_what, _): &&(RecordPattern, RecordKind, Span)| {
                *as_what != recorded && other.meaning() == pattern.meaning()
            };
            if let Some((_, _, first)) = own.iter().find(same) {
                let message = format!("the pattern `{}` is in two lists", pattern.text);
                values.problems.push(
                    Diagnostic::error(Code::Conflict, message)
                        .again(written.span, *first)
                        .help("remove it from one of the lists"),
                );
                continue;
            }
            own.push((pattern, recorded, written.span));
        }
    }
    // Configured patterns replace built-in ones.
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
mod tests;
