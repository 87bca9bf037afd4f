//! Flags of `orch run` about the record in the state, policies, shared outputs, exit statuses, events and safeguards.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use orch::project::attempt::ExitCodes;
use orch::project::config::{RecordKind, SafeguardKeyword};
use orch::project::policy::PolicyRun;
use orch::record::journal::Sharing;
use orch::run::event_stream::{Destination, EventStream, open_descriptor};

use crate::program::commands::reports::{check_place, resolved};
use crate::program::commands::working_directory;
use crate::program::error::{ProgramError, Result};

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Record the run in the state, as an apply or as a destroy, with any command
    ///
    /// By default, the patterns of `record` in the configuration of the state decide. See `orch
    /// help recording`.
    #[arg(
        long,
        value_enum,
        value_name = "ACTION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "apply"
    )]
    pub(crate) record: Option<RecordAs>,

    /// Do not record the run in the state
    #[arg(long, conflicts_with = "record")]
    pub(crate) no_record: bool,

    /// Apply HEAD even to stacks last applied from a commit that HEAD lacks, which reverts that
    /// commit
    ///
    /// Without it, such a run is refused. See `orch help state`.
    #[arg(long, conflicts_with = "no_record")]
    pub(crate) allow_rollback: bool,
}

impl RecordArgs {
    pub(crate) fn recording(&self) -> Option<RecordKind> {
        match self.record {
            Some(RecordAs::Apply) => Some(RecordKind::Apply),
            Some(RecordAs::Destroy) => Some(RecordKind::Destroy),
            None => self.no_record.then_some(RecordKind::Never),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordAs {
    /// It applies the configuration
    Apply,
    /// It destroys the resources
    Destroy,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Policies")]
pub(crate) struct PolicyFlags {
    /// Evaluate trigger policies after each stack
    ///
    /// The stacks that they name run as follow-ups, selected or not. Follow-ups of a failure ignore
    /// --on-error. See `orch help policies`.
    #[arg(
        long,
        value_enum,
        value_name = "AS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "tracked"
    )]
    pub(crate) policies: Option<PoliciesArg>,

    /// Run this command in follow-ups, instead of the command of the run
    #[arg(long, value_name = "COMMAND")]
    pub(crate) followup: Option<String>,

    /// Pass this text to policies, in `run.user_provided_metadata` (can be repeated)
    #[arg(long, value_name = "TEXT")]
    pub(crate) metadata: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PoliciesArg {
    /// Tracked runs, which deploy
    Tracked,
    /// Tasks; needs --followup
    Task,
    /// No policy is evaluated
    Off,
}

impl From<PoliciesArg> for PolicyRun {
    fn from(policies: PoliciesArg) -> Self {
        match policies {
            PoliciesArg::Tracked => PolicyRun::Tracked,
            PoliciesArg::Task => PolicyRun::Task,
            PoliciesArg::Off => PolicyRun::Off,
        }
    }
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Shared outputs")]
pub(crate) struct SharingArgs {
    /// Read the outputs that `input` blocks name, and pass them on as variables of Terraform
    ///
    /// Before the command of a stack, the command of the `sharing_backend` runs in each stack that its
    /// inputs name, with the environment of that stack. No value is shown, logged or recorded.
    #[arg(long)]
    pub(crate) enable_sharing: bool,

    /// With --enable-sharing, use the `mock` of an input that has no value
    #[arg(long, requires = "enable_sharing")]
    pub(crate) mock_on_fail: bool,
}

impl SharingArgs {
    pub(super) fn sharing(&self) -> Option<Sharing> {
        match (self.enable_sharing, self.mock_on_fail) {
            (false, _) => None,
            (true, false) => Some(Sharing::On),
            (true, true) => Some(Sharing::WithMocks),
        }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Exit statuses")]
pub(crate) struct ExitCodeArgs {
    /// Exit statuses of commands that count as success, besides 0
    ///
    /// Replaces `success_exit_codes` in the configuration.
    #[arg(long, value_name = "STATUS,…", value_delimiter = ',', value_parser = exit_status())]
    success_exit_code: Vec<i32>,

    /// Exit statuses of commands that count as success with changes
    ///
    /// Replaces `changes_exit_codes` in the configuration. Unless this flag or the configuration names
    /// others, 2 is one of these for `plan -detailed-exitcode` of terraform, tofu and terragrunt.
    #[arg(long, value_name = "STATUS,…", value_delimiter = ',', value_parser = exit_status())]
    changes_exit_code: Vec<i32>,

    /// Exit with status 2 if nothing failed and any stack has changes
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

impl ExitCodeArgs {
    pub(crate) fn exit_codes(&self) -> ExitCodes {
        let said = |codes: &[i32]| (!codes.is_empty()).then(|| codes.into());
        ExitCodes {
            success: said(&self.success_exit_code),
            changes: said(&self.changes_exit_code),
            success_on_interrupt: None,
        }
    }
}

/// Parses the exit status of a command.
fn exit_status() -> impl clap::builder::TypedValueParser<Value = i32> {
    clap::value_parser!(i32).range(0..=255)
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct EventArgs {
    /// Write each event to a file as it happens, as a line of the journal
    ///
    /// An existing FILE is replaced; `fd:N` is a file descriptor that orch inherits. See `orch help
    /// journal` for the lines.
    #[arg(
        long,
        value_name = "FILE|fd:N",
        value_parser = Destination::parse,
        conflicts_with = "dry_run"
    )]
    events: Option<Destination>,
}

impl EventArgs {
    /// Opens the descriptor, if the flag names one. Call it before `orch` opens any file.
    pub(super) fn descriptor(&self) -> Result<Option<File>> {
        let Some(Destination::Descriptor(number)) = &self.events else {
            return Ok(None);
        };
        let problem = match open_descriptor(*number) {
            Ok(file) => return Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => "is not open".to_owned(),
            Err(error) => format!("cannot be written to: {error}"),
        };
        let message = format!("in --events: descriptor {number} {problem}");
        Err(ProgramError::usage(message))
    }

    /// Returns the file that the flag names, if any, after a check that it can be written.
    pub(super) fn file(&self, chdir: &[PathBuf]) -> Result<Option<PathBuf>> {
        let Some(Destination::File(typed)) = &self.events else {
            return Ok(None);
        };
        let file = resolved(&working_directory(chdir)?.join(typed));
        check_place(&file, typed)
            .with_context(|| format!("the file `{}` cannot be written", typed.display()))?;
        Ok(Some(file))
    }

    /// Begins to write to the open descriptor, or to the file.
    pub(super) fn stream(
        descriptor: Option<File>,
        file: Option<PathBuf>,
    ) -> Result<Option<EventStream>> {
        let stream = match (descriptor, file) {
            (Some(open), _) => EventStream::new(open),
            (None, Some(file)) => EventStream::replace(file),
            (None, None) => return Ok(None),
        };
        Ok(Some(stream.context(
            "failed to start the thread that writes events",
        )?))
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct SafeguardArgs {
    /// Disable these safeguards
    ///
    /// Before the first command starts, orch refuses to run if files are untracked
    /// (`git-untracked`) or differ from HEAD (`git-uncommitted`). If the configuration turns that
    /// on, it also refuses if HEAD lacks the tip of the remote's default branch (`git-out-of-sync`).
    /// `orch run` refuses to destroy a stack before, or without, the stacks that run after it
    /// (`destroy-order`).
    ///
    /// Commands that only read are allowed: `plan`, `validate`, `show`, `output`, `providers`,
    /// `graph`, `version` and `fmt` of terraform, tofu and terragrunt, and those of
    /// `config.run.read_only`. With `none`, orch refuses them too.
    ///
    /// Without this flag, the variable `ORCH_DISABLE_SAFEGUARDS` or `TM_DISABLE_SAFEGUARDS` counts,
    /// then `config.disable_safeguards`. See `orch help safeguards`.
    #[arg(
        long,
        value_name = "WHAT,…",
        value_delimiter = ',',
        value_parser = keyword_parser(),
        help_heading = "Safeguards"
    )]
    pub(crate) disable_safeguards: Vec<SafeguardKeyword>,

    /// The same as --disable-safeguards=all
    #[arg(
        short = 'X',
        overrides_with = "disable_all_safeguards",
        help_heading = "Safeguards"
    )]
    pub(crate) disable_all_safeguards: bool,
}

/// Parses the names of safeguards.
fn keyword_parser() -> impl TypedValueParser<Value = SafeguardKeyword> {
    let explained = SafeguardKeyword::ALL.map(|keyword| {
        PossibleValue::new(keyword.name()).help(match keyword {
            SafeguardKeyword::All => "Every safeguard",
            SafeguardKeyword::None => "No safeguard: all are on, except others in this list",
            SafeguardKeyword::Git => "The three git safeguards",
            SafeguardKeyword::GitUntracked => "Untracked files",
            SafeguardKeyword::GitUncommitted => "Files that differ from HEAD",
            SafeguardKeyword::GitOutOfSync => "HEAD lacks the tip of the remote's default branch",
            SafeguardKeyword::DestroyOrder => "Stacks destroyed before those that run after them",
            SafeguardKeyword::OutdatedCode => "No effect: only Terramate generates code",
        })
    });
    PossibleValuesParser::new(explained)
        .try_map(|name| SafeguardKeyword::parse(&name).ok_or("not a safeguard"))
}
