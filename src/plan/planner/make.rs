//! Makes a plan: compares state and commit, asks the tools, turns answers into ordered entries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::PlanRequest;
use super::ask::{self, AskedTools, RemovedQuestions};
use super::checks::{Conditions, Unchanged};
use super::commits::Commits;
use super::entries::{self, Decisions, find_created_first};
use super::failing::PlanParts;
use super::ignored::{may_change, note_without_state};
use super::outputs::OutputReader;
use super::protection::refuse;
use super::removals::Removals;
use super::rounds::Waiting;
use super::subjects::{RecordedState, StacksToPlan};
use crate::context::{Context, follow_all};
use crate::error::{Error, Result};
use crate::plan::backends::StackBackend;
use crate::plan::entry::{PlanMode, PlannedAction};
use crate::plan::protection::Destroyer;
use crate::plan::stack::RemovedCode;
use crate::plan::{FailedAsk, LeftBehind, Plan, PlannedOrder, SavedPlan, conditions};
use crate::project::stack::StackIndex;
use crate::record::journal::arguments;
use crate::selection::select::{Query, Selection};
use crate::state::document::Document;

pub struct Planner<'a, 'd> {
    pub request: &'a PlanRequest<'a>,
    pub query: &'a Query,
    pub selection: &'a Selection,
    pub replaced: &'a BTreeSet<StackIndex>,
    pub recorded: Option<&'d RecordedState>,
    /// Whether it is applied at once, without a plan file.
    pub is_applied_now: bool,
}

pub struct NewPlan<'d> {
    pub saved: SavedPlan,
    /// The tools' plans, in the order of their indices.
    pub plans: Vec<PathBuf>,
    /// In a plan to destroy: the kept stacks that run after destroyed ones.
    pub left_behind: Vec<LeftBehind>,
    pub asked: AskedTools,
    pub commits: Commits,
    pub removals: Removals<'d>,
    pub amended: Option<Document>,
}

impl<'d> Planner<'_, 'd> {
    /// Asks the tools and makes the plan, given the removed stacks that it covers. Fails if git or
    /// the state is unreadable, no tool can be asked, or the plan would destroy protected stacks.
    pub fn plan(self, context: &mut Context, mut removals: Removals<'d>) -> Result<NewPlan<'d>> {
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
        context.add_deposed(request, &subjects, recorded, &mut removals);
        let document = recorded.map(|recorded| &recorded.document);
        let reader = OutputReader::new(context, request, document, query);
        let mut checks = Conditions::new(reader, &mut subjects, request.options.mode)?;
        context.add_backends(&mut subjects)?;
        let mut commits = Commits::default();
        let planning = Planning {
            request,
            query,
            recorded,
            commits: &mut commits,
        };
        let (mut plan, asked) =
            context.plan(planning, &mut subjects, &mut removals, head, &mut checks)?;
        plan.failed.extend(checks.into_failed());
        plan.failed.sort_by(|a, b| a.stack.cmp(&b.stack));
        removals.warn(&context.notices);
        context.warn_of_kept(&plan, replaced);
        let is_destroy = plan.mode == PlanMode::Destroy;
        let left_behind = is_destroy.then(|| context.left_behind(&plan, document));
        let mut saved = SavedPlan::new(plan, Vec::new());
        let mut plans = Vec::new();
        let amended = context.amended(document, &removals.moved);
        let document = amended.as_ref().or(document);
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
            removals,
            amended,
        })
    }
}

struct Planning<'a, 'd> {
    request: &'a PlanRequest<'a>,
    query: &'a Query,
    recorded: Option<&'d RecordedState>,
    commits: &'a mut Commits,
}

/// The facts that decide which stacks are kept.
struct ToolAnswers {
    asked: AskedTools,
    places: BTreeMap<StackIndex, StackBackend>,
    /// The stacks of this commit that are recorded under other keys.
    moves: BTreeMap<StackIndex, String>,
}

impl Context {
    fn plan<'d>(
        &self,
        planning: Planning<'_, 'd>,
        subjects: &mut StacksToPlan<'_>,
        removals: &mut Removals<'d>,
        head: Option<String>,
        checks: &mut Conditions<'_>,
    ) -> Result<(Plan, AskedTools)> {
        let (request, query, recorded) = (planning.request, planning.query, planning.recorded);
        note_without_state(self, subjects, recorded);
        let answers = self.ask_all(planning, subjects, removals, checks)?;
        let ToolAnswers { asked, places, .. } = answers;
        let document = recorded.map(|recorded| &recorded.document);
        let amended = self.amended(document, &answers.moves);
        let document = amended.as_ref().or(document);
        if let Some(document) = document {
            subjects.block_taken(&self.project.stacks, document);
        }
        let with_generations = removals.with_generations(document);
        let document = with_generations.as_ref().or(document);
        let subjects = &*subjects;
        let needs = entries::needs(self, subjects, recorded, request.options);
        self.warn_of_readers(subjects, &places);
        self.warn_of_missing_outputs(subjects, document, &asked);
        let mut blocked = self.blocked_by_backends(subjects, &places);
        let mut settled = entries::settle(self, recorded, &needs, &asked.answers, &blocked);
        blocked.extend(settled.block_without_destroy(subjects));
        let shared = self.refuse_shared_generations(subjects, &settled, recorded, &places, &asked);
        shared?;
        let after = |settled: &Decisions| {
            let working: BTreeSet<StackIndex> = settled.working();
            let stacks = may_change(self, subjects, recorded, &working);
            match request.options.mode {
                PlanMode::Normal => conditions(&self.project, &self.graph, &stacks, &working),
                PlanMode::Destroy | PlanMode::RefreshOnly => BTreeMap::new(),
            }
        };
        let conditional = after(&settled).into_keys().collect();
        let parts = (&mut settled, &mut *removals, &mut blocked);
        self.keep(request, subjects, document, &conditional, parts)?;
        removals.keep_current(self, &settled);
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
            .failing(request, query, subjects, &settled, &runs_after, &asked)?
            .with(checks.failed_stacks());
        if request.leaves_out_failed {
            let parts = (&mut settled, &mut *removals, &mut blocked);
            failing.leave_out(self, subjects, document, parts);
            runs_after = after(&settled);
        }
        let steps: Vec<(StackIndex, PlannedAction)> = settled.steps(subjects).collect();
        let removed = removals.actions();
        let of_steps = steps.iter().copied();
        let order = PlannedOrder::new(&self.project, &self.graph, document, of_steps, &removed);
        let (mut entries, mut failed) =
            settled.entries(&self.project, runs_after, &failing.invalid);
        entries.retain(|entry| {
            let stack = self.project.stacks.find(&entry.stack);
            stack.is_none_or(|stack| !checks.has_failed(stack))
        });
        entries::add_known(subjects, &blocked, &self.project, &mut entries);
        for entry in &mut entries {
            entry.mocked = asked.mocked(&entry.stack).to_vec();
        }
        removals.add_to(&mut entries, &mut failed);
        self.show_failed_tools(request, &asked, &failed)?;
        let sequence = self.sequence(document, steps, &removed, &entries);
        let plan = Plan {
            id: asked.id.clone(),
            mode: request.options.mode,
            options: request.requested(),
            commit: head,
            state: recorded.map(|recorded| recorded.statuses.base.clone()),
            entries,
            operations: order.operations(&self.project),
            relaxed: order.relaxed,
            failed,
            without_driver: subjects.without_driver,
            removals: removals.unplanned,
            sequence,
            followups: None,
        };
        Ok((plan, asked))
    }

    fn show_failed_tools(
        &self,
        request: &PlanRequest<'_>,
        asked: &AskedTools,
        failed: &[FailedAsk],
    ) -> Result<()> {
        for failed in failed {
            asked.show_output(request.tools, &failed.stack, &failed.why)?;
        }
        let is_missing = |failed: &FailedAsk| {
            let current = failed.stack.current();
            self.project.stacks.find(&current).is_none()
        };
        if failed.iter().any(is_missing) {
            self.notices.help(
                "to plan without removed stacks, add `--no-removals`; to leave one out, add `--exclude`",
            );
        }
        Ok(())
    }

    /// Keeps the stacks that must not be destroyed. Fails if the plan would destroy protected ones.
    /// `conditional` are the stacks of this commit that run after others with work.
    fn keep(
        &self,
        request: &PlanRequest<'_>,
        subjects: &StacksToPlan<'_>,
        document: Option<&Document>,
        conditional: &BTreeSet<StackIndex>,
        (settled, removals, blocked): PlanParts<'_, '_>,
    ) -> Result<()> {
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
            self.keep_old_generations(removals, document, &planned, &applied);
            self.keep_needed(removals, document, &planned);
            self.keep_old_generations(removals, document, &planned, &applied);
        };
        keep_used(settled, blocked, removals);
        self.note_unreported(settled);
        let protected = self.protected(settled, subjects, removals, document);
        if !protected.is_empty() && !request.skip_protected {
            return Err(refuse(self, Destroyer::Plan, &protected).into());
        }
        if !protected.is_empty() {
            self.skip_protected(&protected, settled, removals, document, blocked);
            // A kept stack may require that others are kept.
            keep_used(settled, blocked, removals);
        }
        Ok(())
    }

    fn ask_all<'d>(
        &self,
        planning: Planning<'_, 'd>,
        subjects: &mut StacksToPlan<'_>,
        removals: &mut Removals<'d>,
        checks: &mut Conditions<'_>,
    ) -> Result<ToolAnswers> {
        let Planning {
            request,
            query,
            recorded,
            commits,
        } = planning;
        let recorded_entries = recorded
            .map(|recorded| self.entries_of(&recorded.document))
            .unwrap_or_default();
        let read = self.read_first(request, query, subjects, recorded, &recorded_entries)?;
        // Backends in the drivers' blocks are known before tools are asked.
        let places = self.places(subjects, &recorded_entries, &read);
        subjects.follow(&self.moved_by_backend(&places, &recorded_entries, recorded));
        find_created_first(self, subjects, recorded, request.options);
        let needs = entries::needs(self, subjects, recorded, request.options);
        let nothing = RemovedQuestions::default();
        let document = recorded.map(|recorded| &recorded.document);
        let asked = ask::ask(self, request, query, document, &needs, nothing, read)?;
        drop(needs);
        let waiting = Waiting {
            request,
            query,
            recorded,
            recorded_entries: &recorded_entries,
            checks,
        };
        let asked = self.ask_waiting(waiting, subjects, asked)?;
        let document = recorded.map(|recorded| &recorded.document);
        let places = self.places(subjects, &recorded_entries, &asked);
        let moves = self.moved_by_backend(&places, &recorded_entries, recorded);
        subjects.follow(&moves);
        removals.follow(&moves);
        if let Some(RecordedState { document, statuses }) = recorded {
            // The recorded facts may already keep a stack: then its tool is not asked.
            self.block_by_backends(removals, &places, document, statuses);
        }
        let asked = self.ask_again(request, query, subjects, recorded, &places, asked)?;
        let places = self.places(subjects, &recorded_entries, &asked);
        self.depose_replaced(request, subjects, recorded, &places, &asked, removals);
        let asked = self.ask_removed(request, query, removals, document, commits, asked)?;
        // Answers contain backends that are not recorded.
        if let Some(RecordedState { document, statuses }) = recorded {
            self.block_by_backends(removals, &places, document, statuses);
        }
        Ok(ToolAnswers {
            asked,
            places,
            moves,
        })
    }

    /// Returns the document with entries assigned to the moved stacks that they belong to (`moves`:
    /// from stack to key). `None` if there are none.
    fn amended(
        &self,
        document: Option<&Document>,
        moves: &BTreeMap<StackIndex, String>,
    ) -> Option<Document> {
        let mut document = document.filter(|_| !moves.is_empty())?.clone();
        let stacks = &self.project.stacks;
        let moves = moves
            .iter()
            .map(|(&stack, key)| (stacks[stack].path.clone(), key.clone()));
        follow_all(stacks, &moves.collect::<Vec<_>>(), &mut document);
        Some(document)
    }

    fn ask_removed(
        &self,
        request: &PlanRequest<'_>,
        query: &Query,
        removals: &mut Removals<'_>,
        document: Option<&Document>,
        commits: &mut Commits,
        asked: AskedTools,
    ) -> Result<AskedTools> {
        removals.check_out(self, commits)?;
        let commits = &*commits;
        let environments = removals.environments(commits);
        let extra = request.extra;
        let codes = removals.codes(self, document, commits, &environments, extra);
        self.ready(
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
        let asked = ask::ask(self, request, query, document, &[], removed, asked)?;
        removals.decide(self, &codes, &asked.answers);
        Ok(asked)
    }
}
