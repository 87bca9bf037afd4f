//! Text with expressions in it: from a file, or from a string.
//!
//! The text is not configuration: its names are the variables that are given with it, and its functions
//! are Terraform's, without a prefix, so that Terraform can use the same file. Problems in it are
//! reported where the function is called, since the text is not a configuration file that they could
//! point at.

use super::arguments::{Arguments, FunctionError, TextOrigin};
use super::files::text_of_file;
use super::{Function, FunctionContext, is_terramates};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{Call, EvalResult, EvalValue, NamePath, Namespaces, NoValue};
use crate::language::parse::parse_text;
use crate::language::value::{ObjectEntries, Value};
use crate::source::FileId;

const MAX_DEPTH: u8 = 16;

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns the text of a file with the expressions in it replaced by their values. Expressions
    /// in the file can use the names in `vars`, and call functions without a prefix.
    templatefile(path: string, vars: any) -> any = Eager(templatefile),
        r#"templatefile("hello.tftpl", { name = "EU" })"# => r#""Hello, EU!\n""#;
    /// Returns a string with the expressions in it replaced by their values, as in `templatefile`.
    templatestring(template: string, vars: any) -> string = Eager(templatestring),
        r#"templatestring("Hello, $${name}!", { name = "EU" })"# => r#""Hello, EU!""#;
};

fn templatefile(arguments: &Arguments) -> Result<Value, FunctionError> {
    check_depth(arguments)?;
    let text = text_of_file(arguments)?;
    render(arguments, &text, TextOrigin::File)
}

fn templatestring(arguments: &Arguments) -> Result<Value, FunctionError> {
    check_depth(arguments)?;
    let value = render(arguments, arguments.text(0), TextOrigin::Argument)?;
    match value.to_text() {
        Some(text) => Ok(Value::String(text)),
        None if value == Value::Null => Ok(value),
        None => {
            let problem = format!("its value is {}; text is needed", value.description());
            Err(FunctionError::Argument(0, problem))
        }
    }
}

fn check_depth(arguments: &Arguments) -> Result<(), FunctionError> {
    if arguments.surroundings().templates < MAX_DEPTH {
        return Ok(());
    }
    let message = format!("templates are nested more than {MAX_DEPTH} levels deep");
    let diagnostic = Diagnostic::error(Code::Limit, message);
    let label = "does the template include itself?";
    Err(NoValue::from(diagnostic.label(arguments.call().name.span, label)).into())
}

/// Evaluates a text with the variables of the second argument.
fn render(arguments: &Arguments, text: &str, origin: TextOrigin) -> Result<Value, FunctionError> {
    let Some(variables) = arguments.value(1).entries() else {
        return Err(arguments.unfit(1, "an object is needed"));
    };
    if let Some(name) = variables.keys().find(|name| !is_name(name)) {
        let problem = format!("its key {name:?} is not a name that a template can use");
        return Err(FunctionError::Argument(1, problem));
    }
    // The parser's tree is large for its text.
    arguments.spend(text.len() as u64)?;
    let call = arguments.call();
    let surroundings = arguments.surroundings();
    let namespaces = Variables {
        variables,
        surroundings: FunctionContext {
            prefix: "",
            templates: surroundings.templates + 1,
            ..*surroundings
        },
    };
    let rendered = match parse_text(FileId::UNPLACED, text) {
        Ok(expr) => call.evaluate_with(&expr, &namespaces),
        Err(diagnostic) => Err(NoValue::Wrong(diagnostic)),
    };
    rendered.map_err(|none| {
        let name = match origin {
            TextOrigin::File => format!("`{}`", arguments.text(0)),
            TextOrigin::Argument => "the template".to_owned(),
        };
        arguments.wrong_text(none, text, &name, origin)
    })
}

fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next();
    first.is_some_and(|c| c.is_alphabetic() || c == '_')
        && characters.all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// The names and functions inside a template.
struct Variables<'a> {
    variables: &'a ObjectEntries,
    surroundings: FunctionContext<'a>,
}

impl Namespaces for Variables<'_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        Ok(self.variables.get(path.name).cloned().map(EvalValue::from))
    }

    fn names(&self) -> Vec<&str> {
        self.variables.keys().map(|name| &**name).collect()
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        if is_terramates(&call.name.text) {
            return Ok(None);
        }
        super::call(call, &self.surroundings)
    }

    fn functions(&self) -> Vec<String> {
        let names = super::names("");
        names.filter(|name| !is_terramates(name)).collect()
    }
}
