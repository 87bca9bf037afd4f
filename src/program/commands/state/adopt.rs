//! `orch state adopt`

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use orch::change::{Pairs, digests, relocate, trigger};
use orch::context::{clashing, exact_status};
use orch::exit::ExitStatus;
use orch::path::{Generation, StackPath};
use orch::plan::triggers::named_outputs;
use orch::plan::upstream::{Upstream, outputs_digest};
use orch::project::Problems;
use orch::project::stack::{StackIndex, StackMode};
use orch::run::state_lock::{Published, declared};
use orch::state::document::{Action, Applied, Attempt, Document, Entry, Outcome, READ, UNMERGED};
use serde_json::Map;

use super::existing::{ExistingStacks, Verification, find_existing};
use super::{State, WriteArgs};
use crate::program::commands::Reads;
use crate::program::commands::selection_flags::SelectArgs;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Record the selected stacks as applied at HEAD
///
/// Asks the tool of each stack for a plan, and refuses stacks that an apply would change. Names those that it cannot
/// verify. This replaces what is recorded of the stacks; nothing is applied. orch refuses stacks with uncommitted
/// inputs.
#[derive(Debug, Args)]
pub(crate) struct AdoptArgs {
    /// Record the stacks without asking their tools
    ///
    /// Then orch knows neither whether they are deployed as HEAD has them, nor where their tools keep their states: it
    /// may not destroy removed stacks until `orch apply --full` has recorded that.
    #[arg(long)]
    pub(super) no_verify: bool,

    /// Ask up to N tools at once [default: 1]
    #[arg(short = 'j', long, value_name = "N", conflicts_with = "no_verify")]
    pub(super) parallel: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(super) write: WriteArgs,

    #[command(flatten)]
    pub(super) select: SelectArgs,
}

pub(super) fn adopt(chdir: &[PathBuf], args: &AdoptArgs) -> Result<ExitStatus> {
    let filters = args.select.request(chdir)?;
    let reads = Reads::for_selection(&args.select).with_listing();
    let mut state = State::open(chdir, args.write.format, reads)?;
    let query = state.loaded.ask(|context| context.query(filters))?;
    let selection = state.loaded.select(&query);
    state.loaded.report()?;
    let stacks: Vec<StackIndex> = selection.stacks().collect();
    if stacks.is_empty() {
        return Ok(ExitStatus::Success);
    }
    let mut entries = state.adopted(&stacks)?;
    let loaded = &state.loaded;
    let verification = if args.no_verify {
        Verification::Nobody
    } else {
        Verification::Tools(args.parallel.unwrap_or(NonZeroUsize::MIN))
    };
    let existing = find_existing(chdir, loaded, &stacks, verification)?;
    existing.check_applied()?;
    for (path, known) in &existing.stacks {
        if let Some(entry) = entries.get_mut(path.as_str()) {
            entry.driver = Some(known.driver.clone());
            entry.backend.clone_from(&known.backend);
        }
    }
    if args.no_verify {
        console::note("nothing was verified with the tools (`--no-verify`)");
    } else {
        existing.note_unverified();
    }
    let edit = state.edit("adopt", &args.write);
    let keys: Vec<String> = entries.keys().cloned().collect();
    let (compared, no_outputs) = (named_outputs(&state.loaded.references), BTreeSet::new());
    state.change(
        &edit,
        args.write.format,
        super::write::each("adopted"),
        |document, now| {
            relocate(&state.loaded.project, document).map_err(|clashes| clashing(&clashes))?;
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
                    let stack = path.and_then(|path| state.loaded.project.stacks.find(&path));
                    let compared = stack.and_then(|stack| compared.get(&stack));
                    let compared = compared.unwrap_or(&no_outputs);
                    let outputs = outputs.salting(compared, earlier, false);
                    let outputs = outputs.map_err(anyhow::Error::new)?;
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
            state.note_upstream(document, &existing);
            Ok(keys.clone())
        },
    )
}

impl State {
    /// Records with which outputs of others the stacks were verified.
    fn note_upstream(&self, document: &mut Document, existing: &ExistingStacks) {
        let stacks = &self.loaded.project.stacks;
        let mut own: Vec<Option<String>> = vec![None; stacks.len()];
        for (stack, key) in Pairs::new(stacks, document).iter() {
            let outputs = document.stacks[key].outputs.as_ref();
            own[stack.get()] = outputs.map(outputs_digest);
        }
        let mut upstream = Upstream::new(&self.loaded.graph, stacks, own);
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
        let project = &self.loaded.project;
        let no_commit = || {
            ProgramError::refused("there is no commit at which stacks could be adopted")
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
        let digests = digests(project, &self.loaded.listing, repository, &status, unheeded);
        let digests = digests.context("failed to read the inputs of stacks")?;
        let is_dirty = |stack: &&StackIndex| digests.stacks[stack].is_dirty;
        let dirty: Vec<StackIndex> = stacks.iter().filter(is_dirty).copied().collect();
        if !dirty.is_empty() {
            let names = self.loaded.names(&dirty);
            let message =
                format!("inputs of {names} are not committed, so HEAD does not have them");
            return Err(ProgramError::refused(message)
                .hint("commit them, or leave these stacks out with `--exclude`"));
        }
        let published = Published::of(repository, &project.settings, &head).context(failed)?;
        let seen = (published != Published::Unknown).then(|| head.to_string());
        let triggers = trigger::asking(&project.root).map_err(anyhow::Error::new)?;
        let environments = self.loaded.evaluator();
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
