//! `orch create`: writes the files of new stacks, and ids for stacks without one.

use std::path::{Path, PathBuf};

use super::new_directory::cannot;
use crate::context::Context;
use crate::create::{
    BadUnits, FileToWrite, InsideOutUnit, LeftOutDependency, MissingId, NewStack, RootModules,
    STACK_FILE, missing_ids, new_units, place, root_modules, write_all,
};
use crate::error::{Error, ErrorContext as _, ErrorKind, Result};
use crate::path::ProjectPath;
use crate::printable::printable;
use crate::project::Problems;

const CREATE: &str = "create";

/// How many paths a note lists.
const MAX_NAMED: usize = 5;

#[derive(Debug, Clone)]
pub struct CreateRequest {
    pub what: Created,
    /// The attributes of each.
    pub stack: NewStack,
    /// Whether an existing stack is no error.
    pub ignores_existing: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// A stack in a directory: from the project root if it begins with `/`.
    At(PathBuf),
    /// Stacks in all Terraform root modules.
    AllTerraform,
    /// Stacks in all Terragrunt units.
    AllTerragrunt,
    /// No stacks, but ids for all that have none.
    Ids,
}

/// A file to write, and the reason.
#[derive(Debug)]
pub struct CreatedFile {
    pub stack: ProjectPath,
    /// The id that an existing stack gets; `None` for a new stack.
    pub new_id: Option<String>,
    pub change: FileToWrite,
}

#[derive(Debug, Default)]
pub struct NewFiles(Vec<CreatedFile>);

impl NewFiles {
    pub fn files(&self) -> &[CreatedFile] {
        &self.0
    }

    /// Writes all files, or none.
    pub fn write(&self, context: &Context) -> Result<()> {
        let changes: Vec<FileToWrite> = self.0.iter().map(|file| file.change.clone()).collect();
        write_all(&context.project.root, &changes)
    }
}

impl Context {
    /// Returns the files that a request asks for, and gives notes about those that it leaves out.
    pub fn create(&mut self, request: &CreateRequest) -> Result<NewFiles> {
        let files = match &request.what {
            Created::At(path) => self.create_at(path, request)?,
            Created::AllTerraform => self.create_all_terraform(&request.stack)?,
            Created::AllTerragrunt => self.create_all_terragrunt(&request.stack)?,
            Created::Ids => self.create_ids(),
        };
        Ok(NewFiles(files))
    }

    fn create_at(&self, written: &Path, request: &CreateRequest) -> Result<Vec<CreatedFile>> {
        let path = self.directory_arg(CREATE, written)?;
        self.check_new(CREATE, written, &path)?;
        let stacks = &self.project.stacks;
        let mut empty = self.project.without_instances.iter();
        let declared = stacks.at(path.as_str()).first().map(|it| stacks[it].span);
        let declared = declared.or_else(|| Some(empty.find(|it| it.directory == path)?.span));
        let file = path.join(STACK_FILE);
        let exists = if let Some(span) = declared {
            let place = self.project.sources.line(span);
            Some(format!("it is a stack already, by {}", printable(&place)))
        } else if self.is_there(&file)? {
            Some(format!("`{}` exists", printable(file.relative())))
        } else {
            None
        };
        match exists {
            Some(_) if request.ignores_existing => return Ok(Vec::new()),
            Some(why) => {
                let error = cannot(CREATE, written, &why);
                return Err(error.hint("`--ignore-existing` makes this no error"));
            }
            None => {}
        }
        self.check_stack(written, &path, &request.stack)?;
        Ok(vec![self.new_stack(path, &request.stack)])
    }

    fn new_stack(&self, stack: ProjectPath, settings: &NewStack) -> CreatedFile {
        let change = FileToWrite {
            path: stack.join(STACK_FILE),
            before: None,
            after: settings.text(&self.project.root, &stack),
        };
        CreatedFile {
            stack,
            new_id: None,
            change,
        }
    }

    /// Checks attributes before a file with them makes all other commands fail.
    fn check_stack(&self, written: &Path, path: &ProjectPath, stack: &NewStack) -> Result<()> {
        let root = &self.project.root;
        if let Some(problem) = stack.problems(root, path).into_iter().next() {
            let label = problem.labels.first().map(|label| label.text.as_str());
            let label = label.filter(|label| !label.is_empty());
            let why = match label {
                Some(label) => format!("{}: {label}", problem.message),
                None => problem.message,
            };
            return Err(cannot(CREATE, written, &why));
        }
        let mut all = self.project.stacks.iter();
        if let Some(id) = &stack.id
            && let Some((_, other)) = all.find(|(_, other)| {
                let own = other.id.as_ref();
                own.is_some_and(|own| own.value.eq_ignore_ascii_case(id))
            })
        {
            let why = format!("the stack `{}` has the id `{id}` already", other.path);
            return Err(cannot(CREATE, written, &why));
        }
        for source in &stack.imports {
            self.check_import(path, source)
                .map_err(|why| cannot(CREATE, written, &format!("`--import {source}`: {why}")))?;
        }
        Ok(())
    }

    fn check_import(&self, stack: &ProjectPath, source: &str) -> Result<(), String> {
        let place = stack.resolve(source);
        let place = place.map_err(|_| "it leads out of the project".to_owned())?;
        if source.contains(['*', '?', '[']) {
            return Ok(());
        }
        let directory = place.parent().unwrap_or_else(ProjectPath::root);
        if stack.is_at_or_below(&directory) {
            let why = "the files of a directory hold for the stacks in it without an import";
            return Err(why.to_owned());
        }
        match place.to_host(&self.project.root).metadata() {
            Ok(found) if found.is_dir() => Err("it is a directory".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("`{place}` cannot be read: {error}")),
        }
    }

    fn one_of_many(&self, directory: ProjectPath, settings: &NewStack) -> Result<CreatedFile> {
        let path = Path::new(directory.as_str());
        let file = directory.join(STACK_FILE);
        if self.is_there(&file)? {
            let why = format!("`{}` exists", printable(file.relative()));
            return Err(cannot(CREATE, path, &why));
        }
        self.check_stack(path, &directory, settings)?;
        Ok(self.new_stack(directory, settings))
    }

    fn create_all_terraform(&mut self, settings: &NewStack) -> Result<Vec<CreatedFile>> {
        let mut problems = Problems::default();
        let directory = self.directory.clone();
        let modules = root_modules(&self.project, &self.listing, &directory, &mut problems);
        let modules = modules.context("failed to read the Terraform files")?;
        self.problems = problems;
        self.report()?;
        self.note_left_out(&modules);
        let directories = modules.directories.into_iter();
        directories
            .map(|directory| self.one_of_many(directory, settings))
            .collect()
    }

    fn create_all_terragrunt(&mut self, settings: &NewStack) -> Result<Vec<CreatedFile>> {
        let mut problems = Problems::default();
        let directory = self.directory.clone();
        let found = new_units(&self.project, &self.listing, &directory, &mut problems);
        let new = found.map_err(|error| match error {
            BadUnits::Change(error) => {
                Error::described("failed to read the Terragrunt files", error)
            }
            error @ BadUnits::Cycle { .. } => Error::new(ErrorKind::Configuration, error),
        });
        self.problems = problems;
        self.report()?;
        let new = new?;
        for LeftOutDependency {
            location,
            is_outside,
        } in &new.left_out
        {
            let place = place(location);
            let why = if *is_outside {
                "it leads out of the project"
            } else {
                "only Terragrunt can evaluate its path; add it to `after`"
            };
            self.notices.warning(&format!(
                "a dependency is left out ({}): {why}",
                printable(&place)
            ));
        }
        for InsideOutUnit {
            unit,
            inner,
            location,
        } in &new.inside_out
        {
            let place = place(location);
            let place = printable(&place);
            self.notices.warning(&format!(
                "no stack for `{unit}`: it depends on `{inner}` ({place}), a directory inside it"
            ));
            self.notices
                .help("move one of the two: a stack always runs before the stacks nested in it");
        }
        let excluding = new.excluding.iter();
        let excluding = excluding.map(|(unit, it)| format!("`{unit}` ({})", printable(&place(it))));
        if let Some(list) = some_of(excluding) {
            self.notices.warning(&format!(
                "`exclude` blocks are not read, so `orch apply` runs {list}"
            ));
            self.notices
                .help("leave units out with `--exclude`, or with `driver = \"none\"` in their `stack` block");
        }
        let others = new.others.iter().map(|path| format!("`{path}`"));
        if let Some(list) = some_of(others) {
            self.notices.note(&format!(
                "left out because they have neither a `source` in a `terraform` block nor Terraform files: {list}"
            ));
        }
        let files = new.units.into_iter().map(|(directory, after)| {
            let after = after.iter().map(ToString::to_string).collect();
            let settings = NewStack {
                after,
                ..settings.clone()
            };
            self.one_of_many(directory, &settings)
        });
        files.collect()
    }

    /// Notes the directories that are not made stacks.
    fn note_left_out(&self, modules: &RootModules) {
        let called = modules.called.iter();
        let called =
            called.map(|(path, call)| format!("`{path}` (by {})", printable(&place(call))));
        if let Some(list) = some_of(called) {
            self.notices.note(&format!(
                "left out because others call them as modules: {list}"
            ));
        }
        if modules.directories.is_empty() && modules.others > 0 {
            self.notices.note(&format!(
                "nothing to create: {} have no `backend`, `cloud` or `provider` block",
                others(modules.others)
            ));
        }
    }

    fn create_ids(&self) -> Vec<CreatedFile> {
        let mut files = Vec::new();
        for MissingId {
            directory,
            id,
            change,
        } in missing_ids(&self.project)
        {
            match change {
                Ok(change) => files.push(CreatedFile {
                    stack: directory,
                    new_id: Some(id),
                    change,
                }),
                Err(why) => {
                    let message = format!("no id for `{directory}`: {why}");
                    self.notices.warning(&message);
                }
            }
        }
        files
    }
}

/// Returns the first texts, and how many more there are; `None` if there is none.
fn some_of(mut texts: impl Iterator<Item = String>) -> Option<String> {
    let mut named: Vec<String> = texts.by_ref().take(MAX_NAMED).collect();
    let rest = texts.count();
    if rest > 0 {
        named.push(format!("{rest} more"));
    }
    (!named.is_empty()).then(|| named.join(", "))
}

/// Returns the subject of a sentence about directories that are no stacks.
fn others(number: usize) -> String {
    if number == 1 {
        return "the Terraform files in 1 other directory".to_owned();
    }
    format!("the Terraform files in {number} other directories")
}
