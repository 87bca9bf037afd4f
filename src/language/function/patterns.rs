//! Regular expressions, with the syntax of RE2.

use super::Function;

pub(super) static FUNCTIONS: &[Function] = &[];
