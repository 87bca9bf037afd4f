//! The selection flags, parsed, and what they select.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use orch::change::{MissingStack, Status, shared_data};
use orch::context::ChangeQuery;
use orch::path::StackPath;
use orch::printable::{count, printable};
use orch::project::stack::StackIndex;
use orch::project::tag::{TagFilter, tag_problem};
use orch::release::ReleaseName;
use orch::report::Refusal;
use orch::selection::select::{
    DirectoryMatch, NamedStacks, PathFilter, Query, Reach, Selection, select,
};
use tracing::info;

use super::changed::note_unselectable;
use super::selection_flags::SelectArgs;
use super::{Loaded, working_directory};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// How many wrong lines of a list of stacks are reported one by one.
const MAX_BAD_LINES: usize = 10;

/// The selection flags, parsed as far as that is possible without the project.
pub(super) struct Filters {
    change: Option<ChangeQuery>,
    released: Option<ReleaseName>,
    statuses: BTreeSet<Status>,
    /// Whether to fetch what is missing.
    fetches: bool,
    /// What becomes of stacks that are on record and not here.
    missing: Missing,
    /// Whether the command says which file makes a stack differ from what was applied.
    explains: bool,
    tags: Vec<TagFilter>,
    no_tags: Vec<String>,
    scope: DirectoryMatch,
    globs: Vec<String>,
    exclude: Vec<String>,
    stacks_from: Option<NameList>,
    /// Each with Terramate's name of the flag, if that was used.
    neighbours: Vec<(Reach, Option<&'static str>)>,
}

/// What becomes of stacks that are on record and not here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// Statuses that only they have are refused.
    Refused,
    /// Their statuses count.
    Shown,
    /// Their statuses count, and a list of stacks may name them.
    Named,
}

/// A list of stacks, as it was read.
struct NameList {
    /// Its source, for messages.
    source: String,
    text: String,
}

impl Filters {
    /// Parses the flags, and reads the list of stacks, if there is one. The list is read before
    /// anything else: its writer may take a while, and the project is to be read after that.
    pub(super) fn new(chdir: &[PathBuf], args: &SelectArgs) -> Result<Self> {
        check_fetch(args)?;
        Filters::of_run(chdir, args)
    }

    /// Does what [`Self::new`] does for a command that may read the state in any case, and so may fetch
    /// without `--changed` and `--status`, too.
    pub(super) fn of_run(chdir: &[PathBuf], args: &SelectArgs) -> Result<Self> {
        let change = if args.changed {
            Some(args.change_query()?)
        } else if let Some(flag) = args.flag_of_changed() {
            return Err(without_changed(flag));
        } else {
            None
        };
        let (tags, no_tags) = tag_filters(&args.tags, &args.no_tags)?;
        let scope = if args.no_recursive {
            DirectoryMatch::Exact
        } else {
            DirectoryMatch::Recursive
        };
        Ok(Filters {
            change,
            released: args.released.clone(),
            statuses: args.status.iter().map(|word| word.status()).collect(),
            fetches: args.fetch,
            missing: Missing::Refused,
            explains: false,
            tags,
            no_tags,
            scope,
            globs: args.globs.clone(),
            exclude: args.exclude.clone(),
            stacks_from: match &args.stacks_from {
                Some(file) => Some(NameList::read(chdir, file)?),
                None => None,
            },
            neighbours: args.neighbours.reaches(),
        })
    }

    /// Makes the statuses count that only stacks have that are not here.
    pub(super) fn showing_missing(mut self) -> Self {
        self.missing = Missing::Shown;
        self
    }

    /// Makes stacks count that are on record and not here, in statuses and in the list of stacks.
    pub(super) fn with_missing(mut self) -> Self {
        self.missing = Missing::Named;
        self
    }

    /// Makes git tell which file makes a stack differ from what was applied, if `explains` is set.
    pub(super) fn explaining(mut self, explains: bool) -> Self {
        self.explains = explains;
        self
    }

    fn check_statuses(&self) -> Result<()> {
        let mut missing = [Status::Removed, Status::Absent].into_iter();
        match missing.find(|status| self.statuses.contains(status)) {
            Some(status) if self.missing == Missing::Refused => {
                let word = status.word();
                let message = format!(
                    "a stack whose status is `{word}` is not in the tree, and this command acts only on stacks that are"
                );
                let hint = format!(
                    "`orch list --status {word}` lists such stacks; `plan`, `apply` and `destroy` take the status, too"
                );
                Err(ProgramError::usage(message).hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Returns the request for change detection, with `--changed`.
    pub(super) fn change(&self) -> Option<&ChangeQuery> {
        self.change.as_ref()
    }
}

impl NameList {
    fn read(chdir: &[PathBuf], file: &Path) -> Result<Self> {
        let is_stdin = file.as_os_str() == "-";
        let source = if is_stdin {
            "standard input".to_owned()
        } else {
            file.display().to_string()
        };
        let mut text = String::new();
        let read = if is_stdin {
            std::io::stdin().lock().read_to_string(&mut text).map(drop)
        } else {
            let file = working_directory(chdir)?.join(file);
            std::fs::read_to_string(file).map(|read| text = read)
        };
        read.with_context(|| format!("failed to read the list of stacks from {source}"))?;
        Ok(NameList { source, text })
    }
}

/// Refuses `--fetch` where nothing needs history.
pub(super) fn check_fetch(args: &SelectArgs) -> Result<()> {
    if args.fetch && !args.changed && args.status.is_empty() {
        let message = "`--fetch` has no effect without `--changed` or `--status`; add `--changed` or `--status`";
        return Err(ProgramError::usage(message));
    }
    Ok(())
}

/// Returns the error of a flag that has a meaning only with `--changed`.
pub(super) fn without_changed(flag: &str) -> ProgramError {
    let message = format!("`{flag}` has no effect without `--changed`; add `--changed`");
    ProgramError::usage(message)
}

/// Parses `--tags` and `--no-tags`.
pub(super) fn tag_filters(
    wanted: &[String],
    unwanted: &[String],
) -> Result<(Vec<TagFilter>, Vec<String>)> {
    let mut tags = Vec::new();
    for text in wanted {
        let filter = TagFilter::parse(text);
        let filter = filter.map_err(|bad| ProgramError::usage(format!("in --tags: {bad}")))?;
        if text.split([',', ':']).any(str::is_empty) {
            return Err(no_tag("--tags", text));
        }
        tags.push(filter);
    }
    let mut no_tags = Vec::new();
    if let Some(list) = unwanted
        .iter()
        .find(|list| list.split(',').any(str::is_empty))
    {
        return Err(no_tag("--no-tags", list));
    }
    for tag in unwanted.iter().flat_map(|list| list.split(',')) {
        if let Some(problem) = tag_problem(tag) {
            let message = format!("in --no-tags: `{tag}` is not a tag: {problem}");
            return Err(ProgramError::usage(message));
        }
        no_tags.push(tag.to_owned());
    }
    Ok((tags, no_tags))
}

/// Returns the error of a flag whose value lacks a tag, as an unset variable of the shell does. It must
/// not mean all stacks.
fn no_tag(flag: &str, value: &str) -> ProgramError {
    let message = match value {
        "" => format!("the value of `{flag}` is empty"),
        value => format!("in {flag}: a tag is missing in `{value}`"),
    };
    ProgramError::usage(message).hint(match flag {
        "--no-tags" => "leave out `--no-tags` to exclude no stacks by their tags",
        _ => "leave out `--tags` to select stacks whatever their tags",
    })
}

impl Loaded {
    /// Resolves the flags in the project, and asks git what has changed, if that is wanted.
    pub(super) fn query(&mut self, filters: Filters) -> Result<Query> {
        filters.check_statuses()?;
        self.fetches_seen = filters.fetches;
        let is_stack = self.project.stacks.at(self.directory.as_str()).len() > 0;
        if filters.scope == DirectoryMatch::Exact && !is_stack {
            let message = format!(
                "--no-recursive needs a stack, and `{}` is not one",
                self.directory
            );
            return Err(ProgramError::usage(message));
        }
        self.refuse_terramate_names(&filters.neighbours)?;
        let globs = self.path_filters("--match", &filters.globs)?;
        let exclude = self.path_filters("--exclude", &filters.exclude)?;
        let named = match filters.stacks_from {
            Some(list) => Some(self.named(list, filters.missing == Missing::Named)?),
            None => None,
        };
        let change = filters.change.as_ref();
        let (applied, change) = match change {
            Some(query) if self.is_applied(query) => (Some(query), None),
            change => (None, change),
        };
        let changed = match change {
            Some(query) => Some(self.changes(query)?),
            None => None,
        };
        let released = filters.released.as_ref();
        let released = released.map(|name| self.released(name)).transpose()?;
        let recorded = if applied.is_some() || !filters.statuses.is_empty() {
            Some(self.recorded(applied, filters.statuses, filters.explains)?)
        } else {
            None
        };
        Ok(Query {
            changed,
            released,
            recorded,
            directory: self.directory.clone(),
            scope: filters.scope,
            globs,
            named,
            tags: filters.tags,
            no_tags: filters.no_tags,
            neighbours: filters
                .neighbours
                .into_iter()
                .map(|(reach, _)| reach)
                .collect(),
            exclude,
        })
    }

    /// Refuses Terramate's names of the flags about neighbours where stacks share data: there, they
    /// follow the data.
    fn refuse_terramate_names(&self, flags: &[(Reach, Option<&str>)]) -> Result<()> {
        let mut theirs = flags
            .iter()
            .filter_map(|(reach, name)| Some((reach, (*name)?)));
        let Some((ours, name)) = theirs.next() else {
            return Ok(());
        };
        let Some(shared) = shared_data(&self.project).context("failed to look for shared data")?
        else {
            return Ok(());
        };
        let file = printable(shared.file.relative()).into_owned();
        let message = format!(
            "`{name}` follows the data that stacks share (`{file}` has a block `{}`), which orch does not know",
            shared.block
        );
        let hint = format!("to follow the order of stacks instead, write `{ours}`");
        Err(ProgramError::usage(message).hint(hint))
    }

    /// Selects stacks, and prints a note if there are none.
    pub(super) fn select(&self, query: &Query) -> Selection {
        let selection = self.select_any(query);
        // A problem may be the reason that there are none.
        if !self.problems.has_errors() {
            self.note_if_empty(query, &selection);
        }
        selection
    }

    /// Prints a note if nothing is selected.
    pub(super) fn note_if_empty(&self, query: &Query, selection: &Selection) {
        if selection.is_empty() {
            console::note(&self.why_nothing(query, selection));
            if self.project.stacks.is_empty() {
                self.note_possible_stacks();
            }
        }
    }

    /// Refuses an empty selection if `--fail-if-empty` is given; see [`Self::select`].
    pub(super) fn check_not_empty(&self, selection: &Selection, fail_if_empty: bool) -> Result<()> {
        if !fail_if_empty || !selection.is_empty() {
            return Ok(());
        }
        let problem = "no stack is selected, and `--fail-if-empty` is given";
        let refused = Refusal {
            problem,
            command: None,
        };
        self.write_problems(Some(refused))?;
        Err(ProgramError::refused(problem))
    }

    /// Selects stacks, if there are any.
    pub(super) fn select_any(&self, query: &Query) -> Selection {
        if let Some(since) = query.since() {
            note_unselectable(&since);
        }
        self.warn_of_idle(query, &BTreeMap::new());
        self.select_silently(query)
    }

    /// Selects stacks, if there are any, and leaves it to the caller to tell what was removed.
    pub(super) fn select_silently(&self, query: &Query) -> Selection {
        let selection = select(&self.project.stacks, &self.references, &self.graph, query);
        info!(selected = selection.len(), "selection");
        for empty in &self.project.without_instances {
            let place = self.project.sources.line(empty.span);
            info!(directory = %empty.directory, place, "no stack: `for_each` is empty");
        }
        selection
    }

    pub(super) fn path_filters(&self, flag: &str, written: &[String]) -> Result<Vec<PathFilter>> {
        let filter = |written: &String| {
            if written.is_empty() {
                let message = format!("`{flag}` is empty; use `**` to match all stacks");
                return Err(ProgramError::usage(message));
            }
            let filter = PathFilter::new(&self.directory, written);
            filter.map_err(|bad| ProgramError::usage(format!("in {flag}: `{written}`: {bad}")))
        };
        written.iter().map(filter).collect()
    }

    /// Finds the stacks that a list names. What names none may name one on record, if that is allowed.
    fn named(&self, list: NameList, names_missing: bool) -> Result<NamedStacks> {
        let NameList { source, text } = list;
        let stacks = &self.project.stacks;
        let mut lines: HashMap<StackIndex, usize> = HashMap::new();
        let mut bad = Vec::new();
        let mut missing = BTreeMap::new();
        // Some editors and shells of Windows write this first.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        for (line, number) in text.lines().zip(1..) {
            let mut written = line.trim();
            if written.is_empty() {
                continue;
            }
            let mut found = stacks.written(&self.directory, written);
            // The name of a directory may have blanks at its ends, as `list` prints it.
            if written != line
                && let Ok(exact) = stacks.written(&self.directory, line)
                && exact.len() > 0
            {
                (written, found) = (line, Ok(exact));
            }
            match found {
                Ok(found) if found.len() > 0 => {
                    for stack in found {
                        lines.entry(stack).or_insert(number);
                    }
                }
                _ => match self.path_on_record(written).filter(|_| names_missing) {
                    Some(path) => _ = missing.entry(path).or_insert(number),
                    None => bad.push((number, written)),
                },
            }
        }
        self.refuse_lines(&source, &bad)?;
        let is_elsewhere = |&&stack: &&StackIndex| {
            !stacks[stack]
                .path
                .directory()
                .is_at_or_below(&self.directory)
        };
        let elsewhere = lines.keys().filter(is_elsewhere).count();
        if elsewhere > 0 {
            let named = count(lines.len(), "stack");
            let directory = printable(self.directory.as_str());
            let verbs = if elsewhere == 1 {
                ("lies", "is")
            } else {
                ("lie", "are")
            };
            console::note(&format!(
                "of {named} in {source}, {elsewhere} {} outside of `{directory}` and {} left out",
                verbs.0, verbs.1
            ));
        }
        Ok(NamedStacks {
            source,
            lines,
            missing,
        })
    }

    /// Returns the path that a stack would have on record.
    fn path_on_record(&self, written: &str) -> Option<String> {
        if let Some(path) = StackPath::parse(written) {
            return Some(path.to_string());
        }
        Some(self.directory.resolve(written).ok()?.to_string())
    }

    /// Refuses lines of a list that name no stack, in the tree or on record.
    pub(super) fn check_named(
        &self,
        named: Option<&NamedStacks>,
        missing: &BTreeMap<String, MissingStack>,
    ) -> Result<()> {
        let Some(NamedStacks {
            source,
            missing: paths,
            ..
        }) = named
        else {
            return Ok(());
        };
        let paths = paths
            .iter()
            .filter(|(path, _)| !missing.contains_key(*path));
        let mut bad: Vec<(usize, &str)> = paths.map(|(path, line)| (*line, &**path)).collect();
        bad.sort_unstable();
        self.refuse_lines(source, &bad)
    }

    fn refuse_lines(&self, source: &str, bad: &[(usize, &str)]) -> Result<()> {
        if bad.is_empty() {
            return Ok(());
        }
        let mut message = format!("{source} names paths that are not stacks:");
        for (number, written) in bad.iter().take(MAX_BAD_LINES) {
            let why = match self.directory.resolve(written) {
                Err(_) => "outside of the project".to_owned(),
                Ok(path) => (self.without_quotes(written))
                    .unwrap_or_else(|| self.why_no_stack(&path, written)),
            };
            message += &format!("\n  line {number}: `{}`: {why}", printable(written));
        }
        if bad.len() > MAX_BAD_LINES {
            message += &format!("\n  and {} more", bad.len() - MAX_BAD_LINES);
        }
        Err(ProgramError::usage(message))
    }
}
