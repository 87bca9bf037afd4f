//! `orch debug show …`, in Terramate's shape.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use orch::exit::ExitStatus;
use orch::language::value::hcl_attributes;
use orch::printable::printable;
use orch::project::host::host_environment;
use orch::project::inspected::{GlobalState, inspect};
use orch::report::metadata_lines;

use super::CommandContext;
use super::selection_flags::SelectArgs;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// What Terramate shows of each stack.
#[derive(Debug, Subcommand)]
pub(crate) enum Shown {
    Metadata(ShownStacks),
    Globals(ShownStacks),
    RuntimeEnv(ShownStacks),
    GenerateOrigins(ShownStacks),
}

#[derive(Debug, Args)]
pub(crate) struct ShownStacks {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// The lines of one stack, by its path.
type StackLines = (String, Vec<String>);

pub(super) fn show(chdir: &[PathBuf], shown: &Shown) -> Result<ExitStatus> {
    let (Shown::Metadata(args)
    | Shown::Globals(args)
    | Shown::RuntimeEnv(args)
    | Shown::GenerateOrigins(args)) = shown;
    if let Shown::GenerateOrigins(_) = shown {
        let message = "orch generates no code, so it has no origins to show";
        return Err(
            ProgramError::usage(message).hint("run `terramate debug show generate-origins`")
        );
    }
    let filters = args.select.request(chdir)?;
    let mut context = CommandContext::new(chdir, None, args.select.reads())?;
    context.check(filters.change.as_ref())?;
    let query = context.ask(|context| context.query(filters))?;
    let selection = context.select(&query);
    let stacks = || selection.stacks();
    let stack_path = |context: &CommandContext, stack| {
        let path = context.project.stacks[stack].path.as_str();
        printable(path).into_owned()
    };
    let lines: Vec<StackLines> = match shown {
        Shown::Globals(_) => {
            let (inspected, problems) = inspect(&context.project, host_environment(), stacks());
            context.add_shared(problems);
            let with_globals = inspected.iter().filter(|(_, globals)| !globals.is_empty());
            let lines = with_globals.map(|(stack, globals)| {
                let known = globals.iter().filter_map(|global| match &global.state {
                    GlobalState::Known(value) => Some((&*global.name, value)),
                    GlobalState::Broken(_) => None,
                });
                let text = hcl_attributes(known, "");
                let lines = text.lines().map(str::to_owned).collect();
                (stack_path(&context, *stack), lines)
            });
            lines.collect()
        }
        Shown::RuntimeEnv(_) => {
            let environments = context.environments(stacks())?;
            let evaluator = context.evaluator();
            let lines = environments.iter().map(|(stack, environment)| {
                let own = evaluator.definitions_of(*stack);
                let set = environment.iter().filter_map(|(name, value)| {
                    let value = value.as_deref().filter(|_| own.contains_key(&**name))?;
                    Some(format!("{name}={}", printable(value)))
                });
                (stack_path(&context, *stack), set.collect())
            });
            lines.collect()
        }
        Shown::Metadata(_) | Shown::GenerateOrigins(_) => {
            let lines = stacks().map(|stack| {
                let lines = metadata_lines(&context.project.stacks[stack]);
                (stack_path(&context, stack), lines)
            });
            lines.collect()
        }
    };
    let reported = context.report();
    let mut out = console::stdout();
    if matches!(shown, Shown::Metadata(_)) && !lines.is_empty() {
        writeln!(out, "Available metadata:")?;
    }
    for (path, lines) in lines {
        writeln!(out, "\nstack \"{path}\":")?;
        for line in lines {
            writeln!(out, "\t{line}")?;
        }
    }
    out.flush()?;
    reported.map(|()| ExitStatus::Success)
}
