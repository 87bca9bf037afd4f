//! Paths and globs of the command line.

use std::fmt;

use crate::path::{KeyFilter, LeavesProject, ProjectPath, StackPath};
use crate::pattern::{BadPattern, FilePattern};

/// A filter of stacks by path. A plain path matches the stacks at and below it, as in a reference. A glob
/// matches the stacks whose path it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFilter {
    /// As written by the user.
    pub(super) written: String,
    /// Any of these suffices: `a*/**` includes `a*`.
    meanings: Vec<Meaning>,
    /// Only instances with this key.
    key: Option<KeyFilter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Meaning {
    At(ProjectPath),
    AtOrBelow(ProjectPath),
    Matching(FilePattern),
}

impl PathFilter {
    /// Parses a filter, relative to the project root if it starts with `/`, otherwise to
    /// `directory`. A glob that ends in `/**` includes the directory before it. A key in brackets
    /// at the end, or `[*]`, selects instances. Fails if it is not a valid glob, or leaves the
    /// project.
    pub fn new(directory: &ProjectPath, written: &str) -> Result<Self, BadPattern> {
        let mut meanings = Vec::new();
        let (mut rest, key) = KeyFilter::split(written);
        if key.is_some() && !FilePattern::is_pattern(rest) {
            let path = directory
                .resolve(rest)
                .map_err(|LeavesProject| BadPattern::LeavesProject)?;
            return Ok(PathFilter {
                written: written.to_owned(),
                meanings: vec![Meaning::At(path)],
                key,
            });
        }
        loop {
            // Stacks are directories, so a trailing slash has no meaning.
            let glob = rest.trim_end_matches('/');
            if !FilePattern::is_pattern(glob) {
                let path = directory
                    .resolve(rest)
                    .map_err(|LeavesProject| BadPattern::LeavesProject)?;
                meanings.push(Meaning::AtOrBelow(path));
                break;
            }
            let around = glob.strip_suffix("**");
            let around = around.filter(|around| around.is_empty() || around.ends_with('/'));
            if around.is_none_or(FilePattern::is_pattern) {
                meanings.push(Meaning::Matching(FilePattern::new(directory, glob)?));
            }
            match around {
                Some(around) => rest = around,
                None => break,
            }
        }
        Ok(PathFilter {
            written: written.to_owned(),
            meanings,
            key,
        })
    }

    pub fn matches(&self, stack: &StackPath) -> bool {
        let own = stack.directory();
        let is_there = self.meanings.iter().any(|meaning| match meaning {
            Meaning::At(directory) => own == directory,
            Meaning::AtOrBelow(directory) => own.is_at_or_below(directory),
            // The root has no name that could match.
            Meaning::Matching(pattern) => !own.is_root() && pattern.matches(own),
        });
        is_there && self.key.as_ref().is_none_or(|key| key.matches(stack.key()))
    }
}

/// As written by the user.
impl fmt::Display for PathFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ProjectPath {
        ProjectPath::root().resolve(text).unwrap()
    }

    fn matches(written: &str, stack: &str) -> bool {
        let filter = PathFilter::new(&path("/env"), written).unwrap();
        filter.matches(&path(stack).into())
    }

    #[test]
    fn a_plain_path_means_what_is_at_or_below_it() {
        assert!(matches("prod", "/env/prod"));
        assert!(matches("prod/", "/env/prod/a/b"));
        assert!(!matches("prod", "/env/production"));
        assert!(matches("/", "/env/prod"));
        assert!(matches(".", "/env"));
        assert!(!matches("../x", "/env"));
    }

    #[test]
    fn a_glob_means_the_paths_that_it_matches() {
        assert!(matches("*", "/env/prod"));
        assert!(matches("*/", "/env/prod"));
        assert!(!matches("*", "/env/prod/a"));
        assert!(!matches("*", "/env"));
        assert!(matches("*/a", "/env/prod/a"));
        assert!(matches("/**/a", "/env/prod/a"));
    }

    #[test]
    fn two_stars_at_the_end_mean_the_directory_as_well() {
        assert!(matches("prod/**", "/env/prod"));
        assert!(matches("prod/**", "/env/prod/a/b"));
        assert!(!matches("prod/**", "/env/production"));
        assert!(matches("p*/**", "/env/prod"));
        assert!(matches("p*/**", "/env/prod/a"));
        assert!(matches("**", "/env"));
        assert!(matches("/**", "/"));
        assert!(matches("p*//**", "/env/prod"));
        assert!(matches("**/**", "/env"));
        assert!(!matches("**/**", "/"));
    }

    #[test]
    fn the_root_has_no_name_that_could_match() {
        assert!(!matches("/*", "/"));
        assert!(!matches("/**/*", "/"));
        assert!(!matches("/{,env}", "/"));
        assert!(!matches("/*/**", "/"));
    }
}
