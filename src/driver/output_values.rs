//! The values of outputs, while a command needs them. They may be secrets: this module never writes them, not even
//! for debugging.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::outputs::{BadOutputs, OutputJson, malformed, object, read_all};
use crate::language::function::from_json;
use crate::language::value::{MAX_WEIGHT, Value};

#[derive(Clone)]
pub struct OutputValue {
    pub value: Value,
    pub is_sensitive: bool,
}

/// The outputs of a stack by name.
#[derive(Clone, Default)]
pub struct OutputValues(BTreeMap<Arc<str>, OutputValue>);

#[derive(Deserialize)]
struct PlanJson {
    #[serde(default)]
    planned_values: PlannedJson,
}

#[derive(Default, Deserialize)]
struct PlannedJson {
    #[serde(default)]
    outputs: BTreeMap<String, PlannedOutputJson>,
}

#[derive(Deserialize)]
struct PlannedOutputJson {
    #[serde(default)]
    sensitive: bool,
    /// Missing if unknown yet.
    value: Option<Box<RawValue>>,
}

impl fmt::Debug for OutputValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl OutputValues {
    /// Reads the output of `terraform output -json`.
    pub fn of_tool(text: impl Read) -> Result<Self, BadOutputs> {
        let read = |name: &str, output: &RawValue| {
            let output = serde_json::from_str::<OutputJson<'_>>(output.get());
            let output = output.map_err(|_| BadOutputs::NoValue(name.to_owned()))?;
            value(name, output.value, output.sensitive)
        };
        Self::read(text, read)
    }

    /// Reads the output of a driver's `outputs`: an object with values by name, none of them sensitive.
    pub fn printed(text: impl Read) -> Result<Self, BadOutputs> {
        Self::read(text, |name, output| value(name, output, false))
    }

    /// Reads the planned outputs in the output of `show -json`. Unknown ones are left out.
    pub fn planned(text: impl Read) -> Result<Self, BadOutputs> {
        let plan: PlanJson = serde_json::from_reader(text).map_err(|it| malformed(&it))?;
        let outputs = plan.planned_values.outputs.into_iter();
        let known = outputs.filter_map(|(name, it)| Some((name, it.sensitive, it.value?)));
        let outputs = known.map(|(name, is_sensitive, text)| {
            let output = value(&name, &text, is_sensitive)?;
            Ok((name.into(), output))
        });
        Ok(OutputValues(outputs.collect::<Result<_, BadOutputs>>()?))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn read(
        text: impl Read,
        of: impl Fn(&str, &RawValue) -> Result<OutputValue, BadOutputs>,
    ) -> Result<Self, BadOutputs> {
        let bytes = read_all(text)?;
        let outputs = object(&bytes)?.into_iter().map(|(name, output)| {
            let output = of(&name, output)?;
            Ok((name.into(), output))
        });
        Ok(OutputValues(outputs.collect::<Result<_, BadOutputs>>()?))
    }

    pub fn get(&self, name: &str) -> Option<&OutputValue> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &OutputValue)> {
        self.0.iter()
    }
}

fn value(name: &str, text: &RawValue, is_sensitive: bool) -> Result<OutputValue, BadOutputs> {
    let value = from_json(text.get()).filter(|value| value.weight() <= MAX_WEIGHT);
    match value {
        Some(value) => Ok(OutputValue {
            value,
            is_sensitive,
        }),
        None => Err(BadOutputs::TooLarge(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::value::to_json;

    /// Returns the outputs for display: sensitive ones with a mark.
    fn shown(outputs: &OutputValues) -> Vec<String> {
        let outputs = outputs.iter();
        let shown = outputs.map(|(name, output)| {
            let mark = if output.is_sensitive { "!" } else { "" };
            format!("{name}{mark}={}", to_json(&output.value))
        });
        shown.collect()
    }

    #[test]
    fn values_are_read_as_they_are_with_their_sensitivity() {
        let printed = r#"{
            "id": {"sensitive": false, "type": "string", "value": "i-1"},
            "key": {"sensitive": true, "type": "string", "value": "hunter2"},
            "sizes": {"type": ["list", "number"], "value": [1, 2.5, 12345678901234567890123]},
            "none": {"type": "string", "value": null}
        }"#;
        let outputs = OutputValues::of_tool(printed.as_bytes()).unwrap();
        assert_eq!(
            shown(&outputs),
            [
                "id=\"i-1\"",
                "key!=\"hunter2\"",
                "none=null",
                "sizes=[1,2.5,12345678901234567890123]"
            ]
        );
        assert!(!format!("{outputs:?}").contains("hunter2"));
        let outputs = OutputValues::printed(r#"{"id":"i-1","on":true}"#.as_bytes()).unwrap();
        assert_eq!(shown(&outputs), ["id=\"i-1\"", "on=true"]);
    }

    #[test]
    fn planned_outputs_have_values_where_they_are_known() {
        let plan = r#"{"format_version":"1.2","planned_values":{"outputs":{
            "id":{"sensitive":false,"type":"string","value":"i-1"},
            "key":{"sensitive":true,"type":"string","value":"hunter2"},
            "later":{"sensitive":false}
        },"root_module":{}},"output_changes":{}}"#;
        let outputs = OutputValues::planned(plan.as_bytes()).unwrap();
        assert_eq!(shown(&outputs), ["id=\"i-1\"", "key!=\"hunter2\""]);
        let error = OutputValues::planned("{\"planned_values\":hunter2".as_bytes()).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn what_is_no_outputs_is_refused_without_quoting_it() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(120), "]".repeat(120));
        let cases = [
            ("[\"hunter2\"]", "the outputs are not a JSON object"),
            ("hunter2", "the outputs are not JSON: line 1, column 1"),
            (
                &*deep,
                "the value of the output `a` is too large, or nested too deeply",
            ),
        ];
        for (text, problem) in cases {
            let error = OutputValues::printed(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), problem);
        }
        let error = OutputValues::of_tool(r#"{"a":"hunter2"}"#.as_bytes()).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
