//! Running programs and measuring them.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// A program with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    program: OsString,
    arguments: Vec<OsString>,
    directory: PathBuf,
}

impl Job {
    pub(crate) fn new(program: impl AsRef<OsStr>, directory: &Path) -> Self {
        Job {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            directory: directory.to_owned(),
        }
    }

    pub(crate) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let arguments = arguments.into_iter();
        self.arguments
            .extend(arguments.map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Lets it run another one, which it gets as its last arguments.
    pub(crate) fn then(self, other: &Job) -> Self {
        self.args([&other.program]).args(&other.arguments)
    }

    /// Returns it as a shell has it; no name in it has a quote.
    pub(crate) fn line(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        let quoted = words.map(|word| format!("'{}'", word.display()));
        quoted.collect::<Vec<_>>().join(" ")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.directory)
            .env("CHECKPOINT_DISABLE", "1") // terramate must not ask the network for its version
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end. That it fails is an error, which holds what it says about it.
    pub(crate) fn run(&self) -> Result<()> {
        self.finish(self.command().stdout(Stdio::null()))?;
        Ok(())
    }

    /// Runs it to its end and returns how many lines it prints.
    pub(crate) fn count_lines(&self) -> Result<usize> {
        let output = self.finish(&mut self.command())?;
        Ok(output.split_inclusive(|&byte| byte == b'\n').count())
    }

    fn finish(&self, command: &mut Command) -> Result<Vec<u8>> {
        let output = command.output();
        let output = output.with_context(|| format!("failed to start {self}"))?;
        ensure!(
            output.status.success(),
            "{} from {self}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output.stdout)
    }
}

impl Display for Job {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.display())?;
        for argument in &self.arguments {
            write!(f, " {}", argument.display())?;
        }
        write!(f, " in {}", self.directory.display())
    }
}

/// Times steps in turn, round after round, so that a slow spell of the machine meets all of them, and
/// returns the median of each.
pub(crate) fn medians(steps: &[impl Fn() -> Result<()>], rounds: usize) -> Result<Vec<Duration>> {
    let mut times = vec![Vec::with_capacity(rounds); steps.len()];
    for _ in 0..rounds {
        for (step, times) in steps.iter().zip(&mut times) {
            let start = Instant::now();
            step()?;
            times.push(start.elapsed());
        }
    }
    let medians = times.into_iter().map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    Ok(medians.collect())
}

/// Returns the peak memory of a job in MB. The system keeps the largest value of all children, so
/// each measurement has a process of its own, which carries out [`print_peak_memory`].
pub(crate) fn peak_memory(job: &Job) -> Result<Option<f64>> {
    let wrapper = Job::new(std::env::current_exe()?, &job.directory)
        .args([OsStr::new("--peak-memory"), &job.program])
        .args(&job.arguments);
    let output = wrapper.finish(&mut wrapper.command())?;
    Ok(String::from_utf8(output)?.trim().parse().ok())
}

/// Runs a program and prints the peak of its memory in MB, or nothing where that is unknown.
#[expect(clippy::print_stdout, reason = "that is its result")]
pub(crate) fn print_peak_memory(program: &[OsString]) -> Result<()> {
    let (program, arguments) = program.split_first().context("no program")?;
    let directory = std::env::current_dir()?;
    Job::new(program, &directory).args(arguments).run()?;
    #[cfg(unix)]
    {
        use nix::sys::resource::{UsageWho, getrusage};
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        // Apple's systems count in bytes, the others in KiB.
        let unit = if cfg!(target_vendor = "apple") {
            1
        } else {
            1024
        };
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let megabytes = (usage.max_rss() * unit) as f64 / 1e6;
        println!("{megabytes}");
    }
    Ok(())
}
