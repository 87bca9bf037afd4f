//! Finds the file of a program for each stack.
//!
//! A name with a `/` is a path relative to the stack directory; any other is looked up in the `PATH` of the command.
//! All stacks are checked before the first command starts.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use super::os;
use crate::on_disk::if_there;

/// A program that cannot be run in a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum LookupError {
    #[error("program `{0}` was not found in the PATH")]
    NotInPath(String),
    /// The path does not exist; a relative one starts at the stack directory.
    #[error("program `{0}` does not exist")]
    Missing(PathBuf),
    /// The file is not executable; a relative path starts at the stack directory.
    #[error("program `{0}` is not an executable file")]
    NotExecutable(PathBuf),
    /// The file system reports an error; the text says which.
    #[error("program `{0}` cannot be looked up: {1}")]
    Unreadable(PathBuf, String),
}

/// Looks up one program for many stacks.
pub struct ProgramFinder {
    program: OsString,
    /// The results for each `PATH` that does not depend on the stack directory.
    by_path: HashMap<OsString, Result<PathBuf, LookupError>>,
}

impl ProgramFinder {
    /// Prepares to look up `program`.
    pub fn new(program: impl Into<OsString>) -> Self {
        ProgramFinder {
            program: program.into(),
            by_path: HashMap::new(),
        }
    }

    /// Returns the file for a stack directory and the `PATH` that the command will have there, if
    /// it will have one. Fails if there is no such program, or it cannot be executed.
    pub fn find(&mut self, directory: &Path, path: Option<&OsStr>) -> Result<PathBuf, LookupError> {
        if is_path(&self.program) {
            let file = directory.join(&self.program);
            let program = PathBuf::from(&self.program);
            return match if_there(fs::metadata(&file)) {
                Ok(None) => Err(LookupError::Missing(program)),
                Ok(_) if os::is_executable(&file) => Ok(file),
                Ok(_) => Err(LookupError::NotExecutable(program)),
                Err(error) => Err(LookupError::Unreadable(program, error.to_string())),
            };
        }
        let Some(path) = path else {
            return Err(self.not_in_path());
        };
        // An empty or relative entry is another directory in each stack.
        if std::env::split_paths(path).any(|entry| entry.is_relative()) {
            return self.search(directory, path);
        }
        if let Some(found) = self.by_path.get(path) {
            return found.clone();
        }
        let found = self.search(directory, path);
        self.by_path.insert(path.to_owned(), found.clone());
        found
    }

    fn search(&self, directory: &Path, path: &OsStr) -> Result<PathBuf, LookupError> {
        let mut not_executable = None;
        for entry in std::env::split_paths(path) {
            for name in names(&self.program) {
                let file = directory.join(&entry).join(name);
                if os::is_executable(&file) {
                    return Ok(file);
                }
                if file.is_file() {
                    not_executable = Some(file);
                }
            }
        }
        Err(match not_executable {
            Some(file) => LookupError::NotExecutable(file),
            None => self.not_in_path(),
        })
    }

    fn not_in_path(&self) -> LookupError {
        LookupError::NotInPath(self.program.to_string_lossy().into_owned())
    }
}

/// Returns whether a program is given as a path rather than by name.
fn is_path(program: &OsStr) -> bool {
    let is_separator = |&byte: &u8| std::path::is_separator(byte as char);
    program.as_encoded_bytes().iter().any(is_separator)
}

/// Returns the file names that a program may have; on Windows, also with the endings of `PATHEXT`.
fn names(program: &OsStr) -> impl Iterator<Item = OsString> {
    let endings = if cfg!(windows) {
        std::env::var("PATHEXT").unwrap_or_else(|_| ".EXE;.CMD;.BAT".to_owned())
    } else {
        String::new()
    };
    let endings: Vec<String> = endings
        .split(';')
        .filter(|ending| !ending.is_empty())
        .map(str::to_owned)
        .collect();
    let with_ending = endings.into_iter().map(|ending| {
        let mut name = program.to_owned();
        name.push(ending);
        name
    });
    std::iter::once(program.to_owned()).chain(with_ending)
}
