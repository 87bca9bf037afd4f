//! Runs that are killed and interrupted at any moment, and resumed until everything is done: nothing
//! runs again that had succeeded, nothing is lost, and the exit status is right. Few cases, since each
//! starts many processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::host::folder;
use crate::support::orch_program;

/// Computes from the results of the stacks before this one, and fails as often as the file `fails`
/// says. Notes each time that it begins, and each time that it has succeeded.
const COMPUTE: &str = r#"set -e
echo x >> begun
echo "here $ORCH_STACK_PATH"
echo "there" >&2
sum=$(cat number)
while read -r other; do
  sum=$(( (sum * 31 + $(cat "../$other/result")) % 1000003 ))
done < before
if [ "$(wc -l < begun)" -le "$(cat fails)" ]; then exit 1; fi
echo "$sum" > result.new
mv result.new result
echo x >> succeeded
"#;

/// What is done to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    Kill,
    Interrupt,
    Terminate,
    /// It may go on to its end.
    None,
}

/// A project, its stacks in path order.
#[derive(Debug, Clone)]
struct Stack {
    before: BTreeSet<usize>,
    fails: usize,
}

fn stacks() -> impl Strategy<Value = Vec<Stack>> {
    let stack = (
        prop::collection::vec(any::<Index>(), 0..3),
        prop_oneof![4 => Just(0_usize), 1 => 1..3_usize],
    );
    prop::collection::vec(stack, 4..10).prop_map(|stacks| {
        let stacks = stacks.into_iter().enumerate();
        let stack = |(number, (before, fails)): (usize, (Vec<Index>, usize))| {
            // Any stack of a lower number; the first has none.
            let before = before.iter().filter(|_| number > 0);
            let before = before.map(|index| index.index(number)).collect();
            Stack { before, fails }
        };
        stacks.map(stack).collect()
    })
}

/// What is done to a run, once its journal has so many lines; and whether only what had failed is
/// wanted of it, if it goes on with another.
fn blow() -> impl Strategy<Value = (Blow, usize, bool)> {
    let blow = select(vec![
        Blow::Kill,
        Blow::Kill,
        Blow::Interrupt,
        Blow::Terminate,
        Blow::None,
    ]);
    (blow, 0..25_usize, prop::bool::weighted(0.2))
}

fn name(stack: usize) -> String {
    // Paths in another order than numbers, so that ties are broken otherwise.
    format!("s{}-{stack}", (stack * 7) % 10)
}

struct Project {
    _directory: TempDir,
    root: PathBuf,
    stacks: Vec<Stack>,
}

impl Project {
    fn new(stacks: Vec<Stack>) -> Self {
        let directory = folder();
        let root = directory.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("root.orch.hcl"), "orch {\n  root = true\n}\n").unwrap();
        fs::write(root.join("../compute.sh"), COMPUTE).unwrap();
        for (number, stack) in stacks.iter().enumerate() {
            let here = root.join(name(number));
            fs::create_dir(&here).unwrap();
            let after: Vec<String> = stack
                .before
                .iter()
                .map(|&other| format!("\"/{}\"", name(other)))
                .collect();
            let text = format!("stack {{\n  after = [{}]\n}}\n", after.join(", "));
            fs::write(here.join("stack.tm.hcl"), text).unwrap();
            fs::write(here.join("number"), format!("{number}\n")).unwrap();
            fs::write(here.join("fails"), format!("{}\n", stack.fails)).unwrap();
            let before: String = stack
                .before
                .iter()
                .map(|&other| name(other) + "\n")
                .collect();
            fs::write(here.join("before"), before).unwrap();
        }
        Project {
            _directory: directory,
            root,
            stacks,
        }
    }

    fn orch(&self, arguments: &[&str]) -> Command {
        let mut orch = Command::new(orch_program());
        orch.arg("-C").arg(&self.root).arg("run").args(arguments);
        orch.stdin(Stdio::null()).stdout(Stdio::null());
        orch
    }

    fn lines(&self, stack: usize, file: &str) -> usize {
        let text = fs::read_to_string(self.root.join(name(stack)).join(file));
        text.map_or(0, |text| text.lines().count())
    }

    fn begun(&self) -> Vec<usize> {
        (0..self.stacks.len())
            .map(|stack| self.lines(stack, "begun"))
            .collect()
    }

    /// The journals of all runs, the oldest first, each as far as it can be read.
    fn journals(&self) -> Vec<Vec<Value>> {
        let Ok(runs) = fs::read_dir(self.root.join(".orch/runs")) else {
            return Vec::new();
        };
        let mut runs: Vec<PathBuf> = runs.map(|run| run.unwrap().path()).collect();
        runs.sort();
        let journal = |run: PathBuf| {
            let text = fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
            text.lines()
                .map_while(|line| serde_json::from_str(line).ok())
                .collect()
        };
        runs.into_iter().map(journal).collect()
    }

    /// The stacks that `orch` knows to have succeeded in any run.
    fn known_to_have_succeeded(&self) -> BTreeSet<usize> {
        let lines = self.journals().into_iter().flatten();
        let succeeded =
            lines.filter(|line| line["event"] == "ended" && line["outcome"] == "succeeded");
        let paths: BTreeSet<String> = succeeded
            .map(|line| {
                line["stack"]
                    .as_str()
                    .unwrap()
                    .trim_start_matches('/')
                    .to_owned()
            })
            .collect();
        (0..self.stacks.len())
            .filter(|&stack| paths.contains(&name(stack)))
            .collect()
    }

    /// Starts `orch`, and deals a blow once its journal has so many lines: without any, at once.
    fn run(&self, arguments: &[&str], blow: Blow, at: usize) -> (ExitStatus, String) {
        let runs = self.journals().len();
        let error = self.root.join("../stderr");
        let stderr = fs::File::create(&error).unwrap();
        let mut orch = self.orch(arguments).stderr(stderr).spawn().unwrap();
        let pid = Pid::from_raw(orch.id().cast_signed());
        let deadline = Instant::now() + Duration::from_mins(1);
        let signal = match blow {
            Blow::Kill => Some(Signal::SIGKILL),
            Blow::Interrupt => Some(Signal::SIGINT),
            Blow::Terminate => Some(Signal::SIGTERM),
            Blow::None => None,
        };
        while let Some(signal) = signal {
            let journals = self.journals();
            let is_there = journals.len() > runs;
            if at == 0 || is_there && journals.last().is_some_and(|lines| lines.len() >= at) {
                signal::kill(pid, signal).unwrap();
                break;
            }
            if orch.try_wait().unwrap().is_some() {
                break;
            }
            assert!(Instant::now() < deadline, "a run neither goes on nor ends");
        }
        let status = orch.wait().unwrap();
        (status, fs::read_to_string(error).unwrap())
    }

    /// How often a stack was running when `orch` was killed, or when a signal ended its command.
    fn unknown_ends(&self, stack: usize) -> usize {
        let path = format!("/{}", name(stack));
        let count = |journal: &Vec<Value>, event: &str| {
            let is_so = |line: &&Value| line["event"] == event && line["stack"] == path;
            journal.iter().filter(is_so).count()
        };
        let is_unknown = |journal: &&Vec<Value>| {
            let mut lines = journal.iter().filter(|line| line["stack"] == path);
            let is_interrupted = journal.iter().any(|line| line["event"] == "interrupted");
            let has_failed = lines.any(|line| line["outcome"] == "failed");
            count(journal, "started") > count(journal, "ended") || is_interrupted && has_failed
        };
        self.journals().iter().filter(is_unknown).count()
    }

    fn results(&self) -> BTreeMap<usize, u64> {
        let mut results: BTreeMap<usize, u64> = BTreeMap::new();
        for (number, stack) in self.stacks.iter().enumerate() {
            let others = stack.before.iter();
            let result = others.fold(number as u64, |sum, other| {
                (sum * 31 + results[other]) % 1_000_003
            });
            results.insert(number, result);
        }
        results
    }
}

/// The status that the journal of a run calls for.
fn wanted_status(journal: &[Value], blow: Blow) -> Option<i32> {
    let ended = |outcome: &str| {
        let is_so = |line: &&Value| line["event"] == "ended" && line["outcome"] == outcome;
        journal.iter().filter(is_so).count()
    };
    let is_interrupted = journal.iter().any(|line| line["event"] == "interrupted");
    match blow {
        _ if is_interrupted && blow == Blow::Interrupt => Some(130),
        _ if is_interrupted => Some(143),
        _ if !journal.iter().any(|line| line["event"] == "finished") => None,
        _ if ended("failed") + ended("skipped") + ended("cancelled") > 0 => Some(1),
        _ => Some(0),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: ProptestConfig::default().cases.div_ceil(16),
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_had_succeeded_does_not_run_again_and_everything_is_done_in_the_end(
        stacks in stacks(),
        blows in prop::collection::vec(blow(), 0..4),
        jobs in select(vec!["1", "2", "3"]),
        on_error in select(vec!["stop", "skip-dependents"]),
        output in select(vec!["auto", "grouped", "prefixed", "none"]),
    ) {
        let project = Project::new(stacks);
        let script = project.root.join("../compute.sh");
        let first = ["-j", jobs, "--on-error", on_error, "--output", output, "--", "sh", script.to_str().unwrap()];
        let resume = ["--resume", "--output", output];
        let only_failed = ["--only-failed", "--output", output];
        // Nothing more befalls it after those; each failing stack costs a few rounds.
        let blows = blows.into_iter().chain(std::iter::repeat_n((Blow::None, 0, false), 40));
        let mut is_done = false;
        for (blow, at, is_only_failed) in blows {
            let known = project.known_to_have_succeeded();
            let runs = project.journals().len();
            let arguments: &[&str] = match (runs, is_only_failed) {
                (0, _) => &first,
                (_, true) => &only_failed,
                (_, false) => &resume,
            };
            let deadline = Instant::now() + Duration::from_mins(1);
            let (before, status, said) = loop {
                let before = project.begun();
                let (status, said) = project.run(arguments, blow, at);
                // A command of a run that was killed goes on, and nothing else runs meanwhile.
                if status.code() != Some(4) {
                    break (before, status, said);
                }
                prop_assert!(said.contains("still running"), "{}", said);
                prop_assert!(Instant::now() < deadline, "{}", said);
            };
            for (stack, (before, after)) in before.iter().zip(project.begun()).enumerate() {
                prop_assert!(
                    !known.contains(&stack) || *before == after,
                    "{} ran again\n{}", name(stack), said
                );
            }
            let journals = project.journals();
            if journals.len() == runs {
                // The blow came before anything began, or there was nothing to do.
                let is_blow = blow != Blow::None && status.signal().is_some();
                prop_assert!(is_blow || status.code() == Some(0), "{} {}", status, said);
                if !is_blow && !is_only_failed {
                    is_done = true;
                    break;
                }
                continue;
            }
            prop_assert_eq!(journals.len(), runs + 1, "{}", said);
            let journal = journals.last().unwrap();
            let wanted = wanted_status(journal, blow);
            match status.signal() {
                // Once the run is over, a signal ends what is left to say.
                Some(9) => prop_assert_eq!(blow, Blow::Kill),
                Some(signal) => prop_assert!(wanted.is_some(), "{} {}", signal, said),
                None => prop_assert_eq!(status.code(), wanted, "{} {:?}", said, journal),
            }
            if status.code() == Some(0) && arguments != only_failed {
                is_done = true;
                break;
            }
        }
        prop_assert!(is_done);
        prop_assert_eq!(project.known_to_have_succeeded().len(), project.stacks.len(), "nothing is lost");
        for (stack, result) in project.results() {
            let text = fs::read_to_string(project.root.join(name(stack)).join("result")).unwrap();
            prop_assert_eq!(text.trim().parse::<u64>().unwrap(), result, "{}", name(stack));
        }
        // A command may have done its work unknown to an `orch` that was killed meanwhile, or just before a
        // signal ended it; no other does it twice.
        for stack in 0..project.stacks.len() {
            let times = project.lines(stack, "succeeded");
            prop_assert!(times >= 1 && times <= 1 + project.unknown_ends(stack), "{}", name(stack));
        }
        let begun = project.begun();
        let output = project.orch(&["--resume"]).output().unwrap();
        prop_assert_eq!(output.status.code(), Some(0), "there is nothing left to do");
        prop_assert_eq!(project.begun(), begun);
    }
}
