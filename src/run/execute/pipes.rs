//! The output of a command, read as it arrives.
//!
//! One thread reads both streams until both are closed. A process that the command left behind may hold them open;
//! that must not block the run.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    OptionalActions, OutputModes, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

use crate::record::logs::Stream;
use crate::run::execute::Outlet;

/// The size of a read, for a command with much output.
const BUFFER: usize = 128 << 10;

/// The size of the first reads: most commands print little, and each has a reader of its own.
const FIRST_BUFFER: usize = 4 << 10;

/// How often to check whether a command has ended whose output has not.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// How long the output may stay open after the command has ended: a script may pipe it through another
/// program, which has yet to print what it was given.
const LINGER: Duration = Duration::from_secs(1);

/// The minimum capacity of a pipe: after a command has ended, reading this much reads all its output.
const CAPACITY: usize = 1 << 20;

/// Our ends of a command's output.
pub(in crate::run::execute) struct Pipes(Vec<(Stream, File)>);

impl Pipes {
    /// Redirects a command's output to us.
    pub(in crate::run::execute) fn attach(
        command: &mut Command,
        outlet: Outlet,
    ) -> io::Result<Self> {
        Ok(Pipes(match outlet {
            Outlet::Pipes => {
                let (stdout, theirs) = pipe()?;
                command.stdout(theirs);
                let (stderr, theirs) = pipe()?;
                command.stderr(theirs);
                vec![(Stream::Stdout, stdout), (Stream::Stderr, stderr)]
            }
            Outlet::OnePipe => {
                let (ours, theirs) = pipe()?;
                command.stdout(theirs.try_clone()?).stderr(theirs);
                vec![(Stream::Stdout, ours)]
            }
            Outlet::Terminal => {
                let (ours, theirs) = terminal()?;
                command.stdout(theirs.try_clone()?).stderr(theirs);
                vec![(Stream::Stdout, ours)]
            }
        }))
    }

    /// Reads until both streams end, or until a while after `has_ended` returned true. Calls
    /// `wants_terminal` each time the process was stopped for asking for the terminal. Fails if not
    /// everything could be read; the text says why.
    pub(in crate::run::execute) fn read(
        self,
        process: u32,
        mut on_output: impl FnMut(Stream, &[u8]),
        wants_terminal: impl Fn(),
        mut has_ended: impl FnMut() -> bool,
    ) -> Result<(), String> {
        let mut open = Open {
            streams: self.0,
            buffer: vec![0; FIRST_BUFFER],
            problem: None,
        };
        let mut looked = Instant::now();
        let mut ended: Option<Instant> = None;
        while !open.streams.is_empty() {
            open.read(&TICK, &mut on_output)?;
            if looked.elapsed() < POLL_INTERVAL {
                continue;
            }
            looked = Instant::now();
            if super::has_wanted_terminal(process) {
                wants_terminal();
            }
            if !has_ended() {
                ended = None;
            } else if ended.get_or_insert(looked).elapsed() > LINGER {
                // The consumer of the output may have been slow, and some of the command's own output is still there.
                open.drain(&mut on_output)?;
                break;
            }
        }
        let left_behind = !open.streams.is_empty();
        match open.problem {
            Some(problem) => Err(problem),
            None if left_behind => {
                Err("a process that the command left behind still holds it open".to_owned())
            }
            None => Ok(()),
        }
    }

    /// Returns our ends, each with its stream.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(Stream, File)> {
        self.0.iter()
    }

    /// Reads until both streams end, however long that takes.
    pub(super) fn read_to_end(self, mut on_output: impl FnMut(Stream, &[u8])) {
        let mut open = Open {
            streams: self.0,
            buffer: vec![0; FIRST_BUFFER],
            problem: None,
        };
        while !open.streams.is_empty() && open.read(&TICK, &mut on_output).is_ok() {}
    }
}

impl FromIterator<(Stream, File)> for Pipes {
    fn from_iter<I: IntoIterator<Item = (Stream, File)>>(ends: I) -> Self {
        Pipes(ends.into_iter().collect())
    }
}

/// The streams that have not ended.
struct Open {
    streams: Vec<(Stream, File)>,
    buffer: Vec<u8>,
    problem: Option<String>,
}

impl Open {
    /// Waits until a stream has something, and reads once from each that does. Returns how many bytes
    /// that were, or `None` if the timeout passed.
    fn read(
        &mut self,
        timeout: &Timespec,
        on_output: &mut impl FnMut(Stream, &[u8]),
    ) -> Result<Option<usize>, String> {
        let mut fds: Vec<PollFd> = self
            .streams
            .iter()
            .map(|(_, file)| PollFd::new(file, PollFlags::IN))
            .collect();
        match poll(&mut fds, Some(timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(errno) => return Err(io::Error::from(errno).to_string()),
        }
        let is_ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut is_ready = is_ready.into_iter();
        let mut n_read = 0;
        let Open {
            streams,
            buffer,
            problem,
        } = self;
        streams.retain_mut(|(stream, file)| {
            if !is_ready.next().unwrap_or_default() {
                return true;
            }
            match file.read(buffer) {
                Ok(0) => false,
                Ok(length) => {
                    n_read += length;
                    on_output(*stream, &buffer[..length]);
                    if length == buffer.len() && length < BUFFER {
                        buffer.resize(2 * length, 0);
                    }
                    true
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
                // A terminal that is closed everywhere else ends like this.
                Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => false,
                Err(error) => {
                    *problem = Some(error.to_string());
                    false
                }
            }
        });
        Ok(Some(n_read))
    }

    /// Reads the available output, but no more than was there at the start of the call.
    fn drain(&mut self, on_output: &mut impl FnMut(Stream, &[u8])) -> Result<(), String> {
        let mut room = self.streams.len() * CAPACITY;
        while !self.streams.is_empty()
            && room > 0
            && let Some(n_read) = self.read(&AT_ONCE, on_output)?
        {
            room = room.saturating_sub(n_read);
        }
        Ok(())
    }
}

/// Opens a pipe: our end, and the one for a command.
fn pipe() -> io::Result<(File, File)> {
    let (ours, theirs) = io::pipe()?;
    let file = |end: OwnedFd| File::from(end);
    Ok((file(ours.into()), file(theirs.into())))
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
    tcsetwinsize(theirs.as_fd(), window_size()).map_err(io::Error::from)?;
    // Lines keep the line endings of the command.
    let mut modes = tcgetattr(theirs.as_fd())?;
    modes.output_modes -= OutputModes::OPOST;
    tcsetattr(theirs.as_fd(), OptionalActions::Now, &modes)?;
    Ok((File::from(ours), File::from(theirs)))
}

/// Returns the size of the terminal that we have, or a usual one.
fn window_size() -> Winsize {
    let ours = [
        tcgetwinsize(io::stderr()),
        tcgetwinsize(io::stdout()),
        tcgetwinsize(io::stdin()),
    ];
    let known = ours.into_iter().flatten();
    let mut usable = known.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    usable.next().unwrap_or(Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    })
}
