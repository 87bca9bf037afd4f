//! An apply that policies follow: what they are told, and what may follow.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Context as _;
use orch::change::{Counted, Pairs};
use orch::driver::Driver;
use orch::path::StackPath;
use orch::plan::apply::{ApplyOptions, Applying, FollowUpStack, FollowUps};
use orch::plan::code::Codes;
use orch::project::stack::StackIndex;
use orch::record::journal::PoliciesRecord;
use orch::run::begun::BegunRun;
use orch::run::following::PreparedFollowUp;
use orch::run::state::StackRecord;
use orch::run::turn::Operation;
use orch::run::workflow::{
    Follower, RunFacts, StackNames, TurnKind, Workflow, WorkflowTurn, now, turn_id,
};
use orch::selection::select::PathFilter;
use orch::state::document::{Action, Document};

use super::carrying::Carrying;
use crate::program::commands::Loaded;
use crate::program::commands::follower::{TRACKED, follow};
use crate::program::commands::plan::subjects::{Drivers, OnRecord};
use crate::program::commands::policy_files::LoadedPolicies;
use crate::program::commands::state::held::StateLock;
use crate::program::error::{ProgramError, Result};
use crate::program::exit::ExitStatus;

/// What is known now for the policies of an apply.
pub(super) struct NowPolicies {
    policies: LoadedPolicies,
    facts: RunFacts,
    /// Why something may not be applied to stacks that a later commit was applied to.
    ahead: BTreeMap<StackIndex, String>,
}

/// What it takes to let policies follow an apply.
pub(super) struct FollowedApply {
    follower: Follower,
    followups: Vec<PreparedFollowUp>,
    /// What goes on record of the policies.
    pub(super) record: PoliciesRecord,
}

impl FollowedApply {
    /// Lets the policies follow an apply that has begun.
    pub(super) fn follow(self, loaded: &Loaded, begun: BegunRun) -> Result<BegunRun> {
        let root = &loaded.project.root;
        follow(root, begun, self.follower, self.followups, Vec::new())
    }
}

impl Carrying<'_> {
    /// Returns what is known now for the policies that follow the apply, if any does; the exit status if one is
    /// wrong.
    pub(super) fn policies(
        &self,
        loaded: &mut Loaded,
        document: Option<&Document>,
    ) -> Result<std::result::Result<Option<NowPolicies>, ExitStatus>> {
        let flags = &self.args.policies;
        let policies = match loaded.apply_policies(flags)? {
            Ok(Some(policies)) => policies,
            Ok(None) => return Ok(Ok(None)),
            Err(status) => return Ok(Err(status)),
        };
        let ahead = match document {
            Some(document) if !self.planning.allow_rollback => {
                let address = self.saved.plan.state.as_ref();
                let address = address.map_or_else(String::new, |state| state.address.clone());
                let counted = Counted::default();
                let standings = loaded.standings_in(document, address, counted, false)?;
                loaded.ahead(&OnRecord {
                    document: document.clone(),
                    standings,
                })?
            }
            _ => BTreeMap::new(),
        };
        Ok(Ok(Some(NowPolicies {
            policies,
            facts: loaded.run_facts(&flags.metadata)?,
            ahead,
        })))
    }

    /// Prepares an apply for its policies.
    pub(super) fn followed<'a, 'l>(
        &self,
        loaded: &'l Loaded,
        document: Option<&Document>,
        codes: Codes<'a, 'l>,
        options: &ApplyOptions<'_>,
        now: NowPolicies,
        applying: &mut Applying<'a, 'l>,
    ) -> Result<FollowedApply> {
        let ApplyOptions {
            run, folder, extra, ..
        } = *options;
        let project = &loaded.project;
        let excluded = self.excluded(loaded)?;
        let paths = excluded.iter();
        let paths = paths.map(|stack| project.stacks[*stack].path.to_string());
        let record = PoliciesRecord {
            workflow: run.to_owned(),
            kind: TRACKED.to_owned(),
            followup: None,
            metadata: self.args.policies.metadata.clone(),
            excluded: paths.collect(),
            digests: loaded.policy_digests(&now.policies),
            asked: Vec::new(),
        };
        let names = StackNames::new(&project.stacks, excluded);
        let settings = project.settings.policies;
        let turns = turns(applying, run);
        let workflow = Workflow::new(run.to_owned(), names, settings, Vec::new(), turns);
        let follower = loaded.follower(now.policies, now.facts, workflow);
        let followups = FollowUps {
            codes,
            run: run.to_owned(),
            folder: folder.to_owned(),
            extra: extra.to_vec(),
            keeps_state: document.is_some(),
            stacks: self.stacks(loaded, document, &now.ahead),
        };
        let places = applying.places.as_ref().context("turns may be added")?;
        let followups = applying.director.follow(followups, places);
        Ok(FollowedApply {
            follower,
            followups,
            record,
        })
    }

    /// Returns the stacks that `--exclude` names.
    fn excluded(&self, loaded: &Loaded) -> Result<BTreeSet<StackIndex>> {
        let mut excluded = BTreeSet::new();
        for glob in self.exclude {
            let filter = PathFilter::new(&loaded.directory, glob);
            let filter = filter.map_err(|bad| ProgramError::usage(bad.to_string()))?;
            let stacks = loaded.project.stacks.iter();
            let found = stacks.filter(|(_, stack)| filter.matches(&stack.path));
            excluded.extend(found.map(|(stack, _)| stack));
        }
        Ok(excluded)
    }

    /// Returns what follow-ups are made of, by stack.
    fn stacks<'l>(
        &self,
        loaded: &'l Loaded,
        document: Option<&Document>,
        ahead: &BTreeMap<StackIndex, String>,
    ) -> Vec<FollowUpStack<'l>> {
        let project = &loaded.project;
        let drivers = Drivers::new(loaded, document);
        let knots = loaded.graph.cycles();
        let in_cycle: BTreeSet<StackIndex> = knots
            .iter()
            .flat_map(|knot| knot.stacks.iter().copied())
            .collect();
        let pairs = document.map(|document| Pairs::new(&project.stacks, document));
        let moves: BTreeSet<&str> = pairs.iter().flat_map(Pairs::iter).map(|it| it.1).collect();
        let is_taken = |stack: StackIndex| {
            let path = project.stacks[stack].path.as_str();
            let is_known = document.is_some_and(|it| it.stacks.contains_key(path));
            is_known && !moves.contains(path) && drivers.entry(stack).is_none()
        };
        let all_approved = self.args.auto_approve && !self.is_from_file;
        let stacks = project.stacks.iter().map(|(stack, of_stack)| {
            let driver = drivers.of(stack);
            let entry = drivers.entry(stack).map(|(_, entry)| entry);
            let problem = match &driver {
                _ if in_cycle.contains(&stack) => {
                    Some("it is part of a cycle (see `orch validate`)".to_owned())
                }
                None => Some("it has no driver (see `orch help drivers`)".to_owned()),
                Some(_) if is_taken(stack) => {
                    Some("another stack is on record at its path".to_owned())
                }
                Some(_) => ahead.get(&stack).cloned(),
            };
            FollowUpStack {
                driver: driver.unwrap_or_else(|| Driver::none(project)),
                problem,
                is_new: document.is_some() && entry.is_none(),
                backend: entry.and_then(|entry| entry.backend.clone()),
                recorded: entry.and_then(|entry| entry.outputs.clone()),
                triggered_by: entry
                    .and_then(|entry| entry.applied.as_ref())
                    .map(|applied| applied.triggered_by.clone())
                    .unwrap_or_default(),
                is_approved: all_approved || of_stack.autodeploy,
            }
        });
        stacks.collect()
    }
}

/// Returns the turns that an apply begins with.
fn turns(applying: &Applying<'_, '_>, run: &str) -> Vec<WorkflowTurn> {
    let at = now();
    let turns = applying.turns.iter().zip(&applying.execution.turns);
    let turns = turns
        .enumerate()
        .map(|(number, (&(stack, operation), turn))| {
            let id = turn_id(run, number);
            let path = turn.stack.clone();
            WorkflowTurn {
                kind: match operation {
                    Operation::Destroy => TurnKind::Destroy,
                    Operation::Run | Operation::Ask | Operation::Apply => TurnKind::Tracked,
                },
                ..WorkflowTurn::new(id, stack.here(), path, at)
            }
        });
    turns.collect()
}

/// Returns what is put on record of what policies ask for, by stack.
pub(super) fn records(
    loaded: &Loaded,
    document: Option<&Document>,
    lock: &StateLock,
) -> HashMap<StackPath, StackRecord> {
    let drivers = Drivers::new(loaded, document);
    let stacks = loaded.project.stacks.iter();
    let records = stacks.filter_map(|(stack, of_stack)| {
        let action = Action::Apply;
        let command = format!("{} {}", drivers.of(stack)?.name, action.word());
        let record = lock.record(&loaded.project, stack, action, command)?;
        Some((of_stack.path.clone(), record))
    });
    records.collect()
}
