//! The part of a file that git records: the id of its content, and whether it is executable.

use std::fs;
use std::io;
use std::path::Path;

use git2::{ObjectType, Oid};

use super::GitError;
use crate::on_disk::if_there;

/// The id that git writes for no object.
const NOTHING: &str = "0000000000000000000000000000000000000000";

/// Returns the id of the blob that git would store for a file or link, without filters; all zeros if it is missing.
/// Returns `None` for anything else, such as a directory.
pub fn blob_id(place: &Path) -> Result<Option<String>, GitError> {
    let unreadable = |error| GitError::Unreadable(place.to_owned(), error);
    let Some(metadata) = if_there(place.symlink_metadata()).map_err(unreadable)? else {
        return Ok(Some(NOTHING.to_owned()));
    };
    let id = if metadata.is_file() {
        Oid::hash_file(ObjectType::Blob, place)
    } else if metadata.is_symlink() {
        let target = fs::read_link(place).map_err(unreadable)?;
        Oid::hash_object(ObjectType::Blob, target.as_os_str().as_encoded_bytes())
    } else {
        return Ok(None);
    };
    let id = id.map_err(|error| unreadable(io::Error::other(error)))?;
    Ok(Some(id.to_string()))
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
        let id = |place: &Path| blob_id(place).unwrap();
        assert_eq!(id(&place("file")).as_deref(), Some(hello));
        assert_eq!(id(&place("none")).as_deref(), Some(NOTHING));
        assert_eq!(id(&place("file/none")).as_deref(), Some(NOTHING));
        assert_eq!(id(folder.path()), None);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("hello\n", place("link")).unwrap();
            assert_eq!(id(&place("link")).as_deref(), Some(hello));
        }
    }

    #[test]
    #[cfg(unix)]
    fn blob_id_of_an_unreadable_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        let error = blob_id(&circle.join("file")).unwrap_err();
        assert!(error.to_string().ends_with("circle/file` cannot be read"));
    }
}
