//! Which files a walk reads or skips, according to their names.

use std::ffi::OsStr;

/// Endings of configuration files. Terramate reads the first two as well.
const ENDINGS: [&str; 3] = [".tm", ".tm.hcl", ".orch.hcl"];

/// Files that keep a directory, and all below it, out of the project.
pub(crate) const SKIP_MARKS: [&str; 2] = [".tmskip", ".orchskip"];

pub fn is_configuration(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let mut endings = ENDINGS.iter().map(|ending| ending.as_bytes());
    !name.starts_with(b".")
        && endings.any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

/// Returns whether a file of that name keeps its directory, and all below it, out of the project.
pub fn is_skip_mark(name: &OsStr) -> bool {
    SKIP_MARKS.iter().any(|mark| name == OsStr::new(mark))
}
