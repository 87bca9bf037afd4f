//! Where reports go, and errors about their places.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;
use serde_json::Value;

use super::{PLAN, RUN, mixed, read, read_json};
use crate::support::run_ids;

#[test]
fn report_files_are_checked_before_anything_runs() {
    let sandbox = mixed();
    fs::create_dir(sandbox.outside().join("directory.json")).unwrap();
    let run = |report: &str| sandbox.orch(&format!("run --report {report} true"));
    assert_snapshot!(run("-"), @"
    [stderr]
    error: invalid value '-' for '--report <[FORMAT=]FILE>': standard output has no extension: write `FORMAT=-`; the formats are `json` (.json), `junit` (.xml), `markdown` (.md), `html` (.html), `terragrunt-json`, `terragrunt-csv` (.csv)

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(run("out.yaml"), @"
    [stderr]
    error: invalid value 'out.yaml' for '--report <[FORMAT=]FILE>': `.yaml` is not the extension of a format; the formats are `json` (.json), `junit` (.xml), `markdown` (.md), `html` (.html), `terragrunt-json`, `terragrunt-csv` (.csv)

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(run("jsno=out"), @"
    [stderr]
    error: invalid value 'jsno=out' for '--report <[FORMAT=]FILE>': `jsno` is not a format; the formats are `json` (.json), `junit` (.xml), `markdown` (.md), `html` (.html), `terragrunt-json`, `terragrunt-csv` (.csv)

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(run("no/such/out.json"), @"
    [stderr]
    error: the report `no/such/out.json` cannot be written
      caused by: the directory `no/such` does not exist
    [exit status 5]
    ");
    assert_snapshot!(run("../directory.json"), @"
    [stderr]
    error: the report `../directory.json` cannot be written
      caused by: is a directory
    [exit status 5]
    ");
    assert_snapshot!(run("../out.json --report json=../out.json"), @"
    [stderr]
    error: two reports cannot both be written to `../out.json`
    [exit status 64]
    ");
    assert_snapshot!(run("json=q --report json=changed/../q"), @"
    [stderr]
    error: two reports cannot both be written to `changed/../q`
    [exit status 64]
    ");
    assert_snapshot!(run("json=q --events changed/../q"), @"
    [stderr]
    error: a report and the events cannot both be written to `q`
    [exit status 64]
    ");
    assert!(run_ids(&sandbox).is_empty());
}

#[test]
fn report_replaces_a_file_atomically() {
    let sandbox = mixed();
    let place = sandbox.outside().join("reports");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("old.json"), "x".repeat(1 << 20)).unwrap();
    fs::set_permissions(place.join("old.json"), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("old.json", place.join("link.json")).unwrap();
    let flags = "--report ../reports/link.json --report ../reports/new.json";
    let output = sandbox.orch(&format!("{RUN} {flags} {PLAN}"));
    assert_eq!(output.code(), 1, "{output}");
    let report = read_json(&sandbox, "reports/old.json");
    assert_eq!(report, read_json(&sandbox, "reports/new.json"));
    let mode = |name: &str| fs::metadata(place.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("old.json"), 0o640);
    assert_eq!(mode("new.json") & 0o600, 0o600);
    assert!(
        fs::symlink_metadata(place.join("link.json"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(fs::read_dir(&place).unwrap().count(), 3);
}

#[test]
fn standard_output_takes_a_report_after_the_output_of_commands() {
    let sandbox = mixed();
    let output = sandbox.orch("run -q --report json=- -- sh -c 'echo {} >&2'");
    assert_eq!(output.json()["run"]["state"], "succeeded");
}

#[test]
fn report_that_cannot_be_written_at_the_end_is_an_error() {
    let sandbox = mixed();
    let place = sandbox.outside().join("gone");
    fs::create_dir(&place).unwrap();
    let report = |command: &str| {
        fs::create_dir_all(&place).unwrap();
        let flags = "--report ../gone/out.json --report ../out.json";
        sandbox.orch(&format!("run -q {flags} -- sh -c '{command}'"))
    };
    let output = report("rm -rf $ORCH_ROOT/../gone");
    assert_eq!(output.code(), 5, "{output}");
    assert!(
        output
            .stderr
            .contains("warning: failed to write the report `"),
        "{output}"
    );
    assert!(output.stderr.contains("gone/out.json`: "), "{output}");
    assert_eq!(read_json(&sandbox, "out.json")["run"]["status"], 0);
    let output = report("rm -rf $ORCH_ROOT/../gone; exit 7");
    assert_eq!(output.code(), 1, "{output}");
    assert_eq!(read_json(&sandbox, "out.json")["run"]["status"], 1);
}

#[test]
fn report_may_go_to_a_device() {
    let sandbox = mixed();
    let output = sandbox.orch("run -q --report json=/dev/null true");
    assert_eq!(output.code(), 0, "{output}");
    let kind = fs::metadata("/dev/null").unwrap().file_type();
    assert!(!kind.is_file());
}

#[test]
fn report_command_needs_a_report_flag() {
    let sandbox = mixed();
    assert_snapshot!(sandbox.orch("runs report"), @"
    [stderr]
    error: `orch runs report` needs `--report`
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("runs report --report ../out.json"), @"
    [stderr]
    error: no run of this project is recorded
      = help: start one with `orch run COMMAND`
    [exit status 4]
    ");
    let refused: Option<Value> = fs::read(sandbox.outside().join("out.json"))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    assert_eq!(refused, None);
}

#[test]
fn report_on_stdout_replaces_the_list_of_a_dry_run() {
    let sandbox = mixed();
    let output = sandbox.orch("run --dry-run --report json=- true");
    assert_eq!(output.json()["run"]["state"], "dry run");
}

#[test]
fn report_step_summary_that_cannot_be_written_does_not_fail_the_run() {
    let sandbox = mixed();
    let output = sandbox.orch_with("run -q true", |command| {
        command
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_STEP_SUMMARY", "/nonexistent/summary.md");
    });
    assert_eq!(output.code(), 0, "{output}");
    assert!(
        output
            .stderr
            .contains("warning: failed to write the report `/nonexistent/summary.md`"),
        "{output}"
    );
}

#[test]
fn reports_have_output_unless_it_is_live() {
    let sandbox = mixed();
    let run = |flags: &str| {
        sandbox.orch(&format!(
            "run -q --on-error continue {flags} --report ../out.xml {PLAN}"
        ))
    };
    let output = run("");
    assert_eq!(output.code(), 1, "{output}");
    assert!(!output.stderr.contains("not captured"), "{output}");
    assert!(read(&sandbox, "out.xml").contains("no such bucket"));
    let output = run("--output live");
    let note = "note: output is not captured, so the reports have no logs and no summaries; use `--output grouped`";
    assert_eq!(output.stderr.matches(note).count(), 1, "{output}");
    assert!(!read(&sandbox, "out.xml").contains("no such bucket"));
}
