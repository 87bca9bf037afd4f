//! YAML, as Terraform writes and reads it.

mod decode;
mod encode;
mod scalar;

pub(super) use self::decode::decode;
pub(super) use self::encode::encode;
use super::arguments::{Arguments, FunctionError};
