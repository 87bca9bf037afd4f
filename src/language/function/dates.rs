//! Functions of dates and times.

use super::Function;

pub(super) static FUNCTIONS: &[Function] = &[];
