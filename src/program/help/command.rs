//! The man page of a command.

use std::io;

use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use super::MANUAL;

/// The beginning of the text after the flags.
const EXTRA: &str = ".SH EXTRA\n";

pub(crate) struct CommandPage {
    /// As in `orch-run.1`.
    pub(crate) file: String,
    pub(crate) text: String,
}

/// Returns the man pages of a built command and all its subcommands.
pub(crate) fn command_pages(command: &clap::Command) -> io::Result<Vec<CommandPage>> {
    let mut pages = vec![page(command.clone())?];
    for nested in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        pages.extend(command_pages(nested)?);
    }
    Ok(pages)
}

fn page(command: clap::Command) -> io::Result<CommandPage> {
    let extra = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let name = command.get_display_name().unwrap_or(command.get_name());
    let title = name.to_uppercase();
    let page = Man::new(command)
        .title(title)
        .date("\"\"") // or the source would be taken for the date
        .source(concat!("orch ", env!("CARGO_PKG_VERSION")))
        .manual(MANUAL);
    let file = page.get_filename();
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    let mut text = without_backticks(&text);
    // The crate has a section for it, but no good name.
    if let Some(start) = text.find(EXTRA) {
        let next = text[start + EXTRA.len()..].find("\n.SH ");
        let end = next.map_or(text.len(), |next| start + EXTRA.len() + next + 1);
        text.replace_range(start..end, &sections(&extra));
    }
    Ok(CommandPage { file, text })
}

/// Makes the text in backticks bold.
fn without_backticks(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    for line in page.lines() {
        for (index, part) in line.split('`').enumerate() {
            if index > 0 {
                text += if index % 2 == 1 { r"\fB" } else { r"\fR" };
            }
            text += part;
        }
        text.push('\n');
    }
    text
}

/// Splits the text after the flags into sections. A paragraph under a title such as `Examples:`
/// becomes a section and keeps its line breaks.
fn sections(extra: &str) -> String {
    let mut page = Roff::default();
    for paragraph in extra.split("\n\n").filter(|text| !text.trim().is_empty()) {
        let title = paragraph.split_once(":\n");
        let Some((title, lines)) = title.filter(|(title, _)| !title.contains('\n')) else {
            page.control("SH", ["NOTES"]);
            page.text(inlines(&paragraph.replace('\n', " ")));
            continue;
        };
        page.control("SH", [title.to_uppercase().as_str()]);
        page.control("nf", []);
        for line in lines.lines() {
            page.text(inlines(line.strip_prefix("  ").unwrap_or(line)));
        }
        page.control("fi", []);
    }
    let text = page.render();
    // The page already has the definitions at its beginning.
    let start = text.find(".SH ").unwrap_or(text.len());
    text[start..].to_owned()
}

fn inlines(line: &str) -> Vec<Inline> {
    let parts = line.split('`').enumerate().map(|(index, part)| {
        if index % 2 == 1 {
            bold(part)
        } else {
            roman(part)
        }
    });
    parts.collect()
}
