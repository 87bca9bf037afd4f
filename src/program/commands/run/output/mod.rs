//! Shows a run and the output of its commands.
//!
//! With [`OutputMode::Live`], commands have the streams of `orch`, and only events are printed.
//! Otherwise a thread per command reads its output and writes its log. One further thread, the
//! printer, receives the events and prints. The run and its signals do not wait for a slow reader.
//! Only prefixed lines are printed by the threads that read them.

mod painter;
mod printer;
mod recorder;

use std::collections::{HashMap, HashSet};
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use std::{env, thread};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context as _;
use orch::command::RunOutput;
use orch::plan::planner::EndedOutput;
use orch::printable::printable;
use orch::project::attempt::Attempts;
use orch::record::logs::Logs;
use orch::report::{CommandLines, FoldingStyle, Groups, Progress, RunLogs, RunText, StreamWriters};
use orch::run::event::{RunEvent, Sink, Turns};
use orch::run::execute::{Outlet, OutputKeeper, Streams, Task};
use orch::run::own_process::{KEEPER, own_process};
use tempfile::TempDir;

use self::painter::Painter;
use self::printer::{Printer, TimedEvent};
use self::recorder::AttemptRecorder;
use crate::program::commands::run::arguments::{OutputArg, RunArgs};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// How the output of commands is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::program::commands) enum OutputMode {
    /// Commands have the streams of `orch`.
    Live,
    Captured {
        show: OutputFilter,
        outlet: Outlet,
    },
}

/// Which captured output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::program::commands) enum OutputFilter {
    /// All, each stack in one piece.
    Grouped,
    /// All, line by line.
    Prefixed,
    /// Failed stacks only, each in one piece.
    Errors,
    None,
    /// Nothing, not even events: the caller reports the result.
    Silent,
}

impl OutputMode {
    /// Returns whether commands should use colours although they do not print to a terminal.
    pub(in crate::program::commands) fn has_colours(self) -> bool {
        self != OutputMode::Live
            && AutoStream::choice(&io::stdout()) != ColorChoice::Never
            && AutoStream::choice(&io::stderr()) != ColorChoice::Never
    }

    /// Notes that reports lack the output, if it is not captured.
    pub(in crate::program::commands) fn note_reports(self, args: &RunArgs) {
        if self == OutputMode::Live && args.reports.are_wanted() {
            console::note(
                "output is not captured, so the reports have no logs and no summaries; use `--output grouped`",
            );
        }
    }

    /// Chooses the mode by the flags. Also considers whether retries depend on the output, whether
    /// a CI system shows it, and whether reports need it while no one can answer prompts. Fails if
    /// the flags contradict each other.
    pub(in crate::program::commands) fn new(
        args: &RunArgs,
        jobs: NonZeroUsize,
        attempts: &[Attempts],
    ) -> Result<Self> {
        // Retries may depend on the output of commands.
        let watches_output = attempts.iter().any(Attempts::needs_output);
        let outlet = if args.pty {
            Outlet::Terminal
        } else if console::is_one_stream() {
            // The reader of a merged stream must see lines in the order in which they were printed.
            Outlet::OnePipe
        } else {
            Outlet::Pipes
        };
        let captured = |show| OutputMode::Captured { show, outlet };
        let problem = match args.output {
            OutputArg::Auto
                if jobs.get() == 1
                    && !watches_output
                    && !args.pty
                    && !is_unattended()
                    && (!args.reports.are_wanted() || io::stdin().is_terminal()) =>
            {
                return Ok(OutputMode::Live);
            }
            OutputArg::Auto | OutputArg::Grouped => return Ok(captured(OutputFilter::Grouped)),
            OutputArg::Prefixed => return Ok(captured(OutputFilter::Prefixed)),
            OutputArg::Errors => return Ok(captured(OutputFilter::Errors)),
            OutputArg::None => return Ok(captured(OutputFilter::None)),
            OutputArg::Live if jobs.get() > 1 => {
                "parallel commands cannot share the streams of orch; remove --parallel, or use `--output prefixed`"
            }
            OutputArg::Live if args.pty => {
                "commands have the streams of orch, and no terminal of their own; remove --pty, or use `--output grouped`"
            }
            OutputArg::Live if watches_output => {
                "retries depend on the output, which orch does not see with `--output live`; use `--output grouped`"
            }
            OutputArg::Live => return Ok(OutputMode::Live),
        };
        Err(ProgramError::usage(format!("`--output live`: {problem}")))
    }
}

/// Returns whether this is a CI job: no one answers prompts, and the log is read later.
pub(in crate::program::commands) fn is_unattended() -> bool {
    let is_ci = env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&&*value));
    match FoldingStyle::detect(|name| env::var(name).ok()) {
        // Its jobs have a terminal.
        FoldingStyle::Buildkite => true,
        FoldingStyle::None if !is_ci => false,
        _ => !io::stdin().is_terminal(),
    }
}

/// The parts of a run that its output depends on.
pub(in crate::program::commands) struct OutputConfig<'a> {
    pub(in crate::program::commands) how: OutputMode,
    pub(in crate::program::commands) commands: CommandLines,
    pub(in crate::program::commands) is_quiet: bool,
    pub(in crate::program::commands) jobs: NonZeroUsize,
    pub(in crate::program::commands) run_id: &'a str,
    /// The folder for logs; `None` if the run is not recorded, and its logs are temporary.
    pub(in crate::program::commands) logs: Option<PathBuf>,
    /// Looks up earlier durations of stacks, if the display shows them.
    pub(in crate::program::commands) past: &'a dyn Fn() -> HashMap<String, Duration>,
}

pub(in crate::program::commands) enum Output {
    Live {
        turns: Turns,
        commands: CommandLines,
        is_quiet: bool,
        /// The id of the run, if it is recorded.
        run: Option<String>,
    },
    Captured(CapturedDisplay),
}

/// The display of a run with captured output.
pub(in crate::program::commands) struct CapturedDisplay {
    show: OutputFilter,
    outlet: Outlet,
    logs: Arc<RunLogs>,
    writers: Arc<Mutex<StreamWriters>>,
    to_printer: mpsc::Sender<TimedEvent>,
    printer: thread::JoinHandle<()>,
    logs_directory: PathBuf,
    /// The temporary location of logs that are not kept.
    temporary: Option<TempDir>,
}

impl Output {
    /// Begins to show a run. Fails if the log folder cannot be created, or no thread can be
    /// started.
    pub(in crate::program::commands) fn new(root: &Path, shown: OutputConfig) -> Result<Self> {
        let (show, outlet) = match shown.how {
            OutputMode::Live => {
                return Ok(Output::Live {
                    turns: Turns::default(),
                    commands: shown.commands,
                    is_quiet: shown.is_quiet,
                    run: shown.logs.map(|_| shown.run_id.to_owned()),
                });
            }
            OutputMode::Captured { show, outlet } => (show, outlet),
        };
        let (directory, place, temporary) = if let Some(directory) = shown.logs {
            let place = directory
                .strip_prefix(root)
                .unwrap_or(&directory)
                .to_owned();
            (directory, Some((place, shown.run_id.to_owned())), None)
        } else {
            let temporary = tempfile::Builder::new().prefix("orch-").tempdir();
            let temporary =
                temporary.context("failed to create a temporary directory for output")?;
            (temporary.path().to_owned(), None, Some(temporary))
        };
        let logs = RunLogs::new(Logs::new(directory.clone()), place);
        let logs = Arc::new(logs);

        let err_is_terminal = io::stderr().is_terminal();
        let writers = Arc::new(Mutex::new(console::writers()));
        // Buildkite's jobs have a terminal, and still a log that folds.
        let folding = match FoldingStyle::detect(|name| env::var(name).ok()) {
            FoldingStyle::Buildkite => FoldingStyle::Buildkite,
            _ if err_is_terminal => FoldingStyle::None,
            folding => folding,
        };
        let has_progress = err_is_terminal
            && folding == FoldingStyle::None
            && env::var_os("TERM").is_none_or(|kind| kind != "dumb")
            && shown.jobs.get() > 1
            && !shown.is_quiet
            && show != OutputFilter::Prefixed;
        let past = if has_progress {
            (shown.past)()
        } else {
            HashMap::new()
        };
        let (to_printer, messages) = mpsc::channel();
        let begun = Instant::now();
        let printer = Printer {
            turns: Turns::default(),
            show,
            is_quiet: shown.is_quiet,
            groups: Groups::new(folding),
            progress: Progress::new(begun, shown.jobs, past),
            painter: has_progress.then(Painter::new),
            logs: logs.clone(),
            writers: writers.clone(),
            failed: HashMap::new(),
            interrupted: HashSet::new(),
        };
        let printer = thread::Builder::new()
            .spawn(move || printer.print(&messages))
            .context("failed to start the thread that prints")?;
        Ok(Output::Captured(CapturedDisplay {
            show,
            outlet,
            logs,
            writers,
            to_printer,
            printer,
            logs_directory: directory,
            temporary,
        }))
    }
}

impl RunOutput for Output {
    fn streams(&self) -> orch::error::Result<Streams<'static>> {
        let Output::Captured(captured) = self else {
            return Ok(Streams::Live);
        };
        let is_prefixed = captured.show == OutputFilter::Prefixed;
        let (logs, writers) = (captured.logs.clone(), captured.writers.clone());
        Ok(Streams::Recorded {
            outlet: captured.outlet,
            keeper: OutputKeeper::new(own_process(KEEPER)?),
            recorder: Box::new(move |index, turn, attempt| {
                let name = || printable(turn.stack.as_str()).into_owned();
                let prefixed = is_prefixed.then(|| (name(), writers.clone()));
                let log = logs.writer(index, turn, attempt);
                Box::new(AttemptRecorder::new(log, prefixed))
            }),
        })
    }

    fn logs(&self) -> Option<Logs> {
        match self {
            Output::Live { .. } => None,
            Output::Captured(captured) => Some(Logs::new(captured.logs_directory.clone())),
        }
    }

    fn end(self: Box<Self>) -> EndedOutput {
        let Output::Captured(captured) = *self else {
            return EndedOutput {
                logs: None,
                temporary: None,
            };
        };
        if let Err(panic) = captured.printer.join() {
            std::panic::resume_unwind(panic);
        }
        EndedOutput {
            logs: Some(Logs::new(captured.logs_directory)),
            temporary: captured.temporary,
        }
    }
}

impl Sink for Output {
    fn event(&mut self, event: &RunEvent) -> io::Result<()> {
        match self {
            Output::Live {
                turns,
                commands,
                is_quiet,
                run,
            } => {
                turns.follow(event);
                let text = RunText::new(turns);
                let line = match event {
                    RunEvent::Started { turn, attempt } if !*is_quiet => Some(text.started(
                        *turn,
                        *attempt,
                        commands.of(turn.get(), &turns[*turn].stack),
                    )),
                    RunEvent::StepStarted { turn, step } if !*is_quiet => commands
                        .of_step(*turn, &turns[*turn], *step)
                        .map(|command| text.started(*turn, 1, command)),
                    RunEvent::RunFinished(summary) if !(*is_quiet && summary.is_success()) => {
                        Some(text.summary(summary, &HashSet::new(), &|_| None, run.as_deref()))
                    }
                    event => text.trouble(event),
                };
                let follows = text.follows(event).filter(|_| !*is_quiet);
                for line in line.into_iter().chain(follows) {
                    // A broken stderr must not stop a run.
                    _ = console::stderr().write_all(line.as_bytes());
                }
            }
            Output::Captured(captured) => {
                // A printer that has exited has reported why.
                _ = captured
                    .to_printer
                    .send(TimedEvent(Instant::now(), event.clone()));
            }
        }
        Ok(())
    }
}

/// Makes a command use colours although it does not print to a terminal, unless the user has
/// decided.
pub(in crate::program::commands) fn advertise_colour(task: &mut Task) {
    let no_color = task.environment.get("NO_COLOR").and_then(Option::as_ref);
    if no_color.is_none_or(String::is_empty) {
        for name in ["CLICOLOR_FORCE", "FORCE_COLOR"] {
            if env::var_os(name).is_none() {
                let entry = task.environment.entry(name.to_owned());
                entry.or_insert_with(|| Some("1".to_owned()));
            }
        }
    }
}
