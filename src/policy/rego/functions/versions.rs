//! Semantic versions, with or without `v` before them.

use std::cmp::Ordering;

use regorus::Value;
use semver::Version;

fn version(value: &Value) -> Option<Version> {
    let text = value.as_string().ok()?;
    let text = text.strip_prefix('v').unwrap_or(text);
    let version = Version::parse(text).ok()?;
    let numbers = [version.major, version.minor, version.patch];
    let fits = numbers.iter().all(|it| i64::try_from(*it).is_ok());
    fits.then_some(version)
}

pub(super) fn is_valid(arguments: &[Value]) -> Value {
    version(&arguments[0]).is_some().into()
}

pub(super) fn compare(arguments: &[Value]) -> Option<Value> {
    let [left, right] = [&arguments[0], &arguments[1]].map(version);
    let number: i64 = match left?.cmp_precedence(&right?) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    };
    Some(number.into())
}
