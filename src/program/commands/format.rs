//! `--format`: output for people or for programs.

use clap::{Args, ValueEnum};
use orch::report::{JsonDocument, MARKDOWN_BYTES, PlanDetails};

use super::reports::max_bytes;
use crate::program::error::{ProgramError, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

impl Format {
    /// Returns the JSON document that standard output expects, if any.
    pub(super) fn document(self, document: JsonDocument) -> Option<JsonDocument> {
        (self == Format::Json).then_some(document)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// For the comment of a pull request
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DetailsArg {
    /// A row
    None,
    /// A row, and the resources that change
    Resources,
    /// All resources, and the output of its tool
    Full,
}

impl DetailsArg {
    /// Returns the requested details, or the default.
    pub(super) fn of(details: Option<Self>) -> PlanDetails {
        match details {
            Some(DetailsArg::None) => PlanDetails::None,
            None | Some(DetailsArg::Resources) => PlanDetails::Resources,
            Some(DetailsArg::Full) => PlanDetails::Full,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanFormatArgs {
    /// The format of the plan
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    pub(super) format: PlanFormat,

    /// The maximum size of `--format markdown` [default: 65536]
    ///
    /// The default is the limit for a comment on GitHub. Rows that do not fit are left out and
    /// counted. The minimum is 1024.
    #[arg(long, value_name = "BYTES", value_parser = max_bytes())]
    max_bytes: Option<u64>,

    /// How much to print of each stack [default: resources]
    #[arg(long, value_enum, value_name = "WHAT")]
    details: Option<DetailsArg>,
}

impl PlanFormatArgs {
    /// Returns the JSON document that standard output expects, if any.
    pub(super) fn document(&self) -> Option<JsonDocument> {
        (self.format == PlanFormat::Json).then_some(JsonDocument::Stacks)
    }

    /// Returns how much the text shows of each stack. Fails if the flag is given for another
    /// format.
    pub(super) fn details(&self) -> Result<PlanDetails> {
        match self.details {
            Some(_) if self.format != PlanFormat::Text => Err(ProgramError::usage(
                "`--details` is only for `--format text`: JSON and Markdown have all details",
            )),
            details => Ok(DetailsArg::of(details)),
        }
    }

    /// Returns the maximum length of a Markdown page. Fails if the flag is given for another
    /// format.
    pub(super) fn max_bytes(&self) -> Result<usize> {
        match self.max_bytes {
            Some(_) if self.format != PlanFormat::Markdown => Err(ProgramError::usage(
                "`--max-bytes` is about Markdown: add `--format markdown`",
            )),
            Some(bytes) => Ok(usize::try_from(bytes).unwrap_or(usize::MAX)),
            None => Ok(MARKDOWN_BYTES),
        }
    }
}
