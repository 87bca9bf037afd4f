//! Why a plan is no longer valid.

use std::fmt;

use crate::path::StackPath;
use crate::printable::printable;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stale {
    Project {
        planned: String,
        now: String,
    },
    /// It was made with another state.
    Lineage,
    /// It was made with a state and there is none now, or vice versa.
    State {
        was_kept: bool,
    },
    Gone(StackPath),
    Back(StackPath),
    /// The removal of the stack is no longer proven, with the reason.
    NotRemoved(StackPath, String),
    Inputs(StackPath, String),
    /// It is unknown whether inputs differ.
    Unknown(StackPath),
    Driver(StackPath),
    Order(StackPath),
    Record(StackPath),
    /// The record of a stack that it runs after has changed.
    Before(StackPath, Option<StackPath>),
    /// Part of the environment differs, by name.
    Environment(StackPath, String),
    Version {
        stack: StackPath,
        planned: String,
        now: String,
    },
}

impl Stale {
    /// Returns the stack that it is about; `None` if it is about the whole plan.
    pub fn stack(&self) -> Option<&StackPath> {
        match self {
            Stale::Project { .. } | Stale::Lineage | Stale::State { .. } => None,
            Stale::Gone(stack)
            | Stale::Back(stack)
            | Stale::NotRemoved(stack, _)
            | Stale::Inputs(stack, _)
            | Stale::Unknown(stack)
            | Stale::Driver(stack)
            | Stale::Order(stack)
            | Stale::Record(stack)
            | Stale::Before(stack, _)
            | Stale::Environment(stack, _)
            | Stale::Version { stack, .. } => Some(stack),
        }
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |stack: &StackPath| printable(stack.as_str()).into_owned();
        match self {
            Stale::Project { planned, now } => write!(
                f,
                "the plan is of the project `{}`, and this is `{}`",
                printable(planned),
                printable(now)
            ),
            Stale::Lineage => f.write_str("the plan was made with another state"),
            Stale::State { was_kept: true } => {
                f.write_str("the plan was made with a state, and the project has none now")
            }
            Stale::State { was_kept: false } => {
                f.write_str("the plan was made without a state, and the project has one now")
            }
            Stale::Back(stack) => write!(f, "{}: it is in the project again", name(stack)),
            Stale::NotRemoved(stack, why) => {
                write!(
                    f,
                    "{}: it must not be destroyed: {}",
                    name(stack),
                    printable(why)
                )
            }
            Stale::Gone(stack) => write!(f, "{}: it no longer exists", name(stack)),
            Stale::Inputs(stack, part) => {
                write!(f, "{}: {} differs", name(stack), printable(part))
            }
            Stale::Environment(stack, what) => {
                write!(f, "{}: {} differs", name(stack), printable(what))
            }
            Stale::Version {
                stack,
                planned,
                now,
            } => write!(
                f,
                "{}: planned with {}, but the version is now {}",
                name(stack),
                printable(planned),
                printable(now)
            ),
            Stale::Unknown(stack) => write!(
                f,
                "{}: outside of git, its files cannot be compared with the plan",
                name(stack)
            ),
            Stale::Driver(stack) => write!(f, "{}: it has another driver", name(stack)),
            Stale::Order(stack) => write!(f, "{}: it runs after other stacks", name(stack)),
            Stale::Record(stack) => {
                write!(f, "{}: its record has changed", name(stack))
            }
            Stale::Before(stack, Some(other)) => write!(
                f,
                "{}: it runs after {}, whose record has changed",
                name(stack),
                name(other)
            ),
            Stale::Before(stack, None) => write!(
                f,
                "{}: a stack that it runs after is no longer recorded",
                name(stack)
            ),
        }
    }
}
