//! Test fixtures: projects on disk, changed files, and the law that connects changes and inputs.

use std::fs;
use std::path::Path;

use super::cause::{Input, Location, Use, UseKind};
use super::files::ChangedFiles;
use super::find::changed_stacks;
use super::listed::inputs_of;
use crate::git::{ChangedFile, FileChange, FileState};
use crate::path::ProjectPath;
use crate::project::discover::Listing;
use crate::project::stack::StackIndex;
use crate::project::{Problems, Project};

/// Writes a project. Texts that start with `-> ` become links.
pub(super) fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            #[cfg(unix)]
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            _ => fs::write(path, text).unwrap(),
        }
    }
    directory
}

pub(super) fn load(root: &Path) -> (Project, Listing) {
    Project::load_with_listing(root, &mut Problems::default()).unwrap()
}

pub(super) fn files(paths: &[&str]) -> ChangedFiles {
    let files = paths.iter().map(|path| ChangedFile {
        path: ProjectPath::root().resolve(path).unwrap(),
        change: FileChange::Modified,
        state: FileState::Committed,
    });
    ChangedFiles::new(files.collect())
}

pub(super) fn way(chain: &[Use]) -> String {
    let steps = chain.iter().map(|step| {
        let kind = match &step.kind {
            UseKind::Watch => "watch",
            UseKind::Link => "link",
            UseKind::Import => "import",
            UseKind::Module(what) | UseKind::Read(what) | UseKind::Terragrunt(what) => what,
            UseKind::Environment { name, .. }
            | UseKind::Global { name, .. }
            | UseKind::Let { name, .. }
            | UseKind::Attribute(name) => name,
            UseKind::Hidden => "hidden",
            UseKind::StackList => "stack list",
        };
        let Location { file, line } = &step.location;
        let line = line.map(|line| format!(":{line}"));
        format!(" > {kind} {file}{}", line.unwrap_or_default())
    });
    steps.collect()
}

/// Checks that a stack changed if and only if one of its inputs did, that its cause is also the cause of an
/// input, and that changes add no inputs.
pub(super) fn check(project: &Project, listing: &Listing, files: &ChangedFiles) {
    let mut problems = Problems::default();
    let changed = changed_stacks(project, listing, files, |_| true, Some(&mut problems)).unwrap();
    let stacks: Vec<StackIndex> = project.stacks.iter().map(|(index, _)| index).collect();
    for stack in stacks {
        let path = project.stacks[stack].path.clone();
        let before = format!("{problems:?}");
        let inputs = inputs_of(project, listing, Some(files), stack, &mut problems).unwrap();
        if !changed.contains_key(&stack) {
            assert_eq!(format!("{problems:?}"), before, "{path}");
        }
        let found: Vec<&ChangedFile> = inputs
            .iter()
            .filter_map(|input| input.change.as_ref())
            .collect();
        match changed.get(&stack) {
            Some(cause) => assert!(found.contains(&&cause.file), "{path} {cause:?} {inputs:?}"),
            None => assert!(found.is_empty(), "{path} {found:?}"),
        }
        let before = format!("{problems:?}");
        let quiet = inputs_of(project, listing, None, stack, &mut problems).unwrap();
        assert_eq!(format!("{problems:?}"), before, "{path}");
        assert!(quiet.iter().all(|input| input.change.is_none()));
        for Input { location, .. } in quiet {
            assert!(
                inputs.iter().any(|input| input.location == location),
                "{location}"
            );
        }
    }
}
