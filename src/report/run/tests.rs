//! Groups with several attempts and long logs, as they are printed.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::path::ProjectPath;
use crate::record::logs::{Logs, Stream};
use crate::run::event::{Ending, Failure, Outcome, RunSummary, Turns};
use crate::run::turn::{Step, Turn, TurnIndex};

/// Makes turns of stacks `/s0`, `/s1` and so on.
pub(super) fn turns(number: usize) -> Turns {
    let steps: Arc<[Step]> = [Step::Command("command".into())].into();
    let turn = |number| Turn::of_command(ProjectPath::root().join(&format!("s{number}")), &steps);
    (0..number).map(turn).collect()
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
    fn writers(&self) -> StreamWriters {
        let writer = || StreamWriter::new(self.clone(), Filter::new(false, false));
        StreamWriters::new(writer(), writer(), false)
    }

    fn text(&self) -> String {
        let bytes = self.0.lock().expect("nobody panics");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn failed(turn: TurnIndex, attempts: u32) -> Ending {
    Ending {
        turn,
        outcome: Outcome::Failed(Failure::Exited(7)),
        elapsed: Duration::from_secs(3),
        attempts,
        changes: None,
    }
}

#[test]
fn all_attempts_are_printed_and_the_last_one_again() {
    let turns = turns(2);
    let folder = TempDir::new().expect("a folder can be made");
    let place = Some((".orch/runs/0198/logs".into(), "0198".to_owned()));
    let logs = Logs::new(folder.path().to_owned());
    let logs = RunLogs::new(logs, place);
    let (first, second) = (TurnIndex::new(0), TurnIndex::new(1));
    let write = |turn, attempt, stream, text: &str| {
        let mut log = logs.writer(turn, &turns[turn], attempt);
        log.write(stream, text.as_bytes())
            .expect("it can be written");
    };
    write(first, 1, Stream::Stdout, "no network\n");
    write(first, 3, Stream::Stderr, &"no end in sight ".repeat(8192));
    write(second, 1, Stream::Stdout, "fine");

    let paper = Paper::default();
    let mut writers = paper.writers();
    let text = RunText::new(&turns);
    let mut groups = Groups::new(FoldingStyle::None);
    let earlier = [
        (Failure::Exited(3), Duration::from_millis(500)),
        (Failure::Exited(4), Duration::from_millis(600)),
    ];
    let first = failed(first, 3);
    groups.print(&first, &earlier, text, &logs, true, &mut writers);
    let succeeded = Ending {
        outcome: Outcome::Succeeded,
        ..failed(second, 1)
    };
    groups.print(&succeeded, &[], text, &logs, true, &mut writers);
    groups.print_failures(text, &logs, &HashSet::new(), &mut writers);
    let summary = RunSummary {
        endings: vec![first, succeeded],
        replaced: std::collections::BTreeSet::new(),
        signal: None,
        elapsed: Duration::from_secs(4),
        detailed_exit_code: false,
        had_changes: false,
        left_out_status: 0,
        is_state_lost: false,
        is_refused: false,
        has_policy_problem: false,
    };
    writers.say(&text.summary(
        &summary,
        &HashSet::new(),
        &|ending| logs.place(&turns, ending),
        logs.run(),
    ));
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

#[test]
fn further_turns_of_a_stack_are_numbered() {
    let first = turns(1)[TurnIndex::new(0)].clone();
    let destroyed = Turn {
        operation: crate::run::turn::Operation::Destroy,
        ..first.clone()
    };
    let turns: Turns = [first.clone(), destroyed, first].into_iter().collect();
    let text = RunText::new(&turns);
    let names: Vec<String> = (0..3).map(|turn| text.path(TurnIndex::new(turn))).collect();
    assert_eq!(names, ["/s0", "/s0 (destroy)", "/s0 (turn 3)"]);
}
