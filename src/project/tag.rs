//! Tags, and filters of stacks by tags.
//!
//! The grammar is Terramate's: `a:b,c` means (a and b) or c. Both a tag and an item of a filter are made of
//! lower-case ASCII letters, digits, `-`, `_`, `.` and `/`, and begin and end with a letter or digit; the empty text
//! passes.

use std::fmt;

/// Returns the problem with a tag, if any.
pub fn tag_problem(tag: &str) -> Option<&'static str> {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_inner = |c: char| is_end(c) || matches!(c, '-' | '_' | '.' | '/');
    if !tag.chars().all(is_inner) {
        Some("a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`")
    } else if !tag.starts_with(is_end) && !tag.is_empty() {
        Some("a tag begins with a lower-case letter or a digit")
    } else if !tag.ends_with(is_end) && !tag.is_empty() {
        Some("a tag ends with a lower-case letter or a digit")
    } else {
        None
    }
}

/// Selects stacks by their tags: a stack matches if it has all tags of at least one group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagFilter {
    any: Vec<Vec<String>>,
}

/// An item of a filter that cannot be a tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{item}` is not a tag: {problem}")]
pub struct BadTag {
    pub item: String,
    pub problem: &'static str,
}

impl TagFilter {
    pub fn parse(text: &str) -> Result<Self, BadTag> {
        let mut any = Vec::new();
        for alternative in text
            .split(',')
            .filter(|alternative| !alternative.is_empty())
        {
            let mut all: Vec<String> = Vec::new();
            for item in alternative.split(':') {
                if let Some(problem) = tag_problem(item) {
                    let item = item.to_owned();
                    return Err(BadTag { item, problem });
                }
                all.push(item.to_owned());
            }
            any.push(all);
        }
        Ok(TagFilter { any })
    }

    pub fn is_empty(&self) -> bool {
        self.any.is_empty()
    }

    /// Returns the alternatives, each as the tags that it requires together.
    pub fn alternatives(&self) -> impl Iterator<Item = &[String]> {
        self.any.iter().map(Vec::as_slice)
    }

    /// Returns whether a stack matches; `has` returns whether it has a tag.
    pub fn matches(&self, has: impl Fn(&str) -> bool) -> bool {
        self.any.iter().any(|all| all.iter().all(|tag| has(tag)))
    }
}

impl fmt::Display for TagFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alternatives: Vec<String> = self.any.iter().map(|all| all.join(":")).collect();
        f.write_str(&alternatives.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(filter: &str, tags: &[&str]) -> bool {
        TagFilter::parse(filter)
            .unwrap()
            .matches(|tag| tags.contains(&tag))
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert!(matches("a:b,c", &["c"]));
        assert!(matches("a:b,c", &["a", "b"]));
        assert!(!matches("a:b,c", &["a"]));
        assert!(matches("a,,b,", &["b"]));
        assert!(!matches("a:", &["a"]));
        assert!(!matches("", &["a"]));
    }

    #[test]
    fn tags_have_a_charset() {
        for good in ["a", "1", "a-b_c.d/e", "", "0a9"] {
            assert_eq!(tag_problem(good), None, "{good}");
        }
        for bad in ["A", "_a", "a_", "-", "a/", "nö", "a b", "a:b", "~a"] {
            assert!(tag_problem(bad).is_some(), "{bad}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_printed_parses_to_the_same(any in prop::collection::vec(prop::collection::vec("[a-z0-9]{1,3}", 1..4), 0..4)) {
            let filter = TagFilter { any };
            prop_assert_eq!(TagFilter::parse(&filter.to_string()), Ok(filter));
        }
    }
}
