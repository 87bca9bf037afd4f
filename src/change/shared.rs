//! Whether stacks share data: Terramate's `input` blocks, Terragrunt's `dependency`.
//!
//! This module does not know which stacks share what.

use std::fs;
use std::io;

use regex::Regex;
use walkdir::{DirEntry, WalkDir};

use crate::path::ProjectPath;
use crate::project::Project;

/// A block by which a stack gets data from another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedData {
    /// The file.
    pub file: ProjectPath,
    /// The kind of the block.
    pub block: &'static str,
}

/// Returns a block by which stacks share data, if there is one in the project. All files of Terragrunt
/// are looked at, since any may be included.
///
/// # Errors
///
/// If a directory or file cannot be read.
pub fn shared_data(project: &Project) -> io::Result<Option<SharedData>> {
    let has_block = |kind: &str| {
        let block = format!(r#"(?m)^\s*{kind}\s+"?[\w-]+"?\s*\{{"#);
        Regex::new(&block).expect("the pattern is one")
    };
    let input = has_block("input");
    let mut files = project.sources.files();
    if let Some(file) = files.find(|file| input.is_match(&file.text)) {
        let (file, block) = (file.path.clone(), "input");
        return Ok(Some(SharedData { file, block }));
    }
    let dependency = has_block("dependency");
    let is_seen = |entry: &DirEntry| {
        let name = entry.file_name().as_encoded_bytes();
        entry.depth() == 0 || !name.starts_with(b".")
    };
    let walk = WalkDir::new(&project.root).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(is_seen) {
        let entry = entry?;
        let is_hcl = entry.path().extension().is_some_and(|it| it == "hcl");
        if !is_hcl || !entry.path().is_file() {
            continue;
        }
        let text = fs::read(entry.path())?;
        if dependency.is_match(&String::from_utf8_lossy(&text))
            && let Some(file) = ProjectPath::from_host(&project.root, entry.path())
        {
            let block = "dependency";
            return Ok(Some(SharedData { file, block }));
        }
    }
    Ok(None)
}
