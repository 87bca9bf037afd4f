use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::Stream::{Stderr, Stdout};
use super::*;

fn logs() -> (TempDir, Logs) {
    let folder = TempDir::new().expect("a folder can be made");
    let logs = Logs::new(folder.path().join("run/logs"));
    (folder, logs)
}

/// Returns what is read in pieces of at most so many bytes, joined where the stream is the same.
fn read(mut reader: LogReader, at_once: usize) -> Vec<(Stream, Vec<u8>)> {
    let mut pieces: Vec<(Stream, Vec<u8>)> = Vec::new();
    let mut buffer = vec![0; at_once];
    while let Some((stream, length)) = reader.read(&mut buffer).unwrap() {
        match pieces.last_mut() {
            Some((last, bytes)) if *last == stream => bytes.extend_from_slice(&buffer[..length]),
            _ => pieces.push((stream, buffer[..length].to_vec())),
        }
    }
    pieces
}

fn bytes(pieces: Vec<(Stream, Vec<u8>)>) -> Vec<u8> {
    pieces.into_iter().flat_map(|(_, bytes)| bytes).collect()
}

fn reader(logs: &Logs) -> LogReader {
    logs.reader(1, "/a", 1).unwrap().expect("it has printed")
}

/// Writes a log with three changes of the stream, and returns its path.
fn written(logs: &Logs) -> PathBuf {
    let mut writer = logs.writer(1, "/a", 1);
    for (stream, text) in [
        (Stdout, "one"),
        (Stderr, "two"),
        (Stdout, "three"),
        (Stderr, "four"),
    ] {
        writer.write(stream, text.as_bytes()).unwrap();
    }
    logs.file(1, "/a", 1)
}

fn piece(stream: Stream, text: &str) -> (Stream, Vec<u8>) {
    (stream, text.as_bytes().to_vec())
}

#[test]
fn names_are_safe_and_tell_the_stack() {
    assert_eq!(file_name(7, "/prod/eu-1/db", 1), "0007-prod-eu-1-db.log");
    assert_eq!(file_name(7, r#"/net["eu"]"#, 1), "0007-net-eu.log");
    assert_eq!(file_name(7, "/prod", 2), "0007-prod.2.log");
    assert_eq!(file_name(1, "/", 1), "0001-root.log");
    assert_eq!(file_name(12345, "/a b\n*/ü", 1), "12345-a-b----.log");
    assert_eq!(file_name(1, &"/ü".repeat(999), 1).len(), 5 + 100 + 4);
}

#[test]
fn an_attempt_that_prints_nothing_has_no_files() {
    let (_folder, logs) = logs();
    let mut writer = logs.writer(1, "/a", 1);
    writer.write(Stdout, b"").unwrap();
    assert!(logs.reader(1, "/a", 1).unwrap().is_none());
    assert!(!logs.directory.exists());
}

#[test]
fn the_index_is_written_only_where_there_is_stderr() {
    let (_folder, logs) = logs();
    let mut writer = logs.writer(1, "/a", 1);
    writer.write(Stdout, b"out").unwrap();
    let index = index_of(&logs.file(1, "/a", 1));
    assert!(!index.exists());
    writer.write(Stderr, b"err").unwrap();
    assert_eq!(fs::read_to_string(index).unwrap(), "3 stderr\n");
}

#[cfg(unix)]
#[test]
fn logs_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, logs) = logs();
    let log = written(&logs);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&log), 0o600);
    assert_eq!(mode(&index_of(&log)), 0o600);
    assert_eq!(mode(&logs.directory), 0o700);
}

#[cfg(unix)]
#[test]
fn what_lies_where_a_log_belongs_is_not_overwritten() {
    let (folder, logs) = logs();
    let precious = folder.path().join("precious");
    fs::write(&precious, "gold").unwrap();
    fs::create_dir_all(&logs.directory).unwrap();
    std::os::unix::fs::symlink(&precious, logs.file(1, "/a", 1)).unwrap();
    logs.writer(1, "/a", 1).write(Stdout, b"x").unwrap_err();
    assert_eq!(fs::read_to_string(precious).unwrap(), "gold");
}

#[test]
fn a_writer_that_was_killed_leaves_a_log_that_reads_back() {
    let (_folder, logs) = logs();
    let log = written(&logs);
    let index = index_of(&log);
    let all = fs::read_to_string(&index).unwrap();
    assert_eq!(all, "3 stderr\n6 stdout\n11 stderr\n");
    // The change was noted, and what came then was not written, or not the whole of it.
    fs::write(&log, "onetwothree").unwrap();
    let expected = [
        piece(Stdout, "one"),
        piece(Stderr, "two"),
        piece(Stdout, "three"),
    ];
    assert_eq!(read(reader(&logs), 100), expected);
    // Nor was the change.
    fs::write(&index, &all[..all.len() - 3]).unwrap();
    assert_eq!(read(reader(&logs), 100), expected);
}

#[test]
fn where_the_index_is_damaged_the_rest_is_stdout() {
    let (_folder, logs) = logs();
    let log = written(&logs);
    for index in [
        "garbage",
        "\n",
        "0 stdin\n",
        "-1 stderr\n",
        &*"9".repeat(1000),
        "\u{0}\n3 stderr\n",
    ] {
        fs::write(index_of(&log), index).unwrap();
        assert_eq!(
            read(reader(&logs), 4),
            [piece(Stdout, "onetwothreefour")],
            "{index}"
        );
    }
    fs::write(index_of(&log), "3 stderr\n2 stdout\n").unwrap();
    assert_eq!(bytes(read(reader(&logs), 4)), b"onetwothreefour");
}

#[test]
fn the_end_of_a_log_begins_with_a_line() {
    let tail = |text: &str, lines, at_most| {
        let (_folder, logs) = logs();
        let mut writer = logs.writer(1, "/a", 1);
        writer.write(Stdout, text.as_bytes()).unwrap();
        let mut reader = reader(&logs);
        let start = reader.tail(lines, at_most).unwrap();
        reader.skip_to(start).unwrap();
        String::from_utf8(bytes(read(reader, 100))).unwrap()
    };
    assert_eq!(tail("a\nb\nc\n", 2, 100), "b\nc\n");
    assert_eq!(tail("a\nb\nc", 2, 100), "b\nc");
    assert_eq!(tail("a\nb\n", 2, 100), "a\nb\n");
    assert_eq!(tail("aaa\nbbb\nccc\n", 9, 6), "ccc\n");
    assert_eq!(tail("aaaaaa", 9, 3), "aaa");
    assert_eq!(tail("ééé", 9, 3), "é", "no character is broken");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_streams_and_their_order_read_back(
        pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..9)), 0..40),
        at_once in 1_usize..20,
        skipped in 0_usize..200,
    ) {
        let (_folder, logs) = logs();
        let mut writer = logs.writer(1, "/a", 1);
        let mut model: Vec<(Stream, u8)> = Vec::new();
        for (is_stderr, bytes) in &pieces {
            let stream = if *is_stderr { Stderr } else { Stdout };
            writer.write(stream, bytes).unwrap();
            model.extend(bytes.iter().map(|&byte| (stream, byte)));
        }
        let Some(mut log) = logs.reader(1, "/a", 1).unwrap() else {
            prop_assert!(model.is_empty());
            return Ok(());
        };
        let bytes_of = |pieces: Vec<(Stream, Vec<u8>)>| -> Vec<(Stream, u8)> {
            let bytes = |(stream, bytes): (Stream, Vec<u8>)| {
                bytes.into_iter().map(move |byte| (stream, byte))
            };
            pieces.into_iter().flat_map(bytes).collect()
        };
        prop_assert_eq!(bytes_of(read(reader(&logs), at_once)), model.clone());
        let skipped = skipped.min(model.len());
        log.skip_to(skipped as u64).unwrap();
        prop_assert_eq!(bytes_of(read(log, at_once)), &model[skipped..]);
    }
}
