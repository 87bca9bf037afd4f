//! The commands: each file has one, and joins what the library offers.
//!
//! What all of them share is here: finding and loading the project, reporting what is wrong with it,
//! and selecting stacks.

mod changed;
mod completions;
mod env;
mod graph;
mod list;
mod run;
mod validate;

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context as _;
use orch::diagnostic::{self, Diagnostic, Severity};
use orch::discover::{self, Listing, RootRule};
use orch::environment::{Environment, Environments};
use orch::graph::Graph;
use orch::path::ProjectPath;
use orch::printable::printable;
use orch::project::Project;
use orch::reference::References;
use orch::report::write_diagnostics;
use orch::select::{Scope, Selection, Wish, select};
use orch::stack::StackIndex;
use orch::tag::{TagFilter, tag_problem};
use tracing::{debug, info};

pub(crate) use self::changed::Refused;
use self::changed::{ChangeWish, Reading};
use crate::cli::{Cli, Command, Format, SelectArgs};
use crate::console;
use crate::exit::ExitStatus;

/// A command line that cannot be carried out.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// Carries out the command line.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitStatus> {
    let chdir = cli.chdir;
    match cli.command {
        Command::List(args) => list::list(&chdir, &args),
        Command::Run(args) => run::run(&chdir, &args),
        Command::Graph(args) => graph::graph(&chdir, &args),
        Command::Validate(args) => validate::validate(&chdir, &args),
        Command::Env(args) => env::env(&chdir, &args),
        Command::Completions(args) => completions::completions(&args),
    }
}

/// A project that has been read, whatever is wrong with it.
struct Loaded {
    project: Project,
    references: References,
    /// What is being read of git meanwhile, where changes are asked for.
    reading: Option<Reading>,
    listing: Listing,
    /// Where the user is.
    directory: ProjectPath,
    format: Format,
}

impl Loaded {
    /// Loads the project that the user is in.
    ///
    /// Where changes are asked for, git is read at the same time.
    ///
    /// It lives as long as the program, which is about to end when it is no longer needed: taking
    /// tens of thousands of stacks apart first would cost a tenth of the time of a listing.
    fn new(
        chdir: &[PathBuf],
        format: Format,
        wants_changes: bool,
    ) -> anyhow::Result<&'static mut Self> {
        let mut current =
            std::env::current_dir().context("failed to find the current directory")?;
        current.extend(chdir);
        let current = dunce::canonicalize(&current).map_err(|error| {
            UsageError(format!("cannot change to `{}`: {error}", current.display()))
        })?;
        if !current.is_dir() {
            return Err(UsageError(format!(
                "cannot change to `{}`: not a directory",
                current.display()
            ))
            .into());
        }
        let (root, rule) = discover::find_root(&current)?;
        info!(root = %root.display(), ?rule, "project root");
        if rule == RootRule::WorkingDirectory {
            console::note(&format!(
                "nothing marks the root of a project here, so it is `{}`; write `orch {{ root = true }}` into a file `orch.orch.hcl` at the root",
                root.display()
            ));
        }
        let reading = wants_changes.then(|| Reading::start(&root));
        let what = "failed to start the threads that read files";
        let (mut project, listing) = if wants_changes {
            Project::load_with_listing(&root).context(what)?
        } else {
            (Project::load(&root).context(what)?, Listing::default())
        };
        let directory = ProjectPath::from_host(&root, &current)
            .with_context(|| format!("the path of `{}` is not UTF-8", current.display()))?;
        let mut diagnostics = std::mem::take(&mut project.diagnostics);
        let references = References::resolve(&project, &mut diagnostics);
        project.diagnostics = diagnostics;
        debug!(
            files = project.sources.len(),
            stacks = project.stacks.len(),
            "project loaded"
        );
        Ok(Box::leak(Box::new(Loaded {
            project,
            references,
            reading,
            listing,
            directory,
            format,
        })))
    }

    /// Ends the command if anything read so far is an error; what is wrong is then shown.
    fn check(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        if self.project.has_errors() {
            self.report()
        } else {
            Ok(None)
        }
    }

    /// Shows what is wrong; to be called once. Errors end the command, warnings do not.
    fn report(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        diagnostic::sort(&mut self.project.diagnostics, &self.project.sources);
        let project = &self.project;
        console::diagnostics(&project.diagnostics, &project.sources);
        for error in &project.errors {
            console::error(error);
        }
        if !project.has_errors() {
            return Ok(None);
        }
        if self.format == Format::Json {
            // Whoever has stopped reading still learns from the status that something is wrong.
            let mut out = console::stdout();
            match write_diagnostics(&mut out, project, false).and_then(|()| out.flush()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
                _ => {}
            }
        }
        let is_configuration = project.diagnostics.iter().any(Diagnostic::is_error);
        Ok(Some(if is_configuration {
            ExitStatus::Configuration
        } else {
            ExitStatus::Surroundings
        }))
    }

    /// Selects stacks; says so where there are none.
    fn select(&mut self, filters: Filters) -> anyhow::Result<Selection> {
        let Filters {
            tags,
            no_tags,
            scope,
            change,
        } = filters;
        let is_stack = self.project.stacks.at(self.directory.as_str()).is_some();
        if scope == Scope::Exact && !is_stack {
            let message = format!(
                "--no-recursive needs a stack, and `{}` is not one",
                self.directory
            );
            return Err(UsageError(message).into());
        }
        let changed = match change {
            Some(wish) => Some(self.changes(&wish)?),
            None => None,
        };
        let wish = Wish {
            changed,
            directory: self.directory.clone(),
            scope,
            tags,
            no_tags,
        };
        let selection = select(&self.project.stacks, &self.references, &wish);
        if selection.is_empty() {
            console::note(&self.why_nothing(&wish));
        }
        info!(selected = selection.len(), "selection");
        Ok(selection)
    }

    /// Explains an empty selection.
    fn why_nothing(&self, wish: &Wish) -> String {
        let stacks = &self.project.stacks;
        let directory = &wish.directory;
        let shown = printable(directory.as_str());
        let place = match wish.scope {
            Scope::Recursive => format!("at or below `{shown}`"),
            Scope::Exact => format!("at `{shown}`"),
        };
        if stacks.is_empty() {
            let mut message = format!("there are no stacks in `{}`", self.project.root.display());
            if let Some(nested) = self.project.nested_projects.first() {
                message += &format!("; `{nested}` is a project of its own, change into it");
            }
            return message;
        }
        if stacks.at_or_below(directory).next().is_some() {
            let has_tag_filters = !wish.tags.is_empty() || !wish.no_tags.is_empty();
            let Some(changes) = &wish.changed else {
                debug_assert!(
                    has_tag_filters,
                    "only tags can leave out what is below the directory"
                );
                return format!("no stack {place} passes the tag filters");
            };
            let since = changes.since.base.commit.short();
            let passes = if has_tag_filters {
                " passes the tag filters"
            } else {
                ""
            };
            return match changes.stacks.len() {
                0 => format!("no stack has changed since {since}"),
                1 => format!("1 stack has changed since {since}, but none {place}{passes}"),
                n => format!("{n} stacks have changed since {since}, but none {place}{passes}"),
            };
        }
        let mut message = format!(
            "the project has {}, none of them {place}",
            count(stacks.len(), "stack")
        );
        if let Some(above) = stacks.nearest_above(directory) {
            let above = printable(stacks[above].path.as_str());
            message += &format!("; it lies inside the stack `{above}`");
        }
        message
    }

    /// Works out the environments of stacks; what is wrong with them goes to the diagnostics.
    fn environments(
        &mut self,
        stacks: impl Iterator<Item = StackIndex>,
    ) -> Vec<(StackIndex, Environment)> {
        let environments = Environments::new(&self.project, host_environment());
        let mut known = Vec::new();
        // A definition that is handed down to many stacks may be wrong for all of them.
        let mut problems: HashMap<Diagnostic, Vec<StackIndex>> = HashMap::new();
        for stack in stacks {
            match environments.of_stack(stack) {
                Ok(environment) => known.push((stack, environment)),
                Err(wrong) => {
                    for diagnostic in wrong {
                        problems.entry(diagnostic).or_default().push(stack);
                    }
                }
            }
        }
        let mut problems: Vec<_> = problems.into_iter().collect();
        problems.sort_by(|(_, a), (_, b)| a.cmp(b));
        for (diagnostic, stacks) in problems {
            let note = format!("evaluated for {}", self.names(&stacks));
            self.project.diagnostics.push(diagnostic.note(note));
        }
        known
    }

    /// Names the first of some stacks and counts the others.
    fn names(&self, stacks: &[StackIndex]) -> String {
        let first = &self.project.stacks[stacks[0]].path;
        match stacks.len() {
            1 => format!("stack `{first}`"),
            more => format!("stack `{first}` and {} more", more - 1),
        }
    }

    /// Builds the graph and adds its cycles to the diagnostics, as bad as `cycles` says.
    fn graph(&mut self, cycles: CyclesAre<'_>) -> Graph {
        let graph = Graph::new(&self.project.stacks, &self.references);
        for knot in graph.cycles() {
            let is_fatal = match cycles {
                CyclesAre::Errors => true,
                CyclesAre::Warnings => false,
                CyclesAre::ErrorsWithin(selection) => {
                    knot.stacks.iter().any(|&stack| selection.contains(stack))
                }
            };
            for mut diagnostic in knot.diagnostics(&self.project.stacks, &self.project.sources) {
                if !is_fatal {
                    diagnostic.severity = Severity::Warning;
                }
                self.project.diagnostics.push(diagnostic);
            }
        }
        graph
    }
}

/// The selection flags, understood.
struct Filters {
    change: Option<ChangeWish>,
    tags: Vec<TagFilter>,
    no_tags: Vec<String>,
    scope: Scope,
}

impl Filters {
    fn new(args: &SelectArgs) -> Result<Self, UsageError> {
        let change = ChangeWish::new(args)?;
        let mut tags = Vec::new();
        for text in &args.tags {
            let filter = TagFilter::parse(text);
            tags.push(filter.map_err(|bad| UsageError(format!("in --tags: {bad}")))?);
        }
        if args.tags.iter().any(String::is_empty) {
            console::note("`--tags` without a tag leaves no stack out");
        }
        tags.retain(|filter| !filter.is_empty());
        let mut no_tags = Vec::new();
        for tag in args.no_tags.iter().flat_map(|list| list.split(',')) {
            if let Some(problem) = tag_problem(tag) {
                let message = format!("in --no-tags: `{tag}` is not a tag: {problem}");
                return Err(UsageError(message));
            }
            no_tags.push(tag.to_owned());
        }
        no_tags.retain(|tag| !tag.is_empty());
        let scope = if args.no_recursive {
            Scope::Exact
        } else {
            Scope::Recursive
        };
        Ok(Filters {
            change,
            tags,
            no_tags,
            scope,
        })
    }
}

/// Writes a number of things: "1 stack", "2 stacks".
fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// How bad a cycle is.
#[derive(Clone, Copy)]
enum CyclesAre<'a> {
    /// Always wrong.
    Errors,
    /// Worth a warning.
    Warnings,
    /// Wrong if a selected stack is part of it, else worth a warning.
    ErrorsWithin(&'a Selection),
}

/// The environment that `orch` was started in, as far as it is text.
fn host_environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
