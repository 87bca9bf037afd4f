//! The results of the tests of policies.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::document::write_json_pretty;
use crate::policy::Problem;
use crate::printable::printable;

pub struct TestLine {
    pub file: String,
    /// Its first line, from 1.
    pub line: u32,
    pub name: String,
    pub end: TestEnd,
    pub prints: Vec<String>,
}

pub enum TestEnd {
    Passed,
    Failed,
    Skipped,
    /// A rule failed, or the limits were exceeded.
    Error {
        /// The file that the problem is in: that of the test, or of the policy.
        file: String,
        problem: Problem,
    },
}

impl TestEnd {
    /// Returns whether the test was run and has not passed.
    pub fn is_failure(&self) -> bool {
        matches!(self, TestEnd::Failed | TestEnd::Error { .. })
    }

    fn word(&self) -> &'static str {
        match self {
            TestEnd::Passed => "PASS",
            TestEnd::Failed => "FAIL",
            TestEnd::Skipped => "SKIP",
            TestEnd::Error { .. } => "ERROR",
        }
    }
}

/// Writes the results of tests, and their counts; as text, nothing if there are none.
pub fn write_tests(out: &mut impl Write, is_json: bool, tests: &[TestLine]) -> io::Result<()> {
    if is_json {
        return write_json(out, tests);
    }
    let width = tests.iter().map(|test| test.end.word().len()).max();
    for test in tests {
        let word = test.end.word();
        let width = width.unwrap_or_default();
        let TestLine { file, line, .. } = test;
        let file = printable(file);
        writeln!(
            out,
            "{word:width$}  {file}:{line}: {}",
            printable(&test.name)
        )?;
        if let TestEnd::Error { file, problem } = &test.end {
            writeln!(out, "  {}", problem.in_file(file))?;
        }
        if test.end.is_failure() {
            for print in &test.prints {
                writeln!(out, "  print: {}", printable(print))?;
            }
        }
    }
    if tests.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", "-".repeat(20))?;
    for word in ["PASS", "FAIL", "ERROR", "SKIP"] {
        let number = tests.iter().filter(|test| test.end.word() == word).count();
        if number > 0 || word == "PASS" {
            writeln!(out, "{word}: {number}/{}", tests.len())?;
        }
    }
    Ok(())
}

fn write_json(out: &mut impl Write, tests: &[TestLine]) -> io::Result<()> {
    #[derive(Serialize)]
    struct Test<'a> {
        file: &'a str,
        line: u32,
        name: &'a str,
        result: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<&'a str>,
        prints: &'a [String],
    }
    let tests = tests.iter().map(|test| Test {
        file: &test.file,
        line: test.line,
        name: &test.name,
        result: match &test.end {
            TestEnd::Passed => "passed",
            TestEnd::Failed => "failed",
            TestEnd::Skipped => "skipped",
            TestEnd::Error { .. } => "error",
        },
        problem: match &test.end {
            TestEnd::Error { problem, .. } => Some(&problem.message),
            _ => None,
        },
        prints: &test.prints,
    });
    let tests: Vec<Test> = tests.collect();
    write_json_pretty(out, &BTreeMap::from([("tests", tests)]))
}
