//! Functions of IP networks and addresses.

use super::Function;

pub(super) static FUNCTIONS: &[Function] = &[];
