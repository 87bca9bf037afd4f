//! `orch policy eval`

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use orch::command::scenario::Scenario;
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::policy::{Dialect, PolicyNumber, PolicyOutput, Problem, Worker};
use orch::printable::printable;
use orch::project::stack::StackIndex;
use orch::report::write_answer;
use orch::run::policies;
use serde_json::value::RawValue;

use super::end_state::EndState;
use super::samples;
use crate::program::commands::format::Format;
use crate::program::commands::{CommandContext, Reads, working_directory};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// The time limit of an evaluation if no block sets one.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Evaluate one policy, and print its answer
///
/// Prints the results `trigger`, `flag`, `reset_flag` and `sample`, and the output of `print`. If
/// the policy fails, the exit status is 1.
#[derive(Debug, Args)]
pub(crate) struct PolicyEvalArgs {
    /// The name of a policy, or a file: anything with a `.` or a `/`
    #[arg(value_name = "NAME|FILE")]
    policy: String,

    #[command(flatten)]
    input: InputArgs,

    /// How the run of `--stack` has ended
    #[arg(long, value_name = "STATE", value_enum, ignore_case = true, default_value_t = EndState::Finished)]
    #[arg(conflicts_with_all = ["input", "sample"])]
    state: EndState,

    /// The format of the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The input of the policy.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct InputArgs {
    /// Read the input, a JSON object, from this file; `-` is standard input
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Use an input that was kept; `orch policy samples` lists them
    #[arg(long, value_name = "ID")]
    sample: Option<String>,

    /// Generate the input: this stack has just ended, and all other stacks have finished
    #[arg(long, value_name = "STACK")]
    stack: Option<String>,
}

/// A loaded policy, from the project or a file.
struct Evaluated {
    worker: Worker,
    number: PolicyNumber,
    dialect: Dialect,
    file: String,
    timeout: Duration,
}

pub(super) fn eval(chdir: &[PathBuf], args: &PolicyEvalArgs) -> Result<ExitStatus> {
    let has_extension = Path::new(&args.policy).extension().is_some();
    let is_file = has_extension || args.policy.contains(['/', '\\']);
    let mut policy = if is_file {
        of_file(chdir, &args.policy)?
    } else {
        of_project(chdir, &args.policy)?
    };
    let evaluated = if let Some(stack) = &args.input.stack {
        let (back, evaluated) = in_scenario(chdir, policy, stack, args.state)?;
        policy = back;
        evaluated
    } else {
        let input = given_input(chdir, &args.input)?;
        let evaluated = policy
            .worker
            .evaluate(policy.number, input, false, policy.timeout);
        evaluated.map_err(anyhow::Error::from)?
    };
    let mut out = console::stdout();
    write_answer(
        &mut out,
        args.format == Format::Json,
        (&policy.file, policy.dialect),
        evaluated.as_ref(),
    )?;
    out.flush()?;
    match evaluated {
        Ok(_) => Ok(ExitStatus::Success),
        Err(problem) => {
            let error = anyhow::Error::msg(problem.in_file(&policy.file));
            console::error(error.context("the policy failed").as_ref());
            Ok(ExitStatus::Run(1))
        }
    }
}

fn of_file(chdir: &[PathBuf], written: &str) -> Result<Evaluated> {
    let path = working_directory(chdir)?.join(written);
    let wrong = |problem: String| {
        let message = format!("the policy `{written}` cannot be loaded:{problem}");
        ProgramError::new(ErrorKind::Configuration, anyhow::Error::msg(message))
    };
    let text = policies::read(&path, None).map_err(|problem| wrong(format!(" {problem}")))?;
    let mut worker = policies::worker()?;
    match policies::load(&mut worker, written, &text, TIMEOUT)? {
        Ok((number, outline)) => Ok(Evaluated {
            worker,
            number,
            dialect: outline.dialect,
            file: written.to_owned(),
            timeout: TIMEOUT,
        }),
        Err(problem) => {
            let lines = policies::problem_lines(written, &problem).join("\n");
            Err(wrong(format!("\n{lines}")))
        }
    }
}

fn of_project(chdir: &[PathBuf], name: &str) -> Result<Evaluated> {
    let mut context = CommandContext::new(chdir, None, Reads::CONFIGURATION)?;
    context.check(None)?;
    let policies = &context.project.policies;
    let position = policies
        .iter()
        .position(|policy| policy.name.value == name)
        .ok_or_else(|| {
            let names: Vec<String> = policies
                .iter()
                .map(|policy| format!("`{}`", policy.name.value))
                .collect();
            let error = ProgramError::usage(format!("no policy `{name}`"));
            match &names[..] {
                [] => error
                    .hint("the project has no `policy` block; to name a file, include its extension or a `/`"),
                names => error.hint(format!("the policies are {}", names.join(", "))),
            }
        })?;
    let found = context.load_policies(|_, other| other == position)?;
    context.report()?;
    let block = &context.project.policies[position];
    let mut all = found.policies;
    let policy = all[position].take().expect("it has no problem");
    Ok(Evaluated {
        worker: found.worker,
        number: policy.number,
        dialect: policy.outline.dialect,
        file: block.file.value.as_str().trim_start_matches('/').to_owned(),
        timeout: block.timeout,
    })
}

/// A policy with its answer.
type Asked = (Evaluated, Result<PolicyOutput, Problem>);

/// Evaluates a policy as if a run of all stacks had just ended with the turn of this one.
fn in_scenario(
    chdir: &[PathBuf],
    mut policy: Evaluated,
    written: &str,
    state: EndState,
) -> Result<Asked> {
    let mut context = CommandContext::new(chdir, None, Reads::CONFIGURATION)?;
    context.check(None)?;
    let stack = one_stack(&context, written)?;
    let facts = context.run_facts(&[])?;
    let mut scenario = Scenario::new(&context.project, policy.worker, facts);
    let asked = (policy.number, policy.timeout);
    let evaluated = scenario.evaluate(asked, (stack, state.turn_state()), None)?;
    policy.worker = scenario.into_worker();
    Ok((policy, evaluated))
}

/// Returns the stack that the user names.
pub(super) fn one_stack(context: &CommandContext, written: &str) -> Result<StackIndex> {
    let mut found = context
        .project
        .stacks
        .written(&context.directory, written)
        .into_iter()
        .flatten();
    let (Some(stack), None) = (found.next(), found.next()) else {
        let message = format!("`{}` does not name exactly one stack", printable(written));
        return Err(ProgramError::usage(message).hint("`orch list` shows the stacks"));
    };
    Ok(stack)
}

/// Reads the input from a file, a pipe or a sample.
fn given_input(chdir: &[PathBuf], args: &InputArgs) -> Result<Box<RawValue>> {
    match (&args.input, &args.sample) {
        (Some(file), _) => read_input(chdir, file),
        (None, Some(sample)) => object(&samples::read(chdir, sample)?, sample),
        (None, None) => Err(ProgramError::usage("the input is missing")),
    }
}

fn read_input(chdir: &[PathBuf], file: &Path) -> Result<Box<RawValue>> {
    let mut text = String::new();
    let shown = file.to_string_lossy();
    if file == Path::new("-") {
        let read = io::stdin().read_to_string(&mut text);
        read.context("failed to read the input from standard input")?;
    } else {
        text = std::fs::read_to_string(working_directory(chdir)?.join(file))
            .with_context(|| format!("failed to read the input `{shown}`"))?;
    }
    object(&text, &shown)
}

/// Compacts a JSON object to one line, as the worker requires.
fn object(text: &str, shown: &str) -> Result<Box<RawValue>> {
    let shown = printable(shown);
    let is_object = text.trim_start().starts_with('{');
    let compact = serde_json::from_str::<serde_json::Value>(text)
        .and_then(|value| serde_json::value::to_raw_value(&value));
    let wrong = |problem: String| ProgramError::usage(format!("in the input `{shown}`: {problem}"));
    let compact = compact.map_err(|error| wrong(error.to_string()))?;
    if !is_object {
        return Err(wrong("expected a JSON object".to_owned()));
    }
    Ok(compact)
}
