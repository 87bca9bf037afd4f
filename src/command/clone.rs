//! `orch clone`: copies stacks.

use std::path::PathBuf;

use super::new_directory::cannot;
use crate::context::Context;
use crate::create::{CannotClone, StackCopy};
use crate::error::Result;

const CLONE: &str = "clone";
const CLONE_TO: &str = "clone to";

/// The stacks to copy, and where to.
#[derive(Debug, Clone)]
pub struct CloneRequest {
    pub source: PathBuf,
    pub destination: PathBuf,
    pub skips_children: bool,
}

impl Context {
    /// Prepares the copy of stacks; see [`StackCopy::write`].
    pub fn prepare_clone(&self, request: &CloneRequest) -> Result<StackCopy> {
        let source = self.directory_arg(CLONE, &request.source)?;
        let to = &request.destination;
        let destination = self.directory_arg(CLONE_TO, to)?;
        self.check_new(CLONE_TO, to, &destination)?;
        if self.is_there(&destination)? {
            return Err(cannot(CLONE_TO, to, "it exists already"));
        }
        let copy = StackCopy::new(&self.project, &source, &destination, request.skips_children);
        copy.map_err(|error| match error {
            CannotClone::NoStack(_) => {
                let why = self.why_no_stack(&source, &request.source.to_string_lossy());
                cannot(CLONE, &request.source, &why)
            }
            other => cannot(CLONE, &request.source, &other.to_string()),
        })
    }
}
