//! The recorded facts of a stack: its inputs, its declarations, and whether its commit is published.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Map;

use crate::change::base::{self, BaseQuery, BaseUnknown};
use crate::change::{EntryIndex, InputDigests, trigger};
use crate::context::Context;
use crate::error::{Error, ErrorContext as _, Result};
use crate::git::{CommitId, GitError, Repository};
use crate::path::{KeyFilter, ProjectPath, StackPath};
use crate::project::config::ProjectSettings;
use crate::project::environment::Environments;
use crate::project::stack::{StackIndex, Stacks};
use crate::project::{Project, Rules};
use crate::run::state::NewEntry;
use crate::source::Span;
use crate::state::document::{Document, Entry, RunAction};
use crate::state::rules::{RecordedRule, RecordedRules};

/// Whether the default branch of the remote has a commit; if there is no remote, any commit counts as
/// published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// Not known to have it: it lacks the commit, is not in this clone, or is unknown. Nothing is recorded then, and
    /// git is asked again when it matters.
    Unknown,
    Yes,
    /// The branch is at the commit.
    Tip,
}

impl Published {
    /// Asks git about the default branch of the remote, as `--changed` finds it.
    pub fn of(
        repository: &Repository,
        settings: &ProjectSettings,
        commit: &CommitId,
    ) -> std::result::Result<Self, GitError> {
        let upstream = match base::default_branch(repository, &BaseQuery::of(settings)) {
            Ok(None) => return Ok(Published::Yes),
            Ok(Some(upstream)) => upstream,
            Err(BaseUnknown::Git(error)) => return Err(error),
            Err(BaseUnknown::Refused { .. } | BaseUnknown::Unclear(_)) => {
                return Ok(Published::Unknown);
            }
        };
        let Some(tip) = repository.commit(&format!("refs/remotes/{upstream}"))? else {
            return Ok(Published::Unknown);
        };
        if tip == *commit {
            Ok(Published::Tip)
        } else if repository.is_ancestor(commit, &tip)? {
            Ok(Published::Yes)
        } else {
            Ok(Published::Unknown)
        }
    }
}

/// The inputs of the stacks before the first command of a run.
pub struct InputSnapshot {
    pub(super) digests: Rc<InputDigests>,
    pub(super) head: Option<CommitId>,
    /// Whether the default branch of the remote has HEAD.
    is_published: bool,
    triggers: Vec<trigger::AskingTrigger>,
    /// The recorded commits that are ancestors of HEAD.
    outdated: BTreeSet<CommitId>,
}

impl InputSnapshot {
    pub fn new(context: &mut Context, document: &Document) -> Result<Self> {
        let failed = "failed to ask git";
        let digests = context.digests_on_disk()?;
        context.opened()?;
        let opened = context.state.opened.as_ref().context("it was opened")?;
        let repository = opened
            .repository
            .as_ref()
            .context("digests come from a repository")?;
        let settings = &context.project.settings;
        let head = repository.commit("HEAD").context(failed)?;
        let published = match &head {
            Some(head) => Published::of(repository, settings, head).context(failed)?,
            None => Published::Unknown,
        };
        let mut outdated = BTreeSet::new();
        if let (Some(head), true) = (&head, published != Published::Unknown) {
            let applied = document
                .stacks
                .values()
                .filter_map(|entry| entry.applied.as_ref());
            let seen = applied.filter_map(|applied| CommitId::new(applied.seen.as_deref()?));
            for seen in seen.collect::<BTreeSet<CommitId>>() {
                let is_here =
                    repository.commit(seen.as_str()).context(failed)?.as_ref() == Some(&seen);
                let is_outdated = if is_here {
                    !repository.is_ancestor(head, &seen).context(failed)?
                } else {
                    published == Published::Tip
                };
                if is_outdated {
                    outdated.insert(seen);
                }
            }
        }
        Ok(InputSnapshot {
            digests,
            is_published: published != Published::Unknown,
            head,
            triggers: trigger::asking(&context.project.root).map_err(Error::external)?,
            outdated,
        })
    }

    /// Records that HEAD has the inputs of all unchanged stacks; returns whether that is new.
    pub fn record_newer_commits(&self, stacks: &Stacks, document: &mut Document) -> bool {
        let Some(head) = self.head.as_ref().filter(|_| self.is_published) else {
            return false;
        };
        let mut is_news = false;
        let pairs: Vec<(StackIndex, String)> = EntryIndex::new(stacks, document)
            .iter()
            .map(|(stack, key)| (stack, key.to_owned()))
            .collect();
        for (stack, key) in pairs {
            let is_dirty = self.digests.stacks[&stack].is_dirty;
            let applied = document.stacks.get_mut(&key);
            let Some(applied) = applied.and_then(|entry| entry.applied.as_mut()) else {
                continue;
            };
            let is_same = applied
                .inputs
                .as_ref()
                .is_some_and(|inputs| self.digests.are(stack, inputs));
            let seen = applied.seen.as_deref().and_then(CommitId::new);
            let moves_on = seen.is_none_or(|seen| self.outdated.contains(&seen));
            if is_same && !is_dirty && moves_on {
                applied.seen = Some(head.to_string());
                is_news = true;
            }
        }
        is_news
    }

    pub fn record(
        &self,
        environments: &Environments<'_>,
        stack: StackIndex,
        action: RunAction,
        command: String,
        document: &Document,
    ) -> NewEntry {
        let generations = environments.generations_used(stack);
        let project = environments.namespaces().project();
        let head = self.head.as_ref().map(CommitId::to_string);
        let digest = &self.digests.stacks[&stack];
        let declared = declared(project, stack, self.head.as_ref());
        let stack = &project.stacks[stack];
        let key = stack.path.to_string();
        let asking = self.triggers.iter().filter(|it| it.concerns(&stack.path));
        let is_seen = self.is_published && !digest.is_dirty;
        NewEntry {
            action,
            command,
            command_position: 0,
            commit: head.clone(),
            seen: head.filter(|_| is_seen),
            is_dirty: digest.is_dirty,
            inputs: digest.recorded(),
            triggers: asking.map(|it| it.file.to_string()).collect(),
            generations,
            declared,
            earlier: document.stacks.get(&key).cloned(),
            plan: None,
            order: document.order().map(str::to_owned),
            is_made_anew: false,
            made: None,
            destroyed: None,
            key,
            unknown: None,
            plan_file: None,
            places: Vec::new(),
        }
    }
}

/// Returns the declarations and rules of a stack as recorded at this commit, with paths from the project root.
/// Triggers of its replacement count as dependencies.
pub fn declared(project: &Project, stack: StackIndex, commit: Option<&CommitId>) -> Entry {
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
    let ordering = stack.uses.iter().filter(|it| it.orders);
    let uses: BTreeSet<String> = ordering.map(|it| it.stack.to_string()).collect();
    Entry {
        id: stack.id.as_ref().map(|id| id.value.clone()),
        name: stack.name.clone(),
        tags: stack.tags().map(str::to_owned).collect(),
        after,
        before: stack.before.iter().map(|it| absolute(&it.value)).collect(),
        uses: uses.into_iter().collect(),
        lifecycle: recorded_rules(project, &rules, commit, absolute),
        ..Entry::default()
    }
}

/// Returns the rules of a stack as recorded at this commit, given the context of relative references.
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
