//! Text to values: the syntax of configuration files, and the expressions in it.
//!
//! This room knows neither files nor stacks: whoever evaluates an expression says what its names mean.

pub mod evaluate;
pub mod parse;
pub mod syntax;
