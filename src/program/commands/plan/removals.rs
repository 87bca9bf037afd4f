//! Stacks that are on record and not in the tree: those with evidence that they were removed are destroyed with
//! the code of the commit that was applied to them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use orch::change::{MissingStack, RemovedBy};
use orch::driver::{Answer, Driver, local_state, workspace_of};
use orch::git::CommitId;
use orch::path::StackPath;
use orch::plan::ask::{self, AskOptions, Question};
use orch::plan::code::{Code, Codes, PlanStack, RemovedCode};
use orch::plan::entry::{Action, Need, PlanEntry, PlanMode, Reason, ReasonSource, Removed};
use orch::plan::removal::RemovedStack;
use orch::plan::stale::{Stale, record_of};
use orch::plan::{CannotAsk, Condition, FailedAsk, SavedStack, UnplannedRemovals};
use orch::printable::printable;
use orch::project::Project;
use orch::project::environment::Environments;
use orch::project::stack::StackIndex;
use orch::selection::select::Query;
use orch::state::document::{Document, Entry};

use super::PlanRequest;
use super::ask::AskedTools;
use super::commits::Commits;
use super::subjects::{OnRecord, tools_on_path};
use crate::program::commands::{Loaded, host_environment};
use crate::program::console;
use crate::program::error::Result;

/// How many warnings are printed about stacks that are not destroyed.
const MAX_WARNINGS: usize = 10;

/// A stack that is on record, not in the tree, and in the scope of a plan.
pub(in crate::program::commands) struct Removal<'d> {
    pub(in crate::program::commands) path: StackPath,
    pub(in crate::program::commands) entry: &'d Entry,
    pub(in crate::program::commands) removed: Removed,
    /// The commit whose code destroys it, if it is known to have been removed.
    pub(in crate::program::commands) seen: Option<CommitId>,
    /// Why nothing may be done with it, and the way out.
    pub(in crate::program::commands) blocked: Option<Blocked>,
    /// What is done, once that is known.
    decided: Option<Decided>,
}

/// Why nothing may be done with a stack that is not in the tree.
pub(in crate::program::commands) struct Blocked {
    pub(in crate::program::commands) why: String,
    pub(in crate::program::commands) way_out: String,
}

/// What is done with a stack that was removed.
struct Decided {
    action: Action,
    reason: Reason,
    /// What its tool has answered, if it was asked.
    answer: Option<Answer>,
    driver: String,
}

/// The stacks on record that a plan removes.
#[derive(Default)]
pub(in crate::program::commands) struct Removals<'d> {
    /// By path.
    pub(in crate::program::commands) all: Vec<Removal<'d>>,
    pub(super) unplanned: UnplannedRemovals,
    /// The stacks of the tree that are stacks on record under these keys: their tools keep their states in the
    /// same places.
    pub(super) moved: BTreeMap<StackIndex, String>,
    /// The stacks whose tools could not be asked, with why.
    failed: BTreeMap<StackPath, String>,
}

/// A stack whose code is at hand.
pub(in crate::program::commands) struct RemovalCode<'e, 'p> {
    /// The position of the stack among the removals.
    pub(in crate::program::commands) removal: usize,
    /// The stack in the code.
    pub(in crate::program::commands) stack: StackIndex,
    pub(in crate::program::commands) driver: Driver<'p>,
    /// Where the block of its driver says that its state is.
    pub(in crate::program::commands) backend: Option<String>,
    project: &'p Project,
    environments: &'e Environments<'p>,
    need: Need,
}

/// The environments of the projects of commits.
pub(in crate::program::commands) type CommitEnvironments<'p> = BTreeMap<CommitId, Environments<'p>>;

impl<'d> Removal<'d> {
    /// Returns what is known of a stack on record.
    fn new(path: StackPath, entry: &'d Entry, missing: &MissingStack) -> Self {
        let (removed, seen, blocked) = match &missing.evidence {
            Ok(removal) => {
                let removed = match &removal.by {
                    RemovedBy::Commit(commit) => Removed::Commit(commit.to_string()),
                    RemovedBy::Key => Removed::Key,
                };
                (removed, Some(removal.seen.clone()), None)
            }
            Err(none) => {
                let blocked = Blocked {
                    why: none.to_string(),
                    way_out: none.way_out(),
                };
                (Removed::Unproven, None, Some(blocked))
            }
        };
        Removal {
            path,
            entry,
            removed,
            seen,
            blocked,
            decided: None,
        }
    }

    fn known(&self) -> RemovedStack<'_> {
        RemovedStack {
            entry: self.entry,
            removed: &self.removed,
        }
    }

    /// Keeps the stack as it is.
    pub(super) fn block(&mut self, why: impl Into<String>, way_out: impl Into<String>) {
        self.blocked.get_or_insert_with(|| Blocked {
            why: why.into(),
            way_out: way_out.into(),
        });
    }

    /// Returns where its tool keeps its own state, if that is known.
    pub(super) fn backend(&self) -> Option<&str> {
        let answer = self.decided.as_ref().and_then(|it| it.answer.as_ref());
        let answered = answer.and_then(|answer| answer.backend.as_deref());
        self.entry.backend.as_deref().or(answered)
    }

    /// Returns whether it may be destroyed, as far as is known.
    pub(super) fn may_go(&self) -> bool {
        let decided = self.decided.as_ref();
        self.blocked.is_none() && decided.is_none_or(|it| it.action == Action::Delete)
    }

    /// Returns whether its code is needed.
    fn needs_code(&self) -> bool {
        self.blocked.is_none() && self.decided.is_none()
    }

    /// Returns what is done with it, unless it is blocked.
    pub(super) fn action(&self) -> Option<Action> {
        let decided = self.decided.as_ref().filter(|_| self.blocked.is_none());
        decided.map(|decided| decided.action)
    }
}

/// Brings the ways out of what keeps the code of stacks from being used.
const BRING_BACK: &str = "bring its directory back, run `orch destroy` there, and delete it again";

impl Loaded {
    /// Returns the stacks on record that a plan is about and that are not in the tree.
    pub(super) fn removals<'d>(
        &self,
        request: &PlanRequest<'_>,
        query: &Query,
        recorded: Option<&'d OnRecord>,
    ) -> Result<Removals<'d>> {
        let nothing = BTreeMap::new();
        let missing = recorded.map_or(&nothing, |recorded| &recorded.standings.missing);
        self.warn_of_idle(query, missing);
        self.check_named(query.named.as_ref(), missing)?;
        let Some(recorded) = recorded.filter(|_| request.options.mode != PlanMode::RefreshOnly)
        else {
            return Ok(Removals::default());
        };
        let standings = &recorded.standings;
        let mut removals = Removals::default();
        for (key, missing) in &standings.missing {
            let entry = recorded.document.stacks.get(key);
            let (Some(path), Some(entry)) = (StackPath::parse(key), entry) else {
                continue;
            };
            // A stack of the tree at the path of another one is told of by its own entry.
            if self.project.stacks.find(&path).is_some() {
                continue;
            }
            if !query.passes_missing(key, missing) {
                removals.unplanned.out_of_scope += 1;
            } else if request.planning.no_removals {
                removals.unplanned.left_out += 1;
            } else {
                removals.all.push(Removal::new(path, entry, missing));
            }
        }
        removals.all.sort_by(|a, b| a.path.cmp(&b.path));
        for removal in &mut removals.all {
            if removal.blocked.is_none()
                && let Some((action, reason)) = removal.known().forgotten()
            {
                removal.decided = Some(Decided {
                    action,
                    reason,
                    answer: None,
                    driver: removal.entry.driver.clone().unwrap_or_default(),
                });
            }
        }
        Ok(removals)
    }
}

impl<'d> Removals<'d> {
    /// Returns some stacks that a plan destroys, given what is on record and not in the tree.
    pub(in crate::program::commands) fn to_destroy<'s>(
        document: &'d Document,
        missing: &BTreeMap<String, MissingStack>,
        stacks: impl Iterator<Item = &'s StackPath>,
    ) -> Self {
        let all = stacks.filter_map(|path| {
            let key = path.as_str();
            let (entry, missing) = (document.stacks.get(key)?, missing.get(key)?);
            Some(Removal::new(path.clone(), entry, missing))
        });
        Removals {
            all: all.collect(),
            ..Removals::default()
        }
    }

    /// Leaves out the stacks that are in the tree at other paths: from the stack to the key.
    pub(super) fn follow(&mut self, moves: &BTreeMap<StackIndex, String>) {
        self.moved.clone_from(moves);
        let keys: BTreeSet<&str> = moves.values().map(String::as_str).collect();
        self.all
            .retain(|removal| !keys.contains(removal.path.as_str()));
    }

    /// Returns why stacks may not be destroyed, by path.
    pub(in crate::program::commands) fn stale(&self) -> Vec<Stale> {
        let blocked = self.all.iter();
        let blocked = blocked.filter_map(|it| Some((it.path.clone(), it.blocked.as_ref()?)));
        let stale = blocked.map(|(path, blocked)| Stale::NotRemoved(path, blocked.why.clone()));
        stale.collect()
    }

    /// Returns the stack that is on record under a key.
    pub(super) fn of_key(&mut self, key: &str) -> Option<&mut Removal<'d>> {
        self.all.iter_mut().find(|it| it.path.as_str() == key)
    }

    /// Checks out the commits that are needed.
    pub(in crate::program::commands) fn check_out(
        &self,
        loaded: &Loaded,
        commits: &mut Commits,
    ) -> Result<()> {
        let needed = self.all.iter().filter(|removal| removal.needs_code());
        let seen = needed.filter_map(|removal| removal.seen.clone());
        commits.check_out(loaded, seen.collect::<BTreeSet<CommitId>>())
    }

    /// Returns the environments of the projects that were checked out.
    pub(in crate::program::commands) fn environments<'c>(
        &self,
        commits: &'c Commits,
    ) -> CommitEnvironments<'c> {
        let seen = self.all.iter().filter(|removal| removal.needs_code());
        let seen = seen.filter_map(|removal| removal.seen.as_ref());
        let environment = |seen: &CommitId| {
            let code = commits.code(seen).ok()?;
            let environments = Environments::new(&code.project, host_environment());
            Some((seen.clone(), environments))
        };
        seen.filter_map(environment).collect()
    }

    /// Returns the code of the stacks that were removed; blocks those whose code cannot be used.
    pub(in crate::program::commands) fn codes<'e, 'p>(
        &mut self,
        loaded: &'p Loaded,
        document: Option<&Document>,
        commits: &'p Commits,
        environments: &'e CommitEnvironments<'p>,
        extra: &[OsString],
    ) -> Vec<RemovalCode<'e, 'p>> {
        let on_path = tools_on_path();
        let root = &loaded.project.root;
        // Others may read their states, which are the tree's.
        let entries = document.into_iter().flat_map(|it| it.stacks.values());
        let backends = entries.filter_map(|entry| entry.backend.as_deref());
        let backends: BTreeSet<&str> = backends.filter(|it| local_state(it).is_some()).collect();
        for code in environments.keys().filter_map(|it| commits.code(it).ok()) {
            for backend in &backends {
                // The states of those that are destroyed have to be there, as is checked below.
                _ = code.link_local_state(root, backend);
            }
        }
        let mut codes = Vec::new();
        for (position, removal) in self.all.iter_mut().enumerate() {
            let seen = removal.seen.clone().filter(|_| removal.needs_code());
            let Some(seen) = seen else { continue };
            let found = || -> std::result::Result<RemovalCode<'e, 'p>, String> {
                let code = commits.code(&seen)?;
                let words = |no: orch::plan::commit_code::NoCode| no.to_string();
                let stack = code.stack(&removal.path, removal.entry).map_err(words)?;
                let recorded = removal.entry.driver.as_deref();
                let driver = code.driver(stack, recorded, on_path).map_err(words)?;
                let need = removal.known().need(&driver)?;
                let environments = &environments[&seen];
                if let Some(backend) = &removal.entry.backend {
                    code.link_local_state(root, backend).map_err(words)?;
                }
                let namespaces = environments.namespaces().of_stack(stack);
                let backend = driver.backend(&namespaces);
                let backend = backend.map_err(|found| {
                    let first = found.into_iter().next();
                    first.map_or_else(String::new, |it| it.message)
                })?;
                let code = RemovalCode {
                    removal: position,
                    stack,
                    driver,
                    backend,
                    project: &code.project,
                    environments,
                    need,
                };
                code.check(loaded, removal, extra)?;
                Ok(code)
            };
            match found() {
                Ok(code) => codes.push(code),
                Err(why) => removal.block(why, BRING_BACK),
            }
        }
        codes
    }

    /// Decides what needs no answer, and returns the questions whose answers decide the rest.
    pub(super) fn questions<'p>(
        &mut self,
        codes: &[RemovalCode<'_, 'p>],
    ) -> Vec<(Question<'p>, Option<String>)> {
        let mut questions = Vec::new();
        for (position, code) in codes.iter().enumerate() {
            match &code.need {
                Need::Ask(kind, asked) => questions.push((
                    Question {
                        stack: PlanStack::Removed(position),
                        driver: code.driver,
                        kind: *kind,
                        asked: *asked,
                    },
                    code.backend.clone(),
                )),
                Need::Settled(action, reason) => {
                    self.all[code.removal].decided = Some(Decided {
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

    /// Decides what is done according to the answers.
    pub(super) fn decide(
        &mut self,
        codes: &[RemovalCode<'_, '_>],
        answers: &BTreeMap<StackPath, std::result::Result<Answer, String>>,
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
                    if let (Some(recorded), Some(now)) = (&removal.entry.backend, &answer.backend)
                        && recorded != now
                    {
                        let why = "another backend than recorded";
                        removal.block(why, BRING_BACK);
                    }
                    removal.decided = Some(Decided {
                        action,
                        reason,
                        answer: Some(answer),
                        driver: code.driver.name.to_owned(),
                    });
                }
                Err(why) => _ = self.failed.insert(removal.path.clone(), why),
            }
        }
    }

    /// Returns what is done with the stacks, by key; what is not decided yet goes.
    pub(super) fn going(&self) -> BTreeMap<String, Action> {
        let going = self.all.iter().filter(|removal| removal.may_go());
        let going = going.map(|removal| (removal.path.to_string(), Action::Delete));
        going.chain(self.actions()).collect()
    }

    /// Returns what is done with the stacks, by key.
    pub(super) fn actions(&self) -> BTreeMap<String, Action> {
        let all = self.all.iter();
        all.filter_map(|removal| Some((removal.path.to_string(), removal.action()?)))
            .collect()
    }

    /// Warns of the stacks that are not destroyed.
    pub(super) fn warn(&self) {
        let blocked = self.all.iter();
        let blocked = blocked.filter_map(|it| Some((&it.path, it.blocked.as_ref()?)));
        let blocked: Vec<(&StackPath, &Blocked)> = blocked.collect();
        for (path, Blocked { why, way_out }) in blocked.iter().take(MAX_WARNINGS) {
            let path = printable(path.as_str());
            console::warning(&format!(
                "`{path}` is on record and not in the tree, and is not destroyed: {}",
                printable(why)
            ));
            if !way_out.is_empty() {
                console::help(&printable(way_out));
            }
        }
        if let Some(more @ 1..) = blocked.len().checked_sub(MAX_WARNINGS) {
            console::warning(&format!("{more} more stacks on record are kept like these"));
        }
    }

    /// Adds the entries of the stacks, and those whose tools failed.
    pub(super) fn add_to(&self, entries: &mut Vec<PlanEntry>, failed: &mut Vec<FailedAsk>) {
        for removal in &self.all {
            if let Some(why) = self.failed.get(&removal.path) {
                failed.push(FailedAsk {
                    stack: removal.path.clone(),
                    why: why.clone(),
                });
                continue;
            }
            let blocked = removal.blocked.as_ref().map(|blocked| blocked.why.clone());
            let decided = removal.decided.as_ref().filter(|_| blocked.is_none());
            let answer = decided.and_then(|decided| decided.answer.as_ref());
            let why = || blocked.clone().unwrap_or_default();
            let seen = removal.seen.as_ref().map(CommitId::to_string);
            let applied = removal.entry.applied.as_ref();
            entries.push(PlanEntry {
                stack: removal.path.clone(),
                action: decided.map_or(Action::NoOp, |decided| decided.action),
                reason: match decided {
                    Some(decided) => decided.reason.clone(),
                    None => Reason::new(ReasonSource::State, why()),
                },
                counts: answer.and_then(|answer| answer.counts),
                resources: answer.map_or_else(Vec::new, |answer| answer.resources.clone()),
                is_complete: answer.is_none_or(|answer| answer.is_complete),
                is_planned: true,
                after: Condition::default(),
                blocked,
                previous_path: None,
                source_commit: seen.or_else(|| applied?.commit.clone()),
                removed: Some(removal.removed.clone()),
            });
        }
        entries.sort_by(|a, b| a.stack.cmp(&b.stack));
        failed.sort_by(|a, b| a.stack.cmp(&b.stack));
    }

    /// Returns what the entry of a stack rests on, if the stack was removed and something is done with it. Adds
    /// the plan of its tool to those of the file.
    pub(super) fn rest(
        &self,
        entry: &PlanEntry,
        asked: &AskedTools,
        plans: &mut Vec<PathBuf>,
    ) -> Option<SavedStack> {
        let found = self.all.binary_search_by(|it| it.path.cmp(&entry.stack));
        let removal = &self.all[found.ok()?];
        let decided = removal.decided.as_ref()?;
        let action = removal.action()?;
        let plan = asked
            .plan_of(&entry.stack)
            .filter(|_| action == Action::Delete);
        let plan = plan.map(|plan| {
            plans.push(plan);
            plans.len() - 1
        });
        let answer = decided.answer.as_ref();
        Some(SavedStack {
            stack: entry.stack.clone(),
            driver: decided.driver.clone(),
            inputs: None,
            order: String::new(),
            record: Some(record_of(removal.entry)),
            records_before: None,
            backend: removal.backend().map(str::to_owned),
            outputs_before: None,
            outputs: None,
            changes: answer.and_then(|answer| answer.changes.clone()),
            plan,
        })
    }
}

impl<'p> RemovalCode<'_, 'p> {
    /// Returns the code as commands need it.
    pub(in crate::program::commands) fn code<'a>(
        &'a self,
        removal: &Removal<'a>,
    ) -> RemovedCode<'a, 'p> {
        let backend = removal.entry.backend.as_deref();
        RemovedCode {
            code: Code {
                project: self.project,
                environments: self.environments,
            },
            stack: self.stack,
            workspace: backend.and_then(workspace_of),
        }
    }

    /// Checks that the commands of the stack can be made.
    fn check(
        &self,
        loaded: &'p Loaded,
        removal: &Removal<'_>,
        extra: &[OsString],
    ) -> std::result::Result<(), String> {
        let Need::Ask(kind, asked) = self.need else {
            return Ok(());
        };
        let environments = Environments::new(&loaded.project, host_environment());
        let removed = [self.code(removal)];
        let codes = Codes {
            tree: Code {
                project: &loaded.project,
                environments: &environments,
            },
            removed: &removed,
        };
        let question = Question {
            stack: PlanStack::Removed(0),
            driver: self.driver,
            kind,
            asked,
        };
        let options = AskOptions {
            run: "",
            folder: &std::env::temp_dir(),
            init: false,
            extra,
            jobs: std::num::NonZeroUsize::MIN,
        };
        match ask::check(codes, &question, &options) {
            Err(CannotAsk::Removed(_, why)) => Err(why),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
