//! Submodules that are not checked out: whatever stacks they have are missing from the project.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use git2::Config;

use super::GitError;
use crate::path::ProjectPath;
use crate::project::discover::git_top_level;

/// Returns the submodules of the project at `root` whose directories are empty, by path. Those with
/// `update = none` are left out: git never checks them out on its own.
///
/// # Errors
///
/// If `.gitmodules` cannot be read.
pub fn missing_submodules(root: &Path) -> Result<Vec<ProjectPath>, GitError> {
    // Commands that need no history work where git does not.
    let Ok(Some(top)) = git_top_level(root) else {
        return Ok(Vec::new());
    };
    let file = top.join(".gitmodules");
    if !file.is_file() {
        return Ok(Vec::new());
    }
    let mut submodules: BTreeMap<String, (Option<String>, bool)> = BTreeMap::new();
    let config = Config::open(&file)?;
    let mut entries = config.entries(Some(r"^submodule\..*\.(path|update)$"))?;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let (Ok(name), Ok(value)) = (entry.name(), entry.value()) else {
            continue;
        };
        let Some((submodule, attribute)) = name.rsplit_once('.') else {
            continue;
        };
        let (path, is_left_out) = submodules.entry(submodule.to_owned()).or_default();
        match attribute {
            "path" => *path = Some(value.to_owned()),
            _ => *is_left_out = value == "none",
        }
    }
    let paths = submodules.into_values().filter_map(|(path, is_left_out)| {
        let place = top.join(path.filter(|_| !is_left_out)?);
        let inside = place.strip_prefix(root).ok()?.to_str()?;
        let is_empty = fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_none());
        is_empty.then(|| ProjectPath::root().resolve(inside).ok())?
    });
    Ok(paths.collect())
}
