//! Everything that the two blocks may hold.

use super::safeguards::SafeguardKeyword;
use crate::project::attempt::block::{
    CHANGES_EXIT_CODES, SUCCESS_EXIT_CODES, SUCCESS_ON_INTERRUPT,
};

pub(super) enum Type {
    String,
    Bool,
    /// `"on"`, `"off"` or a bool.
    Switch,
    OneOf(&'static [&'static str]),
    Strings,
    StringsOf(&'static [&'static str]),
    /// Read by its own code.
    Own,
}

pub(super) struct Schema {
    /// The block, with its path in messages: `config.run`.
    pub(super) name: &'static str,
    pub(super) attributes: &'static [(&'static str, Type)],
    pub(super) blocks: &'static [Schema],
    /// Whether attributes of any name are allowed, and not evaluated here.
    pub(super) open: bool,
}

const fn block(
    name: &'static str,
    attributes: &'static [(&'static str, Type)],
    blocks: &'static [Schema],
) -> Schema {
    Schema {
        name,
        attributes,
        blocks,
        open: false,
    }
}

const fn open_block(name: &'static str) -> Schema {
    Schema {
        name,
        attributes: &[],
        blocks: &[],
        open: true,
    }
}

/// The attribute of `config` that chooses a driver.
pub(super) const DRIVER: &str = "driver";

pub(super) const APPLY: &str = "config.apply";

/// The attribute of that block that says whether resources may be destroyed without approval.
pub(super) const RESOURCE_DESTROY: &str = "resource_destroy";

pub(super) const RUN: &str = "config.run";

/// The block whose content is checked where it is read.
pub(super) const RUN_RETRY: &str = "config.run.retry";

/// Other such blocks.
pub(super) const LIFECYCLE: &str = "config.lifecycle";

pub(super) const POLICIES: &str = "config.policies";

pub(super) const STATE: &str = "config.state";

pub(super) const RUN_ENV: &str = "config.run.env";

pub(super) const RUN_LETS: &str = "config.run.lets";

pub(super) const CHANGE_DETECTION: &str = "config.change_detection";

/// Everything that the two blocks may hold.
pub(super) static SCHEMA: Schema = block(
    "terramate",
    &[
        ("required_version", Type::String),
        ("required_version_allow_prereleases", Type::Bool),
        ("root", Type::Bool),
    ],
    &[block(
        "config",
        &[
            ("experiments", Type::Strings),
            (
                "disable_safeguards",
                Type::StringsOf(&SafeguardKeyword::NAMES),
            ),
            (
                "enable_safeguards",
                Type::StringsOf(&[SafeguardKeyword::GitOutOfSync.name()]),
            ),
            ("references", Type::OneOf(&["strict", "warn"])),
            (DRIVER, Type::String),
        ],
        &[
            block(
                "config.git",
                &[
                    ("default_remote", Type::String),
                    ("default_branch", Type::String),
                    ("check_untracked", Type::Bool),
                    ("check_uncommitted", Type::Bool),
                    ("check_remote", Type::Bool),
                ],
                &[],
            ),
            block(
                APPLY,
                &[(RESOURCE_DESTROY, Type::OneOf(&["allow", "ask"]))],
                &[],
            ),
            block(
                RUN,
                &[
                    ("check_gen_code", Type::Bool),
                    ("concurrency", Type::Own),
                    ("read_only", Type::Strings),
                    ("timeout", Type::Own),
                    (SUCCESS_EXIT_CODES, Type::Own),
                    (SUCCESS_ON_INTERRUPT, Type::Own),
                    (CHANGES_EXIT_CODES, Type::Own),
                ],
                &[
                    open_block(RUN_ENV),
                    open_block(RUN_LETS),
                    block(RUN_RETRY, &[], &[]),
                ],
            ),
            block(
                CHANGE_DETECTION,
                &[("ignore", Type::Strings), ("environment", Type::Switch)],
                &[
                    block(
                        "config.change_detection.git",
                        &[("untracked", Type::Switch), ("uncommitted", Type::Switch)],
                        &[],
                    ),
                    block(
                        "config.change_detection.terragrunt",
                        &[("enabled", Type::OneOf(&["auto", "off", "force"]))],
                        &[],
                    ),
                ],
            ),
            block(
                "config.generate",
                &[("hcl_magic_header_comment_style", Type::OneOf(&["//", "#"]))],
                &[],
            ),
            block(
                "config.cloud",
                &[("organization", Type::String), ("location", Type::String)],
                &[block(
                    "config.cloud.targets",
                    &[("enabled", Type::Bool)],
                    &[],
                )],
            ),
            block(LIFECYCLE, &[], &[]),
            block(POLICIES, &[], &[]),
            block(STATE, &[], &[]),
            block("config.telemetry", &[("enabled", Type::Switch)], &[]),
            open_block("config.targets"),
        ],
    )],
);

impl Schema {
    /// The last word of the name: what the user writes.
    pub(super) fn keyword(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }
}
