//! Functions that Terramate adds to those of Terraform.

use super::Function;

pub(super) static FUNCTIONS: &[Function] = &[];
