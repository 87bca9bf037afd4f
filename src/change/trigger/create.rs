//! Creates trigger files.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use super::file::what;
use super::text::{self, Statement};
use super::{TriggerKind, directory};
use crate::path::{InstanceKey, ProjectPath};

#[derive(Debug, thiserror::Error)]
pub enum TriggerNotCreated {
    /// Something else is in the place of a directory.
    #[error("`{}` is {is}, but triggers need a directory", path.relative())]
    NoDirectory {
        path: ProjectPath,
        /// What it is instead.
        is: &'static str,
    },
    #[error("failed to create `{}`", path.relative())]
    Io {
        /// The path that could not be created.
        path: ProjectPath,
        #[source]
        source: io::Error,
    },
}

/// The target of a trigger: all stacks of a directory, or one instance there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TriggerTarget {
    pub directory: ProjectPath,
    pub key: Option<InstanceKey>,
}

/// The created triggers by path, and the error that stopped the creation, if any.
pub struct CreatedTriggers {
    pub files: Vec<ProjectPath>,
    pub error: Option<TriggerNotCreated>,
}

/// Creates a trigger for each target in the project at `root`.
///
/// Links are not followed: nothing is written outside of the project.
pub fn create(
    root: &Path,
    marked: &[TriggerTarget],
    kind: TriggerKind,
    reason: &str,
) -> CreatedTriggers {
    let mut created = CreatedTriggers {
        files: Vec::new(),
        error: None,
    };
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since_epoch.unwrap_or_default().as_secs();
    for target in marked {
        let statement = Statement {
            kind,
            reason: reason.to_owned(),
            key: target.key.clone(),
        };
        let text = text::write(&statement, seconds);
        match create_one(root, target, kind, &text) {
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
    target: &TriggerTarget,
    kind: TriggerKind,
    text: &str,
) -> Result<ProjectPath, TriggerNotCreated> {
    let mut location = directory();
    make_directory(root, &location)?;
    for name in target.directory.components() {
        location = location.join(name);
        make_directory(root, &location)?;
    }
    let ending = match target.key {
        None => "tm.hcl",
        // Terramate would refuse the key.
        Some(_) => "orch.hcl",
    };
    let name = format!("{}-{}.{ending}", kind.keyword(), Uuid::new_v4());
    let path = location.join(&name);
    let host = path.to_host(root);
    match File::create_new(&host).and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(path),
        Err(source) => {
            // A partly written trigger would be broken.
            _ = fs::remove_file(host);
            Err(TriggerNotCreated::Io { path, source })
        }
    }
}

fn make_directory(root: &Path, path: &ProjectPath) -> Result<(), TriggerNotCreated> {
    let host = path.to_host(root);
    let made = fs::create_dir(&host).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Ok(()),
        _ => Err(error),
    });
    let io = |source| {
        let path = path.clone();
        TriggerNotCreated::Io { path, source }
    };
    made.map_err(io)?;
    let kind = host.symlink_metadata().map_err(io)?.file_type();
    if kind.is_dir() {
        return Ok(());
    }
    let path = path.clone();
    let is = what(kind);
    Err(TriggerNotCreated::NoDirectory { path, is })
}
