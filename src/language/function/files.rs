//! Functions that read files of the project, and functions of their names.

use super::Function;

pub(super) static FUNCTIONS: &[Function] = &[];
