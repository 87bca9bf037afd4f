//! The tables.

use std::fs;
use std::path::Path;

use crate::json;

/// A case of a table.
struct Case {
    line: usize,
    expression: String,
    /// `None` if Terraform refuses the expression.
    expected: Option<String>,
}

fn cases(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut expression = String::new();
    let mut start = 0;
    for (written, line) in text.lines().zip(1..) {
        if let Some(expected) = written.strip_prefix("=> ") {
            cases.push(Case {
                line: start,
                expression: std::mem::take(&mut expression),
                expected: Some(expected.to_owned()).filter(|it| it != "error"),
            });
        } else if expression.is_empty() && (written.is_empty() || written.starts_with('#')) {
        } else {
            if expression.is_empty() {
                start = line;
            }
            expression.push_str(written);
            expression.push('\n');
        }
    }
    assert_eq!(expression, "", "a case without result");
    cases
}

/// Fails with all cases of a table whose results differ.
fn check(name: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/tables");
    let text = fs::read_to_string(directory.join(name)).unwrap();
    let cases = cases(&text);
    assert!(!cases.is_empty());
    let mut wrong = Vec::new();
    for case in &cases {
        let found = json(&case.expression);
        let fits = match (&found, &case.expected) {
            (Ok(found), Some(expected)) => found == expected,
            (Err(_), None) => true,
            _ => false,
        };
        if !fits {
            wrong.push(format!(
                "{name}:{}: {}    expected {}\n    found    {found:?}",
                case.line,
                case.expression,
                case.expected.as_deref().unwrap_or("an error"),
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// Every table in the directory has a test with its name.
macro_rules! tables {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(concat!(stringify!($name), ".txt"));
        })*

        #[test]
        fn every_table_is_checked() {
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/tables");
            let mut found: Vec<String> = fs::read_dir(directory)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort();
            let mut checked = vec![$(concat!(stringify!($name), ".txt"),)*];
            checked.sort_unstable();
            assert_eq!(found, checked);
        }
    };
}

tables! {
    collections
    conversion
    dates
    encoding
    expressions
    files
    formats
    hashes
    network
    numbers
    patterns
    strings
}
