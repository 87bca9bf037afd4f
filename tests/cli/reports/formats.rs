//! The formats that other programs read.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{PLAN, RUN, mixed, read, read_json};
use crate::support::{Background, Sandbox, redact_runs, run_ids};

/// Writes the reports of a run in which each stack has a different outcome.
fn reported(flags: &str) -> Sandbox {
    let sandbox = mixed();
    let output = sandbox.orch(&format!("{RUN} {flags} {PLAN}"));
    assert_eq!(output.code(), 1, "{output}");
    sandbox
}

/// A report without what differs between two identical runs.
fn redacted(sandbox: &Sandbox, name: &str) -> String {
    let text = redact_runs(&run_ids(sandbox), &read(sandbox, name));
    let time = regex::Regex::new(r"\d{4}-\d\d-\d\dT[0-9:.]+Z").unwrap();
    let text = time.replace_all(&text, "<time>");
    let seconds = regex::Regex::new(r#"time="[0-9.]+""#).unwrap();
    seconds.replace_all(&text, "time=\"<s>\"").into_owned()
}

#[test]
fn report_junit_has_a_test_case_for_each_stack() {
    let sandbox = reported("--report ../out.xml");
    assert_snapshot!(redacted(&sandbox, "out.xml"), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="orch" tests="5" skipped="1" failures="1" errors="0" time="<s>">
        <testsuite name="../bin/terraform plan" tests="5" skipped="1" errors="0" failures="1" time="<s>" timestamp="<time>">
            <properties>
                <property name="run" value="<run 1>"/>
                <property name="state" value="failed"/>
            </properties>
            <testcase name="/changed" classname="../bin/terraform plan" time="<s>"/>
            <testcase name="/fails" classname="../bin/terraform plan" time="<s>">
                <failure message="exit status 3 after <s>" type="failed">about to fail
    no such bucket</failure>
            </testcase>
            <testcase name="/skipped" classname="../bin/terraform plan" time="<s>">
                <skipped message="runs after /fails, which failed"/>
            </testcase>
            <testcase name="/succeeds" classname="../bin/terraform plan" time="<s>"/>
            <testcase name="/unchanged" classname="../bin/terraform plan" time="<s>"/>
        </testsuite>
    </testsuites>
    "#);
    let text = read(&sandbox, "out.xml");
    let document = roxmltree::Document::parse(&text).unwrap();
    let cases = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"));
    let told = cases.map(|case| {
        let ended = case.children().find(roxmltree::Node::is_element);
        let kind = ended.map_or("", |node| node.tag_name().name());
        let message = ended.and_then(|node| node.attribute("message"));
        let time: f64 = case.attribute("time").unwrap().parse().unwrap();
        assert!(time >= 0.0);
        let message = message.map(|message| match message.split_once(" after ") {
            Some((failure, _)) if kind == "failure" => failure,
            _ => message,
        });
        json!([case.attribute("name"), kind, message])
    });
    assert_eq!(
        told.collect::<Vec<Value>>(),
        [
            json!(["/changed", "", null]),
            json!(["/fails", "failure", "exit status 3"]),
            json!(["/skipped", "skipped", "runs after /fails, which failed"]),
            json!(["/succeeds", "", null]),
            json!(["/unchanged", "", null]),
        ]
    );
    let suite = document
        .descendants()
        .find(|node| node.has_tag_name("testsuite"))
        .unwrap();
    let counts = ["tests", "failures", "errors", "disabled", "skipped"];
    let counts = counts.map(|name| suite.attribute(name).unwrap_or("-"));
    assert_eq!(counts[..3], ["5", "1", "0"]);
    assert!(counts[3..].contains(&"1"), "{counts:?}");
    let failure = document
        .descendants()
        .find(|node| node.has_tag_name("failure"))
        .unwrap();
    assert_eq!(
        failure.text().map(str::trim),
        Some("about to fail\nno such bucket")
    );
}

#[test]
fn report_markdown_puts_failures_first() {
    let sandbox = reported("--report ../out.md");
    assert_snapshot!(redacted(&sandbox, "out.md"), @"
    ### `../bin/terraform plan` failed

    1 failed, 3 succeeded (1 with changes), 1 skipped in <s>

    | stack | outcome | changes | time | |
    | --- | --- | --- | --- | --- |
    | `/fails` | failed |  | <s>  | exit status 3 after <s>  |
    | `/changed` | succeeded | `+3 ~1 -0` | <s>  |  |
    | `/skipped` | skipped |  |  | runs after /fails, which failed |
    | `/succeeds` | succeeded |  | <s>  |  |

    1 stack succeeded without changes.

    <details>
    <summary><code>/fails</code>: output</summary>

    ```text
    about to fail
    no such bucket
    ```

    </details>
    ");
}

#[test]
fn report_markdown_has_a_size_limit() {
    let sandbox = Sandbox::new("");
    for number in 0..100 {
        sandbox.write(&format!("/s{number}/stack.tm"), "stack {}\n");
    }
    let command = "-- sh -c 'seq 500; exit 1'";
    let flags = "run -q --output none --on-error continue";
    _ = sandbox.orch(&format!("{flags} --report ../out.md {command}"));
    let report = read(&sandbox, "out.md");
    assert!(
        (60_000..=65_536).contains(&report.len()),
        "{}",
        report.len()
    );
    for limit in [1024, 5000, 100_000] {
        let output = sandbox.orch(&format!(
            "runs report --max-bytes {limit} --report ../out.md"
        ));
        assert_eq!(output.code(), 0, "{output}");
        let length = read(&sandbox, "out.md").len();
        assert!((limit / 2..=limit).contains(&length), "{length} of {limit}");
    }
    assert_snapshot!(sandbox.orch("runs report --max-bytes 1023 --report ../out.md"), @"
    [stderr]
    error: invalid value '1023' for '--max-bytes <BYTES>': 1023 is not in 1024..18446744073709551615

    For more information, try '--help'.
    [exit status 64]
    ");
}

/// The fields of a run in Terragrunt's report (version 4), and the possible values of two of them.
const FIELDS: [&str; 9] = [
    "Name", "Started", "Ended", "Result", "Reason", "Cause", "Ref", "Cmd", "Args",
];
const RESULTS: [&str; 4] = ["succeeded", "failed", "early exit", "excluded"];
const REASONS: [&str; 5] = [
    "retry succeeded",
    "error ignored",
    "run error",
    "exclude block",
    "ancestor error",
];

/// Checks that a document has the shape of Terragrunt's report.
#[track_caller]
pub(super) fn assert_is_terragrunt(report: &Value) {
    for run in report.as_array().unwrap() {
        let fields = run.as_object().unwrap();
        for (name, value) in fields {
            assert!(FIELDS.contains(&name.as_str()), "{name}");
            match value {
                Value::Array(words) if name == "Args" => {
                    assert!(words.iter().all(Value::is_string));
                }
                value => assert!(value.is_string(), "{name}: {value}"),
            }
        }
        for name in ["Name", "Started", "Ended", "Result"] {
            assert!(fields.contains_key(name), "{name} in {run}");
        }
        for name in ["Started", "Ended"] {
            let time: Result<jiff::Timestamp, _> = fields[name].as_str().unwrap().parse();
            assert!(time.is_ok(), "{run}");
        }
        assert!(
            RESULTS.contains(&fields["Result"].as_str().unwrap()),
            "{run}"
        );
        if let Some(reason) = fields.get("Reason") {
            assert!(REASONS.contains(&reason.as_str().unwrap()), "{run}");
        }
    }
}

#[test]
fn terragrunts_json_has_its_shape_and_words() {
    let sandbox = reported("--report terragrunt-json=../out.json");
    let report = read_json(&sandbox, "out.json");
    assert_is_terragrunt(&report);
    let told = report.as_array().unwrap().iter().map(|run| {
        json!([
            run["Name"],
            run["Result"],
            run["Reason"],
            run["Cmd"],
            run["Args"]
        ])
    });
    let plan = |name: &str, result: &str, reason: Option<&str>| {
        json!([name, result, reason, "plan", null])
    };
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            plan("changed", "succeeded", None),
            plan("fails", "failed", Some("run error")),
            plan("skipped", "early exit", Some("ancestor error")),
            plan("succeeds", "succeeded", None),
            plan("unchanged", "succeeded", None),
        ]
    );
    assert_eq!(report[2]["Cause"], "fails");
}

#[test]
fn report_terragrunt_marks_a_successful_retry() {
    let sandbox = Sandbox::layout("a");
    let retries = "--retries 1 --retry-on-exit 7 --retry-backoff 0s";
    let report = "--report terragrunt-json=../out.json";
    let command = "-- sh -c 'test -e tried && exit; : > tried; exit 7'";
    let output = sandbox.orch(&format!("run -q {retries} {report} {command}"));
    assert_eq!(output.code(), 0, "{output}");
    let report = read_json(&sandbox, "out.json");
    assert_is_terragrunt(&report);
    assert_eq!(report[0]["Reason"], "retry succeeded");
}

#[test]
fn terragrunts_csv_says_the_same() {
    let sandbox = reported("--report ../out.csv");
    assert_snapshot!(redacted(&sandbox, "out.csv"), @"
    Name,Started,Ended,Result,Reason,Cause,Ref,Cmd,Args
    changed,<time>,<time>,succeeded,,,,plan,
    fails,<time>,<time>,failed,run error,exit status 3 after <s>,,plan,
    skipped,<time>,<time>,early exit,ancestor error,fails,,plan,
    succeeds,<time>,<time>,succeeded,,,,plan,
    unchanged,<time>,<time>,succeeded,,,,plan,
    ");
}

#[test]
fn report_of_a_dry_run_shows_what_would_run_in_each_format() {
    let sandbox = mixed();
    let names = ["out.json", "out.xml", "out.md", "out.csv"];
    let flags = names.map(|name| format!("--report ../{name}")).join(" ");
    let output = sandbox.orch(&format!("run --dry-run {flags} true"));
    assert_eq!(output.code(), 0, "{output}");
    for name in names {
        let times = read(&sandbox, name).matches("would run").count();
        assert!(times >= 5, "{name}: {times}");
    }
}

#[test]
fn report_does_not_count_a_running_stack_as_failed() {
    let sandbox = Sandbox::layout("a");
    let script = "echo x >> \"$ORCH_ROOT/started\"\nawait go";
    let run = Background::run(&sandbox, "-q", script);
    run.wait_for("/started", &["x"]);
    let csv = sandbox.orch("runs report --report terragrunt-csv=-").stdout;
    assert!(csv.contains(",excluded,,its command is running,"), "{csv}");
    let junit = sandbox.orch("runs report --report junit=-").stdout;
    assert!(
        junit.contains("<skipped message=\"its command is running\"/>"),
        "{junit}"
    );
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
}

#[test]
fn causes_count_the_attempts() {
    let sandbox = Sandbox::layout("a");
    let retries = "--retries 1 --retry-on-exit 7 --retry-backoff 0s";
    let reports = "--report ../out.csv --report ../out.md";
    _ = sandbox.orch(&format!("run -q {retries} {reports} -- sh -c 'exit 7'"));
    for name in ["out.csv", "out.md"] {
        let text = read(&sandbox, name);
        assert!(
            text.contains("exit status 7 after 2 attempts in "),
            "{text}"
        );
    }
}

#[test]
fn junit_says_where_output_is_that_it_leaves_out() {
    let paths: Vec<String> = (0..520).map(|number| format!("s{number}")).collect();
    let sandbox = Sandbox::layout(&paths.join("\n"));
    let print = "head -c 20000 /dev/zero | tr \"\\0\" x; exit 1";
    sandbox.write_program("/bin/print", &format!("#!/bin/sh\n{print}\n"));
    let flags = "-q --output none --on-error continue --report ../out.xml";
    let output = sandbox.orch(&format!("run {flags} -- ../bin/print"));
    assert_eq!(output.code(), 1, "{output}");
    let text = read(&sandbox, "out.xml");
    let left_out = text.matches("output left out; see .orch/runs/").count();
    assert!((1..20).contains(&left_out), "{left_out}");
}
