//! What the configuration computes for a stack, as an input of the stack.

mod counted; // which changes count
mod differs; // values that differ
mod lets; // values that `lets` names
mod lists; // the list of all stacks, and stacks and directories that are added or removed
mod reads; // files that functions read
mod same; // values that do not

/// A file with definitions of `run.env`.
pub(super) fn env(definitions: &str) -> String {
    format!(
        "terramate {{\n  config {{\n    run {{\n      env {{\n        {definitions}\n      }}\n    }}\n  }}\n}}\n"
    )
}

/// A file with globals.
pub(super) fn globals(definitions: &str) -> String {
    format!("globals {{\n  {definitions}\n}}\n")
}
