//! The whole project in memory: what discovery, parsing and evaluation give together.
//!
//! [`Project::load`] is the arrow from a root directory to [`Stacks`]. It never stops at a problem:
//! everything that is wrong is in [`Project::diagnostics`] and [`Project::errors`], and whoever uses
//! the stacks looks there first.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rayon::prelude::*;

use crate::config::{self, EnvDefinition, Place};
use crate::diagnostic::Diagnostic;
use crate::discover::{self, Directory, ReadError};
use crate::globals::GlobalDefinition;
use crate::path::ProjectPath;
use crate::source::Sources;
use crate::stack::{self, Stack, Stacks};
use crate::syntax::{Block, Body};
use crate::{globals, import};

/// Top-level blocks of the language. Those that `orch` does not use are accepted with any content.
const TOP_LEVEL: [&str; 18] = [
    "assert",
    "bundle",
    "component",
    "define",
    "environment",
    "generate_file",
    "generate_hcl",
    "globals",
    "import",
    "input",
    "orch",
    "output",
    "scaffold",
    "script",
    "sharing_backend",
    "stack",
    "terramate",
    "vendor",
];

/// Threads that read and parse. More than processors: on a cold disk they wait.
const MIN_THREADS: usize = 8;

/// Parsing and evaluation nest up to the parser's limits; this leaves room even in unoptimised builds.
const STACK_BYTES: usize = 16 << 20;

/// A project.
#[derive(Debug, Default)]
pub struct Project {
    /// The root on this machine, absolute, free of links.
    pub root: PathBuf,
    /// The text of every configuration file.
    pub sources: Sources,
    /// All stacks.
    pub stacks: Stacks,
    /// `config.run.env` and `globals` of the directories that have any.
    pub scopes: HashMap<ProjectPath, DirectoryScope>,
    /// Whether references that name nothing are errors.
    pub strict_references: bool,
    /// Directories below the root that are projects of their own, by path.
    pub nested_projects: Vec<ProjectPath>,
    /// Files and directories of which not everything is known, for the reasons below.
    pub broken: Vec<ProjectPath>,
    /// What is wrong with the configuration.
    pub diagnostics: Vec<Diagnostic>,
    /// What could not be read.
    pub errors: Vec<ReadError>,
}

/// What a directory hands down to the stacks at and below it.
#[derive(Debug, Default)]
pub struct DirectoryScope {
    /// `config.run.env`; a name occurs once.
    pub env: Vec<EnvDefinition>,
    /// `globals`, in the order in which they apply.
    pub globals: Vec<GlobalDefinition>,
}

impl Project {
    /// Reads and evaluates the project at `root`.
    ///
    /// # Errors
    ///
    /// If not a single thread can be started.
    pub fn load(root: &Path) -> Result<Self, rayon::ThreadPoolBuildError> {
        Ok(pool()?.install(|| Self::load_here(root)))
    }

    fn load_here(root: &Path) -> Self {
        let mut found = discover::read(root);
        let imported = import::resolve(root, &mut found);
        let evaluated: Vec<Evaluated> = found
            .directories
            .into_par_iter()
            .map(|directory| {
                let imported = imported.get(&directory.path).map_or(&[][..], Vec::as_slice);
                Evaluated::new(directory, imported, root)
            })
            .collect();
        let mut project = Project {
            root: root.to_path_buf(),
            sources: found.sources,
            nested_projects: found.nested_projects,
            broken: found.broken,
            diagnostics: found.diagnostics,
            errors: found.errors,
            ..Project::default()
        };
        let mut stacks = Vec::new();
        for Evaluated {
            path,
            stack,
            scope,
            strict_references,
            problems,
        } in evaluated
        {
            stacks.extend(stack);
            project.diagnostics.extend(problems);
            project.strict_references |= strict_references;
            if !scope.env.is_empty() || !scope.globals.is_empty() {
                project.scopes.insert(path, scope);
            }
        }
        project.check_ids(&mut stacks);
        project.stacks = Stacks::new(stacks);
        project
    }

    fn check_ids(&mut self, stacks: &mut [Stack]) {
        stacks.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut first: HashMap<String, &Stack> = HashMap::new();
        for stack in stacks.iter() {
            let Some(id) = &stack.id else {
                continue;
            };
            let folded = id.value.to_ascii_lowercase();
            let Some(other) = first.get(&folded) else {
                first.insert(folded, stack);
                continue;
            };
            let mut diagnostic = Diagnostic::error(format!(
                "stacks `{}` and `{}` have the same id `{}`",
                other.path, stack.path, id.value
            ))
            .label(id.span, "an id must be unique in the project");
            if let Some(other_id) = &other.id {
                diagnostic = diagnostic.label(other_id.span, "also used here");
                if other_id.value != id.value {
                    diagnostic = diagnostic.note("ids are compared ignoring case");
                }
            }
            self.diagnostics
                .push(diagnostic.help("give one of the stacks another id"));
        }
    }

    /// Returns the directories from `path` up to the root that hand something down, nearest first.
    pub fn scopes_of<'a>(
        &'a self,
        path: &'a ProjectPath,
    ) -> impl Iterator<Item = &'a DirectoryScope> {
        std::iter::once(path.as_str())
            .chain(path.ancestors())
            .filter_map(|directory| self.scopes.get(directory))
    }

    /// Says whether any problem is an error.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty() || self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

fn pool() -> Result<rayon::ThreadPool, rayon::ThreadPoolBuildError> {
    let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let build = |n_threads| {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
        builder.stack_size(STACK_BYTES).build()
    };
    // Where memory or processes are limited, one thread does it too.
    build(processors.max(MIN_THREADS)).or_else(|_| build(1))
}

/// What the configuration of one directory says.
struct Evaluated {
    path: ProjectPath,
    stack: Option<Stack>,
    scope: DirectoryScope,
    strict_references: bool,
    problems: Vec<Diagnostic>,
}

impl Evaluated {
    fn new(directory: Directory, imported: &[Arc<Body>], root: &Path) -> Self {
        let Directory { path, files } = directory;
        let mut problems = Vec::new();
        for file in &files {
            check_top_level(&file.body, &mut problems);
        }
        let local = || files.iter().flat_map(|file| &file.body.blocks);
        let imported = || imported.iter().flat_map(|body| &body.blocks);
        let is_tool = |block: &&Block| matches!(&*block.kind.text, "terramate" | "orch");
        let is_globals = |block: &&Block| &*block.kind.text == "globals";
        let place = if path.is_root() {
            Place::Root
        } else {
            Place::Below
        };
        let config = config::read(
            local().filter(is_tool),
            imported().filter(is_tool),
            place,
            &mut problems,
        );
        let globals = globals::read(
            imported().filter(is_globals),
            local().filter(is_globals),
            &mut problems,
        );
        let mut blocks = local().filter(|block| &*block.kind.text == "stack");
        let first = blocks.next();
        let stack = first.map(|block| stack::from_block(block, &path, root, &mut problems));
        for second in blocks {
            let mut diagnostic = Diagnostic::error("a directory has one `stack` block")
                .label(second.kind.span, "second block");
            if let Some(first) = first {
                diagnostic = diagnostic.label(first.kind.span, "first block");
            }
            let help = "merge the two blocks, or move one to a directory of its own";
            problems.push(diagnostic.help(help));
        }
        Evaluated {
            path,
            stack,
            scope: DirectoryScope {
                env: config.env,
                globals,
            },
            strict_references: config.strict_references,
            problems,
        }
    }
}

/// Checks that a file holds known blocks and nothing else.
pub(crate) fn check_top_level(body: &Body, problems: &mut Vec<Diagnostic>) {
    for attribute in &body.attributes {
        let name = &attribute.name.text;
        let diagnostic = Diagnostic::error(format!("attribute `{name}` outside of any block"));
        let diagnostic = diagnostic.label(attribute.name.span, "a file consists of blocks");
        problems.push(
            diagnostic.help("move it into the block it belongs to: `stack { … }`, `globals { … }`"),
        );
    }
    for block in &body.blocks {
        let kind = &*block.kind.text;
        if !TOP_LEVEL.contains(&kind) {
            let diagnostic = Diagnostic::error(format!("unknown block `{kind}`"));
            let diagnostic = diagnostic.label(block.kind.span, "not a block of this language");
            problems.push(diagnostic.did_you_mean(kind, TOP_LEVEL));
        }
    }
}
