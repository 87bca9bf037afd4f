//! Processes where there are no Unix signals: a console's Ctrl-C reaches every process attached to
//! it, `orch` included, and ends them all.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::Sender;

use super::Message;
use crate::event::Failure;

pub(super) struct Signals;

impl Signals {
    #[expect(clippy::unused_self, reason = "the same shape as on Unix")]
    pub(super) fn has_arrived(&self) -> bool {
        false
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
pub(super) fn receive_signals(_sender: Sender<Message>) -> io::Result<Signals> {
    Ok(Signals)
}

pub(super) fn is_interactive() -> bool {
    true
}

pub(super) fn set_name(_command: &mut Command, _name: &OsStr) {}

pub(super) fn set_own_group(_command: &mut Command) {}

pub(super) fn failure(status: ExitStatus) -> Failure {
    Failure::Exited(status.code().unwrap_or(1))
}

pub(super) fn start_problem(error: &io::Error) -> String {
    error.to_string()
}

pub(super) fn wait_without_reaping(_process: u32) {}

pub(super) fn send(_process: u32, _whole_group: bool, _signal: i32) {}

pub(super) fn terminate(_process: u32, _whole_group: bool) {}

pub(super) fn kill(_process: u32, _whole_group: bool) {}

pub(super) fn is_executable(file: &Path) -> bool {
    file.is_file()
}
