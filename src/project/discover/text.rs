//! The text of one configuration file.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

pub(crate) struct SizeLimit {
    pub(crate) bytes: u32,
    /// The fix for a larger file.
    pub(crate) help: &'static str,
}

/// The limit of configuration files. Real ones are a few kilobytes.
pub(crate) const CONFIGURATION: SizeLimit = SizeLimit {
    bytes: 16 << 20,
    help: "split it, or rename it if it is not configuration",
};

pub(crate) enum TextError {
    Io(io::Error),
    /// The text with invalid UTF-8 replaced, and the place of the first invalid byte.
    NotUtf8 {
        text: String,
        offset: u32,
    },
    /// The reason continues a sentence that begins with the name of the file.
    Refused {
        why: String,
        help: &'static str,
    },
}

/// Reads a configuration file, without a byte order mark.
///
/// Anything but a plain file is checked first: opening a pipe would block for ever, and a link must
/// not lead out of the project `root`, or diagnostics would show lines of foreign files.
pub(crate) fn read_text(
    host: &Path,
    plain: bool,
    root: Option<&Path>,
    limit: &SizeLimit,
) -> Result<String, TextError> {
    if !plain {
        let target = dunce::canonicalize(host).map_err(TextError::Io)?;
        if root.is_some_and(|root| !target.starts_with(root)) {
            return Err(TextError::Refused {
                why: "is a link that leads out of the project".to_owned(),
                help: "copy the file into the project, or link to one inside it",
            });
        }
        let kind = fs::metadata(&target).map_err(TextError::Io)?.file_type();
        if kind.is_dir() {
            return Err(TextError::Io(io::ErrorKind::IsADirectory.into()));
        } else if !kind.is_file() {
            return Err(TextError::Io(io::Error::other("not a regular file")));
        }
    }
    // Most files fit, and are read at once.
    let mut bytes = Vec::with_capacity(16 << 10);
    fs::File::open(host)
        .and_then(|file| {
            file.take(u64::from(limit.bytes) + 1)
                .read_to_end(&mut bytes)
        })
        .map_err(TextError::Io)?;
    if bytes.len() > limit.bytes as usize {
        return Err(too_large(limit));
    }
    bytes.shrink_to_fit();
    decode(bytes)
}

pub(super) fn too_large(limit: &SizeLimit) -> TextError {
    TextError::Refused {
        why: format!("is larger than {} MiB", limit.bytes >> 20),
        help: limit.help,
    }
}

/// Returns the text of a file that is within its limit, without a byte order mark.
pub(crate) fn decode(mut bytes: Vec<u8>) -> Result<String, TextError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|error| TextError::NotUtf8 {
        // The limit is far below 4 GB.
        offset: u32::try_from(error.utf8_error().valid_up_to()).unwrap_or(u32::MAX),
        text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}
