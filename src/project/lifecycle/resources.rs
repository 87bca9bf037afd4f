//! `prevent_resource_destroy`: the protected resources of a stack.
//!
//! A glob is matched against the address of a resource segment by segment. Dots separate segments, except inside
//! instance keys. This module doesn't know which resources exist.

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Code, Diagnostic};
use crate::language::value::Value;
use crate::source::{Span, Spanned};

pub(crate) const PREVENT_RESOURCE_DESTROY: &str = "prevent_resource_destroy";

const HELP: &str = "an address is a type and a name, below its modules: `aws_db_instance.*`, `module.data.**`, `**.aws_db_instance.*`";

/// The resources that `prevent_resource_destroy` protects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ProtectedResources {
    /// All resources of the stack, or none.
    All(bool),
    /// The resources whose addresses match one of these globs.
    Matching(Vec<String>),
}

impl ProtectedResources {
    pub fn is_empty(&self) -> bool {
        match self {
            ProtectedResources::All(all) => !all,
            ProtectedResources::Matching(globs) => globs.is_empty(),
        }
    }

    /// Returns the protected addresses. An address that cannot be parsed counts as protected, and a
    /// recorded glob that cannot be parsed protects everything.
    pub fn among<'a>(&self, addresses: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let globs = match self {
            ProtectedResources::All(false) => return Vec::new(),
            ProtectedResources::All(true) => return addresses.collect(),
            ProtectedResources::Matching(globs) => globs,
        };
        let matchers: Vec<_> = globs.iter().map(|glob| matcher(glob)).collect();
        let is_protected = |address: &&str| match segments(address) {
            None => !matchers.is_empty(),
            Some(segments) => {
                let path = path(&segments);
                let mut matchers = matchers.iter();
                matchers.any(|it| it.as_ref().is_none_or(|it| it.is_match(&path)))
            }
        };
        addresses.filter(is_protected).collect()
    }

    /// Reads the value of a rule at `stands`; `null` counts as unset.
    pub(in crate::project) fn read(
        value: &Value,
        written: Span,
        stands: Span,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Spanned<Self>> {
        let rule = match value {
            Value::Null => return None,
            Value::Bool(all) => ProtectedResources::All(*all),
            Value::Tuple(items) | Value::List(items) => {
                let mut globs = Vec::with_capacity(items.len());
                for item in items.iter() {
                    let Value::String(glob) = item else {
                        let found = format!("an element is {}", item.type_name());
                        problems.push(wrong_type(found, written));
                        return None;
                    };
                    if let Err(problem) = check(glob) {
                        let name = PREVENT_RESOURCE_DESTROY;
                        let message = format!("`{glob}` in `{name}` cannot match any resource");
                        let diagnostic = Diagnostic::error(Code::InvalidPattern, message);
                        problems.push(diagnostic.label(written, problem).help(HELP));
                        return None;
                    }
                    globs.push(glob.to_string());
                }
                ProtectedResources::Matching(globs)
            }
            other => {
                problems.push(wrong_type(
                    format!("this is {}", other.type_name()),
                    written,
                ));
                return None;
            }
        };
        Some(Spanned {
            value: rule,
            span: stands,
        })
    }
}

fn wrong_type(found: String, written: Span) -> Diagnostic {
    let name = PREVENT_RESOURCE_DESTROY;
    let message = format!("`{name}` must be `true`, `false` or a list of globs");
    Diagnostic::error(Code::WrongType, message)
        .label(written, found)
        .help(format!("write `{name} = [\"aws_db_instance.*\"]`"))
}

/// A segment of an address: a name, and an instance key if it has one.
type Segment<'a> = (&'a str, Option<&'a str>);

/// Splits an address, or a glob; `None` if it cannot be split.
fn segments(address: &str) -> Option<Vec<Segment<'_>>> {
    let mut segments = Vec::new();
    let mut rest = address;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if name.is_empty() {
            return None;
        }
        let (key, after) = match after.strip_prefix('[') {
            None => (None, after),
            Some(inside) => {
                let end = end_of_key(inside)?;
                (Some(&inside[..end]), &inside[end + 1..])
            }
        };
        segments.push((name, key));
        match after.strip_prefix('.') {
            Some(after) => rest = after,
            None if after.is_empty() => return Some(segments),
            None => return None,
        }
    }
}

/// Returns where the bracket is that ends an instance key.
fn end_of_key(inside: &str) -> Option<usize> {
    let Some(quoted) = inside.strip_prefix('"') else {
        return inside.find(']').filter(|end| *end > 0);
    };
    let mut characters = quoted.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '\\' => _ = characters.next(),
            '"' => {
                let end = position + 2;
                return inside[end..].starts_with(']').then_some(end);
            }
            _ => {}
        }
    }
    None
}

/// Returns segments as a path, since globs match paths.
fn path(segments: &[Segment<'_>]) -> String {
    let names = segments.iter().map(|(name, key)| match key {
        Some(key) => format!("{name}[{}]", within_name(key)),
        None => (*name).to_owned(),
    });
    names.collect::<Vec<_>>().join("/")
}

/// Escapes slashes in a key, so that they do not separate segments.
fn within_name(key: &str) -> String {
    key.replace('/', "\0")
}

/// Returns why a glob matches no address, if it does not.
fn check(glob: &str) -> Result<(), &'static str> {
    let Some(segments) = segments(glob) else {
        return Err("separate names with dots, and put a key in brackets after its name");
    };
    let is_name = |name: &str| {
        let is_allowed = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-' | '*' | '?');
        name == "**" || name.chars().all(is_allowed) && !name.contains("**")
    };
    if !segments.iter().all(|(name, _)| is_name(name)) {
        return Err(
            "names have letters, digits, `_` and `-`; `*` and `?` match within a name, `**` matches any number of names",
        );
    }
    let has_any = segments.iter().any(|(name, _)| *name == "**");
    if !has_any && segments.len() % 2 == 1 {
        return Err("a name is missing");
    }
    Ok(())
}

/// Returns the matcher for the paths of addresses; `None` if the glob is invalid.
fn matcher(glob: &str) -> Option<GlobMatcher> {
    check(glob).ok()?;
    let mut segments = segments(glob)?;
    // A module matches everything in it.
    if let [.., ("module", None), (_, _)] = segments[..] {
        segments.push(("**", None));
    }
    let names = segments.iter().map(|(name, key)| match key {
        _ if *name == "**" => (*name).to_owned(),
        Some(key) => format!("{name}[[]{}[]]", escaped(&within_name(key))),
        // Without a key, all instances.
        None => format!("{name}{{,[[]*[]]}}"),
    });
    let glob = names.collect::<Vec<_>>().join("/");
    let glob = GlobBuilder::new(&glob)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build();
    Some(glob.ok()?.compile_matcher())
}

/// Escapes a key of a glob, but for its wildcards.
fn escaped(key: &str) -> String {
    let characters = key.chars().map(|character| match character {
        '*' | '?' => character.to_string(),
        '\\' => r"\\".to_owned(),
        other => globset::escape(other.encode_utf8(&mut [0; 4])),
    });
    characters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protects(glob: &str, address: &str) -> bool {
        assert_eq!(check(glob), Ok(()), "{glob}");
        let rule = ProtectedResources::Matching(vec![glob.to_owned()]);
        !rule.among([address].into_iter()).is_empty()
    }

    #[test]
    fn protected_resources_match_globs_by_segments() {
        let cases = [
            ("aws_db_instance.*", "aws_db_instance.main", true),
            ("aws_db_instance.*", "aws_db_instance.main[0]", true),
            (
                "aws_db_instance.*",
                r#"aws_db_instance.main["eu.west"]"#,
                true,
            ),
            ("aws_db_instance.*", r#"aws_db_instance.main["a/b"]"#, true),
            (
                "aws_db_instance.*",
                r#"aws_db_instance.main["a\"].b"]"#,
                true,
            ),
            (
                "aws_db_instance.*",
                "module.data.aws_db_instance.main",
                false,
            ),
            ("aws_db_instance.*", "aws_db_instances.main", false),
            ("aws_db_*.*", "aws_db_instance.main", true),
            ("aws_db_instance.m?in", "aws_db_instance.main", true),
            ("aws_db_instance.main", "aws_db_instance.main[1]", true),
            ("aws_db_instance.main[0]", "aws_db_instance.main[0]", true),
            ("aws_db_instance.main[0]", "aws_db_instance.main[1]", false),
            ("aws_db_instance.main[0]", "aws_db_instance.main", false),
            (r#"a.b["eu*"]"#, r#"a.b["eu.west/1"]"#, true),
            (r#"a.b["eu*"]"#, r#"a.b["us.west"]"#, false),
            (r#"a.b["{x}[1],\\"]"#, r#"a.b["{x}[1],\\"]"#, true),
            ("a.b[*]", "a.b[3]", true),
            ("*.*", "module.a.b.c", false),
            ("**", "a.b", true),
            ("**", "module.a.b.c", true),
            ("**.aws_db_instance.*", "aws_db_instance.main", true),
            (
                "**.aws_db_instance.*",
                r#"module.x["a.b"].aws_db_instance.main"#,
                true,
            ),
            (
                "**.aws_db_instance.*",
                "module.x.aws_db_instance.main[0]",
                true,
            ),
            ("module.data.**", "module.data.a.b", true),
            (
                "module.data.**",
                r#"module.data["a.b"].module.c[0].a.b"#,
                true,
            ),
            ("module.data.**", "module.database.a.b", false),
            ("module.data.**", "a.b", false),
            ("module.data", "module.data[1].a.b", true),
            ("module.data[0]", "module.data[1].a.b", false),
            ("module.data.a.*", "module.data.a.b", true),
            ("module.data.a.*", "module.data.module.c.a.b", false),
        ];
        for (glob, address, expected) in cases {
            assert_eq!(protects(glob, address), expected, "{glob} {address}");
        }
    }

    #[test]
    fn protected_resources_include_what_makes_no_sense() {
        for address in [
            "",
            "a.",
            ".b",
            "a.b[",
            r#"a.b["x]"#,
            r#"a.b["x"]y"#,
            "a.b[]",
        ] {
            assert!(protects("x.y", address), "{address}");
        }
        let recorded = ProtectedResources::Matching(vec!["a[".to_owned()]);
        assert_eq!(recorded.among(["x.y"].into_iter()), ["x.y"]);
    }

    #[test]
    fn protected_resources_refuse_globs_that_match_nothing() {
        for glob in [
            "",
            "*",
            "aws_db_instance",
            "a..b",
            "a.b.c",
            "a.{b,c}",
            "a.[!b]",
            "a/b.c",
            "aws_**.x",
            "a.b[",
            "a b.c",
            "!a.b",
        ] {
            assert!(check(glob).is_err(), "{glob}");
        }
    }

    #[test]
    fn protected_resources_are_all_or_none_without_globs() {
        let all = |all: bool| {
            ProtectedResources::All(all)
                .among(["a.b", ""].into_iter())
                .len()
        };
        assert_eq!((all(true), all(false)), (2, 0));
        let none = ProtectedResources::Matching(Vec::new());
        assert!(none.is_empty() && none.among(["", "a.b"].into_iter()).is_empty());
    }
}
