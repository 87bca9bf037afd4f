//! Which stacks change with something outside of them: modules, files that are read, links.

mod broken; // files with mistakes
mod computed; // paths that are more than text
#[cfg(unix)]
mod links; // symbolic links
mod modules; // modules of Terraform
mod odd; // files that are no files, or odd ones
#[cfg(target_os = "linux")]
mod opened; // which files are opened
mod reads; // files that functions read
mod variables; // paths that depend on variables

use crate::support::{Sandbox, project};

/// What no stack changes with.
const NONE: [&str; 0] = [];

/// A block that uses a module.
fn module(source: &str) -> String {
    format!("module \"m\" {{\n  source = \"{source}\"\n}}\n")
}

/// A project with a stack that has just this file.
fn stack_with(text: &str) -> Sandbox {
    project("s", &[("/s/main.tf", text)])
}
