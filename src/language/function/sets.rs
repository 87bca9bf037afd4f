//! Functions of sets.

use super::Function;

pub(super) static FUNCTIONS: &[Function] = &[];
