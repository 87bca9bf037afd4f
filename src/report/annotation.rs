//! Annotations of GitHub Actions: log lines that GitHub shows at a line of a file.

use std::io::{self, Write};

use crate::diagnostic::Severity;

#[derive(Debug, Clone, Copy)]
pub struct Annotation<'a> {
    pub severity: Severity,
    /// The file, relative to the root of the repository, with line and column, if there is one.
    pub location: Option<(&'a str, usize, Option<usize>)>,
    pub title: &'a str,
    /// The text, which may have several lines.
    pub message: &'a str,
}

pub fn write_annotation(out: &mut impl Write, annotation: &Annotation<'_>) -> io::Result<()> {
    let command = match annotation.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    write!(out, "::{command} ")?;
    if let Some((file, line, column)) = annotation.location {
        write!(out, "file={},line={line},", property(file))?;
        if let Some(column) = column {
            write!(out, "col={column},")?;
        }
    }
    let (title, message) = (property(annotation.title), data(annotation.message));
    writeln!(out, "title={title}::{message}")
}

fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_an_annotation_or_a_property_early() {
        let mut out = Vec::new();
        let annotation = Annotation {
            severity: Severity::Error,
            location: Some(("a,b:c%/x.tm", 3, Some(7))),
            title: "one: two, three",
            message: "first\r\nsecond: 100%, ::error::",
        };
        write_annotation(&mut out, &annotation).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "::error file=a%2Cb%3Ac%25/x.tm,line=3,col=7,title=one%3A two%2C three::first%0D%0Asecond: 100%25, ::error::\n"
        );
    }
}
