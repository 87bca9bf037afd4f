//! `removed` blocks: stacks that were removed on purpose, and the fate of their resources.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{Kind, REMOVED, covers};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::NoNamespaces;
use crate::language::syntax::{Attribute, Block};
use crate::language::value::Value;
use crate::path::{ProjectPath, StackPath};
use crate::project::blocks::{misplaced_block, no_blocks, no_labels, value, wrong_type};
use crate::project::lifecycle::ProtectedResources;
use crate::project::stack::{Stack, Stacks};
use crate::source::{Span, Spanned};

const LIFECYCLE: &str = "lifecycle";

const KIND: Kind = Kind {
    name: REMOVED,
    attributes: &["from"],
    place: NoNamespaces("a `removed` block"),
};

const RULES: [&str; 3] = ["destroy", "prevent_destroy", "prevent_resource_destroy"];

/// A `removed` block: all stacks recorded at and below a path are removed.
#[derive(Debug, Clone)]
pub struct RemovedBlock {
    /// The removed path: a directory matches all stacks at and below it, an instance only itself.
    pub from: Spanned<StackPath>,
    pub span: Span,
    /// Whether to destroy the resources of the stacks; otherwise they are kept and forgotten.
    pub destroy: bool,
    /// `prevent_destroy`, which overrides the recorded rule.
    pub prevent_destroy: Option<Spanned<bool>>,
    /// `prevent_resource_destroy`, which overrides the recorded rule.
    pub prevent_resource_destroy: Option<Spanned<ProtectedResources>>,
}

impl RemovedBlock {
    /// Returns whether another block is equal, at any place.
    pub fn says_the_same(&self, other: &RemovedBlock) -> bool {
        fn content(block: &RemovedBlock) -> impl PartialEq {
            let stack = block.prevent_destroy.as_ref().map(|rule| rule.value);
            let resources = block.prevent_resource_destroy.as_ref();
            let resources = resources.map(|rule| &rule.value);
            (&block.from.value, block.destroy, stack, resources)
        }
        content(self) == content(other)
    }
}

#[derive(Debug, Default)]
pub struct RemovedBlocks {
    /// By the text of `from`.
    by_from: BTreeMap<String, RemovedBlock>,
}

impl RemovedBlocks {
    /// Takes the blocks of all directories, in the order of their places. Those that contradict each other or the stacks of
    /// the project are reported.
    pub(crate) fn new(
        blocks: Vec<RemovedBlock>,
        stacks: &Stacks,
        problems: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut by_from: BTreeMap<String, RemovedBlock> = BTreeMap::new();
        for block in blocks {
            match by_from.entry(block.from.value.to_string()) {
                Entry::Vacant(vacant) => _ = vacant.insert(block),
                // Several directories import the file.
                Entry::Occupied(first) if first.get().from.span == block.from.span => {}
                Entry::Occupied(first) => {
                    let message = format!("`{}` is removed twice", block.from.value);
                    let diagnostic = Diagnostic::error(Code::DuplicateDefinition, message)
                        .again(block.from.span, first.get().from.span);
                    problems.push(diagnostic.help("remove one of the blocks"));
                }
            }
        }
        for block in by_from.values() {
            problems.extend(block.contradicted(stacks));
        }
        RemovedBlocks { by_from }
    }

    pub fn is_empty(&self) -> bool {
        self.by_from.is_empty()
    }

    /// Returns the block that is about a stack: that with the nearest `from`.
    pub fn of(&self, stack: &StackPath) -> Option<&RemovedBlock> {
        let directory = stack.directory();
        let own = [stack.as_str(), directory.as_str()].into_iter();
        own.chain(directory.ancestors())
            .find_map(|place| self.by_from.get(place))
    }
}

impl RemovedBlock {
    /// Returns the stacks that the block declares as removed, although they exist.
    pub fn in_tree<'s>(&'s self, stacks: &'s Stacks) -> impl Iterator<Item = &'s Stack> {
        let from = &self.from.value;
        let below = stacks
            .at_or_below(from.directory())
            .map(|stack| &stacks[stack]);
        below.filter(move |stack| covers(from, &stack.path))
    }

    /// Reports stacks of the project that the block declares as removed.
    fn contradicted(&self, stacks: &Stacks) -> Option<Diagnostic> {
        let mut here = self.in_tree(stacks);
        let first = here.next()?;
        let message = format!(
            "`{}` is in the project, so it cannot be removed",
            first.path
        );
        let diagnostic = Diagnostic::error(Code::Conflict, message)
            .label(
                self.from.span,
                "this removes all stacks at and below the path",
            )
            .label(first.span, "this stack exists");
        let diagnostic = match here.count() {
            0 => diagnostic,
            more => diagnostic.note(format!("{more} more stacks are there")),
        };
        Some(diagnostic.help("remove the `removed` block, or delete the stack and commit that"))
    }
}

pub(crate) fn read(
    block: &Block,
    directory: &ProjectPath,
    problems: &mut Vec<Diagnostic>,
) -> Option<RemovedBlock> {
    KIND.check(block, problems);
    let from = KIND.location("from", block, directory, problems);
    let mut destroy = true;
    let mut prevent_destroy = None;
    let mut prevent_resource_destroy = None;
    let mut first: Option<&Block> = None;
    for inner in &block.body.blocks {
        if &*inner.kind.text != LIFECYCLE {
            let diagnostic = misplaced_block(inner, block, "only `lifecycle` is allowed here");
            problems.push(diagnostic.did_you_mean(&inner.kind.text, [LIFECYCLE]));
            continue;
        }
        if let Some(first) = first.replace(inner) {
            let message = format!("a `{REMOVED}` block has one `{LIFECYCLE}` block");
            let diagnostic = Diagnostic::error(Code::DuplicateBlock, message)
                .label(inner.kind.span, "second block")
                .label(first.kind.span, "first block");
            problems.push(diagnostic.help("merge the two blocks"));
        }
        no_labels(inner, problems);
        no_blocks(inner, "a removed stack cannot have conditions", problems);
        for attribute in &inner.body.attributes {
            match &*attribute.name.text {
                "destroy" => {
                    destroy = rule(attribute, problems).is_none_or(|rule| rule.value);
                }
                "prevent_destroy" => prevent_destroy = rule(attribute, problems),
                "prevent_resource_destroy" => {
                    let span = attribute.value.span;
                    prevent_resource_destroy = value(&attribute.value, &KIND.place, problems)
                        .and_then(|it| ProtectedResources::read(&it, span, span, problems));
                }
                name => {
                    let message = format!(
                        "unknown attribute `{name}` in the `{LIFECYCLE}` of a `{REMOVED}` block"
                    );
                    let diagnostic = Diagnostic::error(Code::UnknownAttribute, message)
                        .label(attribute.name.span, "has no meaning for removed stacks")
                        .label(block.kind.span, "in this block");
                    problems.push(diagnostic.did_you_mean(name, RULES));
                }
            }
        }
    }
    Some(RemovedBlock {
        from: from?,
        span: block.kind.span,
        destroy,
        prevent_destroy,
        prevent_resource_destroy,
    })
}

fn rule(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Option<Spanned<bool>> {
    let span = attribute.value.span;
    match value(&attribute.value, &KIND.place, problems)? {
        Value::Bool(value) => Some(Spanned { value, span }),
        other => {
            problems.push(wrong_type(attribute, span, "`true` or `false`", &other));
            None
        }
    }
}
