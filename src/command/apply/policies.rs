//! Policies in an apply: their input, and the follow-ups that they may add.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::Apply;
use crate::change::{EntryIndex, Rollback};
use crate::command::order_followups::{Claim, FollowUpRemarks, OpenFollowUps};
use crate::command::workflow::{EarlierWorkflow, PolicyRequest, PreparedPolicies};
use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Error, ErrorContext as _, Result};
use crate::folder::GuardedFolder;
use crate::path::StackPath;
use crate::plan::apply::{ApplyFollowUps, ApplyOptions, FollowUpStack, PreparedApply};
use crate::plan::code::PlanCode;
use crate::plan::entry::PlanMode;
use crate::plan::planner::Drivers;
use crate::plan::stale::DoneOperations;
use crate::project::Project;
use crate::project::environment::Environments;
use crate::project::stack::StackIndex;
use crate::record::journal::{
    AskedRecord, DRIFT, JournalError, PoliciesRecord, RunRecord, Runs, TRACKED,
};
use crate::run::facts::on_record;
use crate::run::policies::LoadedPolicies;
use crate::run::state::NewEntry;
use crate::run::state_lock::StateLock;
use crate::run::workflow::{Follower, RunFacts, TurnKind, WorkflowTurn, now, turn_id};
use crate::state::document::{Document, RunAction};

pub(super) struct ApplyPolicies {
    pub(super) policies: LoadedPolicies,
    /// The workflow of the plan's earlier runs, if any.
    pub(super) earlier: Option<EarlierWorkflow>,
    /// The results of a work order that are evaluated, if any.
    pub(super) claim: Option<Claim>,
    /// What a user should know of the follow-ups of a work order.
    pub(super) remarks: FollowUpRemarks,
}

impl ApplyPolicies {
    /// Returns whether earlier runs have left work besides that of the plan.
    pub(super) fn is_open(&self) -> bool {
        let earlier = self.earlier.as_ref().map(|it| &it.earlier);
        earlier.is_some_and(|it| !it.unevaluated.is_empty() || !it.open_followups().is_empty())
    }
}

/// The policies of an apply that is about to begin, with their input.
pub(super) struct PolicyContext {
    now: ApplyPolicies,
    facts: RunFacts,
    rollbacks: BTreeMap<StackIndex, Rollback>,
    /// Whether a user has typed an answer to the plan.
    is_typed: bool,
}

impl PolicyContext {
    pub(super) fn take_claim(&mut self) -> Option<Claim> {
        self.now.claim.take()
    }

    pub(super) fn take_remarks(&mut self) -> FollowUpRemarks {
        std::mem::take(&mut self.now.remarks)
    }

    pub(super) fn ask_about(&self, stack: StackIndex) -> bool {
        !self.now.policies.attached.to_stack(stack).is_empty()
    }
}

pub(super) struct PreparedApplyPolicies {
    pub(super) prepared: PreparedPolicies,
    /// The last run of the jobs of a work order, whose follow-ups run.
    pub(super) continued: Option<String>,
    /// The names of the drivers of possible follow-ups.
    drivers: Vec<(StackIndex, String)>,
}

impl PreparedApplyPolicies {
    /// Returns the state's records of possible follow-ups, by stack.
    pub(super) fn records(
        &self,
        environments: &Environments<'_>,
        lock: &StateLock,
    ) -> HashMap<StackPath, NewEntry> {
        let project = environments.namespaces().project();
        let records = self.drivers.iter().map(|(stack, driver)| {
            let action = RunAction::Apply;
            let command = format!("{driver} {}", action.word());
            let record = lock.record(environments, *stack, action, command);
            (project.stacks[*stack].path.clone(), record)
        });
        records.collect()
    }
}

impl Apply<'_> {
    /// Finds what earlier runs of the plan, or the jobs of its work order, have left for loaded policies.
    pub(super) fn policies_with(
        &self,
        policies: LoadedPolicies,
        context: &mut Context,
        document: Option<&Document>,
        progress: &DoneOperations,
    ) -> Result<ApplyPolicies> {
        let mut found = ApplyPolicies {
            policies,
            earlier: None,
            claim: None,
            remarks: FollowUpRemarks::default(),
        };
        if let Some(ended) = self.ended_order {
            let wait = self.lock_timeout.unwrap_or_default();
            if let Some(follow_ups) = context.order_follow_ups(ended, wait)? {
                found.remarks = follow_ups.remarks;
                if let Some(OpenFollowUps {
                    mut workflow,
                    claim,
                    ..
                }) = follow_ups.open
                {
                    reopen_cut_off(&mut workflow, &context.project, document);
                    (found.earlier, found.claim) = (Some(workflow), Some(claim));
                }
            }
        } else if self.part.is_none() {
            // Jobs only ask policies.
            found.earlier = earlier_workflow(context, document, progress)?;
        }
        Ok(found)
    }

    pub(super) fn following(
        &self,
        context: &mut Context,
        document: Option<&Document>,
        policies: ApplyPolicies,
        is_typed: bool,
    ) -> Result<PolicyContext> {
        let rollbacks = match document {
            Some(document) if !self.rollback.allows && self.part.is_none() => {
                let stacks: Vec<StackIndex> = context
                    .project
                    .stacks
                    .iter()
                    .map(|(stack, _)| stack)
                    .collect();
                context.rollbacks(document, &stacks, self.rollback)?
            }
            _ => BTreeMap::new(),
        };
        Ok(PolicyContext {
            facts: context.run_facts(&self.policies.metadata)?,
            now: policies,
            rollbacks,
            is_typed,
        })
    }

    pub(super) fn followed<'a, 'l>(
        &self,
        context: &'l Context,
        document: Option<&Document>,
        codes: PlanCode<'a, 'l>,
        options: &ApplyOptions<'_>,
        following: PolicyContext,
        applying: &mut PreparedApply<'a, 'l>,
    ) -> Result<PreparedApplyPolicies> {
        let ApplyOptions {
            run,
            folder,
            extra,
            is_rejected,
            ..
        } = *options;
        let project = &context.project;
        let PolicyContext {
            now: ApplyPolicies {
                policies, earlier, ..
            },
            facts,
            rollbacks,
            is_typed,
        } = following;
        let is_refresh = self.saved.plan.mode == PlanMode::RefreshOnly;
        let begun = BegunApply {
            run,
            is_refresh,
            asker: is_typed.then(|| facts.session.asker()),
        };
        let request = PolicyRequest {
            run,
            kind: if is_refresh { DRIFT } else { TRACKED },
            followup: None,
            metadata: &self.policies.metadata,
            excluded: self
                .saved
                .excluded
                .iter()
                .map(StackPath::to_string)
                .collect(),
            earlier: earlier.as_ref(),
            if_changed: "make a new plan, or add `--policies=off`",
        };
        let record = context.policies_record(&policies, request)?;
        let (turns, n_reopened, asked) = turns(applying, &begun, earlier.as_ref(), &facts);
        let ended = earlier.as_ref().filter(|_| self.ended_order.is_some());
        let continued = ended.and_then(|it| it.runs.last().cloned());
        let record = PoliciesRecord {
            turns: turn_stacks(applying),
            asked,
            ..record
        };
        let (before, unevaluated) = earlier.map_or_else(Default::default, |it| {
            (it.earlier.turns, it.earlier.unevaluated)
        });
        let all = (before, turns);
        let mut follower = context.follower(policies, facts, run, &record.excluded, all);
        if let Some(document) = document {
            follower.recall(on_record(project, document)?);
        }
        if self.part.is_some() {
            return Ok(PreparedApplyPolicies {
                prepared: PreparedPolicies {
                    follower: follower.only_asking(),
                    followups: Vec::new(),
                    unevaluated: Vec::new(),
                    n_reopened: 0,
                    record,
                },
                continued: None,
                drivers: Vec::new(),
            });
        }
        let stacks = self.stacks((context, document), &follower, &rollbacks, is_rejected);
        let drivers = project
            .stacks
            .iter()
            .zip(&stacks)
            .filter(|(_, it)| it.problem.is_none())
            .map(|((stack, _), it)| (stack, it.driver.name.to_owned()))
            .collect();
        let followups = ApplyFollowUps {
            codes,
            run: run.to_owned(),
            folder: folder.to_owned(),
            extra: extra.to_vec(),
            keeps_state: document.is_some(),
            stacks,
            lock_timeout: self.lock_timeout,
        };
        let places = applying.places.as_ref().context("turns may be added")?;
        let followups = applying.director.follow(followups, places);
        Ok(PreparedApplyPolicies {
            prepared: PreparedPolicies {
                follower,
                followups,
                unevaluated,
                n_reopened,
                record,
            },
            continued,
            drivers,
        })
    }

    /// Returns the data for follow-ups, by stack.
    fn stacks<'l>(
        &self,
        (context, document): (&'l Context, Option<&Document>),
        follower: &Follower,
        rollbacks: &BTreeMap<StackIndex, Rollback>,
        is_rejected: bool,
    ) -> Vec<FollowUpStack<'l>> {
        let project = &context.project;
        let drivers = Drivers::new(context, document);
        let mut cannot = context.cannot_follow(document);
        // Rejecting a plan approves nothing. Approving a destroy, or drift, approves no changes.
        let changes_nothing_else = self.saved.plan.mode != PlanMode::Normal;
        let is_no_answer = self.is_from_file() || is_rejected || changes_nothing_else;
        let all_approved = self.approval.is_given && !is_no_answer;
        let stacks = project.stacks.iter().map(|(stack, of_stack)| {
            let driver = drivers.of(stack);
            let entry = drivers.entry(stack).map(|(_, entry)| entry);
            let rollback = || rollbacks.get(&stack).map(Rollback::why_with_fetch);
            let problem = cannot.remove(&stack).or_else(rollback);
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
                may_destroy_resources: project.allows_resource_destroy(stack)
                    || self.allows.resource_destroy && !is_no_answer,
                needs_state: follower.is_attached(stack),
            }
        });
        stacks.collect()
    }
}

/// Returns the workflow of the plan file's earlier runs on this machine, if policies followed them.
/// Fails if the journal of one of the runs is missing or unreadable, unless the last run finished
/// all its work.
pub(super) fn earlier_workflow(
    context: &Context,
    document: Option<&Document>,
    progress: &DoneOperations,
) -> Result<Option<EarlierWorkflow>> {
    let project = &context.project;
    let root = &project.root;
    let read = progress.followed.iter().map(|run| read_run(root, run));
    let mut records = match read.collect::<Result<Vec<RunRecord>>>() {
        Ok(records) => records,
        Err(_)
            if progress
                .last_run
                .as_ref()
                .is_some_and(|it| it.has_succeeded) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let last = records.last().and_then(|it| it.header.policies.clone());
    let Some(last) = last else { return Ok(None) };
    records.retain(|record| {
        let policies = record.header.policies.as_ref();
        policies.is_some_and(|it| it.workflow == last.workflow)
    });
    let records: Vec<&RunRecord> = records.iter().collect();
    let mut workflow = EarlierWorkflow::new(project, &records, last);
    reopen_cut_off(&mut workflow, project, document);
    Ok(Some(workflow))
}

/// The state takes precedence over local journals: a turn has not ended if the killed run could not
/// record that.
fn reopen_cut_off(workflow: &mut EarlierWorkflow, project: &Project, document: Option<&Document>) {
    let Some(document) = document else { return };
    let pairs = EntryIndex::new(&project.stacks, document);
    for (stack, of_stack) in project.stacks.iter() {
        let entry = pairs.key(stack).map(|key| &document.stacks[key]);
        let last = workflow.earlier.last(&of_stack.path);
        if let (Some(entry), Some((_, last))) = (entry, last)
            && entry.was_cut_off_in(last.run())
        {
            workflow.earlier.reopen(&of_stack.path);
        }
    }
}

/// Reads the journal of a run that has applied part of the plan.
fn read_run(root: &Path, run: &str) -> Result<RunRecord> {
    let read = || -> std::result::Result<Option<RunRecord>, JournalError> {
        let Some(folder) = GuardedFolder::find(root)? else {
            return Ok(None);
        };
        Runs::find(folder)?.record(run).map(Some)
    };
    let why = match read() {
        Ok(Some(record)) => return Ok(record),
        Ok(None) => "there is no `.orch/runs`".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::refused(format!(
        "the open follow-ups of this plan in run {run} are unknown: {why}"
    ))
    .hint("make a new plan, or add `--policies=off` to run no follow-ups"))
}

struct BegunApply<'a> {
    run: &'a str,
    /// Whether it only accepts drift.
    is_refresh: bool,
    /// The user who has typed an answer to its plan.
    asker: Option<String>,
}

/// Returns the first turns of an apply, followed by unfinished turns of earlier runs. Also returns
/// the number of the latter, and who requested turns that the run itself did not.
fn turns(
    applying: &PreparedApply<'_, '_>,
    begun: &BegunApply<'_>,
    earlier: Option<&EarlierWorkflow>,
    facts: &RunFacts,
) -> (Vec<WorkflowTurn>, usize, Vec<AskedRecord>) {
    let BegunApply {
        run,
        is_refresh,
        asker,
    } = begun;
    let at = now();
    let mut asked = Vec::new();
    let mut all = Vec::new();
    let of_plan = applying.turns.iter().zip(&applying.execution.turns);
    for (number, (&(stack, operation), turn)) in of_plan.enumerate() {
        let id = turn_id(run, number);
        let mut turn = WorkflowTurn::new(id, stack.here(), turn.stack.clone(), at);
        let last = earlier.and_then(|it| it.earlier.last(&turn.path));
        if let Some((_, last)) = last {
            let again = turn.ask_again(last, &facts.session);
            // It is in the plan.
            (turn.is_followup, turn.was_added) = (false, false);
            asked.extend(again.map(|it| AskedRecord {
                follows: false,
                ..it
            }));
        } else if let Some(asker) = asker {
            turn.triggered_by = Some(asker.clone());
            asked.push(AskedRecord {
                stack: turn.path.to_string(),
                by: turn.triggered_by.clone(),
                kept: false,
                follows: false,
            });
        }
        turn.kind = TurnKind::of(operation, *is_refresh);
        all.push(turn);
    }
    let planned: BTreeSet<StackPath> = all.iter().map(|turn| turn.path.clone()).collect();
    let open = earlier.map_or_else(Vec::new, |it| it.earlier.open_followups());
    let n_planned = all.len();
    for last in open
        .into_iter()
        .filter(|turn| !planned.contains(&turn.path))
    {
        let id = turn_id(run, all.len());
        let mut turn = WorkflowTurn::new(id, last.stack, last.path.clone(), at);
        asked.extend(turn.ask_again(last, &facts.session));
        all.push(turn);
    }
    let n_reopened = all.len() - n_planned;
    (all, n_reopened, asked)
}

/// Returns the stack of each first turn of an apply, if one stack has several.
fn turn_stacks(applying: &PreparedApply<'_, '_>) -> Vec<String> {
    let turns = &applying.execution.turns;
    let stacks: BTreeSet<&StackPath> = turns.iter().map(|turn| &turn.stack).collect();
    let is_any_twice = stacks.len() < turns.len();
    let turns = turns.iter().filter(|_| is_any_twice);
    turns.map(|turn| turn.stack.to_string()).collect()
}
