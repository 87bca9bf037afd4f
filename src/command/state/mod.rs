//! `orch state`: reads the state, and changes it by hand.

mod adopt;
mod existing;
mod import;
mod read;
mod recover;
mod write;

use jiff::Timestamp;

pub use self::adopt::{AdoptRequest, adopt};
pub use self::existing::ToolCheck;
pub use self::import::{ImportRequest, import};
pub use self::read::{backups, cfngin_graph, document, entry, graph, list, show};
pub use self::recover::{RecoverRequest, recover, unlock};
pub use self::write::{forget, init, move_entry, release, restore, taint, untaint};
use super::stack_arg::{StackArg, did_you_mean};
use crate::change::relocate;
use crate::context::{Context, MARK_ROOT, OpenedState, from_edit, from_read, missing};
use crate::error::{Error, Result};
use crate::project::host::host_variable;
use crate::report::{DocumentChange, Written};
use crate::state::clock::SystemClock;
use crate::state::document::Document;
use crate::state::edit::DocumentEdit;
use crate::workspace::LocatedProject;

#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    pub dry_run: bool,
    /// The reason, in the user's words.
    pub reason: Option<String>,
}

/// Refuses a project without a marked root, which has no state.
pub fn check_root(found: &LocatedProject) -> Result<()> {
    if found.is_marked() {
        return Ok(());
    }
    let what = "no state: nothing marks the root of a project here";
    Err(Error::refused(what).hint(MARK_ROOT))
}

/// Opens the state, and prints all problems of the project. Call it once, before anything else is
/// asked.
pub fn open(context: &mut Context) -> Result<()> {
    if let Some(block) = &context.project.settings.state {
        let problems = block.evaluate(&host_variable).err();
        // Problems that need no variables have already been reported.
        for problem in problems.into_iter().flatten() {
            if !context.problems.diagnostics.contains(&problem) {
                context.problems.diagnostics.push(problem);
            }
        }
        context.report()?;
    } else if context.problems.has_errors() {
        context.report()?;
    }
    context.opened().map(drop)
}

struct ProjectState<'c> {
    context: &'c Context,
    opened: &'c OpenedState,
    clock: SystemClock,
}

impl<'c> ProjectState<'c> {
    fn of(context: &'c mut Context) -> Result<Self> {
        context.opened()?;
        let context = &*context;
        Ok(ProjectState {
            context,
            opened: context
                .state
                .opened
                .as_ref()
                .expect("it has just been opened"),
            clock: SystemClock::default(),
        })
    }

    /// Reads the document of this project without the records of the run that holds its lock.
    fn read_alone(&self) -> Result<Document> {
        let read = self
            .opened
            .backend
            .read()
            .map_err(from_read)?
            .ok_or_else(|| missing(&self.opened.backend.address()))?;
        self.opened.check_binding(&read.document)?;
        Ok(read.document)
    }

    fn check_stacks(&self, document: &Document) -> Result<()> {
        let mut document = document.clone();
        self.relocate(&mut document);
        self.opened.check_stacks(&self.context.project, &document)
    }

    /// Rekeys the entries of a document by the `moved` blocks; none if the blocks contradict the
    /// state, since these commands repair that.
    fn relocate(&self, document: &mut Document) {
        _ = relocate(&self.context.project, document);
    }

    /// Returns the key that the user means, recorded or not.
    fn key(&self, document: &Document, written: &str) -> Result<String> {
        if document.stacks.contains_key(written) {
            return Ok(written.to_owned());
        }
        if written.is_empty() {
            return Err(Error::usage("the path of a stack is empty"));
        }
        let path = StackArg::new(&self.context.directory, written)
            .path()
            .map_err(|why| Error::usage(why.to_string()))?;
        Ok(path.to_string())
    }

    fn recorded(&self, document: &Document, written: &str) -> Result<String> {
        let key = self.key(document, written)?;
        if document.stacks.contains_key(&key) {
            return Ok(key);
        }
        // Reading commands show it under the path that a `moved` block gives it.
        let mut relocated = document.clone();
        self.relocate(&mut relocated);
        if relocated.stacks.contains_key(&key) {
            return Ok(relocated.key_as_read(&key).to_owned());
        }
        let hint = did_you_mean(&key, document.stacks.keys().map(String::as_str))
            .unwrap_or_else(|| "`orch state list` shows the recorded stacks".to_owned());
        Err(Error::refused(format!("`{key}` is not recorded")).hint(hint))
    }

    /// Returns the keys of recorded stacks, each once.
    fn all_recorded(&self, document: &Document, written: &[String]) -> Result<Vec<String>> {
        let mut keys: Vec<String> = written
            .iter()
            .map(|written| self.recorded(document, written))
            .collect::<Result<_>>()?;
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    fn edit(&self, what: &'static str, options: &WriteOptions) -> DocumentEdit<'_> {
        DocumentEdit {
            author: &self.opened.author,
            what,
            reason: options.reason.clone(),
            dry_run: options.dry_run,
        }
    }

    fn change(
        &self,
        edit: &DocumentEdit<'_>,
        done: DocumentChange,
        change: impl Fn(&mut Document, Timestamp) -> Result<Vec<String>>,
    ) -> Result<Written> {
        let made = edit.make(&self.opened.backend, &self.clock, |document, now| {
            self.opened.check_binding(document)?;
            change(document, now)
        });
        let (stacks, document) = made.map_err(from_edit)?;
        Ok(self.written(edit.dry_run, done, stacks, &document))
    }

    fn written(
        &self,
        dry_run: bool,
        change: DocumentChange,
        stacks: Vec<String>,
        document: &Document,
    ) -> Written {
        Written {
            dry_run,
            address: self.opened.backend.address(),
            lineage: document.lineage.clone(),
            serial: document.serial,
            stacks,
            change,
            notes: Vec::new(),
        }
    }
}
