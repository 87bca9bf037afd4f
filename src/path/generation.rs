//! Generations: successive incarnations of a stack.
//!
//! A stack that is recreated before the old one is destroyed exists twice for a while. This module doesn't know
//! stacks.

use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// The number of a generation: 1 for the first, and 1 more for each that replaces another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(NonZeroU32);

impl Generation {
    /// Every stack starts with it.
    pub const FIRST: Self = Generation(NonZeroU32::MIN);

    /// Returns the number, from 1.
    pub fn get(self) -> u32 {
        self.0.get()
    }

    pub fn is_first(&self) -> bool {
        *self == Self::FIRST
    }

    #[must_use]
    pub fn next(self) -> Self {
        Generation(self.0.saturating_add(1))
    }

    /// Parses the number, as it is shown; `None` if it is another text.
    pub fn parse(text: &str) -> Option<Self> {
        let number: NonZeroU32 = text.parse().ok()?;
        (number.to_string() == text).then_some(Generation(number))
    }
}

impl Default for Generation {
    fn default() -> Self {
        Self::FIRST
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
