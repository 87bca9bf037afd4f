//! How Terraform reads a variable of the environment: as text, or as an expression.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::language::parse::parse_whole;
use crate::language::syntax::{Block, ExprKind};
use crate::project::discover::{SizeLimit, is_terraform, read_text};
use crate::source::FileId;

const FILE: SizeLimit = SizeLimit {
    bytes: 2 << 20,
    help: "",
};

/// The types whose values Terraform takes as text.
const TEXT: [&str; 3] = ["string", "number", "bool"];

/// Returns the variables of a module that Terraform takes as text from `TF_VAR_…`: those without a type, or with the
/// type `string`, `number` or `bool`. Others are expressions, in which strings have quotes. Leaves out files that
/// cannot be read or understood.
pub fn text_variables(root: &Path, module: &Path) -> BTreeSet<String> {
    // Another file may declare a variable again, without its type.
    let mut found: BTreeMap<String, bool> = BTreeMap::new();
    let mut add = |name: String, is_text: bool| *found.entry(name).or_insert(true) &= is_text;
    for entry in fs::read_dir(module).into_iter().flatten().flatten() {
        if !is_terraform(&entry.file_name()) {
            continue;
        }
        let Ok(text) = read_text(&entry.path(), false, Some(root), &FILE) else {
            continue;
        };
        if !text.contains("variable") {
            continue;
        }
        if entry.file_name().as_encoded_bytes().ends_with(b".json") {
            for (name, is_text) in of_json(&text) {
                add(name, is_text);
            }
        } else if let Ok(body) = parse_whole(FileId::UNPLACED, &text) {
            for block in body.blocks("variable") {
                if let Some(name) = block.labels.first() {
                    add(name.text.to_string(), is_text(block));
                }
            }
        }
    }
    let texts = found.into_iter().filter(|(_, is_text)| *is_text);
    texts.map(|(name, _)| name).collect()
}

fn is_text(variable: &Block) -> bool {
    match variable.body.attribute("type").map(|it| &it.value.kind) {
        None => true,
        Some(ExprKind::Variable(name) | ExprKind::String(name)) => TEXT.contains(&&**name),
        Some(_) => false,
    }
}

fn of_json(text: &str) -> Vec<(String, bool)> {
    let json: Json = serde_json::from_str(text).unwrap_or_default();
    let variables = json.get("variable").and_then(Json::as_object);
    let is_text = |variable: &Json| match variable.get("type") {
        None => true,
        Some(name) => name.as_str().is_some_and(|name| TEXT.contains(&name)),
    };
    let variables = variables.into_iter().flatten();
    variables
        .map(|(name, it)| (name.clone(), is_text(it)))
        .collect()
}
