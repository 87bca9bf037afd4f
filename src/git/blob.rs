//! What git records of a file: the id of its content, and whether it is executable.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use git2::{ObjectType, Oid};

/// The id that git writes for no object.
const NOTHING: &str = "0000000000000000000000000000000000000000";

/// Returns the id of the blob that git would store for the file or link at a place, without filters;
/// all zeros if nothing is there. Returns `None` for anything else, such as a directory, and for what
/// cannot be read.
pub fn blob_id(place: &Path) -> Option<String> {
    let metadata = match place.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(NOTHING.to_owned()),
        Err(_) => return None,
    };
    let id = if metadata.is_file() {
        Oid::hash_file(ObjectType::Blob, place)
    } else if metadata.is_symlink() {
        let target = fs::read_link(place).ok()?;
        Oid::hash_object(ObjectType::Blob, target.as_os_str().as_encoded_bytes())
    } else {
        return None;
    };
    id.ok().map(|id| id.to_string())
}

/// Returns whether this is the id of the blob that git would store for these bytes, without filters.
pub fn is_blob(id: &str, bytes: &[u8]) -> bool {
    Oid::hash_object(ObjectType::Blob, bytes).is_ok_and(|own| own.to_string() == id)
}

/// Returns whether git would record the file at a place as executable. Returns `None` if nothing is
/// there, for anything but a regular file, and on systems without such a bit.
pub fn is_executable(place: &Path) -> Option<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = place.symlink_metadata().ok()?;
        let mode = metadata.permissions().mode();
        metadata.is_file().then_some(mode & 0o100 != 0)
    }
    #[cfg(not(unix))]
    {
        _ = place;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::write(place("file"), "hello\n").unwrap();
        let hello = "ce013625030ba8dba906f756967f9e9ca394464a";
        assert_eq!(blob_id(&place("file")).as_deref(), Some(hello));
        assert_eq!(blob_id(&place("none")).as_deref(), Some(NOTHING));
        assert_eq!(blob_id(folder.path()), None);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("hello\n", place("link")).unwrap();
            assert_eq!(blob_id(&place("link")).as_deref(), Some(hello));
        }
    }
}
