//! `module` blocks: modules that stacks call from outside of their directories, and the tags of their versions.
//!
//! This module knows neither calls nor existing tags.

mod address;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use semver::Version;

pub use self::address::{Address, AddressKind, CallSource};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::NoNamespaces;
use crate::language::syntax::{Attribute, Block};
use crate::path::ProjectPath;
use crate::project::blocks::{
    name, needs, no_blocks, string, unknown_attribute, value, wrong_type,
};
use crate::source::{Span, Spanned};
use crate::version::parse_version;

pub(crate) const MODULE: &str = "module";

const NAMES: NoNamespaces = NoNamespaces("a `module` block");

const ATTRIBUTES: [&str; 3] = ["source", "tag", "labels"];

/// The placeholder for the version in `tag`.
const VERSION: char = '*';

/// A `module` block: a module that has versions.
#[derive(Debug, Clone)]
pub struct ModuleBlock {
    pub name: Spanned<String>,
    pub source: Spanned<ModuleSource>,
    pub tag: TagPattern,
    /// `labels`, for policies.
    pub labels: Vec<String>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleSource {
    /// A directory of the project, which calls name through git.
    Directory(ProjectPath),
    /// A module of a registry, or of a git repository.
    Address(Address),
}

/// How the tags of a module look: text around one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagPattern {
    before: String,
    after: String,
}

impl TagPattern {
    /// Parses a name with one `*`, the placeholder for the version; `None` if it has none or several.
    pub fn parse(written: &str) -> Option<Self> {
        let (before, after) = written.split_once(VERSION)?;
        (!after.contains(VERSION)).then(|| TagPattern {
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }

    /// Returns the version of a tag, if the tag matches.
    pub fn version(&self, tag: &str) -> Option<Version> {
        let rest = tag.strip_prefix(&*self.before)?;
        let written = rest.strip_suffix(&*self.after)?;
        parse_version(written).map(|(version, _)| version)
    }

    pub fn tag(&self, version: &str) -> String {
        format!("{}{version}{}", self.before, self.after)
    }
}

/// As written.
impl fmt::Display for TagPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{VERSION}{}", self.before, self.after)
    }
}

/// Takes the blocks of all directories, in the order of their places, by name. Two modules with the same name are reported.
pub(crate) fn by_name(
    blocks: Vec<ModuleBlock>,
    problems: &mut Vec<Diagnostic>,
) -> BTreeMap<String, ModuleBlock> {
    let mut modules: BTreeMap<String, ModuleBlock> = BTreeMap::new();
    for block in blocks {
        match modules.entry(block.name.value.clone()) {
            Entry::Vacant(vacant) => _ = vacant.insert(block),
            // Several directories import the file.
            Entry::Occupied(first) if first.get().name.span == block.name.span => {}
            Entry::Occupied(first) => {
                let message = format!("the module `{}` is defined twice", block.name.value);
                let diagnostic = Diagnostic::error(Code::DuplicateDefinition, message)
                    .again(block.name.span, first.get().name.span);
                problems.push(diagnostic.help("remove or rename one of them"));
            }
        }
    }
    modules
}

pub(crate) fn read(
    block: &Block,
    directory: &ProjectPath,
    problems: &mut Vec<Diagnostic>,
) -> Option<ModuleBlock> {
    let before = problems.len();
    let name = name(block, "vpc", problems);
    no_blocks(block, "a module has only attributes", problems);
    for attribute in &block.body.attributes {
        let written = &*attribute.name.text;
        if ATTRIBUTES.contains(&written) {
            continue;
        }
        let diagnostic = unknown_attribute(attribute, block, &ATTRIBUTES);
        let is_call = matches!(written, "version" | "providers" | "count" | "for_each");
        problems.push(if is_call {
            diagnostic.help(
                "this block describes the version tags of a module; calls belong in Terraform files",
            )
        } else {
            diagnostic
        });
    }
    let source = required(block, "source", "\"acme/vpc/aws\"", problems)
        .and_then(|written| source(written, directory, problems));
    let tag = required(block, "tag", "\"modules/vpc/v*\"", problems)
        .and_then(|written| tag(&written, problems));
    let labels = block
        .body
        .attribute("labels")
        .map_or_else(Vec::new, |attribute| labels_of(attribute, problems));
    let module = ModuleBlock {
        name: name?,
        source: source?,
        tag: tag?,
        labels,
        span: block.kind.span,
    };
    (problems.len() == before).then_some(module)
}

fn required(
    block: &Block,
    name: &'static str,
    example: &str,
    problems: &mut Vec<Diagnostic>,
) -> Option<Spanned<String>> {
    let Some(attribute) = block.body.attribute(name) else {
        let diagnostic = needs(block, name);
        problems.push(diagnostic.help(format!("write `{name} = {example}`")));
        return None;
    };
    let text = string(attribute, "a string", &NAMES, problems)?;
    if text.value.is_empty() {
        let message = format!("`{name}` is empty");
        let diagnostic =
            Diagnostic::error(Code::InvalidValue, message).label(text.span, "names nothing");
        problems.push(diagnostic.help(format!("write `{name} = {example}`")));
        return None;
    }
    Some(text)
}

fn source(
    written: Spanned<String>,
    directory: &ProjectPath,
    problems: &mut Vec<Diagnostic>,
) -> Option<Spanned<ModuleSource>> {
    let Spanned { value, span } = written;
    let is_path = value.starts_with('/')
        || matches!(&*value, "." | "..")
        || ["./", "../"].iter().any(|start| value.starts_with(start));
    let wrong = |label: &str, help: &str| {
        let message = format!("`{value}` cannot be the source of a module");
        Diagnostic::error(Code::InvalidValue, message)
            .label(span, label)
            .help(help)
    };
    if value.contains('?') {
        let label = "`?` selects a version";
        let help = "remove `?` and the rest; `tag` finds the versions";
        problems.push(wrong(label, help));
        return None;
    }
    if value.len() > ProjectPath::MAX_BYTES || value.contains(char::is_control) {
        let help = "write the `source` of calls of the module";
        problems.push(wrong("no call can name this", help));
        return None;
    }
    let value = if is_path {
        let Ok(path) = directory.resolve(&value) else {
            let diagnostic = Diagnostic::outside_project(&value, span);
            problems.push(diagnostic.help("a leading `/` is the project root"));
            return None;
        };
        ModuleSource::Directory(path)
    } else {
        let Some(address) = Address::parse(&value) else {
            let help = "write `acme/vpc/aws`, `git::https://…/repository.git//directory`, or a directory of this project, as in `/modules/vpc`";
            problems.push(wrong(
                "neither a registry address nor a git repository",
                help,
            ));
            return None;
        };
        ModuleSource::Address(address)
    };
    Some(Spanned { value, span })
}

fn tag(written: &Spanned<String>, problems: &mut Vec<Diagnostic>) -> Option<TagPattern> {
    let pattern = TagPattern::parse(&written.value);
    if pattern.is_none() {
        let message = format!("`{}` is not a pattern for tags", written.value);
        let diagnostic = Diagnostic::error(Code::InvalidPattern, message)
            .label(written.span, "needs exactly one `*`, for the version")
            .help("write `tag = \"modules/vpc/v*\"` for tags such as `modules/vpc/v1.3.0`");
        problems.push(diagnostic);
    }
    pattern
}

fn labels_of(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Vec<String> {
    let Some(found) = value(&attribute.value, &NAMES, problems) else {
        return Vec::new();
    };
    let items = found.sequence();
    let texts = items.map(|items| items.iter().map(|item| item.as_str().map(str::to_owned)));
    let labels: Option<Vec<String>> = texts.and_then(Iterator::collect);
    labels.unwrap_or_else(|| {
        let span = attribute.value.span;
        problems.push(wrong_type(attribute, span, "a list of strings", &found));
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_one_version() {
        let pattern = TagPattern::parse("modules/vpc/v*").unwrap();
        assert_eq!(pattern.to_string(), "modules/vpc/v*");
        assert_eq!(pattern.tag("1.3.0"), "modules/vpc/v1.3.0");
        let versions = [
            ("modules/vpc/v1.3.0", Some("1.3.0")),
            ("modules/vpc/v1.3", Some("1.3.0")),
            ("modules/vpc/v2.0.0-rc.1", Some("2.0.0-rc.1")),
            ("modules/vpc/vvv1", None),
            ("modules/vpc/v", None),
            ("modules/vpc/v1.2.3.4", None),
            ("modules/vpc/latest", None),
            ("modules/vpc2/v1.3.0", None),
            ("v1.3.0", None),
        ];
        for (tag, version) in versions {
            let found = pattern.version(tag).map(|version| version.to_string());
            assert_eq!(found.as_deref(), version, "{tag}");
        }
        assert_eq!(TagPattern::parse("v1"), None);
        assert_eq!(TagPattern::parse("*/v*"), None);
        let suffixed = TagPattern::parse("*-vpc").unwrap();
        assert!(suffixed.version("1.3.0-vpc").is_some());
        assert!(suffixed.version("-vpc").is_none());
        // The text around the version may not overlap.
        let narrow = TagPattern::parse("v*v").unwrap();
        assert!(narrow.version("v").is_none());
    }
}
