//! The schema of the two blocks.

use super::safeguards::SafeguardKeyword;
use crate::project::attempt::block::{
    CHANGES_EXIT_CODES, SUCCESS_EXIT_CODES, SUCCESS_ON_INTERRUPT,
};

pub(super) enum AttributeType {
    String,
    Bool,
    /// `"on"`, `"off"` or a bool.
    Switch,
    OneOf(&'static [&'static str]),
    Strings,
    StringsOf(&'static [&'static str]),
    /// Own code reads it.
    Own,
}

pub(super) struct Schema {
    /// The block, with its path in messages: `config.run`.
    pub(super) name: &'static str,
    pub(super) attributes: &'static [(&'static str, AttributeType)],
    pub(super) blocks: &'static [Schema],
    /// Whether attributes of any name are allowed, and not evaluated here.
    pub(super) open: bool,
}

const fn block(
    name: &'static str,
    attributes: &'static [(&'static str, AttributeType)],
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

/// The attribute of that block that allows an apply to destroy resources without approval.
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
        ("required_version", AttributeType::String),
        ("required_version_allow_prereleases", AttributeType::Bool),
        ("root", AttributeType::Bool),
    ],
    &[block(
        "config",
        &[
            ("experiments", AttributeType::Strings),
            (
                "disable_safeguards",
                AttributeType::StringsOf(&SafeguardKeyword::NAMES),
            ),
            (
                "enable_safeguards",
                AttributeType::StringsOf(&[SafeguardKeyword::GitOutOfSync.name()]),
            ),
            (
                "order_from",
                AttributeType::StringsOf(&["input", "terragrunt", "remote_state"]),
            ),
            ("references", AttributeType::OneOf(&["strict", "warn"])),
            (DRIVER, AttributeType::String),
        ],
        &[
            block(
                "config.git",
                &[
                    ("default_remote", AttributeType::String),
                    ("default_branch", AttributeType::String),
                    ("check_untracked", AttributeType::Bool),
                    ("check_uncommitted", AttributeType::Bool),
                    ("check_remote", AttributeType::Bool),
                ],
                &[],
            ),
            block(
                APPLY,
                &[(RESOURCE_DESTROY, AttributeType::OneOf(&["allow", "ask"]))],
                &[],
            ),
            block(
                RUN,
                &[
                    ("check_gen_code", AttributeType::Bool),
                    ("concurrency", AttributeType::Own),
                    ("read_only", AttributeType::Strings),
                    ("timeout", AttributeType::Own),
                    (SUCCESS_EXIT_CODES, AttributeType::Own),
                    (SUCCESS_ON_INTERRUPT, AttributeType::Own),
                    (CHANGES_EXIT_CODES, AttributeType::Own),
                ],
                &[
                    open_block(RUN_ENV),
                    open_block(RUN_LETS),
                    block(RUN_RETRY, &[], &[]),
                ],
            ),
            block(
                CHANGE_DETECTION,
                &[
                    ("ignore", AttributeType::Strings),
                    ("environment", AttributeType::Switch),
                ],
                &[
                    block(
                        "config.change_detection.git",
                        &[
                            ("untracked", AttributeType::Switch),
                            ("uncommitted", AttributeType::Switch),
                        ],
                        &[],
                    ),
                    block(
                        "config.change_detection.terragrunt",
                        &[("enabled", AttributeType::OneOf(&["auto", "off", "force"]))],
                        &[],
                    ),
                ],
            ),
            block(
                "config.generate",
                &[(
                    "hcl_magic_header_comment_style",
                    AttributeType::OneOf(&["//", "#"]),
                )],
                &[],
            ),
            block(
                "config.cloud",
                &[
                    ("organization", AttributeType::String),
                    ("location", AttributeType::String),
                ],
                &[block(
                    "config.cloud.targets",
                    &[("enabled", AttributeType::Bool)],
                    &[],
                )],
            ),
            block(LIFECYCLE, &[], &[]),
            block(POLICIES, &[], &[]),
            block(STATE, &[], &[]),
            block(
                "config.telemetry",
                &[("enabled", AttributeType::Switch)],
                &[],
            ),
            open_block("config.targets"),
        ],
    )],
);

impl Schema {
    /// The last part of the name, as the user writes it.
    pub(super) fn keyword(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }
}
