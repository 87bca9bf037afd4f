//! The flags that disable safeguards.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use orch::project::config::SafeguardKeyword;

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
