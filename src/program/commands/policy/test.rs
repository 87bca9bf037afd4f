//! `orch policy test`

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::policy::{RegoFile, Worker};
use orch::printable::{count, printable};
use orch::project::discover::is_skip_mark;
use orch::report::{TestEnd, TestLine, write_tests};
use orch::run::policies;
use walkdir::WalkDir;

use crate::program::commands::format::Format;
use crate::program::commands::working_directory;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// The time limit for loading the files, and for each test.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The suffix of test files, before `.rego`.
const TEST: &str = "_test";

/// Run the tests of policies
///
/// A test is a rule whose name begins with `test_`, in a file `X_test.rego`, which is loaded together with
/// `X.rego` beside it. It passes if it is true; `test_retry if { … with input as {…} }` gives the policy
/// an input. A rule whose name begins with `todo_test_` is skipped. If a test fails, the exit
/// status is 1.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Files, `X.rego` or `X_test.rego`, and directories [default: the current directory]
    ///
    /// A directory means all files at and below it, except in directories that orch skips: those
    /// whose name begins with a dot, and those with a file `.orchskip` or `.tmskip`.
    #[arg(value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,

    /// The format of the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(super) fn test(chdir: &[PathBuf], args: &TestArgs) -> Result<ExitStatus> {
    let directory = working_directory(chdir)?;
    let mut files = BTreeSet::new();
    let mut without_tests = Vec::new();
    for path in &args.paths {
        let found = below(&directory, path)?;
        if found.is_empty() {
            without_tests.push(path.as_path());
        }
        files.extend(found);
    }
    if args.paths.is_empty() {
        files = below(&directory, Path::new(""))?;
    }
    let mut worker = policies::worker()?;
    let mut lines = Vec::new();
    for path in &files {
        let found = run(&mut worker, &directory, path)?;
        if found.is_empty() && args.paths.contains(path) {
            without_tests.push(path);
        }
        lines.extend(found);
    }
    let mut out = console::stdout();
    write_tests(&mut out, args.format == Format::Json, &lines)?;
    out.flush()?;
    for path in &without_tests {
        let path = path.to_string_lossy();
        let message = format!("no test was found in `{}`", printable(&path));
        console::error(anyhow::Error::msg(message).as_ref());
    }
    if lines.is_empty() && without_tests.is_empty() {
        console::note("no test was found: tests are rules `test_…` in files `…_test.rego`");
    }
    let is_failed = lines.iter().any(|line| line.end.is_failure());
    if is_failed || !without_tests.is_empty() {
        Ok(ExitStatus::Run(1))
    } else {
        Ok(ExitStatus::Success)
    }
}

/// Returns the test files at or below a path, relative to the working directory if the path is.
fn below(directory: &Path, path: &Path) -> Result<BTreeSet<PathBuf>> {
    let shown = printable(&path.to_string_lossy()).to_string();
    let place = directory.join(path);
    let metadata = place
        .metadata()
        .with_context(|| format!("failed to find `{shown}`"))?;
    if !metadata.is_dir() {
        let test = test_file(path).ok_or_else(|| {
            let message = format!("`{shown}` is not a Rego file");
            ProgramError::usage(message).hint("name `X.rego`, `X_test.rego` or a directory")
        })?;
        let exists = directory.join(&test).is_file();
        return Ok(exists.then_some(test).into_iter().collect());
    }
    let mut files = BTreeSet::new();
    let mut walk = WalkDir::new(&place).follow_links(false).into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|error| {
            let failed = anyhow::Error::new(error);
            failed.context(format!("failed to read the directories below `{shown}`"))
        })?;
        if entry.file_type().is_dir() {
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // A directory that the user names is searched, whatever its name.
            if entry.depth() > 0 && (is_hidden || is_marked(entry.path())) {
                walk.skip_current_dir();
            }
        } else if is_test(entry.path())
            && let Ok(relative) = entry.path().strip_prefix(&place)
        {
            files.insert(path.join(relative));
        }
    }
    Ok(files)
}

/// Returns whether a marker file excludes a directory from every project.
fn is_marked(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .into_iter()
        .any(|entry| is_skip_mark(&entry.file_name()))
}

fn is_rego(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "rego")
}

fn is_test(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default();
    is_rego(path) && stem.as_encoded_bytes().ends_with(TEST.as_bytes())
}

/// Returns the test file of a policy, or the file itself if it is one.
fn test_file(path: &Path) -> Option<PathBuf> {
    if !is_rego(path) || is_test(path) {
        return is_rego(path).then(|| path.to_owned());
    }
    let mut name = path.file_stem()?.to_owned();
    name.push(TEST);
    name.push(".rego");
    Some(path.with_file_name(name))
}

/// Returns the policy of a test file.
fn policy_file(path: &Path) -> Option<PathBuf> {
    let stem = path.file_stem()?.to_str()?.strip_suffix(TEST)?;
    Some(path.with_file_name(format!("{stem}.rego")))
}

fn run(worker: &mut Worker, directory: &Path, path: &Path) -> Result<Vec<TestLine>> {
    let shown = path.to_string_lossy().into_owned();
    let mut files = Vec::new();
    let policy = policy_file(path).filter(|policy| directory.join(policy).exists());
    for path in policy.iter().map(PathBuf::as_path).chain([path]) {
        let name = path.to_string_lossy().into_owned();
        let text = policies::read(&directory.join(path), None)
            .map_err(|problem| not_loaded(&name, &format!(" {problem}")))?;
        files.push(RegoFile { name, text });
    }
    let tests = worker
        .find_tests(&files, TIMEOUT)
        .map_err(anyhow::Error::from)?
        .map_err(|(file, problem)| {
            let name = files.get(file).map_or(&*shown, |file| &*file.name);
            let lines = policies::problem_lines(name, &problem).join("\n");
            not_loaded(name, &format!("\n{lines}"))
        })?;
    tracing::debug!("{} has {}", printable(&shown), count(tests.len(), "test"));
    let mut lines = Vec::new();
    for test in tests {
        let (end, prints) = if test.is_skipped {
            (TestEnd::Skipped, Vec::new())
        } else {
            let tested = worker.test(&files, &test.name, TIMEOUT);
            match tested.map_err(anyhow::Error::from)? {
                Ok(outcome) if outcome.is_passed => (TestEnd::Passed, outcome.prints),
                Ok(outcome) => (TestEnd::Failed, outcome.prints),
                Err((file, problem)) => {
                    let file = files.get(file).map_or(&shown, |file| &file.name).clone();
                    (TestEnd::Error { file, problem }, Vec::new())
                }
            }
        };
        lines.push(TestLine {
            file: shown.clone(),
            line: test.line,
            name: test.name,
            end,
            prints,
        });
    }
    Ok(lines)
}

fn not_loaded(file: &str, problem: &str) -> ProgramError {
    let message = format!("`{}` cannot be loaded:{problem}", printable(file));
    ProgramError::new(ErrorKind::Configuration, anyhow::Error::msg(message))
}
