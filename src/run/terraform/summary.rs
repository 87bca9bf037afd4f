//! What the output of a plan or an apply says of changes, found while it goes by.
//!
//! Output may be of any size: of a line, no more is kept than a summary needs, and a line is looked at
//! more closely only if it has one of a few words. Terragrunt puts the name of the unit before what
//! Terraform prints; with several units in one output, their summaries add up.

use std::sync::LazyLock;

use anstream::adapter::strip_bytes;
use regex::bytes::Regex;
use serde::Deserialize;

use crate::record::logs::Stream;

/// What a command says that it would change, or has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeSummary {
    /// Whether there are changes.
    pub has_changes: bool,
    /// How many resources they are about, if that is known.
    pub resources: Option<ResourceCounts>,
}

/// To how many resources something happens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceCounts {
    /// They are created, alone or in place of others.
    pub add: u64,
    /// They are updated in place.
    pub change: u64,
    /// They are destroyed.
    pub destroy: u64,
    /// They exist, and their management begins.
    pub import: u64,
    /// They exist, and their management ends.
    pub forget: u64,
}

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
    /// Returns what is known of changes if there are, or are none, and nobody counted.
    pub fn uncounted(has_changes: bool) -> Self {
        ChangeSummary {
            has_changes,
            resources: None,
        }
    }

    fn counted(resources: ResourceCounts) -> Self {
        ChangeSummary {
            has_changes: !resources.is_nothing(),
            resources: Some(resources),
        }
    }

    fn plus(self, other: ChangeSummary) -> Self {
        let of = |it: ChangeSummary| it.resources.unwrap_or_default();
        ChangeSummary {
            has_changes: self.has_changes || other.has_changes,
            resources: Some(of(self).plus(of(other))),
        }
    }
}

/// A longer line is no summary, or one that nobody can tell from the rest.
const LONGEST_LINE: usize = 16 << 10;

/// Finds the summary in the output of an attempt.
#[derive(Debug, Default)]
pub struct SummaryFinder {
    /// The unfinished line of each stream.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    planned: Option<ChangeSummary>,
    /// What has been done says more than what was planned.
    applied: Option<ChangeSummary>,
}

/// Of each summary, a piece that has no escape sequences in it.
static HINT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)Plan: |Plan:\x1b|No changes\.|complete! Resources: |to save these new output|change_summary").expect("it is a pattern")
});

/// A summary as a line of text, after what Terragrunt puts before it.
static SENTENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:.*(?:: |\] |\| ))?(?:",
        r"Plan: (?<planned>\d[^.]*)\.|",
        r"(?:Apply|Destroy) complete! Resources: (?<applied>\d[^.]*)\.|",
        r"(?<none>No changes\.)|",
        r"(?<outputs>You can apply this plan to save these new output values to the Terraform state|",
        r"You can apply this plan to save these new output values to the OpenTofu state))",
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

    /// Returns what the output says of changes; to be called once it has ended.
    pub fn end(&mut self) -> Option<ChangeSummary> {
        for line in [
            std::mem::take(&mut self.stdout),
            std::mem::take(&mut self.stderr),
        ] {
            self.lines(&line);
        }
        self.applied.take().or(self.planned.take())
    }

    /// Looks at whole lines.
    fn lines(&mut self, lines: &[u8]) {
        let mut at = 0;
        while let Some(hint) = HINT.find_at(lines, at) {
            let start = memchr::memrchr(b'\n', &lines[..hint.start()]).map_or(0, |it| it + 1);
            let end = memchr::memchr(b'\n', &lines[hint.end()..]);
            let end = end.map_or(lines.len(), |it| hint.end() + it);
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
            add(&mut self.applied, ChangeSummary::counted(resources));
        } else if let Some(resources) = resources("planned") {
            // A plan that counts nothing moves resources, or changes outputs.
            let mut planned = ChangeSummary::counted(resources);
            planned.has_changes = true;
            add(&mut self.planned, planned);
        } else {
            let mut planned = ChangeSummary::counted(ResourceCounts::default());
            planned.has_changes = found.name("outputs").is_some();
            add(&mut self.planned, planned);
        }
    }

    /// Reads a line of `-json`.
    fn json(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        struct Line {
            r#type: String,
            changes: Changes,
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
        let Ok(Line { r#type, changes }) = serde_json::from_slice::<Line>(line) else {
            return;
        };
        if r#type != "change_summary" {
            return;
        }
        let summary = ChangeSummary::counted(ResourceCounts {
            add: changes.add,
            change: changes.change,
            destroy: changes.remove,
            import: changes.import,
            forget: changes.forget,
        });
        match &*changes.operation {
            "plan" => add(&mut self.planned, summary),
            _ => add(&mut self.applied, summary),
        }
    }
}

/// Appends to a line that has not ended, up to more than is looked at.
fn extend(line: &mut Vec<u8>, bytes: &[u8]) {
    let room = (LONGEST_LINE + 1).saturating_sub(line.len());
    line.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

fn add(sum: &mut Option<ChangeSummary>, summary: ChangeSummary) {
    *sum = Some(sum.map_or(summary, |sum| sum.plus(summary)));
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
