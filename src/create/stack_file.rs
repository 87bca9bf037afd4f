//! The file of a new stack.

use std::collections::HashSet;
use std::path::Path;

use uuid::Uuid;

use crate::diagnostic::Diagnostic;
use crate::language::parse::parse_whole;
use crate::language::value::{Value, hcl_attributes, to_hcl};
use crate::path::ProjectPath;
use crate::project::discover::SourceTree;
use crate::project::stack::from_block;
use crate::source::FileId;

/// The name of the file, as Terramate writes it.
pub const STACK_FILE: &str = "stack.tm.hcl";

/// A stack as requested. Empty lists are left out of its file.
#[derive(Debug, Clone, Default)]
pub struct NewStack {
    /// The default is a new UUID.
    pub id: Option<String>,
    /// The default is the name of the directory.
    pub name: Option<String>,
    /// The default is the name.
    pub description: Option<String>,
    pub tags: Vec<String>,
    pub after: Vec<String>,
    pub before: Vec<String>,
    pub wants: Vec<String>,
    pub wanted_by: Vec<String>,
    pub watch: Vec<String>,
    pub imports: Vec<String>,
}

impl NewStack {
    /// Returns the text of the file for a directory of the project at `root`.
    pub fn text(&self, root: &Path, directory: &ProjectPath) -> String {
        let directory_name = if directory.is_root() {
            let name = root.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        } else {
            directory.basename().to_owned()
        };
        let name = self.name.clone().unwrap_or(directory_name);
        let description = self.description.clone().unwrap_or_else(|| name.clone());
        let id = self.id.clone();
        let id = id.unwrap_or_else(|| Uuid::new_v4().to_string());
        let strings = [("name", name), ("description", description)];
        let lists = [
            ("tags", &self.tags),
            ("after", &self.after),
            ("before", &self.before),
            ("wants", &self.wants),
            ("wanted_by", &self.wanted_by),
            ("watch", &self.watch),
        ];
        let strings = strings
            .into_iter()
            .map(|(name, text)| (name, Value::string(text)));
        let lists = lists
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| (name, list_value(list)));
        let id = [("id", Value::string(id))];
        let attributes: Vec<(&str, Value)> = strings.chain(lists).chain(id).collect();
        let attributes = attributes.iter().map(|(name, value)| (*name, value));
        let mut text = format!("stack {{\n{}}}\n", hcl_attributes(attributes, "  "));
        for source in without_repetitions(&self.imports) {
            let source = to_hcl(&Value::string(source));
            text += &format!("\nimport {{\n  source = {source}\n}}\n");
        }
        text
    }

    pub fn problems(&self, root: &Path, directory: &ProjectPath) -> Vec<Diagnostic> {
        let text = self.text(root, directory);
        let body = match parse_whole(FileId::UNPLACED, &text) {
            Ok(body) => body,
            Err(problem) => return vec![*problem],
        };
        let mut problems = Vec::new();
        for block in body.blocks("stack") {
            from_block(block, directory, &SourceTree::on_disk(root), &mut problems);
        }
        problems
    }
}

fn list_value(list: &[String]) -> Value {
    Value::tuple(without_repetitions(list).map(Value::string))
}

fn without_repetitions(list: &[String]) -> impl Iterator<Item = &str> {
    let mut seen = HashSet::new();
    list.iter()
        .map(String::as_str)
        .filter(move |text| seen.insert(*text))
}
