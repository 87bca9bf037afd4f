//! How Terraform reads a variable of the environment: as text, or as an expression.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde_json::Value as Json;

use crate::language::parse::parse_whole;
use crate::language::syntax::{Block, ExprKind};
use crate::project::discover::{SizeLimit, is_terraform, is_terragrunt, read_text};
use crate::source::FileId;

const FILE: SizeLimit = SizeLimit {
    bytes: 2 << 20,
    help: "",
};

/// The types whose values Terraform takes as text.
const TEXT: [&str; 3] = ["string", "number", "bool"];

/// The variables that the Terraform files of a directory declare.
#[derive(Debug, Default)]
pub struct ModuleVariables {
    /// For each, whether Terraform takes its `TF_VAR_…` as text.
    declared: BTreeMap<String, bool>,
    /// A file that cannot be read or understood, or the directory if it cannot be read.
    unknown: Option<String>,
    /// Whether Terragrunt runs the module, whose files may be elsewhere. It passes strings on as they are.
    is_terragrunt: bool,
}

impl ModuleVariables {
    pub fn read(root: &Path, module: &Path) -> Self {
        let mut variables = ModuleVariables::default();
        let entries: io::Result<Vec<_>> = fs::read_dir(module).and_then(Iterator::collect);
        let Ok(entries) = entries else {
            variables.unknown = Some(module.display().to_string());
            return variables;
        };
        for entry in entries {
            let name = entry.file_name();
            variables.is_terragrunt |= is_terragrunt(&name);
            if is_terraform(&name) && variables.add_file(root, &entry.path()).is_none() {
                variables.unknown = Some(name.to_string_lossy().into_owned());
            }
        }
        variables
    }

    /// Returns whether Terraform takes a variable as text: if it has no type, or the type `string`,
    /// `number` or `bool`. Others are expressions, in which strings have quotes; so are those that
    /// are not declared, except in units of Terragrunt. The error is the name of an unreadable file
    /// that may declare it.
    pub fn is_text(&self, name: &str) -> Result<bool, &str> {
        match (self.declared.get(name), &self.unknown) {
            (Some(is_text), _) => Ok(*is_text),
            (None, Some(file)) => Err(file),
            (None, None) => Ok(self.is_terragrunt),
        }
    }

    /// Adds the variables of a file; `None` if it cannot be read or understood.
    fn add_file(&mut self, root: &Path, file: &Path) -> Option<()> {
        let text = read_text(file, false, Some(root), &FILE).ok()?;
        if !text.contains("variable") {
            return Some(());
        }
        if file.as_os_str().as_encoded_bytes().ends_with(b".json") {
            let json: Json = serde_json::from_str(&text).ok()?;
            let variables = json.get("variable").and_then(Json::as_object);
            for (name, variable) in variables.into_iter().flatten() {
                self.add(name, is_text_json(variable));
            }
        } else {
            let body = parse_whole(FileId::UNPLACED, &text).ok()?;
            for block in body.blocks("variable") {
                if let Some(name) = block.labels.first() {
                    self.add(&name.text, is_text(block));
                }
            }
        }
        Some(())
    }

    /// Adds a variable. Another file may declare it again, without its type.
    fn add(&mut self, name: &str, is_text: bool) {
        *self.declared.entry(name.to_owned()).or_insert(true) &= is_text;
    }
}

fn is_text(variable: &Block) -> bool {
    match variable.body.attribute("type").map(|it| &it.value.kind) {
        None => true,
        Some(ExprKind::Variable(name) | ExprKind::String(name)) => TEXT.contains(&&**name),
        Some(_) => false,
    }
}

fn is_text_json(variable: &Json) -> bool {
    match variable.get("type") {
        None => true,
        Some(name) => name.as_str().is_some_and(|name| TEXT.contains(&name)),
    }
}
