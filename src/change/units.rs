//! Reads the units of Terragrunt.

use super::error::ChangeError;
use super::files::ChangedFiles;
use super::inputs::{self, InputProblems, Tree};
use super::unit::TerragruntUnit;
use crate::path::ProjectPath;
use crate::project::discover::Listing;
use crate::project::{self, Problems, Project};

/// Reads the Terragrunt files of some directories. Adds warnings to `problems`. Fails if a file
/// cannot be read, or no thread can be started.
pub fn terragrunt_units(
    project: &Project,
    listing: &Listing,
    directories: &[ProjectPath],
    problems: &mut Problems,
) -> Result<Vec<TerragruntUnit>, ChangeError> {
    let nothing = ChangedFiles::default();
    let input_problems = InputProblems::default();
    let tree = Tree::new(&project.root, listing, &nothing, &input_problems).finding_data();
    let units = project::pool()?.install(|| inputs::units(&tree, directories));
    drop(tree);
    input_problems.add_to(problems)?;
    Ok(units)
}
