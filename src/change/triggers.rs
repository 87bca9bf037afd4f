//! Trigger files that differ from the base, and the stacks that they concern.

use std::collections::BTreeMap;

use super::ChangedFiles;
use crate::diagnostic::Diagnostic;
use crate::git::{ChangedFile, CommitId, FileChange, GitError, Repository};
use crate::path::ProjectPath;
use crate::project::Project;
use crate::stack::StackIndex;
use crate::trigger::{self, Found, Trigger, TriggerKind};

/// What triggers ask for, of each stack the first by path.
#[derive(Default)]
pub(super) struct Triggers {
    pub(super) triggered: BTreeMap<StackIndex, Trigger>,
    pub(super) dismissed: BTreeMap<StackIndex, Trigger>,
}

/// What is needed to know besides the files.
pub(super) struct Reader<'a> {
    pub(super) repository: &'a Repository,
    pub(super) head: Option<&'a CommitId>,
    /// Of all changed files, those that are not committed.
    pub(super) status: &'a ChangedFiles,
    pub(super) removed: &'a [ProjectPath],
}

impl Reader<'_> {
    /// Reads the triggers among changed files, all of which lie in the directory of triggers. What is
    /// wrong with them goes to the problems of the project.
    pub(super) fn read(
        &self,
        project: &mut Project,
        files: &ChangedFiles,
    ) -> Result<Triggers, GitError> {
        let mut triggers = Triggers::default();
        for file in files.iter() {
            // A file that a commit deletes may be there again.
            let latest = self.status.at(file.path.as_str()).unwrap_or(file);
            if latest.change == FileChange::Deleted {
                continue;
            }
            let Found::Trigger(statement) = self.read_one(project, latest)? else {
                continue;
            };
            let is_gone = file.change == FileChange::Deleted;
            let trigger = Trigger {
                kind: statement.kind,
                reason: statement.reason,
                file: file.path.clone(),
                state: if is_gone { latest.state } else { file.state },
            };
            let stack = trigger::stack_of(&file.path);
            match project.stacks.at(stack.as_str()) {
                Some(index) => triggers.add(index, trigger),
                None if self.removed.contains(&stack) => {}
                None => {
                    let diagnostic = no_stack(project, &stack, &trigger);
                    project.diagnostics.push(diagnostic);
                }
            }
        }
        Ok(triggers)
    }

    fn read_one(&self, project: &mut Project, file: &ChangedFile) -> Result<Found, GitError> {
        let path = &file.path;
        if file.change == FileChange::Repository {
            let message = format!("`{}` is a repository of its own", path.relative());
            let diagnostic = Diagnostic::warning(message).file(path.clone());
            let diagnostic = diagnostic.note("triggers in it cannot be seen");
            let help = "add the files to the repository of the project";
            project.diagnostics.push(diagnostic.help(help));
            return Ok(Found::NoTrigger);
        }
        match trigger::read(project, path) {
            Found::Nothing => {}
            found => return Ok(found),
        }
        if !trigger::is_nameable(project, path) {
            return Ok(Found::NoTrigger);
        }
        // Nobody has deleted it, so the checkout leaves it out.
        let parent = path.parent().unwrap_or_else(ProjectPath::root);
        let Some(head) = self.head else {
            return Ok(Found::Nothing);
        };
        let names = self.repository.files_in(head, &[parent])?;
        let is_in_head = names.iter().flatten().any(|name| name == path.basename());
        if !is_in_head || !trigger::is_trigger_name(project, path) {
            return Ok(Found::Nothing);
        }
        let texts = self.repository.read(head, std::slice::from_ref(path))?;
        let text = String::from_utf8_lossy(texts.first().map_or(&[][..], Vec::as_slice));
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        Ok(trigger::understand(project, path, text.to_owned()))
    }
}

impl Triggers {
    fn add(&mut self, stack: StackIndex, trigger: Trigger) {
        let of_kind = match trigger.kind {
            TriggerKind::Changed => &mut self.triggered,
            TriggerKind::IgnoreChange => &mut self.dismissed,
        };
        of_kind.entry(stack).or_insert(trigger);
    }
}

fn no_stack(project: &Project, stack: &ProjectPath, trigger: &Trigger) -> Diagnostic {
    let file = trigger.file.relative();
    let message = format!("`{file}` is a trigger of `{stack}`, which is no stack");
    let diagnostic = Diagnostic::warning(message).file(trigger.file.clone());
    let stacks = &project.stacks;
    if stacks.at_or_below(stack).next().is_some() {
        let help =
            format!("to trigger the stacks below it, run `orch trigger --recursive {stack}`");
        return diagnostic.help(help);
    }
    let paths = stacks.iter().map(|(_, stack)| stack.path.as_str());
    let diagnostic = diagnostic.did_you_mean(stack.as_str(), paths);
    diagnostic.help("delete the file if the stack is no more")
}
