//! Submodules that are not checked out: their stacks are missing from the project.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use git2::Config;

use super::GitError;
use crate::on_disk::if_there;
use crate::path::ProjectPath;
use crate::project::discover::git_top_level;

/// Returns the submodules of the project at `root` whose directories are empty, by path. Those with
/// `update = none` are left out: git never checks them out on its own.
pub fn missing_submodules(root: &Path) -> Result<Vec<ProjectPath>, GitError> {
    let top = git_top_level(root).map_err(|(git, error)| GitError::Unreadable(git, error))?;
    let Some(top) = top else {
        return Ok(Vec::new());
    };
    let file = top.join(".gitmodules");
    let found =
        if_there(fs::metadata(&file)).map_err(|error| GitError::Unreadable(file.clone(), error))?;
    if !found.is_some_and(|it| it.is_file()) {
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
    let mut missing = Vec::new();
    for (path, is_left_out) in submodules.into_values() {
        let Some(path) = path.filter(|_| !is_left_out) else {
            continue;
        };
        let place = top.join(path);
        let inside = place.strip_prefix(root).ok().and_then(Path::to_str);
        let Some(inside) = inside.and_then(|it| ProjectPath::root().resolve(it).ok()) else {
            continue;
        };
        let entries =
            if_there(fs::read_dir(&place)).map_err(|error| GitError::Unreadable(place, error))?;
        if entries.is_some_and(|mut entries| entries.next().is_none()) {
            missing.push(inside);
        }
    }
    Ok(missing)
}
