//! The story of one stack, for people and for programs.

mod json;
mod text;

pub use json::write_why_json;
pub use text::write_why;

use super::changes::trigger_text;
use super::reasons::{direction, directory_text, step_text};
use crate::change::Changes;
use crate::project::Project;
use crate::reference::ReferenceKind;
use crate::select::{Obstacle, Scope};
use crate::stack::Stack;
use crate::why::{Hindrance, Question, Way, Why};

/// A story and what it answers.
#[derive(Debug)]
pub struct Story<'a> {
    /// What was asked.
    pub question: &'a Question<'a>,
    /// The story.
    pub why: &'a Why,
}

impl<'a> Story<'a> {
    fn stack(&self) -> &'a Stack {
        &self.question.project.stacks[self.question.stack]
    }

    fn is_selected(&self) -> bool {
        self.question.selection.contains(self.question.stack)
    }

    fn changes(&self) -> Option<&'a Changes> {
        self.question.wish.changed.as_ref()
    }

    /// Says whether the stack would count as changed if no trigger said otherwise.
    fn has_changed(&self) -> bool {
        let stack = &self.question.stack;
        self.changes().is_some_and(|changes| {
            changes.stacks.contains_key(stack) || changes.triggered.contains_key(stack)
        })
    }

    /// Says what leaves the stack out.
    fn obstacle_text(&self, obstacle: &Obstacle) -> String {
        match obstacle {
            Obstacle::Unchanged => match self.changes() {
                Some(changes) => format!(
                    "has not changed since {}",
                    changes.since.base.commit.short()
                ),
                None => "has not changed".to_owned(),
            },
            Obstacle::Dismissed(trigger) => {
                let although = if self.has_changed() {
                    ", although there are some"
                } else {
                    ""
                };
                format!(
                    "its changes are ignored{although}: {}",
                    trigger_text(trigger)
                )
            }
            Obstacle::Directory(directory, scope) => {
                format!("not {}", directory_text(directory, *scope))
            }
            Obstacle::Globs => {
                let globs: Vec<String> = self
                    .question
                    .wish
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
                    .wish
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
                format!("not what {reach} means, though it would be selected without it")
            }
            Obstacle::Neighbour(reach, step) => {
                let Project {
                    stacks, sources, ..
                } = self.question.project;
                format!(
                    "{} ({reach})",
                    step_text(reach.towards, step, stacks, sources)
                )
            }
        }
    }

    /// Says what would make a filter let the stack pass; `None` for what is no filter.
    fn remedy_text(&self, obstacle: &Obstacle) -> Option<String> {
        let path = self.stack().path.as_str();
        let change = format!("a change of one of its inputs, or `orch trigger {path}`");
        Some(match obstacle {
            Obstacle::Unchanged => change,
            Obstacle::Dismissed(trigger) => {
                let trigger = trigger.file.relative();
                if self.has_changed() {
                    format!("no trigger {trigger}")
                } else {
                    format!("no trigger {trigger}, and {change}")
                }
            }
            Obstacle::Directory(_, Scope::Recursive) => {
                format!("a start in {path}, or in a directory above it")
            }
            Obstacle::Directory(_, Scope::Exact) => {
                format!("a start in {path}, or above it without --no-recursive")
            }
            Obstacle::Globs => format!("--match {path}"),
            Obstacle::Unnamed(source) => format!("a line {path} in {source}"),
            Obstacle::Tags => {
                let tags: Vec<&str> = self.stack().tags().filter(|tag| !tag.is_empty()).collect();
                if tags.is_empty() {
                    "no --tags, since it has none".to_owned()
                } else {
                    format!("--tags {}", tags.join(","))
                }
            }
            Obstacle::NoTags(tags) => format!("no --no-tags {}", tags.join(",")),
            Obstacle::Excluded(_) | Obstacle::Only(_) | Obstacle::Neighbour(..) => return None,
        })
    }

    /// Returns what would make all filters let the stack pass; empty if it is selected or they do.
    fn remedies(&self) -> Vec<String> {
        let obstacles = self.why.obstacles.iter();
        obstacles
            .filter_map(|obstacle| self.remedy_text(obstacle))
            .collect()
    }

    fn way_text(&self, way: &Way) -> String {
        let Project {
            stacks, sources, ..
        } = self.question.project;
        match way {
            Way::Wants(by, span) => {
                format!(
                    "selecting {}, which wants it ({})",
                    stacks[*by].path,
                    sources.line(*span)
                )
            }
            Way::WantedBy(span) => {
                let kind = ReferenceKind::WantedBy;
                format!(
                    "selecting what it names in `{kind}` ({})",
                    sources.line(*span)
                )
            }
            Way::Neighbour(reach, selected) => {
                let direction = direction(reach.towards);
                let selected = &stacks[*selected].path;
                format!("{reach}, since it runs {direction} {selected}, which is selected")
            }
        }
    }
}

/// Names a flag that takes stacks away.
fn hindrance_text(hindrance: &Hindrance) -> String {
    match hindrance {
        Hindrance::Exclude(written) => format!("--exclude {written}"),
        Hindrance::Neighbours(reach) => reach.to_string(),
    }
}
