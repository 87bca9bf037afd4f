//! Stacks to which a commit was applied that HEAD lacks: a plan would roll it back.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use orch::change::{Counted, Pairs, Standing, causes_since};
use orch::git::CommitId;
use orch::project::stack::StackIndex;

use super::OnRecord;
use crate::program::commands::Loaded;
use crate::program::error::Result;

impl Loaded {
    /// Returns the stacks that are behind what was applied, each with why: HEAD lacks that commit, and has
    /// not touched their inputs since the two parted. A commit that is not in this clone says nothing.
    pub(in crate::program::commands) fn ahead(
        &self,
        recorded: &OnRecord,
    ) -> Result<BTreeMap<StackIndex, String>> {
        let failed = "failed to ask git what was applied";
        let stacks = &self.project.stacks;
        let pairs = Pairs::new(stacks, &recorded.document);
        let standings = recorded.standings.stacks.iter();
        let applied = standings.filter(|(_, it)| **it != Standing::Applied);
        let applied = applied.filter_map(|(&stack, _)| {
            let entry = recorded.document.stacks.get(pairs.key(stack)?)?;
            let seen = CommitId::new(entry.applied.as_ref()?.seen.as_deref()?)?;
            Some((seen, stack))
        });
        let mut by_commit: BTreeMap<CommitId, Vec<StackIndex>> = BTreeMap::new();
        for (seen, stack) in applied {
            by_commit.entry(seen).or_default().push(stack);
        }
        let read = self.read.as_ref().context("git was read")?;
        let repository = &read.repository;
        let head = repository.commit("HEAD").context(failed)?;
        let mut ahead = BTreeMap::new();
        for (seen, stacks) in by_commit {
            let Some(head) = &head else { break };
            let is_here = repository.commit(seen.as_str()).context(failed)?.as_ref() == Some(&seen);
            if !is_here || repository.is_ancestor(&seen, head).context(failed)? {
                continue;
            }
            let Some(parting) = repository.merge_base(&seen, head).context(failed)? else {
                continue;
            };
            let touched = if parting == *head {
                BTreeSet::new()
            } else {
                let causes = self.with_present(Counted::default(), |present| {
                    causes_since(present, &parting, &stacks)
                })?;
                causes.context(failed)?.into_keys().collect()
            };
            let why = format!("commit {}, which HEAD lacks, was applied", seen.short());
            let behind = stacks.into_iter().filter(|stack| !touched.contains(stack));
            ahead.extend(behind.map(|stack| (stack, why.clone())));
        }
        Ok(ahead)
    }
}
