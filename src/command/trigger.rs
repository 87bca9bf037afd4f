//! `orch trigger`: marks stacks as changed or unchanged.

use std::io;
use std::path::{Path, PathBuf};

use tracing::debug;

use super::new_directory::cannot;
use super::stack_arg::did_you_mean;
use crate::author;
use crate::change::trigger::{
    CreatedTriggers, TriggerKind, TriggerNotCreated, TriggerTarget, create,
};
use crate::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::error::{Error, Result};
use crate::git::{GitError, Repository};
use crate::path::{KeyFilter, ProjectPath};
use crate::printable::{count, listed};
use crate::project::stack::StackIndex;
use crate::project::tag::TagFilter;
use crate::selection::select::Query;

const MAX_NAMED: usize = 5;

const TRIGGER: &str = "trigger";

/// The stacks to mark, and how.
pub struct TriggerRequest {
    /// A directory, maybe with the key of an instance; from the project root if it begins with `/`.
    pub path: PathBuf,
    /// Whether all stacks at and below the directory are marked.
    pub is_recursive: bool,
    /// Whether the stacks count as unchanged.
    pub ignores_changes: bool,
    pub reason: Option<String>,
    pub tags: Vec<TagFilter>,
    pub no_tags: Vec<String>,
}

#[derive(Default)]
pub struct WrittenTriggers {
    targets: Vec<TriggerTarget>,
    files: Vec<ProjectPath>,
    /// Why the last one could not be created.
    error: Option<TriggerNotCreated>,
    ignores_changes: bool,
}

impl WrittenTriggers {
    pub fn files(&self) -> &[ProjectPath] {
        &self.files
    }

    /// Describes the effect of the files, and why they may have none. Fails if one could not be
    /// created.
    pub fn note(self, context: &Context) -> Result<()> {
        let notices = &context.notices;
        let WrittenTriggers {
            targets,
            files,
            error,
            ignores_changes,
        } = self;
        if let Some(error) = error {
            let (created, all) = (files.len(), count(targets.len(), "trigger"));
            let what = format!("only {created} of {all} could be created");
            return Err(Error::described(what, error));
        }
        if files.is_empty() {
            return Ok(());
        }
        let n_marked = |target: &TriggerTarget| match target.key {
            Some(_) => 1,
            None => context.project.stacks.at(target.directory.as_str()).len(),
        };
        let marks_instances = targets.len() == 1 && n_marked(&targets[0]) > 1;
        let ignored = match Repository::open(&context.project.root) {
            Ok(repository) => repository.ignored(&files),
            Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => {
                notices.note(
                    "the project is not in a git repository; without one, no stack counts as changed",
                );
                return Ok(());
            }
            Err(error) => Err(error),
        };
        // A later `--changed` reports the git error.
        let ignored = ignored.unwrap_or_else(|error| {
            debug!(%error, "git failed to list ignored files");
            Vec::new()
        });
        context.warn_of_ignored(&ignored);
        let (stack, stacks, its, their) = match ignored.as_slice() {
            [] => (
                "the stack",
                "the stacks",
                "this file differs",
                "these files differ",
            ),
            _ => (
                "the other stack",
                "the other stacks",
                "its file differs",
                "their files differ",
            ),
        };
        let stack = if marks_instances { stacks } else { stack };
        let counts = if ignores_changes {
            "not count as changed"
        } else {
            "count as changed"
        };
        match files.len() - ignored.len() {
            0 => {}
            1 => notices.note(&format!(
                "{stack} will {counts} as long as {its} from the base: commit it"
            )),
            _ => notices.note(&format!(
                "{stacks} will {counts} as long as {their} from the base: commit them"
            )),
        }
        Ok(())
    }
}

impl Context {
    /// Creates the trigger files that mark some stacks; see [`WrittenTriggers::note`].
    pub fn trigger(&self, request: &TriggerRequest) -> Result<WrittenTriggers> {
        let (path, key) = self.split_key(&request.path);
        let place = self.place(&path)?;
        let targets = if request.is_recursive {
            if key.is_some() {
                let why = "`--recursive` needs a directory, and this names instances";
                return Err(cannot_trigger(&request.path, why));
            }
            self.targets_below(&Query {
                tags: request.tags.clone(),
                no_tags: request.no_tags.clone(),
                ..Query::at_or_below(place)
            })
        } else {
            vec![self.target_at(place, key, &request.path)?]
        };
        if targets.is_empty() {
            return Ok(WrittenTriggers::default());
        }
        let kind = if request.ignores_changes {
            TriggerKind::IgnoreChange
        } else {
            TriggerKind::Changed
        };
        let root = &self.project.root;
        let repository = Repository::open(root);
        let reason = request.reason.as_deref().unwrap_or("triggered by hand");
        let reason = format!(
            "{reason} (asked for by {})",
            author::user(repository.as_ref().ok())
        );
        let CreatedTriggers { files, error } = create(root, &targets, kind, &reason);
        Ok(WrittenTriggers {
            targets,
            files,
            error,
            ignores_changes: request.ignores_changes,
        })
    }

    fn warn_of_ignored(&self, files: &[ProjectPath]) {
        let shown = |file: &ProjectPath| format!("`{}`", file.relative_to(&self.directory));
        let (message, help) = match files {
            [] => return,
            [file] => (
                format!("git ignores {}, so this trigger has no effect", shown(file)),
                "remove it from the ignore rules, or run `git add --force`",
            ),
            files => {
                let names = listed(files.iter().map(shown), MAX_NAMED);
                (
                    format!("git ignores {names}, so these triggers have no effect"),
                    "remove them from the ignore rules, or run `git add --force`",
                )
            }
        };
        let diagnostic = Diagnostic::warning(Code::IgnoredTrigger, message).help(help);
        self.notices
            .diagnostics(&[diagnostic], &self.project.sources);
    }

    /// Returns the directory of a command-line path: relative to the project root if it begins with
    /// `/`, else to the working directory.
    fn place(&self, written: &Path) -> Result<ProjectPath> {
        let cannot = |why: String| cannot_trigger(written, &why);
        let path = self.directory_arg(TRIGGER, written)?;
        let mut host = self.project.root.clone();
        let mut place = ProjectPath::root();
        for name in path.components() {
            host.push(name);
            place = place.join(name);
            let kind = match host.symlink_metadata() {
                Ok(metadata) => metadata.file_type(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(cannot(self.why_not_there(&path, written)));
                }
                Err(error) => {
                    let what = format!("failed to look at `{place}`");
                    return Err(Error::described(what, error));
                }
            };
            if kind.is_symlink() {
                let leads = self.where_it_leads(&path);
                return Err(cannot(format!("`{place}` is a symbolic link{leads}")));
            } else if !kind.is_dir() {
                return Err(cannot(match self.stack_around(&place) {
                    Some(stack) => format!("not a directory; it belongs to the stack `{stack}`"),
                    None => "not a directory".to_owned(),
                }));
            }
        }
        Ok(path)
    }

    fn why_not_there(&self, path: &ProjectPath, written: &Path) -> String {
        if let Some(why) = self.without_quotes(&written.to_string_lossy()) {
            return why;
        }
        let stacks: Vec<&str> = self
            .project
            .stacks
            .iter()
            .map(|(_, stack)| stack.path.as_str())
            .collect();
        let inside = written.strip_prefix(&self.project.root).ok();
        let inside = inside.and_then(|inside| ProjectPath::from_host(Path::new(""), inside));
        let mut message = "does not exist".to_owned();
        if let Some(inside) = inside.filter(|inside| stacks.contains(&inside.as_str())) {
            message += &format!("; a leading `/` is the project root, so write `{inside}`");
        } else if let Some(hint) = did_you_mean(path.as_str(), stacks) {
            message += &format!("; {hint}");
        }
        message
    }

    /// Describes where a link in a path leads.
    fn where_it_leads(&self, path: &ProjectPath) -> String {
        let root = &self.project.root;
        let Ok(target) = dunce::canonicalize(path.to_host(root)) else {
            return " that leads nowhere".to_owned();
        };
        match ProjectPath::from_host(root, &target) {
            Some(target) => format!("; use its target: `{target}`"),
            None => " that leads out of the project".to_owned(),
        }
    }

    /// Splits the key from a command-line path, unless there is a directory of that name.
    fn split_key(&self, written: &Path) -> (PathBuf, Option<KeyFilter>) {
        let text = written.to_str().unwrap_or_default();
        let is_directory = || {
            let path = self.directory.resolve(text).ok();
            path.is_some_and(|path| path.to_host(&self.project.root).exists())
        };
        match KeyFilter::split(text) {
            ("", Some(key)) => (PathBuf::from("."), Some(key)),
            (path, Some(key)) if !is_directory() => (PathBuf::from(path), Some(key)),
            _ => (written.to_owned(), None),
        }
    }

    /// Returns the target of a trigger: the stacks in a directory, or those that a key selects.
    fn target_at(
        &self,
        place: ProjectPath,
        key: Option<KeyFilter>,
        written: &Path,
    ) -> Result<TriggerTarget> {
        let stacks = &self.project.stacks;
        let mut here = stacks.at(place.as_str());
        let is_meant = |stack: StackIndex| {
            let own = stacks[stack].path.key();
            key.as_ref().is_none_or(|key| key.matches(own))
        };
        if here.any(is_meant) {
            let key = match key {
                Some(KeyFilter::One(key)) => Some(key),
                Some(KeyFilter::Any) | None => None,
            };
            let directory = place;
            return Ok(TriggerTarget { directory, key });
        }
        let mut nested = self.project.nested_projects.iter();
        if let Some(nested) = nested.find(|nested| place.is_at_or_below(nested)) {
            let why = format!("`{nested}` is a project of its own: change into it");
            return Err(cannot_trigger(written, &why));
        }
        let mut why = self.why_no_stack(&place, &written.to_string_lossy());
        if key.is_none() && stacks.at_or_below(&place).next().is_some() {
            why += "; add `--recursive`";
        }
        Err(cannot_trigger(written, &why))
    }

    /// Returns triggers for the stacks that match all filters; prints a note if there are none. If
    /// all instances in a directory match, they share one trigger.
    fn targets_below(&self, query: &Query) -> Vec<TriggerTarget> {
        let stacks = &self.project.stacks;
        let place = &query.directory;
        let passes = |&index: &StackIndex| query.obstacles(index, &stacks[index]).is_empty();
        let chosen: Vec<StackIndex> = stacks.at_or_below(place).filter(passes).collect();
        if chosen.is_empty() {
            let mut message = format!("no stack at or below `{place}`");
            if stacks.at_or_below(place).next().is_some() {
                message += " passes the tag filters";
            } else if let Some(above) = self.stack_around(place) {
                message += &format!("; it is inside the stack `{above}`");
            }
            self.notices.note(&message);
        }
        let directory = |stack: &StackIndex| stacks[*stack].path.directory();
        let by_directory = chosen.chunk_by(|a, b| directory(a) == directory(b));
        let targets = by_directory.flat_map(|here| {
            let is_all = here.len() == stacks.at(directory(&here[0]).as_str()).len();
            let target = move |&stack: &StackIndex| TriggerTarget {
                directory: directory(&stack).clone(),
                key: stacks[stack].path.key().filter(|_| !is_all).cloned(),
            };
            let count = if is_all { 1 } else { here.len() };
            here.iter().take(count).map(target)
        });
        targets.collect()
    }
}

fn cannot_trigger(written: &Path, why: &str) -> Error {
    cannot(TRIGGER, written, why)
}
