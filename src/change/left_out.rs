//! The inputs that `ignore_changes` leaves out, for explanations.
//!
//! This module does not know what changed or what is recorded.

use std::cmp::Ordering;

use super::cause::{Ignored, Input, InputLocation, Location, Use, UseKind};
use crate::path::ProjectPath;
use crate::pattern::FilePattern;
use crate::project::Project;
use crate::project::lifecycle::{IgnoredChanges, IgnoredInput};
use crate::project::stack::StackIndex;

/// Marks the inputs that the `ignore_changes` of a stack leaves out, entirely or in part. Files that compute
/// variables stay unmarked, since several variables may come from one.
pub fn mark_ignored(project: &Project, stack: StackIndex, inputs: &mut [Input]) {
    let listed = match project.rules_of(stack).ignore_changes {
        None => return,
        Some(changes) => match &changes.value {
            IgnoredChanges::All => {
                for input in inputs {
                    input.ignored = Ignored::All;
                }
                return;
            }
            IgnoredChanges::Inputs(listed) => listed,
        },
    };
    let directory = project.stacks[stack].path.directory();
    let globs = listed.iter().filter_map(|input| match &input.value {
        // An invalid glob was reported where it is written.
        IgnoredInput::Files(glob) => Some((glob.as_str(), FilePattern::new(directory, glob).ok()?)),
        IgnoredInput::Variable(_) | IgnoredInput::Input(_) => None,
    });
    let globs: Vec<(&str, FilePattern)> = globs.collect();
    for input in inputs {
        input.ignored = ignored(project, &globs, input);
    }
}

fn ignored(project: &Project, globs: &[(&str, FilePattern)], input: &Input) -> Ignored {
    let matches = |file: &ProjectPath| globs.iter().any(|(_, glob)| glob.matches(file));
    let is_way = |step: &&Use| {
        matches!(
            step.kind,
            UseKind::Module(_) | UseKind::Read(_) | UseKind::Link | UseKind::Terragrunt(_)
        )
    };
    let mut ways = input.chain.iter().filter(is_way);
    if ways.any(|step| matches(&step.location.file)) {
        return Ignored::All;
    }
    let is_all = match &input.location {
        InputLocation::Path(path) => {
            let mut all = globs.iter();
            matches(path)
                || all.any(|(_, glob)| is_around(glob, path) && glob.matches_all_below(path))
        }
        InputLocation::Matching(pattern) => {
            let mut all = globs.iter().map(|(_, glob)| glob.to_string());
            all.any(|glob| glob == pattern.to_string())
        }
    };
    if is_all {
        return Ignored::All;
    }
    let within = match &input.location {
        InputLocation::Path(path) if path.to_host(&project.root).is_dir() => path,
        InputLocation::Path(_) => return Ignored::Nothing,
        InputLocation::Matching(pattern) => pattern.directory(),
    };
    let may_match = |glob: &FilePattern| {
        glob.directory().is_at_or_below(within)
            || is_around(glob, within) && glob.may_match_below(within)
    };
    let some: Vec<String> = globs
        .iter()
        .filter(|(_, glob)| may_match(glob))
        .map(|(written, _)| (*written).to_owned())
        .collect();
    if some.is_empty() {
        Ignored::Nothing
    } else {
        Ignored::Matching(some)
    }
}

fn is_around(glob: &FilePattern, directory: &ProjectPath) -> bool {
    directory.is_at_or_below(glob.directory())
}

/// Returns the variables of `run.env` that the `ignore_changes` of a stack leaves out, by name, with the
/// places of their definitions. Variables that are not set are missing.
pub fn ignored_variables(project: &Project, stack: StackIndex) -> Vec<Use> {
    let Some(changes) = project.rules_of(stack).ignore_changes else {
        return Vec::new();
    };
    let directory = project.stacks[stack].path.directory();
    let around = || std::iter::once(directory.as_str()).chain(directory.ancestors());
    let scopes = || around().filter_map(|directory| project.scopes.get(directory));
    let is_named = |name: &str| match &changes.value {
        IgnoredChanges::All => true,
        IgnoredChanges::Inputs(inputs) => inputs.iter().any(
            |input| matches!(&input.value, IgnoredInput::Variable(variable) if variable == name),
        ),
    };
    let mut found: Vec<Use> = Vec::new();
    for definition in scopes().flat_map(|scope| &scope.env) {
        let name = &*definition.name.text;
        let is_same = |it: &Use| matches!(&it.kind, UseKind::Environment { name: known, .. } if **known == *name);
        // The nearest definition counts.
        if is_named(name) && !found.iter().any(is_same) {
            found.push(Use {
                kind: UseKind::Environment {
                    name: name.into(),
                    was: false,
                },
                location: Location::of(definition.name.span, project),
            });
        }
    }
    found.sort_by(|a, b| match (&a.kind, &b.kind) {
        (UseKind::Environment { name: a, .. }, UseKind::Environment { name: b, .. }) => a.cmp(b),
        _ => Ordering::Equal,
    });
    found
}
