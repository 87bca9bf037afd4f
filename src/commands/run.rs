//! `orch run`

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use orch::environment::Environment;
use orch::execute::{LookupError, ProgramFinder, Task, execute};
use orch::order::{Direction, Order};
use orch::printable::{command_line, printable};
use orch::report::RunText;
use orch::safeguard::Safeguard;
use orch::schedule::OnError;
use orch::stack::StackIndex;
use uuid::Uuid;

use super::{CyclesAre, Filters, Loaded, Reads, UsageError, safeguards};
use crate::cli::{Format, OnErrorArg, RunArgs};
use crate::console;
use crate::exit::ExitStatus;

pub(super) fn run(chdir: &[PathBuf], args: &RunArgs) -> anyhow::Result<ExitStatus> {
    let filters = Filters::new(chdir, &args.select)?;
    if args
        .command
        .first()
        .is_some_and(|program| program.is_empty())
    {
        return Err(UsageError("the name of the program is empty".to_owned()).into());
    }
    let disabled = safeguards::disabled(args)?;
    let is_off = |safeguard: &Safeguard| disabled.is_off(*safeguard);
    let reads = match Reads::for_selection(&args.select) {
        Reads::Configuration if !args.dry_run && !safeguards::OF_STATUS.iter().all(is_off) => {
            Reads::Status
        }
        reads => reads,
    };
    let loaded = Loaded::new(chdir, Format::Text, reads)?;
    if let Some(status) = loaded.check()? {
        return Ok(status);
    }
    let wish = loaded.wish(filters)?;
    let selection = loaded.select(&wish);
    loaded.check_cycles(CyclesAre::ErrorsWithin(&selection));
    let environments = loaded.environments(selection.stacks());
    if let Some(status) = loaded.report()? {
        return Ok(status);
    }
    if selection.is_empty() {
        return Ok(ExitStatus::Success);
    }
    let order = Order::new(&loaded.graph, &selection);
    let mut sequence = order.sequence.clone();
    let direction = if args.reverse {
        sequence.reverse();
        Direction::Reverse
    } else {
        Direction::Forward
    };
    let mut tasks = match tasks(loaded, &args.command, environments) {
        Ok(tasks) => tasks,
        Err(missing) => {
            show_missing(loaded, &missing);
            return Ok(ExitStatus::Surroundings);
        }
    };
    let command = command_line(&args.command);
    if args.dry_run {
        let mut out = console::stdout();
        for &stack in &sequence {
            let path = printable(loaded.project.stacks[stack].path.as_str());
            writeln!(out, "{path}: {command}")?;
        }
        out.flush()?;
        return Ok(ExitStatus::Success);
    }
    if !loaded.is_safe(&disabled) {
        return Ok(ExitStatus::Refused);
    }
    let on_error = match args.on_error {
        _ if args.continue_on_error => OnError::Continue,
        OnErrorArg::Stop => OnError::Stop,
        OnErrorArg::SkipDependents => OnError::SkipDependents,
        OnErrorArg::Continue => OnError::Continue,
    };
    let schedule = order.schedule(&selection, direction, on_error);
    let mut text = RunText::new(
        console::stderr(),
        &loaded.project.stacks,
        command,
        args.quiet,
    );
    let summary = execute(
        schedule,
        &sequence,
        |stack| tasks.remove(&stack).expect("each stack runs once"),
        // A stderr that does not work must not stop a run.
        |event| _ = text.event(event),
    )
    .context("failed to receive signals")?;
    _ = text.summary(&summary);
    Ok(match summary.signal {
        Some(signal) => ExitStatus::Signal(signal),
        None if summary.has_failures() => ExitStatus::CommandFailed,
        None => ExitStatus::Success,
    })
}

/// Prepares the command of every stack, so that nothing starts if one cannot.
fn tasks(
    loaded: &Loaded,
    command: &[OsString],
    environments: Vec<(StackIndex, Environment)>,
) -> Result<HashMap<StackIndex, Task>, BTreeMap<LookupError, Vec<StackIndex>>> {
    let (name, arguments) = command.split_first().expect("clap requires a command");
    let host_path = std::env::var_os("PATH");
    let run_id = Uuid::now_v7().to_string();
    let mut finder = ProgramFinder::new(name);
    let mut tasks = HashMap::new();
    let mut missing: BTreeMap<LookupError, Vec<StackIndex>> = BTreeMap::new();
    for (stack, mut environment) in environments {
        let directory = loaded.project.stacks[stack]
            .path
            .to_host(&loaded.project.root);
        let path = match path_of(&environment) {
            Some(path) => path.clone().map(OsString::from),
            None => host_path.clone(),
        };
        environment.insert("ORCH_RUN_ID".to_owned(), Some(run_id.clone()));
        match finder.find(&directory, path.as_deref()) {
            Ok(program) => {
                let (name, arguments) = (name.clone(), arguments.to_vec());
                tasks.insert(
                    stack,
                    Task {
                        name,
                        program,
                        arguments,
                        directory,
                        environment,
                    },
                );
            }
            Err(error) => missing.entry(error).or_default().push(stack),
        }
    }
    if missing.is_empty() {
        Ok(tasks)
    } else {
        Err(missing)
    }
}

fn show_missing(loaded: &Loaded, missing: &BTreeMap<LookupError, Vec<StackIndex>>) {
    for (error, stacks) in missing {
        console::error(error);
        console::note(&format!(
            "needed in {}; nothing was run",
            loaded.names(stacks)
        ));
    }
}

/// Returns what a stack's own environment says about the `PATH`. On Windows its name may be written
/// in any case.
fn path_of(environment: &Environment) -> Option<&Option<String>> {
    let is_path = |name: &str| name == "PATH" || cfg!(windows) && name.eq_ignore_ascii_case("PATH");
    environment
        .iter()
        .find(|(name, _)| is_path(name))
        .map(|(_, value)| value)
}
