use super::Word;
use crate::folder::GuardedFolder;
use std::fs::{self, OpenOptions};
use std::time::Duration;

use tempfile::TempDir;

use super::*;

fn header(run: &str, command: &str) -> Header {
    Header {
        format: FORMAT,
        run: run.to_owned(),
        orch: "0.0.0".to_owned(),
        at: jiff::Timestamp::UNIX_EPOCH,
        host: "here".to_owned(),
        process: 1,
        arguments: Vec::new(),
        directory: "/".to_owned(),
        resumes: None,
        command: vec![Argument(command.into())],
        purpose: None,
        plan: None,
        eval: false,
        script: Vec::new(),
        order: ["/a", "/b", "/größe"].map(str::to_owned).to_vec(),
        edges: Vec::new(),
        left_out: Vec::new(),
        turns: Vec::new(),
        direction: Word::Known(Direction::Forward),
        settings: SettingsRecord {
            on_error: Word::Known(OnError::Stop),
            jobs: 1,
            limits: Vec::new(),
            timeout_ms: None,
            run_timeout_ms: None,
            grace_ms: None,
            retries: None,
            retry_on_exit: Vec::new(),
            retry_on_output: Vec::new(),
            retry_backoff_ms: None,
            success_exit_codes: None,
            changes_exit_codes: None,
            detailed_exit_code: false,
            recording: None,
            sharing: None,
        },
        base: None,
        head: None,
        uncommitted: None,
        policies: None,
        graph: String::new(),
        environment: Vec::new(),
        part_of: None,
    }
}

fn ended(stack: &str, outcome: OutcomeRecord, elapsed_ms: u64) -> JournalEntry {
    let event = Event::Ended(EndedTurnRecord {
        stack: stack.to_owned(),
        outcome,
        failure: None,
        cause: None,
        elapsed_ms,
        attempts: 1,
        changes: None,
    });
    let at = jiff::Timestamp::UNIX_EPOCH;
    JournalEntry::new(at, event)
}

/// A run id; the later ones sort after the earlier ones.
fn id(number: usize) -> String {
    format!("01a1ffb4-2d7d-73ea-bf75-{number:012}")
}

fn project() -> (TempDir, GuardedFolder) {
    let root = tempfile::tempdir().unwrap();
    let place = GuardedFolder::create(root.path()).unwrap();
    (root, place)
}

#[test]
fn a_journal_reads_back_wherever_it_was_torn() {
    let (_root, place) = project();
    let mut journal = Journal::create(&place, &header(&id(1), "x")).unwrap();
    let file = journal.folder().join(write::FILE);
    let header_length = fs::read(&file).unwrap().len();
    for stack in ["/a", "/b", "/größe"] {
        journal
            .write(&ended(stack, OutcomeRecord::Succeeded, 1))
            .unwrap();
    }
    drop(journal);
    let whole = fs::read(&file).unwrap();
    let runs = Runs::find(place).unwrap();
    for length in 0..=whole.len() {
        let text = &whole[..length];
        fs::write(&file, text).unwrap();
        let record = runs.record(&id(1));
        if length < header_length {
            assert!(matches!(record, Err(JournalError::NoHeader)), "{length}");
            continue;
        }
        // An entry that lacks only the end of its line is known, too.
        let known = text[header_length..].split(|&byte| byte == b'}').count() - 1;
        assert_eq!(record.unwrap().counts().succeeded, known, "{length}");
    }
}

#[test]
fn what_could_not_be_written_is_written_later() {
    let (_root, place) = project();
    let mut journal = Journal::create(&place, &header(&id(1), "x")).unwrap();
    let path = journal.folder().join(write::FILE);
    let whole = journal.file.try_clone().unwrap();
    journal.file = fs::File::open(&path).unwrap(); // for reading only
    assert!(
        journal
            .write(&ended("/a", OutcomeRecord::Succeeded, 1))
            .is_err()
    );
    journal.file = whole;
    // A part of a line that got as far as the disk.
    let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
    std::io::Write::write_all(&mut torn, b"{\"at\":").unwrap();
    journal
        .write(&ended("/b", OutcomeRecord::Failed, 1))
        .unwrap();
    let record = Runs::find(place).unwrap().record(&id(1)).unwrap();
    assert_eq!((record.counts().succeeded, record.counts().failed), (1, 1));
}

#[test]
fn past_durations_are_the_newest_of_the_same_command() {
    let (_root, place) = project();
    let run = |number: usize, command: &str, entries: &[JournalEntry]| {
        let mut journal = Journal::create(&place, &header(&id(number), command)).unwrap();
        for entry in entries {
            journal.write(entry).unwrap();
        }
    };
    run(0, "plan", &[ended("/größe", OutcomeRecord::Succeeded, 9)]);
    run(
        1,
        "plan",
        &[
            ended("/a", OutcomeRecord::Succeeded, 1),
            ended("/b", OutcomeRecord::Succeeded, 2),
        ],
    );
    run(
        2,
        "plan",
        &[
            ended("/a", OutcomeRecord::Succeeded, 3),
            ended("/b", OutcomeRecord::Failed, 4),
        ],
    );
    run(3, "apply", &[ended("/a", OutcomeRecord::Succeeded, 5)]);
    for number in 4..11 {
        run(number, "apply", &[]);
    }
    let runs = Runs::find(place).unwrap();
    let command = arguments(&["plan".into()]);
    let durations = runs.past_durations(|header| header.command == command);
    let of = |stack: &str| durations.get(stack).copied();
    assert_eq!(of("/a"), Some(Duration::from_millis(3)));
    assert_eq!(of("/b"), Some(Duration::from_millis(2)));
    assert_eq!(of("/größe"), None, "that run is too long ago");
}

#[test]
fn a_run_is_alive_as_long_as_its_journal_is_held() {
    let (_root, place) = project();
    let journal = Journal::create(&place, &header(&id(1), "x")).unwrap();
    let runs = Runs::find(place).unwrap();
    assert_eq!(runs.liveness(&id(1)), Liveness::Alive);
    drop(journal);
    assert_eq!(runs.liveness(&id(1)), Liveness::Gone);
    assert_eq!(runs.liveness("../.."), Liveness::Gone);
}

#[test]
fn a_journal_that_is_too_long_to_be_one_is_not_read() {
    let (_root, place) = project();
    let journal = Journal::create(&place, &header(&id(1), "x")).unwrap();
    let runs = Runs::find(place).unwrap();
    assert!(runs.record(&id(1)).is_ok());
    journal.file.set_len(read::MAX_BYTES + 1).unwrap();
    assert!(matches!(runs.record(&id(1)), Err(JournalError::TooLong)));
    assert!(matches!(runs.brief(&id(1)), Err(JournalError::TooLong)));
}

#[test]
fn what_never_began_is_no_run_to_keep() {
    let (_root, place) = project();
    let begun = |number: usize| drop(Journal::create(&place, &header(&id(number), "x")).unwrap());
    let folder = |number: usize| {
        place
            .make_directory(&format!("runs/{}", id(number)))
            .unwrap()
    };
    let file = |number: usize| fs::File::create_new(folder(number).join("journal.new")).unwrap();
    begun(1);
    let (empty, killed, held, newer) = (folder(2), folder(3), folder(4), folder(6));
    drop(file(3));
    let lock = file(4);
    lock.try_lock().unwrap();
    begun(5);
    let runs = Runs::find(place.clone()).unwrap();
    let pruned = runs.prune(2);
    assert_eq!((pruned.removed.len(), pruned.left), (0, 2));
    let pruned = runs.prune(0);
    assert_eq!((pruned.removed, pruned.left), (vec![id(5), id(1)], 0));
    for folder in [&empty, &killed, &held, &newer] {
        assert!(folder.exists(), "it may be about to begin");
    }
    runs.remove_unbegun(&id(5));
    for (folder, stays) in [
        (&empty, false),
        (&killed, false),
        (&held, true),
        (&newer, true),
    ] {
        assert_eq!(folder.exists(), stays, "{}", folder.display());
    }
}

#[test]
fn a_new_run_is_above_all_others() {
    for newest in [
        "00000000-0000-7000-8000-000000000000",
        "0fffffff-ffff-7fff-bfff-ffffffffffff",
    ] {
        let (_root, place) = project();
        drop(Journal::create(&place, &header(newest, "x")).unwrap());
        let new = Runs::find(place).unwrap().new_id();
        assert!(new.as_str() > newest, "{new}");
    }
    // After the last of all times there is none.
    let (_root, place) = project();
    let last = "ffffffff-ffff-7fff-bfff-ffffffffffff";
    drop(Journal::create(&place, &header(last, "x")).unwrap());
    assert_eq!(Runs::find(place).unwrap().new_id().len(), last.len());
}

/// Reads a journal of a header and further lines as a run's.
fn read(header: &Header, lines: &[&str]) -> Result<RunRecord, JournalError> {
    let (_root, place) = project();
    let journal = Journal::create(&place, header).unwrap();
    let path = journal.folder().join(write::FILE);
    drop(journal);
    let mut text = fs::read_to_string(&path).unwrap();
    for line in lines {
        text += &format!("{{\"at\":\"1970-01-01T00:00:00Z\",{line}}}\n");
    }
    fs::write(&path, text).unwrap();
    Runs::find(place).unwrap().record(&header.run)
}

#[test]
fn what_a_later_orch_adds_is_kept() {
    let lines = [
        r#""event":"planned","stack":"/a","changes":3"#,
        r#""event":"interrupted","signal":2,"reaction":"drain","running":[]"#,
        r#""event":"started","stack":"/a","attempt":1,"turn":2,"operation":"destroy","step":3"#,
        r#""event":"ended","stack":"/a","outcome":"destroyed","elapsed_ms":1,"attempts":1"#,
        r#""event":"ended","stack":"/b","outcome":"failed","failure":{"kind":"evicted","node":7},"elapsed_ms":1,"attempts":1"#,
        r#""event":"ended","stack":"/größe","outcome":"cancelled","cause":{"kind":"policy","file":"x"},"elapsed_ms":0,"attempts":0"#,
    ];
    let mut entries = Vec::new();
    for line in lines {
        let text = format!("{{\"at\":\"1970-01-01T00:00:00Z\",{line}}}");
        let entry: JournalEntry = serde_json::from_str(&text).unwrap();
        let written: serde_json::Value = serde_json::to_value(&entry).unwrap();
        let original: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(written, original);
        entries.push(entry);
    }
    assert!(matches!(&entries[0].event, Event::Other(fields) if fields["changes"] == 3));
    let destroy = (Some(2), Some("destroy"), Some(3));
    let started = &entries[2];
    assert_eq!(
        (started.turn, started.operation.as_deref(), started.step),
        destroy
    );

    let mut header = header(&id(1), "x");
    header.direction = Word::Other("inside-out".to_owned());
    header.settings.on_error = Word::Other("ask".to_owned());
    let record = read(&header, &lines).unwrap();
    assert_eq!(record.header.direction, header.direction);
    assert_eq!(record.header.settings.on_error, header.settings.on_error);
    let ended = |position: usize| match &record.stacks[position].state {
        StackState::Ended(ended) => ended,
        other => panic!("{other:?}"),
    };
    assert_eq!(ended(0).outcome.word(), "destroyed");
    assert!(!record.stacks[0].state.is_success());
    let failure = ended(1).failure.as_ref().unwrap();
    assert!(matches!(failure, FailureRecord::Other(failure) if failure["node"] == 7));
}

#[test]
fn a_damaged_line_is_no_unknown_event() {
    let ended = r#""event":"ended","stack":"/a","outcome":7,"elapsed_ms":1,"attempts":1"#;
    let mut lines = vec![ended.to_owned(), r#""stack":"/a""#.to_owned()];
    for word in entry::EVENTS {
        lines.push(format!(r#""event":"{word}""#));
    }
    for line in lines {
        let record = read(&header(&id(1), "x"), &[&line]);
        assert!(
            matches!(record, Err(JournalError::Damaged { line: 2, .. })),
            "{line}: {record:?}"
        );
    }
}

#[test]
fn a_run_is_named_by_its_age_or_by_a_part_of_its_id() {
    let (_root, place) = project();
    for number in [10, 11, 21] {
        drop(Journal::create(&place, &header(&id(number), "x")).unwrap());
    }
    let runs = Runs::find(place).unwrap();
    for (wanted, number) in [
        ("last", 21),
        ("last~0", 21),
        ("last~1", 11),
        ("last~2", 10),
        ("21", 21),
        ("000000011", 11),
        ("01A1FFB4-2D7D-73EA-BF75-000000000010", 10),
    ] {
        assert_eq!(runs.id(wanted), Ok(&*id(number)), "{wanted}");
    }
    let too_old = |wanted: &str| Err(FindError::TooOld(wanted.to_owned(), 3));
    for wanted in ["last~3", "last~99999999999999999999999"] {
        assert_eq!(runs.id(wanted), too_old(wanted));
    }
    for wanted in ["last~", "last~x", "last~-1", "lasting", "22", "75"] {
        let unknown = Err(FindError::Unknown(wanted.to_owned()));
        assert_eq!(runs.id(wanted), unknown, "{wanted}");
    }
    let ambiguous = |wanted: &str, ids: &[usize]| {
        let ids = ids.iter().map(|&number| id(number)).collect();
        assert_eq!(
            runs.id(wanted),
            Err(FindError::Ambiguous(wanted.to_owned(), ids))
        );
    };
    ambiguous("1", &[21, 11]);
    ambiguous("01a1", &[21, 11, 10]);
    // The beginning of one and the end of another.
    ambiguous("0", &[21, 11, 10]);
}

#[test]
fn an_added_turn_decides_how_its_stack_ends() {
    let (_root, place) = project();
    let mut journal = Journal::create(&place, &header(&id(1), "x")).unwrap();
    journal
        .write(&ended("/a", OutcomeRecord::Failed, 1))
        .unwrap();
    for stack in ["/a", "/not/selected"] {
        let stack = stack.to_owned();
        let follows = None;
        let added = Event::Added { stack, follows };
        let mut added = JournalEntry::new(jiff::Timestamp::UNIX_EPOCH, added);
        added.turn = Some(2);
        journal.write(&added).unwrap();
    }
    let runs = Runs::find(place).unwrap();
    let state = |path: &str| {
        let record = runs.record(&id(1)).unwrap();
        let mut stacks = record.stacks.into_iter();
        stacks.find(|stack| stack.path == path).unwrap().state
    };
    let late = ended("/a", OutcomeRecord::Succeeded, 1);
    journal.write(&late).unwrap();
    for stack in ["/a", "/not/selected"] {
        assert_eq!(state(stack), StackState::Waiting, "so it is left to do");
        let mut done = ended(stack, OutcomeRecord::Succeeded, 1);
        done.turn = Some(2);
        journal.write(&done).unwrap();
        assert!(state(stack).is_success());
    }
}

#[test]
fn a_later_run_whose_journal_cannot_be_read_may_have_resumed_this_one() {
    let (_root, place) = project();
    for run in [1, 2] {
        drop(Journal::create(&place, &header(&id(run), "x")).unwrap());
    }
    let runs = Runs::find(place.clone()).unwrap();
    assert_eq!(runs.resumed_by(&id(1)).unwrap(), None);
    fs::write(runs.folder(&id(2)).join("journal.jsonl"), "junk\n").unwrap();
    let unread = runs.resumed_by(&id(1)).unwrap_err();
    assert_eq!(unread.run, id(2));
    assert_eq!(runs.resumed_by(&id(2)).unwrap(), None);
    // A run that was removed meanwhile resumes nothing.
    fs::remove_dir_all(runs.folder(&id(2))).unwrap();
    assert_eq!(runs.resumed_by(&id(1)).unwrap(), None);
}
