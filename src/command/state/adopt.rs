//! `orch state adopt`

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Map;

use super::existing::{ExistingStacks, NOTHING_VERIFIED, ToolCheck, find_existing};
use super::{ProjectState, WriteOptions};
use crate::change::{EntryIndex, relocate, trigger};
use crate::context::used_outputs::UsedDigests;
use crate::context::used_outputs::UsedOutputs;
use crate::context::{Context, clashing};
use crate::error::{Error, ErrorContext as _, Result};
use crate::path::{Generation, StackPath};
use crate::plan::triggers::named_outputs;
use crate::project::stack::{StackIndex, StackMode};
use crate::report::{DocumentChange, Written};
use crate::run::state_lock::{Published, declared};
use crate::state::document::{
    Applied, Attempt, AttemptOutcome, Document, Entry, READ, RunAction, UNMERGED, unknown_outputs,
};

/// The stacks to record as applied at HEAD.
pub struct AdoptRequest<'a> {
    pub stacks: &'a [StackIndex],
    /// `None` if no tool is asked.
    pub verification: Option<ToolCheck<'a>>,
    pub options: &'a WriteOptions,
}

/// Records stacks as applied at HEAD. The project has a listing.
pub fn adopt(context: &mut Context, request: &AdoptRequest<'_>) -> Result<Written> {
    let mut entries = adopted(context, request.stacks)?;
    let existing = find_existing(context, request.stacks, request.verification)?;
    existing.check_applied()?;
    for (path, known) in &existing.stacks {
        if let Some(entry) = entries.get_mut(path.as_str()) {
            entry.driver = Some(known.driver.clone());
            entry.backend.clone_from(&known.backend);
        }
    }
    match request.verification {
        Some(_) => existing.note_unverified(&context.notices),
        None => context.notices.note(NOTHING_VERIFIED),
    }
    let state = ProjectState::of(context)?;
    let edit = state.edit("adopt", request.options);
    let project = &state.context.project;
    let (compared, no_outputs) = (named_outputs(&state.context.references), BTreeSet::new());
    state.change(&edit, DocumentChange::Each("adopted"), |document, now| {
        relocate(project, document).map_err(|clashes| clashing(&clashes))?;
        let adopted: BTreeMap<String, Option<Entry>> = entries
            .iter()
            .map(|(key, entry)| {
                let mut entry = entry.clone();
                let earlier = document.stacks.get(key);
                if let Some(earlier) = earlier {
                    entry.other.clone_from(&earlier.other);
                    entry.generation = earlier.generation;
                    entry.deposed.clone_from(&earlier.deposed);
                    (entry.modified, entry.made) = (earlier.modified, earlier.made);
                    entry.changed = earlier.may_have_changed();
                    entry.backend = entry.backend.or_else(|| earlier.backend.clone());
                }
                // The tool may not print its outputs. If they could have changed, they are unknown.
                let inputs = |entry: &Entry| entry.applied.as_ref().map(|it| it.inputs.clone());
                let path = StackPath::parse(key);
                let is_verified = path.as_ref().is_some_and(|path| existing.is_verified(path));
                entry.outputs = earlier.and_then(|it| it.outputs.clone()).map(|outputs| {
                    let is_same = earlier.and_then(inputs) == inputs(&entry);
                    if is_verified && is_same {
                        outputs
                    } else {
                        unknown_outputs(&format!("adopt {now}"))
                    }
                });
                let known = path.as_ref().and_then(|path| existing.stacks.get(path));
                if let Some(outputs) = known.and_then(|known| known.outputs.as_ref()) {
                    let earlier = earlier.and_then(|earlier| earlier.outputs.as_ref());
                    let stack = path.and_then(|path| project.stacks.find(&path));
                    let compared = stack
                        .and_then(|stack| compared.get(&stack))
                        .unwrap_or(&no_outputs);
                    let outputs = outputs
                        .salting(compared, earlier, false)
                        .map_err(Error::external)?;
                    entry.outputs = Some(outputs.recorded(&existing.run, earlier, false));
                }
                if let Some(applied) = &mut entry.applied {
                    applied.at = now;
                    // As it was not replaced, its triggers compare with its last apply.
                    if let Some(before) = earlier.and_then(|earlier| earlier.applied.as_ref()) {
                        applied.serial = before.serial;
                        applied.triggered_by.clone_from(&before.triggered_by);
                    }
                    for (of, generation) in &mut applied.generations {
                        let of = document.stacks.get(of);
                        *generation = of.map_or(Generation::FIRST, |it| it.generation);
                    }
                }
                if let Some(last) = &mut entry.last {
                    last.at = now;
                }
                Ok((key.clone(), Some(entry)))
            })
            .collect::<Result<_>>()?;
        document.merge(&adopted);
        note_upstream(state.context, document, &existing);
        Ok(entries.keys().cloned().collect())
    })
}

/// Records the outputs of others that the stacks were verified with.
fn note_upstream(context: &Context, document: &mut Document, existing: &ExistingStacks) {
    let stacks = &context.project.stacks;
    let keys = EntryIndex::new(stacks, document);
    let mut used = UsedOutputs::new(&context.project, &context.graph, |stack| {
        document.stacks[keys.key(stack)?].outputs.as_ref()
    });
    for path in existing.stacks.keys() {
        let stack = stacks.find(path).filter(|_| existing.is_verified(path));
        let entry = document.stacks.get_mut(path.as_str());
        let applied = entry.and_then(|entry| entry.applied.as_mut());
        if let (Some(stack), Some(applied)) = (stack, applied) {
            let UsedDigests { inputs, upstream } = used.of(stack);
            applied.upstream = Some(upstream);
            applied.inputs_used = inputs;
        }
    }
}

fn adopted(context: &mut Context, stacks: &[StackIndex]) -> Result<BTreeMap<String, Entry>> {
    let no_commit = || {
        Error::refused("HEAD has no commit, which adopted stacks need")
            .hint("`orch state adopt` needs a git repository: stacks are recorded with the commit of HEAD")
    };
    let failed = "failed to ask git";
    let repository = context
        .opened()?
        .repository
        .as_ref()
        .ok_or_else(no_commit)?;
    let head = repository
        .commit("HEAD")
        .context(failed)?
        .ok_or_else(no_commit)?;
    let digests = context.digests_on_disk()?;
    let is_dirty = |stack: &&StackIndex| digests.stacks[stack].is_dirty;
    let dirty: Vec<StackIndex> = stacks.iter().filter(is_dirty).copied().collect();
    if !dirty.is_empty() {
        let names = context.names(&dirty);
        let message = format!("inputs of {names} are not committed, so HEAD does not have them");
        return Err(
            Error::refused(message).hint("commit them, or leave these stacks out with `--exclude`")
        );
    }
    let project = &context.project;
    let repository = context
        .state
        .opened
        .as_ref()
        .and_then(|opened| opened.repository.as_ref())
        .ok_or_else(no_commit)?;
    let published = Published::of(repository, &project.settings, &head).context(failed)?;
    let seen = (published != Published::Unknown).then(|| head.to_string());
    let triggers = trigger::asking(&project.root).map_err(Error::external)?;
    let environments = context.evaluator();
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
                inputs: Some(digest.recorded()),
                triggers: asking.map(|it| it.file.to_string()).collect(),
                upstream: None,
                inputs_used: BTreeMap::new(),
                triggered_by: BTreeMap::new(),
                generations: environments.generations_used(index),
                plan: None,
                checks: None,
                other: Map::new(),
            }),
            last: Some(Attempt {
                serial: UNMERGED,
                action: RunAction::Apply,
                outcome: AttemptOutcome::Succeeded,
                failure: None,
                run: None,
                at,
                commit: Some(head.to_string()),
                plan: None,
                order: None,
                other: Map::new(),
            }),
            mode: (stack.mode == StackMode::Read).then(|| READ.to_owned()),
            ..declared
        };
        (stack.path.to_string(), entry)
    };
    Ok(stacks.iter().map(entry).collect())
}
