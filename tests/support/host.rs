//! The machine that the tests run on: what of it a command may see, and what it lacks.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a condition may take that never takes long.
const DEADLINE: Duration = Duration::from_mins(1);

/// Makes an empty folder, in memory where programs can be run from there: tests make hundreds of
/// thousands of files, and a disk takes longer than everything else that they do.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("orch-").to_owned();
    #[cfg(target_os = "linux")]
    if std::env::var_os("TMPDIR").is_none() {
        use rustix::fs::{StatVfsMountFlags, statvfs};
        let memory = Path::new("/dev/shm");
        let may_run = |memory: &Path| {
            let flags = statvfs(memory).map(|mount| mount.f_flag);
            flags.is_ok_and(|flags| !flags.contains(StatVfsMountFlags::NOEXEC))
        };
        if may_run(memory)
            && let Ok(folder) = folder.tempdir_in(memory)
        {
            return folder;
        }
    }
    folder.tempdir().expect("a folder can be made")
}

/// Returns the path of the program under test.
pub(crate) fn orch_program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orch"))
}

/// Keeps the host's environment away from a command.
pub(crate) fn isolate(command: &mut Command, home: &Path) {
    command.env_clear();
    for kept in ["PATH", "SystemRoot"] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    command
        .env("HOME", home)
        .env("COLUMNS", "100")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("AWS_EC2_METADATA_DISABLED", "true");
}

/// Waits until a condition holds; fails the test if it never does.
#[track_caller]
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < DEADLINE, "never: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Runs tests at the same time that mostly wait, so that their waits overlap.
pub(crate) fn at_once(tests: &[fn()]) {
    thread::scope(|scope| {
        for test in tests {
            scope.spawn(test);
        }
    });
}

/// Tells the user that a test cannot show anything on this machine, and why.
#[expect(clippy::print_stderr, reason = "the harness shows it to the user")]
pub(crate) fn skipped(why: impl AsRef<OsStr>) {
    eprintln!("SKIPPED: {}", why.as_ref().display());
}
