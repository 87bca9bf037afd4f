use std::path::Path;

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::record::journal::{JournalEntry, RunRecord, RunStatus};
use crate::record::logs::Stream;

/// How a stack ended, and what it printed.
#[derive(Debug, Clone)]
struct StackResult {
    path: String,
    outcome: &'static str,
    changes: Option<bool>,
    output: Vec<u8>,
}

fn result(path: &str, outcome: &'static str) -> StackResult {
    StackResult {
        path: path.to_owned(),
        outcome,
        changes: None,
        output: Vec::new(),
    }
}

fn run(command: &str, stacks: &[StackResult], folder: &Path) -> (ShownRun, Logs) {
    let paths: Vec<&str> = stacks.iter().map(|stack| &*stack.path).collect();
    let at = "2026-01-01T00:00:00Z";
    let header = json!({
        "format": 1, "run": "id", "orch": "0", "at": at, "host": "", "process": 1,
        "arguments": [], "directory": "/", "resumes": null, "command": [command],
        "order": paths, "direction": "forward", "base": null, "head": null,
        "graph": "", "environment": [],
        "settings": { "on_error": "stop", "jobs": 1 }
    });
    let mut record = RunRecord::new(serde_json::from_value(header).unwrap());
    let mut add = |entry: serde_json::Value| {
        let entry: JournalEntry = serde_json::from_value(entry).unwrap();
        record.add(entry);
    };
    let logs = Logs::new(folder.to_owned());
    for (told, position) in stacks.iter().zip(1..) {
        let stack = &told.path;
        let has_run = ["failed", "succeeded"].contains(&told.outcome);
        if has_run {
            add(json!({ "at": at, "event": "started", "stack": stack, "attempt": 1 }));
        }
        let mut log = logs.writer(position, stack, 1);
        log.write(Stream::Stdout, &told.output).unwrap();
        add(json!({
            "at": at, "event": "ended", "stack": stack, "outcome": told.outcome, "elapsed_ms": 1000,
            "attempts": i32::from(has_run), "changes": told.changes.map(|any| json!({ "any": any })),
            "failure": (told.outcome == "failed").then(|| json!({ "kind": "exited", "status": 1 })),
        }));
    }
    let shown = ShownRun {
        record,
        earlier: Vec::new(),
        state: RunStatus::Failed,
        folder: folder.to_owned(),
    };
    (shown, logs)
}

fn written(run: &ShownRun, logs: &Logs, limit: usize) -> String {
    let mut out = Vec::new();
    write_markdown(&mut out, run, logs, limit).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn summary_lists_failures_first_and_counts_unchanged_stacks() {
    let folder = TempDir::new().unwrap();
    let mut stacks = [
        result("/changed", "succeeded"),
        result("/failed", "failed"),
        result("/skipped", "skipped"),
        result("/unchanged", "succeeded"),
    ];
    stacks[0].changes = Some(true);
    stacks[1].output = b"one\n\x1b[31mtwo\x1b[0m\n".to_vec();
    stacks[3].changes = Some(false);
    let (run, logs) = run("plan", &stacks, folder.path());
    insta::assert_snapshot!(written(&run, &logs, MARKDOWN_BYTES), @"
    ### `plan` failed

    1 failed, 2 succeeded (1 with changes), 1 skipped

    | stack | outcome | changes | time | |
    | --- | --- | --- | --- | --- |
    | `/failed` | failed |  | 1.0s | exit status 1 after 1.0s |
    | `/changed` | succeeded | changes | 1.0s |  |
    | `/skipped` | skipped |  |  | the cause is not recorded |

    1 stack succeeded without changes.

    <details>
    <summary><code>/failed</code>: output</summary>

    ```text
    one
    two
    ```

    </details>
    ");
}

#[test]
fn a_page_that_just_fits_is_whole_and_a_byte_less_leaves_something_out() {
    let folder = TempDir::new().unwrap();
    let mut stacks: Vec<StackResult> = (0..40)
        .map(|number| result(&format!("/s{number}"), "succeeded"))
        .collect();
    stacks[7].outcome = "failed";
    stacks[7].output = b"a line\n".repeat(300);
    let (run, logs) = run("plan", &stacks, folder.path());
    let whole = written(&run, &logs, usize::MAX);
    assert!(whole.len() > LEAST_MARKDOWN_BYTES);
    assert!(!whole.contains("left out here"));
    assert_eq!(written(&run, &logs, whole.len()), whole);
    let part = written(&run, &logs, whole.len() - 1);
    assert_ne!(part, whole);
    assert!(
        part.contains("left out here") || part.contains("the end of the output"),
        "{part}"
    );
}

fn stack() -> impl Strategy<Value = StackResult> {
    let path = prop_oneof![
        "/[a-z]{1,8}",
        "/[`|<>&*_@#\\\\ a-z]{1,30}[a-z]",
        "/[^/\\x00\n]{1,200}x",
    ];
    let outcome = prop_oneof![
        Just("failed"),
        Just("succeeded"),
        Just("skipped"),
        Just("cancelled"),
        Just("a `word` of a later | orch"),
    ];
    let output = prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 0..2000),
        Just(b"```\n</details>\n".repeat(700)),
    ];
    (path, outcome, any::<Option<bool>>(), output).prop_map(|(path, outcome, changes, output)| {
        StackResult {
            path,
            outcome,
            changes: changes.filter(|_| outcome == "succeeded"),
            output,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_page_is_longer_than_it_may_be(
        command in "\\PC{0,300}",
        stacks in prop::collection::vec(stack(), 0..30),
        limit in LEAST_MARKDOWN_BYTES..20_000,
    ) {
        let folder = TempDir::new().unwrap();
        let mut stacks = stacks;
        stacks.sort_by(|one, other| one.path.cmp(&other.path));
        stacks.dedup_by(|one, other| one.path == other.path);
        let (run, logs) = run(&command, &stacks, folder.path());
        let whole = written(&run, &logs, usize::MAX);
        for limit in [limit, whole.len().max(LEAST_MARKDOWN_BYTES)] {
            let page = written(&run, &logs, limit);
            prop_assert!(page.len() <= limit, "{} > {limit}", page.len());
            prop_assert_eq!(page == whole, whole.len() <= limit);
            let is_row = |line: &&str| line.starts_with("| `") || line.starts_with("| <code>");
            let n_rows = page.lines().filter(is_row).count();
            let missing = page.lines().find_map(|line| line.split_once(" more stack"));
            let n_missing = missing.map_or(0, |(count, _)| count.parse().unwrap());
            let is_counted = |stack: &&StackResult| stack.changes == Some(false);
            let n_counted = stacks.iter().filter(is_counted).count();
            prop_assert_eq!(n_rows + n_missing + n_counted, stacks.len(), "{}", page);
        }
    }
}
