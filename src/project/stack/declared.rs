//! The `stack` blocks of a directory, merged.
//!
//! A stack has one block. If that is in a file that Terramate also reads, a second block in an `.orch.hcl` file adds
//! the attributes that only `orch` understands.

use std::borrow::Cow;

use super::block::{Declared, from_block};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{Block, Body};
use crate::path::ProjectPath;
use crate::project::discover::{ParsedFile, SourceTree};

/// The ending of files that Terramate does not read.
const OWN_ENDING: &str = ".orch.hcl";

/// Returns the `stack` block of a directory with these files. Errors go to
/// `problems`.
pub(crate) fn declared<'f>(
    files: &'f [ParsedFile],
    problems: &mut Vec<Diagnostic>,
) -> Option<Cow<'f, Block>> {
    let only = |is_own: bool, problems: &mut Vec<Diagnostic>| {
        let files = files
            .iter()
            .filter(|file| file.path.basename().ends_with(OWN_ENDING) == is_own);
        let mut blocks = files.flat_map(|file| file.body.blocks("stack"));
        let first = blocks.next()?;
        problems.extend(blocks.map(|second| one_too_many(first, second, is_own)));
        Some(first)
    };
    match (only(false, problems), only(true, problems)) {
        (Some(shared), Some(own)) => Some(Cow::Owned(merged(shared, own, problems))),
        (block, None) | (None, block) => block.map(Cow::Borrowed),
    }
}

/// Evaluates only some attributes of the `stack` block of a directory with these files, and ignores
/// errors. `None` if there is no block.
pub(crate) fn declared_with(
    files: &[ParsedFile],
    attributes: &[&str],
    directory: &ProjectPath,
    project_files: &SourceTree,
) -> Option<Declared> {
    let ignored = &mut Vec::new();
    let block = declared(files, ignored)?;
    let wanted = attributes.iter().filter_map(|it| block.body.attribute(it));
    let only = Block {
        kind: block.kind.clone(),
        labels: Vec::new(),
        span: block.span,
        body: Body {
            attributes: wanted.cloned().collect(),
            ..Body::default()
        },
    };
    Some(from_block(&only, directory, project_files, ignored))
}

fn one_too_many(first: &Block, second: &Block, is_own: bool) -> Diagnostic {
    let message = if is_own {
        "the `.orch.hcl` files of a directory have one `stack` block"
    } else {
        "a directory can have only one `stack` block"
    };
    Diagnostic::error(Code::DuplicateBlock, message)
        .label(second.kind.span, "second block")
        .label(first.kind.span, "first block")
        .help("merge the two blocks, or move one to a directory of its own")
}

fn merged(shared: &Block, own: &Block, problems: &mut Vec<Diagnostic>) -> Block {
    let mut block = shared.clone();
    block.labels.extend(own.labels.iter().cloned());
    for attribute in &own.body.attributes {
        let name = &*attribute.name.text;
        let Some(first) = shared.body.attribute(name) else {
            block.body.attributes.push(attribute.clone());
            continue;
        };
        let message = format!("`{name}` is set in both `stack` blocks of this directory");
        let diagnostic = Diagnostic::error(Code::DuplicateDefinition, message)
            .again(attribute.name.span, first.name.span);
        problems.push(diagnostic.help("remove one of them"));
    }
    block.body.blocks.extend(own.body.blocks.iter().cloned());
    block
}
