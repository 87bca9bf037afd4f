//! Writes files, all or none.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::error::{Error, Result};
use crate::path::ProjectPath;

#[derive(Debug, Clone)]
pub struct FileToWrite {
    pub path: ProjectPath,
    /// The text that it must have now; `None` if it must not exist.
    pub before: Option<String>,
    pub after: String,
}

/// Writes files in the project at `root`. New files never replace others. If one cannot be written, those written
/// before are removed again; an error lists the changed files that stay.
///
/// Links are not followed: nothing is written outside of the project.
pub fn write_all(root: &Path, changes: &[FileToWrite]) -> Result<()> {
    let mut made = Made::default();
    let mut drafts = Vec::with_capacity(changes.len());
    for change in changes {
        match made.draft(root, change) {
            Ok(draft) => drafts.push(draft),
            Err(source) => {
                drop(drafts); // which removes them
                made.remove();
                return Err(not_written(&change.path, &[], source));
            }
        }
    }
    let mut written: Vec<ProjectPath> = Vec::new();
    for (change, draft) in changes.iter().zip(drafts) {
        let host = change.path.to_host(root);
        let moved = match change.before {
            None => draft.persist_noclobber(&host),
            Some(_) => draft.persist(&host),
        };
        match moved {
            Err(error) => {
                written.retain(|path| !made.removes(path, root));
                made.remove();
                return Err(not_written(&change.path, &written, error.error));
            }
            Ok(_) if change.before.is_none() => made.files.push(host),
            Ok(_) => {}
        }
        written.push(change.path.clone());
    }
    Ok(())
}

/// Returns the error of a file that cannot be written. `written` lists the files that stay changed.
fn not_written(path: &ProjectPath, written: &[ProjectPath], source: io::Error) -> Error {
    let kept = match written {
        [] => "nothing was written".to_owned(),
        [only] => format!("`{}` was written", only.relative()),
        [first, rest @ ..] => {
            let more = rest.len();
            format!("`{}` and {more} more were written", first.relative())
        }
    };
    let message = format!("failed to write `{}`; {kept}", path.relative());
    Error::described(message, source)
}

/// A file whose text is replaced, in or outside of a project.
#[derive(Debug)]
pub struct Replacement {
    pub shown: String,
    /// The place, which is no link.
    pub host: PathBuf,
    pub before: String,
    pub after: String,
}

/// Replaces files, each whole. None is replaced if one has changed or cannot be written.
pub fn replace_all(files: &[Replacement]) -> Result<()> {
    let failed = |file: &Replacement, written: usize, source: io::Error| {
        let written = match written {
            0 => "nothing was written".to_owned(),
            1 => "the file before it was written".to_owned(),
            more => format!("the {more} files before it were written"),
        };
        let message = format!("failed to write `{}`; {written}", file.shown);
        Error::described(message, source)
    };
    let mut drafts = Vec::with_capacity(files.len());
    for file in files {
        let drafted = unchanged(&file.host, &file.before)
            .and_then(|permissions| draft(&file.host, &file.after, Some(permissions)));
        drafts.push(drafted.map_err(|source| failed(file, 0, source))?);
    }
    for (written, (file, draft)) in files.iter().zip(drafts).enumerate() {
        let moved = draft.persist(&file.host);
        moved.map_err(|error| failed(file, written, error.error))?;
    }
    Ok(())
}

/// What did not exist before.
#[derive(Default)]
struct Made {
    /// Outer ones first.
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Made {
    fn draft(&mut self, root: &Path, change: &FileToWrite) -> io::Result<NamedTempFile> {
        let directory = change.path.parent().unwrap_or_else(ProjectPath::root);
        let mut host = root.to_owned();
        for name in directory.components() {
            host.push(name);
            self.directory(&host)?;
        }
        let place = change.path.to_host(root);
        let permissions = match &change.before {
            Some(before) => Some(unchanged(&place, before)?),
            None if place.symlink_metadata().is_ok() => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            None => None,
        };
        draft(&place, &change.after, permissions)
    }

    fn directory(&mut self, host: &Path) -> io::Result<()> {
        match fs::create_dir(host) {
            Ok(()) => self.directories.push(host.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        if host.symlink_metadata()?.is_dir() {
            Ok(())
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    fn removes(&self, path: &ProjectPath, root: &Path) -> bool {
        self.files.contains(&path.to_host(root))
    }

    /// Removes it again. Directories that others use in the meantime stay.
    fn remove(&self) {
        for file in &self.files {
            _ = fs::remove_file(file);
        }
        for directory in self.directories.iter().rev() {
            _ = fs::remove_dir(directory);
        }
    }
}

fn draft(
    place: &Path,
    text: &str,
    permissions: Option<fs::Permissions>,
) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    // A dot file is no configuration.
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}-");
    builder.prefix(&prefix);
    // The mask of the process applies.
    #[cfg(unix)]
    let everything = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(everything);
    let mut draft = builder.tempfile_in(place.parent().unwrap_or(place))?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    if let Some(permissions) = permissions {
        draft.as_file().set_permissions(permissions)?;
    }
    Ok(draft)
}

/// Returns the permissions of a file that still has the text that was read.
fn unchanged(place: &Path, before: &str) -> io::Result<fs::Permissions> {
    let metadata = place.symlink_metadata()?;
    if metadata.is_symlink() {
        return Err(io::Error::other("it is a symbolic link"));
    }
    if fs::read(place)? != before.as_bytes() {
        return Err(io::Error::other("it has changed in the meantime"));
    }
    Ok(metadata.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::with_causes;

    fn new(path: &str) -> FileToWrite {
        FileToWrite {
            path: ProjectPath::root().resolve(path).unwrap(),
            before: None,
            after: "x".to_owned(),
        }
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn all_files_are_written_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write_all(root, &[new("/a/b/x"), new("/c")]).unwrap();
        assert_eq!(names(root), ["a", "c"]);
        assert_eq!(names(&root.join("a/b")), ["x"]);
        let error = write_all(root, &[new("/d/e/x"), new("/f"), new("/c")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed to write `c`; nothing was written"
        );
        assert_eq!(names(root), ["a", "c"]);
        // A file that appears while the others are written.
        let error = write_all(root, &[new("/d/x"), new("/g"), new("/g")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed to write `g`; nothing was written"
        );
        assert_eq!(names(root), ["a", "c"]);
    }

    #[test]
    fn replaced_file_must_be_as_it_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let change = |before: &str| FileToWrite {
            before: Some(before.to_owned()),
            ..new("/x")
        };
        fs::write(root.join("x"), "old").unwrap();
        let error = write_all(root, &[change("other")]).unwrap_err();
        let message = with_causes(&error);
        assert!(
            message.ends_with("it has changed in the meantime"),
            "{message}"
        );
        assert_eq!(fs::read_to_string(root.join("x")).unwrap(), "old");
        write_all(root, &[change("old")]).unwrap();
        assert_eq!(fs::read_to_string(root.join("x")).unwrap(), "x");
        assert_eq!(names(root), ["x"]);
    }
}
