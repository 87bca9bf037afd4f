//! The report of a run as `JUnit` XML, which CI systems show as tests: each stack is one.

use std::io::{self, Write};
use std::time::Duration;

use quick_junit::{
    NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite, XmlString,
};

use super::quote::quote;
use super::runs::{Causes, ShownRun, ShownStack, policy_problems, words};
use crate::printable::printable;
use crate::record::journal::{RunStatus, StackState};
use crate::record::logs::Logs;

/// How many bytes of output are quoted, for one failed stack and for all together: the whole report
/// must fit in memory.
const QUOTED: usize = 16 << 10;
const QUOTED_OF_ALL: usize = 8 << 20;

pub(super) fn write_junit(out: &mut impl Write, run: &ShownRun, logs: &Logs) -> io::Result<()> {
    let header = &run.record.header;
    let command = words(&header.command);
    let mut suite = TestSuite::new(xml(&command));
    suite
        .extra
        .insert("timestamp".into(), header.at.to_string().into());
    suite.add_property(Property::new("run", xml(&header.run)));
    suite.add_property(Property::new("state", run.state.word()));
    let elapsed = run
        .record
        .finished
        .as_ref()
        .map(|finished| finished.elapsed_ms)
        .map(Duration::from_millis);
    if let Some(elapsed) = elapsed {
        suite.set_time(elapsed);
    }
    let problems = policy_problems(&run.record);
    if !problems.is_empty() {
        suite.set_system_err(xml_lines(&problems));
    }
    let causes = Causes::new(run);
    let mut left = QUOTED_OF_ALL;
    for stack in run.stacks() {
        let mut case = TestCase::new(xml(&stack.record.path), status(run, stack, logs, &mut left));
        case.set_classname(xml(&command));
        case.set_time(stack.elapsed().unwrap_or_default());
        for followed in causes.of(&stack.record.path) {
            case.add_property(Property::new("follows", xml(&followed.line())));
        }
        suite.add_test_case(case);
    }
    let mut report = Report::new("orch");
    if let Some(elapsed) = elapsed {
        report.set_time(elapsed);
    }
    report.add_test_suite(suite);
    report.serialize(&mut *out).map_err(io::Error::other)?;
    writeln!(out)
}

/// Returns the outcome of a stack in `JUnit`: a failed stack is a failure, one with an unknown end
/// an error, and one that did not run, or is running, is skipped.
fn status(run: &ShownRun, stack: ShownStack, logs: &Logs, left: &mut usize) -> TestCaseStatus {
    let message = stack.cause().unwrap_or_else(|| stack.outcome().to_owned());
    let mut status = match &stack.record.state {
        state if state.is_success() => return TestCaseStatus::success(),
        state if state.is_failure() => TestCaseStatus::non_success(NonSuccessKind::Failure),
        StackState::Started { .. } if run.state != RunStatus::Running => {
            TestCaseStatus::non_success(NonSuccessKind::Error)
        }
        _ => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(xml(&message));
            return status;
        }
    };
    status
        .set_message(xml(&message))
        .set_type(xml(stack.outcome()));
    if let Some(quote) = quote(stack, logs, QUOTED) {
        if quote.text.len() > *left {
            *left = 0; // what is left out is left out from here on
            status.set_description(xml(&left_out(stack, logs)));
            return status;
        }
        *left = left.saturating_sub(quote.text.len());
        status.set_description(if quote.left_out == 0 {
            quote.text
        } else {
            format!("[…]\n{}", quote.text)
        });
    }
    status
}

/// Returns where to find the rest of the output.
fn left_out(stack: ShownStack, logs: &Logs) -> String {
    let attempt = stack.record.attempts.last();
    match attempt.and_then(|attempt| stack.log_place(logs, attempt)) {
        Some(log) => format!("output left out; see {log}"),
        None => "output left out".to_owned(),
    }
}

/// Returns a text without the characters that XML forbids.
fn xml(text: &str) -> XmlString {
    in_xml(text).into()
}

/// Returns lines without the characters that XML forbids.
fn xml_lines(lines: &[String]) -> XmlString {
    let lines: Vec<String> = lines.iter().map(|line| in_xml(line)).collect();
    lines.join("\n").into()
}

fn in_xml(text: &str) -> String {
    printable(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
