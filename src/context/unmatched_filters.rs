//! Filters that no stack matches. A typo in `--exclude` would select too many stacks, one in
//! `--tags` too few.

use std::collections::{BTreeMap, BTreeSet};

use super::Context;
use super::empty_selection::quoted_key;
use crate::change::MissingStack;
use crate::diagnostic::closest;
use crate::path::{InstanceKey, KeyFilter, ProjectPath, StackPath};
use crate::printable::{command_line, printable};
use crate::project::tag::TagFilter;
use crate::selection::select::{PathFilter, Query};

impl Context {
    /// Notes each filter that no stack matches, with a suggestion. A filter that matches a recorded
    /// stack outside this commit is not reported.
    pub fn warn_of_unmatched_filters(
        &self,
        query: &Query,
        missing: &BTreeMap<String, MissingStack>,
    ) {
        let paths: Vec<StackPath> = missing
            .keys()
            .filter_map(|key| StackPath::parse(key))
            .collect();
        let is_missing = |filter: &PathFilter| paths.iter().any(|path| filter.matches(path));
        for (flag, filters) in [("--match", &query.globs), ("--exclude", &query.exclude)] {
            let filters = filters.iter().filter(|filter| !is_missing(filter));
            for filter in filters.filter(|filter| !self.has_match(filter)) {
                let meant = self.meant_path(flag, &filter.to_string());
                self.notices.note(&format!(
                    "`{flag} {filter}` matches no stack of the project{meant}"
                ));
            }
        }
        let wanted = query
            .tags
            .iter()
            .flat_map(TagFilter::alternatives)
            .flatten()
            .map(|tag| ("--tags", tag));
        let unwanted = query.no_tags.iter().map(|tag| ("--no-tags", tag));
        let mut noted = BTreeSet::new();
        for (flag, tag) in wanted.chain(unwanted) {
            let stacks = &self.project.stacks;
            let has = |stack: &MissingStack| stack.tags.iter().any(|it| it == tag);
            if !stacks.has_tag(tag) && !missing.values().any(has) && noted.insert((flag, tag)) {
                let meant = closest(tag, stacks.tags())
                    .map_or(String::new(), |tag| format!("; did you mean `{tag}`?"));
                self.notices.note(&format!(
                    "in `{flag}`: no stack of the project has the tag `{tag}`{meant}"
                ));
            }
        }
    }

    fn has_match(&self, filter: &PathFilter) -> bool {
        let mut stacks = self.project.stacks.iter();
        stacks.any(|(_, stack)| filter.matches(&stack.path))
    }

    /// Suggests a correction for a glob that matches no stack: relative to the project root, or
    /// with another name for its first directory.
    pub(crate) fn meant_path(&self, flag: &str, written: &str) -> String {
        let directory = &self.directory;
        if let Some(quoted) = quoted_key(written)
            && PathFilter::new(directory, &quoted).is_ok_and(|filter| self.has_match(&filter))
        {
            let word = command_line(&[quoted.into()]);
            return format!("; the key of an instance needs quotes: `{flag} {word}`");
        }
        if let (path, Some(KeyFilter::One(key))) = KeyFilter::split(written)
            && let Ok(any) = PathFilter::new(directory, &format!("{path}[*]"))
        {
            let stacks = self.project.stacks.iter();
            let instances = stacks.filter(|(_, stack)| any.matches(&stack.path));
            let keys: BTreeSet<&str> = instances
                .filter_map(|(_, stack)| stack.path.key())
                .map(InstanceKey::as_str)
                .collect();
            let close = closest(key.as_str(), keys);
            return close.map_or(String::new(), |close| {
                format!("; did you mean `{path}[\"{close}\"]`?")
            });
        }
        let mut meant = String::new();
        let would_match = |text: &str| {
            PathFilter::new(directory, text).is_ok_and(|filter| self.has_match(&filter))
        };
        if !directory.is_root() && !written.starts_with('/') {
            meant = format!("; it is relative to `{}`", printable(directory.as_str()));
            let from_root = format!("/{written}");
            if would_match(&from_root) {
                meant += &format!(", and `{flag} {from_root}` is relative to the project root");
                return meant;
            }
        }
        // The part before the first name with a wildcard.
        let is_plain = |name: &&str| !name.contains(['*', '?', '[', '{', '\\']);
        let plain: Vec<&str> = written.split('/').take_while(is_plain).collect();
        let plain = plain.join("/");
        let Ok(path) = directory.resolve(&plain) else {
            return meant;
        };
        let mut directories: BTreeSet<&str> = BTreeSet::new();
        for (_, stack) in self.project.stacks.iter() {
            directories.extend(ancestors(stack.path.directory()));
        }
        if let Some(close) = closest(path.as_str(), directories) {
            let close = format!("{close}{}", &written[plain.len()..]);
            if would_match(&close) {
                meant += &format!("; did you mean `{}`?", printable(&close));
                return meant;
            }
        }
        // The last name may be misspelt, or the stack may be deeper.
        let (before, last) = match written.rfind('/') {
            Some(slash) => written.split_at(slash + 1),
            None => ("", written),
        };
        if last.is_empty() || !is_plain(&last) {
            return meant;
        }
        let stacks = self.project.stacks.iter();
        let names: BTreeSet<&str> = stacks
            .map(|(_, stack)| stack.path.directory().basename())
            .collect();
        let name = if names.contains(last) {
            Some(last)
        } else {
            closest(last, names)
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return meant;
        };
        let mut candidates = vec![format!("{before}{name}")];
        if before.is_empty() {
            candidates.push(format!("**/{name}"));
        }
        if let Some(close) = candidates.iter().find(|close| would_match(close)) {
            meant += &format!("; did you mean `{}`?", printable(close));
        }
        meant
    }
}

/// Returns a path and its ancestors, without the root.
fn ancestors(path: &ProjectPath) -> impl Iterator<Item = &str> {
    let path = path.as_str();
    let slashes = path.match_indices('/').skip(1).map(|(at, _)| at);
    let ends = slashes.chain([path.len()]);
    ends.map(|end| &path[..end]).filter(|path| *path != "/")
}
