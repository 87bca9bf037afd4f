//! `globals` blocks: values that directories hand down to the stacks below them.
//!
//! This module collects them; [`crate::project::namespaces`] evaluates them, for one stack at a time
//! and only when an expression uses one.

use std::collections::HashMap;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{Block, Expr};
use crate::source::Span;

/// One attribute of a `globals` block.
#[derive(Debug, Clone)]
pub struct GlobalDefinition {
    /// Where the value belongs: the labels of the block, then the name of the attribute.
    pub path: Vec<Box<str>>,
    /// The value; `unset` removes what a directory above defined.
    pub value: Expr,
    /// The name, as written.
    pub span: Span,
}

/// Collects the `globals` blocks of a directory, outermost paths first: local definitions override
/// imported ones, and deeper ones override those above.
pub(crate) fn read<'a>(
    imported: impl Iterator<Item = &'a Block>,
    local: impl Iterator<Item = &'a Block>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<GlobalDefinition> {
    let mut definitions: Vec<GlobalDefinition> = imported.flat_map(definitions_of).collect();
    let mut seen: HashMap<Vec<Box<str>>, Span> = HashMap::new();
    for definition in local.flat_map(definitions_of) {
        if let Some(&first) = seen.get(&definition.path) {
            let name = definition.path.join(".");
            let diagnostic = Diagnostic::error(
                Code::DuplicateDefinition,
                format!("`global.{name}` is set twice in this directory"),
            );
            problems.push(
                diagnostic
                    .label(definition.span, "again here")
                    .label(first, "first here"),
            );
            continue;
        }
        seen.insert(definition.path.clone(), definition.span);
        definitions.push(definition);
    }
    // The sort is stable: at equal depth, imported definitions come first and are overridden.
    definitions.sort_by_key(|definition| definition.path.len());
    definitions
}

fn definitions_of(block: &Block) -> impl Iterator<Item = GlobalDefinition> {
    block.body.attributes.iter().map(|attribute| {
        let labels = block.labels.iter().map(|label| label.text.clone());
        GlobalDefinition {
            path: labels.chain([attribute.name.text.clone()]).collect(),
            value: attribute.value.clone(),
            span: attribute.name.span,
        }
    })
}
