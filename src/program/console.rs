//! All writes to the terminal.
//!
//! Results are written to stdout, messages of `orch` to stderr, so that output can be piped.
//! Colours are dropped if a stream is no terminal, unless the user decides otherwise (`NO_COLOR`,
//! `CLICOLOR_FORCE`).

use std::env;
use std::io::{self, BufWriter, IsTerminal, Stdout, StdoutLock, Write};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use orch::diagnostic::{self, Diagnostic, RenderStyle};
use orch::printable::printable_lines;
use orch::report::{Filter, StreamWriter, StreamWriters};
use orch::source::Sources;

const RED: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
const YELLOW: anstyle::Style = anstyle::AnsiColor::Yellow.on_default().bold();
const BOLD: anstyle::Style = anstyle::Style::new().bold();

/// Buffered; the caller flushes it.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, Stdout::lock(&io::stdout()))
}

/// Drops colours if they are not wanted.
pub(crate) fn stderr() -> AutoStream<io::Stderr> {
    AutoStream::auto(io::stderr())
}

/// Filters the output of commands: terminals get text and colours, `NO_COLOR` drops colours.
pub(crate) fn writers() -> StreamWriters {
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let out = Filter::new(stdout.is_terminal(), no_color);
    let err = Filter::new(stderr.is_terminal(), no_color);
    let has_colours = AutoStream::choice(&stderr) != ColorChoice::Never;
    StreamWriters::new(
        StreamWriter::new(stdout, out),
        StreamWriter::new(stderr, err),
        has_colours,
    )
}

/// Returns stderr for both streams of commands.
pub(crate) fn writers_to_stderr() -> StreamWriters {
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let stderr = || {
        let stderr = io::stderr();
        let filter = Filter::new(stderr.is_terminal(), no_color);
        StreamWriter::new(stderr, filter)
    };
    let has_colours = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
    StreamWriters::new(stderr(), stderr(), has_colours)
}

/// Returns whether stdout and stderr are the same pipe or file, as with `2>&1`.
#[cfg(unix)]
pub(crate) fn is_one_stream() -> bool {
    let (Ok(out), Ok(err)) = (
        rustix::fs::fstat(io::stdout()),
        rustix::fs::fstat(io::stderr()),
    ) else {
        return false;
    };
    !io::stdout().is_terminal() && (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
}

/// Unknown on this platform.
#[cfg(not(unix))]
pub(crate) fn is_one_stream() -> bool {
    false
}

pub(crate) fn diagnostics<'a>(
    diagnostics: impl IntoIterator<Item = &'a Diagnostic>,
    sources: &Sources,
) {
    let stderr = io::stderr();
    let style = match AutoStream::choice(&stderr) {
        ColorChoice::Never => RenderStyle::Plain,
        _ => RenderStyle::Coloured,
    };
    let mut out = BufWriter::new(stderr.lock());
    for diagnostic in diagnostics {
        // A broken stderr cannot be reported.
        _ = writeln!(out, "{}", diagnostic::render(diagnostic, sources, style));
    }
    _ = out.flush();
}

pub(crate) fn error(error: &dyn std::error::Error) {
    let mut message = printable_lines(&error.to_string());
    let mut source = error.source();
    while let Some(cause) = source {
        message += &format!("\n  caused by: {}", printable_lines(&cause.to_string()));
        source = cause.source();
    }
    say(&format!("{RED}error{RED:#}{BOLD}:{BOLD:#} {message}\n"));
}

/// Prints a hint below the last message.
pub(crate) fn help(message: &str) {
    say(&format!("  = help: {}\n", printable_lines(message)));
}

pub(crate) fn base(base: &str, reason: &str) {
    let reason = printable_lines(reason);
    say(&format!("{BOLD}base {base}:{BOLD:#} {reason}\n"));
}

pub(crate) fn warning(message: &str) {
    let message = printable_lines(message);
    say(&format!(
        "{YELLOW}warning{YELLOW:#}{BOLD}:{BOLD:#} {message}\n"
    ));
}

pub(crate) fn note(message: &str) {
    say(&format!(
        "{BOLD}note:{BOLD:#} {}\n",
        printable_lines(message)
    ));
}

/// Prints a message in one write, so that the output of commands cannot split it.
fn say(message: &str) {
    let stderr = io::stderr();
    let plain;
    let message = match AutoStream::choice(&stderr) {
        ColorChoice::Never => {
            plain = strip_str(message).to_string();
            &plain
        }
        _ => message,
    };
    // A broken stderr cannot be reported.
    _ = stderr.lock().write_all(message.as_bytes());
}
