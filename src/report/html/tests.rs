use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::timeline::RunTimeline;
use super::*;
use crate::record::journal::{JournalEntry, RunRecord};
use crate::record::logs::Stream;

/// A stack of a run: its path, and when it began and ended, in seconds, unless it did not run.
type Ran<'a> = (&'a str, Option<(u64, u64)>);

fn record(jobs: usize, stacks: &[Ran], edges: &[(usize, usize)]) -> RunRecord {
    let paths: Vec<&str> = stacks.iter().map(|(path, _)| *path).collect();
    let at = |seconds: u64| format!("2026-01-01T00:{:02}:{:02}Z", seconds / 60, seconds % 60);
    let header = json!({
        "format": 1, "run": "id", "orch": "0", "at": at(0), "host": "", "process": 1,
        "arguments": [], "directory": "/", "resumes": null, "command": ["true"],
        "order": paths, "edges": edges, "direction": "forward", "base": null, "head": null,
        "graph": "", "environment": [], "settings": { "on_error": "continue", "jobs": jobs }
    });
    let mut record = RunRecord::new(serde_json::from_value(header).unwrap());
    let mut add = |entry: Value| {
        let entry: JournalEntry = serde_json::from_value(entry).unwrap();
        record.add(entry);
    };
    for (path, time) in stacks {
        let Some((began, ended)) = *time else {
            add(json!({
                "at": at(0), "event": "ended", "stack": path, "outcome": "skipped",
                "elapsed_ms": 0, "attempts": 0,
            }));
            continue;
        };
        add(json!({ "at": at(began), "event": "started", "stack": path, "attempt": 1 }));
        add(json!({
            "at": at(ended), "event": "ended", "stack": path, "outcome": "succeeded",
            "elapsed_ms": (ended - began) * 1000, "attempts": 1,
        }));
    }
    record
}

fn shown(record: RunRecord, state: RunStatus, folder: &Path) -> (ShownRun, Logs) {
    let shown = ShownRun {
        record,
        earlier: Vec::new(),
        state,
        folder: folder.to_owned(),
    };
    (shown, Logs::new(folder.join("logs")))
}

fn page(run: &ShownRun, logs: &Logs) -> String {
    let mut out = Vec::new();
    write_html(&mut out, run, logs).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the script elements of a page as a browser finds them: from a start tag to the first end
/// tag, whatever is in between.
fn scripts(page: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("<script") {
        let (attributes, after) = after.split_once('>').unwrap();
        let (content, after) = after.split_once("</script>").unwrap();
        found.push((attributes, content));
        rest = after;
    }
    found
}

fn data(page: &str, id: &str) -> Value {
    let attributes = format!(" type=\"application/json\" id=\"{id}\"");
    let scripts = scripts(page);
    let mut of_id = scripts.iter().filter(|(found, _)| *found == attributes);
    let (_, content) = of_id.next().unwrap();
    assert_eq!(of_id.next(), None);
    serde_json::from_str(content).unwrap()
}

/// Returns what each stack waited for, by path.
fn waited(stacks: &[Ran], course: &RunTimeline) -> Vec<String> {
    let waited = course.times.iter().map(|time| {
        let time = time.unwrap();
        match time.waited {
            None => "-".to_owned(),
            Some(stack) if time.for_slot => format!("slot of {}", stacks[stack].0),
            Some(stack) => stacks[stack].0.to_owned(),
        }
    });
    waited.collect()
}

#[test]
fn a_stack_waits_for_the_last_one_before_it_or_for_a_slot() {
    let stacks = [
        ("/a", Some((0, 10))),
        ("/b", Some((0, 4))),
        ("/c", Some((4, 8))),
        ("/d", Some((10, 20))),
        ("/e", Some((10, 12))),
    ];
    // The node 5 lies between /a, /b and /d.
    let edges = [(0, 5), (1, 5), (5, 3), (1, 4)];
    let course = RunTimeline::new(&record(2, &stacks, &edges));
    let slots: Vec<usize> = course.times.iter().map(|time| time.unwrap().slot).collect();
    assert_eq!(slots, [0, 1, 1, 0, 1]);
    assert_eq!(
        waited(&stacks, &course),
        ["-", "-", "slot of /b", "/a", "slot of /c"]
    );
    assert_eq!(course.critical, [0, 3]);
    assert_eq!(course.waves, [0, 0, 0, 1, 1]);
    assert_eq!(course.between, [1]);
}

#[test]
fn timeline_looks_through_stacks_that_did_not_run() {
    let stacks = [("/a", Some((0, 5))), ("/b", None), ("/c", Some((5, 6)))];
    let course = RunTimeline::new(&record(9, &stacks, &[(0, 1), (1, 2)]));
    assert_eq!(course.times[1], None);
    let time = course.times[2].unwrap();
    assert_eq!((time.waited, time.for_slot), (Some(0), false));
    assert_eq!(course.critical, [0, 2]);
    assert_eq!(course.waves, [0, 1, 2]);
}

#[test]
fn a_journal_that_orch_did_not_write_has_a_course_too() {
    let stacks = [("/a", Some((0, 1))), ("/b", Some((0, 1)))];
    let edges = [(0, 1), (1, 0), (usize::MAX, 0), (1, usize::MAX - 1)];
    let course = RunTimeline::new(&record(0, &stacks, &edges));
    assert_eq!(course.edges, [(0, 1), (1, 0), (2, 0), (1, 3)]);
}

#[test]
fn the_page_allows_its_own_script_and_style_alone() {
    let folder = TempDir::new().unwrap();
    let (run, logs) = shown(record(1, &[], &[]), RunStatus::Succeeded, folder.path());
    let page = page(&run, &logs);
    let scripts = scripts(&page);
    let own: Vec<_> = scripts.iter().filter(|(tag, _)| tag.is_empty()).collect();
    let [(_, script)] = own[..] else {
        panic!("{} scripts", own.len())
    };
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        source_digest(script),
        source_digest(STYLE)
    );
    assert!(page.contains(&format!("content=\"{policy}\"")));
    assert!(page.contains(&format!("<style>{STYLE}</style>")));
    assert!(!page.contains("innerHTML"));
    let links: Vec<&str> = page
        .match_indices("://")
        .map(|(at, _)| &page[at - 4..at])
        .collect();
    assert_eq!(links, ["http"], "only the name of a namespace");
    assert!(page.contains("xmlns='http://www.w3.org/2000/svg'"));
}

#[test]
fn the_title_says_how_the_run_went() {
    let title = |stacks: &[Ran], state| {
        let folder = TempDir::new().unwrap();
        let (run, _) = shown(record(1, stacks, &[]), state, folder.path());
        data::headline(&run)
    };
    let two = [("/a", Some((0, 1))), ("/b", None)];
    assert_eq!(title(&two[..1], RunStatus::Succeeded), "succeeded: 1 stack");
    assert_eq!(title(&two, RunStatus::Failed), "failed: 0 of 2 stacks");
    assert_eq!(
        title(&two, RunStatus::Killed),
        "killed: 2 of 2 stacks had ended"
    );
    assert_eq!(
        title(&two, RunStatus::DryRun),
        "dry run: 2 stacks would run"
    );
    assert_eq!(
        title(&two, RunStatus::Interrupted),
        "interrupted: 1 of 2 stacks succeeded"
    );
    assert_eq!(
        title(&[], RunStatus::Succeeded),
        "succeeded: there was no stack to run in"
    );
}

#[test]
fn a_log_that_cannot_be_read_leaves_the_rest_of_the_page() {
    let folder = TempDir::new().unwrap();
    let stacks = [("/a", Some((0, 1))), ("/b", Some((1, 2)))];
    let (run, logs) = shown(record(1, &stacks, &[]), RunStatus::Succeeded, folder.path());
    std::fs::create_dir_all(logs.file(1, "/a", 1)).unwrap();
    let mut log = logs.writer(2, "/b", 1);
    log.write(Stream::Stdout, b"fine").unwrap();
    let page = page(&run, &logs);
    let problem = &data(&page, "log-0-0")["problem"];
    assert_eq!(problem, "it is not a regular file");
    assert_eq!(data(&page, "log-1-0")["sections"], json!([["fine"]]));
}

/// Pieces of text that end elements, comments, strings or lines.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("</script>"),
        Just("</SCRIPT "),
        Just("<script>"),
        Just("<!--"),
        Just("-->"),
        Just("]]>"),
        Just("\""),
        Just("\\"),
        Just("&lt;"),
        Just("{{logs}}"),
        Just("\u{2028}\u{2029}\u{2020}"),
        Just("\u{1b}[31m\u{7f}\r\n\t\0"),
        Just("größe"),
    ];
    let piece = prop_oneof![piece.prop_map(str::to_owned), any::<String>()];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hostile_names_and_output_never_leave_their_element(
        name in hostile(),
        command in hostile(),
        output in prop::collection::vec((any::<bool>(), hostile(), prop::collection::vec(any::<u8>(), 0..5)), 0..5),
    ) {
        let folder = TempDir::new().unwrap();
        // A name has no separators of paths and is none of the two that mean something else.
        let path = format!("/x{}", name.replace(['/', '\0'], "|"));
        let stacks = [(&*path, Some((0, 1)))];
        let mut record = record(1, &stacks, &[]);
        record.header.command[0].0 = command.clone().into();
        let (run, logs) = shown(record, RunStatus::Succeeded, folder.path());
        let mut written: Vec<(Stream, Vec<u8>)> = Vec::new();
        let mut log = logs.writer(1, &path, 1);
        for (is_stderr, text, bytes) in &output {
            let stream = if *is_stderr { Stream::Stderr } else { Stream::Stdout };
            let bytes = [text.as_bytes(), bytes].concat();
            log.write(stream, &bytes).unwrap();
            match written.last_mut() {
                Some((last, all)) if *last == stream => all.extend(bytes),
                _ => written.push((stream, bytes)),
            }
        }
        drop(log);
        let page = page(&run, &logs);

        // The script itself, the run, and the log if there is one.
        let has_log = written.iter().any(|(_, bytes)| !bytes.is_empty());
        let scripts = scripts(&page);
        prop_assert_eq!(scripts.len(), 2 + usize::from(has_log));
        let is_special = |character| "<>&\u{2028}\u{2029}\u{7f}".contains(character) || character < ' ';
        for (attributes, content) in &scripts {
            prop_assert!(attributes.is_empty() || !content.contains(is_special), "{}", content);
        }
        prop_assert_eq!(page.matches("<script").count(), scripts.len());
        prop_assert_eq!(page.matches("<!--").count(), 0);
        prop_assert_eq!(&data(&page, "run")["stacks"][0]["path"], &path);
        if has_log {
            let log = data(&page, "log-0-0");
            let mut expected = Vec::new();
            written.retain(|(_, bytes)| !bytes.is_empty());
            let mut merged: Vec<(Stream, Vec<u8>)> = Vec::new();
            for (stream, bytes) in written {
                match merged.last_mut() {
                    Some((last, all)) if *last == stream => all.extend(bytes),
                    _ => merged.push((stream, bytes)),
                }
            }
            // The first string is what went to stdout.
            if merged[0].0 == Stream::Stderr {
                expected.push(String::new());
            }
            expected.extend(merged.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()));
            prop_assert_eq!(&log["sections"], &json!([expected]));
        }
    }
}

#[test]
fn characters_that_are_read_in_parts_stay_whole() {
    let folder = TempDir::new().unwrap();
    let stacks = [("/a", Some((0, 1)))];
    let (run, logs) = shown(record(1, &stacks, &[]), RunStatus::Succeeded, folder.path());
    let text = "a€𝄞".repeat(30_000);
    let mut log = logs.writer(1, "/a", 1);
    log.write(Stream::Stdout, text.as_bytes()).unwrap();
    log.write(Stream::Stdout, b"\xe2\x82").unwrap();
    log.write(Stream::Stderr, b"\xacx").unwrap();
    let page = page(&run, &logs);
    let sections = &data(&page, "log-0-0")["sections"];
    let expected = json!([[text + "\u{fffd}", "\u{fffd}x"]]);
    assert!(*sections == expected, "the log differs");
}

#[test]
fn a_source_has_the_digest_in_base64() {
    let abc = "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='";
    assert_eq!(super::source_digest("abc"), abc);
}
