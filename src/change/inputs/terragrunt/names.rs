//! The constant expressions of Terragrunt: text, locals, also those of other files, and functions that name places.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::units::{UnitFile, Units};
use crate::change::cause::{Location, Use, UseKind};
use crate::change::inputs::chain::MAX_CHAIN;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{
    Budget, Call, EvalResult, EvalValue, NamePath, Namespaces, evaluate_within,
};
use crate::language::function::{self, FunctionContext};
use crate::language::syntax::{Block, Expr};
use crate::language::value::Value;
use crate::path::ProjectPath;
use crate::project::discover::{TERRAGRUNT_FILE, TERRAGRUNT_JSON_FILE};
use crate::source::Span;

/// Functions that name places or files.
const FUNCTIONS: [&str; 11] = [
    "dirname",
    "find_in_parent_folders",
    "get_original_terragrunt_dir",
    "get_parent_terragrunt_dir",
    "get_path_from_repo_root",
    "get_path_to_repo_root",
    "get_repo_root",
    "get_terragrunt_dir",
    "path_relative_from_include",
    "path_relative_to_include",
    READ_CONFIG,
];

pub(super) const READ_CONFIG: &str = "read_terragrunt_config";

/// The files that `find_in_parent_folders()` looks for.
const CONFIGURATIONS: [&str; 3] = [TERRAGRUNT_FILE, TERRAGRUNT_JSON_FILE, "root.hcl"];

/// The maximum depth of locals that refer to each other.
const MAX_LOCAL_DEPTH: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileRole {
    /// It is the stack's own.
    Own,
    /// `include` merges it into the stack's own file.
    Included,
    /// `include` only exposes it, with `merge_strategy = "no_merge"`.
    Exposed,
    /// `read_terragrunt_config` reads it.
    Read,
}

impl FileRole {
    /// Returns whether the blocks of the file are those of the stack.
    pub(super) fn is_merged(self) -> bool {
        matches!(self, FileRole::Own | FileRole::Included)
    }
}

pub(super) struct Visit {
    pub(super) file: ProjectPath,
    pub(super) role: FileRole,
    /// The result of `get_terragrunt_dir()` in it.
    pub(super) directory: ProjectPath,
    /// The steps from the stack to it.
    pub(super) steps: Vec<Use>,
}

/// The values of names in one file that is read for a stack.
pub(super) struct Names<'n, 't, 'a> {
    units: &'n Units<'t, 'a>,
    stack: &'n ProjectPath,
    pub(super) file: &'n UnitFile,
    pub(super) visit: &'n Visit,
    /// The included files, by label.
    pub(super) includes: Vec<(Box<str>, ProjectPath)>,
    file_directory: ProjectPath,
    budget: Rc<Budget>,
    depth: Cell<usize>,
    locals: RefCell<HashMap<String, EvalResult>>,
    /// The constant locals of other files.
    others: RefCell<HashMap<ProjectPath, Option<Value>>>,
    /// Whether a function was called that the first digest rules did not evaluate.
    pub(super) has_newer: Cell<bool>,
}

/// Returns the file names that `find_in_parent_folders` looks for.
pub(super) fn wanted(written: Option<&str>) -> Vec<&str> {
    match written {
        None => CONFIGURATIONS.to_vec(),
        // Every directory would find an absolute path.
        Some(name) if name.is_empty() || name.starts_with('/') => Vec::new(),
        Some(name) => vec![name],
    }
}

impl<'n, 't, 'a> Names<'n, 't, 'a> {
    pub(super) fn new(
        units: &'n Units<'t, 'a>,
        stack: &'n ProjectPath,
        file: &'n UnitFile,
        visit: &'n Visit,
    ) -> Self {
        Names {
            units,
            stack,
            file,
            visit,
            includes: Vec::new(),
            file_directory: file.path.parent().unwrap_or_else(ProjectPath::root),
            budget: Rc::default(),
            depth: Cell::new(0),
            locals: RefCell::default(),
            others: RefCell::default(),
            has_newer: Cell::new(false),
        }
    }

    /// Returns the text of an expression, if it is constant.
    pub(super) fn text(&self, expr: &Expr) -> Option<String> {
        self.value(expr)?.as_str().map(str::to_owned)
    }

    /// Returns the value of an expression, if it is constant.
    pub(super) fn value(&self, expr: &Expr) -> Option<Value> {
        let answer = evaluate_within(expr, self, &self.budget).ok()?;
        Some(answer.value)
    }

    /// Returns the elements of a list, if all are constant texts.
    pub(super) fn texts(&self, list: &Expr) -> Option<Vec<String>> {
        let value = evaluate_within(list, self, &self.budget).ok()?.value;
        let items = value.sequence()?.iter();
        items.map(|item| Some(item.as_str()?.to_owned())).collect()
    }

    /// Returns whether an expression is surely `false`.
    pub(super) fn is_false(&self, expr: &Expr) -> bool {
        let answer = evaluate_within(expr, self, &self.budget);
        answer.is_ok_and(|answer| matches!(answer.value, Value::Bool(false)))
    }

    /// Returns the directories that a relative path in this file may be relative to: versions of Terragrunt
    /// differ for included files.
    pub(super) fn bases(&self) -> impl Iterator<Item = &ProjectPath> {
        let of_file = Some(&self.file_directory).filter(|it| **it != self.visit.directory);
        std::iter::once(&self.visit.directory).chain(of_file)
    }

    /// Returns the directory of an including or included file.
    fn included(&self, label: Option<&str>) -> Option<ProjectPath> {
        if matches!(self.visit.role, FileRole::Included | FileRole::Exposed) {
            return Some(self.file_directory.clone());
        }
        let mut includes = self.includes.iter();
        let found = match label {
            Some(label) => includes.find(|(other, _)| **other == *label),
            None => includes.next(),
        };
        found.and_then(|(_, file)| file.parent())
    }

    /// Returns the constant locals of another file as an object with `locals`.
    fn other(&self, file: &ProjectPath, role: FileRole) -> Option<Value> {
        self.has_newer.set(true);
        if let Some(known) = self.others.borrow().get(file) {
            return known.clone();
        }
        let found = self.locals_of(file, role);
        let mut others = self.others.borrow_mut();
        others.insert(file.clone(), found.clone());
        found
    }

    fn locals_of(&self, file: &ProjectPath, role: FileRole) -> Option<Value> {
        if self.depth.get() >= MAX_LOCAL_DEPTH {
            return None;
        }
        let visit = Visit {
            file: file.clone(),
            role,
            directory: match role {
                FileRole::Read => file.parent()?,
                _ => self.visit.directory.clone(),
            },
            steps: Vec::new(),
        };
        let file = self.units.shared(file)?;
        let mut names = Names {
            budget: Rc::clone(&self.budget),
            depth: Cell::new(self.depth.get() + 1),
            ..Names::new(self.units, self.stack, &file, &visit)
        };
        names.includes = names.included_files();
        let blocks = file.body.blocks("locals");
        let locals = blocks.flat_map(|block| &block.body.attributes);
        let locals = locals.filter_map(|local| {
            let name = &local.name;
            Some((&*name.text, names.local(&name.text, name.span).ok()?))
        });
        let locals: Vec<(&str, Value)> = locals.collect();
        Some(Value::object([("locals", Value::object(locals))]))
    }

    /// Returns the locals of the file that `read_terragrunt_config` reads.
    fn configuration(&self, path: &str) -> Option<Value> {
        self.other(&self.existing(path)?, FileRole::Read)
    }

    /// Returns the files that this file includes, by label.
    fn included_files(&self) -> Vec<(Box<str>, ProjectPath)> {
        let file = |include: &Block| {
            let path = self.text(&include.body.attribute("path")?.value)?;
            let label = include.labels.first().map(|label| label.text.clone());
            Some((label.unwrap_or_default(), self.existing(&path)?))
        };
        let includes = self.file.body.blocks("include");
        includes.filter_map(file).collect()
    }

    fn existing(&self, path: &str) -> Option<ProjectPath> {
        let places = self.bases();
        let mut places = places.filter_map(|base| self.units.locate(path, base));
        places.find(|place| self.units.exists(place))
    }

    /// Returns the steps from the stack to a place of the file.
    pub(super) fn steps(&self, what: &str, span: Span) -> Vec<Use> {
        let mut steps: Vec<Use> = self
            .visit
            .steps
            .iter()
            .take(MAX_CHAIN - 1)
            .cloned()
            .collect();
        steps.push(Use {
            kind: UseKind::Terragrunt(what.into()),
            location: self.location(span),
        });
        steps
    }

    pub(super) fn location(&self, span: Span) -> Location {
        Location {
            file: self.file.path.clone(),
            line: Some(self.file.lines.at(span)),
        }
    }

    fn local(&self, name: &str, span: Span) -> EvalResult {
        if let Some(known) = self.locals.borrow().get(name) {
            return known.clone();
        }
        let mut blocks = self.file.body.blocks("locals");
        let Some(local) = blocks.find_map(|block| block.body.attribute(name)) else {
            return unknown(span);
        };
        if self.depth.get() >= MAX_LOCAL_DEPTH {
            return unknown(span);
        }
        self.depth.update(|depth| depth + 1);
        let value = evaluate_within(&local.value, self, &self.budget).map(|answer| answer.value);
        self.depth.update(|depth| depth - 1);
        let mut locals = self.locals.borrow_mut();
        locals.insert(name.to_owned(), value.clone());
        value
    }

    /// Calls a function that does not name a place.
    fn other_function(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        if matches!(&*call.name.text, "abspath" | "mark_as_read") {
            let values = call.values()?;
            let Some(text) = values.first().and_then(|(value, _)| value.as_str()) else {
                return unknown(call.name.span);
            };
            let is_relative = &*call.name.text == "abspath" && !text.starts_with('/');
            let text = if is_relative {
                format!("{}/{text}", self.units.absolute(&self.visit.directory))
            } else {
                text.to_owned()
            };
            self.has_newer.set(true);
            return Ok(Some(Value::string(text)));
        }
        let surroundings = FunctionContext {
            prefix: "",
            ..FunctionContext::none("a Terragrunt file")
        };
        let value = function::call(call, &surroundings)?;
        self.has_newer.set(self.has_newer.get() || value.is_some());
        Ok(value)
    }

    fn find_in_parents(&self, name: Option<&str>) -> Option<String> {
        let wanted = wanted(name);
        let mut places = Units::parents(&self.visit.directory, &wanted);
        let found = places.find(|location| self.units.exists(location))?;
        Some(self.units.absolute(&found))
    }
}

/// Gives up on an expression; the diagnostic is never shown.
fn unknown<T>(span: Span) -> EvalResult<T> {
    let diagnostic = Diagnostic::warning(Code::UnavailableName, "unknown");
    Err(diagnostic.label(span, "").into())
}

impl Namespaces for Names<'_, '_, '_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        match (path.name, path.rest.as_slice()) {
            ("local", [(first, span), ..]) => {
                let value = self.local(first, *span)?;
                Ok(Some(Value::object([(*first, value)]).into()))
            }
            ("include", [(first, span), ..]) => {
                let find = |label: &str| self.includes.iter().find(|(it, _)| **it == *label);
                let labelled = find(first);
                let Some((_, file)) = labelled.or_else(|| find("")) else {
                    return unknown(*span);
                };
                let Some(exposed) = self.other(file, FileRole::Exposed) else {
                    return unknown(*span);
                };
                let value = match labelled {
                    Some(_) => Value::object([(*first, exposed)]),
                    None => exposed,
                };
                Ok(Some(value.into()))
            }
            _ => Ok(None),
        }
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        if !FUNCTIONS.contains(&&*call.name.text) {
            return self.other_function(call);
        }
        let (name, arguments) = (call.name, call.values()?);
        let mut texts = arguments.iter().map(|(argument, _)| argument.as_str());
        let first = texts.next().flatten();
        let root = ProjectPath::root();
        let directory = &self.visit.directory;
        let absolute = |path: &ProjectPath| self.units.absolute(path);
        let included = |label| self.included(label).unwrap_or_else(|| directory.clone());
        let text = match (&*name.text, first) {
            ("dirname", Some(path)) => match path.rfind('/') {
                Some(0) => "/".to_owned(),
                Some(cut) => path[..cut].to_owned(),
                None => ".".to_owned(),
            },
            ("find_in_parent_folders", first) => {
                let fallback = || texts.next().flatten().map(str::to_owned);
                match self.find_in_parents(first).or_else(fallback) {
                    Some(found) => found,
                    None => return unknown(name.span),
                }
            }
            ("get_repo_root", _) => self.units.repository.clone(),
            ("get_path_to_repo_root", _) => {
                let n_above = self
                    .units
                    .project_in_repository()
                    .split('/')
                    .filter(|name| !name.is_empty())
                    .count();
                root.relative_to(directory) + &"/..".repeat(n_above)
            }
            ("get_path_from_repo_root", _) => match self.units.project_in_repository() {
                "" => directory.relative_to(&root),
                above => format!("{above}{directory}"),
            },
            ("get_terragrunt_dir", _) => absolute(directory),
            ("get_original_terragrunt_dir", _) => absolute(self.stack),
            ("get_parent_terragrunt_dir", label) => absolute(&included(label)),
            ("path_relative_to_include", label) => directory.relative_to(&included(label)),
            ("path_relative_from_include", label) => included(label).relative_to(directory),
            (READ_CONFIG, Some(path)) => {
                return match self.configuration(path) {
                    None => unknown(name.span),
                    locals => Ok(locals),
                };
            }
            _ => return unknown(name.span),
        };
        Ok(Some(Value::string(text)))
    }
}
