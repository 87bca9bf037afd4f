//! The effect of a command on Terraform, `OpenTofu` or Terragrunt, directly or through another program.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::tool_options::{
    TERRAGRUNT, TOOLS, is_switched_off, option, partial_option, plan_file, program_name, words_of,
};

/// How many words of Terragrunt's may be the subcommand.
const MAX_SUBCOMMANDS: usize = 4;

/// How deeply the words of one program may be a script of another.
const MAX_DEPTH: usize = 4;

const ACTIONS: [&str; 4] = ["apply", "destroy", "apply-all", "destroy-all"];

/// Options that choose the directory.
const DIRECTORY: [&str; 3] = ["chdir", "working-dir", "terragrunt-working-dir"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    pub tool: String,
    pub program: String,
    /// Whether the command is that of the tool itself.
    pub is_direct: bool,
    pub variables: Vec<(String, String)>,
    /// The directories that it changes to, one after the other.
    directories: Vec<String>,
    /// The words that follow the program, without switches that are switched off.
    arguments: Vec<String>,
    /// The words that variables add to them.
    added: Vec<String>,
    /// The position of the subcommand in the arguments.
    action: usize,
    is_scripted: bool,
}

/// A command without operators of a shell.
#[derive(Default)]
struct SimpleCommand {
    words: Vec<String>,
    is_scripted: bool,
}

impl ToolUse {
    /// Returns the applies and destroys in a command. `environment` looks up the environment that it gets.
    pub fn all(command: &[OsString], environment: impl Fn(&str) -> Option<String>) -> Vec<Self> {
        let mut commands = vec![SimpleCommand::default()];
        let words = command
            .iter()
            .map(|word| word.to_string_lossy().into_owned());
        expand(words.collect(), 0, &mut commands);
        let mut variables: Vec<(String, String)> = Vec::new();
        let mut directories = Vec::new();
        let mut uses = Vec::new();
        for SimpleCommand { words, is_scripted } in commands {
            let tool = words.iter().position(|word| tool_name(word).is_some());
            let (before, after) = words.split_at(tool.unwrap_or(words.len()));
            variables.extend(before.iter().filter_map(|word| assignment(word)));
            if let [.., cd, directory] = before
                && cd == "cd"
                && tool.is_none()
            {
                directories.push(directory.clone());
            }
            let Some((program, arguments)) = after.split_first() else {
                continue;
            };
            let Some((tool, action)) = tool_name(program).and_then(|tool| {
                let action = action(&tool, arguments)?;
                Some((tool, action))
            }) else {
                continue;
            };
            // `env -C DIR`
            let of_wrapper = before
                .windows(2)
                .filter(|pair| pair[0] == "-C")
                .map(|pair| &pair[1]);
            let variable = |name: &str| {
                let own = variables.iter().rev().find(|(it, _)| it == name);
                own.map(|(_, value)| value.clone())
                    .or_else(|| environment(name))
            };
            let mut added = added_words(&tool, arguments, variable);
            added.retain(|word| !is_switched_off(word));
            let (before_action, after_action) = arguments.split_at(action);
            let is_on = |word: &&String| !is_switched_off(word);
            let before_action: Vec<String> = before_action.iter().filter(is_on).cloned().collect();
            let action = before_action.len();
            let after_action = after_action.iter().filter(is_on).cloned();
            uses.push(ToolUse {
                program: program.clone(),
                is_direct: before.is_empty() && !is_scripted,
                variables: variables.clone(),
                directories: directories.iter().chain(of_wrapper).cloned().collect(),
                arguments: before_action.into_iter().chain(after_action).collect(),
                added,
                action,
                is_scripted,
                tool,
            });
        }
        uses
    }

    /// Returns the first option, without its dashes, with which it applies or destroys only a part, nothing, or
    /// something outside of the stack in this directory. Expected options don't count.
    pub fn partial(
        &self,
        directory: &Path,
        is_expected: impl Fn(&str) -> bool,
    ) -> Option<&'static str> {
        let added = self.added.iter().filter(|word| word.starts_with('-'));
        let words = self.arguments.iter().chain(added);
        let leaves_out = words.filter_map(|word| partial_option([word]));
        let elsewhere = self.elsewhere(directory);
        let mut found = leaves_out.chain(elsewhere);
        found.find(|option| !is_expected(option))
    }

    fn elsewhere(&self, directory: &Path) -> Option<&'static str> {
        let is_inside = self.directory(directory).starts_with(directory);
        let words = || self.arguments.iter().filter_map(|word| option(word));
        let chosen = DIRECTORY
            .into_iter()
            .find(|name| words().any(|(it, _)| it == *name));
        (!is_inside).then_some(chosen.unwrap_or("chdir"))
    }

    pub fn directory(&self, directory: &Path) -> PathBuf {
        let words = self
            .arguments
            .windows(2)
            .filter_map(|pair| chosen_directory(&pair[0], &pair[1]));
        let last = self
            .arguments
            .last()
            .and_then(|word| chosen_directory(word, ""));
        let chosen = words.chain(last.filter(|it| !it.is_empty()));
        let changes = self.directories.iter().map(String::as_str).chain(chosen);
        let mut place = directory.to_owned();
        for part in changes.flat_map(|change| Path::new(change).components()) {
            match part {
                Component::CurDir => {}
                Component::ParentDir => _ = place.pop(),
                other => place.push(other),
            }
        }
        place
    }

    /// Returns the plan file that it applies, if it applies one.
    pub fn plan_file(&self) -> Option<&str> {
        let is_apply = self.arguments[self.action] == "apply";
        let words = self.added.iter().chain(&self.arguments[self.action + 1..]);
        is_apply.then(|| plan_file(words))?.map(String::as_str)
    }

    /// Returns the command that prints that file in the tool's own JSON; `None` if a script chooses the file.
    pub fn show(&self) -> Option<Vec<OsString>> {
        let file = self.plan_file().filter(|_| !self.is_scripted)?;
        let before = self.arguments[..self.action].iter().map(String::as_str);
        let words = before.chain(["show", "-json", file]);
        Some(words.map(OsString::from).collect())
    }
}

/// Returns the apply or destroy of a tool that a command seems to lead to: behind `env`, `nice` or `sh -c`, or a
/// command that Terragrunt runs in several units.
pub fn wrapped_tool(command: &[OsString]) -> Option<String> {
    let uses = ToolUse::all(command, |_| None);
    let found = uses.first()?;
    Some(format!("{} {}", found.tool, found.arguments[found.action]))
}

pub(super) fn added_words(
    tool: &str,
    arguments: &[String],
    environment: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    // Terragrunt has its own arguments before the subcommand: `run --all apply`.
    let n_words = if tool == TERRAGRUNT {
        MAX_SUBCOMMANDS
    } else {
        1
    };
    let words = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .take(n_words);
    let subcommand = |word: &String| word.strip_suffix("-all").unwrap_or(word).to_owned();
    let of_subcommands = words.map(|word| format!("TF_CLI_ARGS_{}", subcommand(word)));
    let names = ["TF_CLI_ARGS".to_owned()].into_iter().chain(of_subcommands);
    let texts = names.filter_map(|name| environment(&name));
    texts.flat_map(|text| words_of(&text)).collect()
}

fn tool_name(program: &str) -> Option<String> {
    program_name(OsStr::new(program)).filter(|name| TOOLS.contains(&name.as_str()))
}

/// Returns the position of the subcommand of a tool, if that applies or destroys.
fn action(tool: &str, arguments: &[String]) -> Option<usize> {
    let is_action = |word: &String| ACTIONS.contains(&word.as_str());
    if tool == TERRAGRUNT {
        return arguments.iter().position(is_action);
    }
    let first = arguments.iter().position(|word| !word.starts_with('-'))?;
    is_action(&arguments[first]).then_some(first)
}

fn chosen_directory<'w>(word: &'w str, next: &'w str) -> Option<&'w str> {
    let (name, value) = option(word)?;
    let is_chosen = DIRECTORY.contains(&name);
    is_chosen.then(|| value.unwrap_or(next))
}

/// Returns the variable that an argument sets, and its value.
fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// Adds words to the last of some commands. Words before a tool that look like a shell script become commands.
fn expand(words: Vec<String>, depth: usize, commands: &mut Vec<SimpleCommand>) {
    let mut has_tool = false;
    for word in words {
        let is_script = |c: char| c.is_whitespace() || ";&|()`<>".contains(c);
        if has_tool || depth == MAX_DEPTH || !word.contains(is_script) {
            has_tool |= tool_name(&word).is_some();
            if let Some(last) = commands.last_mut() {
                last.words.push(word);
            }
            continue;
        }
        for (number, part) in parts(&word).into_iter().enumerate() {
            if number > 0 {
                commands.push(SimpleCommand::default());
            }
            let words = words_of(&part);
            // A word with spaces in it is its own only word.
            let depth = if words.len() == 1 {
                MAX_DEPTH
            } else {
                depth + 1
            };
            if let Some(last) = commands.last_mut() {
                last.is_scripted = true;
            }
            expand(words, depth, commands);
        }
    }
}

/// Splits a shell script at its operators. Redirections are left out.
fn parts(script: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut quote, mut before) = (None, ' ');
    let mut chars = script.chars();
    while let Some(c) = chars.next() {
        let mut add = |c: char| parts.last_mut().expect("there is one").push(c);
        match (quote, c) {
            (None | Some('"'), '\\') => {
                add(c);
                chars.next().into_iter().for_each(add);
            }
            (Some(open), _) => {
                add(c);
                quote = quote.filter(|_| c != open);
            }
            (None, '\'' | '"') => {
                add(c);
                quote = Some(c);
            }
            (None, '<' | '>') => add(' '),
            (None, '&') if matches!(before, '<' | '>') => add(' '),
            (None, ';' | '&' | '|' | '(' | ')' | '`' | '\n') => parts.push(String::new()),
            (None, _) => add(c),
        }
        before = c;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        words_of(line).into_iter().map(OsString::from).collect()
    }

    #[test]
    fn a_tool_is_found_behind_a_wrapper() {
        let cases = [
            ("env terraform apply", Some("terraform apply")),
            ("nice -n 5 /opt/bin/tofu destroy", Some("tofu destroy")),
            (
                "aws-vault exec prod -- terraform apply -auto-approve",
                Some("terraform apply"),
            ),
            (
                "sh -c 'cd x && terraform init; terraform apply'",
                Some("terraform apply"),
            ),
            ("bash -c '(terraform apply)'", Some("terraform apply")),
            ("env -S 'terraform apply'", Some("terraform apply")),
            ("sh -c '\"terraform\" apply'", Some("terraform apply")),
            ("sh -c 'terraform apply>/dev/null'", Some("terraform apply")),
            ("sh -c 'x=$(terraform apply)'", Some("terraform apply")),
            (
                "sh -c 'terraform apply 2>&1|tee x'",
                Some("terraform apply"),
            ),
            (
                "sh -c \"bash -c 'terraform destroy'\"",
                Some("terraform destroy"),
            ),
            ("terragrunt run --all apply", Some("terragrunt apply")),
            ("terragrunt run-all apply", Some("terragrunt apply")),
            ("sh -c 'terraform plan'", None),
            ("sh -c 'terraform plan; echo apply'", None),
            ("sh -c 'echo \"terraform apply\"'", Some("terraform apply")),
            ("make apply", None),
            ("kubectl apply -f terraform.yaml", None),
            ("terraform plan", None),
            ("terraform state rm apply", None),
        ];
        for (line, expected) in cases {
            assert_eq!(wrapped_tool(&words(line)).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_partial_or_empty_use_of_a_tool_is_found_behind_a_wrapper() {
        let cases = [
            ("terraform destroy", None),
            ("terraform destroy -target=x", Some("target")),
            ("env terraform destroy -target=x", Some("target")),
            ("env terraform -help destroy", Some("help")),
            ("env terraform destroy -refresh-only=false", None),
            ("sh -c 'terraform apply -target=x'", Some("target")),
            ("sh -c 'terraform version && terraform apply'", None),
            ("sh -c 'terraform -version && terraform apply'", None),
            ("sh -c 'terraform apply 2>&1 -target=x'", Some("target")),
            (
                "env TF_CLI_ARGS_destroy=-target=x terraform destroy",
                Some("target"),
            ),
            ("env TF_CLI_ARGS_destroy=-target=x terraform apply", None),
            (
                "sh -c 'export TF_CLI_ARGS=-exclude=x; terraform apply'",
                Some("exclude"),
            ),
            ("terraform apply -state=other", Some("state")),
            ("env terraform apply -state-out other", Some("state-out")),
            ("terraform -chdir=. apply", None),
            ("terraform -chdir=src apply", None),
            ("terraform -chdir=../app apply", None),
            ("terraform -chdir=../other destroy", Some("chdir")),
            ("terraform -chdir=/other destroy", Some("chdir")),
            ("sh -c 'cd ../other && terraform destroy'", Some("chdir")),
            ("sh -c 'cd src && terraform -chdir=.. destroy'", None),
            ("env -C ../other terraform destroy", Some("chdir")),
            ("sh -c 'git -C ../other pull; terraform apply'", None),
            (
                "terragrunt --working-dir ../other destroy",
                Some("working-dir"),
            ),
            ("terragrunt destroy --terragrunt-working-dir=sub", None),
        ];
        for (line, expected) in cases {
            let found = ToolUse::all(&words(line), |_| None)
                .iter()
                .find_map(|it| it.partial(Path::new("/repo/app"), |_| false));
            assert_eq!(found, expected, "{line}");
        }
        let uses = ToolUse::all(&words("env terraform destroy"), |name| {
            (name == "TF_CLI_ARGS_destroy").then(|| "-target=x".to_owned())
        });
        let directory = Path::new("/repo/app");
        assert_eq!(uses[0].partial(directory, |_| false), Some("target"));
        assert_eq!(uses[0].partial(directory, |it| it == "target"), None);
    }

    #[test]
    fn a_plan_file_is_shown_by_the_tool_that_applies_it() {
        let cases = [
            ("terraform apply", None),
            ("terraform apply d", Some("show -json d")),
            (
                "terraform -chdir=x apply -auto-approve d",
                Some("-chdir=x show -json d"),
            ),
            ("env terraform apply d", Some("show -json d")),
            ("sh -c 'terraform apply d'", None),
            ("terraform destroy d", None),
            ("terraform apply -var a=b", None),
            ("terraform apply -no-color 'a b'", Some("show -json a b")),
            ("tofu apply", Some("show -json p")),
        ];
        let variable = |name: &str| (name == "TF_CLI_ARGS_apply").then(|| "-no-color".to_owned());
        for (line, expected) in cases {
            let is_tofu = line.starts_with("tofu");
            let uses = ToolUse::all(&words(line), |name| {
                variable(name).map(|words| if is_tofu { format!("{words} p") } else { words })
            });
            let show = uses[0].show().map(|words| {
                let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
                words.join(" ")
            });
            assert_eq!(show.as_deref(), expected, "{line}");
        }
    }
}
