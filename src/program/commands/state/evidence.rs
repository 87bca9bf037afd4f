//! What is put on record of a stack: its inputs, what it declares, and whether its commit is published.

use orch::change::InputDigest;
use orch::change::base::{self, BaseQuery, BaseUnknown};
use orch::git::{CommitId, GitError, Repository};
use orch::path::{KeyFilter, ProjectPath, StackPath};
use orch::project::config::ProjectSettings;
use orch::project::stack::StackIndex;
use orch::project::{Project, Rules};
use orch::source::Span;
use orch::state::document::{Entry, Inputs};
use orch::state::rules::{RecordedRule, RecordedRules};
use serde_json::Map;

/// Whether the default branch of the remote has a commit; if there is no remote, any commit counts as
/// published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::program::commands) enum Published {
    /// It does not.
    No,
    /// It does.
    Yes,
    /// The branch is at the commit.
    Tip,
}

impl Published {
    /// Asks about the default branch of the remote, as `--changed` finds it.
    pub(in crate::program::commands) fn of(
        repository: &Repository,
        settings: &ProjectSettings,
        commit: &CommitId,
    ) -> Result<Self, GitError> {
        let upstream = match base::default_branch(repository, &BaseQuery::of(settings)) {
            Ok(None) => return Ok(Published::Yes),
            Ok(Some(upstream)) => upstream,
            Err(BaseUnknown::Git(error)) => return Err(error),
            // Nobody knows which branch counts.
            Err(_) => return Ok(Published::No),
        };
        let Some(tip) = repository.commit(&format!("refs/remotes/{upstream}"))? else {
            return Ok(Published::No);
        };
        if tip == *commit {
            Ok(Published::Tip)
        } else if repository.is_ancestor(commit, &tip)? {
            Ok(Published::Yes)
        } else {
            Ok(Published::No)
        }
    }
}

/// Returns the inputs of a stack as they are on record.
pub(in crate::program::commands) fn inputs(rules: &str, digest: &InputDigest) -> Inputs {
    digest.recorded(rules)
}

/// Returns what a stack declares and which rules are in force for it, as it is on record at this commit: with
/// paths from the project root. What triggers its replacement counts as something it runs after.
pub(in crate::program::commands) fn declared(
    project: &Project,
    stack: StackIndex,
    commit: Option<&CommitId>,
) -> Entry {
    let rules = project.rules_of(stack);
    let stack = &project.stacks[stack];
    let absolute = |written: &str| {
        if written.starts_with("tag:") {
            return written.to_owned();
        }
        let (path, key) = KeyFilter::split(written);
        let path = stack.path.directory().resolve(path);
        let path = path.as_ref().map_or(written, ProjectPath::as_str);
        let key = key.map(|key| key.to_string());
        format!("{path}{}", key.unwrap_or_default())
    };
    let mut after: Vec<String> = stack.after.iter().map(|it| absolute(&it.value)).collect();
    for trigger in rules.replace_triggered_by {
        let trigger = absolute(&trigger.value.reference);
        if !after.contains(&trigger) {
            after.push(trigger);
        }
    }
    Entry {
        id: stack.id.as_ref().map(|id| id.value.clone()),
        name: stack.name.clone(),
        tags: stack.tags().map(str::to_owned).collect(),
        after,
        before: stack.before.iter().map(|it| absolute(&it.value)).collect(),
        lifecycle: recorded_rules(project, &rules, commit, absolute),
        ..Entry::default()
    }
}

/// Returns the rules of a stack as they are on record at this commit, given what makes references absolute.
fn recorded_rules(
    project: &Project,
    rules: &Rules<'_>,
    commit: Option<&CommitId>,
    absolute: impl Fn(&str) -> String,
) -> RecordedRules {
    let commit = commit.map(CommitId::to_string);
    RecordedRules {
        prevent_destroy: rules
            .prevent_destroy
            .map(|rule| recorded(project, rule.span, rule.value, commit.as_ref())),
        prevent_resource_destroy: rules
            .prevent_resource_destroy
            .map(|rule| recorded(project, rule.span, rule.value.clone(), commit.as_ref())),
        create_before_destroy: rules.create_before_destroy.map(|rule| {
            let place = rule.span.map(|span| project.sources.file_and_line(span));
            RecordedRule {
                value: rule.value,
                file: place.map(|(file, _)| file.to_owned()),
                line: place.map(|(_, line)| line),
                commit: commit.clone(),
                from: rule.from.map(StackPath::to_string),
                other: Map::new(),
            }
        }),
        ignore_changes: rules
            .ignore_changes
            .map(|rule| recorded(project, rule.span, rule.value.words(), commit.as_ref())),
        replace_triggered_by: rules.replace_triggered_by.first().map(|first| {
            let triggers = rules.replace_triggered_by.iter().map(|trigger| {
                let output = trigger.value.output.as_ref();
                let output = output.map(|output| format!("#{output}"));
                absolute(&trigger.value.reference) + output.as_deref().unwrap_or_default()
            });
            recorded(project, first.span, triggers.collect(), commit.as_ref())
        }),
        other: Map::new(),
    }
}

fn recorded<T>(
    project: &Project,
    span: Span,
    value: T,
    commit: Option<&String>,
) -> RecordedRule<T> {
    let (file, line) = project.sources.file_and_line(span);
    RecordedRule {
        value,
        file: Some(file.to_owned()),
        line: Some(line),
        commit: commit.cloned(),
        from: None,
        other: Map::new(),
    }
}
