//! Groups with several attempts and long logs, as they are printed; the rest is seen from outside.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::path::ProjectPath;
use crate::project::stack::{Stack, StackIndex, Stacks};
use crate::record::logs::{Logs, Stream};
use crate::run::event::{Ending, Failure, Outcome, RunSummary};
use crate::source::{FileId, Span};

/// Makes stacks `/s0`, `/s1` and so on, at most ten.
pub(super) fn stacks(number: usize) -> Stacks {
    let path = |name: String| ProjectPath::root().join(&name);
    let stack = |number| Stack {
        path: path(format!("s{number}")),
        id: None,
        name: String::new(),
        description: None,
        tags: Vec::new(),
        after: Vec::new(),
        before: Vec::new(),
        wants: Vec::new(),
        wanted_by: Vec::new(),
        watch: Vec::new(),
        span: Span {
            file: FileId(0),
            start: 0,
            end: 0,
        },
    };
    Stacks::new((0..number).map(stack).collect())
}

/// Where both streams go.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn sinks(&self) -> Sinks {
        let sink = || Sink::new(self.clone(), Filter::new(false, false));
        Sinks::new(sink(), sink(), false)
    }

    fn text(&self) -> String {
        let bytes = self.0.lock().expect("nobody panics");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn failed(stack: StackIndex, attempts: u32) -> Ending {
    Ending {
        stack,
        outcome: Outcome::Failed(Failure::Exited(7)),
        elapsed: Duration::from_secs(3),
        attempts,
    }
}

#[test]
fn all_attempts_are_printed_and_the_last_one_again() {
    let stacks = stacks(2);
    let folder = TempDir::new().expect("a folder can be made");
    let sequence: Vec<StackIndex> = stacks.iter().map(|(stack, _)| stack).collect();
    let place = Some((".orch/runs/0198/logs".into(), "0198".to_owned()));
    let logs = Logs::new(folder.path().to_owned());
    let logs = RunLogs::new(logs, &stacks, &sequence, place);
    let [first, second] = sequence[..] else {
        unreachable!("there are two");
    };
    let write = |stack, attempt, stream, text: &str| {
        let mut log = logs.writer(stack, attempt);
        log.write(stream, text.as_bytes())
            .expect("it can be written");
    };
    write(first, 1, Stream::Stdout, "no network\n");
    write(first, 3, Stream::Stderr, &"no end in sight ".repeat(8192));
    write(second, 1, Stream::Stdout, "fine");

    let paper = Paper::default();
    let mut sinks = paper.sinks();
    let text = RunText::new(&stacks);
    let mut groups = Groups::new(text, Folding::None);
    let earlier = [
        (Failure::Exited(3), Duration::from_millis(500)),
        (Failure::Exited(4), Duration::from_millis(600)),
    ];
    let first = failed(first, 3);
    groups.print(&first, &earlier, &logs, true, &mut sinks);
    let succeeded = Ending {
        outcome: Outcome::Succeeded,
        ..failed(second, 1)
    };
    groups.print(&succeeded, &[], &logs, true, &mut sinks);
    groups.print_failures(&logs, &mut sinks);
    let summary = RunSummary {
        endings: vec![first, succeeded],
        signal: None,
        elapsed: Duration::from_secs(4),
    };
    sinks.say(&text.summary(&summary, &|ending| logs.place(ending), logs.run()));
    let printed = paper
        .text()
        .replace(&"no end in sight ".repeat(4096), "[64 KiB]");
    assert_eq!(
        printed,
        "\
orch: /s0: failed: exit status 7 after 3 attempts in 3.0s
orch: /s0: attempt 1: exit status 3 after 0.5s
no network
orch: /s0: attempt 2: exit status 4 after 0.6s
orch: /s0: attempt 3:
[64 KiB][64 KiB]
orch: /s1: succeeded in 3.0s
fine
orch: /s0: failed: exit status 7 after 3 attempts in 3.0s
orch: 64.0 KiB before this are in .orch/runs/0198/logs/0001-s0.3.log, or: orch runs logs 0198 /s0
[64 KiB]
orch: failed /s0: exit status 7 after 3 attempts in 3.0s; log: .orch/runs/0198/logs/0001-s0.3.log
orch: 1 succeeded, 1 failed in 4.0s
"
    );
}
