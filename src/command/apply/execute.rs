//! Applies a verified plan: asks for approval, locks the state, prepares and runs the turns.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::Apply;
use super::approve::{ApprovalAnswer, ApprovedPlan, approve, rejected};
use super::lock::{HeldLock, action_of, before_planning};
use super::policies::{ApplyPolicies, PolicyContext, earlier_workflow};
use super::unconfirmed::{Unconfirmed, plan_again};
use super::verified::VerifiedPlan;
use crate::change::EntryIndex;
use crate::command::plan::cannot_ask;
use crate::command::workflow::{EarlierWorkflow, warn_of_unevaluated};
use crate::context::{Context, PLANS as FOLDER, PrivateFolder};
use crate::duration::local_time;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::ExitStatus;
use crate::path::StackPath;
use crate::plan::DestroyedResources;
use crate::plan::apply::{self, ApplyOptions, ApplyProject, ApplyStack};
use crate::plan::code::PlanCode;
use crate::plan::inputs::StackInputs;
use crate::plan::planner::{Commits, Protections};
use crate::plan::stack::{PlanStack, RemovedCode};
use crate::plan::stale::{LastRun, failed_beside, last_run};
use crate::plan::verify::{RemainingWork, recorded_outputs, used_outputs};
use crate::printable::{count, printable};
use crate::project::environment::Environments;
use crate::project::namespaces::Generations;
use crate::project::stack::StackIndex;
use crate::run::request::new_id;
use crate::run::state_lock::{LockRequest, Lockable, StateLock, check_keys};
use crate::selection::reference::{ReferenceKind, ReferenceTarget};
use crate::state::document::Document;

impl Apply<'_> {
    /// Applies the rest of the plan. Fails even after success if stacks with work were not changed.
    pub fn execute(&self, commits: Commits, held: Option<HeldLock>) -> Result<ExitStatus> {
        let status = self.carry_out_plan(commits, held)?;
        if !self.reports_left_out() {
            return Ok(status);
        }
        let plan = &self.saved.plan;
        let kept: Vec<&str> = plan
            .blocked_changes()
            .map(|entry| entry.stack.as_str())
            .collect();
        if let Some(names) = first_names(&kept) {
            let stacks = counted(kept.len(), "stack is", "stacks are");
            self.notices
                .note(&format!("{stacks} blocked and left unchanged: {names}"));
        }
        let failed: Vec<&str> = plan.failed.iter().map(|it| it.stack.as_str()).collect();
        if let Some(names) = first_names(&failed) {
            let stacks = counted(failed.len(), "stack was", "stacks were");
            self.notices
                .note(&format!("{stacks} left out after failing to plan: {names}"));
        }
        Ok(match (status, self.left_out_status()) {
            (ExitStatus::Success | ExitStatus::Run(0), 4) => ExitStatus::Refused,
            (ExitStatus::Success | ExitStatus::Run(0), left_out) => ExitStatus::Run(left_out),
            (status, _) => status,
        })
    }

    /// Returns whether it reports the stacks that the plan leaves out: of the parts of a work order, the last one does.
    fn reports_left_out(&self) -> bool {
        self.ended_order.is_none() && self.part.is_none_or(|part| part.records)
    }

    /// Returns the exit status if everything else succeeds: 1 if stacks could not be planned, 4 if some are blocked.
    fn left_out_status(&self) -> u8 {
        let plan = &self.saved.plan;
        if !self.reports_left_out() {
            0
        } else if !plan.failed.is_empty() {
            1
        } else if plan.blocked_changes().next().is_some() {
            4
        } else {
            0
        }
    }

    fn carry_out_plan(
        &self,
        mut commits: Commits,
        mut held: Option<HeldLock>,
    ) -> Result<ExitStatus> {
        let mut verified = self.first_verified(&mut held)?;
        self.verification().check_drift(&verified.context.project)?;
        self.note_outdated(&verified);
        let has_work_left = self.has_work_left(&verified)?;
        let earlier = verified
            .policies
            .as_ref()
            .and_then(|it| it.earlier.as_ref());
        if let Some(earlier) = earlier {
            earlier.warn(&self.notices);
        }
        if verified.policies.is_none() {
            self.warn_of_open_followups(&verified);
        }
        // Updating only the state needs no approval.
        let to_do = verified.to_do(self.saved);
        let is_asked = has_work_left && !to_do.is_silent();
        // The approval is for the whole plan, and not for each job.
        let whole = self.part.filter(|part| !part.records);
        let whole = whole.map(|_| verified.all_to_do(self.saved));
        let (n_destroys, n_late) = whole.as_ref().unwrap_or(&to_do).n_destroying();
        let resources = self.unapproved_resources(&verified, &to_do);
        if is_asked && !self.approval.covers(n_destroys, &resources) {
            // The process may be killed at the prompt, which would leave the checkouts behind.
            commits = Commits::default();
            // Other runs must not wait during the prompt.
            held = None;
        }
        let consent = if is_asked {
            approve(
                (n_destroys, n_late),
                &resources,
                self.approval,
                self.terminal,
            )?
        } else {
            ApprovalAnswer::NotAsked
        };
        if consent == ApprovalAnswer::Refused && verified.policies.is_none() {
            return Err(rejected());
        }
        let is_held = held.is_some();
        let (run, mut lock) = match held {
            Some(HeldLock { run, lock }) => (run, Some(lock)),
            None => (new_id(&verified.context.project.root), None),
        };
        if !is_held {
            lock = self.lock(&mut verified, &run, has_work_left)?;
        }
        if !has_work_left {
            return self.end_without_work(verified, lock);
        }
        // The prompt, or the wait for the lock, may have taken hours.
        if consent != ApprovalAnswer::NotAsked || lock.is_some() && !is_held {
            verified = self.verify(Some(verified), lock.as_mut())?;
            if !self.has_work_left(&verified)? {
                return self.end_without_work(verified, lock);
            }
        }
        let unplanned = verified
            .policies
            .as_ref()
            .map(|policies| policies.unplanned(&verified.context));
        let is_typed = consent != ApprovalAnswer::NotAsked;
        let policies = match verified.policies.take() {
            Some(policies) => {
                let VerifiedPlan {
                    context, document, ..
                } = &mut verified;
                Some(self.following(context, document.as_ref(), policies, is_typed)?)
            }
            None => None,
        };
        let is_rejected = consent == ApprovalAnswer::Refused;
        if is_rejected {
            self.notices
                .note("not approved: evaluating policies to see what follows");
        }
        let approved = self.approved(&verified, consent);
        let (status, mut left) = self.run_claimed(approved, &run, lock, commits, policies)?;
        let status = self.ended(verified, status);
        left.add(unplanned.unwrap_or_default());
        let status = self.keep(&left, status)?;
        if is_rejected {
            let what = "not approved: nothing was applied";
            return Err(Error::refused(what));
        }
        Ok(status)
    }

    fn end_without_work(
        &self,
        mut verified: VerifiedPlan,
        lock: Option<StateLock>,
    ) -> Result<ExitStatus> {
        let policies = verified.policies.as_ref();
        let left = policies
            .map(|policies| policies.unplanned(&verified.context))
            .unwrap_or_default();
        let are_incomplete = policies.is_some_and(|it| it.remarks.show(&self.notices));
        if let Some(policies) = policies.filter(|_| self.ended_order.is_none()) {
            self.check_failed_followups(&verified, policies)?;
        }
        let status = match self.after_gate(&verified, ExitStatus::Success) {
            ExitStatus::Success if are_incomplete => ExitStatus::Run(1),
            status => status,
        };
        if status == ExitStatus::Success && left.stacks.is_empty() {
            self.note_nothing_left(&verified);
        }
        if let (None, Some(document)) = (&lock, &verified.document) {
            let lockable = Lockable::new(&mut verified.context, document)?;
            lockable.record_newer_commits(&verified.context.project, document);
        }
        drop(lock);
        self.end(verified);
        self.keep(&left, status)
    }

    /// Runs the approved rest of a plan. If it evaluates the results of a work order, it claims them.
    fn run_claimed(
        &self,
        approved: ApprovedPlan<'_>,
        run: &str,
        lock: Option<StateLock>,
        commits: Commits,
        mut policies: Option<PolicyContext>,
    ) -> Result<(ExitStatus, Unconfirmed)> {
        let context = &approved.verified.context;
        let claim = policies.as_mut().and_then(PolicyContext::take_claim);
        let remarks = policies.as_mut().map(PolicyContext::take_remarks);
        if let Some(claim) = &claim
            && !claim.put(run)?
        {
            let what = "another `orch finish` has evaluated these policies meanwhile";
            return Err(Error::refused(what).hint("run `orch finish` again"));
        }
        let ended = self.prepare_and_run(approved, run, lock, commits, policies);
        let claimed = claim.map(|claim| claim.end(context, run)).transpose();
        let (status, left) = ended?;
        claimed?;
        let are_incomplete = remarks.is_some_and(|it| it.show(&self.notices));
        Ok(match status.number() {
            0 if are_incomplete => (ExitStatus::Run(1), left),
            _ => (status, left),
        })
    }

    /// Verifies the plan. If a plan file is stale, the run that holds the lock may be applying the
    /// same plan. Then the plan is verified again after that run, within `--lock-timeout`.
    fn first_verified(&self, held: &mut Option<HeldLock>) -> Result<VerifiedPlan> {
        let found = self.verify(None, held.as_mut().map(|held| &mut held.lock));
        let waits = self.is_from_file() && held.is_none() && self.lock_timeout.is_some();
        // A job would wait for the lock of its own work order.
        let waits = waits && self.part.is_none();
        match found {
            Err(error) if waits && error.kind() == ErrorKind::Refused => {}
            found => return found,
        }
        *held = before_planning(
            self.terminal,
            self.lock_timeout,
            self.saved.plan.mode,
            false,
        )?;
        self.verify(None, held.as_mut().map(|held| &mut held.lock))
    }

    /// Returns the destroyed resources in kept stacks that no plan file, flag or configuration
    /// approves.
    fn unapproved_resources(
        &self,
        verified: &VerifiedPlan,
        to_do: &RemainingWork<'_>,
    ) -> Vec<DestroyedResources<'_>> {
        if self.is_from_file() || self.allows.resource_destroy {
            return Vec::new();
        }
        let project = &verified.context.project;
        let stacks = to_do.stacks.iter().filter_map(|it| it.stack.here());
        let left: BTreeSet<&StackPath> = stacks
            .filter(|stack| !project.allows_resource_destroy(*stack))
            .map(|stack| &project.stacks[stack].path)
            .collect();
        let all = self.saved.plan.destroyed_resources();
        all.filter(|it| left.contains(it.stack)).collect()
    }

    /// Warns of unfinished follow-ups of earlier runs, which do not run because policies are off.
    fn warn_of_open_followups(&self, verified: &VerifiedPlan) {
        let earlier = earlier_workflow(
            &verified.context,
            verified.document.as_ref(),
            &verified.progress,
        );
        let earlier = match earlier {
            Ok(Some(EarlierWorkflow { earlier, .. })) => earlier,
            Ok(None) => return,
            Err(error) => {
                let why = error.message();
                self.notices
                    .warning(&format!("{why}; none is run, because policies are off"));
                return;
            }
        };
        let n_open = earlier.open_followups().len();
        if n_open > 0 {
            let (what, are) = (
                count(n_open, "follow-up"),
                if n_open == 1 { "is" } else { "are" },
            );
            self.notices.warning(&format!(
                "{what} of an earlier run {are} not run, because policies are off"
            ));
        }
        warn_of_unevaluated(&self.notices, earlier.unevaluated.len());
    }

    /// Checks that no follow-up has failed. Only the journals of earlier runs, which may be on
    /// another machine, allow to continue.
    fn check_failed_followups(
        &self,
        verified: &VerifiedPlan,
        policies: &ApplyPolicies,
    ) -> Result<()> {
        let Some(document) = &verified.document else {
            return Ok(());
        };
        let earlier = policies.earlier.as_ref();
        let here = earlier.map_or(&[][..], |it| &it.runs);
        let keys: BTreeSet<&str> = failed_beside(document, &self.saved.plan.id, here)
            .into_iter()
            .collect();
        let pairs = EntryIndex::new(&verified.context.project.stacks, document);
        let failed: Vec<StackPath> = pairs
            .iter()
            .filter(|(_, key)| keys.contains(key))
            .map(|(stack, _)| verified.context.project.stacks[stack].path.clone())
            .collect();
        let which = match &*failed {
            [] => return Ok(()),
            [stack] => printable(stack.as_str()).into_owned(),
            [stack, others @ ..] => {
                format!("{} and {} more", printable(stack.as_str()), others.len())
            }
        };
        Err(Error::refused(format!(
            "this plan was applied, but its follow-up in {which} did not succeed, and the journal of that run is not on this machine"
        ))
        .hint(format!("to plan the rest, run `{}`", plan_again(&failed))))
    }

    /// Notes stacks without work that the last job of a work order cannot record.
    fn note_outdated(&self, verified: &VerifiedPlan) {
        let jobs = self.part.iter().flat_map(|part| part.jobs.values());
        let with_work: BTreeSet<&StackPath> = jobs.flatten().map(|(stack, _)| stack).collect();
        let outdated = verified.outdated.iter();
        let outdated = outdated.filter(|stack| !with_work.contains(stack));
        let outdated: Vec<&str> = outdated.map(StackPath::as_str).collect();
        if let Some(names) = first_names(&outdated) {
            self.notices.note(&format!(
                "not recorded, because changed since the plan: {names}; `orch plan` shows what is left"
            ));
        }
    }

    /// Notes that there is nothing to do. The last job of a work order lists what is left.
    fn note_nothing_left(&self, verified: &VerifiedPlan) {
        let is_finish = self.ended_order.is_some() || self.part.is_some_and(|part| part.records);
        if !is_finish && self.saved.plan.blocked_changes().next().is_none() {
            self.notices.note(&self.nothing_left(verified));
        }
    }

    /// Returns the note that there is nothing to do, and for a plan file, when it was applied.
    fn nothing_left(&self, verified: &VerifiedPlan) -> String {
        if self.part.is_some() {
            return "nothing to do: all stacks of the job are done".to_owned();
        }
        let document = verified.document.as_ref();
        let in_document = || last_run(document?, &self.saved.plan.id);
        // If the run here did not finish it, one on another machine may have.
        let here = || verified.progress.last_run.clone();
        let finished = here().filter(|last| last.has_succeeded);
        let last = finished.or_else(in_document).or_else(here);
        match last.filter(|_| self.is_from_file()) {
            Some(LastRun { run, at, .. }) => format!(
                "nothing to do: the plan was applied at {} by run {}",
                local_time(at),
                printable(&run)
            ),
            None => "there is nothing to do".to_owned(),
        }
    }

    /// Returns whether work is left. Fails if that work is not allowed.
    fn has_work_left(&self, verified: &VerifiedPlan) -> Result<bool> {
        let is_open = verified
            .policies
            .as_ref()
            .is_some_and(ApplyPolicies::is_open);
        let to_do = verified.to_do(self.saved);
        let has_ended = |it: &LastRun| it.has_succeeded;
        let has_ended = verified.progress.last_run.as_ref().is_some_and(has_ended);
        if !is_open && (to_do.is_empty() || has_ended && !to_do.has_work()) {
            return Ok(false);
        }
        if (verified.progress.has_begun || is_open) && !self.resumes {
            let what = "this plan was already started";
            return Err(
                Error::refused(what).hint("to continue it, add `--resume`; or make a new plan")
            );
        }
        self.check_left_behind(&verified.context, verified.document.as_ref())?;
        Ok(true)
    }

    /// Adds the options of the plan and the flags for stacks that are applied.
    fn complete(
        &self,
        stacks: &mut [ApplyStack<'_>],
        verified: &VerifiedPlan,
        environments: &Environments<'_>,
        policies: Option<&PolicyContext>,
    ) {
        let made = self.made(&verified.context);
        for stack in stacks {
            stack.may_destroy_resources |= self.allows.resource_destroy;
            stack.checks.needs_state = policies
                .zip(stack.stack.here())
                .is_some_and(|(policies, here)| policies.ask_about(here));
            if let Some(here) = stack.stack.here().filter(|_| verified.document.is_none()) {
                stack.triggered_by = self.outputs_before(&verified.context, here);
            }
            if let Some(here) = stack.stack.here().filter(|_| !made.is_empty()) {
                let used = environments.stacks_used(here).into_keys();
                stack.generations = used.filter(|used| made.contains(used)).collect();
            }
        }
    }

    /// Returns the approved rest of a plan.
    fn approved<'s>(
        &'s self,
        verified: &'s VerifiedPlan,
        consent: ApprovalAnswer,
    ) -> ApprovedPlan<'s> {
        let typed = match consent {
            ApprovalAnswer::Given(destroys) => destroys,
            ApprovalAnswer::Refused | ApprovalAnswer::NotAsked => 0,
        };
        let VerifiedPlan {
            context, document, ..
        } = verified;
        let mut to_do = verified.to_do(self.saved);
        let n_allowed = self.approval.destroys.max(typed);
        let all = self.part.map(|_| verified.all_to_do(self.saved));
        let (n_destroys, n_late) = all.as_ref().unwrap_or(&to_do).n_destroying();
        to_do.allow_late(n_allowed >= n_destroys + n_late);
        let (project, document) = (&context.project, document.as_ref());
        // Another job may record stacks whose outputs this one uses.
        let recording = all.as_ref().unwrap_or(&to_do);
        let plan = &self.saved.plan.id;
        let recorded = recorded_outputs(project, document, recording, plan);
        let mut outputs = used_outputs(project, &context.graph, document, &recorded);
        to_do.leave_out_recorded(project, document, &mut outputs);
        if consent == ApprovalAnswer::Refused {
            to_do.keep_records();
        }
        ApprovedPlan {
            verified,
            to_do,
            outputs,
            recorded,
            is_rejected: consent == ApprovalAnswer::Refused,
        }
    }

    fn prepare_and_run(
        &self,
        approved: ApprovedPlan<'_>,
        run: &str,
        lock: Option<StateLock>,
        mut commits: Commits,
        policies: Option<PolicyContext>,
    ) -> Result<(ExitStatus, Unconfirmed)> {
        let ApprovedPlan {
            verified,
            mut to_do,
            outputs,
            recorded,
            is_rejected,
        } = approved;
        let context = &verified.context;
        let document = verified.document.as_ref();
        let may_add = policies.is_some() && self.part.is_none();
        let checker = self.check_conditions(context, document, &mut to_do, may_add)?;
        check_recorded(context, document, &to_do)?;
        let folder = PrivateFolder::of(context, FOLDER)?;
        let generations = Arc::new(self.generations(context));
        let environments = context.evaluator().in_generations(generations);
        let extra: Vec<_> = self.saved.extra.iter().map(|word| word.0.clone()).collect();
        let mut removals = verified.removals(&to_do);
        removals.check_out(context, &mut commits)?;
        let of_commits = removals.environments(&commits);
        let codes = removals.codes(context, document, &commits, &of_commits, &extra);
        context.ready(
            &self.tools(),
            self.jobs,
            document,
            &commits,
            &mut removals,
            &codes,
        )?;
        self.verification().check_removals(
            context,
            verified.recorded(),
            &to_do,
            &mut removals,
            &codes,
        )?;
        let of_commands: Vec<RemovedCode<'_, '_>> = codes
            .iter()
            .map(|code| code.code(&removals.all[code.removal]))
            .collect();
        let removed = codes.iter().zip(&to_do.removed).enumerate();
        let removed = removed.map(|(position, (code, it))| ApplyStack {
            leaving: removals.all[code.removal].leaving.clone(),
            ..it.stack(position, code.driver)
        });
        let mut stacks: Vec<_> = to_do.stacks.iter().cloned().chain(removed).collect();
        self.complete(&mut stacks, verified, &environments, policies.as_ref());
        let with_generations = removals.with_generations(document);
        let inputs = self.inputs(context, document, &stacks, &of_commands, may_add)?;
        let options = ApplyOptions {
            run,
            folder: folder.path(),
            init: self.init,
            extra: &extra,
            jobs: self.jobs,
            on_error: self.on_error,
            allows_new_changes: self.allows.new_changes,
            is_partly_applied: self.resumes,
            keeps_state: document.is_some(),
            may_add,
            is_rejected,
            left_out_status: self.left_out_status(),
            done: &to_do.done,
            lock_timeout: self.lock_timeout,
        };
        let codes = PlanCode {
            removed: &of_commands,
            inputs: inputs.as_ref(),
            ..PlanCode::of_tree(&context.project, &environments)
        };
        let prepared = apply::prepare(
            ApplyProject {
                codes,
                graph: &context.graph,
                references: &context.references,
                document: with_generations.as_ref().or(document),
            },
            &stacks,
            outputs,
            &options,
            &mut |stack, to| self.put_plan(stack, to),
        );
        match prepared {
            Ok(mut applying) => {
                let protections = Protections::new(context, document);
                applying.director.guard_with(protections.into_guard());
                applying.director.set_outputs(recorded);
                if let Some(checker) = checker {
                    applying.director.check_with(checker);
                }
                let followed = policies.map(|policies| {
                    let document = with_generations.as_ref().or(document);
                    self.followed(context, document, codes, &options, policies, &mut applying)
                });
                let followed = followed.transpose()?;
                self.run(verified, run, applying, &to_do, lock, followed)
            }
            Err(cannot) => Err(cannot_ask(context, cannot)),
        }
    }

    /// Finds the inputs of the stacks with turns, and of all others if turns may be added. Runs `init` where the
    /// outputs for the first are read.
    fn inputs<'c>(
        &self,
        context: &'c Context,
        document: Option<&Document>,
        stacks: &[ApplyStack<'_>],
        removed: &[RemovedCode<'_, 'c>],
        may_add: bool,
    ) -> Result<Option<StackInputs<'c>>> {
        let acting = || stacks.iter().map(|it| it.stack);
        let others = context.project.stacks.iter().map(|(stack, _)| stack);
        let all = acting().filter_map(PlanStack::here);
        let all = all.chain(others.filter(|_| may_add));
        let inputs = context.stack_inputs(all, removed, document)?;
        if let Some(inputs) = &inputs {
            context.init_sources(&self.tools(), self.jobs, inputs, acting())?;
        }
        Ok(inputs)
    }

    /// Returns digests of the outputs that replace a stack if they change, as of the plan, by
    /// reference. Without a state, only these show whether they change.
    fn outputs_before(&self, context: &Context, stack: StackIndex) -> BTreeMap<String, String> {
        let references = context.references.list.iter();
        let triggers = references
            .filter(|it| it.from == stack && it.kind == ReferenceKind::ReplaceTriggeredBy);
        let before = triggers.filter_map(|reference| {
            let (Some(output), ReferenceTarget::Stack(named)) =
                (&reference.output, &reference.target)
            else {
                return None;
            };
            let path = &context.project.stacks[*named].path;
            let outputs = self.saved.stack(path)?.outputs_before.as_ref()?;
            let digest = match outputs.digests().remove(output) {
                Some(digest) => digest,
                None if outputs.names().any(|name| name == output) => return None,
                None => String::new(),
            };
            Some((format!("{path}#{output}"), digest))
        });
        before.collect()
    }

    fn made(&self, context: &Context) -> BTreeSet<StackIndex> {
        let entries = self.saved.plan.entries.iter();
        let made = entries
            .filter(|entry| entry.generation.is_some())
            .filter_map(|entry| context.project.stacks.find(&entry.stack));
        made.collect()
    }

    pub(super) fn generations(&self, context: &Context) -> Generations {
        let entries = self.saved.plan.entries.iter();
        let made = entries.filter_map(|entry| Some((entry.stack.clone(), entry.generation?)));
        context.state.generations.with(made)
    }

    /// Locks the state, if the project keeps one. Waits for the lock only if there is work left.
    fn lock(
        &self,
        verified: &mut VerifiedPlan,
        run: &str,
        has_work_left: bool,
    ) -> Result<Option<StateLock>> {
        let Some(document) = &verified.document else {
            return Ok(None);
        };
        // A killed run may have left its lock, although there is no work left.
        let is_locked = self.resumes && document.lock.is_some();
        if !has_work_left && !is_locked {
            return Ok(None);
        }
        let lockable =
            Lockable::new(&mut verified.context, document)?.following(self.saved.moves());
        let timeout = self.lock_timeout.filter(|_| has_work_left);
        let job = self.job(&verified.progress);
        let request = LockRequest {
            run,
            action: &action_of(self.saved.plan.mode),
            timeout: timeout.unwrap_or_default(),
            job: job.as_ref(),
        };
        match lockable.lock(&verified.context.project, &request) {
            Ok(lock) => Ok(Some(lock)),
            // Another run holds it; this one has no work.
            Err(error) if !has_work_left && error.kind() == ErrorKind::Refused => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Copies the shown plan of a stack's tool to a path.
    fn put_plan(&self, stack: &StackPath, to: &Path) -> io::Result<()> {
        let saved = self.saved.stack(stack);
        let plan = saved.and_then(|saved| saved.plan);
        let (plan, archive) = plan.zip(self.archive).ok_or(io::ErrorKind::NotFound)?;
        archive.extract(plan, to).map_err(io::Error::other)
    }
}

/// Returns a number with a noun in the singular or the plural.
fn counted(number: usize, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// Checks that no other stack is recorded at the paths of those that will be recorded.
fn check_recorded(
    context: &Context,
    document: Option<&Document>,
    to_do: &RemainingWork<'_>,
) -> Result<()> {
    let Some(document) = document else {
        return Ok(());
    };
    let stacks: Vec<StackIndex> = to_do.recorded().collect();
    check_keys(&context.project.stacks, document, &stacks)
}

/// Names the first of some stacks; `None` if there are none.
fn first_names(stacks: &[&str]) -> Option<String> {
    const MOST: usize = 5;
    if stacks.is_empty() {
        return None;
    }
    let mut names: Vec<String> = stacks
        .iter()
        .take(MOST)
        .map(|it| printable(it).into_owned())
        .collect();
    if let Some(more @ 1..) = stacks.len().checked_sub(MOST) {
        names.push(format!("and {more} more"));
    }
    Some(names.join(", "))
}
