//! Changed trigger files and the stacks that they mark.

use std::collections::BTreeMap;

use super::files::ChangedFiles;
use super::trigger::{self, Trigger, TriggerFile, TriggerKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::git::{ChangedFile, CommitId, FileChange, GitError, Repository};
use crate::path::{KeyFilter, ProjectPath, StackPath};
use crate::project::stack::StackIndex;
use crate::project::{Problems, Project};

/// The maximum number of listed triggers without a stack; the others are only counted.
const MAX_STRAYS: usize = 20;

#[derive(Default)]
pub(super) struct TriggerEffects {
    /// The first trigger of each stack by path; one suffices.
    pub(super) triggered: BTreeMap<StackIndex, Trigger>,
    /// All triggers of each stack, by path: any one suffices.
    pub(super) dismissed: BTreeMap<StackIndex, Vec<Trigger>>,
}

pub(super) struct TriggerReader<'a> {
    pub(super) repository: &'a Repository,
    pub(super) head: Option<&'a CommitId>,
    /// The changed files that are not committed.
    pub(super) status: &'a ChangedFiles,
    pub(super) removed: &'a [StackPath],
}

impl TriggerReader<'_> {
    /// Reads the triggers among changed files, all of which are in the trigger directory, and adds their
    /// problems to `problems`.
    pub(super) fn read(
        &self,
        project: &Project,
        files: &ChangedFiles,
        problems: &mut Problems,
    ) -> Result<TriggerEffects, GitError> {
        let mut triggers = TriggerEffects::default();
        let mut strays = Vec::new();
        for file in files.iter() {
            // A file that a commit deletes may exist again.
            let latest = self.status.at(file.path.as_str()).unwrap_or(file);
            if latest.change.is_deletion() {
                continue;
            }
            let TriggerFile::Trigger(statement) = self.read_one(project, latest, problems)? else {
                continue;
            };
            let is_gone = file.change.is_deletion();
            let trigger = Trigger {
                kind: statement.kind,
                reason: statement.reason,
                file: file.path.clone(),
                state: if is_gone { latest.state } else { file.state },
            };
            let directory = trigger::directory_of(&file.path);
            let here = project.stacks.at(directory.as_str());
            let key = statement.key.clone().map(KeyFilter::One);
            let meant = match &key {
                Some(key) => project.stacks.instances(&here, key),
                None => here,
            };
            let is_meant = |path: &StackPath| {
                *path.directory() == directory
                    && key.as_ref().is_none_or(|key| key.matches(path.key()))
            };
            if meant.len() == 0 && !self.removed.iter().any(is_meant) {
                let stack = match statement.key {
                    Some(key) => StackPath::instance(directory, key),
                    None => directory.into(),
                };
                strays.push((stack, trigger.file));
                continue;
            }
            for stack in meant {
                triggers.add(stack, trigger.clone());
            }
        }
        warn_of_strays(project, &strays, &mut problems.diagnostics);
        Ok(triggers)
    }

    fn read_one(
        &self,
        project: &Project,
        file: &ChangedFile,
        problems: &mut Problems,
    ) -> Result<TriggerFile, GitError> {
        let path = &file.path;
        if file.change == FileChange::Repository {
            let message = format!("`{}` is another git repository", path.relative());
            let diagnostic = Diagnostic::warning(Code::InvalidTrigger, message)
                .file(path.clone())
                .note("triggers in it go unnoticed");
            let help = "add the files to the repository of the project";
            problems.diagnostics.push(diagnostic.help(help));
            return Ok(TriggerFile::NoTrigger);
        }
        match trigger::read(&project.root, path, problems) {
            TriggerFile::Nothing => {}
            found => return Ok(found),
        }
        if !trigger::is_nameable(path, problems) {
            return Ok(TriggerFile::NoTrigger);
        }
        // It was not deleted, so a sparse checkout omits it.
        let parent = path.parent().unwrap_or_else(ProjectPath::root);
        let Some(head) = self.head else {
            return Ok(TriggerFile::Nothing);
        };
        let names = self.repository.files_in(head, &[parent])?;
        let is_in_head = names.iter().flatten().any(|name| name == path.basename());
        if !is_in_head || !trigger::is_trigger_name(path, problems) {
            return Ok(TriggerFile::Nothing);
        }
        let texts = self.repository.read(head, std::slice::from_ref(path))?;
        let text = String::from_utf8_lossy(texts.first().map_or(&[][..], Vec::as_slice));
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        Ok(trigger::understand(path, text.to_owned(), problems))
    }
}

impl TriggerEffects {
    fn add(&mut self, stack: StackIndex, trigger: Trigger) {
        match trigger.kind {
            TriggerKind::Changed => _ = self.triggered.entry(stack).or_insert(trigger),
            TriggerKind::IgnoreChange => self.dismissed.entry(stack).or_default().push(trigger),
        }
    }
}

/// Warns of triggers for paths without a stack, given with their files by path.
fn warn_of_strays(
    project: &Project,
    strays: &[(StackPath, ProjectPath)],
    problems: &mut Vec<Diagnostic>,
) {
    let (named, others) = strays.split_at(strays.len().min(MAX_STRAYS));
    for (stack, file) in named {
        problems.push(no_stack(project, stack, file));
    }
    if let Some((_, file)) = others.first() {
        let message = match others.len() {
            1 => "1 more trigger is for a path that is not a stack".to_owned(),
            more => format!("{more} more triggers are for paths that are not stacks"),
        };
        let diagnostic = Diagnostic::warning(Code::OrphanedTrigger, message)
            .file(file.clone())
            .help("delete those whose stacks no longer exist");
        problems.push(diagnostic);
    }
}

fn no_stack(project: &Project, stack: &StackPath, file: &ProjectPath) -> Diagnostic {
    let message = format!(
        "`{}` is a trigger for `{stack}`, which is not a stack",
        file.relative()
    );
    let diagnostic = Diagnostic::warning(Code::OrphanedTrigger, message).file(file.clone());
    let stacks = &project.stacks;
    if stack.key().is_none() && stacks.at_or_below(stack.directory()).next().is_some() {
        let help =
            format!("to trigger the stacks below it, run `orch trigger --recursive {stack}`");
        return diagnostic.help(help);
    }
    let paths = stacks.iter().map(|(_, stack)| stack.path.as_str());
    let diagnostic = diagnostic.did_you_mean(stack.as_str(), paths);
    diagnostic.help("delete the file if the stack no longer exists")
}
