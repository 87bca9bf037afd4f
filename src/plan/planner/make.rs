//! Makes a plan: compares state and commit, asks the tools, turns answers into ordered entries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::ask::{AskedTools, RemovedQuestions, ask};
use super::checks::{Conditions, Unchanged};
use super::commits::Commits;
use super::entries::{Decisions, add_known};
use super::entries::{may_change, note_without_state};
use super::failing::PlanParts;
use super::outputs::OutputReader;
use super::protection::refuse;
use super::removals::Removals;
use super::subjects::{RecordedState, StacksToPlan};
use super::{PlanRequest, Planning};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::path::StackPath;
use crate::plan::backends::StackBackend;
use crate::plan::entry::{PlanEntry, PlanMode, PlannedAction};
use crate::plan::protection::Destroyer;
use crate::plan::stack::RemovedCode;
use crate::plan::{FailedAsk, LeftBehind, Plan, PlannedOrder, SavedPlan, conditions};
use crate::printable::{listed, printable};
use crate::project::stack::StackIndex;
use crate::record::journal::arguments;
use crate::selection::select::{Query, Selection};
use crate::state::document::Document;

/// How many stacks a message names.
const MAX_NAMED: usize = 3;

pub struct Planner<'a, 'd> {
    pub request: &'a PlanRequest<'a>,
    pub query: &'a Query,
    pub selection: &'a Selection,
    pub replaced: &'a BTreeSet<StackIndex>,
    pub recorded: Option<&'d RecordedState>,
    /// Whether it is applied at once, without a plan file.
    pub is_applied_now: bool,
}

pub struct NewPlan {
    pub saved: SavedPlan,
    /// The tools' plans, in the order of their indices.
    pub plans: Vec<PathBuf>,
    /// In a plan to destroy: the kept stacks that run after destroyed ones.
    pub left_behind: Vec<LeftBehind>,
    pub asked: AskedTools,
    pub commits: Commits,
    pub removals: Removals<'static>,
    /// The state with the entries of moved stacks under their new keys, if the tools show that stacks have moved.
    pub amended: Option<Document>,
}

impl<'d> Planner<'_, 'd> {
    /// Asks the tools and makes the plan, given the removed stacks that it covers. Fails if git or
    /// the state is unreadable, no tool can be asked, or the plan would destroy protected stacks.
    pub fn plan(self, context: &mut Context, mut removals: Removals<'d>) -> Result<NewPlan> {
        let Planner {
            request,
            query,
            selection,
            replaced,
            recorded,
            is_applied_now,
        } = self;
        let head = context.head()?.map(|head| head.to_string());
        if request.is_kept {
            context.digest_inputs()?;
        }
        if !is_applied_now && request.is_kept && context.state.input_digests.is_none() {
            context.notices.warning(
                "outside of git, a plan cannot be checked later, so `orch apply FILE` will refuse it",
            );
        }
        let rollbacks = context.planned_rollbacks(request, selection, recorded, replaced)?;
        let mut subjects = context.subjects(request, selection, recorded, replaced, &rollbacks)?;
        let planning = Planning {
            context,
            request,
            query,
            recorded,
        };
        planning.add_deposed(&subjects, &mut removals);
        let document = planning.document();
        let reader = OutputReader::new(planning);
        let mut checks = Conditions::new(reader, &mut subjects, request.options.mode)?;
        context.add_backends(&mut subjects)?;
        let mut commits = Commits::default();
        let asked = planning.ask_first(&mut subjects, &mut checks)?;
        if let Some(recorded) = recorded.filter(|_| !request.is_verification)
            && let Some(document) = planning.found_moved(recorded, &subjects, &asked)
        {
            // The tools were asked without regard to these entries, such as their taints.
            drop((subjects, checks, asked));
            context.notices.note(
                "the tools show that recorded stacks have moved: planning again with their entries",
            );
            let address = recorded.statuses.base.address.clone();
            let moved = context.compared_with(address, document)?;
            let removals = context.removals(request, query, Some(&moved));
            let planner = Planner {
                recorded: Some(&moved),
                ..self
            };
            let plan = planner.plan(context, removals)?;
            return Ok(NewPlan {
                amended: Some(moved.document),
                ..plan
            });
        }
        let parts = (&mut removals, &mut commits);
        let (mut plan, asked) = planning.make(&mut subjects, parts, &mut checks, asked, head)?;
        plan.failed.extend(checks.into_failed());
        plan.failed.sort_by(|a, b| a.stack.cmp(&b.stack));
        removals.warn(&context.notices);
        context.warn_of_kept(&plan, replaced);
        let is_destroy = plan.mode == PlanMode::Destroy;
        let left_behind = is_destroy.then(|| context.left_behind(&plan, document));
        let mut saved = SavedPlan::new(plan, Vec::new());
        let mut plans = Vec::new();
        if request.is_kept {
            saved.extra = arguments(request.extra);
            let recorded = document.zip(recorded.map(|it| &it.statuses));
            plans = context
                .rest(&mut saved, &subjects, &removals, recorded, &asked)
                .map_err(Error::external)?;
        }
        Ok(NewPlan {
            saved,
            plans,
            left_behind: left_behind.unwrap_or_default(),
            asked,
            commits,
            removals: removals.into_owned(),
            amended: None,
        })
    }
}

impl Planning<'_> {
    fn make(
        self,
        subjects: &mut StacksToPlan<'_>,
        (removals, commits): (&mut Removals<'_>, &mut Commits),
        checks: &mut Conditions<'_>,
        asked: AskedTools,
        head: Option<String>,
    ) -> Result<(Plan, AskedTools)> {
        let Planning {
            context,
            request,
            recorded,
            ..
        } = self;
        let (project, graph) = (&context.project, &context.graph);
        let (asked, places) = self.ask_rest(subjects, (removals, commits), asked)?;
        let document = self.document();
        if let Some(document) = document {
            subjects.block_taken(&project.stacks, document);
        }
        let with_generations = removals.with_generations(document);
        let document = with_generations.as_ref().or(document);
        let subjects = &*subjects;
        let needs = self.needs(subjects);
        context.warn_of_readers(subjects, &places);
        context.warn_of_missing_outputs(subjects, document, &asked);
        let mut blocked = context.blocked_by_backends(subjects, document, &places);
        let mut settled = self.settle(&needs, &asked.answers, &blocked);
        blocked.extend(settled.block_without_destroy(subjects));
        self.refuse_shared_generations(subjects, &settled, &places, &asked)?;
        let after = |settled: &Decisions| {
            let working: BTreeSet<StackIndex> = settled.working();
            let stacks = may_change(self, subjects, &working);
            match request.options.mode {
                PlanMode::Normal => conditions(project, graph, &stacks, &working),
                PlanMode::Destroy | PlanMode::RefreshOnly => BTreeMap::new(),
            }
        };
        let conditional = after(&settled).into_keys().collect();
        let parts = (&mut settled, &mut *removals, &mut blocked);
        self.keep(subjects, document, &conditional, parts)?;
        removals.keep_current(context, &settled);
        let mut runs_after = after(&settled);
        let unchanged = Unchanged {
            subjects,
            settled: &settled,
            asked: &asked,
            after: &runs_after,
            blocked: &blocked,
        };
        checks.check_unchanged(&unchanged, &needs)?;
        let failing = self
            .failing(subjects, &settled, &runs_after, &asked)?
            .with(checks.failed_stacks());
        if request.leaves_out_failed {
            let parts = (&mut settled, &mut *removals, &mut blocked);
            failing.leave_out(context, subjects, document, parts);
            runs_after = after(&settled);
        }
        let steps: Vec<(StackIndex, PlannedAction)> = settled.steps(subjects).collect();
        let removed = removals.actions();
        let of_steps = steps.iter().copied();
        let order = PlannedOrder::new(project, graph, document, of_steps, &removed);
        let dependents_out_of_scope = self.unselected_dependents(subjects, &settled);
        let (mut entries, mut failed) = settled.entries(project, runs_after, &failing.invalid);
        entries.retain(|entry| {
            let stack = project.stacks.find(&entry.stack);
            stack.is_none_or(|stack| !checks.has_failed(stack))
        });
        let mode = self.request.options.mode;
        add_known(subjects, &blocked, project, mode, &mut entries);
        for entry in &mut entries {
            entry.mocked = asked.mocked(&entry.stack).to_vec();
        }
        removals.add_to(&mut entries, &mut failed);
        self.show_failed_tools(&asked, &failed)?;
        let sequence = context.sequence(document, steps, &removed, &entries);
        let plan = Plan {
            id: asked.id.clone(),
            mode: request.options.mode,
            options: request.requested(),
            commit: head,
            state: recorded.map(|recorded| recorded.statuses.base.clone()),
            entries,
            operations: order.operations(project),
            relaxed: order.relaxed,
            failed,
            without_driver: subjects.without_driver,
            removals: removals.unplanned,
            dependents_out_of_scope,
            sequence,
            followups: None,
        };
        Ok((plan, asked))
    }

    fn show_failed_tools(self, asked: &AskedTools, failed: &[FailedAsk]) -> Result<()> {
        for failed in failed {
            asked.show_output(self.request.tools, &failed.stack, &failed.why)?;
        }
        let stale = failed.iter().filter(|it| has_stale_backend(&it.why));
        let stale: Vec<&str> = stale.map(|it| it.stack.as_str()).collect();
        if !stale.is_empty() {
            let names = listed(stale.iter(), MAX_NAMED);
            self.context.notices.help(&printable(&format!(
                "if directories were moved or swapped, remove the `.terraform` of {names} and plan again; `init -migrate-state` could overwrite the state of another stack"
            )));
        }
        let is_missing = |failed: &FailedAsk| {
            let current = failed.stack.current();
            self.context.project.stacks.find(&current).is_none()
        };
        if failed.iter().any(is_missing) {
            self.context.notices.help(
                "to plan without removed stacks, add `--no-removals`; to leave one out, add `--exclude`",
            );
        }
        Ok(())
    }

    /// Keeps the stacks that must not be destroyed. Fails if the plan would destroy protected ones.
    /// `conditional` are the stacks of this commit that run after others with work.
    fn keep(
        self,
        subjects: &StacksToPlan<'_>,
        document: Option<&Document>,
        conditional: &BTreeSet<StackIndex>,
        (settled, removals, blocked): PlanParts<'_, '_>,
    ) -> Result<()> {
        let context = self.context;
        let of_subjects: BTreeSet<StackIndex> = subjects
            .all
            .iter()
            .filter(|it| it.blocked.is_some())
            .map(|it| it.stack)
            .collect();
        let keep_used = |settled: &Decisions,
                         blocked: &BTreeMap<StackIndex, String>,
                         removals: &mut Removals<'_>| {
            let is_free = |it: &StackIndex| !blocked.contains_key(it) && !of_subjects.contains(it);
            let actions = settled.actions().filter(|(stack, _)| is_free(stack));
            let planned: BTreeMap<StackIndex, PlannedAction> = actions.collect();
            let open = settled.unknown().filter(|it| conditional.contains(it));
            let is_applied = |(stack, action): (&StackIndex, &PlannedAction)| {
                (action.is_work() || conditional.contains(stack)).then_some(*stack)
            };
            let applied: BTreeSet<StackIndex> =
                planned.iter().filter_map(is_applied).chain(open).collect();
            context.keep_old_generations(removals, document, &planned, &applied);
            context.keep_needed(removals, document, &planned);
            context.keep_old_generations(removals, document, &planned, &applied);
        };
        keep_used(settled, blocked, removals);
        context.note_unreported(settled);
        let protected = context.protected(settled, subjects, removals, document);
        if !protected.is_empty() && !self.request.skip_protected {
            return Err(refuse(context, Destroyer::Plan, &protected).into());
        }
        if !protected.is_empty() {
            context.skip_protected(&protected, settled, removals, document, blocked);
            // A kept stack may require that others are kept.
            keep_used(settled, blocked, removals);
        }
        Ok(())
    }

    /// Asks the tools of this commit's stacks.
    fn ask_first(
        self,
        subjects: &mut StacksToPlan<'_>,
        checks: &mut Conditions<'_>,
    ) -> Result<AskedTools> {
        note_without_state(self, subjects);
        let entries = self.entries();
        let (read, mut used) = self.read_first(subjects, &entries)?;
        self.find_created_first(subjects);
        let mut asked = self.ask(&self.needs(subjects), read)?;
        loop {
            asked = self.ask_waiting(subjects, &entries, checks, asked)?;
            let Some(used) = &mut used else { break };
            if !self.note_outputs(subjects, &entries, used, &asked)? {
                break;
            }
            self.compare_outputs(subjects, &entries, used);
            asked = self.ask(&self.needs(subjects), asked)?;
        }
        Ok(asked)
    }

    /// Returns the document with the entries of moved stacks under their new keys, if the tools show that
    /// stacks have moved.
    fn found_moved(
        self,
        recorded: &RecordedState,
        subjects: &StacksToPlan<'_>,
        asked: &AskedTools,
    ) -> Option<Document> {
        let (context, entries) = (self.context, self.entries());
        let places = context.places(subjects, &entries, asked);
        let stacks = subjects.all.iter().map(|subject| subject.stack).collect();
        let moves = context.moves_of(&stacks, &places, &entries, recorded);
        context.rekeyed(&recorded.document, &moves)
    }

    /// Asks the tools that depend on the first answers. Returns the backends, too.
    fn ask_rest(
        self,
        subjects: &mut StacksToPlan<'_>,
        (removals, commits): (&mut Removals<'_>, &mut Commits),
        asked: AskedTools,
    ) -> Result<(AskedTools, BTreeMap<StackIndex, StackBackend>)> {
        let Planning {
            context, recorded, ..
        } = self;
        let entries = self.entries();
        let places = context.places(subjects, &entries, &asked);
        if let Some(RecordedState { document, statuses }) = recorded {
            // The recorded facts may already keep a stack: then its tool is not asked.
            context.block_by_backends(removals, &places, document, statuses);
        }
        let asked = self.ask_again(subjects, &places, asked)?;
        let places = context.places(subjects, &entries, &asked);
        self.depose_replaced(subjects, &places, &asked, removals);
        let asked = self.ask_removed(removals, commits, asked)?;
        // Answers contain backends that are not recorded.
        if let Some(RecordedState { document, statuses }) = recorded {
            context.block_by_backends(removals, &places, document, statuses);
        }
        Ok((asked, places))
    }

    fn ask_removed(
        self,
        removals: &mut Removals<'_>,
        commits: &mut Commits,
        asked: AskedTools,
    ) -> Result<AskedTools> {
        let Planning {
            context, request, ..
        } = self;
        let document = self.document();
        removals.check_out(context, commits)?;
        let commits = &*commits;
        let environments = removals.environments(commits);
        let codes = removals.codes(context, document, commits, &environments, request.extra);
        context.ready(
            request.tools,
            request.jobs,
            document,
            commits,
            removals,
            &codes,
        )?;
        let questions = removals.questions(&codes);
        let of_commands: Vec<RemovedCode<'_, '_>> = codes
            .iter()
            .map(|code| code.code(&removals.all[code.removal]))
            .collect();
        let removed = RemovedQuestions {
            codes: &of_commands,
            questions,
        };
        let asked = ask(self, &[], removed, asked)?;
        removals.decide(context, &codes, &asked.answers);
        Ok(asked)
    }
}

impl Context {
    /// Returns the stacks that an apply changes or decides, in sequence; empty if none is
    /// undecided.
    pub(super) fn sequence(
        &self,
        document: Option<&Document>,
        steps: Vec<(StackIndex, PlannedAction)>,
        removed: &BTreeMap<String, PlannedAction>,
        entries: &[PlanEntry],
    ) -> Vec<StackPath> {
        let undecided: Vec<_> = entries
            .iter()
            .filter(|entry| entry.is_undecided())
            .filter_map(|entry| self.project.stacks.find(&entry.stack))
            .map(|stack| (stack, PlannedAction::Update))
            .collect();
        if undecided.is_empty() {
            return Vec::new();
        }
        let all = steps.into_iter().chain(undecided);
        let order = PlannedOrder::new(&self.project, &self.graph, document, all, removed);
        let operations = order.operations(&self.project).into_iter();
        operations.map(|operation| operation.stack).collect()
    }
}

/// Returns whether a tool failed because `.terraform` belongs to another backend than the configured one.
fn has_stale_backend(why: &str) -> bool {
    [
        "Backend initialization required",
        "Backend configuration changed",
    ]
    .iter()
    .any(|error| why.contains(error))
}
