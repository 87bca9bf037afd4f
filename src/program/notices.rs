//! Shows notices of the library on the terminal, and in GitHub Actions as annotations.

use std::error::Error;
use std::path::Path;

use orch::notice::{Notice, Notices};

use super::console;
use super::github::Github;

pub(crate) fn of(root: &Path) -> Notices {
    let root = root.to_owned();
    Notices::new(move |notice| give(&root, &notice))
}

fn give(root: &Path, notice: &Notice<'_>) {
    match *notice {
        Notice::Base(base, reason) => console::base(base, reason),
        Notice::Note(message) => console::note(message),
        Notice::Warning(message) => console::warning(message),
        Notice::Error(error) => console::error(error),
        Notice::Errors(errors, sources) => {
            if let Some(github) = Github::detect(root) {
                let messages = errors.iter().map(|error| with_cause(*error));
                github.errors(messages, sources);
            }
            for error in errors {
                console::error(*error);
            }
        }
        Notice::Help(message) => console::help(message),
        Notice::Diagnostics(problems, sources) => console::diagnostics(problems, sources),
        Notice::Annotated(problems, sources) => {
            console::diagnostics(problems, sources);
            if let Some(github) = Github::detect(root) {
                github.diagnostics(problems, sources);
            }
        }
        Notice::Failures(failures, sources) => {
            if let Some(github) = Github::detect(root) {
                github.failures(failures, sources);
            }
        }
    }
}

fn with_cause(error: &dyn Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
