//! The Terraform root modules of a project that are not stacks yet.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use rayon::prelude::*;
use serde_json::Value as Json;

use crate::change::{ChangeError, Location, called_modules};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::parse::parse_whole;
use crate::language::syntax::{Block, Body};
use crate::path::ProjectPath;
use crate::project::discover::{DirectoryListing, Listing, SizeLimit, is_terraform, read_text};
use crate::project::{self, Problems, Project};
use crate::source::{FileId, SourceFile};

const TERRAFORM: SizeLimit = SizeLimit {
    bytes: 2 << 20,
    help: "split it, or put an empty file `.orchskip` into its directory",
};

/// Problems because of which a directory may be a root module or not.
const UNKNOWN: [Code; 3] = [Code::Syntax, Code::Encoding, Code::Unreadable];

/// The words of which a file with one of the blocks has at least one.
const WORDS: [&str; 3] = ["backend", "cloud", "provider"];

/// The root modules at and below a directory that are not stacks.
#[derive(Debug, Default)]
pub struct RootModules {
    pub directories: Vec<ProjectPath>,
    /// Those that another directory calls as a module, with the place of a call.
    pub called: BTreeMap<ProjectPath, Location>,
    /// The number of other directories with Terraform files that are not stacks.
    pub others: usize,
}

/// Finds directories with a `backend`, `cloud` or `provider` block that no other directory calls as a module. Adds
/// an error to `problems` for each file that cannot be understood: it may have such a block or call.
pub fn root_modules(
    project: &Project,
    listing: &Listing,
    directory: &ProjectPath,
    problems: &mut Problems,
) -> Result<RootModules, ChangeError> {
    let all = listing.with_terraform();
    let directories: Vec<ProjectPath> = all.iter().map(|(path, _)| (*path).clone()).collect();
    let mut found = Problems::default();
    let called = called_modules(project, listing, &directories, &mut found)?;
    found.keep_as_errors(&UNKNOWN);
    problems.append(found);
    let is_new = |path: &ProjectPath| {
        path.is_at_or_below(directory) && project.stacks.at(path.as_str()).len() == 0
    };
    let candidates: Vec<_> = all.into_iter().filter(|(path, _)| is_new(path)).collect();
    let read = |(path, listed): (&ProjectPath, &DirectoryListing)| {
        let path = path.clone();
        let mut files = Vec::new();
        let mut is_root = false;
        for (name, plain) in &listed.files {
            match is_root_file(&project.root, &path, name, *plain) {
                Ok(is_one) => is_root |= is_one,
                Err(problem) => files.push(*problem),
            }
        }
        (path, is_root, files)
    };
    let read: Vec<_> = project::pool()?.install(|| candidates.into_par_iter().map(read).collect());
    let mut modules = RootModules::default();
    for (path, is_root, files) in read {
        for (source, diagnostic) in files {
            problems.add_file(source, vec![diagnostic]);
        }
        match called.get(&path) {
            _ if !is_root => modules.others += 1,
            Some(call) => _ = modules.called.insert(path, call.clone()),
            None => modules.directories.push(path),
        }
    }
    Ok(modules)
}

/// Returns whether a file has a block that only a root module should have.
fn is_root_file(
    root: &Path,
    directory: &ProjectPath,
    name: &OsStr,
    plain: bool,
) -> Result<bool, Box<(SourceFile, Diagnostic)>> {
    if !is_terraform(name) {
        return Ok(false);
    }
    let path = directory.join(&name.to_string_lossy());
    let host = directory.to_host(root).join(name);
    let Ok(text) = read_text(&host, plain, Some(root), &TERRAFORM) else {
        let message = format!("`{}` cannot be read", path.relative());
        let diagnostic = Diagnostic::error(Code::Unreadable, message).file(path.clone());
        let text = String::new();
        return Err(Box::new((SourceFile { path, text }, diagnostic)));
    };
    if !WORDS.iter().any(|word| text.contains(word)) {
        return Ok(false);
    }
    if name.as_encoded_bytes().ends_with(b".json") {
        // The search for calls has reported a syntax error.
        return Ok(serde_json::from_str(&text).is_ok_and(|json| is_root_json(&json)));
    }
    match parse_whole(FileId::UNPLACED, &text) {
        Ok(body) => Ok(is_root_body(&body)),
        Err(diagnostic) => Err(Box::new((SourceFile { path, text }, *diagnostic))),
    }
}

fn is_root_body(body: &Body) -> bool {
    let is_backend = |block: &Block| matches!(&*block.kind.text, "backend" | "cloud");
    let mut settings = body.blocks("terraform");
    body.blocks("provider").next().is_some()
        || settings.any(|block| block.body.blocks.iter().any(is_backend))
}

fn is_root_json(json: &Json) -> bool {
    let one_or_many = |json: &Json| match json {
        Json::Array(items) => items.clone(),
        other => vec![other.clone()],
    };
    let settings = json.get("terraform").map(one_or_many).unwrap_or_default();
    let has = |name| settings.iter().any(|settings| settings.get(name).is_some());
    json.get("provider").is_some() || has("backend") || has("cloud")
}
