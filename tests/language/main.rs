//! Expressions and functions against tables of Terraform's answers.
//!
//! A table has cases separated by blank lines. Comments come first and begin with `#`; the last line is
//! `=> ` and the value as `jsonencode` of Terraform 1.11 writes it, or `error`; what is between is the
//! expression. Functions have no prefix, and `c` has a few values of each type.

mod bounds;
mod generated;
mod mutated;
mod tables;

use orch::language::evaluate::{Answer, Call, EvalResult, NamePath, Namespaces, evaluate};
use orch::language::function::{self, Changing, Surroundings};
use orch::language::parse::parse_expression;
use orch::language::value::{Value, to_json};
use orch::path::ProjectPath;
use orch::source::{SourceFile, Sources};

/// The constants of the tables, and functions without prefix.
struct Constants;

impl Namespaces for Constants {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<Answer>> {
        if path.name != "c" {
            return Ok(None);
        }
        let number = |number: u64| Value::from(number);
        let text = |text: &str| Value::string(text);
        let id = |id: &str| Value::object([("id", text(id))]);
        let list = Value::tuple([id("p"), id("q")]);
        let constants = Value::object([
            ("list", Value::tuple([number(1), number(2), number(3)])),
            ("names", Value::list([text("b"), text("a")])),
            ("set", Value::set([text("b"), text("a")])),
            ("map", Value::map([("a", number(1)), ("b", number(2))])),
            (
                "object",
                Value::object([
                    ("name", text("x")),
                    ("n", number(1)),
                    ("deep", Value::object([("list", list)])),
                ]),
            ),
            ("null", Value::Null),
            ("text", text("h\u{e9}llo")),
            ("number", Value::Number("1.5".parse().unwrap())),
            ("yes", Value::Bool(true)),
        ]);
        Ok(Some(constants.into()))
    }

    fn names(&self) -> Vec<&str> {
        vec!["c"]
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        let surroundings = Surroundings {
            prefix: "",
            changing: Changing::Allowed,
            ..Surroundings::none("a test")
        };
        function::call(call, &surroundings)
    }
}

/// Returns the value of an expression as JSON, or the message of its error.
fn json(expression: &str) -> Result<String, String> {
    let file = Sources::default().add(SourceFile {
        path: ProjectPath::root().join("expression"),
        text: expression.to_owned(),
    });
    let expr = parse_expression(file, expression).map_err(|it| it.message)?;
    match evaluate(&expr, &Constants) {
        Ok(value) => Ok(to_json(&value)),
        Err(diagnostic) => {
            let labels = diagnostic.labels.iter().map(|label| label.text.as_str());
            let labels: Vec<&str> = labels.collect();
            Err(format!("{}: {}", diagnostic.message, labels.join("; ")))
        }
    }
}

#[test]
fn the_example_of_each_function_is_right() {
    for function in function::groups().flat_map(|(_, functions)| functions) {
        let (call, result) = function.example;
        assert_eq!(json(call).as_deref(), Ok(result), "{call}");
        assert!(call.contains(&format!("{}(", function.name)), "{call}");
    }
}
