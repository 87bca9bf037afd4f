//! `orch state`: reading and editing the document of the project.

mod adopt;
mod edit;
mod existing;
mod import;
mod read;
mod recover;

use std::collections::BTreeMap;

pub use self::edit::{Restoration, StateWrite, WriteOptions};
pub use self::import::{ImportRequest, RecordedGraph};
pub use self::read::{DocumentView, RecordedStacks};
pub use self::recover::RecoverRequest;
use super::plan::Planned;
use crate::change::relocate;
use crate::context::{Context, Opened, from_read, missing};
use crate::diagnostic::closest;
use crate::error::{Error, Result};
use crate::notice::Notices;
use crate::path::{KeyFilter, StackPath};
use crate::project::host::host_variable;
use crate::state::clock::SystemClock;
use crate::state::document::Document;

/// Plans stacks to see whether they are as the configuration says: so many at once.
pub type PlanStacks<'p> = dyn Fn(&[StackPath], std::num::NonZeroUsize) -> Result<Planned> + 'p;

/// The state of a project.
pub struct State<'c> {
    context: &'c Context,
    opened: Opened,
    clock: SystemClock,
}

impl Context {
    /// Opens the state, and shows all problems of the project.
    pub fn open_state(&mut self) -> Result<Opened> {
        let Some(block) = self.project.settings.state.clone() else {
            if self.problems.has_errors() {
                self.report()?;
            }
            return Err(Error::refused("this project keeps no state")
                .hint("add a block `orch { config { state { project = \"…\" } } }` to its root; see `orch help state`"));
        };
        let config = match block.evaluate(&host_variable) {
            Ok(config) => Some(config),
            Err(problems) => {
                // What needs no variable has been reported with everything else.
                let known = self.problems.diagnostics.clone();
                let new = problems
                    .into_iter()
                    .filter(|problem| !known.contains(problem));
                self.problems.diagnostics.extend(new);
                None
            }
        };
        self.report()?;
        let config = config.expect("what is wrong is an error");
        Opened::new(&self.project, config, self.notices.clone())
    }
}

impl<'c> State<'c> {
    pub fn new(context: &'c Context, opened: Opened) -> Self {
        State {
            context,
            opened,
            clock: SystemClock::default(),
        }
    }

    fn notices(&self) -> &Notices {
        &self.context.notices
    }

    /// Reads the document of this project, with what the run that holds its lock has recorded so far.
    pub fn read(&self) -> Result<Document> {
        self.opened.read_once()
    }

    /// Reads the document of this project alone.
    fn read_alone(&self) -> Result<Document> {
        let read = self.opened.backend.read().map_err(from_read)?;
        let read = read.ok_or_else(|| missing(&self.opened.backend.address()))?;
        self.opened.check_binding(&read.document)?;
        Ok(read.document)
    }

    /// Checks that the document has something in common with this tree.
    fn check_stacks(&self, document: &Document) -> Result<()> {
        let mut document = document.clone();
        self.relocate(&mut document);
        self.opened.check_stacks(&self.context.project, &document)
    }

    /// Moves the entries of a document to where `moved` blocks say that they are. Returns the keys on record by
    /// the new keys; nothing if that is impossible, since these commands mend it.
    fn relocate(&self, document: &mut Document) -> BTreeMap<String, String> {
        relocate(&self.context.project, document).unwrap_or_default()
    }

    /// Returns the key that the user means, which need not be on record.
    fn key(&self, document: &Document, written: &str) -> Result<String> {
        if document.stacks.contains_key(written) {
            return Ok(written.to_owned());
        }
        if written.is_empty() {
            return Err(Error::usage("the path of a stack is empty"));
        }
        let (directory, instance) = KeyFilter::split(written);
        let outside = |_| Error::usage(format!("`{written}` leads out of the project"));
        let directory = self.context.directory.resolve(directory).map_err(outside)?;
        match instance {
            None => Ok(directory.as_str().to_owned()),
            Some(KeyFilter::One(key)) => {
                Ok(StackPath::instance(directory, key).as_str().to_owned())
            }
            Some(KeyFilter::Any) => Err(Error::usage(format!(
                "`{written}` names several stacks; name one"
            ))),
        }
    }

    /// Returns the key of a stack on record.
    fn recorded(&self, document: &Document, written: &str) -> Result<String> {
        let key = self.key(document, written)?;
        if document.stacks.contains_key(&key) {
            return Ok(key);
        }
        // The commands that read show it under the path that a `moved` block gives it.
        if let Some(before) = self.relocate(&mut document.clone()).remove(&key) {
            return Ok(before);
        }
        let mut error = Error::refused(format!("no stack `{key}` is on record"));
        let known = document.stacks.keys().map(String::as_str);
        error = error.hint(match closest(&key, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`orch state list` shows which are".to_owned(),
        });
        Err(error)
    }
}
