//! The explanation of one stack, as text and as JSON.

mod after;
mod json;
mod text;

use super::changes::{file_text, trigger_text};
use super::reasons::{direction, directory_text, step_text, unreleased_text};
use crate::change::trigger::Trigger;
use crate::change::{Changes, Use, WhyUncounted};
use crate::git::ChangedFile;
use crate::path::KeyFilter;
use crate::pattern::FilePattern;
use crate::project::Project;
use crate::project::policy::PolicyBlock;
use crate::project::stack::{Stack, StackIndex};
use crate::run::evaluated::TurnState;
use crate::selection::select::{DirectoryMatch, Obstacle};
use crate::selection::why::{Alternative, BlockingFlag, Why, WhyQuestion};
pub use after::{OrderExplanation, write_why_after, write_why_after_json};
pub(super) use json::UsedJson;
pub use json::write_why_json;
use serde::Serialize;
pub use text::write_why;

pub struct Story<'a> {
    pub question: &'a WhyQuestion<'a>,
    pub why: &'a Why,
    /// A file that would trigger the stack if it counted.
    pub uncounted_trigger: Option<&'a ChangedFile>,
    /// The variables of `run.env` that `ignore_changes` excludes.
    pub ignored_variables: &'a [Use],
    /// The references to files whose paths cannot be determined.
    pub unknown_paths: &'a [Use],
    pub policies: Vec<&'a PolicyBlock>,
    /// The policies that ask for the stack when others end.
    pub starters: &'a [PolicyStarter],
}

pub struct PolicyStarter {
    /// Its number in the project.
    pub policy: usize,
    /// The stacks after which it asks for the stack, each with how it has ended.
    pub after: Vec<(StackIndex, TurnState)>,
}

impl<'a> Story<'a> {
    fn stack(&self) -> &'a Stack {
        &self.question.project.stacks[self.question.stack]
    }

    fn is_selected(&self) -> bool {
        self.question.selection.contains(self.question.stack)
    }

    fn changes(&self) -> Option<&'a Changes> {
        self.question.query.changed.as_ref()
    }

    /// Returns whether the stack would count as changed without triggers.
    fn has_changed(&self) -> bool {
        let stack = &self.question.stack;
        self.changes().is_some_and(|changes| {
            changes.stacks.contains_key(stack) || changes.triggered.contains_key(stack)
        })
    }

    fn obstacle_text(&self, obstacle: &Obstacle) -> String {
        match obstacle {
            Obstacle::Unchanged => match self.changes() {
                Some(changes) => format!("has not changed since {}", changes.since.base),
                None => "has not changed since its last apply".to_owned(),
            },
            Obstacle::Dismissed(triggers) => self.dismissed_text(triggers),
            Obstacle::Unreleased(released) => unreleased_text(released),
            Obstacle::Status(status) => format!("its status is {}", status.word()),
            Obstacle::Directory(directory, scope) => {
                format!("not {}", directory_text(directory, *scope))
            }
            Obstacle::Globs => {
                let globs: Vec<String> = self
                    .question
                    .query
                    .globs
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                format!("does not match --match {}", globs.join(" or "))
            }
            Obstacle::Unnamed(source) => format!("not named in {source}"),
            Obstacle::Tags => {
                let filters: Vec<String> = self
                    .question
                    .query
                    .tags
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                let tags: Vec<&str> = self.stack().tags().collect();
                let has = if tags.is_empty() {
                    "it has no tags".to_owned()
                } else {
                    format!("its tags: {}", tags.join(", "))
                };
                format!("does not match --tags {} ({has})", filters.join(" or "))
            }
            Obstacle::NoTags(tags) => format!("matches --no-tags {}", tags.join(",")),
            Obstacle::Excluded(globs) => format!("matches --exclude {}", globs.join(" and ")),
            Obstacle::Only(reach) => {
                format!("left out by {reach}; it would be selected without that flag")
            }
            Obstacle::Unreached(reaches) => {
                let flags: Vec<String> = reaches.iter().map(ToString::to_string).collect();
                format!("it would be selected without {}", flags.join(" and "))
            }
            Obstacle::Neighbour(reach, step) => {
                let Project {
                    stacks, sources, ..
                } = self.question.project;
                format!("{} ({reach})", step_text(*reach, step, stacks, sources))
            }
        }
    }

    /// Returns which change would make the stack count as changed.
    fn change_text(&self) -> String {
        let mut text = "a change of one of its inputs".to_owned();
        let uncounted = self.why.inputs.iter().flat_map(|input| &input.uncounted);
        let mut off = uncounted.filter(|change| matches!(change.why, WhyUncounted::Off(_)));
        if let Some(change) = off.next() {
            let file = change.file.path.relative();
            text += &format!(" (commit {file}, which does not count yet)");
        }
        if let Some(trigger) = self.uncounted_trigger {
            let trigger = file_text(trigger);
            return format!("{text}, or committing the trigger {trigger}");
        }
        let word = shell_words::quote(self.stack().path.as_str());
        text += &format!(", or `orch trigger {word}`");
        let is_off = |changes: &Changes| changes.uncounted.counted.untracked.is_some();
        if self.changes().is_some_and(is_off) {
            text += ", whose file counts when it is committed";
        }
        text
    }

    /// Returns that triggers make the stack count as unchanged.
    fn dismissed_text(&self, triggers: &[Trigger]) -> String {
        let although = if self.has_changed() {
            ", although there are some"
        } else {
            ""
        };
        let triggers: Vec<String> = triggers.iter().map(trigger_text).collect();
        format!("its changes are ignored{although}: {}", triggers.join("; "))
    }

    /// Returns the flag or change that lets the stack pass a filter; `None` if the obstacle is no
    /// filter.
    fn remedy(&self, obstacle: &Obstacle) -> Option<FilterRemedy> {
        let path = self.stack().path.as_str();
        let directory = self.stack().path.directory();
        let change = self.change_text();
        let flag = match obstacle {
            Obstacle::Globs => self.exact_glob().map(|glob| ("--match", glob)),
            Obstacle::Tags => self.all_tags().map(|tags| ("--tags", tags)),
            Obstacle::Status(status) => Some(("--status", status.word().to_owned())),
            _ => None,
        };
        let typed =
            |(flag, value): &(&str, String)| format!("{flag} {}", shell_words::quote(value));
        let detail = match obstacle {
            Obstacle::Unchanged => change,
            Obstacle::Status(status) => format!("--status {}", status.word()),
            Obstacle::Dismissed(triggers) => {
                let files = triggers.iter().map(|trigger| trigger.file.relative());
                let none: Vec<String> = files.map(|file| format!("no trigger {file}")).collect();
                let none = none.join(" and ");
                if self.has_changed() {
                    none
                } else {
                    format!("{none}, and {change}")
                }
            }
            Obstacle::Directory(_, DirectoryMatch::Recursive) => {
                format!("running orch in {directory}, or in a directory above it")
            }
            Obstacle::Directory(_, DirectoryMatch::Exact) => {
                format!("running orch in {directory}, or above it without --no-recursive")
            }
            Obstacle::Globs => match &flag {
                Some(flag) => typed(flag),
                None => format!("--match {path}, which all stacks match"),
            },
            Obstacle::Unnamed(source) => format!("a line {path} in {source}"),
            Obstacle::Tags => match &flag {
                Some(flag) => typed(flag),
                None => "no --tags, since it has none".to_owned(),
            },
            Obstacle::NoTags(tags) => format!("no --no-tags {}", tags.join(",")),
            Obstacle::Unreleased(released) => {
                format!("a policy for module:{} that names it", released.module)
            }
            Obstacle::Excluded(_)
            | Obstacle::Only(_)
            | Obstacle::Neighbour(..)
            | Obstacle::Unreached(_) => return None,
        };
        Some(FilterRemedy {
            kind: obstacle_kind(obstacle),
            detail,
            flag: flag.map(|(flag, value)| format!("{flag}={value}")),
        })
    }

    /// Returns a glob that the stack matches and no other stack; `None` for the root, which has no
    /// name that a glob could match.
    fn exact_glob(&self) -> Option<String> {
        let stacks = &self.question.project.stacks;
        let path = &self.stack().path;
        let glob = FilePattern::escape(path.directory());
        if let Some(key) = path.key() {
            return Some(format!("{glob}{}", KeyFilter::One(key.clone())));
        }
        let is_alone = stacks.at_or_below(path.directory()).nth(1).is_none();
        if is_alone || FilePattern::is_pattern(&glob) {
            return Some(glob);
        }
        // A plain path would match the nested stacks as well.
        let end = glob.rfind(|c: char| c.is_ascii_alphanumeric())?;
        let (before, rest) = glob.split_at(end);
        let (letter, after) = rest.split_at(1);
        Some(format!("{before}[{letter}]{after}"))
    }

    /// Returns a filter for stacks that have all tags of this one; `None` if it has none.
    fn all_tags(&self) -> Option<String> {
        let tags: Vec<&str> = self.stack().tags().filter(|tag| !tag.is_empty()).collect();
        (!tags.is_empty()).then(|| tags.join(":"))
    }

    /// Returns the changes that let the stack pass all filters; empty if it passes them or is
    /// selected.
    fn remedies(&self) -> Vec<FilterRemedy> {
        let obstacles = self.why.obstacles.iter();
        obstacles
            .filter_map(|obstacle| self.remedy(obstacle))
            .collect()
    }

    fn way_text(&self, way: &Alternative) -> String {
        let Project {
            stacks, sources, ..
        } = self.question.project;
        match way {
            Alternative::Wants(by, span) => {
                format!(
                    "selecting {}, which wants it ({})",
                    stacks[*by].path,
                    sources.line(*span)
                )
            }
            Alternative::WantedBy(named, span) => format!(
                "selecting {}, which it names in `wanted_by` ({})",
                stacks[*named].path,
                sources.line(*span)
            ),
            Alternative::Neighbour(reach, selected, instead) => {
                let direction = direction(reach.towards);
                let selected = &stacks[*selected].path;
                let instead = instead.map_or_else(String::new, |it| format!(" instead of {it}"));
                format!("{reach}{instead}, since it runs {direction} {selected}, which is selected")
            }
        }
    }
}

/// A change that lets a stack pass a filter.
#[derive(Serialize)]
struct FilterRemedy {
    kind: &'static str,
    detail: String,
    /// The flag for that; `null` if no flag helps.
    flag: Option<String>,
}

/// Returns the word for an obstacle in JSON.
fn obstacle_kind(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Unchanged => "changed",
        Obstacle::Dismissed(_) => "ignore_change",
        Obstacle::Unreleased(_) => "policy",
        Obstacle::Status(_) => "status",
        Obstacle::Directory(..) => "directory",
        Obstacle::Globs => "match",
        Obstacle::Unnamed(_) => "named",
        Obstacle::Tags => "tags",
        Obstacle::NoTags(_) => "no_tags",
        Obstacle::Excluded(_) => "exclude",
        Obstacle::Only(_) => "only",
        Obstacle::Neighbour(..) => "exclude_neighbour",
        Obstacle::Unreached(_) => "unreached",
    }
}

/// Returns a flag that excludes stacks, as text.
fn flag_text(flag: &BlockingFlag) -> String {
    match flag {
        BlockingFlag::Exclude(written) => format!("--exclude {written}"),
        BlockingFlag::Neighbours(reach) => reach.to_string(),
    }
}
