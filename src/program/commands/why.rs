//! `orch why`

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Command, Id};
use orch::command::select::SelectionRequest;
use orch::command::stack_arg::StackArg;
use orch::command::why::Explanation;
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::printable::printable;
use orch::report::{
    JsonDocument, write_causes, write_causes_json, write_causes_refusal_json, write_missing,
    write_missing_json, write_why, write_why_after, write_why_after_json, write_why_json,
};

use super::format::Format;
use super::selection_flags::{SEE_SELECTION, SelectArgs};
use super::{CommandContext, Reads, find_project, runs};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Explain one stack: why it is selected or not, and its order
///
/// Shows the rule that selects the stack, or leaves it out; its inputs and, with --changed, the changed
/// ones; the stacks that it runs after and before; and flags that would select it. The flags are those of
/// `list`. For a removed stack, shows its record, the commit that removed it or why the removal is not
/// proven, and the stacks that are destroyed with it.
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLES, after_long_help = format!("{WHY_EXAMPLES}\n\n{SEE_SELECTION}"))]
pub(crate) struct WhyArgs {
    /// The stack: a path relative to the current directory, or from the project root with a `/`
    ///
    /// A directory with `for_each` means all its instances, `'net["dev"]'` one of them.
    #[arg(value_name = "STACK")]
    pub(crate) stack: String,

    /// Explain why the stack runs after this other stack
    ///
    /// Shows a shortest chain of constraints between the two, each with its place.
    #[arg(long, value_name = "STACK", conflicts_with_all = selecting())]
    pub(crate) after: Option<String>,

    /// Explain why the stack ran in this run, back to the first stack
    ///
    /// Shows the stacks that it followed, and the policies that asked for it. RUN is `last`, `last~1` for the
    /// run before it, or a unique beginning or end of a run id.
    #[arg(long, value_name = "RUN", conflicts_with_all = selecting(), conflicts_with = "after")]
    pub(crate) run: Option<String>,

    /// The format of the explanation
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Returns the flags of a selection. They conflict with `--after` and `--run`, which do not select.
fn selecting() -> Vec<Id> {
    let select = SelectArgs::augment_args(Command::new("select"));
    let flags = select.get_arguments().map(|it| it.get_id().clone());
    flags.collect()
}

const WHY_EXAMPLES: &str = "\
Examples:
  orch why prod/network
  orch why /prod/network --changed
  orch why . --changed --tags prod
  orch why prod/app --after prod/network
  orch why prod/app --run last";

pub(super) fn why(chdir: &[PathBuf], args: &WhyArgs) -> Result<ExitStatus> {
    if args.stack.is_empty() {
        let message = "the path of the stack is empty; the current directory is `.`";
        return Err(ProgramError::usage(message));
    }
    if let Some(run) = &args.run {
        return why_in_run(chdir, args, run);
    }
    if let Some(earlier) = &args.after {
        return why_after(chdir, args, earlier);
    }
    let request = SelectionRequest {
        explains: true,
        ..args.select.request_with_state(chdir)?
    };
    let reads = args.select.reads().with_listing().with_data(true);
    let document = args.format.document(JsonDocument::Why);
    let mut context = CommandContext::new(chdir, document, reads)?;
    context.check(request.change.as_ref())?;
    let explanation = context.ask(|context| context.explain(&args.stack, request))?;
    let mut out = console::stdout();
    match (&explanation, args.format) {
        (Explanation::Stacks(stacks), Format::Text) => {
            stacks.with_stories(&context, |stories| -> io::Result<()> {
                for (number, story) in stories.iter().enumerate() {
                    if number > 0 {
                        writeln!(out)?;
                    }
                    write_why(&mut out, story)?;
                }
                Ok(())
            })?;
        }
        (Explanation::Stacks(stacks), Format::Json) => stacks
            .with_stories(&context, |stories| {
                write_why_json(&mut out, stories, &context.problems)
            })?,
        (Explanation::Missing(missing), Format::Text) => {
            write_missing(&mut out, &missing.stories())?;
        }
        (Explanation::Missing(missing), Format::Json) => {
            write_missing_json(
                &mut out,
                &context.project,
                &context.problems,
                &missing.stories(),
            )?;
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// Explains why the stack runs after another one.
fn why_after(chdir: &[PathBuf], args: &WhyArgs, earlier: &str) -> Result<ExitStatus> {
    let document = args.format.document(JsonDocument::WhyAfter);
    let mut context = CommandContext::new(chdir, document, Reads::CONFIGURATION)?;
    context.check(None)?;
    let stacks = context.ask(|context| context.ordered_stacks(&args.stack, earlier))?;
    let ordered = context.order_of(stacks);
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_why_after(&mut out, &ordered)?,
        Format::Json => write_why_after_json(&mut out, &ordered, &context.problems)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// Explains why a stack had its turns in a run.
fn why_in_run(chdir: &[PathBuf], args: &WhyArgs, run: &str) -> Result<ExitStatus> {
    let told = tell_causes(chdir, args, run);
    if let Err(error) = &told
        && args.format == Format::Json
        && matches!(error.kind(), ErrorKind::Refused | ErrorKind::Usage)
    {
        let mut out = console::stdout();
        write_causes_refusal_json(&mut out, &error.message())?;
        out.flush()?;
    }
    told
}

fn tell_causes(chdir: &[PathBuf], args: &WhyArgs, run: &str) -> Result<ExitStatus> {
    let found = find_project(chdir)?;
    let (shown, _) = runs::shown_in(&found.root, run)?;
    let stack = StackArg::new(&found.directory, &args.stack);
    let path = stack.from_root();
    let known = || shown.record.stacks.iter().map(|stack| stack.path.as_str());
    if !known().any(|known| known == path) {
        let run = &shown.record.header.run;
        let mut message = format!("`{}` is not a stack of run {run}", printable(&path));
        if let Some(hint) = stack.did_you_mean(known()) {
            message += &format!("; {hint}");
        }
        return Err(ProgramError::usage(message));
    }
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_causes(&mut out, &shown, &path)?,
        Format::Json => write_causes_json(&mut out, &shown, &path)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
