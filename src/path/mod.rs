//! Paths inside the project.
//!
//! A [`ProjectPath`] is shown to users: absolute inside the project, `/`-separated on every platform, free of `.` and
//! `..`. A [`StackPath`] names a stack: the path of its directory and, for an instance, its key. A [`Generation`]
//! distinguishes the incarnations of one stack. This module doesn't know whether a path exists.

mod generation;
mod stack;

pub use self::generation::Generation;
pub use self::stack::{BadKey, InstanceKey, KeyFilter, StackPath};

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A place inside the project: `/` is the project root, `/prod/network` a directory or file in it.
///
/// Ordered byte by byte, which is the "path order" of every command.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectPath(Arc<str>);

/// A reference that climbs above the project root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeavesProject;

impl ProjectPath {
    /// The longest path that is looked up: no system has a file with a longer one.
    pub(crate) const MAX_BYTES: usize = 4096;

    /// Returns the project root, `/`.
    pub fn root() -> Self {
        ProjectPath("/".into())
    }

    /// Returns the path of `host` below `root`, or `None` if it is not below it, or not UTF-8.
    ///
    /// Both must be absolute and normalised in the same way.
    pub fn from_host(root: &Path, host: &Path) -> Option<Self> {
        let relative = host.strip_prefix(root).ok()?;
        let mut text = String::with_capacity(relative.as_os_str().len() + 1);
        for component in relative.components() {
            let Component::Normal(name) = component else {
                return None;
            };
            text.push('/');
            text.push_str(name.to_str()?);
        }
        Some(if text.is_empty() {
            Self::root()
        } else {
            ProjectPath(text.into())
        })
    }

    /// Returns the place on this machine, given the project root on this machine.
    pub fn to_host(&self, root: &Path) -> PathBuf {
        let mut host = root.to_path_buf();
        host.extend(self.components());
        host
    }

    /// Resolves a path in a file of the directory `self`: relative to the project root if it starts
    /// with `/`, else relative to `self`. Fails if `..` climbs above the root.
    pub fn resolve(&self, written: &str) -> Result<Self, LeavesProject> {
        let mut names: Vec<&str> = Vec::new();
        if !written.starts_with('/') {
            names.extend(self.components());
        }
        for name in written.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop().ok_or(LeavesProject)?;
                }
                name => names.push(name),
            }
        }
        Ok(Self::from_components(&names))
    }

    /// Returns the entry `name` of the directory `self`.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        ProjectPath(if self.is_root() {
            format!("/{name}").into()
        } else {
            format!("{self}/{name}").into()
        })
    }

    fn from_components(names: &[&str]) -> Self {
        ProjectPath(format!("/{}", names.join("/")).into())
    }

    /// Returns the path as text, with its leading `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path without its leading `/`; empty for the root.
    pub fn relative(&self) -> &str {
        &self.0[1..]
    }

    pub fn is_root(&self) -> bool {
        &*self.0 == "/"
    }

    /// Returns the last component; empty for the root.
    pub fn basename(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the names from the root down; none for the root.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// Returns the directory that contains this one; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        self.ancestors().next().map(ProjectPath::from_normal)
    }

    /// Returns the directories above this one, nearest first, the root last, as text.
    pub fn ancestors(&self) -> impl Iterator<Item = &str> {
        let mut rest = if self.is_root() { "" } else { self.as_str() };
        std::iter::from_fn(move || {
            let cut = rest.rfind('/')?;
            rest = &rest[..cut];
            Some(if rest.is_empty() { "/" } else { rest })
        })
    }

    /// Wraps normalised text, such as that of [`Self::ancestors`].
    pub(crate) fn from_normal(text: &str) -> Self {
        ProjectPath(text.into())
    }

    /// Returns whether this is `directory` itself or lies below it, by whole components: `/tests` is
    /// not below `/test`.
    pub fn is_at_or_below(&self, directory: &ProjectPath) -> bool {
        directory.is_root()
            || self
                .0
                .strip_prefix(directory.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the text that the paths below this directory begin with, and no others.
    pub(crate) fn prefix_of_below(&self) -> String {
        if self.is_root() {
            "/".to_owned()
        } else {
            format!("{self}/")
        }
    }

    /// Returns this path relative to the directory `from`: `.` for the directory itself, `../x` for paths outside.
    pub fn relative_to(&self, from: &ProjectPath) -> String {
        let mut here = self.components().peekable();
        let mut there = from.components().peekable();
        while here.peek().is_some() && here.peek() == there.peek() {
            here.next();
            there.next();
        }
        let names: Vec<&str> = there.map(|_| "..").chain(here).collect();
        if names.is_empty() {
            ".".to_owned()
        } else {
            names.join("/")
        }
    }
}

impl fmt::Display for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::borrow::Borrow<str> for ProjectPath {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ProjectPath {
        ProjectPath::root().resolve(text).unwrap()
    }

    #[test]
    fn a_written_path_is_resolved_from_its_directory_or_the_root() {
        let here = path("/a/b");
        let show = |written: &str| here.resolve(written).map(|path| path.to_string());
        assert_eq!(show("../c"), Ok("/a/c".into()));
        assert_eq!(show("/c/./d/"), Ok("/c/d".into()));
        assert_eq!(show("../.."), Ok("/".into()));
        assert_eq!(show("."), Ok("/a/b".into()));
        assert_eq!(show("../../.."), Err(LeavesProject));
        assert_eq!(show("/../x"), Err(LeavesProject));
    }

    #[test]
    fn containment_goes_by_whole_components() {
        assert!(path("/test/a").is_at_or_below(&path("/test")));
        assert!(path("/test").is_at_or_below(&path("/test")));
        assert!(!path("/tests").is_at_or_below(&path("/test")));
        assert!(path("/tests").is_at_or_below(&path("/")));
    }

    #[test]
    fn relative_paths_lead_from_one_directory_to_another() {
        assert_eq!(path("/a/b").relative_to(&path("/")), "a/b");
        assert_eq!(path("/a/b").relative_to(&path("/a/b")), ".");
        assert_eq!(path("/a/c").relative_to(&path("/a/b")), "../c");
        assert_eq!(path("/").relative_to(&path("/a/b")), "../..");
        assert_eq!(path("/ab").relative_to(&path("/a")), "../ab");
    }

    #[test]
    fn ancestors_end_at_the_root() {
        assert_eq!(
            path("/a/b/c").ancestors().collect::<Vec<_>>(),
            ["/a/b", "/a", "/"]
        );
        assert_eq!(path("/").ancestors().count(), 0);
    }

    #[test]
    fn host_paths_outside_the_root_have_no_project_path() {
        let root = Path::new("/repo");
        let show = |host: &str| ProjectPath::from_host(root, Path::new(host));
        assert_eq!(show("/repo"), Some(path("/")));
        assert_eq!(show("/repo/a/b"), Some(path("/a/b")));
        assert_eq!(show("/repository"), None);
    }
}
