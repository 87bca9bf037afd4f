//! The codes of diagnostics: names for programs, by what a user has to do to fix a problem.
//!
//! A code is part of the JSON format: it keeps its name and its meaning. Messages share a
//! code where the problems are fixed in the same way.

use std::fmt;

/// Defines [`Code`] from one table, so that every code has a name and a description.
macro_rules! codes {
    ($($variant:ident, $name:literal, $description:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $description] $variant,)*
        }

        impl Code {
            /// All codes, by subject.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Code::$variant => $name,)*
                }
            }

            pub fn description(self) -> &'static str {
                match self {
                    $(Code::$variant => $description,)*
                }
            }
        }
    };
}

codes! {
    // Files and their structure.
    Syntax, "syntax", "The text of a file cannot be parsed.";
    Encoding, "encoding", "A file or a path is not UTF-8.";
    Unreadable, "unreadable", "A file cannot be read, is not a regular file, or is too large.";
    UnknownBlock, "unknown-block", "This block is unknown here.";
    UnknownAttribute, "unknown-attribute", "This attribute is unknown here.";
    UnexpectedLabel, "unexpected-label", "This block takes no label.";
    MissingBlock, "missing-block", "A block is required and missing.";
    MissingAttribute, "missing-attribute", "An attribute is required and missing.";
    Misplaced, "misplaced", "An attribute is in a place where it has no meaning or no effect.";
    DuplicateBlock, "duplicate-block", "There can be only one block of this kind here.";
    DuplicateDefinition, "duplicate-definition", "An attribute or a global is set twice.";
    DuplicateEntry, "duplicate-entry", "A list or an object has the same entry twice.";

    // Values and expressions.
    WrongType, "wrong-type", "A value has the wrong type.";
    InvalidValue, "invalid-value", "A value has the right type but is not allowed.";
    InvalidPattern, "invalid-pattern", "A glob or a regular expression is not valid.";
    InvalidTag, "invalid-tag", "A tag or a tag filter is not valid.";
    Conflict, "conflict", "Two settings contradict each other.";
    UnknownName, "unknown-name", "An expression uses a name, an attribute or an element that does not exist.";
    UnavailableName, "unavailable-name", "An expression uses a name that has no value in this place.";
    UnknownFunction, "unknown-function", "An expression calls a function that `orch` does not have.";
    WrongArguments, "wrong-arguments", "A function is called with arguments that it cannot use.";
    UnsetVariable, "unset-variable", "An expression uses an environment variable that is not set.";
    CircularValue, "circular-value", "A value depends on itself.";
    DivisionByZero, "division-by-zero", "An expression divides by zero.";
    Limit, "limit", "A number, an expression or a chain exceeds a limit of `orch`.";

    // The project.
    IncompatibleVersion, "incompatible-version", "The project requires another version of `orch`.";
    OutsideProject, "outside-project", "A path leads out of the project.";
    UnknownImport, "unknown-import", "An import matches no file.";
    InvalidImport, "invalid-import", "A file cannot be imported here.";
    DuplicateId, "duplicate-id", "Two stacks have the same id.";
    UnknownDriver, "unknown-driver", "No driver has this name.";
    ReservedVariable, "reserved-variable", "`run.env` sets a variable that `orch` sets itself.";

    // References and the order.
    UnknownReference, "unknown-reference", "A path or a tag matches no stack.";
    SelfReference, "self-reference", "A reference is the path of the stack that declares it.";
    Cycle, "cycle", "Stacks wait for each other.";

    // Changes and runs.
    InvalidPolicy, "invalid-policy", "A policy cannot be loaded.";
    UnmatchedWatch, "unmatched-watch", "An entry of `watch` matches no file.";
    UnknownModule, "unknown-module", "A module's directory does not exist or cannot be determined.";
    InvalidTrigger, "invalid-trigger", "A file among the triggers cannot be a trigger.";
    OrphanedTrigger, "orphaned-trigger", "A trigger is for a path that is not a stack.";
    IgnoredTrigger, "ignored-trigger", "git ignores a trigger, so the trigger has no effect.";
    FailedCondition, "failed-condition", "A condition of a stack does not hold.";
    Protected, "protected", "A protected stack would be destroyed.";
    Unsupported, "unsupported", "A rule asks for something that `orch` does not support yet.";
    Unprotected, "unprotected", "A run has no record or no lock.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_kebab_case_and_used_once() {
        let mut names = HashSet::new();
        for code in Code::ALL {
            let name = code.name();
            let is_kebab = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(name.chars().all(is_kebab), "{name}");
            assert!(names.insert(name), "{name} is used twice");
            assert!(code.description().ends_with('.'), "{name}");
        }
    }
}
