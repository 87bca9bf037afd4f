//! Copies of stacks, with ids of their own.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::Builder;
use uuid::Uuid;

use super::ids::BYTE_ORDER_MARK;
use crate::language::value::{Value, to_hcl};
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::stack::Stack;

/// A copy of the stacks at and below a directory, before it is written.
pub struct StackCopy {
    from: ProjectPath,
    to: ProjectPath,
    /// The directories of the copied stacks, by path.
    stacks: Vec<ProjectPath>,
    /// What is not copied with the stack around it: all stacks, and the copy.
    apart: BTreeSet<ProjectPath>,
    edits: Vec<IdEdit>,
}

struct IdEdit {
    file: ProjectPath,
    before: String,
    after: String,
}

#[derive(Debug, thiserror::Error)]
pub enum CannotClone {
    #[error("no stack is at or below `{0}`")]
    NoStack(ProjectPath),
    #[error("`{0}` is no stack, and `--skip-child-stacks` leaves out the stacks below it")]
    OnlyChildren(ProjectPath),
    #[error("the instances in `{0}` have ids, and those of a copy would be the same")]
    Instances(ProjectPath),
    #[error("failed to copy `{}`", path.relative())]
    Io {
        path: ProjectPath,
        #[source]
        source: io::Error,
    },
}

impl StackCopy {
    /// Prepares a copy of all stacks at and below a directory; without those below it if `skips_children` is set.
    pub fn new(
        project: &Project,
        from: &ProjectPath,
        to: &ProjectPath,
        skips_children: bool,
    ) -> Result<Self, CannotClone> {
        let all = project.stacks.at_or_below(from);
        let all: Vec<&Stack> = all.map(|stack| &project.stacks[stack]).collect();
        if all.is_empty() {
            return Err(CannotClone::NoStack(from.clone()));
        }
        let directories = all.iter().map(|stack| stack.path.directory().clone());
        let mut apart: BTreeSet<ProjectPath> = directories.collect();
        let is_copied = |path: &ProjectPath| !skips_children || path == from;
        let stacks: Vec<ProjectPath> = apart.iter().filter(|it| is_copied(it)).cloned().collect();
        if stacks.is_empty() {
            return Err(CannotClone::OnlyChildren(from.clone()));
        }
        apart.insert(to.clone());
        let copied = all.iter().filter(|it| is_copied(it.path.directory()));
        let edits = copied.filter_map(|stack| id_edit(project, stack).transpose());
        Ok(StackCopy {
            from: from.clone(),
            to: to.clone(),
            edits: edits.collect::<Result<_, _>>()?,
            stacks,
            apart,
        })
    }

    pub fn stacks(&self) -> impl Iterator<Item = ProjectPath> {
        self.stacks.iter().map(|stack| self.destination(stack))
    }

    fn destination(&self, path: &ProjectPath) -> ProjectPath {
        let below = path.as_str().strip_prefix(self.from.as_str());
        let below = below.unwrap_or_default().trim_start_matches('/');
        self.to.resolve(below).unwrap_or_else(|_| self.to.clone())
    }

    /// Writes the copy, or nothing. Names that begin with a dot are left out.
    pub fn write(&self, root: &Path) -> Result<(), CannotClone> {
        let mut made = Vec::new();
        let written = self.write_beside(root, &mut made);
        if written.is_err() {
            // Directories that others use in the meantime stay.
            for directory in made.iter().rev() {
                _ = fs::remove_dir(directory);
            }
        }
        written.map_err(|(path, source)| CannotClone::Io { path, source })
    }

    /// Writes the copy to a temporary directory beside its place, and then moves it there.
    fn write_beside(
        &self,
        root: &Path,
        made: &mut Vec<PathBuf>,
    ) -> Result<(), (ProjectPath, io::Error)> {
        let at = |path: &ProjectPath| {
            let path = path.clone();
            move |error| (path, error)
        };
        let parent = self.to.parent().unwrap_or_else(ProjectPath::root);
        let mut host = root.to_owned();
        for name in parent.components() {
            host.push(name);
            match fs::create_dir(&host) {
                Ok(()) => made.push(host.clone()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(at(&parent)(error)),
            }
        }
        // A dot directory is not searched for stacks.
        let draft = Builder::new().prefix(".orch-clone-").tempdir_in(&host);
        let draft = draft.map_err(at(&parent))?;
        let place = draft.path().join("copy");
        for stack in &self.stacks {
            let target = self.destination(stack).to_host(root);
            let below = target.strip_prefix(self.to.to_host(root));
            let target = place.join(below.unwrap_or(Path::new("")));
            fs::create_dir_all(&target).map_err(at(stack))?;
            self.copy(root, stack, &target)?;
        }
        let target = self.to.to_host(root);
        if target.symlink_metadata().is_ok() {
            return Err(at(&self.to)(io::ErrorKind::AlreadyExists.into()));
        }
        fs::rename(&place, target).map_err(at(&self.to))
    }

    /// Copies a directory without the stacks in it.
    fn copy(
        &self,
        root: &Path,
        directory: &ProjectPath,
        target: &Path,
    ) -> Result<(), (ProjectPath, io::Error)> {
        let at = |path: &ProjectPath| {
            let path = path.clone();
            move |error| (path, error)
        };
        for entry in fs::read_dir(directory.to_host(root)).map_err(at(directory))? {
            let entry = entry.map_err(at(directory))?;
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = directory.join(&name.to_string_lossy());
            let kind = entry.file_type().map_err(at(&path))?;
            let target = target.join(&name);
            if kind.is_dir() {
                if !self.apart.contains(&path) {
                    fs::create_dir_all(&target).map_err(at(&path))?;
                    self.copy(root, &path, &target)?;
                }
            } else {
                self.copy_file(&entry.path(), kind, &path, &target)
                    .map_err(at(&path))?;
            }
        }
        Ok(())
    }

    fn copy_file(
        &self,
        host: &Path,
        kind: fs::FileType,
        path: &ProjectPath,
        target: &Path,
    ) -> io::Result<()> {
        if kind.is_symlink() {
            return copy_link(host, target);
        } else if !kind.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let Some(edit) = self.edits.iter().find(|edit| edit.file == *path) else {
            return fs::copy(host, target).map(drop);
        };
        let bytes = fs::read(host)?;
        let text = bytes.strip_prefix(BYTE_ORDER_MARK.as_bytes());
        if text.unwrap_or(&bytes) != edit.before.as_bytes() {
            return Err(io::Error::other("it has changed in the meantime"));
        }
        let mut file = fs::File::create_new(target)?;
        if text.is_some() {
            file.write_all(BYTE_ORDER_MARK.as_bytes())?;
        }
        file.write_all(edit.after.as_bytes())?;
        file.set_permissions(fs::metadata(host)?.permissions())
    }
}

/// Copies a link that names its target in a way that does not depend on its place.
#[cfg(unix)]
fn copy_link(host: &Path, target: &Path) -> io::Result<()> {
    let leads_to = fs::read_link(host)?;
    let is_within = !leads_to
        .components()
        .any(|it| it == std::path::Component::ParentDir);
    if leads_to.is_absolute() || is_within {
        return std::os::unix::fs::symlink(leads_to, target);
    }
    fs::copy(host, target).map(drop)
}

#[cfg(not(unix))]
fn copy_link(host: &Path, target: &Path) -> io::Result<()> {
    fs::copy(host, target).map(drop)
}

/// Returns the file with the id of a stack and a new id in its place; `None` if it has no id.
fn id_edit(project: &Project, stack: &Stack) -> Result<Option<IdEdit>, CannotClone> {
    let Some(id) = &stack.id else {
        return Ok(None);
    };
    if stack.path.key().is_some() {
        return Err(CannotClone::Instances(stack.path.directory().clone()));
    }
    let source = project.sources.file(id.span.file);
    let range = id.span.range();
    let new = to_hcl(&Value::string(Uuid::new_v4().to_string()));
    Ok(Some(IdEdit {
        file: source.path.clone(),
        after: [&source.text[..range.start], &new, &source.text[range.end..]].concat(),
        before: source.text.clone(),
    }))
}
