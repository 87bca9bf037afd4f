//! Functions of text.

use super::Function;

pub(super) static FUNCTIONS: &[Function] = &[];
