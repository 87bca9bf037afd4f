//! Files of new stacks, and ids for stacks without one: what they say, and how they are written.
//!
//! All files of a command are written, or none. Nothing is overwritten. This module doesn't know the command line.

mod clone;
mod ids;
mod stack_file;
mod terraform;
mod terragrunt;
mod write;

pub use self::clone::{CannotClone, StackCopy};
pub use self::ids::{MissingId, missing_ids};
pub use self::stack_file::{NewStack, STACK_FILE};
pub use self::terraform::{RootModules, root_modules};
pub use self::terragrunt::{
    BadUnits, InsideOutUnit, LeftOutDependency, NewUnits, new_units, place,
};
pub use self::write::{FileToWrite, Replacement, replace_all, write_all};
