//! The stack that a user names by path, relative to the working directory or the project root.

use crate::change::{Baseline, ChangeBase};
use crate::context::Context;
use crate::diagnostic::closest;
use crate::error::{Error, Result};
use crate::path::{KeyFilter, LeavesProject, ProjectPath, StackPath};
use crate::printable::{command_line, printable};
use crate::project::stack::StackIndex;
use crate::source::Spanned;

/// How many stacks are suggested if a name is not a path.
const MAX_KNOWN: usize = 5;

/// The stack argument as typed: a path, and the key of an instance in brackets.
#[derive(Debug, Clone, Copy)]
pub struct StackArg<'a> {
    directory: &'a ProjectPath,
    written: &'a str,
}

/// Why a text names no single stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOneStack<'a> {
    #[error("`{0}` leads out of the project")]
    Outside(&'a str),
    #[error("`{0}` names several stacks; name one")]
    Several(&'a str),
}

impl<'a> StackArg<'a> {
    pub fn new(directory: &'a ProjectPath, written: &'a str) -> Self {
        StackArg { directory, written }
    }

    /// Returns the directory that it names, and the key after it.
    pub(super) fn parts(self) -> Result<(ProjectPath, Option<KeyFilter>), LeavesProject> {
        let (directory, key) = KeyFilter::split(self.written);
        Ok((self.directory.resolve(directory)?, key))
    }

    /// Returns the path from the project root, with brackets; the typed text if that leads out of
    /// the project.
    pub fn from_root(self) -> String {
        let path = self.directory.resolve(self.written);
        path.map_or_else(|_| self.written.to_owned(), |path| path.to_string())
    }

    /// Returns the path of the one stack that it names, which need not exist.
    pub fn path(self) -> Result<StackPath, NotOneStack<'a>> {
        let parts = self.parts();
        let (directory, key) = parts.map_err(|_| NotOneStack::Outside(self.written))?;
        match key {
            // It may name a generation.
            None => Ok(StackPath::parse(directory.as_str()).unwrap_or_else(|| directory.into())),
            Some(KeyFilter::One(key)) => Ok(StackPath::instance(directory, key)),
            Some(KeyFilter::Any) => Err(NotOneStack::Several(self.written)),
        }
    }

    /// Returns whether it names a stack, maybe with other instances in its directory.
    pub(super) fn matches(self, stack: &StackPath) -> bool {
        self.parts().is_ok_and(|(directory, key)| {
            let is_there = stack.generation().is_none() && *stack.directory() == directory;
            is_there && key.is_none_or(|it| it.matches(stack.key()))
        })
    }

    /// Returns those of some stacks that it names: one, or the instances in a directory.
    pub fn among<'k>(self, known: impl Iterator<Item = &'k str> + Clone) -> Vec<&'k str> {
        let path = self.from_root();
        if let Some(exact) = known.clone().find(|known| *known == path) {
            return vec![exact];
        }
        let is_meant = |known: &&str| StackPath::parse(known).is_some_and(|it| self.matches(&it));
        known.filter(is_meant).collect()
    }

    /// Suggests one of some stacks, if its path is close to the typed text.
    pub fn did_you_mean<'k>(self, known: impl Iterator<Item = &'k str>) -> Option<String> {
        did_you_mean(&self.from_root(), known)
    }
}

/// Suggests a stack with a similar path, or an instance there.
pub(super) fn did_you_mean<'k>(
    path: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<String> {
    let known: Vec<&str> = known.into_iter().collect();
    let is_instance = |known: &&str| {
        let key = known.strip_prefix(path);
        key.is_some_and(|key| key.starts_with('['))
    };
    let instance = known.iter().copied().find(is_instance);
    let meant = instance.or_else(|| closest(path, known))?;
    Some(format!("did you mean `{}`?", printable(meant)))
}

impl Context {
    /// Returns the stack at a path. Fails if there is none, or more than one.
    pub fn stack(&self, written: &str) -> Result<StackIndex> {
        let found = self.find_stacks(written, None).and_then(|stacks| {
            let named = format!("`{}`", printable(written));
            self.only(&stacks, &named, "choose one")
        });
        found.map_err(Error::documented)
    }

    /// Returns the stack of the current directory, if there is one. Several are an error.
    pub fn stack_here(&self) -> Result<Option<StackIndex>> {
        let here: Vec<StackIndex> = self.project.stacks.at(self.directory.as_str()).collect();
        if here.is_empty() {
            return Ok(None);
        }
        let found = self
            .only(&here, "this directory", "choose one with `--stack`")
            .map(Some);
        found.map_err(Error::documented)
    }

    /// Returns the stacks at the path that the user gives: one, or the instances in a directory.
    pub(super) fn stacks(
        &self,
        written: &str,
        since: Option<&Baseline>,
    ) -> Result<Vec<StackIndex>> {
        let found = self.find_stacks(written, since);
        found.map_err(Error::documented)
    }

    /// Returns the only one of some stacks. If there are more, the error says how to choose one.
    fn only(&self, stacks: &[StackIndex], named: &str, choose: &str) -> Result<StackIndex> {
        if let [only] = stacks {
            return Ok(*only);
        }
        let mut shown: Vec<String> = stacks
            .iter()
            .take(MAX_KNOWN)
            .map(|&stack| {
                let path = self.project.stacks[stack].path.as_str();
                format!("`{}`", command_line(&[path.into()]))
            })
            .collect();
        if stacks.len() > MAX_KNOWN {
            shown.push("…".to_owned());
        }
        let (n, shown) = (stacks.len(), shown.join(", "));
        let message = format!("{named} has {n} instances; {choose}: {shown}");
        Err(Error::usage(message))
    }

    fn find_stacks(&self, written: &str, since: Option<&Baseline>) -> Result<Vec<StackIndex>> {
        let shown = printable(written);
        let Ok(path) = self.directory.resolve(written) else {
            return Err(Error::usage(format!("`{shown}` is outside of the project")));
        };
        let stacks = &self.project.stacks;
        if let Ok(found) = stacks.written(&self.directory, written)
            && found.len() > 0
        {
            return Ok(found.collect());
        }
        let is_meant = |removed: &StackPath| removed.as_str() == path.as_str();
        if let Some(since) = since.filter(|since| since.removed.iter().any(is_meant)) {
            let message = match &since.base {
                ChangeBase::Commit(base) => format!(
                    "`{shown}` is no longer a stack; it was one in the base {}",
                    base.commit.short()
                ),
                ChangeBase::Applied(_) => {
                    format!("`{shown}` is no longer a stack; it is recorded, and was removed")
                }
            };
            return Err(Error::usage(message));
        }
        if let Some(why) = self.without_quotes(written) {
            return Err(Error::usage(format!("`{shown}`: {why}")));
        }
        let mut message = format!("`{shown}`: {}", self.why_no_stack(&path, written));
        let paths = stacks.iter().map(|(_, stack)| stack.path.as_str());
        if let Some(known_as) = self.known_as(written) {
            message += &known_as;
        } else if let Some(hint) = did_you_mean(path.as_str(), paths)
            && !path.is_root()
        {
            message += &format!("; {hint}");
        }
        Err(Error::usage(message))
    }

    /// Returns the stacks with a text as their name, as their id or at the end of their path.
    fn known_as(&self, written: &str) -> Option<String> {
        if written.is_empty() {
            return None;
        }
        let (mut by_id, mut by_name, mut by_path) = (Vec::new(), Vec::new(), Vec::new());
        for (_, stack) in self.project.stacks.iter() {
            let is_id = |id: &Spanned<String>| id.value.eq_ignore_ascii_case(written);
            let path = format!("`{}`", printable(stack.path.as_str()));
            if stack.id.as_ref().is_some_and(is_id) {
                by_id.push(path);
            } else if stack.name == written {
                by_name.push(path);
            } else if stack.path.directory().basename() == written {
                by_path.push(path);
            }
        }
        let mut paths = [by_id, by_name, by_path].concat();
        if paths.len() > MAX_KNOWN {
            let more = paths.len() - MAX_KNOWN;
            paths.truncate(MAX_KNOWN);
            paths.push(format!("one of {more} more"));
        }
        let last = paths.pop()?;
        Some(match paths.as_slice() {
            [] => format!("; did you mean {last}?"),
            paths => format!("; did you mean {} or {last}?", paths.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Generation;

    fn directory() -> ProjectPath {
        ProjectPath::root().join("prod")
    }

    #[test]
    fn a_text_names_one_stack_or_says_why_not() {
        let directory = directory();
        let path = |written| StackArg::new(&directory, written).path();
        let shown = |written| path(written).unwrap().to_string();
        assert_eq!(shown("net"), "/prod/net");
        assert_eq!(shown("/net[\"dev\"]"), "/net[\"dev\"]");
        assert_eq!(shown("[\"dev\"]"), "/prod[\"dev\"]");
        let generation = path("net[generation 1]").unwrap().generation();
        assert_eq!(generation.map(Generation::get), Some(1));
        assert_eq!(path("../.."), Err(NotOneStack::Outside("../..")));
        assert_eq!(path("net[*]"), Err(NotOneStack::Several("net[*]")));
    }

    #[test]
    fn a_directory_names_its_instances_unless_it_is_a_stack() {
        let known = [
            "/prod/net[\"a\"]",
            "/prod/net[\"b\"]",
            "/prod/net/x",
            "/app",
            "/app[\"a\"]",
        ];
        let directory = directory();
        let among = |written| StackArg::new(&directory, written).among(known.into_iter());
        assert_eq!(among("net"), known[..2]);
        assert_eq!(among("net[*]"), known[..2]);
        assert_eq!(among("net[\"b\"]"), known[1..2]);
        assert_eq!(among("/app"), known[3..4]);
        assert_eq!(among("net[\"c\"]"), [""; 0]);
        assert_eq!(among("../../app"), [""; 0]);
    }
}
