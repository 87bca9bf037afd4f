//! Expressions and functions against tables of Terraform's answers.
//!
//! A table has cases separated by blank lines. Comments come first and begin with `#`; the last line is
//! `=> ` and the value as `jsonencode` of Terraform 1.11 writes it, or `error`; the expression is in
//! between. Functions have no prefix, and `c` has a few values of each type.

mod bounds;
mod evaluation;
mod generated;
mod mutated;
mod tables;
mod texts;
mod undecided;

use std::sync::Arc;

use orch::language::evaluate::{Call, EvalResult, EvalValue, NamePath, Namespaces, evaluate};
use orch::language::function::{self, FileError, FileReader, FunctionContext, Impure};
use orch::language::parse::parse_expression;
use orch::language::syntax::Expr;
use orch::language::value::{Value, to_json};
use orch::path::ProjectPath;
use orch::source::{SourceFile, Sources};

/// A directory with a few files.
struct Directory;

impl Directory {
    const FILES: [(&str, &[u8]); 7] = [
        ("bytes", b"\xff"),
        ("hello.tftpl", b"Hello, ${name}!\n"),
        ("hello.txt", b"Hello!\n"),
        ("loop.tftpl", b"a\n${templatefile(\"loop.tftpl\", {})}"),
        ("nested.tftpl", b"\n${templatefile(\"wrong.tftpl\", {})}"),
        ("syntax.tftpl", b"a\nb ${\n"),
        ("wrong.tftpl", b"a\n\nb ${nme}\n"),
    ];
}

impl FileReader for Directory {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, FileError> {
        let mut files = Directory::FILES.iter();
        match files.find(|(name, _)| *name == path) {
            Some((_, content)) => Ok(Arc::from(*content)),
            None => Err(FileError::Wrong("no such file".to_owned())),
        }
    }

    fn exists(&self, path: &str) -> Result<bool, FileError> {
        Ok(self.read(path).is_ok())
    }

    fn matching(&self, _directory: &str, pattern: &str) -> Result<Vec<String>, FileError> {
        let end = pattern.trim_start_matches('*');
        let names = Directory::FILES.iter().map(|(name, _)| *name);
        Ok(names
            .filter(|name| name.ends_with(end))
            .map(str::to_owned)
            .collect())
    }

    fn absolute(&self, path: &str) -> Result<String, FileError> {
        Ok(format!("/project/{}", path.replace("a/../", "")))
    }

    fn home(&self) -> Result<String, FileError> {
        Ok("/home/me".to_owned())
    }
}

/// The constants of the tables, and functions without a prefix.
struct Constants;

impl Namespaces for Constants {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
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
        let surroundings = FunctionContext {
            prefix: "",
            changing: Impure::Allowed,
            files: Some(&Directory),
            ..FunctionContext::none("a test")
        };
        function::call(call, &surroundings)
    }
}

/// Returns the value of an expression as JSON, or the message of its error.
fn json(expression: &str) -> Result<String, String> {
    let expr = parsed(expression)?;
    match evaluate(&expr, &Constants) {
        Ok(value) => Ok(to_json(&value)),
        Err(diagnostic) => {
            let labels = diagnostic.labels.iter().map(|label| label.text.as_str());
            let labels: Vec<&str> = labels.collect();
            Err(format!("{}: {}", diagnostic.message, labels.join("; ")))
        }
    }
}

/// Returns the syntax of an expression, or the message of its error.
fn parsed(expression: &str) -> Result<Expr, String> {
    let file = Sources::default().add(SourceFile {
        path: ProjectPath::root().join("expression"),
        text: expression.to_owned(),
    });
    parse_expression(file, expression).map_err(|it| it.message)
}

#[test]
fn the_example_of_each_function_is_right() {
    for function in function::groups().flat_map(|(_, functions)| functions) {
        let (call, result) = function.example;
        match function.refusal() {
            None => assert_eq!(json(call).as_deref(), Ok(result), "{call}"),
            Some(why) => assert!(json(call).unwrap_err().contains(why), "{call}"),
        }
        assert!(call.contains(&format!("{}(", function.name)), "{call}");
    }
}
