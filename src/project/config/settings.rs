//! The configuration of the project as a whole.

use super::{CommandPattern, SafeguardSettings, StateBlock, TagLimit};
use crate::project::policy::PolicySettings;
use crate::source::Spanned;

/// The uses of data, besides inputs, that order stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderFrom {
    /// `dependency` and `dependencies` blocks of Terragrunt.
    pub terragrunt: bool,
    /// `terraform_remote_state` data sources.
    pub remote_state: bool,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting")]
pub struct ProjectSettings {
    /// `config.references = "strict"`: references that name nothing are errors.
    pub strict_references: bool,
    /// `config.order_from`: the kinds of data whose users run after its sources. Inputs always do.
    pub order_from: OrderFrom,
    /// `config.git.default_remote`.
    pub default_remote: Option<String>,
    /// `config.git.default_branch`.
    pub default_branch: Option<String>,
    /// `config.disable_safeguards` and the other settings that switch safeguards.
    pub safeguards: SafeguardSettings,
    /// `config.change_detection.git.untracked`: untracked files count.
    pub untracked: bool,
    /// `config.change_detection.git.uncommitted`: uncommitted changes count.
    pub uncommitted: bool,
    /// `config.change_detection.environment`: computed environment values are inputs.
    pub environment: bool,
    /// `config.change_detection.terragrunt.enabled`: Terragrunt files are read.
    pub terragrunt: bool,
    /// `config.run.concurrency`, in the order of the tags, each with its tag as written, or the whole attribute if
    /// that is computed.
    pub concurrency: Vec<Spanned<TagLimit>>,
    /// `config.run.read_only`: commands that change nothing, besides those that `orch` knows.
    pub read_only: Vec<CommandPattern>,
    pub policies: PolicySettings,
    /// `config.state`: the recording of applied stacks, and its backend.
    pub state: Option<StateBlock>,
}

impl Default for ProjectSettings {
    fn default() -> Self {
        ProjectSettings {
            strict_references: false,
            order_from: OrderFrom::default(),
            default_remote: None,
            default_branch: None,
            safeguards: SafeguardSettings::default(),
            untracked: true,
            uncommitted: true,
            environment: true,
            terragrunt: true,
            concurrency: Vec::new(),
            read_only: Vec::new(),
            policies: PolicySettings::default(),
            state: None,
        }
    }
}
