//! Functions that match regular expressions, in Terraform's syntax.

mod syntax;

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::{Captures, Regex, RegexBuilder};

use super::Function;
use super::arguments::{Arguments, FunctionError};
use crate::language::value::Value;

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns the first match of a regular expression in a string: the matched text, a list of
    /// what its groups match, or an object if the groups have names.
    regex(pattern: string, string: string) -> any = Eager(first_match),
        r#"regex("[a-z]+", "53abc24")"# => r#""abc""#;
    /// Returns all matches of a regular expression in a string, each in the form that `regex`
    /// returns.
    regexall(pattern: string, string: string) -> list(any) = Eager(all_matches),
        r#"regexall("[a-z]+", "12ab34cd")"# => r#"["ab","cd"]"#;
};

struct CompiledRegex {
    regex: Regex,
    /// For each group but the whole match.
    names: Vec<Option<String>>,
}

impl CompiledRegex {
    fn new(arguments: &Arguments, index: usize, source: &str) -> Result<Self, FunctionError> {
        /// How much memory a regular expression may take. The default limit would take seconds to reach.
        const SIZE: usize = 1 << 20;
        let wrong = |problem: String| {
            FunctionError::Argument(
                index,
                format!("this is not a regular expression: {problem}"),
            )
        };
        arguments.spend(source.len() as u64)?;
        let (translated, names) = syntax::translate(source).map_err(wrong)?;
        let built = RegexBuilder::new(&translated).size_limit(SIZE).build();
        let regex = built.map_err(|error| {
            wrong(match error {
                regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
                // The last line says what is wrong; those before it show the translation.
                error => {
                    let error = error.to_string();
                    let last = error.lines().last().unwrap_or_default();
                    last.trim_start_matches("error: ").to_owned()
                }
            })
        })?;
        arguments.spend(translated.len() as u64)?;
        Ok(CompiledRegex { regex, names })
    }

    /// Returns the regular expression for `regex` or `regexall`.
    fn of_result(arguments: &Arguments) -> Result<Self, FunctionError> {
        let pattern = CompiledRegex::new(arguments, 0, arguments.text(0))?;
        let named = pattern.names.iter().flatten().count();
        if named != 0 && named != pattern.names.len() {
            let problem = "either all groups or none must have names";
            return Err(FunctionError::Argument(0, problem.to_owned()));
        }
        Ok(pattern)
    }

    fn result(&self, captures: &Captures) -> Value {
        let group = |index: usize| match captures.get(index) {
            Some(part) => Value::normal(part.as_str()),
            None => Value::Null,
        };
        if self.names.is_empty() {
            return group(0);
        }
        let groups = (1..).zip(&self.names);
        if self.names.iter().all(Option::is_none) {
            return Value::tuple(groups.map(|(index, _)| group(index)));
        }
        let named = groups.filter_map(|(index, name)| Some((name.as_deref()?, group(index))));
        let named: BTreeMap<Arc<str>, Value> =
            named.map(|(name, value)| (name.into(), value)).collect();
        Value::Object(named.into())
    }

    /// Returns the group with a name or number, if it matches anything.
    fn named<'t>(&self, captures: &Captures<'t>, name: &str) -> Option<&'t str> {
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && (name == "0" || !name.starts_with('0')) {
            let index = name.parse().ok()?;
            return captures.get(index).map(|part| part.as_str());
        }
        let groups = (1..).zip(&self.names);
        let mut called = groups.filter(|(_, it)| it.as_deref() == Some(name));
        called.find_map(|(index, _)| captures.get(index).map(|part| part.as_str()))
    }

    /// Appends a replacement, with `$1` and `${name}` replaced by what the groups match.
    fn expand(&self, captures: &Captures, replacement: &str, result: &mut String) {
        let mut rest = replacement;
        while let Some((before, after)) = rest.split_once('$') {
            result.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                result.push('$');
                rest = after;
            } else if let Some((name, after)) = reference(after) {
                result.push_str(self.named(captures, name).unwrap_or_default());
                rest = after;
            } else {
                result.push('$');
                rest = after;
            }
        }
        result.push_str(rest);
    }
}

/// Returns the name after a dollar sign, and the rest.
fn reference(text: &str) -> Option<(&str, &str)> {
    let in_braces = text.strip_prefix('{');
    let name = in_braces.unwrap_or(text);
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (name, after) = name.split_at(end.unwrap_or(name.len()));
    if name.is_empty() {
        return None;
    }
    match in_braces {
        Some(_) => Some((name, after.strip_prefix('}')?)),
        None => Some((name, after)),
    }
}

fn first_match(arguments: &Arguments) -> Result<Value, FunctionError> {
    let pattern = CompiledRegex::of_result(arguments)?;
    match pattern.regex.captures(arguments.text(1)) {
        Some(captures) => Ok(pattern.result(&captures)),
        None => Err(FunctionError::Argument(
            1,
            format!(
                "this is {}, which the pattern does not match",
                arguments.value(1).description()
            ),
        )),
    }
}

fn all_matches(arguments: &Arguments) -> Result<Value, FunctionError> {
    let pattern = CompiledRegex::of_result(arguments)?;
    let mut matches = Vec::new();
    for captures in pattern.regex.captures_iter(arguments.text(1)) {
        let value = pattern.result(&captures);
        arguments.spend(value.weight())?;
        matches.push(value);
    }
    Ok(Value::list(matches))
}

/// Replaces the parts of the first argument that a regular expression matches by the third.
pub(super) fn replace(arguments: &Arguments, source: &str) -> Result<Value, FunctionError> {
    let pattern = CompiledRegex::new(arguments, 1, source)?;
    let (whole, replacement) = (arguments.text(0), arguments.text(2));
    let mut result = String::new();
    let mut end = 0;
    for captures in pattern.regex.captures_iter(whole) {
        let Some(part) = captures.get(0) else {
            continue;
        };
        let start = result.len();
        arguments.spend(replacement.len() as u64 / 8 + 1)?;
        result.push_str(&whole[end..part.start()]);
        pattern.expand(&captures, replacement, &mut result);
        end = part.end();
        arguments.spend((result.len() - start) as u64 / 8)?;
    }
    result.push_str(&whole[end..]);
    Ok(Value::normal(&result))
}
