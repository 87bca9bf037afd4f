//! What is known of stacks that are put into the state without an apply: whether they are as the configuration says,
//! and where their states are.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use orch::driver::Outputs;
use orch::path::StackPath;
use orch::plan::entry::{Action, PlanEntry};
use orch::printable::printable;
use orch::project::stack::StackIndex;

use crate::program::commands::Loaded;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Who is asked about such stacks.
#[derive(Debug, Clone, Copy)]
pub(in crate::program::commands) enum Verification {
    /// Their tools, so many at once.
    Tools(NonZeroUsize),
    Nobody,
}

/// Finds out about such stacks.
pub(in crate::program::commands) type FindExisting =
    fn(&[PathBuf], &Loaded, &[StackIndex], Verification) -> Result<ExistingStacks>;

/// How many stacks a note names.
const MAX_NAMED: usize = 5;

/// How many stacks an error names, with what their tools would do.
const MAX_DIFFERENT: usize = 10;

/// What is known of a stack that is put into the state without an apply.
pub(in crate::program::commands) struct ExistingStack {
    /// The name of its driver.
    pub(in crate::program::commands) driver: String,
    /// Where its tool keeps its own state, if that is known.
    pub(in crate::program::commands) backend: Option<String>,
    /// Its outputs, if they are known.
    pub(in crate::program::commands) outputs: Option<Outputs>,
    /// What an apply would do, if its tool was asked.
    pub(in crate::program::commands) planned: Option<PlanEntry>,
    /// Whether anything of it exists, if its tool says that.
    pub(in crate::program::commands) exists: Option<bool>,
}

/// What is known of stacks that are put into the state without an apply.
pub(in crate::program::commands) struct ExistingStacks {
    /// The run in which the tools were asked.
    pub(in crate::program::commands) run: String,
    /// Those that have a driver, by path.
    pub(in crate::program::commands) stacks: BTreeMap<StackPath, ExistingStack>,
    /// Those that nobody has verified, by reason.
    pub(in crate::program::commands) unverified: BTreeMap<String, Vec<StackPath>>,
}

impl ExistingStacks {
    /// Notes that nobody has verified a stack.
    pub(in crate::program::commands) fn leave_unverified(&mut self, why: &str, stack: StackPath) {
        let stacks = self.unverified.entry(why.to_owned()).or_default();
        stacks.push(stack);
    }

    /// Returns whether the tool of a stack has been asked.
    pub(in crate::program::commands) fn is_verified(&self, stack: &StackPath) -> bool {
        let existing = self.stacks.get(stack);
        existing.is_some_and(|existing| existing.planned.is_some())
    }

    /// Refuses stacks that are not as the configuration says, according to their tools.
    pub(in crate::program::commands) fn check_applied(&self) -> Result<()> {
        self.check(
            |entry, _| {
                let is_as_applied = matches!(entry.action, Action::NoOp | Action::Adopt | Action::Read);
                is_as_applied && entry.after.is_empty()
            },
            "are not as HEAD says, according to their tools",
            "apply them with `orch apply`, leave them out with `--exclude`, or add `--no-verify` to record them anyway",
        )
    }

    /// Refuses stacks of which nothing exists, according to their tools. It notes those whose tools do not say.
    pub(in crate::program::commands) fn check_existence(&mut self) -> Result<()> {
        self.check(
            |entry, exists| entry.action != Action::Create || exists != Some(false),
            "do not exist, according to their tools",
            "remove them from the file, or add `--no-verify` to record them anyway",
        )?;
        let stacks = self.stacks.iter();
        let untold = stacks.filter(|(_, it)| {
            let action = it.planned.as_ref().map(|entry| entry.action);
            action == Some(Action::Create) && it.exists.is_none()
        });
        let untold: Vec<(StackPath, String)> = untold
            .map(|(path, it)| {
                (
                    path.clone(),
                    format!(
                        "the driver `{}` does not say whether anything exists",
                        it.driver
                    ),
                )
            })
            .collect();
        for (path, why) in untold {
            self.leave_unverified(&why, path);
        }
        Ok(())
    }

    fn check(
        &self,
        is_right: impl Fn(&PlanEntry, Option<bool>) -> bool,
        what: &str,
        hint: &str,
    ) -> Result<()> {
        let different = self.stacks.values().filter_map(|existing| {
            let entry = existing.planned.as_ref()?;
            let is_right = entry.blocked.is_none() && is_right(entry, existing.exists);
            (!is_right).then_some(entry)
        });
        let different: Vec<&PlanEntry> = different.collect();
        if different.is_empty() {
            return Ok(());
        }
        let mut text = format!("nothing was recorded: these stacks {what}");
        for entry in different.iter().take(MAX_DIFFERENT) {
            let path = printable(entry.stack.as_str());
            let does = match &entry.blocked {
                Some(why) => format!("blocked: {}", printable(why)),
                None if !entry.after.is_empty() => "runs after stacks that would change".to_owned(),
                None => format!("{}: {}", entry.action.word(), printable(&entry.reason.text)),
            };
            text += &format!("\n    {path} ({does})");
        }
        if let Some(more @ 1..) = different.len().checked_sub(MAX_DIFFERENT) {
            text += &format!("\n    and {more} more");
        }
        Err(ProgramError::refused(text).hint(hint))
    }

    /// Notes the stacks that nobody has verified.
    pub(in crate::program::commands) fn note_unverified(&self) {
        for (why, stacks) in &self.unverified {
            let first = stacks.iter().take(MAX_NAMED);
            let first = first.map(|path| format!("`{}`", printable(path.as_str())));
            let mut names = first.collect::<Vec<String>>().join(", ");
            if let Some(more @ 1..) = stacks.len().checked_sub(MAX_NAMED) {
                names += &format!(" and {more} more");
            }
            console::note(&format!(
                "not verified with a tool: {names} ({})",
                printable(why)
            ));
        }
    }
}
