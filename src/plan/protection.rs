//! `prevent_destroy`: which rule protects what a stack has built, and the refusal to destroy it.
//!
//! For a stack of the tree the rule of the tree counts; for one that is gone that of a `removed` block, else the
//! one on record. This module does not know what would be destroyed.

use crate::diagnostic::{Code, Diagnostic};
use crate::git::CommitId;
use crate::path::StackPath;
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::state::document::Entry;

/// The rule that protects a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    /// Where it is written: a file relative to the project root, and a line.
    place: Option<String>,
    by: ProtectedBy,
}

/// Where a rule that protects a stack is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ProtectedBy {
    /// The tree states it.
    Tree,
    /// HEAD states it. The working tree does not, but that is not committed.
    Head,
    /// It is on record, from this commit if that is known. The tree does not have the stack.
    Record(Option<String>),
}

impl Protection {
    /// Returns the rule of the tree that protects a stack, if one does.
    pub fn of_tree(project: &Project, stack: StackIndex) -> Option<Self> {
        Self::stated(project, stack, ProtectedBy::Tree)
    }

    /// Returns the rule that protects a stack according to the project of HEAD, if one does.
    pub fn of_head(project: &Project, stack: StackIndex) -> Option<Self> {
        Self::stated(project, stack, ProtectedBy::Head)
    }

    fn stated(project: &Project, stack: StackIndex, by: ProtectedBy) -> Option<Self> {
        let rule = project.rules_of(stack).prevent_destroy?;
        rule.value.then(|| Protection {
            place: Some(project.sources.line(rule.span)),
            by,
        })
    }

    /// Returns the rule that protects a stack which is gone, if one does: that of the `removed` block which is
    /// about it, else the one on record. Whether the block is committed is a question of evidence.
    pub fn of_gone(project: &Project, stack: &StackPath, entry: &Entry) -> Option<Self> {
        let block = project.removed_block(stack);
        match block.and_then(|block| block.prevent_destroy.as_ref()) {
            Some(rule) => rule.value.then(|| Protection {
                place: Some(project.sources.line(rule.span)),
                by: ProtectedBy::Tree,
            }),
            None => Self::on_record(entry),
        }
    }

    /// Returns the rule on record that protects a stack, if one does.
    pub fn on_record(entry: &Entry) -> Option<Self> {
        let rule = entry.lifecycle.prevent_destroy.as_ref()?;
        let file = rule.file.as_deref();
        rule.value.then(|| Protection {
            place: file.map(|file| match rule.line {
                Some(line) => format!("{file}:{line}"),
                None => file.to_owned(),
            }),
            by: ProtectedBy::Record(rule.commit.clone()),
        })
    }

    /// Returns who protects the stack: `protected by prod/orch.orch.hcl:4`.
    pub fn text(&self) -> String {
        let mut text = "protected".to_owned();
        if let Some(place) = &self.place {
            text += &format!(" by {place}");
        }
        match &self.by {
            ProtectedBy::Tree => {}
            ProtectedBy::Head => text += " in HEAD",
            ProtectedBy::Record(commit) => {
                let commit = commit.as_deref().and_then(CommitId::new);
                let commit = commit.map(|commit| format!(" from {}", commit.short()));
                text += &format!(", recorded{}", commit.unwrap_or_default());
            }
        }
        text
    }

    fn way_out(&self) -> &'static str {
        match self.by {
            ProtectedBy::Tree => "commit `prevent_destroy = false` for it first",
            ProtectedBy::Head => "commit the change of `prevent_destroy` first",
            ProtectedBy::Record(_) => {
                "apply `prevent_destroy = false` first, or say so in a `removed` block"
            }
        }
    }
}

/// What would destroy a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destroyer {
    /// A plan.
    Plan,
    /// A command in the stack.
    Command,
}

/// A stack that would be destroyed although it is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protected {
    /// The stack.
    pub stack: StackPath,
    /// Why it would be destroyed: the reason of its entry, or the command.
    pub because: String,
    /// The rule that protects it.
    pub protection: Protection,
}

impl Protected {
    /// Returns the refusal.
    pub fn refusal(&self, destroyer: Destroyer) -> Diagnostic {
        let (what, leave_out) = match destroyer {
            Destroyer::Plan => ("plan", "`--skip-protected` plans the rest"),
            Destroyer::Command => ("command", "`--exclude` leaves the stack out"),
        };
        let message = format!(
            "the {what} would destroy `{}`, which is protected",
            self.stack
        );
        Diagnostic::error(Code::Protected, message)
            .note(format!("{}; {}", self.because, self.protection.text()))
            .help(format!("{}; {leave_out}", self.protection.way_out()))
    }
}
