//! Marks with which a CI system folds sections of a log.
//!
//! Each mark is a line of its own. If a system knows only folded sections, an open section gets no
//! marks.

use std::time::{SystemTime, UNIX_EPOCH};

/// The CI system whose marks are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldingStyle {
    None,
    GitHub,
    GitLab,
    Azure,
    Buildkite,
    TeamCity,
}

impl FoldingStyle {
    /// Detects the CI system that shows the log from the environment.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_true =
            |name: &str| variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if is_true("GITHUB_ACTIONS") {
            FoldingStyle::GitHub
        } else if is_true("GITLAB_CI") {
            FoldingStyle::GitLab
        } else if is_true("TF_BUILD") {
            FoldingStyle::Azure
        } else if is_true("BUILDKITE") {
            FoldingStyle::Buildkite
        } else if variable("TEAMCITY_VERSION").is_some_and(|version| !version.is_empty()) {
            FoldingStyle::TeamCity
        } else {
            FoldingStyle::None
        }
    }

    /// Returns the lines before a section, which show its title, and those after it. `number` is
    /// unique within the run.
    pub fn marks(self, title: &str, is_open: bool, number: usize) -> (String, String) {
        let line = |text: String| (format!("{text}\n"), String::new());
        match self {
            FoldingStyle::GitHub if !is_open => (
                format!("::group::{}\n", escape_github(title)),
                "::endgroup::\n".to_owned(),
            ),
            FoldingStyle::Azure if !is_open => {
                (format!("##[group]{title}\n"), "##[endgroup]\n".to_owned())
            }
            FoldingStyle::TeamCity if !is_open => {
                let name = escape_teamcity(title);
                (
                    format!("##teamcity[blockOpened name='{name}']\n"),
                    format!("##teamcity[blockClosed name='{name}']\n"),
                )
            }
            FoldingStyle::GitLab => {
                // One process has one log, where names must be unique.
                let name = format!("orch_{}_{number}", std::process::id());
                let option = if is_open { "" } else { "[collapsed=true]" };
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default()
                    .as_secs();
                (
                    format!("\x1b[0Ksection_start:{now}:{name}{option}\r\x1b[0K{title}\n"),
                    format!("\x1b[0Ksection_end:{now}:{name}\r\x1b[0K\n"),
                )
            }
            FoldingStyle::Buildkite => {
                line(format!("{} {title}", if is_open { "+++" } else { "---" }))
            }
            FoldingStyle::None
            | FoldingStyle::GitHub
            | FoldingStyle::Azure
            | FoldingStyle::TeamCity => line(title.to_owned()),
        }
    }

    /// Returns the line that ends the last section, if sections otherwise end at the next one.
    pub fn after_all(self) -> &'static str {
        match self {
            FoldingStyle::Buildkite => "+++ orch: summary\n",
            _ => "",
        }
    }
}

fn escape_github(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn escape_teamcity(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '\'' | '[' | ']' => escaped.extend(['|', character]),
            '\n' => escaped.push_str("|n"),
            '\r' => escaped.push_str("|r"),
            ' '..='~' => escaped.push(character),
            other => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    escaped.push_str(&format!("|0x{unit:04x}"));
                }
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(variables: &[(&str, &str)]) -> FoldingStyle {
        FoldingStyle::detect(|name| {
            let mut variables = variables.iter();
            let variable = variables.find(|(known, _)| *known == name);
            variable.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn systems_are_known_by_their_variables() {
        assert_eq!(
            detected(&[("GITHUB_ACTIONS", "true")]),
            FoldingStyle::GitHub
        );
        assert_eq!(detected(&[("GITLAB_CI", "true")]), FoldingStyle::GitLab);
        assert_eq!(detected(&[("TF_BUILD", "True")]), FoldingStyle::Azure);
        assert_eq!(detected(&[("BUILDKITE", "true")]), FoldingStyle::Buildkite);
        assert_eq!(
            detected(&[("TEAMCITY_VERSION", "2025.1")]),
            FoldingStyle::TeamCity
        );
        assert_eq!(
            detected(&[("CI", "true"), ("GITHUB_ACTIONS", "false")]),
            FoldingStyle::None
        );
    }

    #[test]
    fn successes_are_folded_and_failures_open() {
        let marks = |folding: FoldingStyle, is_open| {
            let (before, after) = folding.marks("orch: /a", is_open, 7);
            (before, after)
        };
        let both = |before: &str, after: &str| (before.to_owned(), after.to_owned());
        assert_eq!(
            marks(FoldingStyle::GitHub, false),
            both("::group::orch: /a\n", "::endgroup::\n")
        );
        assert_eq!(
            marks(FoldingStyle::Azure, false),
            both("##[group]orch: /a\n", "##[endgroup]\n")
        );
        assert_eq!(
            marks(FoldingStyle::Buildkite, false),
            both("--- orch: /a\n", "")
        );
        assert_eq!(
            marks(FoldingStyle::Buildkite, true),
            both("+++ orch: /a\n", "")
        );
        assert_eq!(
            marks(FoldingStyle::TeamCity, false),
            both(
                "##teamcity[blockOpened name='orch: /a']\n",
                "##teamcity[blockClosed name='orch: /a']\n"
            )
        );
        for folding in [
            FoldingStyle::None,
            FoldingStyle::GitHub,
            FoldingStyle::Azure,
            FoldingStyle::TeamCity,
        ] {
            assert_eq!(marks(folding, true), both("orch: /a\n", ""));
        }
        let (before, after) = marks(FoldingStyle::GitLab, false);
        assert!(before.starts_with("\x1b[0Ksection_start:"), "{before}");
        assert!(
            before.ends_with("_7[collapsed=true]\r\x1b[0Korch: /a\n"),
            "{before}"
        );
        assert!(after.ends_with("_7\r\x1b[0K\n"), "{after}");
        assert!(!marks(FoldingStyle::GitLab, true).0.contains("collapsed"));
    }

    #[test]
    fn titles_cannot_break_out() {
        assert_eq!(escape_github("50%\r\n::error::x"), "50%25%0D%0A::error::x");
        assert_eq!(
            escape_teamcity("it's [a|b]\n\r ü\u{1f680}"),
            "it|'s |[a||b|]|n|r |0x00fc|0xd83d|0xde80"
        );
    }
}
