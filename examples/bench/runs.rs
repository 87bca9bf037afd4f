//! Runs: how much `orch` adds to the commands themselves.
#![expect(clippy::print_stdout, reason = "that is its result")]

use std::fs;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use orch::path::ProjectPath;
use orch::project::attempt::Attempts;
use orch::project::stack::StackIndex;
use orch::project::{Problems, Project};
use orch::run::event::{Failure, Reaction};
use orch::run::execute::{
    Control, Execution, Executor, Inbox, Signal, StepEnd, StepStart, execute,
};
use orch::run::order::{Direction, RunOrder};
use orch::run::schedule::OnError;
use orch::run::turn::{Step, Turn};
use orch::selection::graph::Graph;
use orch::selection::reference::References;
use orch::selection::select::{Query, select};

use crate::measure::{Job, medians, peak_memory};
use crate::options;
use crate::programs::Programs;
use crate::repository::{Options, Shape, generate};
use crate::table::{self, Row};

/// What a command prints that prints much.
const MEGABYTES: u32 = 1024;

const WANTED_RATE: u32 = 400;

/// How many runs share a lock.
const WAITING: u32 = 20;

const WANTED_WAITING: u32 = 20;

const WANTED_MEMORY: u32 = 64;

/// A line as `--print-lines` prints it, and what `--print-one-line` prints.
pub(crate) const LINE: &[u8] =
    b"module.network.aws_subnet.private[2]: Still creating... [id=subnet-0123456789abcdef0, 10s elapsed]\n";
pub(crate) const NO_LINE: &[u8] = b"never ending ";

/// Measures runs.
pub(crate) fn tables(programs: &Programs) -> Result<()> {
    commands(programs)?;
    scheduling()?;
    waiting(programs)?;
    output(programs)
}

/// Runs that come at once and share the lock of a state.
fn waiting(programs: &Programs) -> Result<()> {
    if !programs.has_git {
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    let root = directory.path();
    fs::write(root.join("stack.tm"), "stack {}\n")?;
    let state = "orch {\n  root = true\n  config {\n    state {\n      project = \"bench\"\n    }\n  }\n}\n";
    fs::write(root.join("root.orch.hcl"), state)?;
    Job::new("git", root).args(["init", "-q"]).run()?;
    programs.orch(root, "state init").run()?;
    let flags = "run -q -X --allow-concurrent --record --lock-timeout 2m -- sleep 0.5";
    let begun = Instant::now();
    thread::scope(|scope| -> Result<()> {
        let start = |_| scope.spawn(|| programs.orch(root, flags).run());
        let jobs: Vec<_> = (0..WAITING).map(start).collect();
        for job in jobs {
            job.join().expect("it does not panic")?;
        }
        Ok(())
    })?;
    println!(
        "{WAITING} runs of 0.5 s that share a lock, wanted at most {WANTED_WAITING} s: {:.1} s\n",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Short commands: starting them is all the work.
fn commands(programs: &Programs) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let root = &directory.path().join("repository");
    let stacks = generate(root, &options(Shape::Tree, 1000))?;
    let list = directory.path().join("list");
    fs::write(&list, stacks.join("\n"))?;
    println!("1,000 stacks, two at a time");
    let xargs = Job::new("xargs", root);
    let xargs = xargs
        .args(["-P2", "-n1", "-a"])
        .args([&list])
        .args(["true"]);
    let run = |flags: &str| programs.orch(root, &format!("run -q -j2 {flags} -- true"));
    let rows = [
        Row::job("floor: xargs -P2 true", xargs),
        Row::job("run -j2 --output none", run("--output none"))
            .floors([0])
            .wanted(1.2),
        Row::job("run -j2 --output grouped", run("--output grouped"))
            .floors([0])
            .wanted(1.5),
        Row::job(
            "run -j2, echo",
            programs.orch(root, "run -q -j2 -- echo hello"),
        )
        .floors([0])
        .wanted(1.5),
    ];
    table::print(&rows, &table::measure(&rows, 11)?);
    Ok(())
}

/// Commands that end when they start.
struct Nothing;

impl Executor for Nothing {
    type Command = Nothing;

    fn start(&mut self, start: StepStart<'_, Nothing>) -> Result<Nothing, Failure> {
        start.end.tell(StepEnd {
            result: Ok(()),
            changes: None,
            output_matches: false,
            output_lost: None,
        });
        Ok(Nothing)
    }
}

impl Control for Nothing {
    fn react(&self, _reaction: Reaction, _signal: Option<&Signal>) -> bool {
        true
    }
}

/// The loop and the schedule without any command.
fn scheduling() -> Result<()> {
    println!("10,000 stacks and nothing but scheduling, wanted at most 50 µs a stack:");
    for (name, shape) in [("tree", Shape::Tree), ("chain", Shape::Chain)] {
        let directory = tempfile::tempdir()?;
        let root = directory.path().join("repository");
        let options = Options {
            files: 0,
            modules: 0,
            ..options(shape, 10_000)
        };
        generate(&root, &options)?;
        let project = Project::load(&root.canonicalize()?, &mut Problems::default())?;
        let references = References::resolve(&project, &mut Vec::new());
        let graph = Graph::new(&project.stacks, &references);
        let query = Query::at_or_below(ProjectPath::root());
        let selection = select(&project.stacks, &references, &graph, &query);
        for jobs in [1, 8] {
            let steps: Arc<[Step]> = [Step::Command("command".into())].into();
            let step = || {
                let inbox = Inbox::without_signals();
                let order = RunOrder::new(&graph, &selection);
                let schedule = order.schedule(Direction::Forward, OnError::SkipDependents);
                let turn = |stack: &StackIndex| {
                    Turn::of_command(project.stacks[*stack].path.clone(), &steps)
                };
                let execution = Execution {
                    schedule: schedule.at_once(NonZeroUsize::new(jobs).expect("not zero"), &[]),
                    turns: order.sequence.iter().map(turn).collect(),
                    attempts: vec![Attempts::default(); order.sequence.len()],
                    timeout: None,
                    grace: Duration::ZERO,
                    detailed_exit_code: false,
                    had_changes: false,
                    left_out_status: 0,
                    n_earlier: 0,
                    is_rejected: false,
                };
                let summary = execute(execution, &mut Nothing, &inbox, &mut |_| {});
                ensure!(summary.is_success() && summary.endings.len() == 10_000);
                Ok(())
            };
            let time = medians(&[step], 5)?[0];
            println!("  {name}, -j{jobs}: {:.2} µs", time.as_secs_f64() * 100.0);
        }
    }
    println!();
    Ok(())
}

/// A command that prints a gigabyte. What it prints is kept, so that is removed again each time.
fn output(programs: &Programs) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let root = directory.path();
    fs::write(
        root.join("stack.tm"),
        "stack {}\nterramate {\n  config {}\n}\n",
    )?;
    fs::write(root.join("root.orch.hcl"), "orch {\n  root = true\n}\n")?;
    println!(
        "{MEGABYTES} MB of output, wanted at least {WANTED_RATE} MB/s and at most {WANTED_MEMORY} MB of memory"
    );
    println!("  {:<32}{:>10}{:>10}", "", "MB/s", "peak MB");
    for (what, flag) in [
        ("lines", "--print-lines"),
        ("no line's end", "--print-one-line"),
    ] {
        let print = programs.own(root, flag);
        let through_cat = format!("{print_line} | cat", print_line = print.line());
        let through_cat = Job::new("sh", root).args(["-c", &through_cat]);
        let mut jobs = vec![(format!("floor: through cat, {what}"), through_cat)];
        for output in ["grouped", "prefixed"] {
            let run = programs.orch(root, &format!("run -q -j2 --output {output} --"));
            jobs.push((format!("{output}, {what}"), run.then(&print)));
        }
        for (name, job) in jobs {
            let step = || {
                job.run()?;
                remove_logs(root)
            };
            let time = medians(&[step], 3)?[0];
            let memory = peak_memory(&job)?.unwrap_or_default();
            remove_logs(root)?;
            let rate = f64::from(MEGABYTES) / time.as_secs_f64();
            println!("  {name:<32}{rate:>10.0}{memory:>10.1}");
        }
    }
    println!();
    Ok(())
}

/// Removes what runs have left.
fn remove_logs(root: &Path) -> Result<()> {
    match fs::remove_dir_all(root.join(".orch")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Prints [`MEGABYTES`] of this text.
pub(crate) fn print(text: &[u8]) -> Result<()> {
    let chunk = text.repeat((64 << 10) / text.len());
    let mut left = usize::try_from(MEGABYTES)? << 20;
    let mut out = io::stdout().lock();
    while left > 0 {
        let length = left.min(chunk.len());
        out.write_all(&chunk[..length])?;
        left -= length;
    }
    out.flush()?;
    Ok(())
}
