//! Versions and version constraints as Terraform and Terramate write them: `~> 1.2`, `>= 1.0, < 2.0`.

use semver::{Prerelease, Version};

/// Comparisons, all of which a version must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint(Vec<Comparison>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparison {
    operator: Operator,
    version: Version,
    /// How many of the three numbers were written, which decides which of them `~>` allows to grow.
    written: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// The last number written may grow.
    Pessimistic,
}

/// Longest first, so that `>=` is not read as `>`.
const OPERATORS: [(&str, Operator); 7] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("~>", Operator::Pessimistic),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
];

impl Constraint {
    /// Parses comparisons separated by commas; a version without an operator must match exactly.
    /// The error is a label.
    pub fn parse(text: &str) -> Result<Self, String> {
        text.split(',')
            .map(|part| Comparison::parse(part.trim()))
            .collect::<Result<_, _>>()
            .map(Constraint)
    }

    /// Returns whether a version passes. A prerelease passes only if they are allowed, or if a
    /// comparison itself names a prerelease of the same version.
    pub fn allows(&self, version: &Version, allow_prereleases: bool) -> bool {
        let named = self.0.iter().any(|comparison| {
            let same = (
                comparison.version.major,
                comparison.version.minor,
                comparison.version.patch,
            ) == (version.major, version.minor, version.patch);
            same && !comparison.version.pre.is_empty()
        });
        let may_compare = version.pre.is_empty() || allow_prereleases || named;
        may_compare && self.0.iter().all(|comparison| comparison.allows(version))
    }
}

impl Comparison {
    fn parse(text: &str) -> Result<Self, String> {
        let (operator, version) = OPERATORS
            .iter()
            .find_map(|&(symbol, operator)| Some((operator, text.strip_prefix(symbol)?.trim())))
            .unwrap_or((Operator::Equal, text));
        match parse_version(version) {
            Some((version, written)) => Ok(Comparison {
                operator,
                version,
                written,
            }),
            None => Err(format!("`{text}` is not a comparison with a version")),
        }
    }

    fn allows(&self, version: &Version) -> bool {
        let order = version.cmp_precedence(&self.version);
        match self.operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Pessimistic => {
                let mut limit = self.version.clone();
                limit.pre = Prerelease::EMPTY;
                match self.written {
                    1 => return order.is_ge(),
                    2 => (limit.major, limit.minor) = (limit.major + 1, 0),
                    _ => (limit.minor, limit.patch) = (limit.minor + 1, 0),
                }
                order.is_ge() && version.cmp_precedence(&limit).is_lt()
            }
        }
    }
}

/// Parses a version. The last numbers may be missing, and it may begin with a `v`. Returns it and how
/// many of the three numbers were written.
pub fn parse_version(text: &str) -> Option<(Version, usize)> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let rest = &text[numbers.len()..];
    let written = numbers.split('.').count();
    let padding = ".0".repeat(3_usize.saturating_sub(written));
    let version = Version::parse(&format!("{numbers}{padding}{rest}")).ok()?;
    Some((version, written))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(constraint: &str, version: &str) -> bool {
        let version = Version::parse(version).unwrap();
        Constraint::parse(constraint)
            .unwrap()
            .allows(&version, false)
    }

    #[test]
    fn constraints_compare_as_in_terraform() {
        assert!(allows("~> 1.2", "1.9.0"));
        assert!(!allows("~> 1.2", "2.0.0"));
        assert!(allows("~> 1.2.3", "1.2.9"));
        assert!(!allows("~> 1.2.3", "1.3.0"));
        assert!(allows(">= 1.0, < 2.0", "1.5.0"));
        assert!(!allows(">= 1.0, != 1.5", "1.5.0"));
        assert!(allows("1.5.0", "1.5.0"));
        assert!(!allows(">= 1.0", "2.0.0-rc1"));
        assert!(allows(">= 2.0.0-beta", "2.0.0-rc1"));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Constraint::parse("latest").is_err());
        assert!(Constraint::parse("").is_err());
        assert!(Constraint::parse(">= 1.0,").is_err());
    }
}
