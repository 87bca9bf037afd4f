//! The memory that a process uses, according to the operating system.

use std::time::Duration;

/// How often to check a busy process.
pub(super) const LOOK: Duration =
    Duration::from_millis(if cfg!(target_os = "linux") { 5 } else { 200 });

/// Returns the memory of a process in bytes; `None` if unknown.
#[cfg(target_os = "linux")]
pub(super) fn used(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    kibibytes(line.trim().strip_suffix("kB")?)
}

/// Returns the memory of a process in bytes; `None` if unknown.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn used(process: u32) -> Option<u64> {
    let mut ps = std::process::Command::new("/bin/ps");
    let shown = ps.args(["-o", "rss=", "-p", &process.to_string()]).output();
    kibibytes(std::str::from_utf8(&shown.ok()?.stdout).ok()?)
}

/// Returns the memory of a process in bytes; `None` if unknown.
#[cfg(not(unix))]
pub(super) fn used(_process: u32) -> Option<u64> {
    None
}

#[cfg(unix)]
fn kibibytes(text: &str) -> Option<u64> {
    Some(text.trim().parse::<u64>().ok()? << 10)
}
