//! `globals` blocks: values that stacks inherit from directories above them.
//!
//! This module collects them; [`crate::project::namespaces`] evaluates one only when an expression uses it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::diagnostic::{Code, Diagnostic};
use crate::language::parse::deferred;
use crate::language::syntax::{
    Attribute, Block, Body, DeferredBlock, Expr, ExprKind, Name, is_identifier,
};
use crate::path::ProjectPath;
use crate::source::{FileId, Sources, Span};

#[derive(Debug, Clone)]
pub struct GlobalDefinition {
    /// Where the value belongs: the labels of the block, then the name of the attribute.
    pub path: Vec<Box<str>>,
    pub kind: DefinitionKind,
    pub span: Span,
    /// The directory that it applies to, with everything below; `None` if it is on the command line.
    pub directory: Option<ProjectPath>,
    /// Whether it is in an imported file; local files override those.
    pub is_imported: bool,
}

#[derive(Debug, Clone)]
pub enum DefinitionKind {
    Value(Expr),
    /// The definition of a directory above, or of an imported file, is removed.
    Unset,
    /// The value is an object, perhaps an empty one: the block has labels and no content.
    Object,
    /// The value is an object with an entry for each element of a collection.
    Map(Arc<MapBlock>),
}

/// A `map` block: an object computed from a collection.
#[derive(Debug, Clone)]
pub struct MapBlock {
    /// The label: the name of the object.
    pub name: Name,
    pub for_each: Expr,
    /// The variable with the current element, as `new`, and with the value that an earlier element with
    /// the same key produced, as `old`.
    pub iterator: Box<str>,
    pub key: Expr,
    pub value: MapValue,
}

#[derive(Debug, Clone)]
pub enum MapValue {
    /// `value = …`
    Expr(Expr),
    /// `value { … }`
    Block {
        attributes: Vec<Attribute>,
        maps: Vec<MapBlock>,
    },
}

impl MapBlock {
    fn each_expression<'s>(&'s self, visit: &mut dyn FnMut(&'s Expr)) {
        visit(&self.for_each);
        visit(&self.key);
        match &self.value {
            MapValue::Expr(expr) => visit(expr),
            MapValue::Block { attributes, maps } => {
                for attribute in attributes {
                    visit(&attribute.value);
                }
                for map in maps {
                    map.each_expression(visit);
                }
            }
        }
    }
}

impl GlobalDefinition {
    pub(crate) fn each_expression<'s>(&'s self, visit: &mut dyn FnMut(&'s Expr)) {
        match &self.kind {
            DefinitionKind::Value(expr) => visit(expr),
            DefinitionKind::Map(block) => block.each_expression(visit),
            DefinitionKind::Unset | DefinitionKind::Object => {}
        }
    }

    /// Returns how an expression refers to it: `global.network.cidr`.
    pub fn name(&self) -> String {
        let mut name = "global".to_owned();
        for part in &self.path {
            let is_identifier = is_identifier(part);
            name += &if is_identifier {
                format!(".{part}")
            } else {
                format!("[{part:?}]")
            };
        }
        name
    }
}

#[derive(Debug, Default)]
pub struct Globals {
    definitions: OnceLock<Vec<GlobalDefinition>>,
    /// The only block, if it has not been parsed.
    deferred: Option<(DeferredBlock, ProjectPath)>,
}

impl Globals {
    pub fn is_empty(&self) -> bool {
        self.deferred.is_none() && self.definitions.get().is_none_or(Vec::is_empty)
    }

    /// Returns whether the definitions may contain one of these words.
    pub(crate) fn may_contain(&self, words: &[&str], sources: &Sources) -> bool {
        let Some((block, _)) = &self.deferred else {
            return true;
        };
        let text = &sources.file(block.content.file).text[block.content.range()];
        words.iter().any(|word| text.contains(word))
    }

    /// Returns the definitions in the order in which they apply. The sources are those of the project.
    pub fn definitions(&self, sources: &Sources) -> &[GlobalDefinition] {
        self.definitions.get_or_init(|| {
            let Some((block, directory)) = &self.deferred else {
                return Vec::new();
            };
            let block = deferred(block, &sources.file(block.content.file).text);
            let mut problems = Vec::new();
            let definitions = collect([].iter(), [&block].into_iter(), directory, &mut problems);
            debug_assert!(problems.is_empty(), "deferred content is valid");
            definitions
        })
    }
}

/// Reads the `globals` blocks of a directory. A single block is parsed only when it is needed.
pub(crate) fn read(
    imported: &[&Body],
    local: &[&Body],
    directory: &ProjectPath,
    sources: &Sources,
    problems: &mut Vec<Diagnostic>,
) -> Globals {
    fn blocks<'b>(bodies: &[&'b Body]) -> impl Iterator<Item = &'b Block> {
        bodies.iter().flat_map(|body| body.blocks("globals"))
    }
    let of_imported: usize = imported.iter().map(|body| body.deferred.len()).sum();
    let mut of_local = local.iter().flat_map(|body| &body.deferred);
    let is_right = |block: &DeferredBlock| {
        block
            .labels
            .first()
            .is_none_or(|label| is_identifier(&label.text))
    };
    if let (Some(only), None) = (of_local.next(), of_local.next())
        && of_imported == 0
        && blocks(imported).chain(blocks(local)).next().is_none()
        && is_right(only)
    {
        return Globals {
            definitions: OnceLock::new(),
            deferred: Some((only.clone(), directory.clone())),
        };
    }
    let all = |bodies: &[&Body]| -> Vec<Block> {
        let parsed = bodies.iter().flat_map(|body| &body.deferred).map(|block| {
            let text = &sources.file(block.content.file).text;
            deferred(block, text)
        });
        let mut all: Vec<Block> = blocks(bodies).cloned().chain(parsed).collect();
        // Imported files apply in the order given.
        let files: Vec<FileId> = bodies.iter().filter_map(|body| file_of(body)).collect();
        let position = |block: &Block| {
            let file = block.kind.span.file;
            (
                files.iter().position(|it| *it == file),
                block.kind.span.start,
            )
        };
        all.sort_by_key(position);
        all
    };
    let (imported, local) = (all(imported), all(local));
    let definitions = collect(imported.iter(), local.iter(), directory, problems);
    Globals {
        definitions: OnceLock::from(definitions),
        deferred: None,
    }
}

/// Returns the file that a body is the content of, if it has any block.
fn file_of(body: &Body) -> Option<FileId> {
    let first = body
        .blocks
        .first()
        .map(|block| &block.kind)
        .or(body.deferred.first().map(|block| &block.kind));
    first.map(|kind| kind.span.file)
}

/// Collects the `globals` blocks of a directory, outermost paths first: local definitions override
/// imported ones, and deeper ones override those above.
fn collect<'a>(
    imported: impl Iterator<Item = &'a Block>,
    local: impl Iterator<Item = &'a Block>,
    directory: &ProjectPath,
    problems: &mut Vec<Diagnostic>,
) -> Vec<GlobalDefinition> {
    let mut definitions: Vec<GlobalDefinition> = Vec::new();
    for block in imported {
        definitions_of(block, directory, true, &mut definitions, problems);
    }
    let mut own = Vec::new();
    for block in local {
        definitions_of(block, directory, false, &mut own, problems);
    }
    let mut seen: HashMap<Vec<Box<str>>, Span> = HashMap::new();
    for definition in own {
        if let DefinitionKind::Object = definition.kind {
            definitions.push(definition); // it cannot contradict another one
            continue;
        }
        if let Some(&first) = seen.get(&definition.path) {
            problems.push(set_twice(&definition, first));
            continue;
        }
        seen.insert(definition.path.clone(), definition.span);
        definitions.push(definition);
    }
    // The sort is stable: at equal depth, imported definitions come first and are overridden.
    definitions.sort_by_key(|definition| definition.path.len());
    definitions
}

pub(super) fn set_twice(definition: &GlobalDefinition, first: Span) -> Diagnostic {
    let place = match definition.directory {
        Some(_) => "in this directory",
        None => "on the command line",
    };
    let message = format!("`{}` is set twice {place}", definition.name());
    Diagnostic::error(Code::DuplicateDefinition, message).again(definition.span, first)
}

fn definitions_of(
    block: &Block,
    directory: &ProjectPath,
    is_imported: bool,
    definitions: &mut Vec<GlobalDefinition>,
    problems: &mut Vec<Diagnostic>,
) {
    if let Some(first) = block.labels.first()
        && !is_identifier(&first.text)
    {
        let message = format!("`{}` cannot be the name of a global", first.text);
        let diagnostic = Diagnostic::error(Code::InvalidValue, message);
        let label = "a name has letters, digits, `_` and `-`, and begins with a letter or `_`";
        problems.push(diagnostic.label(first.span, label));
        return;
    }
    let labels: Vec<Box<str>> = block
        .labels
        .iter()
        .map(|label| label.text.clone())
        .collect();
    let mut define = |name: Option<&Name>, kind| {
        let mut path = labels.clone();
        path.extend(name.map(|name| name.text.clone()));
        definitions.push(GlobalDefinition {
            path,
            kind,
            span: name.map_or(block.kind.span, |name| name.span),
            directory: Some(directory.clone()),
            is_imported,
        });
    };
    let body = &block.body;
    if body.attributes.is_empty() && body.blocks.is_empty() && !labels.is_empty() {
        define(None, DefinitionKind::Object);
    }
    for attribute in &body.attributes {
        let kind = if is_unset(&attribute.value) {
            DefinitionKind::Unset
        } else {
            DefinitionKind::Value(attribute.value.clone())
        };
        define(Some(&attribute.name), kind);
    }
    for map in maps_of(&body.blocks, "globals", problems) {
        define(Some(&map.name.clone()), DefinitionKind::Map(Arc::new(map)));
    }
}

/// Returns whether an expression is the bare word `unset`, which removes a definition from above.
pub(crate) fn is_unset(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Variable(name) if &**name == "unset")
}

/// Reads the `map` blocks in a block. It may contain no others.
fn maps_of(blocks: &[Block], place: &str, problems: &mut Vec<Diagnostic>) -> Vec<MapBlock> {
    let mut maps = Vec::new();
    for block in blocks {
        if &*block.kind.text == "map" {
            maps.extend(map_of(block, problems));
            continue;
        }
        let kind = &block.kind.text;
        let message = format!("unknown block `{kind}` in `{place}`");
        let diagnostic = Diagnostic::error(Code::UnknownBlock, message)
            .label(block.kind.span, "not a block of this language");
        problems.push(diagnostic.help(format!(
            "for an object, write `{kind} = {{ … }}`; the only block in `{place}` is `map`"
        )));
    }
    maps
}

fn map_of(block: &Block, problems: &mut Vec<Diagnostic>) -> Option<MapBlock> {
    const HELP: &str = "write it as in `map \"by_name\" { for_each = global.list  key = element.new.name  value = element.new }`, each on a line of its own";
    let mut wrong = |span: Span, message: &str, label: &str| {
        let diagnostic = Diagnostic::error(Code::MissingAttribute, message).label(span, label);
        problems.push(diagnostic.help(HELP));
    };
    let span = block.kind.span;
    let Some(name) = block.labels.first() else {
        wrong(
            span,
            "a `map` block needs a label",
            "the label is the name of the object",
        );
        return None;
    };
    let attribute = |name: &str| block.body.attribute(name).map(|found| found.value.clone());
    let (Some(for_each), Some(key)) = (attribute("for_each"), attribute("key")) else {
        wrong(
            span,
            "a `map` block needs `for_each` and `key`",
            "one of them is missing",
        );
        return None;
    };
    let iterator = match attribute("iterator").map(|expr| (expr.span, expr.kind)) {
        None => "element".into(),
        Some((_, ExprKind::Variable(name))) => name,
        Some((span, _)) => {
            wrong(
                span,
                "`iterator` must be a bare word",
                "write a name without quotes",
            );
            return None;
        }
    };
    let mut values = block.body.blocks("value");
    let value = match (attribute("value"), values.next()) {
        (Some(value), None) => MapValue::Expr(value),
        (None, Some(value)) => MapValue::Block {
            attributes: value.body.attributes.clone(),
            maps: maps_of(&value.body.blocks, "value", problems),
        },
        _ => {
            wrong(
                span,
                "a `map` block needs either `value = …` or `value { … }`",
                "write exactly one of them",
            );
            return None;
        }
    };
    Some(MapBlock {
        name: name.clone(),
        for_each,
        iterator,
        key,
        value,
    })
}
