//! The inputs of one directory of Terraform files.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::constants::{Constants, path_of};
use super::extract::{
    self, CallText, ComputedRead, Dependency, NamedInput, PathBase, ReadCall, is_absolute,
};
use super::json::json;
use super::json_body::{self, BlockKind};
use super::links;
use super::node::{InputNode, RootRead};
use super::text::{self, LineStarts};
use super::tree::{NoModule, Tree, place_read};
use crate::change::call::ModuleCall;
use crate::change::cause::{InputLocation, Location, Use, UseKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::git::ChangedFile;
use crate::language::parse::parse_whole;
use crate::language::syntax::Body;
use crate::on_disk::if_there;
use crate::path::ProjectPath;
use crate::printable::printable;
use crate::project::discover::{is_override, is_terraform};
use crate::source::{FileId, Span};

const WORKSPACES: [BlockKind; 1] = [BlockKind::new("workspaces", 0)];

const JSON_KINDS: [BlockKind; 4] = [
    BlockKind {
        inner: &[
            BlockKind {
                inner: &WORKSPACES,
                ..BlockKind::new("backend", 1)
            },
            BlockKind {
                inner: &WORKSPACES,
                ..BlockKind::new("cloud", 0)
            },
        ],
        ..BlockKind::new("terraform", 0)
    },
    BlockKind::new("data", 2),
    BlockKind::new("locals", 0),
    BlockKind::new("variable", 1),
];

/// Reads the files of a directory into a node. A directory that the walk did not see is a module in a place
/// without stacks, and is listed from disk.
pub(super) fn node<'a>(
    tree: &Tree<'a>,
    directory: &ProjectPath,
    buffer: &mut Vec<u8>,
) -> InputNode<'a> {
    let mut node = InputNode::new(tree, directory.clone());
    let from_disk;
    let files = if let Some(listed) = tree.listing().get(directory.as_str()) {
        &listed.files
    } else {
        from_disk = files_on_disk(tree, directory).unwrap_or_else(|error| {
            tree.problems.unreadable(directory, error);
            Vec::new()
        });
        &from_disk
    };
    let mut computed: Vec<ComputedFile> = Vec::new();
    // The earlier rules have already found these.
    let any_changed = tree.changed().below(directory).next().is_some();
    let mut host = directory.to_host(tree.root());
    for (name, plain) in files {
        if !is_terraform(name) {
            continue;
        }
        let file = directory.join(&name.to_string_lossy());
        host.push(name);
        let read = text::read(tree, &file, &host, *plain, buffer);
        host.pop();
        // Links in directories that the walk saw are examined elsewhere.
        if !plain {
            links::take(tree, &file, &mut node);
        }
        let Some(text) = read else {
            continue;
        };
        let is_changed = || any_changed && tree.changed().at(file.as_str()).is_some();
        if !is_json(name) && !extract::is_worth_parsing(text) && !is_changed() {
            continue;
        }
        match named(name, text, tree.takes_calls) {
            Ok(named) if named.is_empty() => {}
            Ok(named) => {
                let is_text = |named: &NamedInput| {
                    !matches!(
                        named.what,
                        Dependency::Computed(..) | Dependency::ComputedRead(_)
                    )
                };
                let (named, others): (Vec<_>, Vec<_>) = named.into_iter().partition(is_text);
                TerraformFile {
                    tree,
                    directory,
                    path: &file,
                    text,
                    lines: LineStarts::new(text),
                }
                .add(named, &mut node);
                if !others.is_empty() {
                    let (path, text, named) = (file, text.to_owned(), others);
                    computed.push(ComputedFile { path, text, named });
                }
            }
            Err(diagnostic) => text::broken(tree, &file, text, *diagnostic),
        }
    }
    if !computed.is_empty() {
        let bodies = definitions(tree, directory, files, buffer);
        let constants = Constants::new(&bodies);
        for file in computed {
            file.add(tree, directory, &constants, &mut node);
        }
    }
    node
}

/// Returns the files of a directory that may define locals and variables; those that override others come last.
pub(super) fn definitions(
    tree: &Tree,
    directory: &ProjectPath,
    files: &[(OsString, bool)],
    buffer: &mut Vec<u8>,
) -> Vec<Body> {
    let files = in_merge_order(files).into_iter();
    let parsed = files.filter_map(|(name, plain)| {
        let file = directory.join(&name.to_string_lossy());
        let text = text::read(tree, &file, &file.to_host(tree.root()), *plain, buffer)?;
        let defines = text.contains("locals") || text.contains("variable");
        // A syntax error is reported elsewhere.
        defines.then(|| parse(name, text).ok())?
    });
    parsed.collect()
}

/// Returns the Terraform files among others, in the order in which Terraform merges them.
pub(super) fn in_merge_order(files: &[(OsString, bool)]) -> Vec<&(OsString, bool)> {
    let files = files.iter().filter(|(name, _)| is_terraform(name));
    let mut files: Vec<&(OsString, bool)> = files.collect();
    files.sort_by_key(|(name, _)| is_override(name));
    files
}

/// Parses a file; in JSON, only the blocks of a backend, of data, and of constants.
pub(super) fn parse(name: &OsStr, text: &str) -> Result<Body, Box<Diagnostic>> {
    if is_json(name) {
        json_body::only_blocks(text, &JSON_KINDS)
    } else {
        parse_whole(FileId::UNPLACED, text)
    }
}

fn is_json(name: &OsStr) -> bool {
    name.as_encoded_bytes().ends_with(b".json")
}

/// A file with paths that have to be evaluated.
struct ComputedFile {
    path: ProjectPath,
    text: String,
    named: Vec<NamedInput>,
}

impl ComputedFile {
    fn add<'a>(
        self,
        tree: &Tree<'a>,
        directory: &ProjectPath,
        constants: &Constants,
        node: &mut InputNode<'a>,
    ) {
        let file = TerraformFile {
            tree,
            directory,
            path: &self.path,
            text: &self.text,
            lines: LineStarts::new(&self.text),
        };
        for NamedInput { span, what } in self.named {
            let unknown = match what {
                Dependency::Computed(name, source) => {
                    if let Some(text) = constants.text(&source) {
                        file.add_newer(span, module_of(&text), node);
                        continue;
                    }
                    unknown_module(&name, span, file.path)
                }
                Dependency::ComputedRead(read) => {
                    if let Some((text, pattern)) = texts(&read, constants) {
                        let read = path_of(text).map(|(base, path)| ReadCall {
                            function: read.reader,
                            base,
                            path: path.into(),
                            pattern,
                        });
                        file.add_newer(span, read.map(Dependency::Read), node);
                    } else {
                        let location = file.location(span);
                        let kind = UseKind::Read(read.reader);
                        node.unknown.push(Use { kind, location });
                    }
                    continue;
                }
                _ => continue,
            };
            tree.problems.add(file.path, file.text, unknown);
        }
    }
}

/// Returns a path and its pattern as texts, if they are constant.
fn texts(read: &ComputedRead, constants: &Constants) -> Option<(String, Option<Box<str>>)> {
    let pattern = match &read.pattern {
        Some(pattern) => Some(constants.text(pattern)?.into()),
        None => None,
    };
    Some((constants.text(&read.path)?, pattern))
}

/// Returns the module that a text names as a source.
fn module_of(text: &str) -> Option<Dependency> {
    match path_of(text.to_owned()) {
        Some((PathBase::Module, path)) => extract::local_module(&path),
        _ => extract::local_module(text),
    }
}

/// Checks the changed files in directories that were not read.
pub(super) fn check_changed(tree: &Tree, has_read: impl Fn(&ProjectPath) -> bool + Sync) {
    let changed: Vec<&ChangedFile> = tree.changed().iter().collect();
    changed
        .into_par_iter()
        .for_each_init(Vec::new, |buffer, file| {
            let name = OsStr::new(file.path.basename());
            let directory = file.path.parent().unwrap_or_else(ProjectPath::root);
            if !is_terraform(name) || has_read(&directory) {
                return;
            }
            let host = file.path.to_host(tree.root());
            if let Some(text) = text::read(tree, &file.path, &host, false, buffer)
                && let Err(diagnostic) = named(name, text, false)
            {
                text::broken(tree, &file.path, text, *diagnostic);
            }
        });
}

/// Returns the dependencies of a file; with `calls`, also modules outside of the project.
fn named(name: &OsStr, text: &str, calls: bool) -> Result<Vec<NamedInput>, Box<Diagnostic>> {
    if is_json(name) {
        json(text, calls)
    } else {
        extract::native(text, calls)
    }
}

/// Returns the Terraform files of a directory, each with whether it is a regular file.
fn files_on_disk(tree: &Tree, directory: &ProjectPath) -> io::Result<Vec<(OsString, bool)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory.to_host(tree.root()))? {
        let entry = entry?;
        let name = entry.file_name();
        if is_terraform(&name)
            && let Some(kind) = if_there(DirEntry::file_type(&entry))?
            && !kind.is_dir()
        {
            files.push((name, kind.is_file()));
        }
    }
    files.sort_unstable();
    Ok(files)
}

struct TerraformFile<'f, 'a> {
    tree: &'f Tree<'a>,
    directory: &'f ProjectPath,
    path: &'f ProjectPath,
    text: &'f str,
    lines: LineStarts,
}

impl<'a> TerraformFile<'_, 'a> {
    fn location(&self, span: Option<Span>) -> Location {
        Location {
            file: self.path.clone(),
            line: span.map(|span| self.lines.at(span)),
        }
    }

    /// Adds an input that the first digest rules did not follow.
    fn add_newer(&self, span: Option<Span>, what: Option<Dependency>, node: &mut InputNode<'a>) {
        let named = what.map(|what| NamedInput { span, what });
        node.has_newer |= named.is_some();
        self.add(named.into_iter().collect(), node);
    }

    fn add(&self, named: Vec<NamedInput>, node: &mut InputNode<'a>) {
        for NamedInput { span, what } in named {
            let location = self.location(span);
            match what {
                Dependency::Module(source) => self.module(source, span, location, node),
                Dependency::Computed(..) | Dependency::ComputedRead(_) => {}
                Dependency::Read(read) => self.read(read, span, location, node),
                Dependency::Elsewhere(call) => {
                    let CallText {
                        name,
                        source,
                        is_open,
                        version,
                    } = *call;
                    node.calls.push(ModuleCall {
                        name,
                        source,
                        is_open,
                        version,
                        location,
                    });
                }
            }
        }
    }

    fn module(
        &self,
        source: Box<str>,
        span: Option<Span>,
        location: Location,
        node: &mut InputNode<'a>,
    ) {
        let directory = self.tree.links().resolve(self.directory, &source);
        if directory.is_none() && is_absolute(&source) {
            return; // it is no part of the project
        }
        let module = directory.map(|directory| (self.tree.module(&directory), directory));
        let absent = module
            .as_ref()
            .map_or(Some(NoModule::Outside), |(module, _)| {
                module.directory.as_ref().err().copied()
            });
        if let Some(absent) = absent {
            let diagnostic = absent_module(&source, absent, span, self.path);
            self.tree.problems.add(self.path, self.text, diagnostic);
        }
        let Some((module, directory)) = module else {
            return;
        };
        let step = Use {
            kind: UseKind::Module(source),
            location,
        };
        node.module(vec![step], &module, || Some(InputLocation::Path(directory)));
    }

    fn read(
        &self,
        read: ReadCall,
        span: Option<Span>,
        location: Location,
        node: &mut InputNode<'a>,
    ) {
        let step = Use {
            kind: UseKind::Read(read.function),
            location,
        };
        let (path, pattern) = (read.path, read.pattern);
        match read.base {
            PathBase::Module => {
                let Some(location) = self.tree.links().resolve(self.directory, &path) else {
                    if is_absolute(&path) {
                        return;
                    }
                    let diagnostic = outside(&path, span, self.path);
                    self.tree.problems.add(self.path, self.text, diagnostic);
                    return;
                };
                let touch = self.tree.touch_read(&location, pattern.as_deref());
                let location = || place_read(location, pattern.as_deref());
                node.input(std::slice::from_ref(&step), touch, location);
            }
            PathBase::Root => node.root_reads.push(RootRead {
                step,
                span,
                path,
                pattern,
                is_warned_of: AtomicBool::new(false),
            }),
        }
    }
}

/// Returns the place that is read relative to a stack, or warns that it is outside of the project.
pub(super) fn root_read(tree: &Tree, stack: &ProjectPath, read: &RootRead) -> Option<ProjectPath> {
    let path = tree.links().resolve(stack, &read.path);
    if path.is_none() {
        warn_of_root_read(tree, read);
    }
    path
}

/// Warns once that a file read relative to a stack is outside of the project.
fn warn_of_root_read(tree: &Tree, read: &RootRead) {
    if read.is_warned_of.swap(true, Ordering::Relaxed) {
        return;
    }
    let file = &read.step.location.file;
    let mut buffer = Vec::new();
    // The text was dropped, since hardly any file needs it again.
    let host = file.to_host(tree.root());
    if let Some(text) = text::read(tree, file, &host, false, &mut buffer) {
        let diagnostic = outside(&read.path, read.span, file);
        tree.problems.add(file, text, diagnostic);
    }
}

fn unknown_module(name: &str, span: Option<Span>, file: &ProjectPath) -> Diagnostic {
    let name = printable(name);
    let diagnostic = if let Some(span) = span {
        let message = format!("the source of module `{name}` cannot be determined");
        Diagnostic::warning(Code::UnknownModule, message)
            .label(span, "more than text and `path.module`")
    } else {
        let user = printable(file.relative());
        let message =
            format!("the source of module `{name}`, which `{user}` uses, cannot be determined");
        Diagnostic::warning(Code::UnknownModule, message).file(file.clone())
    };
    diagnostic.note("changes of it go unnoticed")
}

fn outside(path: &str, span: Option<Span>, file: &ProjectPath) -> Diagnostic {
    let path = printable(path);
    let diagnostic = if let Some(span) = span {
        let message = format!("the path `{path}` leads out of the project");
        Diagnostic::warning(Code::OutsideProject, message)
            .label(span, "reads a file outside of the project")
    } else {
        let user = printable(file.relative());
        let message = format!("the path `{path}`, which `{user}` reads, leads out of the project");
        Diagnostic::warning(Code::OutsideProject, message).file(file.clone())
    };
    diagnostic.note("changes there go unnoticed")
}

pub(super) fn absent_module(
    source: &str,
    absent: NoModule,
    span: Option<Span>,
    file: &ProjectPath,
) -> Diagnostic {
    let (code, what, label, help) = match absent {
        NoModule::Outside => (
            Code::OutsideProject,
            "leads out of the project",
            "not below the project root",
            "changes there go unnoticed; move the module into the project",
        ),
        NoModule::Missing => (
            Code::UnknownModule,
            "does not exist",
            "no such directory",
            "correct the path; changes of this module go unnoticed",
        ),
    };
    let source = printable(source);
    let diagnostic = if let Some(span) = span {
        Diagnostic::warning(code, format!("the module `{source}` {what}")).label(span, label)
    } else {
        let user = printable(file.relative());
        let message = format!("the module `{source}`, which `{user}` uses, {what}");
        Diagnostic::warning(code, message).file(file.clone())
    };
    diagnostic.help(help)
}
