use proptest::prelude::*;

use super::*;

fn summary_of(pieces: &[&[u8]]) -> Option<ChangeSummary> {
    let mut finder = SummaryFinder::default();
    for piece in pieces {
        finder.output(Stream::Stdout, piece);
    }
    finder.end()
}

/// Describes the summary of a text: `+3 ~1 -0`, with a `!` if there are changes.
fn said(text: &str) -> String {
    summary_of(&[text.as_bytes()]).map_or_else(
        || "nothing".to_owned(),
        |summary| {
            let ResourceCounts {
                add,
                change,
                destroy,
                import,
                forget,
            } = summary.resources.unwrap();
            let mut said = format!("+{add} ~{change} -{destroy}");
            if import + forget > 0 {
                said += &format!(" import {import} forget {forget}");
            }
            said + if summary.has_changes { "!" } else { "" }
        },
    )
}

#[test]
fn summaries_are_recognised() {
    for (text, expected) in [
        ("Plan: 3 to add, 1 to change, 0 to destroy.\n", "+3 ~1 -0!"),
        ("Plan: 3 to add, 1 to change, 0 to destroy.", "+3 ~1 -0!"),
        (
            "Plan: 3 to add, 1 to change, 0 to destroy.\r\n",
            "+3 ~1 -0!",
        ),
        (
            "\x1b[0m\x1b[1mPlan:\x1b[0m \x1b[0m0 to add, 2 to change, 10 to destroy.\n\x1b[0m",
            "+0 ~2 -10!",
        ),
        (
            "Plan: 1 to import, 0 to add, 0 to change, 0 to destroy.",
            "+0 ~0 -0 import 1 forget 0!",
        ),
        (
            "Plan: 0 to add, 0 to change, 0 to destroy, 1 to forget.",
            "+0 ~0 -0 import 0 forget 1!",
        ),
        // Resources have moved.
        ("Plan: 0 to add, 0 to change, 0 to destroy.", "+0 ~0 -0!"),
        (
            "\x1b[0m\x1b[1m\x1b[32mNo changes.\x1b[0m\x1b[1m Your infrastructure matches the configuration.\x1b[0m",
            "+0 ~0 -0",
        ),
        ("No changes. Infrastructure is up-to-date.", "+0 ~0 -0"),
        ("No changes. No objects need to be destroyed.", "+0 ~0 -0"),
        // It wraps its lines where nobody is at a terminal.
        (
            "You can apply this plan to save these new output values to the Terraform\nstate, without changing any real infrastructure.\n",
            "+0 ~0 -0!",
        ),
        (
            "You can apply this plan to save these new output values to the OpenTofu state, without\nApply complete! Resources: 0 added, 0 changed, 0 destroyed.\n",
            "+0 ~0 -0!",
        ),
        (
            "No changes. Your infrastructure matches the configuration.\nApply complete! Resources: 0 added, 0 changed, 0 destroyed.\n",
            "+0 ~0 -0",
        ),
        (
            "Plan: 3 to add, 0 to change, 0 to destroy.\nx\nApply complete! Resources: 2 added, 0 changed, 1 destroyed.\n",
            "+2 ~0 -1!",
        ),
        (
            "Apply complete! Resources: 1 imported, 2 added, 0 changed, 0 destroyed.",
            "+2 ~0 -0 import 1 forget 0!",
        ),
        // Of a plan that was saved: it may have changed outputs.
        (
            "Apply complete! Resources: 0 added, 0 changed, 0 destroyed.",
            "nothing",
        ),
        ("Destroy complete! Resources: 4 destroyed.", "+0 ~0 -4!"),
        (
            "12:01:02.345 STDOUT terraform: Plan: 3 to add, 1 to change, 0 to destroy.",
            "+3 ~1 -0!",
        ),
        (
            "[app] tofu: Plan: 1 to add, 0 to change, 0 to destroy.\n[db] tofu: No changes. Your\n[net] tofu: Plan: 2 to add, 0 to change, 5 to destroy.",
            "+3 ~0 -5!",
        ),
        (
            r#"{"@level":"info","@message":"Plan: 1 to add, 2 to change, 3 to destroy.","changes":{"add":1,"change":2,"import":0,"remove":3,"operation":"plan"},"type":"change_summary"}"#,
            "+1 ~2 -3!",
        ),
        (
            r#"{"changes":{"add":0,"change":0,"import":0,"remove":0,"operation":"plan"},"type":"change_summary"}
{"@message":"Outputs: 1","outputs":{"a":{"sensitive":false,"action":"noop"}},"type":"outputs"}
{"@message":"Apply complete!","changes":{"add":0,"change":0,"remove":0,"operation":"apply"},"type":"change_summary"}
{"@message":"Outputs: 1","outputs":{"a":{"sensitive":false,"type":"number","value":1}},"type":"outputs"}"#,
            "+0 ~0 -0",
        ),
        // Only an output changes.
        (
            r#"{"changes":{"add":0,"change":0,"import":0,"remove":0,"operation":"plan"},"type":"change_summary"}
{"@message":"Outputs: 1","outputs":{"a":{"sensitive":false,"action":"update"}},"type":"outputs"}"#,
            "+0 ~0 -0!",
        ),
        // A resource has moved.
        (
            r#"{"change":{"resource":{"addr":"y"},"action":"move"},"type":"planned_change"}
{"changes":{"add":0,"change":0,"import":0,"remove":0,"operation":"plan"},"type":"change_summary"}"#,
            "+0 ~0 -0!",
        ),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}

#[test]
fn other_text_is_no_summary() {
    for text in [
        "",
        "Plan: build the house.",
        "No changes.",
        "error: No changes. Sorry.",
        "null_resource.x (local-exec): Plan: 7 to add, 0 to change, 0 to destroy.",
        "  + text = \"Plan: 1 to add, 0 to change, 0 to destroy.\"",
        "Planning failed. Terraform encountered an error while generating this plan.",
        "Error: No changes were made",
        "{\"type\":\"change_summary\"}",
        "{\"type\":\"other\",\"changes\":{\"operation\":\"change_summary\"}}",
        "{ change_summary",
    ] {
        assert_eq!(said(text), "nothing", "{text}");
    }
}

#[test]
fn huge_lines_cost_no_memory_and_hide_nothing_behind_them() {
    let huge = vec![b'x'; 1 << 20];
    let mut finder = SummaryFinder::default();
    for _ in 0..8 {
        finder.output(Stream::Stdout, &huge);
        assert!(finder.stdout.capacity() <= 4 * LONGEST_LINE);
    }
    finder.output(
        Stream::Stdout,
        b"\nPlan: 1 to add, 0 to change, 0 to destroy.\n",
    );
    assert!(finder.end().unwrap().has_changes);
}

#[test]
fn the_streams_are_kept_apart() {
    let mut finder = SummaryFinder::default();
    finder.output(Stream::Stdout, b"Plan: 1 to add, ");
    finder.output(Stream::Stderr, b"a warning\n");
    finder.output(Stream::Stdout, b"0 to change, 0 to destroy.\n");
    assert_eq!(finder.end().unwrap().resources.unwrap().add, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The result does not depend on how the output is split into pieces.
    #[test]
    fn pieces_do_not_matter(cuts in prop::collection::vec(0_usize..400, 0..8)) {
        let text = "one\n\x1b[1mPlan:\x1b[0m 1 to add, 0 to change, 2 to destroy.\ntwo\n[x] terraform: Plan: 3 to add, 0 to change, 0 to destroy.\nNo changes. No objects need to be destroyed.\n{\"type\":\"change_summary\",\"changes\":{\"add\":5,\"operation\":\"plan\"}}";
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut rest = text.as_bytes();
        let mut at = 0;
        for cut in cuts {
            let (piece, after) = rest.split_at(cut - at);
            pieces.push(piece);
            (rest, at) = (after, cut);
        }
        pieces.push(rest);
        prop_assert_eq!(summary_of(&pieces), summary_of(&[text.as_bytes()]));
        prop_assert_eq!(summary_of(&pieces).unwrap().resources.unwrap().add, 9);
    }

    #[test]
    fn no_output_is_too_strange(bytes: Vec<u8>) {
        summary_of(&[b"Plan: ", &bytes, b"\nPlan: 9", &bytes]);
    }
}
