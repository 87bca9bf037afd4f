//! Comma-separated values, read as strictly as Go reads them.
//!
//! The usual libraries accept quotes in the middle of a field, which Terraform refuses.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::arguments::{Arguments, FunctionError};
use crate::language::value::{Value, normal};

pub(super) fn decode(arguments: &Arguments) -> Result<Value, FunctionError> {
    let wrong = |problem: String| FunctionError::Argument(0, problem);
    let text = arguments.text(0).replace("\r\n", "\n");
    // A line end that is cut off counts as a whole one.
    let text = text.strip_suffix('\r').unwrap_or(&text);
    let mut reader = Reader {
        rest: text,
        line: 1,
    };
    let Some(header) = reader.record().map_err(wrong)? else {
        return Err(wrong(
            "the first line, with the names of columns, is missing".to_owned(),
        ));
    };
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut seen = BTreeSet::new();
    for name in header {
        let name = normal(&name.into());
        if !seen.insert(name.clone()) {
            let found = Value::String(name).description();
            return Err(wrong(format!("two columns have {found} as their name")));
        }
        names.push(name);
    }
    let mut rows = Vec::new();
    loop {
        reader.skip_empty_lines();
        let line = reader.line;
        let Some(fields) = reader.record().map_err(wrong)? else {
            return Ok(Value::list(rows));
        };
        if fields.len() != names.len() {
            let count = match fields.len() {
                1 => "1 field".to_owned(),
                count => format!("{count} fields"),
            };
            return Err(wrong(format!(
                "line {line} has {count}, and the first line has {}",
                names.len()
            )));
        }
        // The names are repeated in each row.
        // An object for each row takes much more memory than its text.
        arguments.spend(8 + 4 * names.len() as u64)?;
        let fields = fields.into_iter().map(Value::string);
        rows.push(Value::object(names.iter().cloned().zip(fields)));
    }
}

struct Reader<'t> {
    rest: &'t str,
    line: usize,
}

impl Reader<'_> {
    fn skip_empty_lines(&mut self) {
        while let Some(rest) = self.rest.strip_prefix('\n') {
            self.rest = rest;
            self.line += 1;
        }
    }

    /// Reads the next line with fields in it, which may span several lines inside quotes.
    fn record(&mut self) -> Result<Option<Vec<String>>, String> {
        self.skip_empty_lines();
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut fields = Vec::new();
        loop {
            fields.push(self.field()?);
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
            } else {
                if let Some(rest) = self.rest.strip_prefix('\n') {
                    self.rest = rest;
                    self.line += 1;
                }
                return Ok(Some(fields));
            }
        }
    }

    /// Reads up to the comma or the end of the line.
    fn field(&mut self) -> Result<String, String> {
        let Some(quoted) = self.rest.strip_prefix('"') else {
            let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
            let (field, rest) = self.rest.split_at(end);
            self.rest = rest;
            return match field.find('"') {
                None => Ok(field.to_owned()),
                Some(_) => Err(format!(
                    "line {} has a quote inside an unquoted field",
                    self.line
                )),
            };
        };
        let start = self.line;
        self.rest = quoted;
        let mut field = String::new();
        loop {
            let Some((text, rest)) = self.rest.split_once('"') else {
                return Err(format!("the quote in line {start} is not closed"));
            };
            field.push_str(text);
            self.line += text.matches('\n').count();
            self.rest = rest;
            if let Some(rest) = rest.strip_prefix('"') {
                field.push('"');
                self.rest = rest;
            } else if rest.is_empty() || rest.starts_with([',', '\n']) {
                return Ok(field);
            } else {
                return Err(format!(
                    "line {} has text after a closing quote; a comma or the end of the line is needed",
                    self.line
                ));
            }
        }
    }
}
