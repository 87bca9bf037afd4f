//! Finds the project root and reads the configuration files below it.
//!
//! Directories are listed with walkdir, one task per directory on a pool of threads; the task that
//! lists a directory also reads and parses its configuration files, so that waiting for a cold disk
//! and parsing overlap. Results are sorted afterwards: what the threads do first never shows.
//!
//! Skipped: dot directories, directories with a `.tmskip` or `.orchskip`, and whatever another
//! project owns (a directory below the root that says `orch { root = true }`). Symbolic links to
//! directories are not followed, so loops of links cannot occur; links to files are.
//!
//! Knows what a configuration file is called and that one may declare a root; knows nothing else of
//! what files mean.

mod root;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

pub use root::{RootRule, find_root};
use tracing::{debug, trace};
use walkdir::WalkDir;

use self::root::declares_root;
use crate::diagnostic::Diagnostic;
use crate::parse::parse;
use crate::path::ProjectPath;
use crate::source::{FileId, SourceFile, Sources};
use crate::syntax::Body;

/// Endings of configuration files. Terramate reads the first two as well.
const ENDINGS: [&str; 3] = [".tm", ".tm.hcl", ".orch.hcl"];

/// Files that keep a directory, and all below it, out of the project.
const SKIP_MARKS: [&str; 2] = [".tmskip", ".orchskip"];

/// The largest configuration file that is read. Real ones are a few kilobytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A file or directory that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read `{path}`")]
pub struct ReadError {
    /// What could not be read, relative to the project root where it lies inside.
    pub path: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Says whether a file of that name is read as configuration.
pub fn is_configuration(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    !name.starts_with('.')
        && ENDINGS
            .iter()
            .any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

/// What [`read`] found.
#[derive(Debug, Default)]
pub struct Found {
    /// The text of every file.
    pub sources: Sources,
    /// The directories that have configuration files, by path.
    pub directories: Vec<Directory>,
    /// Directories below the root that are projects of their own, by path.
    pub nested_projects: Vec<ProjectPath>,
    /// What is wrong with the text of files.
    pub diagnostics: Vec<Diagnostic>,
    /// What could not be read.
    pub errors: Vec<ReadError>,
}

/// A directory and its own configuration files.
#[derive(Debug)]
pub struct Directory {
    /// Where it is.
    pub path: ProjectPath,
    /// Its files, by name.
    pub files: Vec<ParsedFile>,
}

/// A configuration file.
#[derive(Debug, Clone)]
pub struct ParsedFile {
    /// Where it is.
    pub path: ProjectPath,
    /// What it says; empty if it has a syntax error.
    pub body: Arc<Body>,
}

/// Reads all configuration files of the project, on the pool of threads that this is called on.
pub fn read(root: &Path) -> Found {
    let reader = Reader::new(root);
    rayon::scope(|scope| reader.visit(scope, root));
    let found = reader.finish();
    debug!(
        files = found.sources.len(),
        directories = found.directories.len(),
        "configuration read"
    );
    found
}

/// Reads one more file, which need not have a configuration file's name: what an import names.
/// Where that fails, the reason is added to `found`.
pub fn read_one(root: &Path, path: &ProjectPath, found: &mut Found) -> Option<ParsedFile> {
    let reader = Reader::new(root);
    reader
        .next_file
        .store(u32::try_from(found.sources.len()).ok()?, Ordering::Relaxed);
    let file = reader.read_file(&path.to_host(root), false);
    let gathered = reader.finish_into(&mut found.sources);
    found.diagnostics.extend(gathered.diagnostics);
    found.errors.extend(gathered.errors);
    file
}

/// What the tasks of a walk share.
struct Reader<'a> {
    root: &'a Path,
    next_file: AtomicU32,
    gathered: Mutex<Gathered>,
}

#[derive(Default)]
struct Gathered {
    sources: Vec<(FileId, SourceFile)>,
    directories: Vec<Directory>,
    nested_projects: Vec<ProjectPath>,
    diagnostics: Vec<Diagnostic>,
    errors: Vec<ReadError>,
}

impl<'a> Reader<'a> {
    fn new(root: &'a Path) -> Self {
        Reader {
            root,
            next_file: AtomicU32::new(0),
            gathered: Mutex::default(),
        }
    }

    fn gathered(&self) -> std::sync::MutexGuard<'_, Gathered> {
        self.gathered
            .lock()
            .expect("no task panics while it holds this")
    }

    fn visit<'s>(&'s self, scope: &rayon::Scope<'s>, directory: &Path) {
        trace!(directory = %directory.display(), "enter");
        let is_root = directory == self.root;
        let Listing {
            mut files,
            directories,
            skipped,
        } = self.list(directory);
        if skipped && !is_root {
            return;
        }
        // The root's own configuration holds even where the mark empties the project.
        files.sort();
        let files: Vec<ParsedFile> = files
            .iter()
            .filter_map(|(file, plain)| self.read_file(file, *plain))
            .collect();
        if !is_root && files.iter().any(|file| declares_root(&file.body)) {
            self.gathered()
                .nested_projects
                .extend(self.project_path(directory));
            return;
        }
        if !files.is_empty()
            && let Some(path) = self.project_path(directory)
        {
            self.gathered().directories.push(Directory { path, files });
        }
        if !skipped {
            for directory in directories {
                scope.spawn(move |scope| self.visit(scope, &directory));
            }
        }
    }

    fn list(&self, directory: &Path) -> Listing {
        let mut listing = Listing::default();
        for entry in WalkDir::new(directory).min_depth(1).max_depth(1) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let path = error.path().unwrap_or(directory).to_path_buf();
                    let source = error
                        .into_io_error()
                        .unwrap_or_else(|| io::Error::other("loop"));
                    self.unreadable(&path, source);
                    continue;
                }
            };
            let name = entry.file_name();
            if entry.file_type().is_dir() {
                if !name.as_encoded_bytes().starts_with(b".") {
                    listing.directories.push(entry.into_path());
                }
            } else if is_configuration(name) {
                let plain = entry.file_type().is_file();
                listing.files.push((entry.into_path(), plain));
            } else if SKIP_MARKS.iter().any(|mark| name == OsStr::new(mark)) {
                listing.skipped = true;
            }
        }
        listing
    }

    fn read_file(&self, host: &Path, plain: bool) -> Option<ParsedFile> {
        let text = match read_text(host, plain, Some(self.root)) {
            Ok(text) => text,
            Err(TextError::Io(source)) => {
                self.unreadable(host, source);
                return None;
            }
            Err(TextError::Content(diagnostic)) => {
                let path = self.project_path(host)?;
                self.gathered().diagnostics.push(diagnostic.file(path));
                return None;
            }
        };
        let path = self.project_path(host)?;
        let id = FileId(self.next_file.fetch_add(1, Ordering::Relaxed));
        let parsed = parse(id, &text);
        let source = SourceFile {
            path: path.clone(),
            text,
        };
        let mut gathered = self.gathered();
        gathered.sources.push((id, source));
        let body = match parsed {
            Ok(body) => Arc::new(body),
            Err(diagnostic) => {
                gathered.diagnostics.push(*diagnostic);
                Arc::default()
            }
        };
        Some(ParsedFile { path, body })
    }

    /// Returns the place inside the project; a name that is not UTF-8 is reported.
    fn project_path(&self, host: &Path) -> Option<ProjectPath> {
        let path = ProjectPath::from_host(self.root, host);
        if path.is_none() {
            let message = format!("the path of `{}` is not UTF-8", host.display());
            let help = "rename the directory, or put an empty file `.orchskip` into it";
            self.gathered()
                .diagnostics
                .push(Diagnostic::error(message).help(help));
        }
        path
    }

    fn unreadable(&self, host: &Path, source: io::Error) {
        let path = host.strip_prefix(self.root).unwrap_or(host);
        let path = if path.as_os_str().is_empty() {
            host
        } else {
            path
        };
        let path = path.display().to_string();
        self.gathered().errors.push(ReadError { path, source });
    }

    fn finish(self) -> Found {
        let mut found = Found::default();
        let gathered = self.finish_into(&mut found.sources);
        found.directories = gathered.directories;
        found.nested_projects = gathered.nested_projects;
        found.diagnostics = gathered.diagnostics;
        found.errors = gathered.errors;
        found
    }

    /// Sorts what the tasks gathered and hands the texts over.
    fn finish_into(self, sources: &mut Sources) -> Gathered {
        let mut gathered = self
            .gathered
            .into_inner()
            .expect("no task panics while it holds this");
        gathered.sources.sort_unstable_by_key(|&(id, _)| id);
        for (id, source) in gathered.sources.drain(..) {
            let added = sources.add(source);
            assert_eq!(added, id, "files are numbered without gaps");
        }
        gathered
            .directories
            .sort_unstable_by(|a, b| a.path.cmp(&b.path));
        gathered.nested_projects.sort_unstable();
        gathered.errors.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        gathered
    }
}

#[derive(Default)]
struct Listing {
    /// With whether it is a plain file, not a link or worse.
    files: Vec<(PathBuf, bool)>,
    directories: Vec<PathBuf>,
    skipped: bool,
}

enum TextError {
    Io(io::Error),
    Content(Diagnostic),
}

/// Reads a configuration file.
///
/// What is not a plain file is looked at first: opening a pipe would wait for ever, and a link must
/// not lead out of the project `root`, whose diagnostics would show lines of foreign files.
fn read_text(host: &Path, plain: bool, root: Option<&Path>) -> Result<String, TextError> {
    let content =
        |message: String, help: &str| TextError::Content(Diagnostic::error(message).help(help));
    if !plain {
        let target = host.canonicalize().map_err(TextError::Io)?;
        if root.is_some_and(|root| !target.starts_with(root)) {
            return Err(content(
                "this configuration file is a link that leads out of the project".to_owned(),
                "copy the file into the project, or link to one inside it",
            ));
        }
        let kind = fs::metadata(&target).map_err(TextError::Io)?.file_type();
        if kind.is_dir() {
            return Err(TextError::Io(io::ErrorKind::IsADirectory.into()));
        } else if !kind.is_file() {
            return Err(TextError::Io(io::Error::other("not a regular file")));
        }
    }
    let mut bytes = Vec::with_capacity(1024);
    fs::File::open(host)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(TextError::Io)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(content(
            format!(
                "this configuration file is larger than {} MiB",
                MAX_FILE_BYTES >> 20
            ),
            "split it, or give it another name if it is not configuration",
        ));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let newlines = error.as_bytes()[..valid]
            .iter()
            .filter(|&&byte| byte == b'\n');
        content(
            format!(
                "this file is not UTF-8: line {} has a byte that is not text",
                newlines.count() + 1
            ),
            "save the file as UTF-8",
        )
    })
}
