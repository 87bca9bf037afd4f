//! The blocks at the top level of a configuration file.

use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{Block, Body, Name};
use crate::path::ProjectPath;
use crate::project::driver::DRIVER;
use crate::project::module::MODULE;
use crate::project::policy::POLICY;
use crate::project::relocation::{MOVED, REMOVED};
use crate::project::script::SCRIPT;
use crate::project::sharing::{INPUT, OUTPUT, SHARING_BACKEND};

/// Top-level blocks of the language. Those that `orch` does not use are accepted with any content.
const TOP_LEVEL: [&str; 23] = [
    "assert",
    "bundle",
    "component",
    "define",
    DRIVER,
    "environment",
    "generate_file",
    "generate_hcl",
    "globals",
    "import",
    INPUT,
    MODULE,
    MOVED,
    "orch",
    OUTPUT,
    POLICY,
    REMOVED,
    "scaffold",
    SCRIPT,
    SHARING_BACKEND,
    "stack",
    "terramate",
    "vendor",
];

/// Those that `orch` uses.
const USED: [&str; 14] = [
    DRIVER,
    "globals",
    "import",
    INPUT,
    MODULE,
    MOVED,
    "orch",
    OUTPUT,
    POLICY,
    REMOVED,
    SCRIPT,
    SHARING_BACKEND,
    "stack",
    "terramate",
];

/// The blocks that Terramate does not know and would refuse.
const OWN: [&str; 4] = [MODULE, MOVED, POLICY, REMOVED];

/// How the names of files end that Terramate reads.
const TERRAMATE_ENDINGS: [&str; 2] = [".tm", ".tm.hcl"];

/// Returns the keywords of the blocks of a file that only Terramate uses, including `terramate.config.cloud`.
pub(super) fn unused(body: &Body) -> impl Iterator<Item = &Name> {
    let blocks = body.blocks.iter();
    let of_terramate = blocks
        .clone()
        .filter(|block| &*block.kind.text == "terramate");
    let in_config = of_terramate
        .flat_map(|block| &block.body.blocks)
        .filter(|block| &*block.kind.text == "config")
        .flat_map(|block| &block.body.blocks)
        .filter(|block| &*block.kind.text == "cloud");
    let is_unused = |block: &&Block| {
        let kind = &&*block.kind.text;
        TOP_LEVEL.contains(kind) && !USED.contains(kind)
    };
    let unused = blocks.filter(is_unused).chain(in_config);
    unused.map(|block| &block.kind)
}

/// Checks that a file holds known blocks and nothing else.
pub(super) fn check(file: &ProjectPath, body: &Body, problems: &mut Vec<Diagnostic>) {
    for attribute in &body.attributes {
        let name = &attribute.name.text;
        let diagnostic = Diagnostic::error(
            Code::Misplaced,
            format!("attribute `{name}` outside of any block"),
        )
        .label(attribute.name.span, "a file consists of blocks");
        problems.push(
            diagnostic.help("move it into the block it belongs to: `stack { … }`, `globals { … }`"),
        );
    }
    for block in &body.blocks {
        let kind = &*block.kind.text;
        if !TOP_LEVEL.contains(&kind) {
            let diagnostic =
                Diagnostic::error(Code::UnknownBlock, format!("unknown block `{kind}`"));
            let diagnostic = diagnostic.label(block.kind.span, "not a block of this language");
            problems.push(diagnostic.did_you_mean(kind, TOP_LEVEL));
        } else if OWN.contains(&kind) && is_of_terramate(file) {
            let message = format!("a `{kind}` block belongs in an `.orch.hcl` file");
            let diagnostic = Diagnostic::error(Code::Misplaced, message)
                .label(block.kind.span, "Terramate reads this file and refuses it")
                .help("move the block into a file whose name ends in `.orch.hcl`");
            problems.push(diagnostic);
        }
    }
}

fn is_of_terramate(file: &ProjectPath) -> bool {
    let name = file.basename();
    TERRAMATE_ENDINGS
        .iter()
        .any(|ending| name.ends_with(ending))
}
