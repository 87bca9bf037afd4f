use std::collections::{BTreeMap, HashSet};

use super::base::Base;
use super::baseline::{Baseline, ChangeBase};
use super::cause::{ChangeCause, Location, Use, UseKind};
use super::computed;
use super::error::ChangeError;
use super::files::{self, ChangedFiles};
use super::inputs::{self, InputProblems, Tree};
use super::named::{named, touch_named};
use super::present::{CurrentProject, UncommittedChanges};
use super::removed::{self, Differences};
use super::trigger::{self, Trigger};
use super::triggers::{TriggerEffects, TriggerReader};
use super::unchanged;
use super::uncounted::{IgnoreEntries, UncountedFiles};
use crate::git::{ChangedFile, CommitId};
use crate::project::discover::Listing;
use crate::project::stack::{self, StackIndex};
use crate::project::{self, Problems, Project};

#[derive(Debug, Clone)]
pub struct Changes {
    pub since: Baseline,
    pub stacks: BTreeMap<StackIndex, ChangeCause>,
    /// The stacks that a trigger marks as changed, each with the first such trigger by path.
    pub triggered: BTreeMap<StackIndex, Trigger>,
    /// The stacks that a trigger marks as unchanged, which overrides everything else, each with all such
    /// triggers by path.
    pub dismissed: BTreeMap<StackIndex, Vec<Trigger>>,
    /// The files that differ from the base, without ignored files and triggers.
    pub files: ChangedFiles,
    pub uncounted: UncountedFiles,
}

impl Changes {
    /// Returns how many stacks count as changed.
    pub fn count(&self) -> usize {
        let triggered = self
            .triggered
            .keys()
            .filter(|stack| !self.stacks.contains_key(stack));
        let counting = self.stacks.keys().chain(triggered);
        counting
            .filter(|stack| !self.dismissed.contains_key(stack))
            .count()
    }
}

/// Finds the changes since `base`, in commits up to HEAD and in the working tree. Computed values
/// are compared with the same host environment. Adds warnings to `problems`. Fails if git cannot
/// determine the differences, or no thread can be started.
pub fn find(
    present: CurrentProject<'_>,
    base: Base,
    problems: &mut Problems,
) -> Result<Changes, ChangeError> {
    let CurrentProject {
        project,
        listing,
        repository,
        uncommitted,
        host,
    } = present;
    let UncommittedChanges {
        status,
        counted,
        same,
    } = uncommitted;
    let counted = *counted;
    let head = repository.commit("HEAD")?;
    let (mut files, outside) = match &head {
        Some(head) => (
            repository.differences(&base.commit, head)?,
            repository.differs_outside(&base.commit, head)?,
        ),
        None => (Vec::new(), false),
    };
    files.retain(|file| !same.contains(&file.path));
    let (status, off): (Vec<ChangedFile>, Vec<ChangedFile>) = status
        .iter()
        .cloned()
        .partition(|file| counted.off(file.state).is_none());
    let status = ChangedFiles::new(status);
    files.extend(status.iter().cloned());
    let directory = trigger::directory();
    let (files, triggers) = ChangedFiles::new(files).without(&directory);
    let off = ChangedFiles::new(off);
    let differences = Differences {
        changed: &files,
        status: &status,
        off: &off,
    };
    let removed = removed::removed(project, repository, &base.commit, &differences)?;
    let reader = TriggerReader {
        repository,
        head: head.as_ref(),
        status: &status,
        removed: &removed,
    };
    let TriggerEffects {
        triggered,
        dismissed,
    } = reader.read(project, &triggers, problems)?;
    let entries = IgnoreEntries::of(project);
    let (files, ignored) = entries.split(files);
    let files = unchanged::mark_unchanged(present, &base.commit, files, |_| true)?;
    let (off, off_triggers) = off.without(&directory);
    let (off, off_ignored) = entries.split(off);
    let uncounted = UncountedFiles {
        counted,
        off: off.except(&files),
        ignored: ignored.and(off_ignored),
        triggers: off_triggers.except(&triggers),
        same: files.split_unchanged().1,
    };
    // Even if nothing in the project changed, files outside of it that stacks use may have. A warning then
    // says that such changes cannot be seen.
    let mut stacks = if files.is_empty() && !outside {
        BTreeMap::new()
    } else {
        changed_stacks(project, listing, &files, |_| true, Some(problems))?
    };
    let is_other = |stack: StackIndex| !stacks.contains_key(&stack);
    let commit = &base.commit;
    let computed = computed::changed_stacks(project, listing, host, commit, &files, is_other)?;
    stacks.extend(computed);
    let warnings = stack::unmatched(&project.stacks, &project.root);
    problems.diagnostics.extend(warnings);
    Ok(Changes {
        since: Baseline {
            base: ChangeBase::Commit(base),
            removed,
            outside,
        },
        stacks,
        triggered,
        dismissed,
        files,
        uncounted,
    })
}

/// Returns which of some stacks changed since a commit, and why. Triggers do not count. Fails if
/// git cannot determine the differences, or no thread can be started.
pub fn causes_since(
    present: CurrentProject<'_>,
    commit: &CommitId,
    stacks: &[StackIndex],
) -> Result<BTreeMap<StackIndex, ChangeCause>, ChangeError> {
    let project = present.project;
    let files = unchanged::files_since(present, commit)?;
    let imports = stacks.iter().any(|stack| {
        let directory = project.stacks[*stack].path.directory();
        project.imports.contains_key(directory)
    });
    let wanted: HashSet<StackIndex> = stacks.iter().copied().collect();
    let concerns = |file: &ChangedFile| {
        let mut concerned = files::stacks_of(file, &project.stacks);
        imports || concerned.any(|stack| wanted.contains(&stack))
    };
    let files = unchanged::mark_unchanged(present, commit, files, concerns)?;
    causes_by(present, commit, &files, stacks)
}

/// Returns which of some stacks changed since a commit, given the files that differ and count. Problems with
/// inputs are reported elsewhere.
pub(super) fn causes_by(
    present: CurrentProject<'_>,
    commit: &CommitId,
    files: &ChangedFiles,
    stacks: &[StackIndex],
) -> Result<BTreeMap<StackIndex, ChangeCause>, ChangeError> {
    let CurrentProject {
        project,
        listing,
        host,
        ..
    } = present;
    let wanted: HashSet<StackIndex> = stacks.iter().copied().collect();
    let is_wanted = |stack: StackIndex| wanted.contains(&stack);
    let mut causes = changed_stacks(project, listing, files, is_wanted, None)?;
    let is_other = |stack: StackIndex| is_wanted(stack) && !causes.contains_key(&stack);
    let computed = computed::changed_stacks(project, listing, host, commit, files, is_other)?;
    causes.extend(computed);
    Ok(causes)
}

/// Returns the causes of the wanted stacks that changed. A configuration file with an equal canonical text
/// counts only where another file reads it, as in a module. Problems with inputs are added to `problems`, if
/// given.
pub(super) fn changed_stacks(
    project: &Project,
    listing: &Listing,
    files: &ChangedFiles,
    is_wanted: impl Fn(StackIndex) -> bool,
    problems: Option<&mut Problems>,
) -> Result<BTreeMap<StackIndex, ChangeCause>, ChangeError> {
    let mut changed: BTreeMap<StackIndex, ChangeCause> = BTreeMap::new();
    let (said, _) = files.split_unchanged();
    for file in said.iter() {
        for stack in files::stacks_of(file, &project.stacks).filter(|&stack| is_wanted(stack)) {
            changed.entry(stack).or_insert_with(|| ChangeCause {
                file: file.clone(),
                chain: Vec::new(),
            });
        }
    }
    let input_problems = InputProblems::default();
    let mut tree = Tree::new(&project.root, listing, files, &input_problems).of(project);
    tree.checks = problems.is_some();
    let imported = Tree::new(&project.root, listing, &said, &input_problems);
    let mut others = Vec::new();
    for (index, _) in project.stacks.iter() {
        if changed.contains_key(&index) || !is_wanted(index) {
            continue;
        }
        let mut touched = named(project, index).filter_map(|(kind, entry)| {
            let tree = if kind == UseKind::Import {
                &imported
            } else {
                &tree
            };
            let touch = touch_named(tree, &entry.value)?;
            Some((touch, kind, entry.span))
        });
        match touched.next() {
            Some((touch, kind, span)) => {
                let location = Location::of(span, project);
                let mut chain = vec![Use { kind, location }];
                chain.extend(touch.links);
                let file = touch.file.clone();
                changed.insert(index, ChangeCause { file, chain });
            }
            None => others.push(index),
        }
    }
    let terragrunt = project.settings.terragrunt;
    let find = || inputs::changed_inputs(&tree, &project.stacks, &others, terragrunt);
    changed.extend(project::pool()?.install(find));
    drop((tree, imported));
    input_problems.add_to(problems.unwrap_or(&mut Problems::default()))?;
    Ok(changed)
}
