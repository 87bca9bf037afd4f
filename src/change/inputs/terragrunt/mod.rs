//! What Terragrunt reads for a stack: includes, configuration and variables that functions read, and
//! the module that it runs.
//!
//! What a file says depends on the stack that reads it, so only its syntax is kept. Dependencies on
//! other units are no inputs: that another unit changed says nothing about this one.

mod names;
mod terraform;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, RwLock};

use self::names::Names;
use super::extract::READERS;
use super::graph::{MAX_CHAIN, Node};
use super::text::{self, Lines};
use super::tree::{MAX_PATH_BYTES, Tree};
use crate::change::{InputPlace, Place, Use, UseKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::parse::parse_whole;
use crate::language::syntax::{Block, Body, Expr};
use crate::path::ProjectPath;
use crate::printable::printable;
use crate::project::discover::{TERRAGRUNT_FILE, TERRAGRUNT_JSON_FILE};
use crate::source::Span;

/// Functions that read the file that their first argument names, besides those of Terraform.
const OWN_READERS: [&str; 3] = [
    "read_terragrunt_config",
    "read_tfvars_file",
    "sops_decrypt_file",
];

/// Reads what Terragrunt does in stacks; shared by all threads.
pub(super) struct Units<'t, 'a> {
    tree: &'t Tree<'a>,
    /// The root on this machine as text: Terragrunt works with absolute paths.
    root: String,
    /// The root of the repository as text: the project's own or one above.
    repository: String,
    /// The files that stacks share; `None` for those that cannot be read.
    shared: RwLock<HashMap<ProjectPath, Option<Arc<File>>>>,
    /// Which files exist that a stack below could find.
    parents: RwLock<HashMap<ProjectPath, bool>>,
}

/// A file of Terragrunt's.
struct File {
    path: ProjectPath,
    text: String,
    body: Body,
    lines: Lines,
}

/// How a file takes part in what a stack does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It is the stack's own.
    Own,
    /// `include` merges it into the stack's own.
    Included,
    /// `read_terragrunt_config` reads it.
    Read,
}

/// A file that is to be read for a stack.
struct Visit {
    file: ProjectPath,
    role: Role,
    /// The directory that `get_terragrunt_dir()` gives in it.
    directory: ProjectPath,
    /// How one gets to it from the stack.
    steps: Vec<Use>,
}

impl<'t, 'a> Units<'t, 'a> {
    /// Starts to read.
    pub(super) fn new(tree: &'t Tree<'a>) -> Self {
        let text = |path: &Path| path.to_string_lossy().trim_end_matches('/').to_owned();
        let mut around = tree.root.ancestors();
        let repository = around.find(|directory| directory.join(".git").exists());
        Units {
            tree,
            root: text(tree.root),
            repository: text(repository.unwrap_or(tree.root)),
            shared: RwLock::default(),
            parents: RwLock::default(),
        }
    }

    /// Reads what Terragrunt does in a stack; `None` if it does nothing there.
    pub(super) fn node(&self, stack: &ProjectPath) -> Option<Node<'a>> {
        let listed = self.tree.listing.get(stack.as_str())?;
        let has = |wanted| listed.files.iter().any(|(name, _)| name == wanted);
        if !has(TERRAGRUNT_FILE) {
            if has(TERRAGRUNT_JSON_FILE) {
                self.warn_of_json(&stack.join(TERRAGRUNT_JSON_FILE));
            }
            return None;
        }
        let mut reading = Reading {
            units: self,
            stack,
            node: Node::new(self.tree, stack.clone()),
            open: VecDeque::from([Visit {
                file: stack.join(TERRAGRUNT_FILE),
                role: Role::Own,
                directory: stack.clone(),
                steps: Vec::new(),
            }]),
            seen: HashSet::new(),
        };
        while let Some(visit) = reading.open.pop_front() {
            if !reading.seen.insert(visit.file.clone()) {
                continue;
            }
            let file = match visit.role {
                Role::Own => self.parse(&visit.file).map(Arc::new),
                Role::Included | Role::Read => self.shared(&visit.file),
            };
            if let Some(file) = file {
                reading.visit(&file, &visit);
            }
        }
        Some(reading.node)
    }

    fn warn_of_json(&self, file: &ProjectPath) {
        let message = format!("`{}` is not read", printable(file.relative()));
        let diagnostic = Diagnostic::warning(Code::UnsupportedFile, message).file(file.clone());
        let diagnostic = diagnostic.note("changes of what this file uses cannot be seen");
        let problems = self.tree.problems;
        problems.add(file, "", diagnostic.help("write it as `terragrunt.hcl`"));
    }

    fn shared(&self, path: &ProjectPath) -> Option<Arc<File>> {
        let known = self
            .shared
            .read()
            .expect("no task panics")
            .get(path)
            .cloned();
        known.unwrap_or_else(|| {
            let file = self.parse(path).map(Arc::new);
            let mut shared = self.shared.write().expect("no task panics");
            shared.insert(path.clone(), file.clone());
            file
        })
    }

    fn parse(&self, path: &ProjectPath) -> Option<File> {
        let mut buffer = Vec::new();
        let host = path.to_host(self.tree.root);
        let text = text::read(self.tree, path, &host, false, &mut buffer)?;
        match parse_whole(text::NO_FILE, text) {
            Ok(body) => Some(File {
                path: path.clone(),
                text: text.to_owned(),
                body,
                lines: Lines::new(text),
            }),
            Err(diagnostic) => {
                text::broken(self.tree, path, text, *diagnostic);
                None
            }
        }
    }

    /// Returns the place that a text names, from a directory or as an absolute path.
    fn locate(&self, text: &str, directory: &ProjectPath) -> Option<ProjectPath> {
        if text.is_empty() || text.len() > MAX_PATH_BYTES || text.starts_with('~') {
            return None;
        }
        let inside = text.strip_prefix(&*self.root);
        match inside.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(inside) => ProjectPath::root().resolve(inside).ok(),
            None if text.starts_with('/') => None,
            None => self.tree.resolve(directory, text),
        }
        .or_else(|| self.tree.resolve_by_detour(text))
    }

    /// Says whether an absolute path begins in the repository.
    fn is_in_repository(&self, text: &str) -> bool {
        let rest = text.strip_prefix(&*self.repository);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the path from the root of the repository to that of the project; empty if they are
    /// one.
    fn project_in_repository(&self) -> &str {
        self.root[self.repository.len()..].trim_start_matches('/')
    }

    /// Returns a place as Terragrunt writes it.
    fn absolute(&self, path: &ProjectPath) -> String {
        if path.is_root() && !self.root.is_empty() {
            self.root.clone()
        } else {
            format!("{}{path}", self.root)
        }
    }

    /// Returns where `find_in_parent_folders` looks, nearest first.
    fn parents<'p>(
        directory: &'p ProjectPath,
        names: &'p [&str],
    ) -> impl Iterator<Item = ProjectPath> + 'p {
        let places = directory.ancestors().flat_map(move |parent| {
            let parent = ProjectPath::from_normal(parent);
            names.iter().map(move |name| parent.resolve(name).ok())
        });
        places.flatten()
    }

    /// Says whether there is anything at a place.
    fn exists(&self, path: &ProjectPath) -> bool {
        let known = self.parents.read().expect("no task panics");
        if let Some(&exists) = known.get(path) {
            return exists;
        }
        drop(known);
        let exists = path.to_host(self.tree.root).exists();
        let mut known = self.parents.write().expect("no task panics");
        known.insert(path.clone(), exists);
        exists
    }
}

/// The reading of all files of one stack.
struct Reading<'r, 't, 'a> {
    units: &'r Units<'t, 'a>,
    stack: &'r ProjectPath,
    node: Node<'a>,
    open: VecDeque<Visit>,
    seen: HashSet<ProjectPath>,
}

impl Reading<'_, '_, '_> {
    fn visit(&mut self, file: &File, visit: &Visit) {
        let mut names = Names::new(self.units, self.stack, file, visit);
        for include in file.body.blocks("include") {
            self.include(include, &mut names);
        }
        file.body
            .each_call(&mut |name, arguments| match &*name.text {
                "find_in_parent_folders" => self.found_in_parents(name.span, arguments, &names),
                function if READERS.contains(&function) || OWN_READERS.contains(&function) => {
                    if let Some(argument) = arguments.first() {
                        self.read(function, name.span, argument, &names);
                    }
                }
                _ => {}
            });
        for terraform in file.body.blocks("terraform") {
            self.extra_arguments(terraform, &names);
            if visit.role != Role::Read {
                self.source(terraform, &names);
            }
        }
    }

    /// Takes in what `include` names, and remembers where it lies.
    fn include(&mut self, include: &Block, names: &mut Names) {
        let Some(path) = include.body.attribute("path") else {
            return;
        };
        let Some(text) = names.text(&path.value) else {
            return;
        };
        let found = self.input(
            "include",
            path.value.span,
            &text,
            names,
            Some(Role::Included),
        );
        if let Some(directory) = found.and_then(|file| file.parent()) {
            let label = include.labels.first().map(|label| label.text.clone());
            names.includes.push((label.unwrap_or_default(), directory));
        }
    }

    fn read(&mut self, function: &str, span: Span, argument: &Expr, names: &Names) {
        let role = (function == "read_terragrunt_config").then_some(Role::Read);
        if let Some(text) = names.text(argument) {
            self.input(function, span, &text, names, role);
        }
    }

    /// Takes in that a file is read, from each of the directories that it may be relative to. If it
    /// is to be read as well, returns where it is.
    fn input(
        &mut self,
        what: &str,
        span: Span,
        text: &str,
        names: &Names,
        role: Option<Role>,
    ) -> Option<ProjectPath> {
        let steps = names.steps(what, span);
        let units = self.units;
        let places = names.bases().filter_map(|base| units.locate(text, base));
        let places: Vec<ProjectPath> = places.collect();
        let mut found = None;
        for path in &places {
            let touch = units.tree.touch(path);
            let is_touched = touch.is_some();
            self.node.input(&steps, touch, || {
                let exists = |path| units.exists(path);
                let is_meant = is_touched || exists(path) || !places.iter().any(exists);
                is_meant.then(|| InputPlace::Path(path.clone()))
            });
            if let Some(role) = role
                && found.is_none()
                && units.exists(path)
            {
                let directory = match role {
                    Role::Read => path.parent().unwrap_or_else(ProjectPath::root),
                    Role::Own | Role::Included => names.visit.directory.clone(),
                };
                self.open.push_back(Visit {
                    file: path.clone(),
                    role,
                    directory,
                    steps: steps.clone(),
                });
                found = Some(path.clone());
            }
        }
        found
    }

    /// Takes in what `find_in_parent_folders` finds, and what it would have found before a change.
    fn found_in_parents(&mut self, span: Span, arguments: &[Expr], names: &Names) {
        let written = match arguments.first() {
            None => None,
            Some(argument) => match names.text(argument) {
                Some(name) => Some(name),
                None => return,
            },
        };
        let wanted = names::wanted(written.as_deref());
        for place in Units::parents(&names.visit.directory, &wanted) {
            let exists = self.units.exists(&place);
            let is_directory = || place.to_host(self.units.tree.root).is_dir();
            let tree = self.units.tree;
            let changed = tree.changed.at(place.as_str()).is_some();
            if changed || exists && !is_directory() {
                let touch = tree.touch(&place);
                if touch.is_some() || tree.records {
                    let steps = names.steps("find_in_parent_folders", span);
                    let place = || Some(InputPlace::Path(place));
                    self.node.input(&steps, touch, place);
                }
            }
            if exists {
                break;
            }
        }
    }
}

impl Names<'_, '_, '_> {
    /// Returns how one gets from the stack to what is written at a place of the file.
    fn steps(&self, what: &str, span: Span) -> Vec<Use> {
        let steps = self.visit.steps.iter().take(MAX_CHAIN - 1);
        let mut steps: Vec<Use> = steps.cloned().collect();
        steps.push(Use {
            kind: UseKind::Terragrunt(what.into()),
            place: Place {
                file: self.file.path.clone(),
                line: Some(self.file.lines.at(span)),
            },
        });
        steps
    }
}
