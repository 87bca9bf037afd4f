//! The project of a worker, which loads it once for all of its stacks.

use std::cell::RefCell;

use crate::context::Context;
use crate::error::Error;
use crate::git::CommitId;
use crate::project::Problems;

/// A loaded project with its inputs, for as long as HEAD is the same.
#[derive(Default)]
pub struct KeptProject {
    kept: RefCell<Option<Context>>,
    head: RefCell<Option<CommitId>>,
}

impl KeptProject {
    /// Returns the kept project, or loads it if there is none or HEAD has moved since. Fails if it
    /// cannot be loaded, or git cannot be asked.
    pub fn load<E: From<Error>>(
        &self,
        load: impl FnOnce() -> Result<Context, E>,
    ) -> Result<Context, E> {
        if let Some(context) = self.take()? {
            return Ok(context);
        }
        let mut context = load()?;
        *self.head.borrow_mut() = context.head()?;
        Ok(context)
    }

    /// Returns the kept project, if there is one and HEAD has not moved since it was loaded.
    pub(super) fn take(&self) -> Result<Option<Context>, Error> {
        let Some(mut context) = self.kept.take() else {
            return Ok(None);
        };
        let is_same = context.head()? == *self.head.borrow();
        // They have been shown.
        context.problems = Problems::default();
        Ok(is_same.then_some(context))
    }

    pub fn keep(&self, context: Context) {
        *self.kept.borrow_mut() = Some(context);
    }
}
