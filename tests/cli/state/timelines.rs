//! Backups of a document that somebody has put back.

use insta::assert_snapshot;
use serde_json::json;

use super::{change_document, document, project};
use crate::support::{Output, Sandbox};

const DOCUMENT: &str = "/.orch/state/default.json";

#[track_caller]
fn done(sandbox: &Sandbox, arguments: &str) -> Output {
    let output = sandbox.orch(arguments);
    assert_eq!(output.code(), 0, "{output}");
    output
}

/// A project that keeps four backups, whose document was written eight times, and the one of serial 4.
fn written() -> (Sandbox, String) {
    let sandbox = project("backups = 4");
    _ = done(&sandbox, "state init");
    sandbox.write("/graph.json", r#"{"a": []}"#);
    _ = done(&sandbox, "state import graph.json");
    let mut early = String::new();
    for serial in 3..=8 {
        _ = done(&sandbox, &format!("state taint a --reason {serial}"));
        if serial == 4 {
            early = sandbox.read(DOCUMENT);
        }
    }
    (sandbox, early)
}

/// Returns the reason of the doubt about `/a`.
fn reason(sandbox: &Sandbox) -> serde_json::Value {
    document(sandbox)["stacks"]["/a"]["tainted"]["reason"].clone()
}

#[test]
fn restore_keeps_to_the_timeline_of_a_document_that_was_put_back() {
    let (sandbox, early) = written();
    assert_snapshot!(done(&sandbox, "state backups"), @"
    4
    5
    6
    7
    ");
    sandbox.write(DOCUMENT, &early);
    assert_snapshot!(done(&sandbox, "state backups"), @"
    4 (abandoned)
    5 (abandoned)
    6 (abandoned)
    7 (abandoned)
    ");
    assert_snapshot!(sandbox.orch("state restore 6"), @"
    [stderr]
    error: backup 6 belongs to an abandoned timeline, and is not an earlier version of the document
      = help: `orch state backups` shows which backups are abandoned; to restore one anyway, add `--abandoned`
    [exit status 4]
    ");
    // No serial is used twice, so nothing of the new timeline is pruned before the old one.
    for reason in ["x", "y", "z"] {
        _ = done(&sandbox, &format!("state taint a --reason {reason}"));
    }
    assert_eq!(document(&sandbox)["serial"], 1010);
    assert_snapshot!(done(&sandbox, "state backups"), @"
    4 (abandoned)
    5 (abandoned)
    6 (abandoned)
    7 (abandoned)
    1007
    1008
    1009
    ");
    let json = done(&sandbox, "state backups --format json").json();
    assert_eq!(
        json["backups"][1],
        json!({ "serial": 5, "abandoned": true })
    );
    let shown = done(&sandbox, "state show").stdout;
    assert!(
        shown.contains(
            "4 (abandoned), 5 (abandoned), 6 (abandoned), 7 (abandoned), 1007, 1008, 1009"
        ),
        "{shown}"
    );
    assert_snapshot!(done(&sandbox, "state restore 1008"), @"restored backup 1008 as serial 1011");
    assert_eq!(reason(&sandbox), "x");
    assert_snapshot!(done(&sandbox, "state restore --abandoned 6"), @"restored backup 6 as serial 1012");
    assert_eq!(reason(&sandbox), "6");
    // The oldest of each timeline go.
    for _ in 0..5 {
        _ = done(&sandbox, "state taint a --reason later");
    }
    assert_snapshot!(done(&sandbox, "state backups"), @"
    4 (abandoned)
    5 (abandoned)
    6 (abandoned)
    7 (abandoned)
    1013
    1014
    1015
    1016
    ");
}

#[test]
fn backups_tell_timelines_apart_when_the_document_is_gone() {
    let (sandbox, early) = written();
    sandbox.write(DOCUMENT, &early);
    _ = done(&sandbox, "state taint a --reason new");
    _ = done(&sandbox, "state taint a --reason newer");
    for lost in [None, Some("{")] {
        match lost {
            None => sandbox.remove(DOCUMENT),
            Some(text) => sandbox.write(DOCUMENT, text),
        }
        assert_eq!(sandbox.orch("state restore 6").code(), 4);
        let newest = done(&sandbox, "state backups").stdout;
        let newest = newest.lines().last().unwrap();
        _ = done(&sandbox, &format!("state restore {newest}"));
        assert_eq!(reason(&sandbox), "new");
    }
    let backups = done(&sandbox, "state backups").stdout;
    assert!(backups.contains("7 (abandoned)"), "{backups}");
}

#[test]
fn state_backs_up_an_edited_copy_of_an_earlier_document() {
    let (sandbox, early) = written();
    sandbox.write(DOCUMENT, &early);
    change_document(&sandbox, |document| {
        document["stacks"]["/a"]["tainted"]["reason"] = json!("by hand");
    });
    _ = done(&sandbox, "state taint a --reason new");
    assert_snapshot!(done(&sandbox, "state backups"), @"
    4 (abandoned)
    5 (abandoned)
    6 (abandoned)
    7 (abandoned)
    1007
    ");
    _ = done(&sandbox, "state restore 1007");
    assert_eq!(reason(&sandbox), "by hand");
}
