//! Text from templates.

use super::Function;

pub(super) static FUNCTIONS: &[Function] = &[];
