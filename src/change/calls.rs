//! What the files of Terraform and Terragrunt call: modules outside of the project, modules in it, and the
//! units of Terragrunt.
//!
//! This module does not know the versions of modules or what a source means.

use std::collections::BTreeMap;

use super::call::{FoundCall, ModuleCall};
use super::cause::Location;
use super::error::ChangeError;
use super::inputs;
use super::unit::TerragruntUnit;
use crate::path::ProjectPath;
use crate::project::discover::Listing;
use crate::project::stack::StackIndex;
use crate::project::{Problems, Project};

/// Returns the wanted calls of each stack, nearest first. Stacks without any are left out. Adds
/// warnings to `problems`. Fails if no thread can be started.
pub fn calls_of(
    project: &Project,
    listing: &Listing,
    is_wanted: impl Fn(&ModuleCall) -> bool + Sync,
    problems: &mut Problems,
) -> Result<BTreeMap<StackIndex, Vec<FoundCall>>, ChangeError> {
    let terragrunt = project.settings.terragrunt;
    inputs::walk_present(project, listing, problems, |tree| {
        let tree = tree.taking_calls();
        inputs::calls(&tree, &project.stacks, terragrunt, &is_wanted)
    })
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
    inputs::walk_present(project, listing, problems, |tree| {
        inputs::called_modules(&tree, directories)
    })
}

/// Reads the Terragrunt files of some directories. Adds warnings to `problems`. Fails if a file
/// cannot be read, or no thread can be started.
pub fn terragrunt_units(
    project: &Project,
    listing: &Listing,
    directories: &[ProjectPath],
    problems: &mut Problems,
) -> Result<Vec<TerragruntUnit>, ChangeError> {
    inputs::walk_present(project, listing, problems, |tree| {
        inputs::units(&tree.finding_data(), directories)
    })
}
