//! The functions that Terramate adds to Terraform's library.

mod hcl;
mod names;
mod toml;
mod tree;

use super::arguments::{Arguments, FunctionError};
use super::{Function, FunctionContext};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{Call, EvalResult};
use crate::language::value::Value;
use crate::version::{Constraint, parse_version};

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Puts an expression into generated code.
    hcl_expression(expression: string) -> any
        = Refused("puts an expression into generated code, and orch generates none"),
        r#"hcl_expression("var.region")"# => "";
    /// Returns the attributes of HCL text. Their expressions cannot use names or functions, and
    /// blocks are not allowed.
    hcldecode(text: string) -> any = Eager(hcl::decode),
        r#"hcldecode("a = 1\nb = [true]")"# => r#"{"a":1,"b":[true]}"#;
    /// Returns the attributes of an object as HCL text.
    hclencode(value: any) -> string = Eager(hcl::encode),
        r#"hclencode({ a = 1, b = ["x"] })"# => r#""a = 1\nb = [\n  \"x\",\n]\n""#;
    /// Returns a list in which each inner list of strings is joined into one string.
    joinlist(separator: string, lists: list(list(string))) -> list(string) = Eager(names::joinlist),
        r#"joinlist("/", [["a"], ["a", "b"]])"# => r#"["a","a/b"]"#;
    /// Returns a string, or each string of a list, in lower case, with a `-` in place of every
    /// character that is not a letter from a to z, a digit or `_`.
    slug(value: nullable any) -> any = Eager(names::slug),
        r#"slug("Hello World!")"# => r#""hello-world-""#;
    /// Returns the first value if the condition is true, else the second. Only that one is
    /// evaluated, and the two may differ in type.
    ternary(condition: bool, val1: nullable any, val2: nullable any) -> any = Lazy(ternary),
        r#"ternary(true, 1, tonumber("x"))"# => "1";
    /// Returns the object that TOML text represents. Dates and times become strings.
    tomldecode(text: string) -> any = Eager(toml::decode),
        r#"tomldecode("a = 1\n[b]\nc = true")"# => r#"{"a":1,"b":{"c":true}}"#;
    /// Returns an object as TOML text, without attributes that are null. Whole numbers stay whole;
    /// Terramate writes them as `1.0`.
    tomlencode(value: any) -> string = Eager(toml::encode),
        r#"tomlencode({ a = 1, b = { c = "x" } })"# => r#""a = 1\n\n[b]\nc = \"x\"\n""#;
    /// Returns the path from a root to each node of a tree, given as pairs of parent and child. The
    /// parent of a root is null.
    tree(edges: list(list(string))) -> list(list(string)) = Eager(tree::tree),
        r#"tree([[null, "a"], ["a", "b"]])"# => r#"[["a"],["a","b"]]"#;
    /// Returns the string of a dictionary whose slug matches a string, or one for each string of a
    /// list. A string without a match is returned unchanged.
    unslug(value: any, dictionary: list(string)) -> any = Eager(names::unslug),
        r#"unslug("hello-world", ["Hello World!", "x"])"# => r#""Hello World!""#;
    /// Downloads a module for generated code.
    vendor(source: string) -> string
        = Refused("downloads modules for generated code, and orch generates none"),
        r#"vendor("github.com/acme/network")"# => "";
    /// Returns whether a version meets a constraint such as `~> 1.2`. A prerelease does so only if
    /// the constraint names one, or with the option `{ allow_prereleases = true }`.
    version_match(version: string, constraint: string, ..options: any) -> bool
        = Eager(version_match),
        r#"version_match("1.9.0", "~> 1.2")"# => "true";
};

fn ternary(call: &Call, _surroundings: &FunctionContext) -> EvalResult {
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
    let Some((version, _)) = parse_version(arguments.text(0)) else {
        return Err(arguments.unfit(0, "a version such as `1.2.3` is needed"));
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
            let option = options
                .entries()
                .and_then(|options| options.get("allow_prereleases"));
            option.and_then(Value::to_bool).ok_or_else(|| {
                let needed = "an object whose attribute `allow_prereleases` is a bool is needed";
                arguments.unfit(2, needed)
            })?
        }
    };
    Ok(Value::Bool(constraint.allows(&version, allow_prereleases)))
}
