//! Computed values as inputs of a stack: its environment, and the files that functions read for it.
//!
//! The values of a stack are compared with those that it would have without the counted changes. Only stacks
//! that a changed file may affect are evaluated, and the project at the base is loaded only if there are any.

mod affected;
mod earlier;
mod explain;
mod listed;
mod trace;

use std::collections::{BTreeMap, BTreeSet};

use self::affected::AffectedStacks;
use self::earlier::EarlierTree;
use self::explain::Explainer;
pub use self::listed::add_computed;
use self::trace::Side;
use super::cause::{ChangeCause, Location, Use, UseKind};
use super::error::ChangeError;
use super::files::ChangedFiles;
use super::inputs::{InputProblems, Tree};
use crate::diagnostic::Diagnostic;
use crate::git::{ChangedFile, CommitId};
use crate::path::{ProjectPath, StackPath};
use crate::project::config::EnvDefinition;
use crate::project::discover::{Listing, SKIP_MARKS, is_configuration};
use crate::project::environment::{Environments, Variable};
use crate::project::namespaces::ProjectNamespaces;
use crate::project::stack::StackIndex;
use crate::project::{self, Project};

/// The environment of `orch`, without variables that are not Unicode.
pub type HostEnvironment = [(String, String)];

/// Finds the wanted stacks whose computed values changed. `files` has all counted changes since the base.
pub(super) fn changed_stacks(
    project: &Project,
    listing: &Listing,
    host: &HostEnvironment,
    base: &CommitId,
    files: &ChangedFiles,
    is_wanted: impl Fn(StackIndex) -> bool + Sync,
) -> Result<BTreeMap<StackIndex, ChangeCause>, ChangeError> {
    if !project.settings.environment || files.is_empty() {
        return Ok(BTreeMap::new());
    }
    // Problems with links are reported with other inputs.
    let ignored = InputProblems::default();
    let tree = Tree::new(&project.root, listing, files, &ignored);
    let find = || {
        let side = Side {
            project,
            was: false,
        };
        let wanted = project.stacks.iter().filter(|(index, _)| is_wanted(*index));
        let mut found: BTreeMap<StackIndex, ChangeCause> = wanted
            .filter_map(|(index, stack)| Some((index, trace::read_in_block(side, &tree, stack)?)))
            .collect();
        let concerned = AffectedStacks::find(project, &tree, files, &is_wanted);
        if concerned.is_empty() {
            return Ok(found);
        }
        let now = environments(project, host);
        for &stack in &concerned.reading {
            if found.contains_key(&stack) {
                continue;
            }
            let variables = now.variables(stack);
            let mut causes = variables
                .iter()
                .filter_map(|it| trace::read_by(side, &tree, it));
            found.extend(causes.next().map(|cause| (stack, cause)));
        }
        let mut rest = concerned.compared.iter().copied();
        if rest.any(|stack| !found.contains_key(&stack)) {
            let region = region(project, &concerned);
            let earlier = EarlierTree::new(project, base, files, &region, &concerned.links)?;
            compare(project, host, &earlier, files, &concerned, &mut found)?;
        }
        Ok(found)
    };
    project::pool()?.install(find)
}

/// Returns environments with comparable values.
fn environments<'p>(project: &'p Project, host: &HostEnvironment) -> Environments<'p> {
    Environments::of(ProjectNamespaces::new(project, host.iter().cloned()).comparable())
}

/// Returns the directories whose configuration at the base is needed: those with changes, those of the
/// compared stacks, and all their ancestors.
fn region(project: &Project, concerned: &AffectedStacks) -> BTreeSet<ProjectPath> {
    let differing = concerned.directories.iter();
    // Stacks below these may not have been part of the project at the base.
    let below = differing
        .clone()
        .flat_map(|it| project.stacks.at_or_below(it));
    let stacks = below
        .chain(concerned.compared.iter().copied())
        .map(|stack| project.stacks[stack].path.directory());
    let mut region: BTreeSet<ProjectPath> = differing.chain(stacks).cloned().collect();
    let own = region.iter();
    let above: Vec<ProjectPath> = own
        .flat_map(|directory| directory.ancestors().map(ProjectPath::from_normal))
        .collect();
    region.extend(above);
    region
}

/// Adds the stacks with differing variables.
fn compare(
    project: &Project,
    host: &HostEnvironment,
    tree: &EarlierTree<'_>,
    files: &ChangedFiles,
    concerned: &AffectedStacks,
    found: &mut BTreeMap<StackIndex, ChangeCause>,
) -> Result<(), ChangeError> {
    let earlier = tree.load()?;
    let stacks = |project: &Project| -> BTreeSet<StackPath> {
        let stacks = project.stacks.iter();
        stacks.map(|(_, stack)| stack.path.clone()).collect()
    };
    let stacks_now = stacks(project);
    let mut stacks_before = stacks(&earlier);
    let elsewhere = stacks_now
        .iter()
        .filter(|path| !tree.covers(path.directory()));
    stacks_before.extend(elsewhere.cloned());
    let before = ProjectNamespaces::new(&earlier, host.iter().cloned())
        .comparable()
        .reading(tree)
        .with_stacks(stacks_before.iter());
    let before = Environments::of(before);
    let now = environments(project, host);
    let mut roots = root_marks(&earlier);
    roots.extend(root_marks(project));
    let declaration = |stack: &StackPath| declaration(stack.directory(), files, &roots);
    let mut differing = stacks_now.symmetric_difference(&stacks_before);
    let explainer = Explainer {
        now: Side {
            project,
            was: false,
        },
        before: Side {
            project: &earlier,
            was: true,
        },
        files,
        links: &concerned.links,
        stack_list: differing.find_map(declaration),
    };
    for &stack in &concerned.compared {
        let path = &project.stacks[stack].path;
        if found.contains_key(&stack) {
            continue;
        }
        // A stack that did not exist at the base has nothing to compare with.
        let Some(was) = earlier.stacks.find(path) else {
            let cause = declaration(path).map(|file| {
                let is_own = file.path.parent().as_ref() == Some(path.directory());
                let location = Location {
                    file: file.path.clone(),
                    line: None,
                };
                let kind = UseKind::Hidden;
                let chain = (!is_own).then_some(Use { kind, location });
                ChangeCause {
                    file: file.clone(),
                    chain: chain.into_iter().collect(),
                }
            });
            found.extend(cause.map(|cause| (stack, cause)));
            continue;
        };
        let (now, before) = (now.variables(stack), before.variables(was));
        let cause = difference(&now, &before)
            .and_then(|(now, before)| explainer.variable(path.directory(), now, before));
        found.extend(cause.map(|cause| (stack, cause)));
    }
    Ok(())
}

/// Returns the files that may mark a directory as a nested project.
fn root_marks(project: &Project) -> BTreeSet<ProjectPath> {
    if project.nested_projects.is_empty() {
        return BTreeSet::new();
    }
    let nested: BTreeSet<&ProjectPath> = project.nested_projects.iter().collect();
    let files = project.sources.files();
    let marks = files.filter(|file| {
        let parent = file.path.parent();
        file.text.contains("root") && parent.is_some_and(|it| nested.contains(&it))
    });
    marks.map(|file| file.path.clone()).collect()
}

/// Returns the changed file that adds or removes a stack: a file of its own, or one that excludes, or
/// excluded, a directory above it. `roots` are the root files of nested projects.
fn declaration<'f>(
    stack: &ProjectPath,
    files: &'f ChangedFiles,
    roots: &BTreeSet<ProjectPath>,
) -> Option<&'f ChangedFile> {
    let mut below = files.below(stack);
    let own = below.find(|file| {
        let is_here = file.path.parent().as_ref() == Some(stack);
        is_here
            && is_configuration(file.path.basename().as_ref())
            && !files.is_unchanged(&file.path)
    });
    let around = || {
        let mut directories = std::iter::once(stack.as_str())
            .chain(stack.ancestors())
            .map(ProjectPath::from_normal);
        directories.find_map(|directory| {
            let mut marks = SKIP_MARKS.iter();
            marks.find_map(|mark| files.at(directory.join(mark).as_str()))
        })
    };
    let above = || {
        let mut roots = roots.iter().filter(|root| {
            let directory = root.parent();
            directory.is_some_and(|it| stack.is_at_or_below(&it))
        });
        roots.find_map(|root| files.at(root.as_str()))
    };
    own.or_else(around).or_else(above)
}

/// Returns the first variable that differs, on both sides. Both are sorted by name.
fn difference<'v, 'n, 'b>(
    now: &'v [Variable<'n>],
    before: &'v [Variable<'b>],
) -> Option<(Option<&'v Variable<'n>>, Option<&'v Variable<'b>>)> {
    let (mut now, mut before) = (now.iter().peekable(), before.iter().peekable());
    let name = |definition: &EnvDefinition| definition.name.text.clone();
    loop {
        let name_now = now.peek().map(|it| name(it.definition));
        let name_before = before.peek().map(|it| name(it.definition));
        let (is_now, is_before) = match (&name_now, &name_before) {
            (None, None) => return None,
            (Some(now), Some(before)) => (now <= before, before <= now),
            (now, before) => (now.is_some(), before.is_some()),
        };
        let of_now = is_now.then(|| now.next()).flatten();
        let of_before = is_before.then(|| before.next()).flatten();
        let is_same = match (of_now, of_before) {
            (Some(now), Some(before)) => is_same(&now.value, &before.value),
            _ => false,
        };
        if !is_same {
            return Some((of_now, of_before));
        }
    }
}

/// Returns whether two values are equal, or fail in the same way.
fn is_same(
    now: &Result<Option<String>, Diagnostic>,
    before: &Result<Option<String>, Diagnostic>,
) -> bool {
    match (now, before) {
        (Ok(now), Ok(before)) => now == before,
        (Err(now), Err(before)) => now.code == before.code && now.message == before.message,
        _ => false,
    }
}
