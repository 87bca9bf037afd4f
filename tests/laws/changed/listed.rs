//! What `orch` lists as the inputs of a stack, held against what it says has changed.

use std::collections::BTreeSet;

use orch::change::{ChangedFiles, Input, InputLocation, UseKind, add_computed, inputs_of};
use orch::git::{ChangedFile, FileChange, FileState};
use orch::path::ProjectPath;
use orch::project::{Problems, Project};

use super::asked::{Answer, Expected};
use super::repository::Repository;
use super::rules::Tree;

/// Checks that exactly the stacks that changed have an input that changed, by the rules of the model,
/// and each by a file of the model.
pub(super) fn check_inputs(
    answer: &Answer,
    expected: &Expected,
    repository: &Repository,
) -> Result<(), String> {
    let mut problems = Problems::default();
    let loaded = Project::load_with_listing(&repository.root, &mut problems);
    let (project, listing) = loaded.unwrap();
    let files = changed_files(expected, repository);
    let stacks: Vec<_> = project.stacks.iter().map(|(index, _)| index).collect();
    for stack in stacks {
        let files = Some(&files);
        let mut inputs = inputs_of(&project, &listing, files, stack, &mut problems).unwrap();
        let host = Vec::new();
        add_computed(&project, &listing, &host, files, None, stack, &mut inputs).unwrap();
        let path = project.stacks[stack].path.as_str().trim_start_matches('/');
        let told = |what: &str| Err(format!("{what}: the inputs of {path}: {inputs:#?}"));
        let changes: BTreeSet<(&str, String)> = inputs.iter().filter_map(change).collect();
        // What hid the stack is listed only for who knows that it did.
        let reasons = expected.changed.get(path);
        let is_hiding = |(rule, _): &(&str, String)| *rule == "hidden";
        if changes.is_empty() && reasons.is_some_and(|all| all.iter().all(is_hiding)) {
            continue;
        }
        if changes.is_empty() == answer.stacks().contains(path) {
            return told("changed or not");
        }
        let Some(reasons) = reasons else {
            continue;
        };
        if !changes.is_subset(reasons) {
            return told("not a reason");
        }
        // The stack's own files are an input of another kind only where somebody names them: a link
        // out of the project is its own file, and leads to no input.
        let is_own = |file: &String| reasons.contains(&("own", file.clone()));
        // A pattern is listed once, with one of the changes of what it matches.
        let is_matched = |file: &String| {
            let path = ProjectPath::root().resolve(file).unwrap();
            let mut with_changes = inputs.iter().filter(|input| input.change.is_some());
            with_changes.any(|input| match &input.location {
                InputLocation::Matching(pattern) => pattern.matches(&path),
                InputLocation::Path(_) => false,
            })
        };
        // A file that is used in several ways is listed once.
        let is_told = |rule: &str, file: &String| {
            let mut told = changes.iter();
            told.any(|(by, what)| *by == rule || what == file) || is_matched(file)
        };
        let mut certain = reasons
            .iter()
            .filter(|reason| !is_own(&reason.1) && !is_hiding(reason));
        if !certain.all(|(rule, file)| is_told(rule, file)) {
            return told("not all reasons");
        }
    }
    Ok(())
}

fn changed_files(expected: &Expected, repository: &Repository) -> ChangedFiles {
    let tree = Tree(&repository.working);
    let counted = expected.files.iter();
    let counted = counted.filter(|(file, _)| !tree.is_ignored(file));
    let files = counted.map(|(file, state)| ChangedFile {
        path: ProjectPath::root().resolve(file).unwrap(),
        change: if expected.earlier_links.contains(file) {
            FileChange::DeletedLink
        } else {
            FileChange::Modified
        },
        state: match *state {
            "committed" => FileState::Committed,
            "uncommitted" => FileState::Uncommitted,
            _ => FileState::Untracked,
        },
    });
    let same = expected.same.iter();
    let same = same.map(|file| ProjectPath::root().resolve(file).unwrap());
    ChangedFiles::new(files.collect()).with_unchanged(same.collect())
}

/// The rule by which an input is one, and the file that changed.
fn change(input: &Input) -> Option<(&'static str, String)> {
    let file = input.change.as_ref()?;
    let rule = match input.chain.first().map(|step| &step.kind) {
        None => "own",
        Some(UseKind::Watch) => "watch",
        Some(UseKind::Import) => "import",
        Some(UseKind::Module(_)) => "module",
        Some(UseKind::Read(_)) => "read",
        Some(UseKind::Link) => "link",
        Some(UseKind::Terragrunt(_)) => "terragrunt",
        Some(UseKind::Environment { .. }) => "environment",
        Some(UseKind::Global { .. }) => "global",
        Some(UseKind::Let { .. }) => "let",
        Some(UseKind::Attribute(_)) => "attribute",
        Some(UseKind::Hidden) => "hidden",
        Some(UseKind::StackList) => "stack_list",
    };
    Some((rule, file.path.relative().to_owned()))
}
