//! Checks which stacks that a plan or a command would destroy are protected. A protected stack blocks the plan, or is
//! kept with the stacks that it depends on.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::entries::Decisions;
use super::removals::Removals;
use super::subjects::{Drivers, StacksToPlan};
use crate::change::EntryIndex;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result, with_causes};
use crate::exit::ExitStatus;
use crate::git::{CommitTree, GitError, Repository};
use crate::path::StackPath;
use crate::plan::SavedPlan;
use crate::plan::entry::PlannedAction;
use crate::plan::order::{NamedConstraints, RecordNode};
use crate::plan::protection::{
    DestroyedPart, Destroyer, Guard, ProtectedStack, Protection, ProtectionRefusal, refusals,
};
use crate::plan::removal::{RemovalRole, held};
use crate::printable::printable;
use crate::project::config::{RecordKind, RecordPatterns};
use crate::project::environment::lookup;
use crate::project::host::host_variable;
use crate::project::stack::{StackIndex, StackMode};
use crate::project::{Problems, Project};
use crate::run::request::PreparedRun;
use crate::run::run_command::RunCommand;
use crate::state::document::Document;

pub struct Protections<'l> {
    context: &'l Context,
    document: Option<&'l Document>,
    pairs: OnceCell<EntryIndex<'l>>,
    /// The project of HEAD, loaded on first use. If HEAD is unreadable, all rules that it may have.
    head: OnceCell<std::result::Result<Option<Head>, Vec<Protection>>>,
}

struct Head {
    project: Project,
    /// Its stacks by the paths that the working tree's `moved` blocks give them.
    by_destination: BTreeMap<StackPath, Vec<StackIndex>>,
    /// In lower case.
    by_id: BTreeMap<String, StackIndex>,
}

impl<'l> Protections<'l> {
    pub fn new(context: &'l Context, document: Option<&'l Document>) -> Self {
        Protections {
            context,
            document,
            pairs: OnceCell::new(),
            head: OnceCell::new(),
        }
    }

    /// Returns a guard that enforces the rules during an apply.
    pub fn into_guard(self) -> Guard<'l> {
        Guard(Box::new(move |stack, destroyed| {
            self.refuse(stack, destroyed)
        }))
    }

    /// Refuses to destroy protected parts of a stack; `None` if the destroy is allowed.
    fn refuse(&self, path: &StackPath, destroyed: &DestroyedPart<'_>) -> Option<ProtectionRefusal> {
        let project = &self.context.project;
        let current = path.current();
        if let Some(stack) = project.stacks.find(&current) {
            return self.refuse_here(stack, destroyed);
        }
        let recorded = self.document?.stacks.get(current.as_str())?;
        ProtectionRefusal::new(Protection::of_removed(project, path, recorded), destroyed)
    }

    /// Refuses to destroy protected parts of a stack of the project; `None` if the destroy is
    /// allowed. Removing a rule takes effect once committed: HEAD decides too if it has the stack,
    /// else the recorded rules do. The recorded rules also count if HEAD has links, which are not
    /// followed in a commit.
    pub(super) fn refuse_here(
        &self,
        stack: StackIndex,
        destroyed: &DestroyedPart<'_>,
    ) -> Option<ProtectionRefusal> {
        let project = &self.context.project;
        let of_tree = ProtectionRefusal::new(Protection::of_tree(project, stack), destroyed);
        of_tree.or_else(|| {
            let head = match self.head.get_or_init(|| self.load_head()) {
                Ok(head) => head.as_ref(),
                Err(unread) => return ProtectionRefusal::new(unread.clone(), destroyed),
            };
            let there = head.map(|head| head.stacks(project, stack));
            let rules = match there.as_deref() {
                None | Some([]) => self.recorded_rules(stack),
                Some(there) => {
                    let head = &head?.project;
                    let of_head = there.iter().flat_map(|&it| Protection::of_head(head, it));
                    let is_broken = !head.broken.is_empty();
                    let recorded = is_broken.then(|| self.recorded_rules(stack));
                    of_head.chain(recorded.into_iter().flatten()).collect()
                }
            };
            ProtectionRefusal::new(rules, destroyed)
        })
    }

    fn recorded_rules(&self, stack: StackIndex) -> Vec<Protection> {
        let Some(document) = self.document else {
            return Vec::new();
        };
        let stacks = &self.context.project.stacks;
        let pairs = self.pairs.get_or_init(|| EntryIndex::new(stacks, document));
        let recorded = pairs.key(stack).and_then(|key| document.stacks.get(key));
        recorded.map(Protection::recorded_rules).unwrap_or_default()
    }

    /// Loads the project of HEAD; `None` outside of git and before the first commit. If HEAD is
    /// unreadable, the error has all rules that HEAD may have.
    fn load_head(&self) -> std::result::Result<Option<Head>, Vec<Protection>> {
        const ADVICE: &str = "run `git status` in this directory to see the cause";
        let root = &self.context.project.root;
        let asked = Repository::open(root)
            .and_then(|repository| Ok((repository.commit("HEAD")?, repository)));
        let unread = |error: GitError| {
            let trust = |command| format!("if you trust the repository, run `{command}`");
            let fix = error.remedy().map_or_else(|| ADVICE.to_owned(), trust);
            Protection::unread(&with_causes(&error), &fix)
        };
        let (head, repository) = match asked {
            Ok((Some(head), repository)) => (head, repository),
            Ok((None, repository)) => {
                if repository.is_unborn().map_err(unread)? {
                    return Ok(None);
                }
                let why = "HEAD names no commit, although the repository has commits";
                return Err(Protection::unread(why, "check out a commit"));
            }
            Err(GitError::NoRepository(_)) => return Ok(None),
            Err(error) => return Err(unread(error)),
        };
        let tree = CommitTree::new(repository, head);
        let project = Project::load_tree(root, &tree, &mut Problems::default())
            .map_err(|error| Protection::unread(&with_causes(&error), ADVICE))?;
        if let Some(file) = project.unparsed().next() {
            let why = format!("`{}` is damaged there", file.relative());
            return Err(Protection::unread(
                &why,
                "commit a version of that file that orch can read",
            ));
        }
        let moves = &self.context.project.moves;
        let paths = project.stacks.iter().map(|(_, stack)| &stack.path);
        let mut by_destination: BTreeMap<StackPath, Vec<StackIndex>> = BTreeMap::new();
        for (from, to) in moves.destinations(paths) {
            if let Some(stack) = project.stacks.find(from) {
                by_destination.entry(to).or_default().push(stack);
            }
        }
        let ids = project
            .stacks
            .iter()
            .filter_map(|(stack, it)| Some((it.id.as_ref()?.value.to_lowercase(), stack)));
        Ok(Some(Head {
            by_id: ids.collect(),
            by_destination,
            project,
        }))
    }
}

impl Head {
    /// Returns the stacks of HEAD that this stack may be: at its path, with its id, or moved to it.
    fn stacks(&self, project: &Project, stack: StackIndex) -> Vec<StackIndex> {
        let stack = &project.stacks[stack];
        let id = stack.id.as_ref().map(|id| id.value.to_lowercase());
        let by_id = id.and_then(|id| self.by_id.get(&id).copied());
        let moved = self.by_destination.get(&stack.path).into_iter().flatten();
        let at_path = self.project.stacks.find(&stack.path);
        at_path
            .into_iter()
            .chain(by_id)
            .chain(moved.copied())
            .collect()
    }
}

/// Prints why protected stacks are not destroyed; returns the exit status.
pub fn refuse(context: &Context, destroyer: Destroyer, protected: &[ProtectedStack]) -> ExitStatus {
    let refusals = refusals(protected, destroyer);
    context
        .notices
        .diagnostics(&refusals, &context.project.sources);
    ExitStatus::Refused
}

impl Context {
    /// Returns the protected stacks that a saved plan would destroy, in whole or in part.
    pub fn protected_in(
        &self,
        saved: &SavedPlan,
        document: Option<&Document>,
    ) -> Vec<ProtectedStack> {
        let protections = Protections::new(self, document);
        let entries = saved
            .plan
            .entries
            .iter()
            .filter(|entry| entry.blocked.is_none());
        let protected = entries.filter_map(|entry| {
            let destroyed = DestroyedPart::of_entry(entry)?;
            Some(ProtectedStack {
                stack: entry.stack.clone(),
                because: entry.reason.text.clone(),
                refusal: protections.refuse(&entry.stack, &destroyed)?,
            })
        });
        protected.collect()
    }

    /// Prints the protected stacks that a run would destroy, given the document if the run is
    /// recorded. Returns whether there are any. Fails if it is unknown which commands destroy.
    pub fn destroys_protected(
        &self,
        run: &PreparedRun,
        command: &RunCommand,
        document: Option<&Document>,
    ) -> Result<bool> {
        let protections = Protections::new(self, document);
        let all = DestroyedPart::unknown();
        let destroyed = self.destroyed_in_run(run, command)?.into_iter();
        let protected: Vec<ProtectedStack> = destroyed
            .filter_map(|(stack, because)| {
                Some(ProtectedStack {
                    stack: self.project.stacks[stack].path.clone(),
                    because,
                    refusal: protections.refuse_here(stack, &all)?,
                })
            })
            .collect();
        if !protected.is_empty() {
            refuse(self, Destroyer::Command, &protected);
        }
        Ok(!protected.is_empty())
    }

    /// Refuses a run that would, or might, destroy protected stacks.
    pub fn refuse_protected(
        &self,
        run: &PreparedRun,
        command: &RunCommand,
        document: &Document,
    ) -> Result<()> {
        if self.destroys_protected(run, command, Some(document))? {
            self.notices.note("nothing was run");
            return Err(ExitStatus::Refused.into());
        }
        Ok(())
    }

    /// Returns the stacks that a run would destroy, with the reason. Their commands are known or
    /// recorded to destroy them. Fails if it is unknown which commands destroy.
    pub fn destroyed_in_run(
        &self,
        run: &PreparedRun,
        command: &RunCommand,
    ) -> Result<Vec<(StackIndex, String)>> {
        let is_destroy = run.recording() == Some(RecordKind::Destroy);
        let patterns = match &self.project.settings.state {
            None => RecordPatterns::built_in(),
            Some(block) => block.destroying(&host_variable).map_err(|problems| {
                self.notices.diagnostics(&problems, &self.project.sources);
                let error = "the commands that destroy are unknown";
                Error::new(ErrorKind::Configuration, error)
            })?,
        };
        let turns = run.sequence.iter().zip(&run.tasks).zip(&run.plan_files);
        let destroying = turns.filter_map(|((&stack, tasks), plan)| {
            let mut commands = command.commands(stack).iter().zip(tasks);
            let destroys = commands.find_map(|(words, task)| {
                let variable = |name: &str| lookup(&task.environment, name);
                patterns.destroys(words, variable)
            });
            let because = match destroys {
                Some(pattern) => format!("the command is `{pattern}`"),
                None if is_destroy => "by `--record=destroy`".to_owned(),
                None => {
                    let plan = plan.as_ref().filter(|plan| plan.destroys() == Some(true))?;
                    format!("the plan file `{}` destroys it", printable(&plan.name))
                }
            };
            Some((stack, because))
        });
        Ok(destroying.collect())
    }
}

const FIX: &str = "`orch plan` without `--skip-protected` shows its rule";

impl Context {
    /// Returns the protected stacks, by path, that a plan would destroy in whole or in part. Notes
    /// those that are only removed from the state.
    pub(super) fn protected(
        &self,
        settled: &Decisions,
        subjects: &StacksToPlan<'_>,
        removals: &Removals<'_>,
        document: Option<&Document>,
    ) -> Vec<ProtectedStack> {
        let stacks = &self.project.stacks;
        let protections = Protections::new(self, document);
        let here = settled
            .destroyed(subjects)
            .filter_map(|(stack, reason, destroyed)| {
                Some(ProtectedStack {
                    stack: stacks[stack].path.clone(),
                    because: reason.text.clone(),
                    refusal: protections.refuse_here(stack, &destroyed)?,
                })
            });
        let mut protected: Vec<ProtectedStack> = here.collect();
        for removal in &removals.all {
            let here = removal
                .path
                .generation()
                .and_then(|_| stacks.find(&removal.path.current()));
            match removal.destroyed() {
                Some(destroyed) => {
                    let refusal = match here {
                        Some(stack) => protections.refuse_here(stack, &destroyed),
                        None => ProtectionRefusal::new(
                            Protection::of_removed(&self.project, &removal.path, &removal.entry),
                            &destroyed,
                        ),
                    };
                    // A replaced stack is already listed.
                    let is_new = |it: &ProtectionRefusal| !(removal.is_planned && it.is_of_stack());
                    let stack = if removal.is_planned {
                        removal.path.current()
                    } else {
                        removal.path.clone()
                    };
                    protected.extend(refusal.filter(is_new).map(|refusal| ProtectedStack {
                        stack,
                        because: removal.because(),
                        refusal,
                    }));
                }
                None if removal.action() == Some(PlannedAction::Forget) && here.is_none() => {
                    let rules =
                        Protection::of_removed(&self.project, &removal.path, &removal.entry);
                    if let Some(protection) = rules.first() {
                        self.notices.note(&format!(
                            "`{}` was {}; nothing is destroyed",
                            printable(removal.path.as_str()),
                            protection.text()
                        ));
                    }
                }
                None => {}
            }
        }
        protected.sort_by(|a, b| a.stack.cmp(&b.stack));
        protected
    }

    /// Notes the updates that `prevent_resource_destroy` cannot cover.
    pub(super) fn note_unreported(&self, settled: &Decisions) {
        let has_rule = |stack: &StackIndex| {
            let rule = self.project.rules_of(*stack).prevent_resource_destroy;
            rule.is_some_and(|rule| !rule.value.is_empty())
        };
        let mut unreported = settled.unreported().filter(has_rule);
        let Some(first) = unreported.next() else {
            return;
        };
        let first = printable(self.project.stacks[first].path.as_str());
        self.notices.note(&match unreported.count() {
            0 => format!(
                "`prevent_resource_destroy` doesn't cover the update of `{first}`: its driver doesn't report what it destroys"
            ),
            more => format!(
                "`prevent_resource_destroy` doesn't cover the updates of `{first}` and {more} more: their drivers don't report what they destroy"
            ),
        });
    }

    /// Keeps protected stacks and those that they run after; adds them to `blocked`.
    pub(super) fn skip_protected(
        &self,
        protected: &[ProtectedStack],
        settled: &mut Decisions,
        removals: &mut Removals<'_>,
        document: Option<&Document>,
        blocked: &mut BTreeMap<StackIndex, String>,
    ) {
        let record = NamedConstraints::new(&self.project, &self.graph, document);
        let drivers = Drivers::new(self, document);
        let going: BTreeSet<StackIndex> = settled.going().collect();
        let is_protected = |path: &str| {
            let found = protected.binary_search_by(|it| it.stack.as_str().cmp(path));
            found.is_ok()
        };
        let actions = removals.going();
        let part = |node: usize| {
            let stack = match record.node(node) {
                RecordNode::Here(stack) => stack,
                RecordNode::Group(_) => return RemovalRole::Missing,
                RecordNode::Removed(key) => {
                    return match actions.get(key) {
                        _ if is_protected(key) => RemovalRole::Untouched,
                        Some(PlannedAction::Delete) => RemovalRole::Destroyed,
                        Some(_) => RemovalRole::Missing,
                        None => RemovalRole::Updated,
                    };
                }
            };
            let here = &self.project.stacks[stack];
            if is_protected(here.path.as_str()) {
                RemovalRole::Untouched
            } else if going.contains(&stack) {
                RemovalRole::Destroyed
            } else if here.mode == StackMode::Manage
                && (document.is_none() || drivers.entry(stack).is_some())
            {
                RemovalRole::Updated
            } else {
                RemovalRole::Missing
            }
        };
        let held = held(&record.recorded, part);
        let holder = |kept: usize| {
            let mut holder = kept;
            while let Some(&next) = held.get(&holder) {
                holder = next;
            }
            record.name(&self.project, holder)
        };
        let kept = held.keys().map(|&kept| {
            let why = format!("kept: protected {} runs after it", holder(kept));
            (kept, why)
        });
        let mut all: Vec<(usize, String)> = kept.collect();
        for protected in protected {
            let why = protected.refusal.protection().text();
            let of_gone = || record.removed_node(protected.stack.as_str());
            let here = self.project.stacks.find(&protected.stack);
            let node = here.map(StackIndex::get).or_else(of_gone);
            all.extend(node.map(|node| (node, why)));
        }
        for (node, why) in all {
            match record.node(node) {
                RecordNode::Removed(key) => {
                    if let Some(removal) = removals.of_key(key) {
                        removal.block(why, FIX);
                    }
                }
                RecordNode::Here(stack) => {
                    settled.block(stack, &why);
                    blocked.insert(stack, why);
                }
                RecordNode::Group(_) => {}
            }
        }
    }
}
