//! Predicts the follow-ups of a plan's apply, as far as policies can be evaluated beforehand.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::Rollback;
use crate::context::{Context, RollbackFlags};
use crate::driver::PlanKind;
use crate::error::{Error, Result};
use crate::path::StackPath;
use crate::plan::apply::TurnPlaces;
use crate::plan::entry::PlanMode;
use crate::plan::facts::{NamedChanges, foreseen_facts};
use crate::plan::planner::{AskedTools, Drivers, Removals, taken};
use crate::plan::{Plan, PlannedFollowUp, PlannedFollowUps, PlannedOrder, SavedPlan};
use crate::printable::printable;
use crate::project::stack::StackIndex;
use crate::report::policy_problems;
use crate::run::facts::on_record;
use crate::run::policies::LoadedPolicies;
use crate::run::schedule::OnError;
use crate::run::turn::Operation;
use crate::run::workflow::{
    ExpectedEnd, Follower, ForeseenTurn, TurnFacts, TurnKind, WorkflowTurn, now, turn_id,
};
use crate::state::document::Document;

struct FollowUpForecast<'a> {
    metadata: &'a [String],
    rollback: RollbackFlags,
    plan: &'a Plan,
    asked: &'a AskedTools,
    document: Option<&'a Document>,
    /// The stacks that cannot become follow-ups.
    excluded: &'a [StackPath],
}

impl Context {
    /// Adds the predicted follow-ups to a plan, if policies are on.
    pub fn add_followups(
        &mut self,
        saved: &mut SavedPlan,
        policies: Option<LoadedPolicies>,
        rollback: RollbackFlags,
        (removals, document, asked): (&Removals<'_>, Option<&Document>, &AskedTools),
    ) -> Result<()> {
        let Some(policies) = policies else {
            return Ok(());
        };
        let with_generations = removals.with_generations(document);
        let forecast = FollowUpForecast {
            metadata: &saved.policies.metadata,
            rollback,
            plan: &saved.plan,
            asked,
            document: with_generations.as_ref().or(document),
            excluded: &saved.excluded,
        };
        saved.plan.followups = Some(self.followups(policies, forecast)?);
        Ok(())
    }

    /// Returns the follow-ups of an apply whose turns all succeed.
    fn followups(
        &mut self,
        policies: LoadedPolicies,
        forecast: FollowUpForecast<'_>,
    ) -> Result<PlannedFollowUps> {
        let FollowUpForecast { plan, document, .. } = forecast;
        let order = plan.order(&self.project, &self.graph, document);
        let all = self.project.stacks.iter().map(|(stack, _)| stack);
        let attached: BTreeSet<StackIndex> = all
            .filter(|stack| !policies.attached.to_stack(*stack).is_empty())
            .collect();
        let turns = self.turns(plan, &order);
        let mut stacks = turns.iter().filter_map(|turn| turn.stack);
        if !stacks.any(|stack| attached.contains(&stack)) {
            return Ok(PlannedFollowUps::default());
        }
        let follower = self.follower_of_plan(policies, &forecast, turns)?;
        let (schedule, places) = TurnPlaces::of(&order.order, &self.project, &self.graph);
        let drivers = Drivers::new(self, document);
        let has_tool =
            |stack: &&StackIndex| drivers.of(**stack).is_some_and(|it| it.tool.is_some());
        let mut turns = ExpectedTurns {
            with_tool: attached.iter().filter(has_tool).copied().collect(),
            cannot: self.cannot_follow(document),
            context: self,
            forecast,
            attached,
            problems: BTreeMap::new(),
            uncertain: Vec::new(),
            error: None,
        };
        let run = follower.foresee(
            schedule.on_error(OnError::SkipDependents),
            Vec::new(),
            |stack| places.of_stack(stack),
            |turn| turns.end(turn),
        );
        let ExpectedTurns {
            context,
            mut problems,
            uncertain,
            error,
            ..
        } = turns;
        if let Some(error) = error {
            return Err(error);
        }
        let stacks = &context.project.stacks;
        let added = run.turns.into_iter().filter(|it| it.turn.was_added).map(
            |ForeseenTurn { turn, after, .. }| PlannedFollowUp {
                autodeploy: turn.stack.is_some_and(|stack| stacks[stack].autodeploy),
                problem: problems.remove(&turn.id),
                after: after.unwrap_or_else(|| turn.path.clone()),
                policies: turn.policies,
                stack: turn.path,
            },
        );
        let told = run
            .evaluated
            .iter()
            .flat_map(|it| policy_problems(it, &printable(it.stack.as_str())));
        Ok(PlannedFollowUps {
            turns: added.collect(),
            problems: told.collect(),
            uncertain,
        })
    }

    fn turns(&self, plan: &Plan, order: &PlannedOrder) -> Vec<WorkflowTurn> {
        let (project, at) = (&self.project, now());
        let here: Vec<StackIndex> = project.stacks.iter().map(|(stack, _)| stack).collect();
        let operations = order.operations(project).into_iter();
        let operations = order.order.sequence.iter().zip(operations).enumerate();
        let turns = operations.map(|(number, (it, operation))| WorkflowTurn {
            kind: TurnKind::of(it.operation, plan.mode == PlanMode::RefreshOnly),
            ..WorkflowTurn::new(
                turn_id(&plan.id, number),
                here.get(it.stack).copied(),
                operation.stack,
                at,
            )
        });
        turns.collect()
    }

    fn follower_of_plan(
        &mut self,
        policies: LoadedPolicies,
        forecast: &FollowUpForecast<'_>,
        turns: Vec<WorkflowTurn>,
    ) -> Result<Follower> {
        let facts = self.run_facts(forecast.metadata)?;
        let excluded: Vec<String> = forecast.excluded.iter().map(StackPath::to_string).collect();
        let run = &forecast.plan.id;
        let mut follower = self.follower(policies, facts, run, &excluded, (Vec::new(), turns));
        if let Some(document) = forecast.document {
            follower.recall(on_record(&self.project, document)?);
        }
        Ok(follower)
    }

    /// Returns the stacks that cannot be follow-ups, each with the reason. Stacks that would be
    /// rolled back are not among them.
    pub fn cannot_follow(&self, document: Option<&Document>) -> BTreeMap<StackIndex, String> {
        let stacks = &self.project.stacks;
        let mut cannot = document
            .map(|document| taken(stacks, document))
            .unwrap_or_default();
        let drivers = Drivers::new(self, document);
        let all = stacks.iter().map(|(stack, _)| stack);
        let without = all.filter(|stack| drivers.of(*stack).is_none());
        cannot.extend(without.map(|it| (it, "it has no driver (see `orch help drivers`)".into())));
        let cycles = self.graph.cycles();
        let in_cycle = cycles.iter().flat_map(|cycle| cycle.stacks.iter().copied());
        cannot
            .extend(in_cycle.map(|it| (it, "it is part of a cycle (see `orch validate`)".into())));
        cannot
    }
}

struct ExpectedTurns<'a, 'l> {
    context: &'l mut Context,
    forecast: FollowUpForecast<'a>,
    attached: BTreeSet<StackIndex>,
    /// Those of them whose drivers name resources.
    with_tool: BTreeSet<StackIndex>,
    /// The stacks whose follow-ups fail, with the reason.
    cannot: BTreeMap<StackIndex, String>,
    /// The follow-ups that fail, by id, with the reason.
    problems: BTreeMap<String, String>,
    /// The stacks whose changes policies will see but that are still unknown.
    uncertain: Vec<StackPath>,
    error: Option<Error>,
}

impl ExpectedTurns<'_, '_> {
    fn end(&mut self, turn: &WorkflowTurn) -> ExpectedEnd {
        if turn.was_added
            && let Some(problem) = self.problem(turn)
        {
            self.problems.insert(turn.id.clone(), problem);
            return ExpectedEnd::Failure;
        }
        let facts = self.facts(turn);
        let is_asked = turn.stack.is_some_and(|it| self.attached.contains(&it));
        if facts.is_none() && is_asked && !self.uncertain.contains(&turn.path) {
            self.uncertain.push(turn.path.clone());
        }
        ExpectedEnd::Success(facts)
    }

    /// Returns why a follow-up fails, if that is known.
    fn problem(&mut self, turn: &WorkflowTurn) -> Option<String> {
        let stack = turn.stack?;
        if let Some(problem) = self.cannot.get(&stack) {
            return Some(problem.clone());
        }
        let flags = self.forecast.rollback;
        let document = self.forecast.document.filter(|_| !flags.allows)?;
        match self.context.rollbacks(document, &[stack], flags) {
            Ok(found) => found.get(&stack).map(Rollback::why_with_fetch),
            Err(error) => {
                self.error.get_or_insert(error);
                None
            }
        }
    }

    /// Returns the facts of a turn that policies will see, if known. A turn that policies add is
    /// planned during the apply.
    fn facts(&self, turn: &WorkflowTurn) -> Option<TurnFacts> {
        if turn.was_added {
            return None;
        }
        let FollowUpForecast { plan, asked, .. } = self.forecast;
        // Policies are evaluated only for stacks of this commit.
        let shown = if self.with_tool.contains(&turn.stack?) {
            let kind = match turn.kind {
                TurnKind::Drift => PlanKind::RefreshOnly,
                _ => PlanKind::Normal,
            };
            NamedChanges::Resources(asked.changed(&turn.path, kind))
        } else {
            NamedChanges::Stack
        };
        let operation = match turn.kind {
            TurnKind::Destroy => Operation::Destroy,
            TurnKind::Tracked | TurnKind::Drift | TurnKind::Task => Operation::Apply,
        };
        foreseen_facts(plan.entry(&turn.path)?, operation, shown)
    }
}
