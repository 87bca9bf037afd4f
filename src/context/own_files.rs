//! Files in the working tree that `orch` itself has written, and that are no work in progress: saved
//! plans, and exported pipelines with their work orders.
//!
//! A user may write them anywhere, and a job may get them from another machine. So the files themselves
//! show what they are: a plan by its last bytes, an export by the digest of all that stands before it,
//! which an edit breaks. Like the digests of a plan, it protects from mistakes and not from malice.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::ascii::hex;
use crate::git::{ChangedFile, FileState};

/// How the comment at the end of a saved plan begins.
pub(crate) const PLAN_MARK: &str = "orch plan ";

/// What stands before the digest at the end of an exported file.
const SEAL: &str = "orch export 1 sha256:";

/// How many bytes at the end of a file show what it is.
const END_BYTES: u64 = 128;

/// The largest export that is recognized: no engine accepts one like that.
const MOST_BYTES: u64 = 256 << 20;

/// Removes files that are no work in progress from the status of a working tree.
pub(super) fn without_own_files(root: &Path, mut status: Vec<ChangedFile>) -> Vec<ChangedFile> {
    status.retain(|file| {
        let path = file.path.to_host(root);
        let is_plan = || file.state == FileState::Untracked && is_saved_plan(&path);
        !is_plan() && !is_export(&path)
    });
    status
}

fn is_saved_plan(file: &Path) -> bool {
    let marked = marked(file, PLAN_MARK);
    marked.is_ok_and(|file| file.is_some())
}

fn is_export(file: &Path) -> bool {
    let found = || -> io::Result<bool> {
        let Some(mut file) = marked(file, SEAL)? else {
            return Ok(false);
        };
        let mut bytes = Vec::new();
        file.rewind()?;
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(seal_of(&bytes).is_some())
    };
    found().unwrap_or(false)
}

/// Opens a regular file whose last bytes have a mark.
fn marked(file: &Path, mark: &str) -> io::Result<Option<File>> {
    if !file.symlink_metadata()?.is_file() {
        return Ok(None);
    }
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES)))?;
    let mut end = Vec::new();
    file.by_ref().take(END_BYTES).read_to_end(&mut end)?;
    Ok(memchr::memmem::find(&end, mark.as_bytes()).map(|_| file))
}

/// Appends the seal of a text to it: the digest of all that stands before the digest. What follows may
/// only end a string and an object of JSON, and the line.
pub(crate) fn seal(text: &mut String) {
    *text += SEAL;
    *text += &digest(text.as_bytes());
}

/// Returns the digest in the seal of a text, if the text is as it was sealed.
pub(crate) fn seal_of(bytes: &[u8]) -> Option<&str> {
    let start = memchr::memmem::rfind(bytes, SEAL.as_bytes())? + SEAL.len();
    let (before, after) = bytes.split_at_checked(start)?;
    let (found, end) = after.split_at_checked(Sha256::output_size() * 2)?;
    let is_end = matches!(end, b"\n" | b"\"}\n");
    (is_end && found == digest(before).as_bytes()).then_some(())?;
    std::str::from_utf8(found).ok()
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_breaks_with_any_byte() {
        for end in ["\n", "\"}\n"] {
            let mut text = "a: 1\n# ".to_owned();
            seal(&mut text);
            text += end;
            let sealed = text.as_bytes();
            assert!(seal_of(sealed).is_some());
            for at in 0..sealed.len() {
                let mut edited = sealed.to_vec();
                edited[at] ^= 1;
                assert_eq!(seal_of(&edited), None, "{at}");
            }
            assert_eq!(seal_of(&[sealed, b"b: 1\n"].concat()), None);
        }
        assert_eq!(seal_of(SEAL.as_bytes()), None);
    }
}
