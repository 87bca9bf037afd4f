//! The machine that the tests run on: what of it a command may see, and what it lacks.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::sandbox::Sandbox;

/// How long a condition may take that never takes long.
pub(super) const DEADLINE: Duration = Duration::from_mins(1);

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

/// Keeps the host's environment away from a command, and what it says of signals.
pub(crate) fn isolate(command: &mut Command, home: &Path) {
    heed_signals();
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

/// Catches the signals that these tests were started with ignored, as by `nohup`: a command would inherit that, while
/// it gets the default of one that is caught.
fn heed_signals() {
    #[cfg(target_os = "linux")]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let ignored = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
            let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
            for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
                if ignored & (1 << (signal - 1)) != 0 {
                    signal_hook::flag::register(signal, std::sync::Arc::default()).unwrap();
                }
            }
        });
    }
}

/// Waits until a process has ended; ends it, and fails the test, if it never does.
#[track_caller]
pub(crate) fn ended(process: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > DEADLINE {
            process.kill().unwrap();
            panic!("never: process {} ends", process.id());
        }
        thread::sleep(Duration::from_millis(2));
    }
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

/// Returns the files of the project that `orch` opens and whose paths end like this, sorted; `None` if that cannot be
/// traced here.
pub(crate) fn opened(sandbox: &Sandbox, arguments: &str, ending: &str) -> Option<Vec<String>> {
    let trace = sandbox.outside().join("trace");
    let orch = sandbox.command(arguments);
    let mut strace = Command::new("strace");
    let flags = [
        "-f",
        "-qq",
        "-s",
        "4096",
        "-e",
        "trace=open,openat,openat2",
        "-o",
    ];
    strace.args(flags).arg(&trace).arg("--");
    strace.arg(orch.get_program()).args(orch.get_args());
    strace.env_clear().current_dir(sandbox.path("/"));
    for (name, value) in orch.get_envs() {
        strace.env(name, value.unwrap_or_default());
    }
    let has_run = strace.output().is_ok_and(|output| output.status.success());
    if !has_run {
        skipped("there is no `strace`, or it may not trace");
        return None;
    }
    let trace = std::fs::read_to_string(trace).unwrap();
    let root = sandbox.path("");
    let root = format!("{}/", root.to_string_lossy().trim_end_matches('/'));
    let paths = trace.lines().filter_map(|line| line.split('"').nth(1));
    let paths = paths.filter(|path| path.ends_with(ending));
    let paths = paths.map(|path| path.strip_prefix(&root).unwrap_or(path).to_owned());
    let mut files: Vec<String> = paths.collect();
    files.sort_unstable();
    Some(files)
}
