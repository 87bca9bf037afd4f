//! The units of Terragrunt: directories in which it runs something.

use super::cause::Location;
use crate::path::ProjectPath;

/// A directory with a Terragrunt file.
#[derive(Debug, Clone)]
pub struct TerragruntUnit {
    pub directory: ProjectPath,
    /// Whether it, or a file that it includes, names a module to run.
    pub has_source: bool,
    /// The first `exclude` block that it has or includes.
    pub exclude: Option<Location>,
    /// The units that run before it, in the order written.
    pub dependencies: Vec<UnitDependency>,
}

#[derive(Debug, Clone)]
pub struct UnitDependency {
    pub target: UnitTarget,
    /// The place of the `dependency` or `dependencies` block.
    pub location: Location,
}

#[derive(Debug, Clone)]
pub enum UnitTarget {
    /// The first of these directories that is a unit, or else the first.
    Inside(Vec<ProjectPath>),
    /// Its path leads out of the project.
    Outside,
    /// Only Terragrunt can evaluate its path.
    Unknown,
}
