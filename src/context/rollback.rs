//! Refuses to revert an applied commit that HEAD lacks.

use std::collections::BTreeMap;

use super::Context;
use crate::change::base::fetch_command;
use crate::change::{CountedStates, Rollback, rollbacks};
use crate::error::{Error, ErrorContext as _, Result};
use crate::project::stack::StackIndex;
use crate::state::document::Document;

#[derive(Debug, Clone, Copy)]
pub struct RollbackFlags {
    /// `--allow-rollback`.
    pub allows: bool,
    pub fetches: bool,
}

impl Context {
    /// Returns the stacks that an apply of HEAD would roll back. Fetches the necessary commits if
    /// the flags allow that.
    pub fn rollbacks(
        &mut self,
        document: &Document,
        stacks: &[StackIndex],
        flags: RollbackFlags,
    ) -> Result<BTreeMap<StackIndex, Rollback>> {
        if stacks.is_empty() {
            return Ok(BTreeMap::new());
        }
        let digests = self.digests_on_disk()?;
        loop {
            let fetched = &self.fetched;
            let found = self.with_present(CountedStates::default(), |present| {
                rollbacks(present, &digests, document, stacks, fetched)
            })?;
            let found =
                found.context("failed to compare HEAD with the commits that were applied")?;
            let needed: Vec<Vec<String>> = found
                .values()
                .filter_map(|rollback| rollback.fetch.clone())
                .filter(|_| flags.fetches)
                .collect();
            if needed.is_empty() {
                return Ok(found);
            }
            for arguments in needed {
                self.fetch_applied(arguments)?;
            }
            if let Some(opened) = &mut self.state {
                opened.reopen_repository(&self.workspace.project)?;
            }
        }
    }

    /// Runs `git fetch` with these arguments, once.
    pub fn fetch_applied(&mut self, arguments: Vec<String>) -> Result<()> {
        if self.fetched.contains(&arguments) {
            return Ok(());
        }
        let git = self.git.known_mut().context("git was read")?;
        let mut fetch = |arguments: &[String]| {
            self.notices
                .note(&format!("running `{}`", fetch_command(arguments)));
            git.repository.fetch(arguments)
        };
        let failed = "failed to fetch the applied commits";
        match (fetch(&arguments), &*arguments) {
            (Ok(()), _) => {}
            // A server may refuse to send a commit by id. If it sends everything else, it has lost
            // this one.
            (Err(_), [remote, ..]) if !remote.starts_with('-') => {
                let all = vec![remote.clone()];
                if !self.fetched.contains(&all) {
                    fetch(&all).context(failed)?;
                    self.fetched.insert(all);
                }
            }
            (Err(error), _) => return Err(error).context(failed),
        }
        self.fetched.insert(arguments);
        Ok(())
    }

    /// Refuses to roll back these stacks, unless the flags allow it.
    pub fn refuse_rollbacks(
        &mut self,
        document: &Document,
        stacks: &[StackIndex],
        flags: RollbackFlags,
    ) -> Result<()> {
        if flags.allows {
            return Ok(());
        }
        let found = self.rollbacks(document, stacks, flags)?;
        let Some(first) = found.values().next() else {
            return Ok(());
        };
        let same: Vec<StackIndex> = found
            .iter()
            .filter(|(_, rollback)| *rollback == first)
            .map(|(&stack, _)| stack)
            .collect();
        let error = Error::refused(format!(
            "this run would roll back {}: {}",
            self.names(&same),
            first.why()
        ));
        Err(match first.fetch_command() {
            Some(command) => error
                .hint(format!("run `{command}`, or add `--fetch`"))
                .hint("to apply HEAD anyway, add `--allow-rollback`"),
            None => {
                error.hint("merge or check out that commit; to revert it, add `--allow-rollback`")
            }
        })
    }
}
