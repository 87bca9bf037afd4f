//! The outputs of stacks, as digests of their values. Sensitive ones have digests only where they are compared,
//! salted and slow to compute.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Read};

use bcrypt::{BcryptError, Version};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::value::digest_of;

const MAX_LENGTH: u64 = 64 << 20;

/// How the mark of a sensitive output begins, where others have a digest.
const RUN: &str = "run:";

/// How the salted digest of a sensitive output begins.
const SALTED: &str = "bcrypt:";

/// How slow salted digests are to compute: each step doubles the time.
const COST: u32 = 10;

/// The outputs of a stack: digests of their values by name. Sensitive and unknown ones have none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Outputs {
    digests: BTreeMap<String, Option<String>>,
    /// The values for comparing sensitive ones. They never leave the memory.
    #[serde(skip)]
    secrets: BTreeMap<String, Secret>,
}

#[derive(Debug, Clone)]
pub(super) enum OutputDigest {
    Open(String),
    /// The value for comparing a sensitive one.
    Sensitive(Secret),
    Unknown,
}

/// A digest of a sensitive value, from which a weak value could be guessed.
#[derive(Clone)]
pub(super) struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(sensitive)")
    }
}

impl Secret {
    pub(super) fn of(value: &RawValue) -> Self {
        Secret(digest_of(value))
    }

    fn salted(&self) -> Result<String, BcryptError> {
        let hash =
            bcrypt::hash_with_result(self.0.as_bytes(), COST)?.format_for_version(Version::TwoB);
        Ok(format!("{SALTED}{hash}"))
    }

    /// Returns whether a mark is a salted digest of the same value.
    fn is(&self, mark: &str) -> Result<bool, BcryptError> {
        let hash = mark.strip_prefix(SALTED);
        hash.map_or(Ok(false), |hash| bcrypt::verify(self.0.as_bytes(), hash))
    }
}

impl PartialEq for Outputs {
    fn eq(&self, other: &Self) -> bool {
        self.digests == other.digests
    }
}

impl Eq for Outputs {}

fn is_of_sensitive(mark: &str) -> bool {
    mark.starts_with(RUN) || mark.starts_with(SALTED)
}

/// Returns whether two recorded marks of an output cannot be compared: one of them only has the run that may have
/// changed it.
pub fn are_incomparable(one: &str, other: &str) -> bool {
    one.starts_with(RUN) || other.starts_with(RUN)
}

/// Why outputs cannot be used. No value is quoted: it may be a secret.
#[derive(Debug, thiserror::Error)]
pub enum BadOutputs {
    #[error("the outputs cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("the outputs are longer than 64 MiB")]
    TooLong,
    #[error("the outputs are not JSON: line {line}, column {column}")]
    Malformed { line: usize, column: usize },
    #[error("the outputs are not a JSON object")]
    NotAnObject,
    #[error("the output `{0}` has no `value`: was this printed by `output -json`?")]
    NoValue(String),
    #[error("the value of the output `{0}` is too large, or nested too deeply")]
    TooLarge(String),
    #[error(
        "the recorded digest of the sensitive output `{0}` is damaged: {1}; `orch state backups` lists earlier states"
    )]
    Digest(String, BcryptError),
}

/// An output, as Terraform prints it.
#[derive(Deserialize)]
pub(super) struct OutputJson<'a> {
    #[serde(default)]
    pub(super) sensitive: bool,
    #[serde(borrow)]
    pub(super) value: &'a RawValue,
}

impl Outputs {
    /// Reads the output of `terraform output -json`.
    pub fn of_tool(text: impl Read) -> Result<Self, BadOutputs> {
        let bytes = read_all(text)?;
        let outputs = object(&bytes)?.into_iter().map(|(name, output)| {
            let Ok(output) = serde_json::from_str::<OutputJson<'_>>(output.get()) else {
                return Err(BadOutputs::NoValue(name));
            };
            let digest = if output.sensitive {
                OutputDigest::Sensitive(Secret::of(output.value))
            } else {
                OutputDigest::Open(digest_of(output.value))
            };
            Ok((name, digest))
        });
        outputs.collect()
    }

    /// Reads the output of a driver's `outputs`: an object with values by name, none of them sensitive.
    pub fn printed(text: impl Read) -> Result<Self, BadOutputs> {
        let bytes = read_all(text)?;
        Outputs::of_driver(&bytes)
    }

    /// Reads the stored output of a driver's `outputs`: see [`Self::printed`].
    pub fn of_driver(text: &[u8]) -> Result<Self, BadOutputs> {
        let outputs = object(text)?
            .into_iter()
            .map(|(name, value)| (name, OutputDigest::Open(digest_of(value))));
        Ok(outputs.collect())
    }

    /// Returns the digests to record after a run, given the recorded ones. A sensitive output has the run that may
    /// have changed it: this one if it had work in the stack, or if the output was not recorded. See
    /// [`Self::salting`] for compared ones.
    pub fn recorded(
        &self,
        run: &str,
        earlier: Option<&BTreeMap<String, String>>,
        has_work: bool,
    ) -> BTreeMap<String, String> {
        let outputs = self.digests.iter().map(|(name, digest)| {
            let earlier = earlier
                .and_then(|earlier| earlier.get(name))
                .filter(|mark| is_of_sensitive(mark));
            let sensitive = || {
                let unchanged = earlier.filter(|_| !has_work).cloned();
                unchanged.unwrap_or_else(|| format!("{RUN}{run}"))
            };
            (name.clone(), digest.clone().unwrap_or_else(sensitive))
        });
        outputs.collect()
    }

    /// Returns the same with salted digests of the sensitive ones in `compared`, given the recorded ones: these may
    /// be written to a file, and are stable as long as the value is.
    pub fn salting(
        &self,
        compared: &BTreeSet<String>,
        earlier: Option<&BTreeMap<String, String>>,
        has_work: bool,
    ) -> Result<Self, BadOutputs> {
        let mut outputs = self.clone();
        for (name, digest) in &mut outputs.digests {
            if digest.is_none() && compared.contains(name) {
                let earlier = earlier.and_then(|earlier| earlier.get(name));
                let salted = self.salted(name, earlier, has_work);
                *digest = salted.map_err(|error| BadOutputs::Digest(name.clone(), error))?;
            }
        }
        Ok(outputs)
    }

    /// Returns the salted digest of a sensitive output, or the recorded mark if it is still valid; `None` if its
    /// value is unknown.
    fn salted(
        &self,
        name: &str,
        earlier: Option<&String>,
        has_work: bool,
    ) -> Result<Option<String>, BcryptError> {
        let Some(secret) = self.secrets.get(name) else {
            return Ok(None);
        };
        let mark = match earlier {
            Some(earlier) if secret.is(earlier)? => earlier.clone(),
            // The stacks that were applied with it have only this to compare with.
            Some(earlier) if earlier.starts_with(RUN) && !has_work => earlier.clone(),
            _ => secret.salted()?,
        };
        Ok(Some(mark))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.digests.keys().map(String::as_str)
    }

    /// Returns the known digests, by name.
    pub fn digests(&self) -> BTreeMap<String, String> {
        let known = self
            .digests
            .iter()
            .filter_map(|(name, digest)| Some((name.clone(), digest.clone()?)));
        known.collect()
    }

    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Returns whether the outputs of a stack differ from those before its apply. Sensitive ones count as changed.
    pub fn differ(&self, before: &Self) -> bool {
        self != before || self.digests.values().any(Option::is_none)
    }
}

impl FromIterator<(String, OutputDigest)> for Outputs {
    fn from_iter<I: IntoIterator<Item = (String, OutputDigest)>>(outputs: I) -> Self {
        let mut all = Outputs::default();
        for (name, digest) in outputs {
            let digest = match digest {
                OutputDigest::Open(digest) => Some(digest),
                OutputDigest::Sensitive(secret) => {
                    all.secrets.insert(name.clone(), secret);
                    None
                }
                OutputDigest::Unknown => None,
            };
            all.digests.insert(name, digest);
        }
        all
    }
}

pub(super) fn read_all(text: impl Read) -> Result<Vec<u8>, BadOutputs> {
    let mut bytes = Vec::new();
    text.take(MAX_LENGTH + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LENGTH {
        return Err(BadOutputs::TooLong);
    }
    Ok(bytes)
}

/// Returns the position of an error in a text, without the content, which may be secret.
pub(super) fn malformed(error: &serde_json::Error) -> BadOutputs {
    BadOutputs::Malformed {
        line: error.line(),
        column: error.column(),
    }
}

pub(super) fn object(text: &[u8]) -> Result<BTreeMap<String, &RawValue>, BadOutputs> {
    if text.len() as u64 > MAX_LENGTH {
        return Err(BadOutputs::TooLong);
    }
    let value: &RawValue = serde_json::from_slice(text).map_err(|error| malformed(&error))?;
    if !value.get().starts_with('{') {
        return Err(BadOutputs::NotAnObject);
    }
    serde_json::from_str(value.get()).map_err(|error| malformed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_tool(text: &str) -> Outputs {
        Outputs::of_tool(text.as_bytes()).unwrap()
    }

    fn of_driver(text: &str) -> Outputs {
        Outputs::of_driver(text.as_bytes()).unwrap()
    }

    fn sensitive(value: &str) -> Outputs {
        of_tool(&format!(
            r#"{{"key":{{"sensitive":true,"value":"{value}"}}}}"#
        ))
    }

    #[test]
    fn a_tool_and_a_driver_say_the_same_in_their_own_ways() {
        let printed = r#"{
            "id": {"sensitive": false, "type": "string", "value": "i-1"},
            "sizes": {"type": ["list", "number"], "value": [1, 2.0]},
            "nothing": {"sensitive": false, "type": "string", "value": null}
        }"#;
        let written = r#"{"sizes":[1.0,2],"nothing":null,"id":"i-1"}"#;
        assert_eq!(of_tool(printed), of_driver(written));
        assert_eq!(of_tool("{}\n"), Outputs::default());
    }

    #[test]
    fn nothing_is_kept_of_a_sensitive_value() {
        let outputs = sensitive("hunter2");
        assert_eq!(outputs, sensitive("other"));
        let recorded = outputs.recorded("r1", None, false);
        assert_eq!(recorded["key"], "run:r1");
        let kept = outputs.recorded("r2", Some(&recorded), false);
        assert_eq!(kept["key"], "run:r1");
        let changed = outputs.recorded("r2", Some(&recorded), true);
        assert_eq!(changed["key"], "run:r2");
        let open = of_driver(r#"{"key":"hunter2"}"#).recorded("r1", None, false);
        let closed = outputs.recorded("r2", Some(&open), false);
        assert_eq!(closed["key"], "run:r2", "it was not sensitive before");
        assert!(!format!("{outputs:?}").contains(&outputs.secrets["key"].0));
        let text = serde_json::to_string(&outputs).unwrap();
        assert_eq!(text, r#"{"key":null}"#);
    }

    #[test]
    fn a_damaged_salted_digest_is_an_error() {
        let compared = BTreeSet::from(["key".to_owned()]);
        let damaged = BTreeMap::from([("key".to_owned(), "bcrypt:$2b$10$short".to_owned())]);
        let salted = sensitive("hunter2").salting(&compared, Some(&damaged), true);
        let error = salted.unwrap_err().to_string();
        let expected = "the recorded digest of the sensitive output `key` is damaged";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn sensitive_outputs_that_are_compared_have_salted_digests() {
        let compared = BTreeSet::from(["key".to_owned()]);
        let recorded = |outputs: &Outputs, run, earlier, has_work| {
            let salted = outputs.salting(&compared, earlier, has_work).unwrap();
            salted.recorded(run, earlier, has_work)
        };
        let outputs = sensitive("hunter2");
        let first = recorded(&outputs, "r1", None, true);
        assert!(first["key"].starts_with("bcrypt:"), "{first:?}");
        let again = recorded(&outputs, "r1", None, true);
        assert_ne!(first, again, "each has a salt of its own");
        // It is stable as long as the value is.
        assert_eq!(
            recorded(&sensitive("hunter2"), "r2", Some(&first), true),
            first
        );
        let other = recorded(&sensitive("other"), "r2", Some(&first), true);
        assert!(other["key"].starts_with("bcrypt:") && other != first);
        // A recorded value without a digest is valid until something changes.
        let run = BTreeMap::from([("key".to_owned(), "run:r0".to_owned())]);
        assert_eq!(recorded(&outputs, "r1", Some(&run), false), run);
        assert_ne!(recorded(&outputs, "r1", Some(&run), true), run);
        // In a file there are only such digests.
        let salted = outputs.salting(&compared, Some(&first), false).unwrap();
        let text = serde_json::to_string(&salted).unwrap();
        let read: Outputs = serde_json::from_str(&text).unwrap();
        assert_eq!(recorded(&read, "r2", Some(&first), false), first);
        // Of a value that is not known, nothing is new.
        let unknown: Outputs = serde_json::from_str(r#"{"key":null}"#).unwrap();
        assert_eq!(recorded(&unknown, "r2", Some(&first), false), first);
    }

    #[test]
    fn outputs_differ_if_a_value_does_or_may() {
        let one = of_driver(r#"{"a":1}"#);
        assert!(!one.differ(&of_driver(r#"{ "a": 1.0 }"#)));
        assert!(one.differ(&of_driver(r#"{"a":2}"#)));
        assert!(one.differ(&of_driver("{}")));
        assert!(of_driver("{}").differ(&one));
        let sensitive = of_tool(r#"{"a":{"sensitive":true,"value":1}}"#);
        assert!(sensitive.differ(&sensitive));
    }

    #[test]
    fn what_is_no_outputs_is_refused_without_quoting_it() {
        let cases = [
            ("", "the outputs are not JSON: line 1, column 0"),
            (
                "{\"a\":\n hunter2}",
                "the outputs are not JSON: line 2, column 2",
            ),
            ("{} {}", "the outputs are not JSON: line 1, column 4"),
            ("\"hunter2\"", "the outputs are not a JSON object"),
            ("[\"hunter2\"]", "the outputs are not a JSON object"),
            (
                r#"{"a":"hunter2"}"#,
                "the output `a` has no `value`: was this printed by `output -json`?",
            ),
            (
                r#"{"a":{"sensitive":"hunter2","value":1}}"#,
                "the output `a` has no `value`: was this printed by `output -json`?",
            ),
        ];
        for (text, problem) in cases {
            let error = Outputs::of_tool(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), problem);
        }
        let endless = io::repeat(b' ');
        assert!(matches!(
            Outputs::of_tool(endless),
            Err(BadOutputs::TooLong)
        ));
    }
}
