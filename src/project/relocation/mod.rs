//! `moved` and `removed` blocks, for stacks that are no longer at their recorded paths.
//!
//! Both are allowed in any `.orch.hcl` file and affect the whole project. This module doesn't know records or git.

mod moved;
mod removed;
mod subtrees;

pub(crate) use self::moved::read as read_moved;
pub use self::moved::{MovedBlock, Moves};
pub(crate) use self::removed::read as read_removed;
pub use self::removed::{RemovedBlock, RemovedBlocks};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::NoNamespaces;
use crate::language::syntax::{Attribute, Block};
use crate::path::{KeyFilter, ProjectPath, StackPath};
use crate::project::blocks::{needs, only_attributes, string};
use crate::source::Spanned;

/// The block for moved stacks.
pub(crate) const MOVED: &str = "moved";

/// The block for removed stacks.
pub(crate) const REMOVED: &str = "removed";

#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    attributes: &'static [&'static str],
    place: NoNamespaces,
}

impl Kind {
    /// Reports labels and unknown attributes of a block.
    fn check(self, block: &Block, problems: &mut Vec<Diagnostic>) {
        let name = self.name;
        for label in &block.labels {
            let message = format!("a `{name}` block has no labels");
            let diagnostic = Diagnostic::error(Code::UnexpectedLabel, message)
                .label(label.span, "unexpected label")
                .help("remove the label; the attribute `from` names the stacks");
            problems.push(diagnostic);
        }
        only_attributes(block, self.attributes, problems);
    }

    /// Returns a required path of a block in a file of this directory. It may name an instance.
    fn location(
        self,
        name: &'static str,
        block: &Block,
        directory: &ProjectPath,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Spanned<StackPath>> {
        let Some(attribute) = block.body.attribute(name) else {
            let help = format!("write the path of the stacks: `{name} = \"/…\"`");
            problems.push(needs(block, name).help(help));
            return None;
        };
        let written = string(attribute, "a path", &self.place, problems)?;
        located(attribute, &written.value, directory)
            .map_err(|problem| problems.push(*problem))
            .ok()
    }
}

fn located(
    attribute: &Attribute,
    written: &str,
    directory: &ProjectPath,
) -> Result<Spanned<StackPath>, Box<Diagnostic>> {
    const ALL_BELOW: &str =
        "name the directory, which matches all stacks at and below it, and their instances";
    let span = attribute.value.span;
    let name = &attribute.name.text;
    let wrong = |code: Code, message: String, label: &str| {
        Box::new(Diagnostic::error(code, message).label(span, label))
    };
    if written.len() > ProjectPath::MAX_BYTES {
        let message = format!(
            "`{name}` is longer than any path: it has {} bytes",
            written.len()
        );
        return Err(wrong(Code::Limit, message, "this is too long"));
    }
    if written.is_empty() {
        let message = format!("`{name}` is empty");
        let wrong = wrong(Code::InvalidValue, message, "this names no directory");
        return Err(Box::new(wrong.help(
            "`.` is the directory of this file, and `/` the project root",
        )));
    }
    if written.contains('\0') {
        let message = format!("`{name}` has a NUL character");
        let label = "no path has such a character";
        return Err(wrong(Code::InvalidValue, message, label));
    }
    if written.starts_with("tag:") {
        let message = format!("`{name}` must be a path");
        let wrong = wrong(Code::InvalidValue, message, "this is a tag");
        return Err(Box::new(wrong.help(ALL_BELOW)));
    }
    let (path, key) = KeyFilter::split(written);
    if key == Some(KeyFilter::Any) || path.contains(['*', '?']) {
        let message = format!("`{name}` must be a path");
        let wrong = wrong(Code::InvalidValue, message, "this is a pattern");
        return Err(Box::new(wrong.help(ALL_BELOW)));
    }
    let Ok(resolved) = directory.resolve(path) else {
        let outside = Diagnostic::outside_project(written, span);
        return Err(Box::new(outside.help("a leading `/` is the project root")));
    };
    let value = match key {
        Some(KeyFilter::One(key)) => StackPath::instance(resolved, key),
        _ => resolved.into(),
    };
    Ok(Spanned { value, span })
}

/// Returns whether a location names a stack: it is that stack, or a directory at or above it.
fn covers(location: &StackPath, stack: &StackPath) -> bool {
    match location.key() {
        Some(_) => location == stack,
        None => stack.directory().is_at_or_below(location.directory()),
    }
}
