//! What a configuration file may hold at its top level.

use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::Body;

/// Top-level blocks of the language. Those that `orch` does not use are accepted with any content.
const TOP_LEVEL: [&str; 18] = [
    "assert",
    "bundle",
    "component",
    "define",
    "environment",
    "generate_file",
    "generate_hcl",
    "globals",
    "import",
    "input",
    "orch",
    "output",
    "scaffold",
    "script",
    "sharing_backend",
    "stack",
    "terramate",
    "vendor",
];

/// Checks that a file holds known blocks and nothing else.
pub(super) fn check(body: &Body, problems: &mut Vec<Diagnostic>) {
    for attribute in &body.attributes {
        let name = &attribute.name.text;
        let diagnostic = Diagnostic::error(
            Code::Misplaced,
            format!("attribute `{name}` outside of any block"),
        );
        let diagnostic = diagnostic.label(attribute.name.span, "a file consists of blocks");
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
        }
    }
}
