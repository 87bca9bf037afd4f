//! The functions that Terramate adds to Terraform's library.

mod hcl;
mod names;
mod toml;
mod tree;

use super::arguments::{Arguments, FunctionError};
use super::{Body, Function, Kind, Parameter, Surroundings};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{Call, EvalResult};
use crate::language::value::Value;
use crate::version::{Constraint, parse_version};

const LISTS: Kind = Kind::List(&Kind::List(&Kind::String));

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "hcl_expression",
        parameters: &[Parameter::new("expression", Kind::String)],
        variadic: None,
        returns: Kind::Any,
        description: "Puts an expression into generated code.",
        example: ("hcl_expression(\"var.region\")", ""),
        body: Body::Refused("puts an expression into generated code, and orch generates none"),
    },
    Function {
        name: "hcldecode",
        parameters: &[Parameter::new("text", Kind::String)],
        variadic: None,
        returns: Kind::Any,
        description: "Returns the attributes of HCL text. Their expressions cannot use names or \
                      functions, and blocks are not allowed.",
        example: (
            "hcldecode(\"a = 1\\nb = [true]\")",
            "{\"a\":1,\"b\":[true]}",
        ),
        body: Body::Eager(hcl::decode),
    },
    Function {
        name: "hclencode",
        parameters: &[Parameter::new("value", Kind::Any)],
        variadic: None,
        returns: Kind::String,
        description: "Returns the attributes of an object as HCL text.",
        example: (
            "hclencode({ a = 1, b = [\"x\"] })",
            "\"a = 1\\nb = [\\n  \\\"x\\\",\\n]\\n\"",
        ),
        body: Body::Eager(hcl::encode),
    },
    Function {
        name: "joinlist",
        parameters: &[
            Parameter::new("separator", Kind::String),
            Parameter::new("lists", LISTS),
        ],
        variadic: None,
        returns: Kind::List(&Kind::String),
        description: "Returns a list in which each inner list of strings is joined into one string.",
        example: (
            "joinlist(\"/\", [[\"a\"], [\"a\", \"b\"]])",
            "[\"a\",\"a/b\"]",
        ),
        body: Body::Eager(names::joinlist),
    },
    Function {
        name: "slug",
        parameters: &[Parameter::nullable("value", Kind::Any)],
        variadic: None,
        returns: Kind::Any,
        description: "Returns a string, or each string of a list, in lower case, with a `-` in place of \
                      every character that is not a letter from a to z, a digit or `_`.",
        example: ("slug(\"Hello World!\")", "\"hello-world-\""),
        body: Body::Eager(names::slug),
    },
    Function {
        name: "ternary",
        parameters: &[
            Parameter::new("condition", Kind::Bool),
            Parameter::nullable("val1", Kind::Any),
            Parameter::nullable("val2", Kind::Any),
        ],
        variadic: None,
        returns: Kind::Any,
        description: "Returns the first value if the condition is true, else the second. Only that one \
                      is evaluated, and the two may differ in type.",
        example: ("ternary(true, 1, tonumber(\"x\"))", "1"),
        body: Body::Lazy(ternary),
    },
    Function {
        name: "tomldecode",
        parameters: &[Parameter::new("text", Kind::String)],
        variadic: None,
        returns: Kind::Any,
        description: "Returns the object that TOML text represents. Dates and times become strings.",
        example: (
            "tomldecode(\"a = 1\\n[b]\\nc = true\")",
            "{\"a\":1,\"b\":{\"c\":true}}",
        ),
        body: Body::Eager(toml::decode),
    },
    Function {
        name: "tomlencode",
        parameters: &[Parameter::new("value", Kind::Any)],
        variadic: None,
        returns: Kind::String,
        description: "Returns an object as TOML text, without attributes that are null. Whole numbers \
                      stay whole; Terramate writes them as `1.0`.",
        example: (
            "tomlencode({ a = 1, b = { c = \"x\" } })",
            "\"a = 1\\n\\n[b]\\nc = \\\"x\\\"\\n\"",
        ),
        body: Body::Eager(toml::encode),
    },
    Function {
        name: "tree",
        parameters: &[Parameter::new("edges", LISTS)],
        variadic: None,
        returns: LISTS,
        description: "Returns the path from a root to each node of a tree, given as pairs of parent and \
                      child. The parent of a root is null.",
        example: (
            "tree([[null, \"a\"], [\"a\", \"b\"]])",
            "[[\"a\"],[\"a\",\"b\"]]",
        ),
        body: Body::Eager(tree::tree),
    },
    Function {
        name: "unslug",
        parameters: &[
            Parameter::new("value", Kind::Any),
            Parameter::new("dictionary", Kind::List(&Kind::String)),
        ],
        variadic: None,
        returns: Kind::Any,
        description: "Returns the string of a dictionary whose slug matches a string, or one for each \
                      string of a list. A string without a match is returned unchanged.",
        example: (
            "unslug(\"hello-world\", [\"Hello World!\", \"x\"])",
            "\"Hello World!\"",
        ),
        body: Body::Eager(names::unslug),
    },
    Function {
        name: "vendor",
        parameters: &[Parameter::new("source", Kind::String)],
        variadic: None,
        returns: Kind::String,
        description: "Downloads a module for generated code.",
        example: ("vendor(\"github.com/acme/network\")", ""),
        body: Body::Refused("downloads modules for generated code, and orch generates none"),
    },
    Function {
        name: "version_match",
        parameters: &[
            Parameter::new("version", Kind::String),
            Parameter::new("constraint", Kind::String),
        ],
        variadic: Some(Parameter::new("options", Kind::Any)),
        returns: Kind::Bool,
        description: "Returns whether a version meets a constraint such as `~> 1.2`. A prerelease does \
                      so only if the constraint names one, or with the option `{ allow_prereleases = \
                      true }`.",
        example: ("version_match(\"1.9.0\", \"~> 1.2\")", "true"),
        body: Body::Eager(version_match),
    },
];

fn ternary(call: &Call, _surroundings: &Surroundings) -> EvalResult {
    let name = &call.name.text;
    let wrong = |message: String, span, label: String| {
        Err(Diagnostic::error(Code::WrongArguments, message)
            .label(span, label)
            .into())
    };
    // The number of arguments has been checked.
    let [condition, first, second] = call.arguments else {
        let label = "a condition and two values are needed".to_owned();
        return wrong(
            format!("`{name}` needs three arguments"),
            call.name.span,
            label,
        );
    };
    if call.expands {
        let message = format!("`{name}` takes its arguments one by one");
        return wrong(message, second.span, "this is expanded by `...`".to_owned());
    }
    let value = call.evaluate(condition)?;
    match value.to_bool() {
        Some(true) => call.evaluate(first),
        Some(false) => call.evaluate(second),
        None => {
            let message = format!("`{name}` cannot use its argument `condition`");
            let found = if call.is_sensitive() {
                value.type_name().to_owned()
            } else {
                value.description()
            };
            let label = format!("this is {found}; a bool is needed");
            wrong(message, condition.span, label)
        }
    }
}

fn version_match(arguments: &Arguments) -> Result<Value, FunctionError> {
    let shown = |index: usize| arguments.value(index).description();
    let Some((version, _)) = parse_version(arguments.text(0)) else {
        let problem = format!("this is {}; a version such as `1.2.3` is needed", shown(0));
        return Err(FunctionError::Argument(0, problem));
    };
    let constraint = Constraint::parse(arguments.text(1)).map_err(|problem| {
        let help = "a constraint such as `~> 1.2` or `>= 1.0, < 2.0` is needed";
        FunctionError::Argument(1, format!("{problem}; {help}"))
    })?;
    if arguments.len() > 3 {
        let problem = "one argument too many; there is one object of options".to_owned();
        return Err(FunctionError::Argument(3, problem));
    }
    let allow_prereleases = match arguments.values().get(2) {
        None => false,
        Some(options) => {
            let option = options.entries();
            let option = option.and_then(|options| options.get("allow_prereleases"));
            option.and_then(Value::to_bool).ok_or_else(|| {
                let needed = "an object whose attribute `allow_prereleases` is a bool is needed";
                FunctionError::Argument(2, format!("this is {}; {needed}", shown(2)))
            })?
        }
    };
    Ok(Value::Bool(constraint.allows(&version, allow_prereleases)))
}
