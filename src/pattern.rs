//! Globs over the files of the project, for `watch`, `ignore` and the files that Terraform reads.
//!
//! `*`, `?` and `[…]` match within one component, `**` any number of components, `{a,b}` either. Patterns are matched
//! as text; this module doesn't know which paths exist.

use std::fmt;
use std::hash::{Hash, Hasher};

use globset::{GlobBuilder, GlobMatcher};

use crate::path::{LeavesProject, ProjectPath};

/// A glob, resolved in the project.
#[derive(Clone)]
pub struct FilePattern {
    /// The directory that contains everything that can match.
    directory: ProjectPath,
    /// The rest, as written.
    rest: String,
    /// Matches paths relative to the root.
    matcher: GlobMatcher,
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// It climbs above the project root.
    #[error("climbs above the project root")]
    LeavesProject,
    /// Its brackets or braces are malformed.
    #[error("{0}")]
    Syntax(String),
}

impl FilePattern {
    /// Returns whether a text is a pattern rather than a path.
    pub fn is_pattern(written: &str) -> bool {
        written.contains(['*', '?', '[', '{'])
    }

    /// Escapes a path so that, as a pattern, it matches only itself.
    pub fn escape(path: &ProjectPath) -> String {
        let mut escaped = String::new();
        let mut is_glob = false;
        for name in path.components() {
            escaped.push('/');
            // From the first wildcard on, a backslash has a meaning too.
            is_glob |= Self::is_pattern(name);
            for character in name.chars() {
                if is_glob && matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\') {
                    escaped.push('\\');
                }
                escaped.push(character);
            }
        }
        if escaped.is_empty() {
            escaped.push('/');
        }
        escaped
    }

    /// Resolves a pattern in a file of `directory`: relative to the project root if it starts with
    /// `/`, else relative to `directory`. A pattern that ends in `/` matches everything below.
    /// Fails if it is not a pattern, or leads out of the project.
    pub fn new(directory: &ProjectPath, written: &str) -> Result<Self, BadPattern> {
        // Only the part before the first wildcard is a path; `..` after one has no meaning.
        let literal = written
            .split_inclusive('/')
            .take_while(|component| !Self::is_pattern(component) && component.ends_with('/'))
            .map(str::len)
            .sum();
        let (literal, rest) = written.split_at(literal);
        let directory = directory
            .resolve(if literal.is_empty() { "." } else { literal })
            .map_err(|LeavesProject| BadPattern::LeavesProject)?;
        let mut names: Vec<&str> = rest.split('/').filter(|name| !name.is_empty()).collect();
        if rest.is_empty() || rest.ends_with('/') {
            names.push("**");
        }
        let rest = names.join("/");
        if names.iter().any(|name| matches!(*name, "." | "..")) {
            let problem = "`.` and `..` must come before the first wildcard";
            return Err(BadPattern::Syntax(problem.to_owned()));
        }
        let mut pattern = globset::escape(&directory.relative().replace('\\', r"\\"));
        if !pattern.is_empty() {
            pattern.push('/');
        }
        pattern += &within_names(&rest);
        let glob = GlobBuilder::new(&pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| BadPattern::Syntax(error.kind().to_string()))?;
        Ok(FilePattern {
            directory,
            rest,
            matcher: glob.compile_matcher(),
        })
    }

    /// Returns a directory that contains everything that can match.
    pub fn directory(&self) -> &ProjectPath {
        &self.directory
    }

    /// Returns the rest after the directory, as written.
    pub fn rest(&self) -> &str {
        &self.rest
    }

    /// Returns whether everything below a directory matches.
    pub fn matches_all_below(&self, directory: &ProjectPath) -> bool {
        let is_open = self.rest == "**" || self.rest.ends_with("/**");
        is_open && self.matches(&directory.join("any"))
    }

    /// Returns whether something below a directory could match, judged by depth alone. The directory
    /// must lie below [`Self::directory`].
    pub fn may_match_below(&self, directory: &ProjectPath) -> bool {
        let depth = self.directory.components().count() + self.rest.split('/').count();
        self.rest.contains("**") || depth > directory.components().count()
    }

    pub fn matches(&self, file: &ProjectPath) -> bool {
        self.matcher.is_match(file.relative())
    }
}

/// Keeps `[!…]` from matching `/`, as globset would.
fn within_names(glob: &str) -> String {
    let mut changed = String::with_capacity(glob.len() + 1);
    let mut rest = glob;
    while let Some(special) = rest.find(['\\', '[']) {
        let after = &rest[special + 1..];
        let mut taken = special + 1;
        if rest[special..].starts_with('\\') {
            taken += after.chars().next().map_or(0, char::len_utf8);
            changed += &rest[..taken];
        } else {
            let is_negated = after.starts_with(['!', '^']);
            let start = taken + usize::from(is_negated);
            // A bracket that comes first is literal.
            let mut inside = rest[start..].char_indices().skip(1);
            let Some((length, _)) = inside.find(|(_, character)| *character == ']') else {
                break;
            };
            taken = start + length;
            let class = &rest[..taken];
            if is_negated {
                // A hyphen that comes last is literal, too.
                let (class, hyphen) = match class.strip_suffix('-') {
                    Some(class) => (class, "-"),
                    None => (class, ""),
                };
                changed = changed + class + "/" + hyphen;
            } else {
                changed += class;
            }
        }
        rest = &rest[taken..];
    }
    changed + rest
}

/// Written from the project root.
impl fmt::Display for FilePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.directory.join(&self.rest).as_str())
    }
}

impl fmt::Debug for FilePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for FilePattern {
    fn eq(&self, other: &Self) -> bool {
        self.directory == other.directory && self.rest == other.rest
    }
}

impl Eq for FilePattern {}

impl Hash for FilePattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.directory.hash(state);
        self.rest.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ProjectPath {
        ProjectPath::root().resolve(text).unwrap()
    }

    fn matches(written: &str, file: &str) -> bool {
        let pattern = FilePattern::new(&path("/a/b"), written).unwrap();
        let matches = pattern.matches(&path(file));
        assert!(!matches || path(file).is_at_or_below(pattern.directory()));
        matches
    }

    #[test]
    fn a_star_stays_within_a_component_and_two_cross_them() {
        assert!(matches("*.json", "/a/b/x.json"));
        assert!(!matches("*.json", "/a/b/c/x.json"));
        assert!(matches("**/*.json", "/a/b/x.json"));
        assert!(matches("**/*.json", "/a/b/c/d/x.json"));
        assert!(!matches("**/*.json", "/a/x.json"));
        assert!(matches("../**", "/a/c"));
        assert!(matches("*//x.json", "/a/b/c/x.json"));
        assert!(matches("/shared/{x,y}?.tf", "/shared/y1.tf"));
        assert!(matches("/shared/{,sub/}x.tf", "/shared/x.tf"));
        assert!(matches("/shared/{,sub/}x.tf", "/shared/sub/x.tf"));
        assert!(matches("conf/", "/a/b/conf/c/d"));
        assert!(!matches("conf/", "/a/b/configuration"));
    }

    #[test]
    fn a_class_of_characters_stays_within_a_component() {
        for pattern in [
            "x[!a]y", "x[^a]y", "x[!a-c]y", "x[!a-]y", "x[!]]y", "x[!]a]y",
        ] {
            assert!(!matches(pattern, "/a/b/x/y"), "{pattern}");
            assert!(matches(pattern, "/a/b/xdy"), "{pattern}");
        }
        assert!(!matches("x[!-]y", "/a/b/x-y"));
        assert!(!matches("x[!-]y", "/a/b/x/y"));
        assert!(!matches("x[!a-]y", "/a/b/x-y"));
        assert!(!matches("x[!]a]y", "/a/b/x]y"));
        assert!(matches("[[!]x", "/a/b/!x"));
        assert!(!matches("[[!]x", "/a/b/zx"));
        assert!(matches("\\[!x]", "/a/b/[!x]"));
    }

    #[test]
    fn the_directory_of_a_pattern_is_no_pattern() {
        let pattern = FilePattern::new(&path("/a[1]/{b}"), "*").unwrap();
        assert!(pattern.matches(&path("/a[1]/{b}/c")));
        assert!(!pattern.matches(&path("/a1/b/c")));
    }

    #[test]
    fn an_escaped_path_means_itself() {
        for text in [
            "/",
            "/a b",
            "/a/[g]/c",
            "/{x,y}",
            r"/a\b/c*/d\e",
            "/?",
            "/!a/]",
        ] {
            let escaped = FilePattern::escape(&path(text));
            let pattern = FilePattern::new(&ProjectPath::root(), &escaped);
            let means = if FilePattern::is_pattern(&escaped) {
                pattern.unwrap().matches(&path(text))
            } else {
                path(&escaped) == path(text)
            };
            assert!(means, "{text} as {escaped}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let bad = |written: &str| FilePattern::new(&path("/a"), written).unwrap_err();
        assert_eq!(bad("../../*"), BadPattern::LeavesProject);
        assert!(matches!(bad("[a"), BadPattern::Syntax(_)));
        assert!(matches!(bad("*/../x"), BadPattern::Syntax(_)));
    }
}
