//! File descriptors that `orch` inherits.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// Reopens the file or pipe behind a descriptor.
pub(super) fn open_descriptor(number: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Opening a pipe without a reader would block.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    options.append(true).custom_flags(nonblocking);
    let file = options.open(format!("/dev/fd/{number}"))?;
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}
