//! Shows notices of the library: on the terminal, and in GitHub Actions also as annotations.

use std::path::Path;

use orch::notice::Notice;

use super::console;
use super::github::Github;

/// Shows a notice about the project at a root.
pub(crate) fn give(root: &Path, notice: &Notice<'_>) {
    match *notice {
        Notice::Base(base, reason) => console::base(base, reason),
        Notice::Note(message) => console::note(message),
        Notice::Warning(message) => console::warning(message),
        Notice::Help(message) => console::help(message),
        Notice::Diagnostics(problems, sources) => console::diagnostics(problems, sources),
        Notice::Annotated(problems, sources) => {
            console::diagnostics(problems, sources);
            if let Some(github) = Github::detect(root) {
                github.diagnostics(problems, sources);
            }
        }
    }
}
