//! The processes that `orch` starts from its own program.

use std::ffi::OsString;

use crate::error::{ErrorContext as _, Result};

/// The hidden command that evaluates policies.
pub const WORKER: &str = "policy-worker";

/// The hidden command that stores the output of commands if `orch` is killed.
pub const KEEPER: &str = "output-keeper";

/// Returns the arguments that start a hidden command of this program.
pub fn own_process(command: &str) -> Result<Vec<OsString>> {
    let program = if cfg!(target_os = "linux") {
        // Even if the file has been replaced since.
        "/proc/self/exe".into()
    } else {
        std::env::current_exe()
            .context("failed to find the program of `orch`")?
            .into()
    };
    Ok(vec![program, command.into()])
}
