//! Writing triggers.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use super::file::what;
use super::text::{self, Statement};
use super::{TriggerKind, directory};
use crate::path::ProjectPath;

/// A trigger that was not created.
#[derive(Debug, thiserror::Error)]
pub enum NotCreated {
    /// Something else is where a directory should be.
    #[error("`{}` is {is}, and triggers are written only below a directory", path.relative())]
    NoDirectory {
        /// Where it is.
        path: ProjectPath,
        /// What it is instead.
        is: &'static str,
    },
    /// The file system failed.
    #[error("failed to create `{}`", path.relative())]
    Io {
        /// What could not be created.
        path: ProjectPath,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The triggers that were created, by path, and the error that ended the creation, if any.
#[derive(Debug)]
pub struct Created {
    /// Their files.
    pub files: Vec<ProjectPath>,
    /// The error that ended the creation.
    pub error: Option<NotCreated>,
}

/// Creates a trigger for each of some stacks of the project at `root`.
///
/// Links are not followed: nothing is written outside the project.
pub fn create(root: &Path, stacks: &[ProjectPath], kind: TriggerKind, reason: &str) -> Created {
    let mut created = Created {
        files: Vec::new(),
        error: None,
    };
    let reason = reason.to_owned();
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since_epoch.unwrap_or_default().as_secs();
    let text = text::write(&Statement { kind, reason }, seconds);
    for stack in stacks {
        match create_one(root, stack, kind, &text) {
            Ok(file) => created.files.push(file),
            Err(error) => {
                created.error = Some(error);
                break;
            }
        }
    }
    created
}

fn create_one(
    root: &Path,
    stack: &ProjectPath,
    kind: TriggerKind,
    text: &str,
) -> Result<ProjectPath, NotCreated> {
    let mut location = directory();
    make_directory(root, &location)?;
    for name in stack.components() {
        location = location.join(name);
        make_directory(root, &location)?;
    }
    let name = format!("{}-{}.tm.hcl", kind.keyword(), Uuid::new_v4());
    let path = location.join(&name);
    let host = path.to_host(root);
    match File::create_new(&host).and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(path),
        Err(source) => {
            // A partly written trigger would be broken.
            _ = fs::remove_file(host);
            Err(NotCreated::Io { path, source })
        }
    }
}

fn make_directory(root: &Path, path: &ProjectPath) -> Result<(), NotCreated> {
    let host = path.to_host(root);
    let made = fs::create_dir(&host).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Ok(()),
        _ => Err(error),
    });
    let io = |source| {
        let path = path.clone();
        NotCreated::Io { path, source }
    };
    made.map_err(io)?;
    let kind = host.symlink_metadata().map_err(io)?.file_type();
    if kind.is_dir() {
        return Ok(());
    }
    let path = path.clone();
    let is = what(kind);
    Err(NotCreated::NoDirectory { path, is })
}
