//! Loads the code that destroys removed stacks, from the commits that last applied them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use super::commits::Commits;
use super::destroy_commands::{BRING_BACK, DestroyCommands, first_message};
use super::removals::{BlockedRemoval, DecidedRemoval, Removal, Removals};
use super::subjects::tools_on_path;
use super::tools::Ask;
use crate::context::Context;
use crate::driver::{Driver, DriverAnswer, local_state, usual_local_state, workspace_of};
use crate::error::Result;
use crate::git::CommitId;
use crate::path::{Generation, StackPath};
use crate::plan::CannotAsk;
use crate::plan::ask::{self, AskOptions, ToolQuestion};
use crate::plan::code::PlanCode;
use crate::plan::commit_code::find_local_state;
use crate::plan::entry::{Decision, PlannedAction};
use crate::plan::stack::{PlanStack, RemovedCode, StackCode};
use crate::project::Project;
use crate::project::environment::Environments;
use crate::project::host::host_environment;
use crate::project::namespaces::Generations;
use crate::project::stack::StackIndex;
use crate::state::document::Document;

/// The fix if the tool of a generation fails.
const DESTROY_BY_HAND: &str =
    "run `orch plan` again once its tool can plan; or destroy it by hand, and plan again";

pub struct RemovalCode<'e, 'p> {
    /// Its index among the removals.
    pub removal: usize,
    pub stack: StackIndex,
    pub driver: Driver<'p>,
    /// The backend in its driver's block.
    pub backend: Option<String>,
    project: &'p Project,
    environments: &'e Environments<'p>,
    need: Decision,
}

pub type CommitEnvironments<'p> = BTreeMap<CommitEnvironment, Environments<'p>>;

/// The environment of a stack in a commit depends on its own generation and, by path, on those of
/// the other stacks that it was applied with.
type CommitEnvironment = (CommitId, Generation, BTreeMap<StackPath, Generation>);

fn environment_of(removal: &Removal<'_>) -> Option<CommitEnvironment> {
    let applied = removal.entry.applied.as_ref();
    let used = applied
        .into_iter()
        .flat_map(|applied| &applied.generations)
        .filter_map(|(key, generation)| Some((StackPath::parse(key)?, *generation)));
    let seen = removal.seen.clone()?;
    Some((seen, removal.entry.generation, used.collect()))
}

impl Removals<'_> {
    pub fn check_out(&self, context: &Context, commits: &mut Commits) -> Result<()> {
        let needed = self.all.iter().filter(|removal| removal.needs_code());
        let seen = needed.filter_map(|removal| removal.seen.clone());
        commits.check_out(context, seen.collect::<BTreeSet<CommitId>>())
    }

    pub fn environments<'c>(&self, commits: &'c Commits) -> CommitEnvironments<'c> {
        let seen: BTreeSet<CommitEnvironment> = self
            .all
            .iter()
            .filter(|removal| removal.needs_code())
            .filter_map(environment_of)
            .collect();
        let environment = |of: CommitEnvironment| {
            let (seen, generation, used) = &of;
            let code = commits.code(seen).ok()?;
            let environments = Environments::new(&code.project, host_environment());
            let generations = Generations::all(*generation).with(used.clone().into_iter());
            let environments = environments.in_generations(Arc::new(generations));
            Some((of, environments))
        };
        seen.into_iter().filter_map(environment).collect()
    }

    /// Returns the code of removed stacks; blocks those whose code is unusable.
    pub fn codes<'e, 'p>(
        &mut self,
        context: &'p Context,
        document: Option<&Document>,
        commits: &'p Commits,
        environments: &'e CommitEnvironments<'p>,
        extra: &[OsString],
    ) -> Vec<RemovalCode<'e, 'p>> {
        let on_path = tools_on_path();
        let root = &context.project.root;
        let is_compared = |it: &Removal<'_>| it.needs_code() && !it.is_unmistakable();
        let elsewhere = if self.all.iter().any(is_compared) {
            self.elsewhere(context, document)
        } else {
            Vec::new()
        };
        let commands = DestroyCommands::new(context, document, &elsewhere);
        let mut codes = Vec::new();
        for (position, removal) in self.all.iter_mut().enumerate() {
            let seen = removal.seen.clone().filter(|_| removal.needs_code());
            let Some(seen) = seen else { continue };
            let found = || -> std::result::Result<RemovalCode<'e, 'p>, String> {
                let code = commits.code(&seen)?;
                let words = |no: crate::plan::commit_code::NoCode| no.to_string();
                let path = path_in(context, &code.project, removal);
                let stack = code.stack(&path, &removal.entry).map_err(words)?;
                let recorded = removal.entry.driver.as_deref();
                let driver = code.driver(stack, recorded, on_path).map_err(words)?;
                let need = removal.known().need(&driver)?;
                let of = environment_of(removal).ok_or("its commit is unknown")?;
                let environments = &environments[&of];
                if let Some(backend) = &removal.entry.backend {
                    find_local_state(root, backend).map_err(words)?;
                }
                let namespaces = environments.namespaces().of_stack(stack);
                let backend = driver.backend(&namespaces).map_err(first_message)?;
                let code = RemovalCode {
                    removal: position,
                    stack,
                    driver,
                    backend,
                    project: &code.project,
                    environments,
                    need,
                };
                code.check(context, removal, extra)?;
                Ok(code)
            };
            match found() {
                Ok(code) => {
                    removal.backend_there.clone_from(&code.backend);
                    let is_told_apart = code.driver.tool.is_some()
                        || code.backend.is_some()
                        || removal.is_unmistakable();
                    let unclear = (!is_told_apart)
                        .then(|| commands.why_unclear(code.code(removal)))
                        .flatten();
                    match unclear {
                        None => codes.push(code),
                        Some(BlockedRemoval { why, fix }) => removal.block(why, fix),
                    }
                }
                Err(why) => removal.block(why, BRING_BACK),
            }
        }
        codes
    }

    /// Links the local states of tools into the checkouts after `init`: before it, Terraform would
    /// ask to migrate them. Blocks stacks whose states cannot be linked.
    fn link_states(
        &mut self,
        root: &Path,
        document: Option<&Document>,
        commits: &Commits,
        codes: &[RemovalCode<'_, '_>],
    ) {
        // Others may read their states, which are in the working tree.
        let entries = document.into_iter().flat_map(|it| it.stacks.values());
        let backends: BTreeSet<&str> = entries
            .filter_map(|entry| entry.backend.as_deref())
            .filter(|it| local_state(it).is_some())
            .collect();
        let seen: BTreeSet<&CommitId> = codes
            .iter()
            .filter_map(|it| self.all[it.removal].seen.as_ref())
            .collect();
        for code in seen.into_iter().filter_map(|it| commits.code(it).ok()) {
            for backend in &backends {
                // Missing states of destroyed stacks are found below.
                _ = code.link_local_state(root, backend);
            }
        }
        for of_removal in codes {
            let removal = &mut self.all[of_removal.removal];
            let code = removal.seen.as_ref().map(|seen| commits.code(seen));
            let Some(Ok(code)) = code else { continue };
            match &removal.entry.backend {
                Some(backend) => {
                    if let Err(why) = code.link_local_state(root, backend) {
                        removal.block(why.to_string(), BRING_BACK);
                    }
                }
                // The state may be in Terraform's default location.
                None if of_removal.driver.tool.is_some() => {
                    let usual = usual_local_state(removal.path.directory().relative());
                    _ = code.link_local_state(root, &usual);
                }
                None => {}
            }
        }
    }

    /// Decides actions that need no answer; returns the remaining questions.
    pub(super) fn questions<'p>(
        &mut self,
        codes: &[RemovalCode<'_, 'p>],
    ) -> Vec<(ToolQuestion<'p>, Option<String>)> {
        let mut questions = Vec::new();
        for (position, code) in codes.iter().enumerate() {
            match &code.need {
                Decision::Ask(kind, asked) => questions.push((
                    ToolQuestion {
                        stack: PlanStack::Removed(position),
                        driver: code.driver,
                        kind: *kind,
                        asked: *asked,
                    },
                    code.backend.clone(),
                )),
                Decision::Final(action, reason) => {
                    self.all[code.removal].decided = Some(DecidedRemoval {
                        action: *action,
                        reason: reason.clone(),
                        answer: None,
                        driver: code.driver.name.to_owned(),
                    });
                }
            }
        }
        questions
    }

    pub(super) fn decide(
        &mut self,
        context: &Context,
        codes: &[RemovalCode<'_, '_>],
        answers: &BTreeMap<StackPath, std::result::Result<DriverAnswer, String>>,
    ) {
        for code in codes {
            let removal = &mut self.all[code.removal];
            if removal.decided.is_some() {
                continue;
            }
            let answered = match answers.get(&removal.path) {
                Some(Ok(answer)) => Ok(answer),
                Some(Err(why)) => Err(why.clone()),
                None => Err("its tool was not asked".to_owned()),
            };
            let decided = answered.and_then(|answer| {
                let decided = removal.known().decide(&code.driver, answer);
                let (action, reason) = decided.map_err(|problem| problem.to_string())?;
                Ok((action, reason, answer.clone()))
            });
            match decided {
                Ok((action, reason, answer)) => {
                    let (recorded, now) = (&removal.entry.backend, &answer.backend);
                    let is_tool = code.driver.tool.is_some();
                    if recorded.is_some() && now != recorded && (is_tool || now.is_some()) {
                        removal.block("its backend differs from the recorded one", BRING_BACK);
                    } else if is_tool && recorded.is_none() && action == PlannedAction::Forget {
                        // Its tool may have read another state than the one with its resources.
                        removal.block(
                            "its tool finds nothing, but its backend is not recorded",
                            "if nothing of it is left, run `orch state forget`",
                        );
                    }
                    removal.decided = Some(DecidedRemoval {
                        action,
                        reason,
                        answer: Some(answer),
                        driver: code.driver.name.to_owned(),
                    });
                }
                // Problems of a kept stack must not block the others.
                Err(why)
                    if context
                        .project
                        .stacks
                        .find(&removal.path.current())
                        .is_some() =>
                {
                    removal.block(format!("its tool failed to plan: {why}"), DESTROY_BY_HAND);
                }
                Err(why) => _ = self.failed.insert(removal.path.clone(), why),
            }
        }
    }
}

impl Context {
    /// Prepares the code of removed stacks: runs `init`, and links local states. If a tool fails,
    /// its turn runs `init` again and reports the failure.
    pub fn ready<'p>(
        &'p self,
        tools: &dyn Ask,
        jobs: NonZeroUsize,
        document: Option<&Document>,
        commits: &Commits,
        removals: &mut Removals<'_>,
        codes: &[RemovalCode<'_, 'p>],
    ) -> Result<()> {
        let is_local = |code: &RemovalCode<'_, '_>| {
            let backend = removals.all[code.removal].entry.backend.as_deref();
            code.driver.selects_workspaces() && backend.is_none_or(|it| local_state(it).is_some())
        };
        let local: Vec<_> = codes
            .iter()
            .enumerate()
            .filter(|(_, code)| is_local(code))
            .map(|(position, code)| (PlanStack::Removed(position), code.driver))
            .collect();
        if !local.is_empty() {
            let of_commands: Vec<RemovedCode<'_, '_>> = codes
                .iter()
                .map(|code| code.code(&removals.all[code.removal]))
                .collect();
            let environments = self.evaluator();
            let all = PlanCode {
                removed: &of_commands,
                ..PlanCode::of_tree(&self.project, &environments)
            };
            self.init(tools, jobs, all, &local)?;
        }
        removals.link_states(&self.project.root, document, commits, codes);
        Ok(())
    }
}

/// Returns a stack's path in its commit: a generation may be older than a `moved` block.
fn path_in(context: &Context, there: &Project, removal: &Removal<'_>) -> StackPath {
    let path = removal.path.current();
    if removal.path.generation().is_none() || there.stacks.find(&path).is_some() {
        return path;
    }
    let paths = there.stacks.iter().map(|(_, stack)| &stack.path);
    let mut moved = context.project.moves.destinations(paths).into_iter();
    let from = moved.find_map(|(from, to)| (to == path).then(|| from.clone()));
    from.unwrap_or(path)
}

impl<'p> RemovalCode<'_, 'p> {
    pub fn code<'a>(&'a self, removal: &'a Removal<'_>) -> RemovedCode<'a, 'p> {
        let backend = removal.entry.backend.as_deref();
        RemovedCode {
            code: StackCode {
                project: self.project,
                environments: self.environments,
            },
            stack: self.stack,
            path: &removal.path,
            driver: self.driver,
            workspace: backend.and_then(workspace_of),
        }
    }

    fn check(
        &self,
        context: &'p Context,
        removal: &Removal<'_>,
        extra: &[OsString],
    ) -> std::result::Result<(), String> {
        let Decision::Ask(kind, asked) = self.need else {
            return Ok(());
        };
        let environments = Environments::new(&context.project, host_environment());
        let removed = [self.code(removal)];
        let codes = PlanCode {
            removed: &removed,
            ..PlanCode::of_tree(&context.project, &environments)
        };
        let question = ToolQuestion {
            stack: PlanStack::Removed(0),
            driver: self.driver,
            kind,
            asked,
        };
        let folder = std::env::temp_dir();
        let options = AskOptions {
            extra,
            ..AskOptions::new("", &folder, NonZeroUsize::MIN)
        };
        match ask::check(codes, &question, &options) {
            Err(CannotAsk::Removed(_, why)) => Err(why),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
