//! `--events`: the lines of the journal as they are written.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::process::Command;

use insta::assert_snapshot;

use super::{PLAN, RUN, mixed, read};
use crate::support::{Background, Sandbox, in_shell, journal_of, run_ids};

fn journal_text(sandbox: &Sandbox) -> String {
    sandbox.read(&journal_of(run_ids(sandbox).last().unwrap()))
}

#[test]
fn events_file_equals_the_journal() {
    let sandbox = mixed();
    fs::write(sandbox.outside().join("events"), "old").unwrap();
    let output = sandbox.orch(&format!("{RUN} --events ../events {PLAN}"));
    assert_eq!(output.code(), 1, "{output}");
    assert_eq!(read(&sandbox, "events"), journal_text(&sandbox));
}

#[test]
fn events_flag_refuses_a_dash() {
    let sandbox = mixed();
    let output = sandbox.orch("run --events - true");
    assert_eq!(output.code(), 64, "{output}");
    let fix = "write `fd:1` for stdout, or `./-` for a file";
    assert!(output.stderr.contains(fix), "{output}");
    let output = sandbox.orch("run -q --events fd:1 true");
    assert!(output.stdout.contains(r#""event":"finished""#), "{output}");
}

#[test]
fn events_need_no_journal() {
    let sandbox = Sandbox::unmarked("//- /a/stack.tm\nstack {}\n");
    _ = sandbox.orch("run -q --events ../events true");
    let events = read(&sandbox, "events");
    let words = ["\"format\":1", "\"started\"", "\"ended\"", "\"finished\""];
    assert_eq!(events.lines().count(), words.len());
    for (line, word) in events.lines().zip(words) {
        assert!(line.contains(word), "{line}");
    }
}

/// A run of two stacks, one after the other, whose second waits for the file `go`, and a reader of its
/// events.
fn followed(sandbox: &Sandbox) -> (Background<'_>, BufReader<File>) {
    let pipe = sandbox.outside().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let script = "test $ORCH_STACK_NAME = a || await go";
    let run = Background::run(sandbox, "-q --events ../pipe", script);
    (run, BufReader::new(File::open(pipe).unwrap()))
}

#[test]
fn events_reach_a_pipe_at_once() {
    let sandbox = Sandbox::layout("a\nb after /a");
    let (run, reader) = followed(&sandbox);
    let mut read = String::new();
    for line in reader.lines() {
        let line = line.unwrap();
        read += &format!("{line}\n");
        if line.contains(r#""ended","stack":"/a""#) {
            sandbox.write("/go", "");
        }
    }
    assert_eq!(run.end().code(), 0);
    assert_eq!(read, journal_text(&sandbox));
}

#[test]
fn events_reader_that_closes_does_not_stop_the_run() {
    let sandbox = Sandbox::layout("a\nb after /a\nc after /b\nd after /c");
    let (run, mut reader) = followed(&sandbox);
    reader.read_line(&mut String::new()).unwrap();
    drop(reader);
    sandbox.write("/go", "");
    let output = run.end();
    assert_eq!(output.code(), 0, "{output}");
    let warnings = output
        .stderr
        .matches("`--events` can no longer be written")
        .count();
    assert_eq!(warnings, 1, "{output}");
    assert!(journal_text(&sandbox).contains("finished"));
}

#[test]
fn events_can_go_to_a_file_descriptor() {
    let sandbox = mixed();
    let mut command = in_shell(&sandbox, "exec 3> ../events", "-q --events fd:3", "true");
    assert!(command.status().unwrap().success());
    assert_eq!(read(&sandbox, "events"), journal_text(&sandbox));
}

#[test]
fn events_pipe_without_a_reader_does_not_block_the_run() {
    let sandbox = mixed();
    let closed = "exec 3>&1; exec > ../stdout";
    let mut command = in_shell(&sandbox, closed, "-q --events fd:3", "true");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        stderr
            .matches("`--events` can no longer be written")
            .count(),
        1
    );
}

#[test]
fn events_descriptor_must_be_open() {
    let sandbox = mixed();
    assert_snapshot!(sandbox.orch("run --events fd:77 true"), @"
    [stderr]
    error: in --events: descriptor 77 is not open
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("run --events fd:x true"), @"
    [stderr]
    error: invalid value 'fd:x' for '--events <FILE|fd:N>': N in `fd:N` is the number of a descriptor

    For more information, try '--help'.
    [exit status 64]
    ");
    assert!(run_ids(&sandbox).is_empty());
}

#[test]
fn events_file_is_kept_if_the_run_is_refused() {
    let sandbox = Sandbox::layout("a\nb after /a");
    let script = "echo x >> \"$ORCH_ROOT/started\"\ntest $ORCH_STACK_NAME = b || await go";
    let run = Background::run(&sandbox, "-q --events ../events", script);
    run.wait_for("/started", &["x"]);
    let refused = sandbox.orch("run -q --events ../events true");
    assert_eq!(refused.code(), 4, "{refused}");
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
    assert_eq!(read(&sandbox, "events"), journal_text(&sandbox));
}

#[test]
fn events_file_is_checked_before_anything_runs() {
    let sandbox = mixed();
    assert_snapshot!(sandbox.orch("run --events nodir/events true"), @"
    [stderr]
    error: the file `nodir/events` cannot be written
      caused by: the directory `nodir` does not exist
    [exit status 5]
    ");
    assert!(run_ids(&sandbox).is_empty());
}
