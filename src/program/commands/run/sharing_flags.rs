//! Flags of `orch run` about shared outputs.

use clap::Args;
use orch::record::journal::Sharing;

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
