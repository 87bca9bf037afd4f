//! Text to values: the syntax of configuration files, the expressions in it, and the functions that
//! expressions call.
//!
//! This module knows neither files nor stacks: the caller defines what the names in an expression
//! mean, and what functions may read.

pub mod canonical;
pub mod edit;
pub mod evaluate;
pub mod format;
pub mod function;
mod no_namespaces;
pub mod parse;
pub mod syntax;
pub mod value;

pub use self::no_namespaces::NoNamespaces;
