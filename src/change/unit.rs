//! The units of Terragrunt: directories in which it runs something.

use super::cause::Location;
use crate::path::ProjectPath;

/// A directory with a Terragrunt file.
#[derive(Debug, Clone)]
pub struct TerragruntUnit {
    pub directory: ProjectPath,
    /// Whether it, or a file that it includes, names a module to run.
    pub has_source: bool,
    /// The units that run before it, in the order written.
    pub dependencies: Vec<UnitDependency>,
}

#[derive(Debug, Clone)]
pub struct UnitDependency {
    /// The kind of the block: `dependency` or `dependencies`.
    pub kind: &'static str,
    pub target: UnitTarget,
    pub location: Location,
}

#[derive(Debug, Clone)]
pub enum UnitTarget {
    Inside(ProjectPath),
    /// A path that leads out of the project.
    Outside(String),
    /// Only Terragrunt can evaluate it.
    Unknown,
}
