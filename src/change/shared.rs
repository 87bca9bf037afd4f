//! Whether stacks share data: Terramate's `input` blocks, Terragrunt's `dependency` and `dependencies`.
//!
//! This module does not know which stacks share what.

use std::fs;
use std::io;

use regex::Regex;
use walkdir::{DirEntry, WalkDir};

use crate::language::parse::parse_whole;
use crate::on_disk::if_there;
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::discover::TERRAGRUNT_JSON_FILE;
use crate::source::FileId;

/// Terragrunt's blocks that name other units.
const OF_TERRAGRUNT: [&str; 2] = ["dependency", "dependencies"];

/// A block by which a stack reads data of another stack, or waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedData {
    pub file: ProjectPath,
    pub block: &'static str,
}

/// Returns a block by which stacks share data, if the project has one. All Terragrunt files are read, since
/// any may be included.
///
/// # Errors
///
/// If a directory or file cannot be read.
pub fn shared_data(project: &Project) -> io::Result<Option<SharedData>> {
    let mut files = project.sources.files();
    let has_input = |text: &str| first_block(text, &["input"]).is_some();
    if let Some(file) = files.find(|file| has_input(&file.text)) {
        let (file, block) = (file.path.clone(), "input");
        return Ok(Some(SharedData { file, block }));
    }
    let is_seen = |entry: &DirEntry| {
        let name = entry.file_name().as_encoded_bytes();
        entry.depth() == 0 || !name.starts_with(b".")
    };
    let walk = WalkDir::new(&project.root).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(is_seen) {
        let entry = entry?;
        let is_json = entry.file_name() == TERRAGRUNT_JSON_FILE;
        let is_hcl = entry.path().extension().is_some_and(|it| it == "hcl");
        if !(is_json || is_hcl) {
            continue;
        }
        let found = if_there(fs::metadata(entry.path()))?;
        if !found.is_some_and(|it| it.is_file()) {
            continue;
        }
        let text = fs::read(entry.path())?;
        let text = String::from_utf8_lossy(&text);
        let block = if is_json {
            first_key(&text)
        } else {
            first_block(&text, &OF_TERRAGRUNT)
        };
        if let Some(block) = block
            && let Some(file) = ProjectPath::from_host(&project.root, entry.path())
        {
            return Ok(Some(SharedData { file, block }));
        }
    }
    Ok(None)
}

/// Returns the first of these kinds of top-level blocks in a file.
fn first_block(text: &str, kinds: &[&'static str]) -> Option<&'static str> {
    // Most files do not contain the words, and parsing takes much longer.
    if !kinds.iter().any(|kind| text.contains(kind)) {
        return None;
    }
    let mut kinds = kinds.iter().copied();
    match parse_whole(FileId::UNPLACED, text) {
        Ok(body) => kinds.find(|kind| body.blocks(kind).next().is_some()),
        // The tool itself may still understand the file.
        Err(_) => kinds.find(|kind| {
            let block = format!(r#"(?m)^\s*{kind}(\s+"?[\w-]+"?)?\s*\{{"#);
            Regex::new(&block).is_ok_and(|block| block.is_match(text))
        }),
    }
}

/// Returns the first of these kinds of blocks in a Terragrunt JSON file.
fn first_key(text: &str) -> Option<&'static str> {
    let keys: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    let mut kinds = OF_TERRAGRUNT.into_iter();
    kinds.find(|kind| keys.contains_key(*kind))
}
