//! A process that stores the output of commands if `orch` is killed.
//!
//! A command that prints to a pipe without a reader dies of SIGPIPE, and Terraform then loses its state. So a second
//! process holds our ends of the pipes open. It reads nothing as long as `orch` lives. Once the socket between the
//! two is closed, it appends the further output of the commands to their logs, until they have ended.
//!
//! A message on the socket has its length and the number of an output. If the output starts, its streams and the path
//! of its log follow, with the descriptors of its pipes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use tracing::debug;

use super::pipes::Pipes;
use crate::record::logs::{LogWriter, Stream};

/// How many pipes a command has at most.
const MAX_PIPES: usize = 2;

/// The maximum length of a message, which is mostly a path, in bytes.
const MAX_MESSAGE: usize = 64 << 10;

/// How long a message may wait for room in the socket.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts the process with the first command, and sends it the outputs to store.
pub struct OutputKeeper {
    command: Vec<OsString>,
    socket: Option<Socket>,
    latest: u64,
}

/// The socket to the process; none once it has failed.
type Socket = Arc<Mutex<Option<UnixStream>>>;

/// An output that the process stores until this is dropped.
pub(in crate::run::execute) struct Kept {
    number: u64,
    socket: Socket,
}

impl OutputKeeper {
    /// Creates one that starts the process with this command: the program and its arguments.
    pub fn new(command: Vec<OsString>) -> Self {
        assert!(!command.is_empty(), "a command has a program");
        OutputKeeper {
            command,
            socket: None,
            latest: 0,
        }
    }

    /// Keeps the output of a command that is about to start, for its log. Fails if the process
    /// cannot be started, or takes no messages.
    pub(in crate::run::execute) fn keep(&mut self, log: &Path, pipes: &Pipes) -> io::Result<Kept> {
        self.latest += 1;
        let mut body = self.latest.to_le_bytes().to_vec();
        let streams = pipes.iter().map(|(stream, _)| match stream {
            Stream::Stdout => b'o',
            Stream::Stderr => b'e',
        });
        body.extend(streams);
        body.push(0);
        body.extend(log.as_os_str().as_bytes());
        let ends: Vec<BorrowedFd<'_>> = pipes.iter().map(|(_, file)| file.as_fd()).collect();
        let number = self.latest;
        if let Some(socket) = self.socket.clone()
            && tell(&socket, &body, &ends).is_ok()
        {
            return Ok(Kept { number, socket });
        }
        // This is the first output, or the process was killed.
        let socket = Arc::new(Mutex::new(Some(start(&self.command)?)));
        self.socket = Some(socket.clone());
        tell(&socket, &body, &ends)?;
        Ok(Kept { number, socket })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Err(error) = tell(&self.socket, &self.number.to_le_bytes(), &[]) {
            debug!(%error, "the process that keeps output has ended");
        }
    }
}

/// Starts the process, in a group of its own: signals to our group do not reach it.
fn start(command: &[OsString]) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_write_timeout(Some(SEND_TIMEOUT))?;
    Command::new(&command[0])
        .args(&command[1..])
        .arg0("orch")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    Ok(ours)
}

/// Sends a message. After a failure, no further messages are sent.
fn tell(socket: &Socket, body: &[u8], ends: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut socket = socket.lock().unwrap_or_else(PoisonError::into_inner);
    let stream = socket.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    let sent = send(stream, body, ends);
    if sent.is_err() {
        *socket = None;
    }
    sent
}

fn send(socket: &mut UnixStream, body: &[u8], ends: &[BorrowedFd<'_>]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let message = [&length.to_le_bytes(), body].concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PIPES))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ends.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(ends)) {
        return Err(io::Error::other("too many pipes"));
    }
    let slices = [IoSlice::new(&message)];
    let sent = sendmsg(&*socket, &slices, &mut ancillary, SendFlags::NOSIGNAL)?;
    socket.write_all(&message[sent..])
}

struct Output {
    log: PathBuf,
    pipes: Pipes,
}

/// Runs as the process: stores the outputs that arrive on standard input, until all have ended.
/// Fails if it was not started by an [`OutputKeeper`].
pub fn keep_output() -> io::Result<()> {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut outputs: BTreeMap<u64, Output> = BTreeMap::new();
    // The command of a message that was cut off has not started.
    while let Ok(Some((number, output))) = receive(&mut socket) {
        match output {
            Some(output) => _ = outputs.insert(number, output),
            None => _ = outputs.remove(&number),
        }
    }
    let threads = outputs.into_values().map(|output| {
        thread::spawn(move || {
            let mut log = LogWriter::resume(output.log).ok();
            output.pipes.read_to_end(|stream, bytes| {
                // The command continues even if nothing more can be written.
                if let Some(writer) = &mut log
                    && writer.write(stream, bytes).is_err()
                {
                    log = None;
                }
            });
        })
    });
    let threads: Vec<_> = threads.collect();
    for thread in threads {
        _ = thread.join();
    }
    Ok(())
}

/// Receives a message: the number of an output, and the output itself if it starts. `None` at the end.
fn receive(socket: &mut UnixStream) -> io::Result<Option<(u64, Option<Output>)>> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PIPES))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut length)];
    let received = loop {
        match recvmsg(&*socket, &mut slices, &mut ancillary, RecvFlags::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?.bytes,
        }
    };
    if received == 0 {
        return Ok(None);
    }
    socket.read_exact(&mut length[received..])?;
    let length = u32::from_le_bytes(length) as usize;
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    if length > MAX_MESSAGE {
        return Err(broken());
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body)?;
    let (number, rest) = body.split_first_chunk().ok_or_else(broken)?;
    let number = u64::from_le_bytes(*number);
    if rest.is_empty() {
        return Ok(Some((number, None)));
    }
    let end = rest.iter().position(|it| *it == 0).ok_or_else(broken)?;
    let streams = rest[..end].iter().map(|stream| match stream {
        b'e' => Stream::Stderr,
        _ => Stream::Stdout,
    });
    let ends = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(ends) => Some(ends),
        _ => None,
    });
    let pipes: Pipes = streams.zip(ends.flatten().map(File::from)).collect();
    let log = PathBuf::from(OsStr::from_bytes(&rest[end + 1..]));
    Ok(Some((number, Some(Output { log, pipes }))))
}
