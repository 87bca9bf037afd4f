//! The functions that expressions can call: Terraform's library under `tm_` names, and Terramate's own.
//!
//! One registry holds the name, the parameters, the documentation and the implementation of each. Results are
//! Terraform's. A function depends only on its arguments and on [`FunctionContext`]. The work of a call counts
//! against the budget of the expression, so a function whose result could be much larger than its arguments must
//! count before it computes.

#[macro_use]
mod table;

mod arguments;
mod base64;
mod charset;
mod collections;
mod conversion;
mod csv;
mod dates;
mod encoding;
mod files;
mod format;
mod hashes;
mod json;
mod networks;
mod numbers;
mod opentofu;
mod patterns;
mod sets;
mod strings;
mod templates;
mod terramate;
mod yaml;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use self::arguments::{Arguments, FunctionError};
pub(crate) use self::json::from_json;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{Call, EvalResult, NoValue, Unknown};
use crate::language::value::{Type, Value};

/// The prefix of the names of functions in configuration files.
pub const PREFIX: &str = "tm_";

pub struct Function {
    /// The name without its prefix, as Terraform has it.
    pub name: &'static str,
    pub parameters: &'static [Parameter],
    /// The parameter that may be given any number of times after them.
    pub variadic: Option<Parameter>,
    pub returns: ParameterType,
    /// Its result, in a sentence or two: "Returns …".
    pub description: &'static str,
    /// A call without prefix, and its result as JSON; the tests check it.
    pub example: (&'static str, &'static str),
    body: Body,
}

#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: ParameterType,
    pub nullable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// A value of any type; the function checks it.
    Any,
    Bool,
    Number,
    String,
    List(&'static ParameterType),
    Set(&'static ParameterType),
    Map(&'static ParameterType),
}

impl ParameterType {
    fn to_type(self) -> Type {
        let element = |kind: &ParameterType| Box::new(kind.to_type());
        match self {
            ParameterType::Any => Type::Any,
            ParameterType::Bool => Type::Bool,
            ParameterType::Number => Type::Number,
            ParameterType::String => Type::String,
            ParameterType::List(kind) => Type::List(element(kind)),
            ParameterType::Set(kind) => Type::Set(element(kind)),
            ParameterType::Map(kind) => Type::Map(element(kind)),
        }
    }
}

#[derive(Clone, Copy)]
enum Body {
    /// From the values of its arguments, converted to the types of the parameters.
    Eager(fn(&Arguments) -> Result<Value, FunctionError>),
    /// From its arguments as written.
    Lazy(fn(&Call, &FunctionContext) -> EvalResult),
    /// Not at all. The text says why, to follow the name.
    Refused(&'static str),
}

impl Function {
    /// Returns why the function cannot be called, to follow its name; `None` if it can.
    pub fn refusal(&self) -> Option<&'static str> {
        match self.body {
            Body::Refused(why) => Some(why),
            _ => None,
        }
    }

    /// Returns how the function is called: `join(separator string, lists list(string)...) string`.
    pub fn signature(&self) -> String {
        let show =
            |parameter: &Parameter| format!("{} {}", parameter.name, parameter.kind.to_type());
        let required = self.parameters.iter().map(show);
        let variadic = self.variadic.iter().map(|it| show(it) + "...");
        let parameters: Vec<String> = required.chain(variadic).collect();
        format!(
            "{}({}) {}",
            self.name,
            parameters.join(", "),
            self.returns.to_type()
        )
    }
}

pub trait FileReader {
    /// Returns the content of a file. The path is as written in the call.
    fn read(&self, path: &str) -> Result<Arc<[u8]>, FileError>;

    fn exists(&self, path: &str) -> Result<bool, FileError>;

    /// Returns the files below a directory that match a pattern, relative to the directory, in byte order.
    fn matching(&self, directory: &str, pattern: &str) -> Result<Vec<String>, FileError>;

    /// Returns a path as an absolute one on this machine, without `.` and `..`.
    fn absolute(&self, path: &str) -> Result<String, FileError>;

    fn home(&self) -> Result<String, FileError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileError {
    /// The path is wrong; the text says how.
    Wrong(String),
    /// The file system, or git, failed; the text says how.
    Unreadable(String),
    /// The directory that the path is relative to is not known yet.
    Undecided {
        /// See [`Unknown::name`].
        name: String,
        /// See [`Unknown::when`].
        when: String,
    },
}

/// Whether functions whose result differs from call to call can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Impure {
    /// No: the value must be the same whenever the same files are read.
    Refused,
    Allowed,
    /// Yes, but they always return the same value, so that other differences show.
    Fixed,
}

#[derive(Clone, Copy)]
pub struct FunctionContext<'a> {
    /// The prefix of the names of functions: [`PREFIX`], or nothing in a file that is a template.
    pub prefix: &'static str,
    /// Where the expression is, for messages: "the project configuration".
    pub place: &'a str,
    pub files: Option<&'a dyn FileReader>,
    pub changing: Impure,
    /// How many templates the expression is nested in.
    pub templates: u8,
}

impl<'a> FunctionContext<'a> {
    pub fn none(place: &'a str) -> Self {
        FunctionContext {
            prefix: PREFIX,
            place,
            files: None,
            changing: Impure::Refused,
            templates: 0,
        }
    }
}

static GROUPS: [(&str, &[Function]); 15] = [
    ("Numbers", numbers::FUNCTIONS),
    ("Strings", strings::FUNCTIONS),
    ("Formats", format::FUNCTIONS),
    ("Patterns", patterns::FUNCTIONS),
    ("Collections", collections::FUNCTIONS),
    ("Sets", sets::FUNCTIONS),
    ("Conversion", conversion::FUNCTIONS),
    ("Encoding", encoding::FUNCTIONS),
    ("Dates and times", dates::FUNCTIONS),
    ("Hashes and random values", hashes::FUNCTIONS),
    ("IP networks", networks::FUNCTIONS),
    ("Files", files::FUNCTIONS),
    ("Templates", templates::FUNCTIONS),
    ("OpenTofu", opentofu::FUNCTIONS),
    ("Terramate", terramate::FUNCTIONS),
];

pub fn groups() -> impl Iterator<Item = (&'static str, &'static [Function])> {
    GROUPS.iter().copied()
}

/// Returns whether a function may look at files, by its name with or without prefix. The name begins with
/// `file`, or is that of a function that renders a template, which can call such a function.
pub fn reads_files(name: &str) -> bool {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    name.starts_with("file") || matches!(name, "templatefile" | "templatestring")
}

pub fn names(prefix: &'static str) -> impl Iterator<Item = String> {
    let functions = GROUPS.iter().flat_map(|(_, functions)| *functions);
    functions.map(move |function| format!("{prefix}{}", function.name))
}

/// Returns the function of that name, which has no prefix.
pub fn find(name: &str) -> Option<&'static Function> {
    static BY_NAME: LazyLock<HashMap<&str, &Function>> = LazyLock::new(|| {
        let functions = GROUPS.iter().flat_map(|(_, functions)| *functions);
        functions
            .map(|function| (function.name, function))
            .collect()
    });
    BY_NAME.get(name).copied()
}

/// Returns whether a function, whose name has no prefix, is one of Terramate's own, which Terraform lacks.
fn is_terramates(name: &str) -> bool {
    let name = name.strip_prefix("core::").unwrap_or(name);
    let mut functions = terramate::FUNCTIONS.iter();
    functions.any(|function| function.name == name)
}

/// Calls a function; `None` if there is none of that name.
pub fn call(call: &Call, surroundings: &FunctionContext) -> EvalResult<Option<Value>> {
    let name = &*call.name.text;
    let short = name.strip_prefix(surroundings.prefix);
    // Terraform's own names may be written out, but Terramate has no prefix for such names.
    let short = short.map(|name| match surroundings.prefix {
        "" => name.strip_prefix("core::").unwrap_or(name),
        _ => name,
    });
    let Some(function) = short.and_then(find) else {
        return Ok(None);
    };
    match function.body {
        Body::Lazy(body) => {
            check_count(function, call, call.arguments.len())?;
            body(call, surroundings).map(Some)
        }
        Body::Refused(why) => {
            let message = format!("`{name}` cannot be used: it {why}");
            let diagnostic = Diagnostic::error(Code::UnavailableName, message);
            Err(diagnostic.label(call.name.span, "not available").into())
        }
        Body::Eager(body) => {
            let values = call.values()?;
            check_count(function, call, values.len())?;
            let arguments = Arguments::new(function, call, surroundings, values)?;
            let value = body(&arguments).map_err(|error| arguments.no_value(error))?;
            call.spend(value.weight())?;
            Ok(Some(value))
        }
    }
}

fn check_count(function: &Function, call: &Call, count: usize) -> EvalResult<()> {
    let required = function.parameters.len();
    let fits = match function.variadic {
        None => count == required,
        Some(_) => count >= required,
    };
    if fits {
        return Ok(());
    }
    let at_least = if function.variadic.is_some() {
        "at least "
    } else {
        ""
    };
    let noun = if required == 1 {
        "argument"
    } else {
        "arguments"
    };
    let message = format!(
        "`{}` takes {at_least}{required} {noun}, but this call has {count}",
        call.name.text
    );
    let (span, label) = match call.arguments.get(required) {
        Some(first) if count > required => (first.span, "one argument too many"),
        _ => (call.name.span, "arguments are missing"),
    };
    let diagnostic = Diagnostic::error(Code::WrongArguments, message).label(span, label);
    let prefix = call
        .name
        .text
        .strip_suffix(function.name)
        .unwrap_or_default();
    Err(diagnostic
        .help(format!("call it as `{prefix}{}`", function.signature()))
        .into())
}

fn undecided(call: &Call, name: String, when: String) -> NoValue {
    let span = call.name.span;
    NoValue::Undecided(Box::new(Unknown {
        name,
        when,
        span,
        is_on_demand: false,
    }))
}
