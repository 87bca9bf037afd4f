//! What a command prints, read as it comes.
//!
//! One thread reads both streams of a command. Its end is known when both are closed; a process that
//! it leaves behind may hold them open, which must not hold up the run.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, OutputModes, tcgetattr, tcsetattr};

use crate::event::Stream;

/// Read at once.
const BUFFER: usize = 128 << 10;

/// How often to look whether a command has ended whose output has not.
const LOOK: Duration = Duration::from_millis(100);

const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// How long the output may stay open after the command has ended, as where a script pipes it through
/// another program, which has yet to print what it was given.
const LINGER: Duration = Duration::from_secs(1);

/// Our ends of what a command prints to.
pub(in crate::execute) struct Pipes(Vec<(Stream, File)>);

impl Pipes {
    /// Makes a command print to us.
    pub(in crate::execute) fn attach(command: &mut Command, pty: bool) -> io::Result<Self> {
        if pty {
            let (ours, theirs) = terminal()?;
            command.stdout(theirs.try_clone()?).stderr(theirs);
            return Ok(Pipes(vec![(Stream::Stdout, ours)]));
        }
        let (stdout, theirs) = io::pipe()?;
        command.stdout(Stdio::from(theirs));
        let (stderr, theirs) = io::pipe()?;
        command.stderr(Stdio::from(theirs));
        Ok(Pipes(vec![
            (Stream::Stdout, File::from(OwnedFd::from(stdout))),
            (Stream::Stderr, File::from(OwnedFd::from(stderr))),
        ]))
    }

    /// Reads until there is no more, or until a while after the process has ended.
    ///
    /// # Errors
    ///
    /// If not everything could be read; the text says why.
    pub(in crate::execute) fn read(
        self,
        process: u32,
        mut on_output: impl FnMut(Stream, &[u8]),
    ) -> Result<(), String> {
        let mut open = self.0;
        let mut buffer = vec![0; BUFFER];
        let mut problem = None;
        let mut looked = Instant::now();
        let mut ended: Option<Instant> = None;
        while !open.is_empty() {
            let mut fds: Vec<PollFd> = open
                .iter()
                .map(|(_, file)| PollFd::new(file, PollFlags::IN))
                .collect();
            let n_ready = match poll(&mut fds, Some(&TICK)) {
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(io::Error::from(errno).to_string()),
                Ok(n_ready) => n_ready,
            };
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                if ended.is_none() && has_ended(process) {
                    ended = Some(looked);
                }
                if ended.is_some_and(|ended| ended.elapsed() > LINGER) {
                    return Err(
                        "a process that the command left behind still holds it open".to_owned()
                    );
                }
            }
            if n_ready == 0 {
                continue;
            }
            let is_ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            let mut is_ready = is_ready.into_iter();
            open.retain_mut(|(stream, file)| {
                if !is_ready.next().unwrap_or_default() {
                    return true;
                }
                match file.read(&mut buffer) {
                    Ok(0) => false,
                    Ok(length) => {
                        on_output(*stream, &buffer[..length]);
                        true
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
                    // So ends a terminal that nobody has open any more.
                    Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => false,
                    Err(error) => {
                        problem = Some(error.to_string());
                        false
                    }
                }
            });
        }
        problem.map_or(Ok(()), Err)
    }
}

/// Says whether a process of ours has ended; it is left to be reaped.
fn has_ended(process: u32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    super::pid(process).is_none_or(|pid| {
        !matches!(
            waitid(WaitId::Pid(pid), options),
            Ok(None) | Err(Errno::INTR)
        )
    })
}

/// Opens a terminal: our end, and the one for a command.
fn terminal() -> io::Result<(File, File)> {
    // The command must not inherit our end.
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let theirs = rustix::fs::open(
        name.as_c_str(),
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    // Lines end as the command ends them.
    let mut modes = tcgetattr(theirs.as_fd())?;
    modes.output_modes -= OutputModes::OPOST;
    tcsetattr(theirs.as_fd(), OptionalActions::Now, &modes)?;
    Ok((File::from(ours), File::from(theirs)))
}
