//! Expressions that may call functions but use no names.

use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{Call, EvalResult, EvalValue, NamePath, Namespaces};
use crate::language::function::{self, FunctionContext};
use crate::language::value::Value;

/// No namespaces at all, for the project configuration and trigger files. The text names the place in
/// messages.
#[derive(Debug, Clone, Copy)]
pub struct NoNamespaces(pub &'static str);

impl Namespaces for NoNamespaces {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        if !["env", "global", "let", "orch", "terramate"].contains(&path.name) {
            return Ok(None);
        }
        let message = format!("`{}` cannot be used in {}", path.name, self.0);
        let help = if path.name == "let" {
            "`let` is known only in `env` and `lets` of `config.run`"
        } else {
            "only literals, operators, templates, `for` and functions are evaluated here"
        };
        let diagnostic = Diagnostic::error(Code::UnavailableName, message);
        Err(diagnostic
            .label(path.span, "not available here")
            .help(help)
            .into())
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        function::call(call, &FunctionContext::none(self.0))
    }

    fn functions(&self) -> Vec<String> {
        function::names(function::PREFIX).collect()
    }
}
