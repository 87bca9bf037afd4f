//! The version in a call of a module.

use std::fmt;

use crate::change::{CallVersion, ModuleCall};
use crate::project::module::{AddressKind, CallSource};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedVersion {
    Newest,
    /// A constraint, as written.
    Constraint(String),
    /// This tag, branch or commit of a repository.
    Ref(String),
}

/// As in a call.
impl fmt::Display for RequestedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestedVersion::Newest => f.write_str("no version"),
            RequestedVersion::Constraint(constraint) => f.write_str(constraint),
            RequestedVersion::Ref(name) => write!(f, "?ref={name}"),
        }
    }
}

/// Returns the version in a call: `None` for the default branch of a repository. The error is the
/// part that only Terraform can evaluate.
pub(super) fn asked(
    call: &ModuleCall,
    source: &CallSource,
) -> Result<Option<RequestedVersion>, &'static str> {
    match (source.address.kind, &call.version, &source.asked) {
        (AddressKind::Git, ..) if call.is_open => Err("`?ref=`"),
        (AddressKind::Git, _, name) => Ok(name.clone().map(RequestedVersion::Ref)),
        (AddressKind::Registry, CallVersion::Unknown, _) => Err("`version`"),
        (AddressKind::Registry, CallVersion::Constraint(constraint), _) => {
            Ok(Some(RequestedVersion::Constraint(constraint.to_string())))
        }
        (AddressKind::Registry, CallVersion::Any, _) if call.is_open => Err("`?version=`"),
        (AddressKind::Registry, CallVersion::Any, Some(version)) => {
            Ok(Some(RequestedVersion::Constraint(version.clone())))
        }
        (AddressKind::Registry, CallVersion::Any, None) => Ok(Some(RequestedVersion::Newest)),
    }
}
