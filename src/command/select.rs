//! Selects the stacks of a command.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use tracing::info;

pub use crate::change::StatusKind;
use crate::context::{ChangeQuery, Context};
use crate::error::{Error, Result};
use crate::printable::{count, printable};
use crate::project::stack::StackIndex;
use crate::project::tag::TagFilter;
use crate::release::ReleaseName;
use crate::selection::select::{
    DirectoryMatch, NamedStacks, PathFilter, Query, Reach, Selection, select,
};

/// How many invalid lines of a list of stacks are reported one by one.
const MAX_BAD_LINES: usize = 10;

/// The flags of a selection, before the project is known.
pub struct SelectionRequest {
    /// The request for change detection, with `--changed`.
    pub change: Option<ChangeQuery>,
    pub released: Option<ReleaseName>,
    pub statuses: BTreeSet<StatusKind>,
    pub fetches: bool,
    pub missing: MissingStacks,
    /// Whether git is asked which file makes a stack differ from its applied inputs.
    pub explains: bool,
    pub tags: Vec<TagFilter>,
    pub no_tags: Vec<String>,
    pub scope: DirectoryMatch,
    pub globs: Vec<String>,
    pub exclude: Vec<String>,
    pub stacks_from: Option<NameList>,
    /// Each with Terramate's name of the flag, if that was used.
    pub neighbours: Vec<Reach>,
}

/// How a command treats recorded stacks that this commit lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingStacks {
    /// Statuses that only they have are refused.
    Refused,
    /// Their statuses count.
    Shown,
    /// Their statuses count, and a list of stacks may name them.
    Named,
}

pub struct NameList {
    pub source: String,
    pub text: String,
}

impl SelectionRequest {
    fn check_statuses(&self) -> Result<()> {
        let mut missing = [StatusKind::Removed, StatusKind::Absent].into_iter();
        match missing.find(|status| self.statuses.contains(status)) {
            Some(status) if self.missing == MissingStacks::Refused => {
                let word = status.word();
                let message = format!(
                    "stacks with the status `{word}` are not in the project, and this command acts only on stacks of the project"
                );
                let hint = format!(
                    "use `orch list --status {word}`, or `plan`, `apply` or `destroy` with this status"
                );
                Err(Error::usage(message).hint(hint))
            }
            _ => Ok(()),
        }
    }
}

impl Context {
    /// Resolves the flags in the project, and finds the changes in git if requested.
    pub fn query(&mut self, request: SelectionRequest) -> Result<Query> {
        request.check_statuses()?;
        self.state.fetches_seen = request.fetches;
        let is_stack = self.project.stacks.at(self.directory.as_str()).len() > 0;
        if request.scope == DirectoryMatch::Exact && !is_stack {
            let message = format!(
                "--no-recursive needs a stack, and `{}` is not one",
                self.directory
            );
            return Err(Error::usage(message));
        }
        let globs = self.path_filters("--match", &request.globs)?;
        let exclude = self.path_filters("--exclude", &request.exclude)?;
        let named = match request.stacks_from {
            Some(list) => Some(self.named(list, request.missing == MissingStacks::Named)?),
            None => None,
        };
        let change = request.change.as_ref();
        let (applied, change) = match change {
            Some(query) if self.is_applied(query) => (Some(query), None),
            change => (None, change),
        };
        let changed = match change {
            Some(query) => Some(self.changes(query)?),
            None => None,
        };
        let released = request
            .released
            .as_ref()
            .map(|name| self.released(name))
            .transpose()?;
        let recorded = if applied.is_some() || !request.statuses.is_empty() {
            Some(self.recorded(applied, request.statuses, request.explains)?)
        } else {
            None
        };
        Ok(Query {
            changed,
            released,
            recorded,
            directory: self.directory.clone(),
            scope: request.scope,
            globs,
            named,
            tags: request.tags,
            no_tags: request.no_tags,
            neighbours: request.neighbours,
            exclude,
        })
    }

    /// Selects stacks, and prints a note if there are none.
    pub fn select(&self, query: &Query) -> Selection {
        let selection = self.select_any(query);
        // A problem may be the reason that there are none.
        if !self.problems.has_errors() {
            self.note_if_empty(query, &selection);
        }
        selection
    }

    pub fn note_if_empty(&self, query: &Query, selection: &Selection) {
        if selection.is_empty() {
            self.notices
                .note(&self.explain_empty_selection(query, selection));
            if self.project.stacks.is_empty() {
                self.note_possible_stacks();
            }
        }
    }

    /// Refuses an empty selection if `--fail-if-empty` is given.
    pub fn check_not_empty(&self, selection: &Selection, fail_if_empty: bool) -> Result<()> {
        if !fail_if_empty || !selection.is_empty() {
            return Ok(());
        }
        let problem = "no stack is selected, and `--fail-if-empty` is given";
        Err(Error::refused(problem).documented())
    }

    /// Selects stacks, if the project has any.
    pub fn select_any(&self, query: &Query) -> Selection {
        if let Some(since) = query.since() {
            self.note_unselectable(&since);
        }
        self.warn_of_unmatched_filters(query, &BTreeMap::new());
        self.select_silently(query)
    }

    /// Like [`Self::select_any`], without notes about removed stacks.
    pub fn select_silently(&self, query: &Query) -> Selection {
        let selection = select(&self.project.stacks, &self.references, &self.graph, query);
        info!(selected = selection.len(), "selection");
        for empty in &self.project.without_instances {
            let place = self.project.sources.line(empty.span);
            info!(directory = %empty.directory, place, "no stack: `for_each` is empty");
        }
        selection
    }

    pub fn path_filters(&self, flag: &str, written: &[String]) -> Result<Vec<PathFilter>> {
        let filter = |written: &String| {
            if written.is_empty() {
                let message = format!("`{flag}` is empty; use `**` to match all stacks");
                return Err(Error::usage(message));
            }
            let filter = PathFilter::new(&self.directory, written);
            filter.map_err(|bad| Error::usage(format!("in {flag}: `{written}`: {bad}")))
        };
        written.iter().map(filter).collect()
    }

    /// Finds the stacks that a list names. If allowed, other names may refer to recorded stacks.
    fn named(&self, list: NameList, names_missing: bool) -> Result<NamedStacks> {
        let NameList { source, text } = list;
        let stacks = &self.project.stacks;
        let mut lines: HashMap<StackIndex, usize> = HashMap::new();
        let mut bad = Vec::new();
        let mut missing = BTreeMap::new();
        // Some editors and shells on Windows write this first.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        for (line, number) in text.lines().zip(1..) {
            let mut written = line.trim();
            if written.is_empty() {
                continue;
            }
            let mut found = stacks.written(&self.directory, written);
            // A directory name may begin or end with spaces, as `list` prints it.
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
                _ if let Some(stack) = self.printed_as(written) => {
                    lines.entry(stack).or_insert(number);
                }
                _ => match self.recorded_path(written).filter(|_| names_missing) {
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
            self.notices.note(&format!(
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

    fn recorded_path(&self, written: &str) -> Option<String> {
        Some(self.directory.resolve(written).ok()?.to_string())
    }

    /// Refuses lines of a list that name no stack of this commit or of the state.
    pub fn check_named(
        &self,
        named: Option<&NamedStacks>,
        is_recorded: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let Some(NamedStacks {
            source,
            missing: paths,
            ..
        }) = named
        else {
            return Ok(());
        };
        let paths = paths.iter().filter(|(path, _)| !is_recorded(path));
        let mut bad: Vec<(usize, &str)> = paths.map(|(path, line)| (*line, &**path)).collect();
        bad.sort_unstable();
        self.refuse_lines(source, &bad)
    }

    /// Returns the stack whose path `list` prints like this, with escapes for line breaks and the like.
    fn printed_as(&self, written: &str) -> Option<StackIndex> {
        if !written.contains('\\') {
            return None;
        }
        let is_printed =
            |path: &str| matches!(printable(path), Cow::Owned(text) if text == written);
        let mut stacks = self.project.stacks.iter();
        let found = stacks.find(|(_, stack)| {
            let path = &stack.path;
            is_printed(path.as_str()) || is_printed(&path.relative_to(&self.directory))
        });
        found.map(|(stack, _)| stack)
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
        Err(Error::usage(message))
    }
}
