//! All inputs of one stack, changed or not.

use std::collections::BTreeSet;

use super::cause::{Input, InputLocation, Location, UncountedChange, Use, UseKind, WhyUncounted};
use super::error::ChangeError;
use super::files::{self, ChangedFiles};
use super::inputs::{self, ChangedInput, CollectedInputs, InputProblems, Tree};
use super::named::{named, touch_named};
use super::uncounted::{IgnoreEntries, UncountedFiles};
use crate::git::ChangedFile;
use crate::path::ProjectPath;
use crate::project::discover::Listing;
use crate::project::stack::{StackIndex, Watch};
use crate::project::{self, Problems, Project};

/// Lists the inputs of a stack: its own directory, watched and imported files, modules, files that are read,
/// targets of links, and what Terragrunt reads, each nearest first. Modules and their uses are listed even if
/// the modules around them changed. With `changed`, a stack changed if and only if one of its inputs did.
/// Adds new warnings to `problems`. Fails if a file cannot be read, or no thread can be started.
pub fn inputs_of(
    project: &Project,
    listing: &Listing,
    changed: Option<&ChangedFiles>,
    stack: StackIndex,
    problems: &mut Problems,
) -> Result<Vec<Input>, ChangeError> {
    let nothing = ChangedFiles::default();
    let (inputs, found) = list(project, listing, changed.unwrap_or(&nothing), stack)?;
    found.add_to(problems)?;
    Ok(inputs.in_order())
}

/// Returns the reads of some stacks whose paths cannot be determined, so that changes of these
/// files do not count. Fails if a file cannot be read, or no thread can be started.
pub fn unknown_paths(
    project: &Project,
    listing: &Listing,
    stacks: &[StackIndex],
) -> Result<Vec<Use>, ChangeError> {
    let directories: BTreeSet<&ProjectPath> = stacks
        .iter()
        .map(|stack| project.stacks[*stack].path.directory())
        .collect();
    let directories: Vec<ProjectPath> = directories.into_iter().cloned().collect();
    let terragrunt = project.settings.terragrunt;
    // Other problems are reported where inputs are compared.
    inputs::walk_present(project, listing, &mut Problems::default(), |tree| {
        inputs::unknown_paths(&tree, &directories, terragrunt)
    })
}

/// Adds the uncounted changes to the inputs of a stack, one file for each kind of reason, files
/// that would count once committed first. Fails if no thread can be started.
pub fn add_uncounted(
    project: &Project,
    listing: &Listing,
    uncounted: &UncountedFiles,
    stack: StackIndex,
    inputs: &mut [Input],
) -> Result<(), ChangeError> {
    let ignores = IgnoreEntries::of(project);
    let why = |file: &ChangedFile| match ignores.find(file) {
        Some(by) => Some(WhyUncounted::ignored(by, project)),
        None => uncounted.counted.off(file.state).map(WhyUncounted::Off),
    };
    let sources = [
        (&uncounted.off, None),
        (&uncounted.ignored, None),
        (&uncounted.same, Some(WhyUncounted::NoInput)),
    ];
    for (files, reason) in sources {
        if files.is_empty() {
            continue;
        }
        // Problems in uncounted files are not reported.
        let (touched, _) = list(project, listing, files, stack)?;
        let unreported = InputProblems::default();
        let tree = Tree::new(&project.root, listing, files, &unreported);
        for input in &mut *inputs {
            let found = match touched.same(input) {
                Some(touched) => touched.change.clone().zip(Some(touched.links.clone())),
                // Computed inputs are not listed again.
                None => touch(&tree, &input.location).map(|it| (it.file.clone(), it.links)),
            };
            let counts = |file: &ChangedFile| input.change.as_ref() == Some(file);
            let change = found
                .filter(|(file, _)| !counts(file))
                .and_then(|(file, links)| {
                    let why = reason.clone().or_else(|| why(&file))?;
                    Some(UncountedChange { file, links, why })
                });
            input.uncounted.extend(change);
        }
    }
    Ok(())
}

fn touch<'a>(tree: &Tree<'a>, location: &InputLocation) -> Option<ChangedInput<'a>> {
    match location {
        InputLocation::Path(path) => tree.touch(path),
        InputLocation::Matching(pattern) => tree.touch_matching(pattern),
    }
}

fn list(
    project: &Project,
    listing: &Listing,
    changed: &ChangedFiles,
    stack: StackIndex,
) -> Result<(CollectedInputs, InputProblems), ChangeError> {
    let problems = InputProblems::default();
    let tree = Tree::new(&project.root, listing, changed, &problems)
        .of(project)
        .recording();
    let (said, _) = changed.split_unchanged();
    let imported = Tree::new(&project.root, listing, &said, &problems);
    let mut inputs = CollectedInputs::default();
    let own = InputLocation::Path(project.stacks[stack].path.directory().clone());
    let mut own_changes = said.iter().filter(|file| {
        let mut concerned = files::stacks_of(file, &project.stacks);
        concerned.any(|concerned| concerned == stack)
    });
    inputs.add(own, &[], &[], own_changes.next().map(ChangedInput::direct));
    for (kind, entry) in named(project, stack) {
        let location = match &entry.value {
            Watch::File(path) => InputLocation::Path(path.clone()),
            Watch::FilePattern(pattern) => InputLocation::Matching(pattern.clone()),
        };
        let step = Use {
            kind,
            location: Location::of(entry.span, project),
        };
        let touch = match step.kind {
            UseKind::Import => touch_named(&imported, &entry.value),
            _ => touch_named(&tree, &entry.value),
        };
        inputs.add(location, &[], &[step], touch);
    }
    let terragrunt = project.settings.terragrunt;
    let add = || inputs::add_inputs(&tree, &project.stacks, stack, terragrunt, &mut inputs);
    project::pool()?.install(add);
    drop((tree, imported));
    Ok((inputs, problems))
}

#[cfg(test)]
mod tests;
