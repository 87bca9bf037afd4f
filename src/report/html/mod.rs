//! The report of a run as an HTML page: one file that needs neither a server nor a network.
//!
//! Names, commands and logs are untrusted. The page has them only as JSON in script elements that
//! no browser executes, escaped so that nothing can end them, and in two lines of escaped text. The
//! page's script shows them as text and never as markup. The page's policy allows its own script
//! and style, by digest, and nothing else. Each log has its own element, which the page parses when
//! the user reads or searches it; `orch` never holds a whole log in memory.

mod data;
mod log;
mod script_text;
#[cfg(test)]
mod tests;
mod timeline;

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::runs::{ShownRun, words};
use crate::record::journal::RunStatus;
use crate::record::logs::Logs;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// The parts of the script, in this order: later ones use earlier ones.
const SCRIPT: [&str; 8] = [
    include_str!("data.js"),
    include_str!("logs.js"),
    include_str!("list.js"),
    include_str!("canvas.js"),
    include_str!("graph.js"),
    include_str!("timeline.js"),
    include_str!("search.js"),
    include_str!("page.js"),
];

/// Writes the report of a run as a page. Fails if it cannot be written. If a log cannot be read,
/// the page says so.
pub fn write_html(out: &mut impl Write, run: &ShownRun, logs: &Logs) -> io::Result<()> {
    let files = log::find(run, logs);
    let header = &run.record.header;
    let (headline, command) = (data::headline(run), words(&header.command));
    let script = format!("\"use strict\";\n{{\n{}}}\n", SCRIPT.concat());
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        out.write_all(before.as_bytes())?;
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        match name {
            "headline" => write!(out, "{}", script_text::escape_html(&headline))?,
            "command" => write!(out, "{}", script_text::escape_html(&command))?,
            "state" => write!(out, "{}", run.state.word())?,
            "colour" => write!(out, "{}", colour(run))?,
            "style-digest" => write!(out, "{}", source_digest(STYLE))?,
            "script-digest" => write!(out, "{}", source_digest(&script))?,
            "style" => out.write_all(STYLE.as_bytes())?,
            "script" => out.write_all(script.as_bytes())?,
            "run" => script_text::write_json(out, &data::PageData::new(run, &files))?,
            "logs" => log::write(out, &files, logs)?,
            other => unreachable!("the page has no place `{other}`"),
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

fn colour(run: &ShownRun) -> &'static str {
    match run.state {
        RunStatus::Succeeded => "1a7f37",
        RunStatus::Failed | RunStatus::Killed | RunStatus::Interrupted => "cf222e",
        RunStatus::Running | RunStatus::Unknown | RunStatus::DryRun => "57606a",
    }
}

/// Returns a source expression of a content security policy: `'sha256-…'`.
fn source_digest(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}
