//! Text to values: the syntax of configuration files, and the expressions in it.
//!
//! This module knows neither files nor stacks: the caller defines what the names in an expression
//! mean.

pub mod evaluate;
pub mod parse;
pub mod syntax;
