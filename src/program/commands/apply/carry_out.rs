//! Carries a plan out: asks for approval, locks the state, prepares its turns.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use orch::change::Pairs;
use orch::context::{PLANS as FOLDER, PrivateFolder};
use orch::duration::local_time;
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::path::StackPath;
use orch::plan::DestroyedResources;
use orch::plan::apply::{self, ApplyOptions, ApplyStack, Surroundings};
use orch::plan::code::{Code, Codes, RemovedCode};
use orch::plan::planner::{Commits, Protections};
use orch::plan::stale::{LastRun, failed_beside, last_run};
use orch::plan::upstream::Upstream;
use orch::plan::verify::{Todo, upstream};
use orch::printable::{count, printable};
use orch::project::environment::Environments;
use orch::project::namespaces::Generations;
use orch::project::stack::StackIndex;
use orch::run::request::new_id;
use orch::run::session::{LockRequest, Lockable, StateLock, check_keys};
use orch::selection::reference::{ReferenceKind, Target};

use super::approve::{Approved, approve, rejected};
use super::carrying::Carrying;
use super::check::Now;
use super::followed::{Following, NowPolicies, earlier_workflow};
use super::lock::{Held, action_of, before_planning};
use super::unconfirmed::{Unconfirmed, plan_again};
use crate::program::commands::Loaded;
use crate::program::commands::follower::{EarlierWorkflow, warn_of_unevaluated};
use crate::program::commands::plan::tools::{Tools, cannot_ask};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

impl Carrying<'_> {
    /// Carries out the rest of the plan. Fails even after success if stacks with something to do
    /// were not changed.
    pub(super) fn carry_out(&self, commits: Commits, held: Option<Held>) -> Result<ExitStatus> {
        let status = self.carry_out_plan(commits, held)?;
        let plan = &self.saved.plan;
        let kept: Vec<&str> = plan.kept_back().map(|entry| entry.stack.as_str()).collect();
        if let Some(names) = first_names(&kept) {
            let stacks = counted(kept.len(), "stack is", "stacks are");
            console::note(&format!("{stacks} blocked and left unchanged: {names}"));
        }
        let failed: Vec<&str> = plan.failed.iter().map(|it| it.stack.as_str()).collect();
        if let Some(names) = first_names(&failed) {
            let stacks = counted(failed.len(), "stack was", "stacks were");
            console::note(&format!("{stacks} left out after failing to plan: {names}"));
        }
        Ok(match status {
            ExitStatus::Success | ExitStatus::Run(0) if !failed.is_empty() => ExitStatus::Run(1),
            ExitStatus::Success | ExitStatus::Run(0) if !kept.is_empty() => ExitStatus::Refused,
            status => status,
        })
    }

    fn carry_out_plan(&self, mut commits: Commits, mut held: Option<Held>) -> Result<ExitStatus> {
        let mut now = self.first_now(&mut held)?;
        self.verification().check_drift(&now.loaded.project)?;
        let is_left = self.is_left(&now)?;
        let earlier = now.policies.as_ref().and_then(|it| it.earlier.as_ref());
        if let Some(earlier) = earlier {
            earlier.warn();
        }
        if now.policies.is_none() {
            Self::warn_of_open_followups(&now);
        }
        // What only brings the record up to date needs no approval.
        let to_do = now.to_do(self.saved);
        let is_asked = is_left && !to_do.is_silent();
        let n_destroys = to_do.n_destroys();
        let resources = self.unapproved_resources(&now, &to_do);
        if is_asked && !self.approval.covers(n_destroys, &resources) {
            // Whoever is asked may end the process, which would leave the checkouts behind.
            commits = Commits::default();
            // Other runs must not wait during the prompt.
            held = None;
        }
        let approved = if is_asked {
            approve((n_destroys, to_do.n_late()), &resources, self.approval)?
        } else {
            Approved::Unasked
        };
        if approved == Approved::No && now.policies.is_none() {
            return Err(rejected());
        }
        let is_held = held.is_some();
        let (run, mut lock) = match held {
            Some(Held { run, lock }) => (run, Some(lock)),
            None => (new_id(&now.loaded.project.root), None),
        };
        if !is_held {
            lock = self.lock(&mut now, &run, is_left)?;
        }
        if !is_left {
            let policies = now.policies.as_ref();
            let left = policies.map(|policies| policies.unplanned(&now.loaded));
            let left = left.unwrap_or_default();
            if let Some(policies) = policies {
                self.check_failed_followups(&now, policies)?;
            }
            if left.stacks.is_empty() && self.saved.plan.kept_back().next().is_none() {
                console::note(&self.nothing_left(&now));
            }
            if let (None, Some(document)) = (&lock, &now.document) {
                let lockable = Lockable::new(&mut now.loaded, document)?;
                lockable.move_seen(&now.loaded.project, document);
            }
            drop((lock, now));
            return self.keep(&left, ExitStatus::Success);
        }
        // Whoever was asked, or waited for the lock, may have waited for hours.
        if approved != Approved::Unasked || lock.is_some() && !is_held {
            now = self.now(Some(&now), lock.as_mut())?;
            if !self.is_left(&now)? {
                console::note("another run has done it meanwhile: there is nothing to do");
                return Ok(ExitStatus::Success);
            }
        }
        let unplanned = now.policies.as_ref();
        let unplanned = unplanned.map(|policies| policies.unplanned(&now.loaded));
        let policies = match now.policies.take() {
            Some(policies) => {
                let Now {
                    loaded, document, ..
                } = &mut now;
                Some(self.following(loaded, document.as_ref(), policies)?)
            }
            None => None,
        };
        let is_rejected = approved == Approved::No;
        if is_rejected {
            console::note("not approved: evaluating policies to see what follows");
        }
        let (status, mut left) =
            self.prepare_and_run(&now, &run, lock, commits, policies, approved)?;
        drop(now);
        left.add(unplanned.unwrap_or_default());
        let status = self.keep(&left, status)?;
        if is_rejected {
            let what = "not approved: nothing of the plan was carried out";
            return Err(ProgramError::refused(what));
        }
        Ok(status)
    }

    /// Checks that the plan holds. If a plan file does not, the run that holds the lock may be in the middle of the
    /// same plan: then it is checked again once that run has ended, as far as `--lock-timeout` allows.
    fn first_now(&self, held: &mut Option<Held>) -> Result<Now> {
        let found = self.now(None, held.as_mut().map(|held| &mut held.lock));
        let waits = self.is_from_file && held.is_none() && self.args.lock_timeout.is_some();
        match found {
            Err(error) if waits && error.kind() == ErrorKind::Refused => {}
            found => return found,
        }
        *held = before_planning(self.chdir, self.args, self.saved.plan.mode, false)?;
        self.now(None, held.as_mut().map(|held| &mut held.lock))
    }

    /// Returns the resources in kept stacks that are destroyed without the approval of a plan file,
    /// a flag or the configuration.
    fn unapproved_resources(&self, now: &Now, to_do: &Todo<'_>) -> Vec<DestroyedResources<'_>> {
        if self.is_from_file || self.args.allow_resource_destroy {
            return Vec::new();
        }
        let project = &now.loaded.project;
        let stacks = to_do.stacks.iter().filter_map(|it| it.stack.here());
        let left: BTreeSet<&StackPath> = stacks
            .filter(|stack| !project.allows_resource_destroy(*stack))
            .map(|stack| &project.stacks[stack].path)
            .collect();
        let all = self.saved.plan.destroyed_resources();
        all.filter(|it| left.contains(it.stack)).collect()
    }

    /// Warns of follow-ups that earlier runs have left open, and that are not run since policies are off.
    fn warn_of_open_followups(now: &Now) {
        let earlier = earlier_workflow(&now.loaded, now.document.as_ref(), &now.progress);
        let earlier = match earlier {
            Ok(Some(EarlierWorkflow { earlier, .. })) => earlier,
            Ok(None) => return,
            Err(error) => {
                let why = error.message();
                console::warning(&format!("{why}; none is run, because policies are off"));
                return;
            }
        };
        let n_open = earlier.open_followups().len();
        if n_open > 0 {
            let (what, are) = (
                count(n_open, "follow-up"),
                if n_open == 1 { "is" } else { "are" },
            );
            console::warning(&format!(
                "{what} left open by an earlier run {are} not run, because policies are off"
            ));
        }
        warn_of_unevaluated(earlier.unevaluated.len());
    }

    /// Checks that nothing that followed has failed: without the journals of earlier runs, which may be on another
    /// machine, nobody can go on with it.
    fn check_failed_followups(&self, now: &Now, policies: &NowPolicies) -> Result<()> {
        let Some(document) = &now.document else {
            return Ok(());
        };
        let earlier = policies.earlier.as_ref();
        let here = earlier.map_or(&[][..], |it| &it.runs);
        let keys: BTreeSet<&str> = failed_beside(document, &self.saved.plan.id, here)
            .into_iter()
            .collect();
        let pairs = Pairs::new(&now.loaded.project.stacks, document);
        let failed = pairs.iter().filter(|(_, key)| keys.contains(key));
        let failed = failed.map(|(stack, _)| now.loaded.project.stacks[stack].path.clone());
        let failed: Vec<StackPath> = failed.collect();
        let which = match &*failed {
            [] => return Ok(()),
            [stack] => printable(stack.as_str()).into_owned(),
            [stack, others @ ..] => {
                format!("{} and {} more", printable(stack.as_str()), others.len())
            }
        };
        Err(ProgramError::refused(format!(
            "nothing of this plan is left to do, but its follow-up in {which} did not succeed, and the journal of that run is not on this machine"
        ))
        .hint(format!("to plan what is left, run `{}`", plan_again(&failed))))
    }

    /// Notes that there is nothing to do; for a plan in a file, also when it was applied.
    fn nothing_left(&self, now: &Now) -> String {
        let document = now.document.as_ref();
        let in_document = || last_run(document?, &self.saved.plan.id);
        let last = now.progress.last_run.clone().or_else(in_document);
        match last.filter(|_| self.is_from_file) {
            Some(LastRun { run, at, .. }) => format!(
                "there is nothing to do: the plan was applied at {} by run {}",
                local_time(at),
                printable(&run)
            ),
            None => "there is nothing to do".to_owned(),
        }
    }

    /// Returns whether anything is left to do.
    ///
    /// # Errors
    ///
    /// If that may not be done.
    fn is_left(&self, now: &Now) -> Result<bool> {
        let is_open = now.policies.as_ref().is_some_and(NowPolicies::is_open);
        let to_do = now.to_do(self.saved);
        let has_ended = |it: &LastRun| it.has_succeeded;
        let has_ended = now.progress.last_run.as_ref().is_some_and(has_ended);
        if !is_open && (to_do.is_empty() || has_ended && !to_do.has_work()) {
            return Ok(false);
        }
        if (now.progress.has_begun || is_open) && !self.resumes {
            let what = "this plan has begun to be carried out";
            return Err(ProgramError::refused(what)
                .hint("to go on with it, add `--resume`; or make a new plan"));
        }
        self.check_left_behind(&now.loaded, now.document.as_ref())?;
        Ok(true)
    }

    /// Adds what the plan and the flags say of stacks that are applied.
    fn complete(&self, stacks: &mut [ApplyStack<'_>], now: &Now, environments: &Environments<'_>) {
        let made = self.made(&now.loaded);
        for stack in stacks {
            stack.may_destroy_resources |= self.args.allow_resource_destroy;
            if let Some(here) = stack.stack.here().filter(|_| now.document.is_none()) {
                stack.triggered_by = self.outputs_before(&now.loaded, here);
            }
            if let Some(here) = stack.stack.here().filter(|_| !made.is_empty()) {
                let used = environments.stacks_used(here).into_keys();
                stack.generations = used.filter(|used| made.contains(used)).collect();
            }
        }
    }

    /// Returns the part of the plan that is left and approved, and the digests of the outputs that stacks are applied
    /// with.
    fn approved<'s>(&'s self, now: &'s Now, run: &str, approved: Approved) -> (Todo<'s>, Upstream) {
        let typed = match approved {
            Approved::Yes(destroys) => destroys,
            Approved::No | Approved::Unasked => 0,
        };
        let Now {
            loaded, document, ..
        } = now;
        let mut to_do = now.to_do(self.saved);
        let n_allowed = self.approval.destroys.max(typed);
        to_do.allow_late(n_allowed >= to_do.n_destroys() + to_do.n_late());
        let (project, document) = (&loaded.project, document.as_ref());
        let mut known = upstream(project, &loaded.graph, document, &to_do, run);
        to_do.leave_out_what_is_on_record(project, document, &mut known);
        if approved == Approved::No {
            to_do.leave_record_as_it_is();
        }
        (to_do, known)
    }

    fn prepare_and_run(
        &self,
        now: &Now,
        run: &str,
        lock: Option<StateLock>,
        mut commits: Commits,
        policies: Option<Following>,
        approved: Approved,
    ) -> Result<(ExitStatus, Unconfirmed)> {
        let is_rejected = approved == Approved::No;
        let loaded = &now.loaded;
        let document = now.document.as_ref();
        let (mut to_do, known) = self.approved(now, run, approved);
        let may_add = policies.is_some();
        let checker = self.check_conditions(loaded, document, &mut to_do, may_add)?;
        if let Some(document) = document {
            let stacks: Vec<StackIndex> = to_do.recorded().collect();
            check_keys(&loaded.project.stacks, document, &stacks)?;
        }
        let folder = PrivateFolder::of(loaded, FOLDER)?;
        let generations = Arc::new(self.generations(loaded));
        let environments = loaded.evaluator().in_generations(generations);
        let extra: Vec<_> = self.saved.extra.iter().map(|word| word.0.clone()).collect();
        let mut removals = now.removals(&to_do);
        removals.check_out(loaded, &mut commits)?;
        let of_commits = removals.environments(&commits);
        let codes = removals.codes(loaded, document, &commits, &of_commits, &extra);
        loaded.ready(
            &Tools,
            self.planning.jobs(),
            document,
            &commits,
            &mut removals,
            &codes,
        )?;
        self.verification().check_removals(
            loaded,
            now.recorded(),
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
        self.complete(&mut stacks, now, &environments);
        let with_generations = removals.with_generations(document);
        let options = ApplyOptions {
            run,
            folder: folder.path(),
            init: self.planning.init,
            extra: &extra,
            jobs: self.planning.jobs(),
            on_error: self.args.on_error(),
            allows_new_changes: self.allows_new_changes,
            is_again: self.resumes,
            keeps_state: document.is_some(),
            may_add,
            is_rejected,
            done: &to_do.done,
            lock_timeout: self.args.lock_timeout,
        };
        let codes = Codes {
            tree: Code {
                project: &loaded.project,
                environments: &environments,
            },
            removed: &of_commands,
        };
        let prepared = apply::prepare(
            Surroundings {
                codes,
                graph: &loaded.graph,
                references: &loaded.references,
                document: with_generations.as_ref().or(document),
            },
            &stacks,
            known,
            &options,
            &mut |stack, to| self.put_plan(stack, to),
        );
        match prepared {
            Ok(mut applying) => {
                let protections = Protections::new(loaded, document);
                applying.director.guard_with(protections.into_guard());
                if let Some(checker) = checker {
                    applying.director.check_with(checker);
                }
                let followed = policies.map(|policies| {
                    let document = with_generations.as_ref().or(document);
                    self.followed(loaded, document, codes, &options, policies, &mut applying)
                });
                let followed = followed.transpose()?;
                self.run(now, run, applying, &to_do, lock, followed)
            }
            Err(cannot) => Err(cannot_ask(loaded, cannot).into()),
        }
    }

    /// Returns the digests of the outputs that replace a stack if they change, as they were when the plan was made: by
    /// what names them. Without a state, nothing else tells whether they do.
    fn outputs_before(&self, loaded: &Loaded, stack: StackIndex) -> BTreeMap<String, String> {
        let references = loaded.references.list.iter();
        let triggers = references
            .filter(|it| it.from == stack && it.kind == ReferenceKind::ReplaceTriggeredBy);
        let before = triggers.filter_map(|reference| {
            let (Some(output), Target::Stack(named)) = (&reference.output, &reference.target)
            else {
                return None;
            };
            let path = &loaded.project.stacks[*named].path;
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

    /// Returns the stacks that get another generation.
    fn made(&self, loaded: &Loaded) -> BTreeSet<StackIndex> {
        let entries = self.saved.plan.entries.iter();
        let made = entries.filter(|entry| entry.generation.is_some());
        let made = made.filter_map(|entry| loaded.project.stacks.find(&entry.stack));
        made.collect()
    }

    /// Returns the generations that the commands of stacks are for.
    pub(super) fn generations(&self, loaded: &Loaded) -> Generations {
        let entries = self.saved.plan.entries.iter();
        let made = entries.filter_map(|entry| Some((entry.stack.clone(), entry.generation?)));
        loaded.generations.with(made)
    }

    /// Locks the state, if the project keeps one; may wait for the lock if there is something left
    /// to do.
    fn lock(&self, now: &mut Now, run: &str, is_left: bool) -> Result<Option<StateLock>> {
        let Some(document) = &now.document else {
            return Ok(None);
        };
        // A killed run may have left its lock, although there is nothing left to do.
        let is_locked = self.resumes && document.lock.is_some();
        if !is_left && !is_locked {
            return Ok(None);
        }
        let lockable = Lockable::new(&mut now.loaded, document)?;
        let lockable = lockable.following(self.saved.moves());
        let timeout = self.args.lock_timeout.filter(|_| is_left);
        let request = LockRequest {
            run,
            action: &action_of(self.saved.plan.mode),
            timeout: timeout.unwrap_or_default(),
        };
        match lockable.lock(&now.loaded.project, &request) {
            Ok(lock) => Ok(Some(lock)),
            // Another run holds it and needs nothing from this one.
            Err(error) if !is_left && error.kind() == ErrorKind::Refused => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts the plan of the tool of a stack that was shown at a place.
    fn put_plan(&self, stack: &StackPath, to: &Path) -> io::Result<()> {
        let saved = self.saved.stack(stack);
        let plan = saved.and_then(|saved| saved.plan);
        let (plan, archive) = plan.zip(self.archive).ok_or(io::ErrorKind::NotFound)?;
        archive.extract(plan, to).map_err(io::Error::other)
    }
}

/// Returns a number with what is counted, in the singular or the plural.
fn counted(number: usize, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// Names the first of some stacks; nothing if there are none.
fn first_names(stacks: &[&str]) -> Option<String> {
    /// How many are named.
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
