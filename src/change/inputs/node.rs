//! A directory and its uses: modules, files, and targets of links.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use super::chain::ChainBudget;
use super::definitions::definitions_and_calls;
use super::extract::ComputedRead;
use super::linked_changes::ChangedInput;
use super::tree::{ModuleDirectory, Tree};
use crate::change::call::ModuleCall;
use crate::change::cause::{InputLocation, Location, Use};
use crate::change::code_use::CodeUse;
use crate::git::ChangedFile;
use crate::language::syntax::Body;
use crate::path::ProjectPath;
use crate::source::Span;

pub(in crate::change) struct InputNode<'a> {
    pub(super) path: ProjectPath,
    /// The first change reached without another module, and the steps to it.
    pub(super) touch: Option<(Vec<Use>, &'a ChangedFile)>,
    /// All inputs reached without another module, if they are recorded.
    record: Option<NodeInputs<'a>>,
    /// The modules that it uses, in the order written.
    pub(in crate::change) edges: Vec<ModuleUse>,
    /// Reads of a file that differs for each stack.
    pub(super) root_reads: Vec<RootRead>,
    /// Reads of files at paths that depend on variables.
    pub(super) variable_reads: Vec<VariableRead>,
    /// Modules at sources that depend on variables.
    pub(in crate::change) variable_sources: Vec<VariableSource>,
    /// The files that define its locals and variables or call modules, once they are needed.
    definitions: OnceLock<Vec<Body>>,
    /// Calls of modules outside of the project, if they are collected.
    pub(super) calls: Vec<ModuleCall>,
    /// The data of other stacks that it uses, if that is looked for.
    pub(super) data: Vec<CodeUse>,
    /// Whether its Terragrunt files name a module to run.
    pub(super) has_source: bool,
    /// The first `exclude` block of a Terragrunt unit.
    pub(super) exclude: Option<Location>,
    /// Reads whose paths cannot be determined.
    pub(super) unknown: Vec<Use>,
    /// Whether it has inputs that the first digest rules did not follow.
    pub(in crate::change) has_newer: bool,
}

#[derive(Default)]
struct NodeInputs<'a> {
    found: Vec<FoundInput<'a>>,
    budget: ChainBudget,
}

/// An input, seen from its node.
pub(in crate::change) struct FoundInput<'a> {
    pub(in crate::change) location: InputLocation,
    pub(in crate::change) steps: Vec<Use>,
    pub(super) touch: Option<ChangedInput<'a>>,
}

pub(in crate::change) struct ModuleUse {
    /// The name of the `module` block; `None` if Terragrunt runs the module.
    pub(super) call: Option<Box<str>>,
    pub(in crate::change) steps: Vec<Use>,
    pub(in crate::change) directory: ProjectPath,
    /// The target's node, once it exists.
    pub(in crate::change) target: usize,
}

/// A file that is read relative to Terraform's working directory.
pub(super) struct RootRead {
    pub(super) step: Use,
    /// `None` in JSON.
    pub(super) span: Option<Span>,
    pub(super) path: Box<str>,
    pub(super) pattern: Option<Box<str>>,
    /// Whether a warning about a path outside of the project was given.
    pub(super) is_warned_of: AtomicBool,
}

/// A file that is read at a path that depends on variables.
pub(super) struct VariableRead {
    pub(super) step: Use,
    /// `None` in JSON.
    pub(super) span: Option<Span>,
    pub(super) read: ComputedRead,
    /// Whether a warning about a path outside of the project was given.
    pub(super) is_warned_of: AtomicBool,
}

/// A module whose source depends on variables of the calling module.
pub(in crate::change) struct VariableSource {
    /// The name of the module.
    pub(super) name: Box<str>,
    pub(super) file: ProjectPath,
    /// `None` in JSON.
    pub(super) span: Option<Span>,
    pub(super) variables: Vec<Box<str>>,
}

impl<'a> InputNode<'a> {
    pub(super) fn new(tree: &Tree<'a>, path: ProjectPath) -> Self {
        InputNode {
            path,
            touch: None,
            record: tree.records.then(NodeInputs::default),
            edges: Vec::new(),
            root_reads: Vec::new(),
            variable_reads: Vec::new(),
            variable_sources: Vec::new(),
            definitions: OnceLock::new(),
            calls: Vec::new(),
            data: Vec::new(),
            has_source: false,
            exclude: None,
            unknown: Vec::new(),
            has_newer: false,
        }
    }

    /// Adds an input and the change that touches it. The place matters only if inputs are recorded.
    pub(super) fn input(
        &mut self,
        steps: &[Use],
        touch: Option<ChangedInput<'a>>,
        location: impl FnOnce() -> Option<InputLocation>,
    ) {
        if let Some(record) = &mut self.record
            && let Some(location) = location()
        {
            record.found.push(FoundInput {
                location,
                steps: record.budget.chain(steps.iter()),
                touch: touch.clone(),
            });
        }
        if let Some(touch) = touch {
            self.touch(steps, touch);
        }
    }

    /// Returns the files that define its locals and variables or call modules, read once.
    pub(super) fn definitions(&self, tree: &Tree) -> &[Body] {
        self.definitions
            .get_or_init(|| definitions_and_calls(tree, &self.path))
    }

    /// Adds a used module. The place matters only if inputs are recorded.
    pub(super) fn module(
        &mut self,
        call: Option<Box<str>>,
        steps: Vec<Use>,
        module: &ModuleDirectory<'a>,
        location: impl FnOnce() -> Option<InputLocation>,
    ) {
        self.input(&steps, module.touch.clone(), location);
        if let Ok(directory) = &module.directory
            && (module.touch.is_none() || self.record.is_some())
        {
            self.edges.push(ModuleUse {
                call,
                steps,
                directory: directory.clone(),
                target: usize::MAX,
            });
        }
    }

    /// Notes the first change that touches an input.
    pub(super) fn touch(&mut self, steps: &[Use], touch: ChangedInput<'a>) {
        self.touch.get_or_insert_with(|| {
            let mut steps = steps.to_vec();
            steps.extend(touch.links);
            (steps, touch.file)
        });
    }

    /// Adds inputs, if inputs are recorded.
    pub(super) fn record(&mut self, found: impl FnOnce() -> Vec<FoundInput<'a>>) {
        if let Some(record) = &mut self.record {
            record.found.extend(found());
        }
    }

    /// Returns the recorded inputs in the order in which they were found.
    pub(in crate::change) fn recorded(&self) -> &[FoundInput<'a>] {
        self.record.as_ref().map_or(&[], |record| &record.found)
    }
}
