//! What names mean in a condition.

use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{Answer, Call, EvalResult, NamePath, Namespaces};
use crate::language::value::Value;

/// The entry of `orch` that is the namespace of the state.
const NAMESPACE: &str = "namespace";

/// The names in a condition: those of `run.env`, and the namespace of the state.
pub(super) struct CheckNames<'a> {
    pub(super) own: &'a dyn Namespaces,
    /// The namespace of the state, if the project keeps one.
    pub(super) namespace: Option<&'a str>,
}

impl Namespaces for CheckNames<'_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<Answer>> {
        let entry = path.rest.first().map(|(name, _)| *name);
        if !matches!(path.name, "orch" | "terramate") || entry != Some(NAMESPACE) {
            return self.own.get(path);
        }
        let Some(namespace) = self.namespace else {
            let message = "`orch.namespace` is that of the state, and the project keeps none";
            let diagnostic = Diagnostic::error(Code::UnavailableName, message);
            return Err(diagnostic
                .label(path.whole_span(), "no state")
                .help("see `orch help state`")
                .into());
        };
        let value = Value::object([(NAMESPACE, Value::string(namespace))]);
        Ok(Some(value.into()))
    }

    fn names(&self) -> Vec<&str> {
        self.own.names()
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        self.own.call(call)
    }

    fn functions(&self) -> Vec<String> {
        self.own.functions()
    }
}
