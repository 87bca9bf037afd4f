//! The programs involved.

use std::ffi::OsStr;
#[cfg(feature = "policies")]
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::measure::Job;

/// The programs involved.
pub(crate) struct Programs {
    orch: PathBuf,
    /// This program, which is also the floors.
    own: PathBuf,
    pub(crate) has_git: bool,
    pub(crate) has_terramate: bool,
}

impl Programs {
    pub(crate) fn find() -> Result<Self> {
        let own = std::env::current_exe()?;
        let target = own.parent().and_then(Path::parent);
        let target = target.context("Cargo puts examples into a directory of their own")?;
        let orch = target.join(format!("orch{}", std::env::consts::EXE_SUFFIX));
        ensure!(
            orch.is_file(),
            "there is no {}; run `cargo build --release` first",
            orch.display()
        );
        Ok(Programs {
            orch,
            own,
            has_git: is_there("git"),
            has_terramate: is_there("terramate"),
        })
    }

    /// Returns a run of `orch` with these arguments, which hold no spaces themselves.
    pub(crate) fn orch(&self, root: &Path, arguments: &str) -> Job {
        Job::new(&self.orch, root).args(arguments.split(' '))
    }

    /// Returns the command of the process that evaluates policies.
    #[cfg(feature = "policies")]
    pub(crate) fn worker(&self) -> Vec<OsString> {
        vec![self.orch.clone().into(), "policy-worker".into()]
    }

    /// Returns a run of this program with a flag.
    pub(crate) fn own(&self, root: &Path, flag: &str) -> Job {
        Job::new(&self.own, root).args([flag])
    }

    /// Returns a run of a floor.
    pub(crate) fn floor(&self, root: &Path, flag: &str, value: &Path) -> Job {
        Job::new(&self.own, root).args([OsStr::new(flag), value.as_ref()])
    }
}

fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
