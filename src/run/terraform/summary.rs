//! Finds the summary of changes in the output of a plan or an apply, while it passes through.
//!
//! Output may be of any size, so at most the length of a summary is kept of each line, and a line is parsed only if
//! it contains one of a few words. Terragrunt puts the name of the unit before the lines of Terraform; if one output
//! has several units, their summaries are added.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anstream::adapter::strip_bytes;
use regex::bytes::Regex;
use serde::Deserialize;

use crate::record::journal::{ChangeSummary, ResourceCounts};
use crate::record::logs::Stream;

impl ResourceCounts {
    fn plus(self, other: ResourceCounts) -> Self {
        ResourceCounts {
            add: self.add.saturating_add(other.add),
            change: self.change.saturating_add(other.change),
            destroy: self.destroy.saturating_add(other.destroy),
            import: self.import.saturating_add(other.import),
            forget: self.forget.saturating_add(other.forget),
        }
    }

    fn is_nothing(self) -> bool {
        self == ResourceCounts::default()
    }
}

impl ChangeSummary {
    /// Returns a summary without numbers.
    pub fn uncounted(has_changes: bool) -> Self {
        ChangeSummary {
            has_changes,
            resources: None,
        }
    }
}

/// A longer line is not a summary, or cannot be recognized as one.
const LONGEST_LINE: usize = 16 << 10;

#[derive(Debug, Default)]
pub struct SummaryFinder {
    /// The unfinished line of each stream.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// How many resources a plan is about.
    planned: Option<ResourceCounts>,
    /// Whether a plan has changes, which need not be about resources that are counted: outputs change,
    /// and resources move.
    has_changes: bool,
    /// How many resources an apply was about.
    applied: Option<ResourceCounts>,
}

/// A piece of each summary that contains no escape sequences.
static HINT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?-u)Plan: |Plan:\x1b|No changes\.|complete! Resources: |to save these new output|",
        r#"change_summary|"planned_change"|"outputs""#,
    ))
    .expect("it is a pattern")
});

/// A summary as a line of text, after Terragrunt's prefix. Lines may be wrapped after 78 columns.
static SENTENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:.*\b(?:terraform|tofu): )?(?:",
        r"Plan: (?<planned>\d[^.]*)\.|",
        r"(?:Apply|Destroy) complete! Resources: (?<applied>\d[^.]*)\.|",
        r"(?<none>No changes\. (?:Your infrastructure|Infrastructure|No objects))|",
        r"(?<outputs>You can apply this plan to save these new output values))",
    ))
    .expect("it is a pattern")
});

/// A number of resources and what happens to them.
static COUNT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\d{1,18}) (?:to )?(add|chang|destroy|import|forg)").expect("it is a pattern")
});

impl SummaryFinder {
    /// Looks at the next bytes of a stream.
    pub fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let unfinished = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let Some(first) = memchr::memchr(b'\n', bytes) else {
            return extend(unfinished, bytes);
        };
        let last = memchr::memrchr(b'\n', bytes).unwrap_or(first);
        extend(unfinished, &bytes[..first]);
        let line = std::mem::take(unfinished);
        extend(unfinished, &bytes[last + 1..]);
        self.lines(&line);
        if first < last {
            self.lines(&bytes[first + 1..last]);
        }
    }

    /// Returns the reported changes. Call it once the output has ended.
    pub fn end(&mut self) -> Option<ChangeSummary> {
        let unfinished = [
            std::mem::take(&mut self.stdout),
            std::mem::take(&mut self.stderr),
        ];
        for line in &unfinished {
            self.lines(line);
        }
        let Self {
            planned,
            has_changes,
            applied,
            ..
        } = std::mem::take(self);
        let resources = applied.or(planned)?;
        let has_changes = has_changes || !resources.is_nothing();
        // An apply of a saved plan doesn't report outputs and moves.
        (has_changes || planned.is_some()).then_some(ChangeSummary {
            has_changes,
            resources: Some(resources),
        })
    }

    /// Examines whole lines.
    fn lines(&mut self, lines: &[u8]) {
        let mut at = 0;
        while let Some(hint) = HINT.find_at(lines, at) {
            let start = memchr::memrchr(b'\n', &lines[..hint.start()]).map_or(0, |it| it + 1);
            let end = memchr::memchr(b'\n', &lines[hint.end()..])
                .map_or(lines.len(), |it| hint.end() + it);
            if end - start <= LONGEST_LINE {
                self.line(&lines[start..end]);
            }
            at = end;
        }
    }

    fn line(&mut self, line: &[u8]) {
        if line.trim_ascii_start().starts_with(b"{") {
            return self.json(line);
        }
        let line = strip_bytes(line).into_vec();
        let Some(found) = SENTENCE.captures(line.trim_ascii()) else {
            return;
        };
        let resources = |name: &str| Some(counts(found.name(name)?.as_bytes()));
        if let Some(resources) = resources("applied") {
            add(&mut self.applied, resources);
        } else {
            // Without changes, there is no line with counts.
            self.has_changes |= found.name("none").is_none();
            add(&mut self.planned, resources("planned").unwrap_or_default());
        }
    }

    /// Reads a line of `-json`.
    fn json(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Line {
            ChangeSummary { changes: Changes },
            PlannedChange,
            Outputs { outputs: BTreeMap<String, Output> },
        }
        #[derive(Deserialize)]
        struct Changes {
            #[serde(default)]
            add: u64,
            #[serde(default)]
            change: u64,
            #[serde(default)]
            remove: u64,
            #[serde(default)]
            import: u64,
            #[serde(default)]
            forget: u64,
            operation: String,
        }
        #[derive(Deserialize)]
        struct Output {
            /// Only a plan has it.
            action: Option<String>,
        }
        match serde_json::from_slice::<Line>(line) {
            Ok(Line::ChangeSummary { changes }) => {
                let resources = ResourceCounts {
                    add: changes.add,
                    change: changes.change,
                    destroy: changes.remove,
                    import: changes.import,
                    forget: changes.forget,
                };
                match &*changes.operation {
                    "plan" => add(&mut self.planned, resources),
                    _ => add(&mut self.applied, resources),
                }
            }
            Ok(Line::PlannedChange) => self.has_changes = true,
            Ok(Line::Outputs { outputs }) => {
                let mut actions = outputs
                    .values()
                    .filter_map(|output| output.action.as_deref());
                self.has_changes |= actions.any(|action| action != "noop");
            }
            Err(_) => {}
        }
    }
}

/// Appends to an unfinished line, up to just above the length limit.
fn extend(line: &mut Vec<u8>, bytes: &[u8]) {
    let room = (LONGEST_LINE + 1).saturating_sub(line.len());
    line.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

fn add(sum: &mut Option<ResourceCounts>, counts: ResourceCounts) {
    *sum = Some(sum.unwrap_or_default().plus(counts));
}

/// Reads a list like `1 to import, 3 to add, 1 to change, 0 to destroy`, or `3 added, 1 changed`.
fn counts(list: &[u8]) -> ResourceCounts {
    let mut counts = ResourceCounts::default();
    for found in COUNT.captures_iter(list) {
        let digits = found[1].iter();
        let number = digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        match &found[2] {
            b"add" => counts.add = number,
            b"chang" => counts.change = number,
            b"destroy" => counts.destroy = number,
            b"import" => counts.import = number,
            _ => counts.forget = number,
        }
    }
    counts
}

#[cfg(test)]
mod tests;
