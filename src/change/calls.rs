//! The module calls of stacks and of the local modules that they use, for modules outside of the project.
//!
//! This module does not know the versions of modules or what a source means.

use std::collections::BTreeMap;

use super::call::{FoundCall, ModuleCall};
use super::cause::Location;
use super::error::ChangeError;
use super::files::ChangedFiles;
use super::inputs::{self, InputProblems, Tree};
use crate::path::ProjectPath;
use crate::project::discover::Listing;
use crate::project::stack::StackIndex;
use crate::project::{self, Problems, Project};

/// Returns the wanted calls of each stack, nearest first. Stacks without any are left out. Adds
/// warnings to `problems`. Fails if no thread can be started.
pub fn calls_of(
    project: &Project,
    listing: &Listing,
    is_wanted: impl Fn(&ModuleCall) -> bool + Sync,
    problems: &mut Problems,
) -> Result<BTreeMap<StackIndex, Vec<FoundCall>>, ChangeError> {
    let nothing = ChangedFiles::default();
    let input_problems = InputProblems::default();
    let tree = Tree::new(&project.root, listing, &nothing, &input_problems).taking_calls();
    let terragrunt = project.settings.terragrunt;
    let find = || inputs::calls(&tree, &project.stacks, terragrunt, &is_wanted);
    let found = project::pool()?.install(find);
    drop(tree);
    input_problems.add_to(problems)?;
    Ok(found)
}

/// Returns the directories that the Terraform files of other directories call as modules, each with
/// the place of a call. Adds warnings to `problems`. Fails if a file cannot be read, or no thread
/// can be started.
pub fn called_modules(
    project: &Project,
    listing: &Listing,
    directories: &[ProjectPath],
    problems: &mut Problems,
) -> Result<BTreeMap<ProjectPath, Location>, ChangeError> {
    let nothing = ChangedFiles::default();
    let input_problems = InputProblems::default();
    let tree = Tree::new(&project.root, listing, &nothing, &input_problems);
    let called = project::pool()?.install(|| inputs::called_modules(&tree, directories));
    drop(tree);
    input_problems.add_to(problems)?;
    Ok(called)
}
