//! Processes where there are no Unix signals: a console's Ctrl-C reaches every process attached to
//! it, `orch` included, and ends them all.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{Message, Outlet};
use crate::record::logs::Stream;
use crate::run::event::Failure;

pub(super) struct Signals;

impl Signals {
    #[expect(clippy::unused_self, reason = "the same shape as on Unix")]
    pub(super) fn has_arrived(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "the same shape as on Unix")]
    pub(super) fn taken(&self) {}
}

#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
pub(super) fn receive_signals(_sender: Sender<Message>) -> io::Result<Signals> {
    Ok(Signals)
}

pub(super) fn end_process(_signal: i32) {}

pub(super) fn is_interactive() -> bool {
    true
}

/// Empty: here, a killed program leaves console modes as they were.
pub(super) struct TerminalModes;

impl TerminalModes {
    pub(super) fn now() -> Option<Self> {
        None
    }

    #[expect(clippy::unused_self, reason = "the same shape as on Unix")]
    pub(super) fn restore(&self) {}
}

pub(super) fn set_name(_command: &mut Command, _name: &OsStr) {}

pub(super) fn set_own_group(_command: &mut Command) {}

pub(super) fn failure(status: ExitStatus) -> Failure {
    Failure::Exited(status.code().unwrap_or(1))
}

pub(super) fn start_problem(error: &io::Error) -> String {
    error.to_string()
}

pub(super) fn wait_without_reaping(_process: u32, _wants_terminal: impl Fn()) {}

/// The waiting thread asks for the exit status, which blocks until the end.
pub(super) fn has_ended(_process: u32) -> bool {
    true
}

pub(super) fn has_group_ended(_process: u32, _or_zombies: bool) -> bool {
    true
}

pub(super) fn pass_on(_process: u32, _whole_group: bool, _signal: i32) {}

pub(super) fn interrupt(_process: u32, _whole_group: bool) {}

pub(super) fn terminate(_process: u32, _whole_group: bool) {}

pub(super) fn resume(_process: u32) {}

pub(super) fn kill(_process: u32, _whole_group: bool) {}

/// Stores nothing: a signal that ends `orch` ends its commands too.
pub struct OutputKeeper;

pub(super) struct Kept;

impl OutputKeeper {
    pub fn new(_command: Vec<OsString>) -> Self {
        OutputKeeper
    }

    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the same shape as on Unix"
    )]
    pub(super) fn keep(&mut self, _log: &Path, _pipes: &Pipes) -> io::Result<Kept> {
        Ok(Kept)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
pub fn keep_output() -> io::Result<()> {
    Ok(())
}

/// Our ends of a command's output.
pub(super) struct Pipes {
    stdout: PipeReader,
    stderr: PipeReader,
}

impl Pipes {
    /// Redirects a command's output to us. There are no terminals to give it.
    pub(super) fn attach(command: &mut Command, outlet: Outlet) -> io::Result<Self> {
        if outlet == Outlet::Terminal {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "`--pty` needs a Unix system",
            ));
        }
        let (stdout, theirs) = io::pipe()?;
        command.stdout(theirs);
        let (stderr, theirs) = io::pipe()?;
        command.stderr(theirs);
        Ok(Pipes { stdout, stderr })
    }

    pub(super) fn read(
        self,
        _process: u32,
        on_output: impl FnMut(Stream, &[u8]) + Send,
        _wants_terminal: impl Fn(),
        _has_ended: impl FnMut() -> bool,
    ) -> Result<(), String> {
        let on_output = Mutex::new(on_output);
        let read = |stream, mut pipe: PipeReader| {
            let mut buffer = vec![0; 128 << 10];
            loop {
                let length = pipe.read(&mut buffer)?;
                if length == 0 {
                    return Ok(());
                }
                let mut on_output = on_output.lock().unwrap_or_else(PoisonError::into_inner);
                on_output(stream, &buffer[..length]);
            }
        };
        thread::scope(|scope| {
            let stderr = scope.spawn(|| read(Stream::Stderr, self.stderr));
            let stdout = read(Stream::Stdout, self.stdout);
            let stderr = stderr.join().expect("reading does not panic");
            stdout.and(stderr)
        })
        .map_err(|error: io::Error| error.to_string())
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
pub(super) fn allow_open_files(_needed: u64) -> Result<(), u64> {
    Ok(())
}

pub(super) fn is_executable(file: &Path) -> bool {
    file.is_file()
}
