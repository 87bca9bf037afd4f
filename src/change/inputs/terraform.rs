//! The inputs of one directory of Terraform files.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::constants::{Constants, PossibleValues, path_of};
use super::definitions::{definitions, files, is_json};
use super::extract::{
    self, CallText, ComputedRead, Dependency, NamedInput, PathBase, READERS, ReadCall, is_absolute,
};
use super::json::json;
use super::links;
use super::node::{InputNode, RootRead, VariableRead, VariableSource};
use super::settings::Settings;
use super::text::{self, LineStarts};
use super::tree::{NoModule, Tree, place_read};
use crate::change::call::ModuleCall;
use crate::change::cause::{InputLocation, Location, Use, UseKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::git::ChangedFile;
use crate::language::syntax::{Body, Expr};
use crate::path::ProjectPath;
use crate::printable::printable;
use crate::project::discover::is_terraform;
use crate::source::Span;

/// Reads the files of a directory into a node.
pub(super) fn node<'a>(
    tree: &Tree<'a>,
    directory: &ProjectPath,
    buffer: &mut Vec<u8>,
) -> InputNode<'a> {
    let mut node = InputNode::new(tree, directory.clone());
    let mut computed: Vec<ComputedFile> = Vec::new();
    // The earlier rules have already found these.
    let any_changed = tree.changed().below(directory).next().is_some();
    let mut host = directory.to_host(tree.root());
    for (name, plain) in files(tree, directory).iter() {
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
        let bodies = definitions(tree, directory);
        for file in computed {
            file.add(tree, directory, &bodies, &mut node);
        }
    }
    node
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
        definitions: &[Body],
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
            match what {
                Dependency::Computed(name, source) => {
                    file.computed_module(&name, &source, span, definitions, node);
                }
                Dependency::ComputedRead(read) => {
                    file.computed_read(*read, span, definitions, node);
                }
                _ => {}
            }
        }
    }
}

/// A path and its pattern as texts.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReadTexts {
    pub(super) path: String,
    pub(super) pattern: Option<Box<str>>,
    /// Whether what is read is only known to be among what the pattern matches.
    pub(super) is_vague: bool,
}

impl ReadTexts {
    /// Returns them if they are constant.
    fn constant(read: &ComputedRead, constants: &Constants) -> Option<Self> {
        let pattern = match &read.pattern {
            Some(pattern) => Some(constants.text(pattern)?.into()),
            None => None,
        };
        Some(ReadTexts {
            path: constants.text(&read.path)?,
            pattern,
            is_vague: false,
        })
    }

    /// Returns them if at least the beginning of the path is constant.
    pub(super) fn possible(read: &ComputedRead, constants: &Constants) -> Option<Self> {
        Self::constant(read, constants).or_else(|| {
            let is_set = read.pattern.is_some();
            let path = constants.text(&read.path).filter(|_| is_set);
            let path = path.or_else(|| constants.directory(&read.path))?;
            // Others may read everything below what they name.
            let is_of_file = !is_set && READERS.contains(&&*read.reader);
            let pattern = if is_of_file {
                constants.names(&read.path)
            } else {
                "**".to_owned()
            };
            Some(ReadTexts {
                path,
                pattern: Some(pattern.into()),
                is_vague: true,
            })
        })
    }
}

/// Returns the module that a text names as a source.
fn module_of(name: &str, text: &str) -> Option<Dependency> {
    match path_of(text.to_owned()) {
        Some((PathBase::Module, path)) => extract::local_module(name, &path),
        _ => extract::local_module(name, text),
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

    /// Adds a module whose source has to be evaluated. A variable has the values of a root module.
    fn computed_module(
        &self,
        name: &str,
        source: &Expr,
        span: Option<Span>,
        definitions: &[Body],
        node: &mut InputNode<'a>,
    ) {
        let settings = Settings::new(self.tree, self.directory, self.directory);
        let variable = |name: &str| settings.values(definitions, name, Vec::new()).into();
        let constants = Constants::new(definitions, &variable);
        let mut sources = constants.for_each_combination(|| constants.text(source));
        sources.sort_unstable();
        sources.dedup();
        for source in sources {
            match source {
                Some(text) => self.add_newer(span, module_of(name, &text), node),
                None => self.unknown_source(name, span),
            }
        }
        let variables = constants.used();
        if !variables.is_empty() {
            node.variable_sources.push(VariableSource {
                name: name.into(),
                file: self.path.clone(),
                span,
                variables: variables.into_iter().collect(),
            });
        }
    }

    fn unknown_source(&self, name: &str, span: Option<Span>) {
        let diagnostic = unknown_module(name, span, self.path);
        self.tree.problems.add(self.path, self.text, diagnostic);
    }

    /// Adds a read whose path has to be evaluated, now or for each stack.
    fn computed_read(
        &self,
        read: ComputedRead,
        span: Option<Span>,
        definitions: &[Body],
        node: &mut InputNode<'a>,
    ) {
        let location = self.location(span);
        let step = || Use {
            kind: UseKind::Read(read.reader.clone()),
            location,
        };
        let unknown = |_: &str| -> PossibleValues { [None].into() };
        let constants = Constants::new(definitions, &unknown);
        let found = ReadTexts::constant(&read, &constants);
        if found.is_none() || !constants.used().is_empty() {
            node.variable_reads.push(VariableRead {
                step: step(),
                span,
                read,
                is_warned_of: AtomicBool::new(false),
            });
        } else if let Some(found) = found {
            let read = path_of(found.path).map(|(base, path)| ReadCall {
                function: read.reader,
                base,
                path: path.into(),
                pattern: found.pattern,
            });
            self.add_newer(span, read.map(Dependency::Read), node);
        }
    }

    fn add(&self, named: Vec<NamedInput>, node: &mut InputNode<'a>) {
        for NamedInput { span, what } in named {
            let location = self.location(span);
            match what {
                Dependency::Module(name, source) => {
                    self.module(name, source, span, location, node);
                }
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
        name: Box<str>,
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
        let place = || Some(InputLocation::Path(directory));
        node.module(Some(name), vec![step], &module, place);
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
    if path.is_none() && !read.is_warned_of.swap(true, Ordering::Relaxed) {
        let file = &read.step.location.file;
        warn(tree, file, outside(&read.path, read.span, file));
    }
    path
}

/// Returns the place that is read at a path that depends on variables, or warns that it is outside of the
/// project.
pub(super) fn variable_read(
    tree: &Tree,
    module: &ProjectPath,
    stack: &ProjectPath,
    read: &VariableRead,
    (base, path): (PathBase, &str),
) -> Option<ProjectPath> {
    let from = match base {
        PathBase::Module => module,
        PathBase::Root => stack,
    };
    let place = tree.links().resolve(from, path);
    if place.is_none() && !is_absolute(path) && !read.is_warned_of.swap(true, Ordering::Relaxed) {
        let file = &read.step.location.file;
        warn(tree, file, outside(path, read.span, file));
    }
    place
}

/// Warns that a caller sets a variable on which the source of a module depends.
pub(super) fn warn_of_source(tree: &Tree, source: &VariableSource) {
    let diagnostic = unknown_module(&source.name, source.span, &source.file);
    warn(tree, &source.file, diagnostic);
}

/// Adds a problem of a file whose text was dropped, since hardly any file needs it again.
fn warn(tree: &Tree, file: &ProjectPath, diagnostic: Diagnostic) {
    let mut buffer = Vec::new();
    let host = file.to_host(tree.root());
    if let Some(text) = text::read(tree, file, &host, false, &mut buffer) {
        tree.problems.add(file, text, diagnostic);
    }
}

fn unknown_module(name: &str, span: Option<Span>, file: &ProjectPath) -> Diagnostic {
    let name = printable(name);
    let diagnostic = if let Some(span) = span {
        let message = format!("the source of module `{name}` cannot be determined");
        Diagnostic::warning(Code::UnknownModule, message).label(span, "not a constant path")
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
