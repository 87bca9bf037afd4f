//! `orch state adopt`: stacks that exist are recorded as applied at HEAD.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use serde_json::Map;

use super::edit::each;
use super::existing::ExistingStacks;
use super::{PlanStacks, State, StateWrite, WriteOptions};
use crate::change::{Pairs, digests, relocate, trigger};
use crate::context::{clashing, exact_status};
use crate::error::{Error, ErrorContext as _, Result};
use crate::path::{Generation, StackPath};
use crate::plan::triggers::named_outputs;
use crate::plan::upstream::{Upstream, outputs_digest};
use crate::project::Problems;
use crate::project::stack::{StackIndex, StackMode};
use crate::run::state_lock::{Published, declared};
use crate::state::document::{Action, Applied, Attempt, Document, Entry, Outcome, READ, UNMERGED};

impl State<'_> {
    /// Records stacks as applied at HEAD. Their tools are asked, so many at once, unless `jobs` is `None`.
    pub fn adopt(
        &self,
        stacks: &[StackIndex],
        jobs: Option<NonZeroUsize>,
        plan: &PlanStacks<'_>,
        write: &WriteOptions,
    ) -> Result<StateWrite> {
        let mut entries = self.adopted(stacks)?;
        let existing = self.find_existing(stacks, jobs.map(|jobs| (jobs, plan)))?;
        existing.check_applied()?;
        for (path, known) in &existing.stacks {
            if let Some(entry) = entries.get_mut(path.as_str()) {
                entry.driver = Some(known.driver.clone());
                entry.backend.clone_from(&known.backend);
            }
        }
        if jobs.is_none() {
            self.notices()
                .note("nothing was verified with the tools (`--no-verify`)");
        } else {
            existing.note_unverified(self.notices());
        }
        let edit = self.edit("adopt", write);
        let keys: Vec<String> = entries.keys().cloned().collect();
        let (compared, no_outputs) = (named_outputs(&self.context.references), BTreeSet::new());
        self.change(&edit, each("adopted"), |document, now| {
            relocate(&self.context.project, document).map_err(|clashes| clashing(&clashes))?;
            let adopted = entries.iter().map(|(key, entry)| {
                let mut entry = entry.clone();
                if let Some(earlier) = document.stacks.get(key) {
                    entry.other.clone_from(&earlier.other);
                    entry.generation = earlier.generation;
                    entry.deposed.clone_from(&earlier.deposed);
                    (entry.modified, entry.made) = (earlier.modified, earlier.made);
                    entry.backend = entry.backend.or_else(|| earlier.backend.clone());
                }
                let path = StackPath::parse(key);
                let known = path.as_ref().and_then(|path| existing.stacks.get(path));
                if let Some(outputs) = known.and_then(|known| known.outputs.as_ref()) {
                    let earlier = document.stacks.get(key);
                    let earlier = earlier.and_then(|earlier| earlier.outputs.as_ref());
                    let stack = path.and_then(|path| self.context.project.stacks.find(&path));
                    let compared = stack.and_then(|stack| compared.get(&stack));
                    let compared = compared.unwrap_or(&no_outputs);
                    let outputs = outputs.salting(compared, earlier, false);
                    let outputs = outputs.map_err(Error::external)?;
                    entry.outputs = Some(outputs.recorded(&existing.run, earlier, false));
                }
                if let Some(applied) = &mut entry.applied {
                    applied.at = now;
                    for (of, generation) in &mut applied.generations {
                        let of = document.stacks.get(of);
                        *generation = of.map_or(Generation::FIRST, |it| it.generation);
                    }
                }
                if let Some(last) = &mut entry.last {
                    last.at = now;
                }
                Ok((key.clone(), Some(entry)))
            });
            let adopted: BTreeMap<String, Option<Entry>> = adopted.collect::<Result<_>>()?;
            document.merge(&adopted);
            self.note_upstream(document, &existing);
            Ok(keys.clone())
        })
    }

    /// Records with which outputs of others the stacks were verified.
    fn note_upstream(&self, document: &mut Document, existing: &ExistingStacks) {
        let stacks = &self.context.project.stacks;
        let mut own: Vec<Option<String>> = vec![None; stacks.len()];
        for (stack, key) in Pairs::new(stacks, document).iter() {
            let outputs = document.stacks[key].outputs.as_ref();
            own[stack.get()] = outputs.map(outputs_digest);
        }
        let mut upstream = Upstream::new(&self.context.graph, stacks, own);
        for path in existing.stacks.keys() {
            let stack = stacks.find(path).filter(|_| existing.is_verified(path));
            let entry = document.stacks.get_mut(path.as_str());
            let applied = entry.and_then(|entry| entry.applied.as_mut());
            if let (Some(stack), Some(applied)) = (stack, applied) {
                applied.upstream = Some(upstream.of(stack));
            }
        }
    }

    /// Returns what is to be on record of stacks that are as HEAD says.
    fn adopted(&self, stacks: &[StackIndex]) -> Result<BTreeMap<String, Entry>> {
        let project = &self.context.project;
        let no_commit = || {
            Error::refused("there is no commit at which stacks could be adopted")
                .hint("stacks are recorded with the commit of HEAD, so a git repository is needed")
        };
        let repository = self.opened.repository.as_ref().ok_or_else(no_commit)?;
        let failed = "failed to ask git";
        let head = repository
            .commit("HEAD")
            .context(failed)?
            .ok_or_else(no_commit)?;
        let status = exact_status(repository, &project.root).context(failed)?;
        let unheeded = &mut Problems::default();
        let digests = digests(
            project,
            &self.context.listing,
            repository,
            &status,
            unheeded,
        );
        let digests = digests.context("failed to read the inputs of stacks")?;
        let is_dirty = |stack: &&StackIndex| digests.stacks[stack].is_dirty;
        let dirty: Vec<StackIndex> = stacks.iter().filter(is_dirty).copied().collect();
        if !dirty.is_empty() {
            let names = self.context.names(&dirty);
            let message =
                format!("inputs of {names} are not committed, so HEAD does not have them");
            return Err(Error::refused(message)
                .hint("commit them, or leave these stacks out with `--exclude`"));
        }
        let published = Published::of(repository, &project.settings, &head).context(failed)?;
        let seen = (published != Published::Unknown).then(|| head.to_string());
        let triggers = trigger::asking(&project.root).map_err(Error::external)?;
        let environments = self.context.evaluator();
        let entry = |&index: &StackIndex| {
            let stack = index;
            let digest = &digests.stacks[&stack];
            let declared = declared(project, stack, Some(&head));
            let stack = &project.stacks[stack];
            let asking = triggers.iter().filter(|it| it.concerns(&stack.path));
            let at = jiff::Timestamp::UNIX_EPOCH;
            let entry = Entry {
                applied: Some(Applied {
                    serial: UNMERGED,
                    run: None,
                    at,
                    command: None,
                    commit: Some(head.to_string()),
                    dirty: false,
                    seen: seen.clone(),
                    inputs: Some(digest.recorded(&digests.rules)),
                    triggers: asking.map(|it| it.file.to_string()).collect(),
                    upstream: None,
                    triggered_by: BTreeMap::new(),
                    generations: environments.generations_used(index),
                    plan: None,
                    checks: None,
                    other: Map::new(),
                }),
                last: Some(Attempt {
                    serial: UNMERGED,
                    action: Action::Apply,
                    outcome: Outcome::Succeeded,
                    failure: None,
                    run: None,
                    at,
                    commit: Some(head.to_string()),
                    plan: None,
                    other: Map::new(),
                }),
                mode: (stack.mode == StackMode::Read).then(|| READ.to_owned()),
                ..declared
            };
            (stack.path.to_string(), entry)
        };
        Ok(stacks.iter().map(entry).collect())
    }
}
