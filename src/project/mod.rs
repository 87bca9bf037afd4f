//! The project in memory: its files, its configuration and its stacks.
//!
//! [`Project::load`] turns a root directory into [`stack::Stacks`]. This module doesn't know git, the selection, or
//! runs.

pub mod attempt;
mod blocks;
pub mod command;
pub mod config;
mod create_before_destroy;
pub mod discover;
pub mod driver;
pub mod environment;
pub mod function_files;
pub mod globals;
pub mod host;
mod ids;
mod ignore;
pub(crate) mod ignored_inputs;
mod import;
pub mod inspected;
pub mod lifecycle;
mod load;
pub mod module;
pub mod namespaces;
pub mod outline;
pub mod overrides;
pub mod per_stack;
pub mod policy;
mod problems;
pub mod relocation;
mod rules;
pub mod script;
pub mod scripts;
pub mod sharing;
pub mod stack;
mod stacks_of_tree;
pub mod tag;
pub mod tool_options;
pub mod tool_use;
mod top_level;

pub use self::create_before_destroy::ForcedCreateBeforeDestroy;
pub use self::ignore::Ignore;
pub(crate) use self::load::pool;
pub use self::load::{DirectoryScope, EmptyForEach, LoadTreeError, Project};
pub use self::problems::{FileReadError, Problems};
pub use self::rules::{CreateBeforeDestroyRule, Rules};
pub(crate) use self::stacks_of_tree::{StacksOfTree, has_stack_block, is_parsable, stacks_of_tree};
