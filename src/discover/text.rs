//! The text of one configuration file.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The largest configuration file that is read. Real ones are a few kilobytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Why a configuration file has no usable text.
pub(crate) enum TextError {
    Io(io::Error),
    /// The text with what is not UTF-8 replaced, and where that begins.
    NotUtf8 {
        text: String,
        offset: usize,
    },
    /// The reason goes on from the name of the file.
    Refused {
        why: String,
        help: &'static str,
    },
}

/// Reads a configuration file, without a byte order mark.
///
/// What is not a plain file is looked at first: opening a pipe would wait for ever, and a link must
/// not lead out of the project `root`, whose diagnostics would show lines of foreign files.
pub(crate) fn read_text(
    host: &Path,
    plain: bool,
    root: Option<&Path>,
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
    let mut bytes = Vec::with_capacity(1024);
    fs::File::open(host)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(TextError::Io)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(TextError::Refused {
            why: format!("is larger than {} MiB", MAX_FILE_BYTES >> 20),
            help: "split it, or give it another name if it is not configuration",
        });
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|error| TextError::NotUtf8 {
        offset: error.utf8_error().valid_up_to(),
        text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}
