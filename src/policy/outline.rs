//! What a loaded policy is about, as far as that is known without evaluating it.

use serde::{Deserialize, Serialize};

use super::{Dialect, Problem};

/// A line and a column, from 1.
type Place = (u32, u32);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyOutline {
    pub dialect: Dialect,
    /// The parts of the input that it reads: `["stacks", "*", "id"]`, where `*` is any item.
    pub inputs: Vec<(Vec<String>, Place)>,
    /// The literals that it asks for.
    pub asked: Vec<(String, Place)>,
    /// Its other text literals.
    pub texts: Vec<String>,
    /// What is valid, but hardly meant.
    pub warnings: Vec<Problem>,
}
