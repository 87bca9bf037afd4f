//! `orch eval`

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use orch::context::Context;
use orch::diagnostic::Diagnostic;
use orch::exit::ExitStatus;
use orch::language::evaluate::NoValue;
use orch::language::parse::parse_expression;
use orch::language::syntax::Expr;
use orch::language::value::{Value, to_hcl, to_json};
use orch::printable::printable_lines;
use orch::project::globals::GlobalDefinition;
use orch::project::host::host_environment;
use orch::project::namespaces::{ProjectNamespaces, StackNamespaces};
use orch::project::overrides::parse_overrides;
use orch::project::stack::StackIndex;
use orch::report::{EvaluatedExpression, Evaluation, JsonDocument, write_evaluation};

use super::format::Format;
use super::{CommandContext, Reads};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

const EVAL_EXAMPLES: &str = "\
Examples:
  orch eval 'global.region'
  orch eval --stack prod/network '\"${orch.stack.name}-${global.region}\"'
  orch eval --global region='\"eu-west-1\"' --as-json global.bucket";

/// Print the values of expressions for a stack
///
/// The stack is that of the current directory, unless --stack names another one. In a directory that is
/// not a stack, `orch.stack` does not exist. Functions and names, except `let`, are those of `run.env`: see
/// `orch help environment`.
///
/// A string is printed as it is, anything else as HCL.
#[derive(Debug, Args)]
#[command(after_help = EVAL_EXAMPLES)]
pub(crate) struct EvalArgs {
    /// The expressions
    #[arg(value_name = "EXPR", required = true, allow_negative_numbers = true)]
    expressions: Vec<String>,

    /// Override a global with this value (can be repeated)
    ///
    /// EXPR is an expression, so a string needs quotes of its own: `--global 'region="eu"'`. Dots
    /// in the name lead into objects, and `unset` removes the global.
    #[arg(short, long, value_name = "NAME=EXPR")]
    global: Vec<String>,

    /// The stack: a path relative to the current directory, or from the project root with a `/`; in a
    /// directory with `for_each`, with the key: `'net["dev"]'`
    #[arg(long, value_name = "STACK")]
    pub(crate) stack: Option<String>,

    /// Print each value as JSON, on a line of its own
    #[arg(long, conflicts_with = "format")]
    as_json: bool,

    /// The format of the values
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(super) fn eval(chdir: &[PathBuf], args: &EvalArgs) -> Result<ExitStatus> {
    let document = args.format.document(JsonDocument::Evaluation);
    let mut context = CommandContext::new(chdir, document, Reads::CONFIGURATION)?;
    context.check(None)?;
    let stack = match &args.stack {
        Some(written) => Some(context.ask(|context| context.stack(written))?),
        None => context.ask(|context| context.stack_here())?,
    };
    let mut problems = Vec::new();
    let sources = &mut context.project.sources;
    let overrides = parse_overrides(&args.global, sources, &mut problems)
        .map_err(|error| ProgramError::usage(format!("in --global: {error}")))?;
    let expressions: Vec<Option<Expr>> = args
        .expressions
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let text = text.trim();
            let file = sources.add_argument(&format!("expression {}", index + 1), text);
            let parsed = parse_expression(file, text);
            parsed.map_err(|problem| problems.push(*problem)).ok()
        })
        .collect();
    // After a wrong override, the values could be wrong, too.
    let values = if problems.is_empty() || overrides.len() == args.global.len() {
        let evaluated = context.in_generations(|context| {
            let mut problems = Vec::new();
            let values = values(context, stack, &overrides, &expressions, &mut problems);
            (values, problems)
        });
        let (values, found) = evaluated?;
        problems.extend(found);
        values
    } else {
        vec![None; expressions.len()]
    };
    context.problems.diagnostics.append(&mut problems);
    context.document = None; // this document has values as well as problems
    let reported = context.report();
    let mut out = console::stdout();
    if args.format == Format::Json {
        let expressions = args.expressions.iter().zip(&values);
        let evaluation = Evaluation {
            directory: stack.map_or(&context.directory, |stack| {
                context.project.stacks[stack].path.directory()
            }),
            stack,
            expressions: expressions
                .map(|(text, value)| EvaluatedExpression {
                    text,
                    value: value.as_ref(),
                })
                .collect(),
        };
        write_evaluation(&mut out, &context.project, &context.problems, &evaluation)?;
    } else {
        for value in values.iter().flatten() {
            let text = if args.as_json {
                to_json(value)
            } else {
                text(value)
            };
            writeln!(out, "{text}")?;
        }
    }
    out.flush()?;
    reported.map(|()| ExitStatus::Success)
}

/// Evaluates expressions for a stack, or else for the working directory. Parsed expressions without
/// a value are added to the problems.
fn values(
    context: &Context,
    stack: Option<StackIndex>,
    overrides: &[GlobalDefinition],
    expressions: &[Option<Expr>],
    problems: &mut Vec<Diagnostic>,
) -> Vec<Option<Value>> {
    let namespaces = ProjectNamespaces::new(&context.project, host_environment())
        .in_generations(context.state.generations.clone())
        .overriding(overrides);
    let namespaces: StackNamespaces = match stack {
        Some(stack) => namespaces.of_stack(stack),
        None => namespaces.of_directory(&context.directory),
    };
    let evaluated = expressions.iter().map(|expr| {
        let answer = namespaces
            .evaluate(expr.as_ref()?)
            .map_err(NoValue::into_diagnostic);
        answer
            .map(|answer| answer.value)
            .map_err(|problem| problems.push(problem))
            .ok()
    });
    evaluated.collect()
}

/// Returns a value for people and shells: a string unquoted, unless it could mislead its reader.
fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) if io::stdout().is_terminal() => printable_lines(text),
        Some(text) => text.to_owned(),
        None => to_hcl(value),
    }
}
