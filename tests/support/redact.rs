//! Takes out of a text what differs from run to run and from machine to machine.
//!
//! [`Redactor`] does so for everything that `orch` prints; [`redact_runs`] goes further for what
//! shows runs recorded.

use regex::Regex;

/// Replaces the texts that it has learnt, and times.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    known: Vec<(String, String)>,
}

impl Redactor {
    /// From now on, one text stands for another.
    pub(crate) fn learn(&mut self, text: impl Into<String>, instead: impl Into<String>) {
        self.known.push((text.into(), instead.into()));
    }

    /// Replaces what is known.
    pub(crate) fn redact_known(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (known, instead) in &self.known {
            text = text.replace(known, instead);
        }
        text
    }

    /// Replaces what is known, and the times and the id that a line about a run has.
    pub(crate) fn redact(&self, text: &str) -> String {
        let text = self.redact_known(text);
        text.lines().map(|line| redact_times(line) + "\n").collect()
    }
}

/// Replaces the times, and the id in the places of logs, in a line that `orch` prints about a run.
fn redact_times(line: &str) -> String {
    let is_time = |text: &str| {
        let number = text.strip_suffix('s');
        number.is_some_and(|number| number.parse::<f64>().is_ok())
    };
    if !line.contains("orch: ") {
        return line.to_owned();
    }
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let time = word.trim_end_matches([';', ',', ':', '\'', ']']);
        let mark = &word[time.len()..];
        let is_measured = words
            .last()
            .is_some_and(|last| last == "in" || last == "after");
        let in_runs = word.strip_prefix(".orch/runs/");
        let names_run = [["runs", "logs"], ["runs", "show"], ["run", "--resume"]]
            .iter()
            .any(|command| words.ends_with(&command.map(str::to_owned)));
        words.push(if is_measured && is_time(time) {
            format!("[time]{mark}")
        } else if let Some((_id, rest)) = in_runs.and_then(|place| place.split_once('/')) {
            format!(".orch/runs/[run]/{rest}")
        } else if names_run {
            "[run]".to_owned()
        } else {
            word.to_owned()
        });
    }
    words.join(" ")
}

/// Replaces the ids of runs by their numbers, oldest first, and whatever else differs between two
/// runs that did the same.
pub(crate) fn redact_runs(ids: &[String], text: &str) -> String {
    let mut text = text.to_owned();
    for (id, number) in ids.iter().zip(1..) {
        text = text.replace(id, &format!("<run {number}>"));
    }
    for (pattern, instead) in [
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>"),
        (r"process \d+( on \S+)?", "process <number>"),
        (r"\b\d+\.\d+s", "<s>"),
        (r"<s> +", "<s>  "),
        (r"column \d+", "column <number>"),
    ] {
        let pattern = Regex::new(pattern).unwrap();
        text = pattern.replace_all(&text, instead).into_owned();
    }
    text
}
