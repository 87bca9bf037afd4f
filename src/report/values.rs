//! Values of globals and expressions as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::RawValue;

use super::changes::SinceJson;
use super::document::{PathJson, write_with_problems};
use crate::language::value::{Value, to_json};
use crate::path::ProjectPath;
use crate::project::inspected::{GlobalState, InspectedGlobal};
use crate::project::stack::StackIndex;
use crate::project::{Problems, Project};
use crate::selection::select::Selection;

pub struct Evaluation<'a> {
    pub directory: &'a ProjectPath,
    pub stack: Option<StackIndex>,
    pub expressions: Vec<EvaluatedExpression<'a>>,
}

pub struct EvaluatedExpression<'a> {
    /// The expression as written.
    pub text: &'a str,
    /// Its value; `None` if it is invalid.
    pub value: Option<&'a Value>,
}

/// Returns a value with all digits of its numbers.
fn raw(value: &Value) -> Option<Box<RawValue>> {
    // The writer produces valid JSON.
    RawValue::from_string(to_json(value)).ok()
}

pub fn write_evaluation(
    out: &mut impl Write,
    project: &Project,
    problems: &Problems,
    evaluation: &Evaluation<'_>,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct EvaluationJson<'a> {
        path: &'a str,
        /// The stack, if the directory is one.
        stacks: Vec<PathJson<'a>>,
        expressions: Vec<ExpressionJson<'a>>,
    }
    #[derive(Serialize)]
    struct ExpressionJson<'a> {
        expression: &'a str,
        valid: bool,
        value: Option<Box<RawValue>>,
    }
    let expressions = evaluation.expressions.iter();
    let stack = evaluation.stack.map(|stack| &project.stacks[stack]);
    let document = EvaluationJson {
        path: evaluation.directory.as_str(),
        stacks: stack
            .map(|stack| PathJson::new(&stack.path))
            .into_iter()
            .collect(),
        expressions: expressions
            .map(|expression| ExpressionJson {
                expression: expression.text,
                valid: expression.value.is_some(),
                value: expression.value.and_then(raw),
            })
            .collect(),
    };
    write_with_problems(out, &document, project, problems)
}

pub fn write_globals(
    out: &mut impl Write,
    project: &Project,
    problems: &Problems,
    selection: &Selection,
    globals: &[(StackIndex, Vec<InspectedGlobal>)],
) -> io::Result<()> {
    #[derive(Serialize)]
    struct GlobalsListJson<'a> {
        #[serde(flatten)]
        since: Option<SinceJson<'a>>,
        stacks: Vec<GlobalsJson<'a>>,
    }
    #[derive(Serialize)]
    struct GlobalsJson<'a> {
        #[serde(flatten)]
        path: PathJson<'a>,
        globals: BTreeMap<&'a str, GlobalJson<'a>>,
    }
    #[derive(Serialize)]
    struct GlobalJson<'a> {
        valid: bool,
        value: Option<Box<RawValue>>,
        definitions: Vec<DefinitionJson<'a>>,
    }
    #[derive(Serialize)]
    struct DefinitionJson<'a> {
        name: &'a str,
        file: &'a str,
        line: usize,
        column: usize,
        imported: bool,
    }
    fn of<'a>(global: &'a InspectedGlobal, project: &'a Project) -> GlobalJson<'a> {
        let value = match &global.state {
            GlobalState::Known(value) => Some(value),
            GlobalState::Broken(_) => None,
        };
        let definitions = global.definitions.iter().map(|definition| {
            let (file, position) = project.sources.locate(definition.span);
            DefinitionJson {
                name: &definition.name,
                file: file.path.relative(),
                line: position.line,
                column: position.column,
                imported: definition.is_imported,
            }
        });
        GlobalJson {
            valid: value.is_some(),
            value: value.and_then(raw),
            definitions: definitions.collect(),
        }
    }
    let stacks = globals.iter().map(|(stack, globals)| GlobalsJson {
        path: PathJson::new(&project.stacks[*stack].path),
        globals: globals
            .iter()
            .map(|global| (&*global.name, of(global, project)))
            .collect(),
    });
    let document = GlobalsListJson {
        since: selection.since().map(SinceJson::new),
        stacks: stacks.collect(),
    };
    write_with_problems(out, &document, project, problems)
}
