//! Releases of modules: which version follows which, and the stacks whose calls resolve to the old one.
//!
//! Versions are tags of the repository. This module does not know what policies make of a release.

mod consumers;
mod requested;
mod versions;

pub use self::consumers::{Consumer, consumers};
pub use self::requested::RequestedVersion;
pub use self::versions::{Release, ReleaseError, ReleaseName, ReleasedVersion};
