//! Finds the project root and reads the configuration files below it.
//!
//! A task lists one directory, reads and parses its configuration files, and spawns tasks for the directories in it;
//! so waiting for a cold disk and parsing overlap. Results are sorted afterwards, so the order in which threads finish
//! has no effect.
//!
//! The walk skips dot directories, directories with a `.tmskip` or `.orchskip`, and other projects (directories below
//! the root with `orch { root = true }`). Symbolic links to directories are not followed, so loops of links cannot
//! occur; links to files are.
//!
//! This module knows the names of configuration files, and that one may declare a root; it interprets nothing else.

mod files;
mod listing;
mod names;
mod root;
mod text;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) use files::{FileKind, SourceTree, TreeIndex};
pub use files::{FileTree, TreeEntry};
pub(crate) use listing::{
    DirectoryListing, TERRAGRUNT_FILE, TERRAGRUNT_JSON_FILE, is_cache, is_override, is_terraform,
    is_terragrunt,
};
pub use listing::{Listing, ToolFiles};
pub(crate) use names::SKIP_MARKS;
pub use names::{is_configuration, is_skip_mark};
pub use root::{RootRule, RootUnknown, find_root};
pub(crate) use root::{declares_root, git_top_level};
use tracing::{debug, trace};

pub(crate) use self::text::{CONFIGURATION, SizeLimit, TextError, decode, read_text};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::parse::parse;
use crate::language::syntax::Body;
use crate::path::ProjectPath;
use crate::project::problems::{FileReadError, Problems};
use crate::source::{FileId, SourceFile, Sources, Span};

#[derive(Debug, Default)]
pub struct DiscoveredFiles {
    pub sources: Sources,
    /// The directories that have configuration files, by path.
    pub directories: Vec<Directory>,
    /// Directories below the root that are projects of their own, by path.
    pub nested_projects: Vec<ProjectPath>,
    /// Files and directories that could not be read or parsed completely.
    pub broken: Vec<ProjectPath>,
}

#[derive(Debug)]
pub struct Directory {
    pub path: ProjectPath,
    pub files: Vec<ParsedFile>,
}

#[derive(Debug, Clone)]
pub struct ParsedFile {
    pub path: ProjectPath,
    /// Its content; empty if it has a syntax error.
    pub body: Arc<Body>,
}

/// Reads all configuration files of the project, on the pool of threads that this is called on.
pub(crate) fn read(files: &SourceTree, problems: &mut Problems) -> DiscoveredFiles {
    read_project(ProjectReader::new(files, 0), problems).0
}

/// Does what [`read`] does, and also lists other files.
pub(crate) fn read_with_listing(
    files: &SourceTree,
    problems: &mut Problems,
) -> (DiscoveredFiles, Listing) {
    let reader = ProjectReader {
        lists: true,
        ..ProjectReader::new(files, 0)
    };
    read_project(reader, problems)
}

fn read_project(reader: ProjectReader, problems: &mut Problems) -> (DiscoveredFiles, Listing) {
    rayon::scope(|scope| reader.enter(scope, reader.root));
    let lists = reader.lists;
    let mut found = DiscoveredFiles::default();
    let gathered = reader
        .gathered
        .into_inner()
        .expect("no task panics while it holds this")
        .sorted(&mut found.sources);
    let mut listing = Listing {
        directories: gathered.listed.into_iter().collect(),
        left_out: gathered.left_out,
        parsed: Vec::new(),
    };
    // Another project is detected when its files have been parsed, while the walk continues.
    let nested: HashSet<ProjectPath> = gathered.nested_projects.iter().cloned().collect();
    let is_ours = |path: &ProjectPath| {
        let is_nested = |directory: &str| nested.contains(directory);
        nested.is_empty() || !is_nested(path.as_str()) && !path.ancestors().any(is_nested)
    };
    found.directories = gathered.directories;
    found
        .directories
        .retain(|directory| is_ours(&directory.path));
    if !nested.is_empty() {
        listing.directories.retain(|path, _| is_ours(path));
        listing.left_out.retain(is_ours);
    }
    if lists {
        let files = found
            .directories
            .iter()
            .flat_map(|it| &it.files)
            .filter(|file| !file.body.is_empty());
        listing.parsed = files.cloned().collect();
    }
    for (path, problem) in gathered.problems {
        if is_ours(&path) {
            found.add(path, problem, problems);
        }
    }
    found.nested_projects = gathered.nested_projects;
    debug!(
        files = found.sources.len(),
        directories = found.directories.len(),
        "configuration read"
    );
    (found, listing)
}

/// Reads an imported file, which need not have the name of a configuration file. If that fails, adds
/// the reason to `problems`.
pub(crate) fn read_one(
    files: &SourceTree,
    path: &ProjectPath,
    found: &mut DiscoveredFiles,
    problems: &mut Problems,
) -> Option<ParsedFile> {
    let reader = ProjectReader::new(files, found.sources.len());
    let mut gathered = GatheredFiles::default();
    let file = reader.read_file(&path.to_host(files.root), false, &mut gathered);
    for (path, problem) in gathered.sorted(&mut found.sources).problems {
        found.add(path, problem, problems);
    }
    file
}

impl DiscoveredFiles {
    fn add(&mut self, path: ProjectPath, problem: ReadProblem, problems: &mut Problems) {
        self.broken.push(path);
        match problem {
            ReadProblem::Text(diagnostic) => problems.diagnostics.push(*diagnostic),
            ReadProblem::Unreadable(error) => problems.errors.push(error),
        }
    }
}

/// The state that the tasks of a walk share.
struct ProjectReader<'a> {
    root: &'a Path,
    files: &'a SourceTree<'a>,
    lists: bool,
    next_file: AtomicU32,
    gathered: Mutex<GatheredFiles>,
}

#[derive(Default)]
struct GatheredFiles {
    sources: Vec<(FileId, SourceFile)>,
    directories: Vec<Directory>,
    listed: Vec<(ProjectPath, DirectoryListing)>,
    left_out: Vec<ProjectPath>,
    nested_projects: Vec<ProjectPath>,
    /// The problems, each with its file or directory.
    problems: Vec<(ProjectPath, ReadProblem)>,
}

enum ReadProblem {
    Text(Box<Diagnostic>),
    Unreadable(FileReadError),
}

struct DirectoryFiles {
    /// The configuration files, each with whether it is a plain file rather than a link or a special
    /// file.
    configuration: Vec<(PathBuf, bool)>,
    /// The other files, if requested.
    listed: Option<DirectoryListing>,
}

impl<'a> ProjectReader<'a> {
    fn new(files: &'a SourceTree<'a>, n_files: usize) -> Self {
        let next_file = u32::try_from(n_files).expect("fewer than four billion files");
        ProjectReader {
            root: files.root,
            files,
            lists: false,
            next_file: AtomicU32::new(next_file),
            gathered: Mutex::default(),
        }
    }

    fn gathered(&self) -> MutexGuard<'_, GatheredFiles> {
        self.gathered
            .lock()
            .expect("no task panics while it holds this")
    }

    /// Reads a directory, and spawns a task for each directory in it.
    fn enter<'s>(&'s self, scope: &rayon::Scope<'s>, directory: &Path) {
        trace!(directory = %directory.display(), "enter");
        let mut gathered = GatheredFiles::default();
        match self.files.entries(directory) {
            Ok(entries) => self.read_entries(scope, directory, entries, &mut gathered),
            Err(source) => {
                let problem = self.unreadable(directory, source);
                gathered.problems.push(problem);
            }
        }
        self.gathered().append(gathered);
    }

    fn read_entries<'s>(
        &'s self,
        scope: &rayon::Scope<'s>,
        directory: &Path,
        entries: Vec<(OsString, FileKind)>,
        gathered: &mut GatheredFiles,
    ) {
        let is_mark = |(name, kind): &(OsString, FileKind)| {
            *kind != FileKind::Directory && is_skip_mark(name)
        };
        let is_marked = entries.iter().any(is_mark);
        let leave_out = |directory: &Path, gathered: &mut GatheredFiles| {
            if self.lists {
                let path = ProjectPath::from_host(self.root, directory);
                gathered.left_out.extend(path);
            }
        };
        // The root's own configuration holds even where the mark empties the project.
        if is_marked && directory != self.root {
            leave_out(directory, gathered);
            return;
        }
        let mut files = DirectoryFiles {
            configuration: Vec::new(),
            listed: self.lists.then(DirectoryListing::default),
        };
        for (name, kind) in entries {
            if kind == FileKind::Directory {
                let path = directory.join(&name);
                match name.as_encoded_bytes() {
                    _ if is_marked || is_cache(&name) => {}
                    [b'.', ..] => leave_out(&path, gathered),
                    _ => scope.spawn(move |scope| self.enter(scope, &path)),
                }
                continue;
            }
            if is_skip_mark(&name) {
                continue;
            }
            if let Some(listed) = &mut files.listed {
                listed.add(&name, kind);
            }
            if is_configuration(&name) {
                let file = (directory.join(name), kind == FileKind::File);
                files.configuration.push(file);
            }
        }
        self.read_directory(directory, files, gathered);
    }

    fn read_directory(
        &self,
        directory: &Path,
        files: DirectoryFiles,
        gathered: &mut GatheredFiles,
    ) {
        let DirectoryFiles {
            configuration: mut files,
            listed,
        } = files;
        if files.is_empty() && listed.is_none() {
            return;
        }
        let Some(path) = ProjectPath::from_host(self.root, directory) else {
            if !files.is_empty() {
                gathered.problems.push(self.not_utf8(directory));
            }
            return;
        };
        if let Some(mut listed) = listed {
            listed.sort();
            gathered.listed.push((path.clone(), listed));
        }
        if files.is_empty() {
            return;
        }
        files.sort_unstable();
        let files: Vec<ParsedFile> = files
            .iter()
            .filter_map(|(file, plain)| self.read_file(file, *plain, gathered))
            .collect();
        if !path.is_root() && files.iter().any(|file| declares_root(&file.body)) {
            gathered.nested_projects.push(path);
        } else {
            gathered.directories.push(Directory { path, files });
        }
    }

    fn read_file(
        &self,
        host: &Path,
        plain: bool,
        gathered: &mut GatheredFiles,
    ) -> Option<ParsedFile> {
        let Some(path) = ProjectPath::from_host(self.root, host) else {
            gathered.problems.push(self.not_utf8(host));
            return None;
        };
        let (text, not_utf8) = match self.files.text(host, plain) {
            Ok(text) => (text, None),
            Err(TextError::NotUtf8 { text, offset }) => (text, Some(offset)),
            Err(TextError::Io(source)) => {
                gathered.problems.push(self.unreadable(host, source));
                return None;
            }
            Err(TextError::Refused { why, help }) => {
                let diagnostic =
                    Diagnostic::error(Code::Unreadable, format!("`{}` {why}", path.relative()));
                let diagnostic = Box::new(diagnostic.file(path.clone()).help(help));
                gathered
                    .problems
                    .push((path, ReadProblem::Text(diagnostic)));
                return None;
            }
        };
        let id = FileId(self.next_file.fetch_add(1, Ordering::Relaxed));
        let parsed = match not_utf8 {
            None => parse(id, &text),
            Some(offset) => {
                let span = Span {
                    file: id,
                    start: offset,
                    end: offset,
                };
                let diagnostic = Diagnostic::error(Code::Encoding, "this file is not UTF-8")
                    .label(span, "the first byte that is not text");
                Err(Box::new(diagnostic.help("save the file as UTF-8")))
            }
        };
        gathered.sources.push((
            id,
            SourceFile {
                path: path.clone(),
                text,
            },
        ));
        let body = match parsed {
            Ok(body) => Arc::new(body),
            Err(diagnostic) => {
                gathered
                    .problems
                    .push((path.clone(), ReadProblem::Text(diagnostic)));
                Arc::default()
            }
        };
        Some(ParsedFile { path, body })
    }

    fn not_utf8(&self, host: &Path) -> (ProjectPath, ReadProblem) {
        let message = format!("the path of `{}` is not UTF-8", host.display());
        let help = "rename it, or put an empty file `.orchskip` into the directory";
        let diagnostic = Box::new(Diagnostic::error(Code::Encoding, message).help(help));
        (self.nearest(host), ReadProblem::Text(diagnostic))
    }

    fn unreadable(&self, host: &Path, source: io::Error) -> (ProjectPath, ReadProblem) {
        let path = host.strip_prefix(self.root).unwrap_or(host);
        let path = if path.as_os_str().is_empty() {
            host
        } else {
            path
        };
        let error = FileReadError {
            path: path.display().to_string(),
            source,
        };
        (self.nearest(host), ReadProblem::Unreadable(error))
    }

    /// Returns the path itself, or the nearest parent with a valid name.
    fn nearest(&self, host: &Path) -> ProjectPath {
        let mut places = host
            .ancestors()
            .map(|host| ProjectPath::from_host(self.root, host));
        places
            .find_map(|place| place)
            .unwrap_or_else(ProjectPath::root)
    }
}

impl GatheredFiles {
    fn append(&mut self, mut other: GatheredFiles) {
        self.sources.append(&mut other.sources);
        self.directories.append(&mut other.directories);
        self.listed.append(&mut other.listed);
        self.left_out.append(&mut other.left_out);
        self.nested_projects.append(&mut other.nested_projects);
        self.problems.append(&mut other.problems);
    }

    /// Sorts the results of the tasks, and hands the texts over.
    fn sorted(mut self, sources: &mut Sources) -> Self {
        self.sources.sort_unstable_by_key(|(id, _)| id.0);
        for (id, source) in self.sources.drain(..) {
            let added = sources.add(source);
            assert_eq!(added, id, "files are numbered without gaps");
        }
        self.directories
            .sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.left_out.sort_unstable();
        self.nested_projects.sort_unstable();
        // The sort is stable: all problems of one directory arise in one task.
        self.problems.sort_by(|(a, _), (b, _)| a.cmp(b));
        self
    }
}
