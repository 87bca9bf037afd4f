//! The topics of `orch help`, beyond the help of single commands.
//!
//! A topic is a Markdown file beside this one; two end with a reference generated from the library.
//! [`markdown`] parses the topics' subset; [`text`] and [`roff`] write it for a terminal and as a
//! man page. [`command`] writes the man pages of commands.

mod command;
mod functions;
mod markdown;
mod roff;
mod text;

use std::fmt::Write as _;

use orch::diagnostic::Code;

pub(crate) use self::command::command_pages;
pub(crate) use self::text::TopicStyle;

/// The manual that all man pages belong to.
const MANUAL: &str = "Orch Manual";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    markdown: &'static str,
}

macro_rules! topics {
    ($($name:literal: $summary:literal,)*) => {
        [$(Topic {
            name: $name,
            summary: $summary,
            markdown: include_str!(concat!($name, ".md")),
        },)*]
    };
}

/// In reading order for a new user.
pub(crate) const TOPICS: [Topic; 41] = topics! {
    "selection": "Which stacks a command acts on",
    "changes": "Which stacks --changed selects, and the base",
    "triggers": "Stacks that count as changed, or not, without a change",
    "releases": "Stacks that --released selects for a new version of a module",
    "order": "Which stack runs before which, and references",
    "instances": "Several stacks in one directory",
    "environment": "The environment of commands",
    "expressions": "Expressions in configuration files, and globals",
    "parallel": "Several commands at once",
    "output": "Which output of commands a run shows",
    "failures": "After a command failed",
    "attempts": "Time limits, retries and exit statuses of commands",
    "ci": "Logs, annotations and jobs in CI systems",
    "signals": "The effect of Ctrl-C and other signals",
    "policies": "Rego files that start further stacks",
    "followups": "Stacks that policies start: plan, approval, retries",
    "resume": "Resuming a run, and the list of runs",
    "state": "The record of applied stacks: setup, status, the lock",
    "recording": "Recorded commands, and the commands of orch state",
    "plan": "One plan over all stacks, and the plan in a file",
    "apply": "Applying a plan, approval, destroying",
    "removal": "Destroying removed stacks, and moving stacks",
    "lifecycle": "Rules that protect stacks, ignore changes, replace",
    "conditions": "Checks before and after an apply",
    "generations": "Creating the new stack before the old one is destroyed",
    "drivers": "How a kind of stack is planned and applied",
    "pipelines": "Plan on a pull request, apply after the merge",
    "engines": "One run as the jobs of GitLab, GitHub, Buildkite or make",
    "safeguards": "States of the repository in which nothing runs",
    "reports": "The result of a run, as a file for people or programs",
    "journal": "The record of a run, line by line",
    "json": "The documents of --format json",
    "diagnostics": "The codes of problems in the configuration",
    "configuration": "Files, the stack block, settings, variables",
    "functions": "The functions that expressions can call",
    "terraform": "From root modules to stacks",
    "terramate": "From Terramate, and what differs",
    "terragrunt": "From Terragrunt, unit by unit",
    "spacelift": "From Spacelift and its trigger policies",
    "cfngin": "From CFNgin and its persistent graph",
    "exit-status": "Exit statuses",
};

impl Topic {
    pub(crate) fn find(name: &str) -> Option<&'static Topic> {
        TOPICS.iter().find(|topic| topic.name == name)
    }

    pub(crate) fn text(&self, width: usize, style: TopicStyle) -> String {
        text::render(&markdown::parse(&self.markdown()), width, style)
    }

    pub(crate) fn man_page(&self) -> Vec<u8> {
        roff::render(self, &markdown::parse(&self.markdown()))
    }

    fn markdown(&self) -> String {
        let mut markdown = self.markdown.to_owned();
        match self.name {
            "diagnostics" => {
                markdown += "\n| code | meaning |\n| --- | --- |\n";
                for code in Code::ALL {
                    _ = writeln!(markdown, "| `{code}` | {} |", code.description());
                }
            }
            "functions" => markdown += &functions::reference(),
            _ => {}
        }
        markdown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_use_no_markdown_that_is_not_understood() {
        for topic in &TOPICS {
            let plain = topic.text(80, TopicStyle::Plain);
            let blocks_aside = plain
                .lines()
                .filter(|line| !line.starts_with("    "))
                .collect::<Vec<_>>()
                .join("\n");
            let code_aside: String = blocks_aside.split('`').step_by(2).collect();
            for noise in ["**", "](", "\n#", "| --- |", "\\|"] {
                assert!(!code_aside.contains(noise), "{noise:?} in {}", topic.name);
            }
            for line in plain.lines().filter(|line| !line.starts_with("    ")) {
                assert!(line.chars().count() <= 80, "{}: {line}", topic.name);
            }
        }
    }

    #[test]
    fn topics_are_short() {
        for topic in &TOPICS {
            let length = topic.markdown.len();
            assert!(length <= 9 * 1024, "{}: {length} bytes", topic.name);
        }
        let length: usize = TOPICS.iter().map(|topic| topic.markdown.len()).sum();
        assert!(length <= 150 * 1024, "together: {length} bytes");
    }

    #[test]
    fn topics_refer_to_topics_that_exist() {
        for topic in &TOPICS {
            let markdown = topic.markdown();
            let mentions = markdown.split("`orch help ").skip(1);
            for name in mentions.filter_map(|rest| rest.split('`').next()) {
                assert!(Topic::find(name).is_some(), "{name} in {}", topic.name);
            }
        }
    }
}
