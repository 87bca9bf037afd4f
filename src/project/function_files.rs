//! The files that functions read: those of the project, on disk or in a commit.
//!
//! Nothing outside of the project can be read, not even through links. Reads are recorded, because they are inputs of
//! the stack.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use walkdir::WalkDir;

use crate::language::function::{self, FileError};
use crate::on_disk::if_there;
use crate::path::ProjectPath;
use crate::pattern::FilePattern;
use crate::project::discover::{FileKind, FileTree, TreeIndex};

const MAX_BYTES: u32 = 16 << 20;

/// Where functions find the files of a project.
#[derive(Clone, Copy)]
pub(crate) struct FileSource<'t> {
    /// The root on this machine.
    pub(crate) root: &'t Path,
    /// The files, if they are not those on disk.
    pub(crate) tree: Option<(&'t TreeIndex, &'t dyn FileTree)>,
}

/// A file or directory that a function has looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileRead {
    /// A path, whether or not anything is there.
    Path(ProjectPath),
    /// The files below a directory that match a pattern, as `fileset` takes it.
    Matching(ProjectPath, String),
}

pub(crate) struct ProjectFiles<'t> {
    source: FileSource<'t>,
    /// The base of relative paths; unknown while a value is computed for all stacks.
    directory: Option<&'t ProjectPath>,
    reads: RefCell<Vec<FileRead>>,
}

impl<'t> ProjectFiles<'t> {
    pub(crate) fn new(source: FileSource<'t>, directory: Option<&'t ProjectPath>) -> Self {
        ProjectFiles {
            source,
            directory,
            reads: RefCell::default(),
        }
    }

    /// Returns the accessed files, in order.
    pub(crate) fn into_reads(self) -> Vec<FileRead> {
        self.reads.into_inner()
    }

    /// Returns the path in the project. An absolute path is one of this machine.
    fn resolve(&self, written: &str) -> Result<ProjectPath, FileError> {
        let outside = || {
            FileError::Wrong(format!(
                "`{written}` lies outside of the project; for a file at its root, write \
                 `${{terramate.root.path.fs.absolute}}/…`"
            ))
        };
        let host = Path::new(written);
        let path = if host.is_absolute() {
            let below = host
                .strip_prefix(self.source.root)
                .map_err(|_| outside())?
                .to_str()
                .ok_or_else(outside)?;
            let path = ProjectPath::root().resolve(below);
            path.map_err(|_| outside())?
        } else {
            self.directory()?.resolve(written).map_err(|_| outside())?
        };
        // git's configuration may contain passwords.
        if path.components().any(|name| name == ".git") {
            let problem = format!("`{path}` belongs to git and not to the project");
            return Err(FileError::Wrong(problem));
        }
        Ok(path)
    }

    fn directory(&self) -> Result<&'t ProjectPath, FileError> {
        self.directory.ok_or_else(|| FileError::Undecided {
            name: "terramate.stack".to_owned(),
            when: "known for each stack".to_owned(),
        })
    }

    /// Returns the tree that has the file at a path; `None` if it is on disk.
    fn tree(&self, path: &ProjectPath) -> Option<(&'t TreeIndex, &'t dyn FileTree)> {
        let tree = self.source.tree;
        tree.filter(|(_, tree)| !tree.is_as_on_disk(path))
    }

    fn note(&self, read: FileRead) {
        self.reads.borrow_mut().push(read);
    }

    /// Returns whether a link leads to a file. For a target outside of the project this is unknown.
    fn leads_to_file(&self, link: &ProjectPath) -> Result<bool, FileError> {
        match self.host(link) {
            Ok(host) => is_file(&host),
            Err(FileError::Wrong(_)) => Ok(false),
            Err(unreadable) => Err(unreadable),
        }
    }

    /// Returns the path on disk, if no link leads out of the project.
    fn host(&self, path: &ProjectPath) -> Result<std::path::PathBuf, FileError> {
        let host = path.to_host(self.source.root);
        match dunce::canonicalize(&host) {
            Ok(target) if target.starts_with(self.source.root) => Ok(host),
            Ok(_) => {
                let problem = format!("`{path}` is a link that leads out of the project");
                Err(FileError::Wrong(problem))
            }
            Err(error) => Err(failed(path, &error)),
        }
    }
}

fn failed(path: &ProjectPath, error: &io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound => FileError::Wrong(format!("no file `{path}`")),
        _ => FileError::Unreadable(format!("failed to read `{path}`: {error}")),
    }
}

/// Returns whether a path outside of the project leads to a file.
fn is_file(path: &Path) -> Result<bool, FileError> {
    let found = if_there(fs::metadata(path)).map_err(|error| {
        FileError::Unreadable(format!("failed to look at `{}`: {error}", path.display()))
    });
    Ok(found?.is_some_and(|it| it.is_file()))
}

fn too_large(path: &ProjectPath) -> FileError {
    FileError::Wrong(format!("`{path}` is larger than {} MiB", MAX_BYTES >> 20))
}

impl function::FileReader for ProjectFiles<'_> {
    fn read(&self, written: &str) -> Result<Arc<[u8]>, FileError> {
        let path = self.resolve(written)?;
        self.note(FileRead::Path(path.clone()));
        if let Some((index, tree)) = self.tree(&path) {
            let Some(id) = index.file(&path) else {
                return Err(FileError::Wrong(format!("no file `{path}`")));
            };
            let contents = tree
                .read(&[id], MAX_BYTES)
                .map_err(|error| failed(&path, &error))?;
            let content = contents.into_iter().next().flatten();
            return Ok(content.ok_or_else(|| too_large(&path))?.into());
        }
        let host = self.host(&path)?;
        // Opening a pipe would block forever.
        let metadata = fs::metadata(&host).map_err(|error| failed(&path, &error))?;
        if !metadata.is_file() {
            return Err(FileError::Wrong(format!("`{path}` is not a regular file")));
        }
        if metadata.len() > u64::from(MAX_BYTES) {
            return Err(too_large(&path));
        }
        Ok(fs::read(&host)
            .map_err(|error| failed(&path, &error))?
            .into())
    }

    /// Unlike other functions, this one may ask about the machine: that shows nothing of a file.
    fn exists(&self, written: &str) -> Result<bool, FileError> {
        let path = match self.resolve(written) {
            Ok(path) => path,
            Err(FileError::Wrong(_)) if Path::new(written).is_absolute() => {
                return is_file(Path::new(written));
            }
            Err(FileError::Wrong(_)) => {
                let directory = self.directory()?.to_host(self.source.root);
                return is_file(&directory.join(written));
            }
            Err(undecided) => return Err(undecided),
        };
        self.note(FileRead::Path(path.clone()));
        let tree = self.tree(&path);
        let kind = match tree {
            Some((index, _)) => index.kind(&path),
            None => if_there(fs::metadata(path.to_host(self.source.root)))
                .map_err(|error| failed(&path, &error))?
                .map(|it| FileKind::of(it.file_type())),
        };
        match kind {
            None => Ok(false),
            Some(FileKind::File) if tree.is_none() => self.host(&path).map(|_| true),
            Some(FileKind::File) => Ok(true),
            Some(FileKind::Directory) => Err(FileError::Wrong(format!(
                "`{path}` is a directory, not a file"
            ))),
            Some(_) => Err(FileError::Wrong(format!("`{path}` is not a regular file"))),
        }
    }

    fn matching(&self, written: &str, pattern: &str) -> Result<Vec<String>, FileError> {
        let directory = self.resolve(written)?;
        self.note(FileRead::Matching(directory.clone(), pattern.to_owned()));
        let matcher =
            FilePattern::new(&directory, pattern.trim_start_matches('/')).map_err(|problem| {
                FileError::Wrong(format!("`{pattern}` is not a pattern: {problem}"))
            })?;
        let below = |path: &ProjectPath| {
            let prefix = directory.prefix_of_below();
            path.as_str().strip_prefix(&*prefix).map(str::to_owned)
        };
        let mut found: Vec<String> = Vec::new();
        if let Some((index, tree)) = self.source.tree {
            let files = index
                .files_below(&directory)
                .filter(|path| matcher.matches(path) && !tree.is_as_on_disk(path));
            found.extend(files.filter_map(|path| below(&path)));
        }
        let is_known = |(index, _): (&TreeIndex, _)| index.kind(&directory).is_some();
        let host = match (self.tree(&directory), self.host(&directory)) {
            (Some(_), _) => None,
            // The files on disk have been removed since, and the directory with them.
            (None, Err(FileError::Wrong(_))) if self.source.tree.is_some_and(is_known) => None,
            (None, host) => Some(host?),
        };
        let entries = host.into_iter().flat_map(|host| {
            let entries = WalkDir::new(host).into_iter();
            entries.filter_entry(|entry| entry.file_name() != ".git")
        });
        for entry in entries {
            let entry = if_there(entry.map_err(io::Error::from));
            let Some(entry) = entry.map_err(|error| failed(&directory, &error))? else {
                continue;
            };
            let kind = entry.file_type();
            if (kind.is_file() || kind.is_symlink())
                && let Some(path) = ProjectPath::from_host(self.source.root, entry.path())
                && matcher.matches(&path)
                && self.tree(&path).is_none()
                && (kind.is_file() || self.leads_to_file(&path)?)
            {
                found.extend(below(&path));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    fn home(&self) -> Result<String, FileError> {
        let home = std::env::home_dir().and_then(|home| home.into_os_string().into_string().ok());
        home.ok_or_else(|| FileError::Wrong("the home directory is unknown".to_owned()))
    }

    fn absolute(&self, written: &str) -> Result<String, FileError> {
        let path = Path::new(written);
        let base = if path.is_absolute() {
            ProjectPath::root().to_host(Path::new("/"))
        } else {
            self.directory()?.to_host(self.source.root)
        };
        let mut absolute = base;
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => _ = absolute.pop(),
                std::path::Component::Normal(name) => absolute.push(name),
                _ => {}
            }
        }
        Ok(absolute.to_string_lossy().into_owned())
    }
}
