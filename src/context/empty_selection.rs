//! Explains why a path matches no stack, and why a selection is empty.

use super::Context;
use crate::path::{KeyFilter, ProjectPath};
use crate::printable::{command_line, count, listed, printable};
use crate::selection::select::{DirectoryMatch, Obstacle, Query, Selection};

impl Context {
    /// Suggests quotes around a key, if the path with quotes names a stack.
    pub fn without_quotes(&self, written: &str) -> Option<String> {
        let quoted = quoted_key(written)?;
        let found = self.project.stacks.written(&self.directory, &quoted).ok()?;
        (found.len() > 0).then(|| missing_quotes(quoted))
    }

    /// Explains why a path matches no stack. `written` is the path as the user wrote it.
    pub fn why_no_stack(&self, path: &ProjectPath, written: &str) -> String {
        let stacks = &self.project.stacks;
        if let (directory, Some(key)) = KeyFilter::split(written)
            && let Ok(directory) = self.directory.resolve(directory)
            && let Some(first) = stacks.at(directory.as_str()).first()
        {
            return match (stacks[first].path.key(), key) {
                (Some(_), KeyFilter::One(key)) => format!("no instance has the key `{key}`"),
                _ => "this stack has no instances".to_owned(),
            };
        }
        if let Some((directory, key)) = KeyFilter::split_unquoted(written)
            && let Ok(directory) = self.directory.resolve(directory)
            && let Some(first) = stacks.at(directory.as_str()).first()
            && stacks[first].path.key().is_some()
        {
            return format!("no instance has the key `{key}`");
        }
        let directory = self.directory.resolve(KeyFilter::split(written).0).ok();
        let mut empty = self.project.without_instances.iter();
        if empty.any(|it| Some(&it.directory) == directory.as_ref()) {
            return "its `for_each` is empty, so there is no stack".to_owned();
        }
        let below = stacks.at_or_below(path).count();
        if below > 0 {
            let verb = if below == 1 { "lies" } else { "lie" };
            return format!("not a stack, but {} {verb} below it", count(below, "stack"));
        }
        if !path.to_host(&self.project.root).exists() {
            return "does not exist".to_owned();
        }
        match self.stack_around(path) {
            Some(above) => format!("not a stack, but inside of the stack `{above}`"),
            None => "not a stack".to_owned(),
        }
    }

    /// Returns the nearest ancestor of a path that is a stack, made printable.
    pub fn stack_around(&self, path: &ProjectPath) -> Option<String> {
        let stacks = &self.project.stacks;
        let above = stacks.nearest_above(path).first()?;
        Some(printable(stacks[above].path.directory().as_str()).into_owned())
    }

    pub fn explain_empty_selection(&self, query: &Query, selection: &Selection) -> String {
        let stacks = &self.project.stacks;
        let directory = &query.directory;
        let shown = printable(directory.as_str());
        let place = match query.scope {
            DirectoryMatch::Recursive => format!("at or below `{shown}`"),
            DirectoryMatch::Exact => format!("at `{shown}`"),
        };
        if stacks.is_empty() {
            let mut message = format!("there are no stacks in `{}`", self.project.root.display());
            if let Some(nested) = self.project.nested_projects.first() {
                message += &format!("; `{nested}` is a project of its own: change into it");
            }
            return message;
        }
        let dropped = stacks
            .iter()
            .filter_map(|(stack, _)| selection.dropped(stack));
        let mut flags: Vec<String> = dropped
            .filter_map(|obstacle| match obstacle {
                Obstacle::Only(reach) | Obstacle::Neighbour(reach, _) => Some(format!("`{reach}`")),
                _ => None,
            })
            .collect();
        if !flags.is_empty() {
            let would_be = count(flags.len(), "stack");
            flags.sort_unstable();
            flags.dedup();
            let verb = if flags.len() == 1 { "leaves" } else { "leave" };
            let flags = flags.join(" and ");
            return format!("{would_be} would be selected, but {flags} {verb} none");
        }
        if stacks.at_or_below(directory).next().is_some() {
            let recorded = query.recorded.as_ref();
            let has_statuses = recorded.is_some_and(|recorded| !recorded.wanted.is_empty());
            let flags: Vec<&str> = [
                ("--match", !query.globs.is_empty()),
                ("--stacks-from", query.named.is_some()),
                ("--status", has_statuses),
                (
                    "the tag filters",
                    !query.tags.is_empty() || !query.no_tags.is_empty(),
                ),
                ("--exclude", !query.exclude.is_empty()),
            ]
            .into_iter()
            .filter_map(|(flag, is_given)| is_given.then_some(flag))
            .collect();
            let passes = match flags.len() {
                0 => String::new(),
                n => format!(" passes {}", listed(flags.iter(), n)),
            };
            if let Some(recorded) = recorded.filter(|recorded| recorded.changed) {
                return match recorded.statuses.changed().count() {
                    0 => "no stack has changed since its last apply".to_owned(),
                    1 => format!("1 stack is not `applied`, but none {place}{passes}"),
                    n => {
                        format!("{n} stacks are not `applied`, but none {place}{passes}")
                    }
                };
            }
            if let Some(released) = &query.released {
                let release = format!(
                    "the release of {} {}..{}",
                    released.module, released.old, released.new
                );
                return match released.named.len() {
                    0 => format!("no policy names a stack at {release}"),
                    1 => format!("policies name 1 stack at {release}, but none {place}{passes}"),
                    n => format!("policies name {n} stacks at {release}, but none {place}{passes}"),
                };
            }
            let Some(changes) = &query.changed else {
                return format!("no stack {place}{passes}");
            };
            let since = &changes.since.base;
            return match changes.count() {
                0 => match changes.uncounted.count() {
                    0 => format!("no stack has changed since {since}"),
                    1 => format!(
                        "no stack has changed since {since}; 1 file differs that does not count"
                    ),
                    n => format!(
                        "no stack has changed since {since}; {n} files differ that do not count"
                    ),
                },
                1 => format!("1 stack has changed since {since}, but none {place}{passes}"),
                n => format!("{n} stacks have changed since {since}, but none {place}{passes}"),
            };
        }
        let mut message = format!(
            "the project has {}, none of them {place}",
            count(stacks.len(), "stack")
        );
        if let Some(above) = self.stack_around(directory) {
            message += &format!("; it is inside the stack `{above}`");
        }
        message
    }
}

/// Returns the path with quotes around the key at its end, if it has an unquoted key.
pub fn quoted_key(written: &str) -> Option<String> {
    let (path, key) = KeyFilter::split_unquoted(written)?;
    Some(format!("{path}{}", KeyFilter::One(key)))
}

pub fn missing_quotes(quoted: String) -> String {
    let word = command_line(&[quoted.into()]);
    format!("the quotes around the key are missing; in a shell, write `{word}`")
}
