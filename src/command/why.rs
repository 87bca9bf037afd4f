//! `orch why`: explains why stacks are selected or not, their order, and recorded stacks that this commit lacks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::select::SelectionRequest;
use super::stack_arg::StackArg;
use crate::change::{
    ChangeError, Changes, CountedStates, Input, Use, add_computed, add_uncounted,
    ignored_variables, inputs_of, mark_ignored, unknown_paths,
};
use crate::context::{Context, CyclesAre};
use crate::error::{Error, ErrorContext as _, Result};
use crate::path::StackPath;
use crate::plan::planner::{RecordedState, RemovalOutlook};
use crate::printable::{count, listed, printable};
use crate::project::host::host_environment;
use crate::project::stack::StackIndex;
use crate::report::{MissingStory, OrderExplanation, PolicyStarter, Story};
use crate::run::policies::{LoadedPolicies, LoadedPolicy};
use crate::selection::attached::PolicyAttachments;
use crate::selection::select::{Query, Selection};
use crate::selection::why::{Why, WhyQuestion, chain};

/// How long policies are evaluated to find those that can start a stack.
const MAX_EVALUATED: Duration = Duration::from_secs(5);

/// How many policies a note names.
const MAX_NAMED: usize = 5;

/// Why stacks are selected or not.
pub enum Explanation {
    Stacks(Box<StackExplanation>),
    /// The stacks are recorded and this commit lacks them.
    Missing(Box<MissingExplanation>),
}

pub struct StackExplanation {
    query: Query,
    selection: Selection,
    answers: Vec<ExplainedStack>,
}

struct ExplainedStack {
    stack: StackIndex,
    why: Why,
    starters: Vec<PolicyStarter>,
    ignored_variables: Vec<Use>,
    unknown_paths: Vec<Use>,
}

impl StackExplanation {
    /// Calls a function with the story of each stack.
    pub fn with_stories<T>(&self, context: &Context, call: impl FnOnce(&[Story<'_>]) -> T) -> T {
        let project = &context.project;
        let attached = PolicyAttachments::resolve(project, &mut Vec::new());
        let uncounted = self
            .query
            .changed
            .as_ref()
            .map(|changes| &changes.uncounted);
        let answers = self.answers.iter();
        let questions: Vec<WhyQuestion<'_>> = answers
            .map(|answer| self.question(context, answer.stack))
            .collect();
        let stories: Vec<Story<'_>> = questions
            .iter()
            .zip(&self.answers)
            .map(|(question, answer)| Story {
                question,
                why: &answer.why,
                policies: attached
                    .to_stack(answer.stack)
                    .iter()
                    .map(|policy| &project.policies[*policy])
                    .collect(),
                starters: &answer.starters,
                uncounted_trigger: uncounted
                    .and_then(|uncounted| uncounted.trigger_of(project, answer.stack)),
                ignored_variables: &answer.ignored_variables,
                unknown_paths: &answer.unknown_paths,
            })
            .collect();
        call(&stories)
    }

    fn question<'q>(&'q self, context: &'q Context, stack: StackIndex) -> WhyQuestion<'q> {
        WhyQuestion {
            project: &context.project,
            references: &context.references,
            graph: &context.graph,
            query: &self.query,
            selection: &self.selection,
            stack,
        }
    }
}

impl Context {
    pub fn explain(&mut self, written: &str, request: SelectionRequest) -> Result<Explanation> {
        let has_history = request.change.is_some() || !request.statuses.is_empty();
        let fetches = request.fetches;
        let query = self.query(request)?;
        if let Some(missing) = self.why_missing(written)? {
            return Ok(Explanation::Missing(Box::new(missing)));
        }
        if fetches && !has_history {
            return Err(without_changed("--fetch"));
        }
        let stacks = self.stacks(written, query.since().as_ref())?;
        let selection = self.select_any(&query);
        self.check_cycles(CyclesAre::Warnings);
        let failed = "failed to read the inputs of the stack";
        let mut inputs = Vec::with_capacity(stacks.len());
        for &stack in &stacks {
            let of_stack = self.inputs(stack, query.changed.as_ref());
            inputs.push(of_stack.context(failed)?);
        }
        self.report()?;
        let mut starters = self.starters(&stacks)?;
        let (project, listing) = (&self.project, &self.listing);
        let mut explanation = StackExplanation {
            query,
            selection,
            answers: Vec::with_capacity(stacks.len()),
        };
        for (&stack, mut inputs) in stacks.iter().zip(inputs) {
            if let Some(changes) = &explanation.query.changed {
                add_uncounted(project, listing, &changes.uncounted, stack, &mut inputs)
                    .context(failed)?;
            }
            mark_ignored(project, stack, &mut inputs);
            let why = explanation.question(self, stack).answer(inputs);
            let unknown_paths = unknown_paths(project, listing, &[stack]).context(failed)?;
            explanation.answers.push(ExplainedStack {
                stack,
                why,
                starters: starters.remove(&stack).unwrap_or_default(),
                ignored_variables: ignored_variables(project, stack),
                unknown_paths,
            });
        }
        Ok(Explanation::Stacks(Box::new(explanation)))
    }

    /// Returns the policies that ask for stacks when others finish or fail. Policies that cannot be loaded or fail
    /// are reported.
    fn starters(
        &mut self,
        stacks: &[StackIndex],
    ) -> Result<BTreeMap<StackIndex, Vec<PolicyStarter>>> {
        let mut starters: BTreeMap<StackIndex, Vec<PolicyStarter>> = BTreeMap::new();
        if self.project.policies.is_empty() {
            return Ok(starters);
        }
        let policies = self.load_policies_of_stacks()?;
        if self.problems.has_errors() {
            self.notices
                .warning("the policies that can start it are unknown: see `orch policy validate`");
            return Ok(starters);
        }
        self.note_undecided(&policies);
        let requests = self.policy_requests(policies, Some(Instant::now() + MAX_EVALUATED))?;
        if !requests.failed.is_empty() {
            self.notices.warning(
                "a policy fails, so what it can start is unknown: see `orch policy graph`",
            );
        }
        if requests.n_left_out > 0 {
            self.notices.warning(&format!(
                "the policies of {} were not evaluated, which takes long: see `orch policy graph`",
                count(requests.n_left_out, "stack")
            ));
        }
        for ((from, state, to), policies) in requests.arrows {
            if !stacks.contains(&to) {
                continue;
            }
            let known = starters.entry(to).or_default();
            for policy in policies {
                let position = known.iter().position(|it| it.policy == policy);
                let position = position.unwrap_or_else(|| {
                    known.push(PolicyStarter {
                        policy,
                        after: Vec::new(),
                    });
                    known.len() - 1
                });
                known[position].after.push((from, state));
            }
        }
        for known in starters.values_mut() {
            known.sort_by_key(|it| it.policy);
        }
        Ok(starters)
    }

    /// Notes the policies whose answers depend on facts that only a run has.
    fn note_undecided(&self, policies: &LoadedPolicies) {
        let reads_fact = |policy: &LoadedPolicy| {
            let mut paths = policy.outline.inputs.iter().map(|(path, _)| path);
            paths.any(|path| {
                let mut names = path.iter().map(String::as_str);
                names.next() == Some("run")
                    && matches!(names.next(), Some("changes" | "drift_detection"))
            })
        };
        let loaded = self.project.policies.iter().zip(&policies.policies);
        let undecided = loaded.filter(|(_, loaded)| loaded.as_ref().is_some_and(reads_fact));
        let undecided: Vec<&str> = undecided.map(|(it, _)| it.name.value.as_str()).collect();
        if !undecided.is_empty() {
            let names = listed(undecided.iter(), MAX_NAMED);
            self.notices.note(&format!(
                "policies that read `changes` or `drift_detection` of a run may start more stacks than shown: {names}"
            ));
        }
    }

    /// Finds two stacks whose order is to be explained; see [`Self::order_of`].
    pub fn ordered_stacks(&mut self, later: &str, earlier: &str) -> Result<[StackIndex; 2]> {
        let stacks = [self.stack(later)?, self.stack(earlier)?];
        self.check_cycles(CyclesAre::Warnings);
        self.report()?;
        Ok(stacks)
    }

    /// Explains why the first stack runs after the second.
    pub fn order_of(&self, [later, earlier]: [StackIndex; 2]) -> OrderExplanation<'_> {
        OrderExplanation {
            project: &self.project,
            later,
            earlier,
            chain: chain(&self.graph, later, earlier),
            reverse: chain(&self.graph, earlier, later),
        }
    }

    fn inputs(
        &mut self,
        stack: StackIndex,
        changes: Option<&Changes>,
    ) -> std::result::Result<Vec<Input>, ChangeError> {
        let files = changes.map(|changes| &changes.files);
        let (workspace, problems) = self.parts();
        let (project, listing) = (&workspace.project, &workspace.listing);
        let mut inputs = inputs_of(project, listing, files, stack, problems)?;
        let cause = changes.and_then(|changes| changes.stacks.get(&stack));
        let host: Vec<(String, String)> = host_environment().collect();
        add_computed(project, listing, &host, files, cause, stack, &mut inputs)?;
        Ok(inputs)
    }
}

/// Returns the error of a flag that requires `--changed`.
pub fn without_changed(flag: &str) -> Error {
    let message = format!("`{flag}` has no effect without `--changed`; add `--changed`");
    Error::usage(message)
}

/// Recorded stacks that this commit lacks.
pub struct MissingExplanation {
    recorded: RecordedState,
    /// By key: what an apply would do.
    stacks: Vec<(String, RemovalOutlook)>,
}

impl MissingExplanation {
    /// Returns the story of each stack.
    pub fn stories(&self) -> Vec<MissingStory<'_>> {
        let RecordedState { document, statuses } = &self.recorded;
        let stories = self.stacks.iter().map(|(key, outlook)| MissingStory {
            path: key,
            entry: &document.stacks[key],
            stack: &statuses.missing[key],
            outlook: outlook.clone(),
        });
        stories.collect()
    }
}

impl Context {
    /// Explains the stacks that a path names, if they are recorded and this commit lacks them.
    pub(super) fn why_missing(&mut self, written: &str) -> Result<Option<MissingExplanation>> {
        let is_here = || {
            let found = self.project.stacks.written(&self.directory, written);
            found.is_ok_and(|found| found.len() > 0)
        };
        if self.project.settings.state.is_none() || is_here() {
            return Ok(None);
        }
        let directory = self.directory.clone();
        let arg = StackArg::new(&directory, written);
        if arg.parts().is_err() {
            return Ok(None);
        }
        let counted = CountedStates::default();
        let document = match self.read_and_digest(counted) {
            Ok(document) => document,
            Err(error) => {
                // The path may also be a typo.
                self.notices.note(&format!(
                    "the recorded stacks are unknown: {}",
                    error.message()
                ));
                return Ok(None);
            }
        };
        let is_meant = |path: &str| StackPath::parse(path).is_some_and(|path| arg.matches(&path));
        if !document.stacks.keys().any(|key| is_meant(key)) {
            let mut moved = document.renamed();
            if let Some((now, before)) = moved.find(|(_, before)| is_meant(before)) {
                let block =
                    StackPath::parse(before).and_then(|path| self.project.moves.from(&path));
                let place = block.map(|block| self.project.sources.line(block.span));
                self.notices.note(&printable(&format!(
                    "`{before}` was moved to `{now}`, by {}",
                    place.unwrap_or_default()
                )));
            }
            return Ok(None);
        }
        let address = self.opened()?.backend.address();
        let statuses = self.statuses_in(&document, address, counted, false)?;
        let recorded = RecordedState { document, statuses };
        let missing = recorded.statuses.missing.keys();
        let missing =
            missing.filter(|key| is_meant(key) && recorded.document.stacks.contains_key(*key));
        let keys: Vec<String> = missing.cloned().collect();
        if keys.is_empty() {
            return Ok(None);
        }
        let named: Vec<&str> = keys.iter().map(String::as_str).collect();
        let outlook = self.removal_outlooks(&recorded, &named)?;
        self.report()?;
        Ok(Some(MissingExplanation {
            recorded,
            stacks: keys.into_iter().zip(outlook).collect(),
        }))
    }
}
