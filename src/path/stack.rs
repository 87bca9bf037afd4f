//! The names of stacks: a directory and, for an instance, its key.
//!
//! This module doesn't know which stacks exist.

use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Generation, ProjectPath};
use crate::printable::needs_escape;

/// The longest key, in characters.
const MAX_KEY: usize = 64;

/// The text before the number of a generation.
const GENERATION: &str = "[generation ";

/// The key of an instance, which distinguishes it from the others in its directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceKey(Arc<str>);

/// Why a text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("a key has at least 1 character")]
    Empty,
    /// It is too long: it has this many characters.
    #[error("a key has at most {MAX_KEY} characters, and this one has {0}")]
    TooLong(usize),
    /// It has a character that would make a stack's name ambiguous or invisible.
    #[error("a key has no quotes, brackets, slashes or control characters, and this one has `{0}`")]
    Character(char),
}

impl InstanceKey {
    /// Checks a key. Fails if it is empty, longer than 64 characters, or has a control character, a
    /// quote, a bracket or a slash.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        let is_bad = |c: &char| matches!(c, '"' | '\'' | '`' | '[' | ']' | '/') || needs_escape(*c);
        if text.is_empty() {
            return Err(BadKey::Empty);
        }
        if let Some(bad) = text.chars().find(is_bad) {
            return Err(BadKey::Character(bad));
        }
        match text.chars().count() {
            count if count > MAX_KEY => Err(BadKey::TooLong(count)),
            _ => Ok(InstanceKey(text.into())),
        }
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a stack: `/net`, or `/net["dev"]` for an instance. If the stack has several generations, it names the
/// current one, or an old one: `/net[generation 1]`.
///
/// Ordered by directory, then by key, each byte by byte; the current generation comes first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackPath {
    directory: ProjectPath,
    key: Option<InstanceKey>,
    generation: Option<Generation>,
    /// All of it together, as shown.
    text: Arc<str>,
}

impl StackPath {
    pub fn instance(directory: ProjectPath, key: InstanceKey) -> Self {
        let text = format!("{directory}[\"{key}\"]").into();
        let key = Some(key);
        StackPath {
            directory,
            key,
            generation: None,
            text,
        }
    }

    /// Returns the path of an old generation of this stack.
    #[must_use]
    pub fn of_generation(&self, generation: Generation) -> Self {
        let current = self.current();
        StackPath {
            text: format!("{current}{GENERATION}{generation}]").into(),
            generation: Some(generation),
            ..current
        }
    }

    #[must_use]
    pub fn current(&self) -> Self {
        match &self.key {
            Some(key) => StackPath::instance(self.directory.clone(), key.clone()),
            None => self.directory.clone().into(),
        }
    }

    /// Parses the text of a path, as [`Self::as_str`] returns it; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, generation) = split_generation(text);
        let (directory, key) = KeyFilter::split(rest);
        let directory = ProjectPath::root().resolve(directory).ok()?;
        let path = match key {
            Some(KeyFilter::One(key)) => StackPath::instance(directory, key),
            Some(KeyFilter::Any) => return None,
            None => directory.into(),
        };
        let path = match generation {
            Some(generation) => path.of_generation(generation),
            None => path,
        };
        (path.as_str() == text).then_some(path)
    }

    pub fn directory(&self) -> &ProjectPath {
        &self.directory
    }

    pub fn key(&self) -> Option<&InstanceKey> {
        self.key.as_ref()
    }

    /// Returns the generation, if it is not the current one.
    pub fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns this path relative to the directory `from`: `.` for the stack in the directory itself,
    /// `.["dev"]` for an instance there.
    pub fn relative_to(&self, from: &ProjectPath) -> String {
        let directory = self.directory.relative_to(from);
        let shown = match &self.key {
            Some(key) => format!("{directory}[\"{key}\"]"),
            None => directory,
        };
        match self.generation {
            Some(generation) => format!("{shown}{GENERATION}{generation}]"),
            None => shown,
        }
    }
}

/// Splits the number of a generation off the end of a path, if there is one.
fn split_generation(text: &str) -> (&str, Option<Generation>) {
    let split = || {
        let (rest, number) = text.strip_suffix(']')?.rsplit_once(GENERATION)?;
        Some((rest, Generation::parse(number)?))
    };
    match split() {
        Some((rest, generation)) => (rest, Some(generation)),
        None => (text, None),
    }
}

/// The only stack of a directory.
impl From<ProjectPath> for StackPath {
    fn from(directory: ProjectPath) -> Self {
        let text = Arc::clone(&directory.0);
        StackPath {
            directory,
            key: None,
            generation: None,
            text,
        }
    }
}

impl fmt::Display for StackPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// As text.
impl Serialize for StackPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Accepts only the exact text of a path.
impl<'de> Deserialize<'de> for StackPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom(format!("`{text}` is not the path of a stack"));
        StackPath::parse(&text).ok_or_else(wrong)
    }
}

impl fmt::Debug for StackPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The instances in the brackets after a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KeyFilter {
    /// `["dev"]`: the one with this key.
    One(InstanceKey),
    /// `[*]`: all of them.
    Any,
}

impl KeyFilter {
    /// Splits a path of the user into the path and the key in brackets at its end, if there is one. Brackets with
    /// other content are part of the path.
    pub fn split(written: &str) -> (&str, Option<Self>) {
        let key = || {
            let open = written.strip_suffix(']')?.rfind('[')?;
            let (path, key) = written.split_at(open);
            let inside = &key[1..key.len() - 1];
            let filter = if inside == "*" {
                KeyFilter::Any
            } else {
                let quoted = inside.strip_prefix('"')?.strip_suffix('"')?;
                KeyFilter::One(InstanceKey::new(quoted).ok()?)
            };
            Some((path, filter))
        };
        match key() {
            Some((path, filter)) => (path, Some(filter)),
            None => (written, None),
        }
    }

    /// Like [`Self::split`], but for a key whose quotes a shell may have removed. The apparent key may be part of a
    /// path or a glob.
    pub fn split_unquoted(written: &str) -> Option<(&str, InstanceKey)> {
        let open = written.strip_suffix(']')?.rfind('[')?;
        let (path, key) = written.split_at(open);
        Some((path, InstanceKey::new(&key[1..key.len() - 1]).ok()?))
    }

    /// Returns whether it means an instance with this key. A stack without a key is not an instance.
    pub fn matches(&self, key: Option<&InstanceKey>) -> bool {
        match self {
            KeyFilter::One(one) => key == Some(one),
            KeyFilter::Any => key.is_some(),
        }
    }
}

/// As it is written.
impl fmt::Display for KeyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFilter::One(key) => write!(f, "[\"{key}\"]"),
            KeyFilter::Any => f.write_str("[*]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_nothing_that_could_end_it() {
        for good in ["a", "eu-west-1", "ä ö", "*", "a\\b", "$x", &"é".repeat(64)] {
            assert!(InstanceKey::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a\"",
            "'",
            "`",
            "[",
            "a]",
            "a/b",
            "a\nb",
            "\u{202e}",
            &"a".repeat(65),
        ] {
            assert!(InstanceKey::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn brackets_at_the_end_hold_a_key_or_belong_to_the_path() {
        let split = |written| {
            let (path, key) = KeyFilter::split(written);
            (path.to_owned(), key.map(|key| key.to_string()))
        };
        let key = |path: &str, key: &str| (path.to_owned(), Some(key.to_owned()));
        assert_eq!(split(r#"/net["dev"]"#), key("/net", r#"["dev"]"#));
        assert_eq!(split("/net[*]"), key("/net", "[*]"));
        assert_eq!(split(r#"["dev"]"#), key("", r#"["dev"]"#));
        assert_eq!(split(r#"/a["x"]["y"]"#), key(r#"/a["x"]"#, r#"["y"]"#));
        for path in [
            "/net",
            "/net[ab]",
            "/net[dev]",
            r#"/net[""]"#,
            r#"/net["dev"#,
            "]",
            "[]",
            r#"["]"#,
            r#"/net["a/b"]"#,
            r#"/net["dev"]/x"#,
        ] {
            assert_eq!(split(path), (path.to_owned(), None));
        }
    }

    #[test]
    fn a_path_may_name_a_generation() {
        for text in ["/net[generation 1]", r#"/net["dev"][generation 12]"#] {
            let path = StackPath::parse(text).unwrap();
            assert_eq!(path.as_str(), text);
            assert!(path.generation().is_some());
            assert!(path.current() < path);
            assert_eq!(path.current().generation(), None);
        }
        for text in [
            "/net[generation 0]",
            "/net[generation 01]",
            "/net[generation x]",
            "/net[generation 1]/x",
        ] {
            assert_eq!(StackPath::parse(text).unwrap().generation(), None, "{text}");
        }
    }

    #[test]
    fn stacks_are_ordered_by_directory_and_then_by_key() {
        let stack = |directory: &str, key: Option<&str>| {
            let directory = ProjectPath::root().resolve(directory).unwrap();
            match key {
                Some(key) => StackPath::instance(directory, InstanceKey::new(key).unwrap()),
                None => directory.into(),
            }
        };
        let mut stacks = [
            stack("/net-a", None),
            stack("/net", Some("b")),
            stack("/net/x", None),
            stack("/net", Some("a")),
        ];
        stacks.sort();
        let shown = stacks.map(|stack| stack.to_string());
        assert_eq!(shown, [r#"/net["a"]"#, r#"/net["b"]"#, "/net-a", "/net/x"]);
    }
}
