//! The outputs of stacks. Only digests of their values are kept, and nothing of sensitive ones.

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::value::digest_of;

/// How many bytes outputs may have.
const MAX_LENGTH: u64 = 64 << 20;

/// How the mark of a sensitive output begins, where others have a digest.
const RUN: &str = "run:";

/// The outputs of a stack: digests of their values by name. A sensitive one has none, nor has one whose value
/// is not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Outputs(BTreeMap<String, Option<String>>);

/// Why outputs cannot be used. No value is quoted: it may be a secret.
#[derive(Debug, thiserror::Error)]
pub enum BadOutputs {
    /// They cannot be read.
    #[error("the outputs cannot be read: {0}")]
    Read(#[from] io::Error),
    /// They are too long.
    #[error("the outputs are longer than 64 MiB")]
    TooLong,
    /// They are not JSON.
    #[error("the outputs are not JSON: line {line}, column {column}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// They are another JSON value.
    #[error("the outputs are not a JSON object")]
    NotAnObject,
    /// An output is not as Terraform prints it.
    #[error("the output `{0}` has no `value`: was this printed by `output -json`?")]
    NoValue(String),
    /// The value of an output cannot be worked with.
    #[error("the value of the output `{0}` is too large, or nested too deeply")]
    TooLarge(String),
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
    /// Reads what `terraform output -json` prints.
    ///
    /// # Errors
    ///
    /// If that is something else, cannot be read, or is too long.
    pub fn of_tool(text: impl Read) -> Result<Self, BadOutputs> {
        let bytes = read_all(text)?;
        let outputs = object(&bytes)?.into_iter().map(|(name, output)| {
            let Ok(output) = serde_json::from_str::<OutputJson<'_>>(output.get()) else {
                return Err(BadOutputs::NoValue(name));
            };
            let digest = (!output.sensitive).then(|| digest_of(output.value));
            Ok((name, digest))
        });
        outputs.collect()
    }

    /// Reads what the `outputs` of a driver prints: an object with values by name, none of which is taken
    /// for sensitive.
    ///
    /// # Errors
    ///
    /// If that is something else, cannot be read, or is too long.
    pub fn printed(text: impl Read) -> Result<Self, BadOutputs> {
        let bytes = read_all(text)?;
        Outputs::of_driver(&bytes)
    }

    /// Reads what the `outputs` of a driver has printed: see [`Self::printed`].
    ///
    /// # Errors
    ///
    /// If that is something else, or too long.
    pub fn of_driver(text: &[u8]) -> Result<Self, BadOutputs> {
        let outputs = object(text)?.into_iter();
        let outputs = outputs.map(|(name, value)| (name, Some(digest_of(value))));
        Ok(outputs.collect())
    }

    /// Returns what is put on record after a run, given what is on record. Nothing of a sensitive output is
    /// derived from its value: it has the run that may have changed it, which is this one if it had work in
    /// the stack, or if nothing of the output was on record.
    pub fn recorded(
        &self,
        run: &str,
        earlier: Option<&BTreeMap<String, String>>,
        has_work: bool,
    ) -> BTreeMap<String, String> {
        let of_earlier = |name: &String| {
            let mark = earlier?.get(name)?;
            (mark.starts_with(RUN) && !has_work).then(|| mark.clone())
        };
        let outputs = self.0.iter().map(|(name, digest)| {
            let sensitive = || of_earlier(name).unwrap_or_else(|| format!("{RUN}{run}"));
            (name.clone(), digest.clone().unwrap_or_else(sensitive))
        });
        outputs.collect()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the outputs of a stack differ from those before its apply. Sensitive ones count as
    /// changed.
    pub fn differ(&self, before: &Self) -> bool {
        self != before || self.0.values().any(Option::is_none)
    }
}

impl FromIterator<(String, Option<String>)> for Outputs {
    fn from_iter<I: IntoIterator<Item = (String, Option<String>)>>(outputs: I) -> Self {
        Outputs(outputs.into_iter().collect())
    }
}

/// Reads all of a text that is not too long.
pub(super) fn read_all(text: impl Read) -> Result<Vec<u8>, BadOutputs> {
    let mut bytes = Vec::new();
    text.take(MAX_LENGTH + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LENGTH {
        return Err(BadOutputs::TooLong);
    }
    Ok(bytes)
}

/// Returns the place of an error in a text, but not its content there, which may be secret.
pub(super) fn malformed(error: &serde_json::Error) -> BadOutputs {
    BadOutputs::Malformed {
        line: error.line(),
        column: error.column(),
    }
}

/// Reads an object with values by name.
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
        let sensitive = |value: &str| {
            of_tool(&format!(
                r#"{{"key":{{"sensitive":true,"value":"{value}"}}}}"#
            ))
        };
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
