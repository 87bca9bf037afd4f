//! The stack that a user names: by its path, relative to the working directory or to the project root.

use crate::change::{Since, SinceBase};
use crate::context::Context;
use crate::diagnostic::closest;
use crate::error::{Error, Result};
use crate::path::StackPath;
use crate::printable::{command_line, printable};
use crate::project::stack::StackIndex;
use crate::source::Spanned;

/// How many stacks are listed where a name is not a path.
const MAX_KNOWN: usize = 5;

impl Context {
    /// Returns the stack at a path. Fails if there is none, or more than one.
    pub fn stack(&self, written: &str) -> Result<StackIndex> {
        let found = self.find_stacks(written, None);
        let found = found.and_then(|stacks| {
            let named = format!("`{}`", printable(written));
            self.only(&stacks, &named, "choose one")
        });
        found.map_err(Error::documented)
    }

    /// Returns the stack of the current directory, if there is one. If there are several, the document
    /// says so.
    pub fn stack_here(&self) -> Result<Option<StackIndex>> {
        let here: Vec<StackIndex> = self.project.stacks.at(self.directory.as_str()).collect();
        if here.is_empty() {
            return Ok(None);
        }
        let found = self.only(&here, "this directory", "choose one with `--stack`");
        let found = found.map(Some);
        found.map_err(Error::documented)
    }

    /// Returns the stacks at the path that the user gives: one, or the instances in a directory. If
    /// there are none, the document says so.
    pub(super) fn stacks(&self, written: &str, since: Option<&Since>) -> Result<Vec<StackIndex>> {
        let found = self.find_stacks(written, since);
        found.map_err(Error::documented)
    }

    /// Returns the only one of some stacks. If there are more, the error says how to choose one.
    fn only(&self, stacks: &[StackIndex], named: &str, choose: &str) -> Result<StackIndex> {
        if let [only] = stacks {
            return Ok(*only);
        }
        let shown = stacks.iter().take(MAX_KNOWN);
        let shown = shown.map(|&stack| {
            let path = self.project.stacks[stack].path.as_str();
            format!("`{}`", command_line(&[path.into()]))
        });
        let mut shown: Vec<String> = shown.collect();
        if stacks.len() > MAX_KNOWN {
            shown.push("…".to_owned());
        }
        let (n, shown) = (stacks.len(), shown.join(", "));
        let message = format!("{named} has {n} instances; {choose}: {shown}");
        Err(Error::usage(message))
    }

    fn find_stacks(&self, written: &str, since: Option<&Since>) -> Result<Vec<StackIndex>> {
        let shown = printable(written);
        let Ok(path) = self.directory.resolve(written) else {
            return Err(Error::usage(format!(
                "`{shown}` lies outside of the project"
            )));
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
                SinceBase::Commit(base) => format!(
                    "`{shown}` is no longer a stack; it was one in the base {}",
                    base.commit.short()
                ),
                SinceBase::Applied(_) => {
                    format!("`{shown}` is no longer a stack; it is on record, and was removed")
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
        } else if let Some(close) = closest(path.as_str(), paths)
            && !path.is_root()
        {
            message += &format!("; did you mean `{}`?", printable(close));
        }
        Err(Error::usage(message))
    }

    /// Returns the stacks that have a text as their name, as their id or at the end of their path.
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
        let groups = [
            (by_id, "has this id", "have this id"),
            (by_name, "has this name", "have this name"),
            (by_path, "ends with it", "end with it"),
        ];
        let groups = groups.into_iter().filter_map(|(mut paths, one, several)| {
            let verb = if paths.len() == 1 { one } else { several };
            if paths.len() > MAX_KNOWN {
                let more = paths.len() - MAX_KNOWN;
                paths.truncate(MAX_KNOWN);
                paths.push(format!("{more} more"));
            }
            let last = paths.pop()?;
            Some(match paths.as_slice() {
                [] => format!("{last} {verb}"),
                paths => format!("{} and {last} {verb}", paths.join(", ")),
            })
        });
        let groups: Vec<String> = groups.collect();
        if groups.is_empty() {
            return None;
        }
        Some(format!("; {}: write the path", groups.join(", ")))
    }
}
