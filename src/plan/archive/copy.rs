//! Copies bytes and digests them on the way.

use std::io::{self, ErrorKind, Read, Write};

use sha2::{Digest as _, Sha256};

/// Which side failed.
pub(super) enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct CopiedContent {
    pub(super) size: u64,
    pub(super) sha256: String,
}

pub(super) fn copy(from: &mut impl Read, to: &mut impl Write) -> Result<CopiedContent, CopyError> {
    let mut buffer = vec![0; 1 << 16];
    let mut hasher = Sha256::new();
    let mut size = 0;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        hasher.update(&buffer[..read]);
        to.write_all(&buffer[..read]).map_err(CopyError::Write)?;
        size += read as u64;
    }
    let digest = hasher.finalize();
    let sha256 = digest.iter().fold(String::new(), |digits, byte| {
        digits + &format!("{byte:02x}")
    });
    Ok(CopiedContent { size, sha256 })
}
