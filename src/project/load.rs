//! Loads the whole project: discovery, parsing and evaluation together.
//!
//! [`Project::load`] turns a root directory into [`Stacks`]. It never stops at a problem: it adds all
//! problems to the caller's [`Problems`], which must be checked before the stacks are used.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuildError};

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::language::syntax::{Block, Body, Name};
use crate::path::{ProjectPath, StackPath};
use crate::project::attempt::{AttemptSettings, Attempts};
use crate::project::config::{self, EnvDefinition, LetDefinition, ProjectSettings};
use crate::project::create_before_destroy::ForcedCreateBeforeDestroy;
use crate::project::discover::{
    self, Directory, FileKind, FileTree, Listing, SourceTree, TreeIndex,
};
use crate::project::driver::{self, DRIVER, DriverBlock};
use crate::project::globals::Globals;
use crate::project::ids::check_ids;
use crate::project::ignore::{Ignore, ignored};
use crate::project::import::{ImportedBody, Imports};
use crate::project::lifecycle::Lifecycle;
use crate::project::module::{self, MODULE, ModuleBlock};
use crate::project::policy::{self, POLICY, PolicyBlock};
use crate::project::problems::Problems;
use crate::project::relocation::{
    self, MOVED, MovedBlock, Moves, REMOVED, RemovedBlock, RemovedBlocks,
};
use crate::project::script::{self, SCRIPT, ScriptBlock};
use crate::project::sharing::{self, INPUT, InputBlock, OUTPUT, SHARING_BACKEND, SharingBackend};
use crate::project::stack::{self, AttributeRead, Declared, StackIndex, Stacks, Watch};
use crate::project::{globals, import, top_level};
use crate::source::{Sources, Span, Spanned};

/// The minimum number of threads that read and parse, which may exceed the processors: they also wait for the disk.
const MIN_THREADS: usize = 2;

/// Parsing and evaluation nest up to the parser's limits; this leaves room even in unoptimised builds.
const STACK_BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub struct Project {
    /// The root on this machine, absolute, free of links.
    pub root: PathBuf,
    pub sources: Sources,
    pub stacks: Stacks,
    /// The inherited settings of directories that have any.
    pub scopes: HashMap<ProjectPath, Box<DirectoryScope>>,
    /// The configuration of the project as a whole.
    pub settings: ProjectSettings,
    pub drivers: BTreeMap<String, DriverBlock>,
    /// The `policy` blocks, in the order of their names.
    pub policies: Vec<PolicyBlock>,
    pub moves: Moves,
    pub removed: RemovedBlocks,
    pub modules: BTreeMap<String, ModuleBlock>,
    /// The patterns of imports, by directory.
    pub imports: HashMap<ProjectPath, Vec<Spanned<Watch>>>,
    /// Directories below the root that are projects of their own, by path.
    pub nested_projects: Vec<ProjectPath>,
    /// The blocks of each kind that only Terramate uses, in the order of their files.
    pub unused: BTreeMap<String, Vec<Span>>,
    /// Files and directories that could not be read or parsed completely.
    pub broken: Vec<ProjectPath>,
    /// Directories whose `for_each` is empty, so they have no stack.
    pub without_instances: Vec<EmptyForEach>,
    /// The stacks to which `create_before_destroy` extends from others.
    pub forced_create_before_destroy: BTreeMap<StackIndex, ForcedCreateBeforeDestroy>,
    /// The files, if they are not on disk.
    pub(crate) tree: Option<Arc<TreeIndex>>,
}

/// A `for_each` without keys.
#[derive(Debug)]
pub struct EmptyForEach {
    pub directory: ProjectPath,
    pub span: Span,
    /// The files that functions in it have read or looked for.
    pub reads: Vec<AttributeRead>,
}

#[derive(Debug, thiserror::Error)]
pub enum LoadTreeError {
    #[error(transparent)]
    Tree(#[from] io::Error),
    #[error("failed to start the threads that read files")]
    Threads(#[from] ThreadPoolBuildError),
}

#[derive(Debug, Default)]
pub struct DirectoryScope {
    /// `config.run.env`; a name occurs once.
    pub env: Vec<EnvDefinition>,
    /// `config.run.lets`, which only `env` and `lets` of this directory see; names are unique.
    pub lets: Vec<LetDefinition>,
    pub globals: Globals,
    /// `config.change_detection.ignore`: changed files that do not count.
    pub ignore: Vec<Ignore>,
    /// The `run` block of the stack, and `config.run` for what it does not set.
    pub attempts: AttemptSettings,
    /// `config.driver`: how stacks are planned and applied.
    pub driver: Option<Spanned<String>>,
    /// `config.lifecycle`: the rules for stacks.
    pub lifecycle: Lifecycle,
    /// `config.apply.resource_destroy`: whether an apply may destroy resources without approval.
    pub allows_resource_destroy: Option<bool>,
    /// The `input` blocks, which belong to the stack of this directory alone.
    pub inputs: Vec<InputBlock>,
    pub sharing_backends: Vec<SharingBackend>,
    /// The `script` blocks; their labels are unique.
    pub scripts: Vec<ScriptBlock>,
}

impl DirectoryScope {
    fn is_empty(&self) -> bool {
        self.env.is_empty()
            && self.globals.is_empty()
            && self.ignore.is_empty()
            && self.attempts.is_empty()
            && self.driver.is_none()
            && self.lifecycle.is_empty()
            && self.allows_resource_destroy.is_none()
            && self.inputs.is_empty()
            && self.sharing_backends.is_empty()
            && self.scripts.is_empty()
    }
}

impl Project {
    pub fn load(root: &Path, problems: &mut Problems) -> Result<Self, ThreadPoolBuildError> {
        Ok(pool()?.install(|| {
            let files = SourceTree::on_disk(root);
            let found = discover::read(&files, problems);
            Self::evaluate(&files, found, problems)
        }))
    }

    /// Does what [`Self::load`] does, and also lists the project's other files.
    pub fn load_with_listing(
        root: &Path,
        problems: &mut Problems,
    ) -> Result<(Self, Listing), ThreadPoolBuildError> {
        Ok(pool()?.install(|| {
            let files = SourceTree::on_disk(root);
            let (found, listing) = discover::read_with_listing(&files, problems);
            (Self::evaluate(&files, found, problems), listing)
        }))
    }

    /// Reads and evaluates the project in a tree, such as that of a commit. Only files outside `root` are
    /// looked up on disk.
    pub fn load_tree(
        root: &Path,
        tree: &dyn FileTree,
        problems: &mut Problems,
    ) -> Result<Self, LoadTreeError> {
        pool()?.install(|| {
            let files = SourceTree::of_tree(root, tree)?;
            let found = discover::read(&files, problems);
            Ok(Self::evaluate(&files, found, problems))
        })
    }

    fn evaluate(
        files: &SourceTree,
        mut found: discover::DiscoveredFiles,
        problems: &mut Problems,
    ) -> Self {
        let imported = import::resolve(files, &mut found, problems);
        let sources = &found.sources;
        let evaluated: Vec<Evaluated> = found
            .directories
            .into_par_iter()
            .map(|directory| {
                let imports = imported.get(&directory.path);
                let imported = imports.map_or(&[][..], |imports| &imports.files);
                Evaluated::new(directory, imported, files, sources)
            })
            .collect();
        let mut project = Project {
            root: files.root.to_path_buf(),
            tree: files.index(),
            sources: found.sources,
            nested_projects: found.nested_projects,
            broken: found.broken,
            ..Project::default()
        };
        let mut stacks = Vec::with_capacity(evaluated.len());
        let (mut moved, mut removed, mut policies) = (Vec::new(), Vec::new(), Vec::new());
        let mut modules = Vec::new();
        for Evaluated {
            path,
            declared,
            scope,
            settings,
            drivers,
            moved: moved_here,
            removed: removed_here,
            policies: policies_here,
            modules: modules_here,
            diagnostics,
            unused,
        } in evaluated
        {
            moved.extend(moved_here);
            removed.extend(removed_here);
            policies.extend(policies_here);
            modules.extend(modules_here);
            for keyword in unused {
                let places = project.unused.entry(keyword.text.into()).or_default();
                places.push(keyword.span);
            }
            match declared {
                None => {}
                Some(Declared::Stack(stack)) => stacks.push(stack),
                Some(Declared::Instances {
                    stacks: none,
                    for_each,
                    reads,
                }) if none.is_empty() => project.without_instances.push(EmptyForEach {
                    directory: path.clone(),
                    span: for_each,
                    reads,
                }),
                Some(Declared::Instances {
                    stacks: instances, ..
                }) => stacks.extend(instances.into_iter().map(Box::new)),
                Some(Declared::Unknown) => project.broken.push(path.clone()),
            }
            problems.diagnostics.extend(diagnostics);
            if let Some(settings) = settings {
                project.settings = *settings;
                project.drivers = drivers;
            }
            if let Some(scope) = scope {
                project.scopes.insert(path, scope);
            }
        }
        let imported = imported.into_iter();
        project.imports = imported.map(|(path, it)| (path, watched(it))).collect();
        stacks.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        check_ids(&stacks, &mut problems.diagnostics);
        project.stacks = Stacks::new(stacks);
        let sources = &project.sources;
        let moved = by_place(moved, |it| it.span, sources);
        let removed = by_place(removed, |it| it.span, sources);
        let policies = by_place(policies, |it| it.name.span, sources);
        let modules = by_place(modules, |it| it.span, sources);
        project.moves = Moves::new(moved, &mut problems.diagnostics);
        project.removed = RemovedBlocks::new(removed, &project.stacks, &mut problems.diagnostics);
        project.policies = policy::by_name(policies, &mut problems.diagnostics);
        project.modules = module::by_name(modules, &mut problems.diagnostics);
        project.check_names(&mut problems.diagnostics);
        project.check_limits(&mut problems.diagnostics);
        let of_stacks = project.stacks.iter();
        let of_stacks = of_stacks.filter_map(|(_, stack)| stack.driver.as_ref());
        let of_scopes = project.scopes.values();
        let of_scopes = of_scopes.filter_map(|scope| scope.driver.as_ref());
        let chosen = of_stacks.chain(of_scopes);
        driver::check(chosen, &project.drivers, &mut problems.diagnostics);
        project
    }

    /// Returns the files of the tree that could not be read or parsed, except links, which are not followed in a
    /// commit. Their content is unknown.
    pub fn unparsed(&self) -> impl Iterator<Item = &ProjectPath> {
        let kind = |path: &ProjectPath| self.tree.as_ref().and_then(|tree| tree.kind(path));
        let broken = self.broken.iter();
        broken.filter(move |path| kind(path) == Some(FileKind::File))
    }

    /// Checks that no instance has the path of another stack's directory.
    fn check_names(&self, problems: &mut Vec<Diagnostic>) {
        let instances = self.stacks.iter().filter(|(_, stack)| stack.each.is_some());
        for (_, instance) in instances {
            let directory = ProjectPath::from_normal(instance.path.as_str());
            let Some(other) = self.stacks.at_or_below(&directory).next() else {
                continue;
            };
            let message = format!(
                "`{}` is an instance and a directory with stacks",
                instance.path
            );
            let diagnostic = Diagnostic::error(Code::DuplicateDefinition, message)
                .label(instance.span, "an instance of this block")
                .label(
                    self.stacks[other].span,
                    "at or below the directory of that name",
                );
            problems.push(diagnostic.help("rename the directory, or choose another key"));
        }
    }

    fn check_limits(&self, problems: &mut Vec<Diagnostic>) {
        for limit in &self.settings.concurrency {
            let tag = &limit.value.tag;
            if self.stacks.has_tag(tag) || !self.broken.is_empty() {
                continue; // what is broken may carry it
            }
            let message = format!("`{tag}` in `concurrency` matches no stack");
            let mut diagnostic = Diagnostic::warning(Code::UnknownReference, message);
            if self.settings.strict_references {
                diagnostic.severity = Severity::Error;
                diagnostic = diagnostic.note("the project sets `references = \"strict\"`");
            }
            let diagnostic = diagnostic.label(limit.span, "no stack has this tag");
            problems.push(diagnostic.did_you_mean(tag, self.stacks.tags()));
        }
    }

    /// Returns the directories from `path` up to the root that hand something down, nearest first.
    pub fn scopes_of<'a>(
        &'a self,
        path: &'a ProjectPath,
    ) -> impl Iterator<Item = &'a DirectoryScope> {
        std::iter::once(path.as_str())
            .chain(path.ancestors())
            .filter_map(|directory| self.scopes.get(directory).map(Box::as_ref))
    }

    /// Returns the `removed` block of a recorded stack: if `moved` blocks move the stack, that of the
    /// path it moves to.
    pub fn removed_block(&self, recorded: &StackPath) -> Option<&RemovedBlock> {
        let moved = self.moves.destinations([recorded]);
        self.removed.of(moved.get(recorded).unwrap_or(recorded))
    }

    /// Returns the configured driver of a stack: its own, or that of the nearest directory.
    pub fn driver_of(&self, stack: StackIndex) -> Option<&Spanned<String>> {
        let stack = &self.stacks[stack];
        let mut scopes = self.scopes_of(stack.path.directory());
        let inherited = || scopes.find_map(|scope| scope.driver.as_ref());
        stack.driver.as_ref().or_else(inherited)
    }

    /// Returns whether an apply may destroy resources of a stack without approval, by the nearest directory with this
    /// setting. The default is no.
    pub fn allows_resource_destroy(&self, stack: StackIndex) -> bool {
        let mut scopes = self.scopes_of(self.stacks[stack].path.directory());
        let said = scopes.find_map(|scope| scope.allows_resource_destroy);
        said.unwrap_or(false)
    }

    /// Returns the `input` blocks of a stack, in the order of their files.
    pub fn inputs_of(&self, stack: StackIndex) -> &[InputBlock] {
        let scope = self.scopes.get(self.stacks[stack].path.directory());
        scope.map_or(&[], |scope| &scope.inputs)
    }

    /// Returns the `timeout` and `retry` of a stack, each from the nearest directory that sets it.
    pub fn attempts_of(&self, stack: StackIndex) -> Attempts {
        let mut settings = AttemptSettings::default();
        for scope in self.scopes_of(self.stacks[stack].path.directory()) {
            settings = settings.or(&scope.attempts);
        }
        settings.into()
    }
}

/// Returns the threads that read, parse and evaluate. They start on first use.
pub(crate) fn pool() -> Result<&'static ThreadPool, ThreadPoolBuildError> {
    static POOL: OnceLock<ThreadPool> = OnceLock::new();
    if let Some(pool) = POOL.get() {
        return Ok(pool);
    }
    let start = |n_threads| {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
        builder.stack_size(STACK_BYTES).build()
    };
    let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Where memory or processes are limited, one thread is enough.
    let started = start(processors.max(MIN_THREADS)).or_else(|_| start(1))?;
    Ok(POOL.get_or_init(|| started))
}

/// Returns the imported files and patterns, without the contents.
fn watched(imports: Imports) -> Vec<Spanned<Watch>> {
    let files = imports.files.into_iter().map(|(file, _)| Spanned {
        value: Watch::File(file.value),
        span: file.span,
    });
    let patterns = imports.patterns.into_iter().map(|pattern| Spanned {
        value: Watch::FilePattern(pattern.value),
        span: pattern.span,
    });
    files.chain(patterns).collect()
}

/// Sorts blocks of all directories by their places.
fn by_place<T>(mut blocks: Vec<T>, span: fn(&T) -> Span, sources: &Sources) -> Vec<T> {
    blocks.sort_by(|a, b| sources.place(span(a)).cmp(&sources.place(span(b))));
    blocks
}

struct Evaluated {
    path: ProjectPath,
    declared: Option<Declared>,
    /// `None` if it hands nothing down.
    scope: Option<Box<DirectoryScope>>,
    /// Only of the root.
    settings: Option<Box<ProjectSettings>>,
    drivers: BTreeMap<String, DriverBlock>,
    moved: Vec<MovedBlock>,
    removed: Vec<RemovedBlock>,
    policies: Vec<PolicyBlock>,
    modules: Vec<ModuleBlock>,
    diagnostics: Vec<Diagnostic>,
    /// The keywords of blocks that only Terramate uses.
    unused: Vec<Name>,
}

impl Evaluated {
    fn new(
        directory: Directory,
        imported: &[ImportedBody],
        project_files: &SourceTree,
        sources: &Sources,
    ) -> Self {
        let Directory { path, files } = directory;
        let mut problems = Vec::new();
        for file in &files {
            top_level::check(&file.path, &file.body, &mut problems);
        }
        let own_bodies: Vec<&Body> = files.iter().map(|file| &*file.body).collect();
        let imported_bodies: Vec<&Body> = imported.iter().map(|(_, body)| &**body).collect();
        let local = || own_bodies.iter().flat_map(|body| &body.blocks);
        let imported = || imported_bodies.iter().flat_map(|body| &body.blocks);
        let is_tool = |block: &&Block| matches!(&*block.kind.text, "terramate" | "orch");
        let config = config::read(
            local().filter(is_tool),
            imported().filter(is_tool),
            &path,
            &mut problems,
        );
        let globals = globals::read(&imported_bodies, &own_bodies, &path, sources, &mut problems);
        let ignore = config.ignore.iter();
        let ignore = ignore.filter_map(|entry| ignored(entry, &path, &mut problems));
        let ignore = ignore.collect();
        let block = stack::declared(&files, &mut problems);
        let block = block.as_deref();
        let declared =
            block.map(|block| stack::from_block(block, &path, project_files, &mut problems));
        let attempts = block
            .map(|block| stack::attempts(block, &mut problems))
            .unwrap_or_default()
            .or(&config.attempts);
        let of_kind = |kind: &'static str| {
            let blocks = local().chain(imported());
            blocks.filter(move |block| &*block.kind.text == kind)
        };
        let drivers = of_kind(DRIVER);
        let drivers = if path.is_root() {
            driver::read(drivers, &mut problems)
        } else {
            problems.extend(drivers.map(driver::misplaced));
            BTreeMap::new()
        };
        let moved = of_kind(MOVED)
            .filter_map(|it| relocation::read_moved(it, &path, &mut problems))
            .collect();
        let removed = of_kind(REMOVED)
            .filter_map(|it| relocation::read_removed(it, &path, &mut problems))
            .collect();
        let policies = of_kind(POLICY)
            .filter_map(|it| policy::read(it, &path, &mut problems))
            .collect();
        let modules = of_kind(MODULE)
            .filter_map(|it| module::read(it, &path, &mut problems))
            .collect();
        let inputs = sharing::read_inputs(of_kind(INPUT), &mut problems);
        sharing::check_outputs(of_kind(OUTPUT), &mut problems);
        let sharing_backends = sharing::read_backends(of_kind(SHARING_BACKEND), &mut problems);
        let scripts = script::read(of_kind(SCRIPT), &mut problems);
        let unused = files.iter().flat_map(|file| top_level::unused(&file.body));
        let scope = DirectoryScope {
            env: config.env,
            lets: config.lets,
            globals,
            ignore,
            attempts,
            driver: config.driver,
            lifecycle: config.lifecycle,
            allows_resource_destroy: config.allows_resource_destroy,
            inputs,
            sharing_backends,
            scripts,
        };
        let settings = path.is_root().then_some(config.settings);
        Evaluated {
            path,
            declared,
            // Most directories have neither, and both are large.
            scope: (!scope.is_empty()).then(|| Box::new(scope)),
            settings: settings.map(Box::new),
            drivers,
            moved,
            removed,
            policies,
            modules,
            diagnostics: problems,
            unused: unused.cloned().collect(),
        }
    }
}
