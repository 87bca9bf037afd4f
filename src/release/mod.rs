//! Releases of modules: the step between two versions, and the stacks whose calls resolve to the old one.
//!
//! Versions are tags of the repository. This module doesn't know how policies use a release.

mod consumers;
mod versions;

pub use self::consumers::{Consumer, RequestedVersion, consumers};
pub use self::versions::{Release, ReleaseName, ReleasedVersion, open_repository};
