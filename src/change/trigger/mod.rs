//! Triggers: files that mark a stack as changed, or as unchanged, for a reason other than its own files.
//!
//! The files are Terramate's: `/.tmtriggers/<directory>/<kind>-<uuid>.tm.hcl`, each with one `trigger` block,
//! for all stacks in that directory. A trigger for a single instance has a `key`, which Terramate does not
//! know, so its file name ends in `.orch.hcl`. The block counts, not the file name. A trigger is in effect
//! while its file differs from the base; [`crate::change`] decides that, not this module.

mod create;
mod file;
mod text;

pub use create::{CreatedTriggers, TriggerNotCreated, TriggerTarget, create};
pub use file::{AskingTrigger, BadTrigger, asking, check_all};
pub(crate) use file::{TriggerFile, is_nameable, is_trigger_name, read, understand};

use crate::git::FileState;
use crate::path::ProjectPath;

const DIRECTORY: &str = ".tmtriggers";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TriggerKind {
    Changed,
    /// The stack counts as unchanged, whatever else changed.
    IgnoreChange,
}

impl TriggerKind {
    /// Returns its keyword in files and file names.
    pub fn keyword(self) -> &'static str {
        match self {
            TriggerKind::Changed => "changed",
            TriggerKind::IgnoreChange => "ignore-change",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    pub kind: TriggerKind,
    pub reason: String,
    pub file: ProjectPath,
    pub state: FileState,
}

pub(crate) fn directory() -> ProjectPath {
    ProjectPath::root().join(DIRECTORY)
}

/// Returns the directory whose stacks a trigger file marks, given its path.
pub(crate) fn directory_of(file: &ProjectPath) -> ProjectPath {
    let names: Vec<&str> = file.components().skip(1).collect();
    let stack = names.split_last().map_or(&[][..], |(_, above)| above);
    let join = |path: ProjectPath, name: &&str| path.join(name);
    stack.iter().fold(ProjectPath::root(), join)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_a_trigger_is_the_path_without_both_ends() {
        let of = |text: &str| directory_of(&ProjectPath::root().resolve(text).unwrap()).to_string();
        assert_eq!(of("/.tmtriggers/a/b/changed-1.tm.hcl"), "/a/b");
        assert_eq!(of("/.tmtriggers/changed-1.tm.hcl"), "/");
        assert_eq!(of("/.tmtriggers"), "/");
    }
}
