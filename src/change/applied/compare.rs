//! Compares all stacks of a project with their entries in the state.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::entry_index::EntryIndex;
use super::ignored::{DifferenceVerdict, FilesSince};
use super::removed::evidence;
use super::{
    Difference, MissingStack, NoProof, Pending, StackStatus, StackStatuses, clean_commit,
    part_difference,
};
use crate::change::baseline::AppliedBase;
use crate::change::digest::InputDigests;
use crate::change::error::ChangeError;
use crate::change::find::causes_since;
use crate::change::ignored::{IgnoreList, IgnoreLists};
use crate::change::present::CurrentProject;
use crate::change::trigger::{self, AskingTrigger, BadTrigger};
use crate::git::CommitId;
use crate::path::{Generation, ProjectPath};
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::state::document::{Applied, Document, Entry, Inputs};

/// Returns the status of each stack, given the digests of all stacks and the document at an address.
///
/// Where digests differ and `explains` is set, git finds the changed file, with one diff for each applied
/// commit.
pub fn stack_statuses(
    present: CurrentProject<'_>,
    digests: &InputDigests,
    document: &Document,
    address: String,
    explains: bool,
) -> Result<StackStatuses, ChangeError> {
    let CurrentProject {
        project,
        repository,
        ..
    } = present;
    let pairs = EntryIndex::new(&project.stacks, document);
    let triggers = ChangeTriggers::read(project)?;
    let entry = |stack: StackIndex| pairs.key(stack).map(|key| &document.stacks[key]);
    let lists = IgnoreLists::of(project);
    let mut stacks: BTreeMap<StackIndex, StackStatus> = BTreeMap::new();
    for (stack, digest) in &digests.stacks {
        let asking = triggers.of(project, *stack);
        let lock = document.lock.as_ref();
        let ignores_all = lists.get(*stack).is_some_and(IgnoreList::is_all);
        let status = StackStatus::new(entry(*stack), lock, ignores_all, &digest.inputs, &asking);
        stacks.insert(*stack, status);
    }
    let mut since = FilesSince::new(present);
    let mut ignored = BTreeMap::new();
    for (&stack, status) in &mut stacks {
        let applied = entry(stack).and_then(|entry| entry.applied.as_ref());
        let (Some(list), Some(applied)) = (lists.get(stack), applied) else {
            continue;
        };
        let now = &digests.stacks[&stack].inputs;
        let asking = || triggers.of(project, stack);
        let names = leave_out(
            &mut since,
            (stack, list),
            applied,
            now,
            status,
            explains,
            &asking,
        )?;
        if !names.is_empty() {
            ignored.insert(stack, names);
        }
    }
    // By applied commit.
    let mut asked: BTreeMap<CommitId, Vec<StackIndex>> = BTreeMap::new();
    for (&stack, status) in &stacks {
        let is_asked = match status {
            StackStatus::Pending(Pending::OtherRules) => true,
            StackStatus::Pending(Pending::Differs(_)) => explains,
            _ => false,
        };
        let applied = entry(stack).and_then(|entry| entry.applied.as_ref());
        if let Some(commit) = applied.filter(|_| is_asked).and_then(clean_commit) {
            asked.entry(commit).or_default().push(stack);
        }
    }
    for (commit, of_commit) in asked {
        if repository.commit(commit.as_str())?.as_ref() != Some(&commit) {
            continue;
        }
        let mut causes = causes_since(present, &commit, &of_commit)?;
        for stack in of_commit {
            let applied = entry(stack).and_then(|entry| entry.applied.as_ref());
            let Some((status, applied)) = stacks.get_mut(&stack).zip(applied) else {
                continue;
            };
            let cause = causes.remove(&stack);
            match status {
                StackStatus::Pending(Pending::Differs(difference)) => {
                    difference.cause = match cause {
                        Some(cause) => since.reason(stack, lists.get(stack), &commit, cause)?,
                        None => None,
                    };
                }
                _ if cause.is_some() => {
                    *status = StackStatus::Pending(Pending::Differs(Difference {
                        since: Some(commit.clone()),
                        parts: Vec::new(),
                        cause,
                    }));
                }
                _ => *status = StackStatus::of_triggers(applied, &triggers.of(project, stack)),
            }
        }
    }
    for (&stack, status) in &mut stacks {
        let ignores_all = lists.get(stack).is_some_and(IgnoreList::is_all);
        let applied = entry(stack)
            .and_then(|entry| entry.applied.as_ref())
            .filter(|_| !ignores_all && *status == StackStatus::Applied);
        if let Some(other) = applied.and_then(|applied| other_generation(applied, document)) {
            *status = StackStatus::Pending(other);
        }
    }
    Ok(StackStatuses {
        missing: missing(present, document, &pairs)?,
        base: AppliedBase {
            address,
            lineage: document.lineage.clone(),
            serial: document.serial,
        },
        stacks,
        ignored,
    })
}

/// Returns the first stack whose generation differs from the one that a stack was applied with.
fn other_generation(applied: &Applied, document: &Document) -> Option<Pending> {
    let mut used = applied.generations.iter();
    used.find_map(|(of, was)| {
        let entry = document.stacks.get(of);
        let now = entry.map_or(Generation::FIRST, |entry| entry.generation);
        (now != *was).then(|| Pending::Generation {
            of: of.clone(),
            now,
        })
    })
}

/// Leaves ignored differences out of the status of a stack where digests cannot, and returns the ignored ones
/// by name.
fn leave_out(
    since: &mut FilesSince<'_>,
    (stack, list): (StackIndex, &IgnoreList),
    applied: &Applied,
    now: &Inputs,
    status: &mut StackStatus,
    explains: bool,
    asking: &dyn Fn() -> Vec<ProjectPath>,
) -> Result<Vec<String>, ChangeError> {
    let commit = clean_commit(applied);
    let applied_at = (applied, commit.as_ref());
    let differs_at_all = || {
        applied
            .inputs
            .as_ref()
            .is_none_or(|it| it.digest != now.digest)
    };
    match status {
        StackStatus::Pending(Pending::OtherIgnored) => {
            match since.decide(stack, list, applied_at, now)? {
                DifferenceVerdict::Ignored(names) => {
                    *status = StackStatus::of_triggers(applied, &asking());
                    return Ok(names);
                }
                DifferenceVerdict::Differs => {
                    *status = StackStatus::Pending(part_difference(applied, now));
                }
                DifferenceVerdict::Unknown => {}
            }
            Ok(Vec::new())
        }
        StackStatus::Applied if explains && differs_at_all() => {
            since.named(stack, list, applied_at, now)
        }
        _ => Ok(Vec::new()),
    }
}

fn missing(
    present: CurrentProject<'_>,
    document: &Document,
    pairs: &EntryIndex<'_>,
) -> Result<BTreeMap<String, MissingStack>, ChangeError> {
    let here: HashSet<&str> = pairs.iter().map(|(_, key)| key).collect();
    let missing: Vec<(&str, &Entry)> = document
        .stacks
        .iter()
        .map(|(key, entry)| (&**key, entry))
        .filter(|(key, _)| !here.contains(key))
        .collect();
    if missing.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut evidence = evidence(present, document, &missing)?;
    let stack = |(key, entry): (&str, &Entry)| {
        let evidence = evidence.remove(key).unwrap_or(Err(NoProof::NotAPath));
        let stack = MissingStack {
            status: match evidence {
                Ok(_) => StackStatus::Removed,
                Err(_) => StackStatus::Absent,
            },
            id: entry.id.clone(),
            name: entry.name.clone(),
            tags: entry.tags.clone(),
            evidence,
        };
        (key.to_owned(), stack)
    };
    Ok(missing.into_iter().map(stack).collect())
}

/// The triggers that mark stacks as changed, by directory.
struct ChangeTriggers(HashMap<ProjectPath, Vec<AskingTrigger>>);

impl ChangeTriggers {
    fn read(project: &Project) -> Result<Self, BadTrigger> {
        let mut triggers: HashMap<ProjectPath, Vec<AskingTrigger>> = HashMap::new();
        for trigger in trigger::asking(&project.root)? {
            let directory = trigger.directory().clone();
            triggers.entry(directory).or_default().push(trigger);
        }
        Ok(ChangeTriggers(triggers))
    }

    /// Returns the files of the triggers that mark a stack as changed, by path.
    fn of(&self, project: &Project, stack: StackIndex) -> Vec<ProjectPath> {
        let path = &project.stacks[stack].path;
        let here = self.0.get(path.directory()).into_iter().flatten();
        let asking = here.filter(|trigger| trigger.concerns(path));
        asking.map(|trigger| trigger.file.clone()).collect()
    }
}
