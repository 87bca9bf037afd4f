//! The stacks that a change may affect through computed values, found without evaluating anything.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memchr::memmem;

use super::trace;
use crate::change::files::ChangedFiles;
use crate::change::inputs::Tree;
use crate::change::named::touch_named;
use crate::language::function::reads_files;
use crate::language::syntax::{Expr, ExprKind, TraversalStepKind};
use crate::path::ProjectPath;
use crate::project::discover::{is_configuration, is_skip_mark};
use crate::project::stack::{StackIndex, Watch};
use crate::project::{DirectoryScope, Project};
use crate::source::{Sources, Span};

/// The prefixes of the names of functions that read files.
const READERS: [&str; 3] = ["tm_file", "tm_templatefile", "tm_templatestring"];

#[derive(Default)]
pub(super) struct AffectedStacks {
    /// The stacks whose values may differ.
    pub(super) compared: BTreeSet<StackIndex>,
    /// The stacks for which functions may read a changed file.
    pub(super) reading: BTreeSet<StackIndex>,
    pub(super) directories: BTreeSet<ProjectPath>,
    /// The changed configuration files behind links, including imported ones, with the targets of the links.
    pub(super) links: BTreeMap<ProjectPath, ProjectPath>,
}

impl AffectedStacks {
    pub(super) fn find(
        project: &Project,
        tree: &Tree<'_>,
        files: &ChangedFiles,
        is_wanted: &dyn Fn(StackIndex) -> bool,
    ) -> Self {
        let mut concerned = AffectedStacks::default();
        let configuration = files.iter().filter(|file| {
            let name = file.path.basename().as_ref();
            is_configuration(name) || is_skip_mark(name)
        });
        let directories = configuration.filter_map(|file| file.path.parent());
        concerned.directories.extend(directories);
        let mut links = tree.changed_configuration_links();
        concerned
            .directories
            .extend(links.keys().filter_map(ProjectPath::parent));
        // These may add stacks to, or remove stacks from, the list of all stacks.
        let may_list_others = !concerned.directories.is_empty();
        let importing = project
            .imports
            .iter()
            .filter(|(_, imports)| {
                let mut imports = imports.iter();
                imports.any(|entry| touch_named(tree, &entry.value).is_some())
            })
            .map(|(directory, _)| directory.clone());
        concerned.directories.extend(importing);
        let imported = project.imports.values().flatten();
        let imported = imported.filter_map(|entry| match &entry.value {
            Watch::File(file) => Some((file.clone(), tree.changed_end(file)?)),
            // The files that the pattern matches are listed too.
            Watch::FilePattern(_) => None,
        });
        links.extend(imported);
        for directory in &concerned.directories {
            concerned
                .compared
                .extend(project.stacks.at_or_below(directory));
        }
        // Variables may depend on attributes that are no inputs themselves.
        let reading = project.stacks.iter().filter(|(index, stack)| {
            let mut reads = stack.reads.iter();
            is_wanted(*index) && reads.any(|read| trace::touch_read(tree, &read.read).is_some())
        });
        concerned.compared.extend(reading.map(|(index, _)| index));
        // Searching the text is faster than visiting all expressions.
        if may_list_others || may_call_reader(project) {
            concerned.add_mentioning(project, may_list_others, is_wanted);
        }
        concerned.compared.retain(|stack| is_wanted(*stack));
        concerned.links = links;
        concerned
    }

    /// Adds the stacks whose variables may depend on files or on the list of all stacks.
    fn add_mentioning(
        &mut self,
        project: &Project,
        may_list_others: bool,
        is_wanted: &dyn Fn(StackIndex) -> bool,
    ) {
        let mut scopes = Scopes {
            project,
            known: HashMap::new(),
        };
        for (index, stack) in project.stacks.iter() {
            if !is_wanted(index) {
                continue;
            }
            let mentions = scopes.above(stack.path.directory().as_str());
            if mentions.files {
                self.reading.insert(index);
            }
            if mentions.stacks && may_list_others {
                self.compared.insert(index);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.compared.is_empty() && self.reading.is_empty()
    }
}

/// What the variables of a directory, and the values that they can use, mention.
#[derive(Debug, Clone, Copy, Default)]
struct Mentions {
    variables: bool,
    /// A function that reads files.
    files: bool,
    stacks: bool,
}

/// The mentions of each directory, including those of the directories above it.
struct Scopes<'p> {
    project: &'p Project,
    known: HashMap<&'p str, Mentions>,
}

impl<'p> Scopes<'p> {
    /// Returns the mentions of a directory and those above it; none without a variable.
    fn above(&mut self, directory: &'p str) -> Mentions {
        let all = self.everything(directory);
        if all.variables {
            all
        } else {
            Mentions::default()
        }
    }

    fn everything(&mut self, directory: &'p str) -> Mentions {
        if let Some(known) = self.known.get(directory) {
            return *known;
        }
        let parent = match directory.rfind('/') {
            Some(0) if directory.len() > 1 => Some("/"),
            Some(0) | None => None,
            Some(slash) => Some(&directory[..slash]),
        };
        let mut all = parent.map_or_else(Mentions::default, |parent| self.everything(parent));
        if let Some(scope) = self.project.scopes.get(directory) {
            all.variables |= !scope.env.is_empty();
            each_expression(scope, &self.project.sources, &mut |expr| {
                expr.each_call(&mut |name, _| all.files |= reads_files(&name.text));
                all.stacks |= stack_list(expr).is_some();
            });
        }
        self.known.insert(directory, all);
        all
    }
}

/// Visits the expressions of variables and of the values that they can use.
fn each_expression<'s>(
    scope: &'s DirectoryScope,
    sources: &Sources,
    visit: &mut dyn FnMut(&'s Expr),
) {
    for definition in &scope.env {
        visit(&definition.value);
    }
    for definition in &scope.lets {
        visit(&definition.value);
    }
    // Blocks without these words need not be parsed.
    let words = [&READERS[..], &["terramate", "orch"]].concat();
    if !scope.globals.may_contain(&words, sources) {
        return;
    }
    for definition in scope.globals.definitions(sources) {
        definition.each_expression(visit);
    }
}

/// Returns whether a configuration file may call a function that reads files.
fn may_call_reader(project: &Project) -> bool {
    let names = READERS.map(memmem::Finder::new);
    let mut files = project.sources.files();
    files.any(|file| {
        let mut names = names.iter();
        names.any(|name| name.find(file.text.as_bytes()).is_some())
    })
}

/// Returns the first place in an expression that may use the list of all stacks.
pub(super) fn stack_list(expr: &Expr) -> Option<Span> {
    let mut found = None;
    // The base of a traversal to another name, which is visited right after the traversal.
    let mut elsewhere: Option<&Expr> = None;
    expr.each(&mut |expr| match &expr.kind {
        ExprKind::Traversal(base, steps) => {
            let first = steps.first().map(|step| &step.kind);
            let is_elsewhere =
                matches!(first, Some(TraversalStepKind::Attribute(name)) if &**name != "stacks");
            elsewhere = is_elsewhere.then_some(&**base);
            if !is_elsewhere && is_tool(base) {
                found.get_or_insert(expr.span);
            }
        }
        _ if is_tool(expr) && !elsewhere.is_some_and(|base| std::ptr::eq(base, expr)) => {
            found.get_or_insert(expr.span);
        }
        _ => {}
    });
    found
}

/// Returns whether an expression is the namespace with the list of all stacks.
fn is_tool(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Variable(name) if matches!(&**name, "terramate" | "orch"))
}
