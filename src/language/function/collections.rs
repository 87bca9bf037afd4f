//! Functions of lists, maps and objects.

use super::Function;

pub(super) static FUNCTIONS: &[Function] = &[];
