//! What a command knows: the project, git and the state, each asked once and then kept.
//!
//! What is worth saying on the way goes to [`Notices`]; how it looks is not decided here.

mod changes;
mod generations;
mod git;
mod guests;
mod idle;
mod moves;
mod nothing;
mod private_folder;
mod report;
mod rollback;
mod standings;
mod state;
mod state_errors;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::value::RawValue;

pub use self::changes::ChangeQuery;
pub(crate) use self::git::PLAN_MARK;
pub use self::git::{GitReader, GitSnapshot, GitState, exact_status};
pub use self::moves::{FoundMove, follow_all, follow_moves};
pub use self::nothing::{missing_quotes, quoted_key};
pub use self::private_folder::{PLANS, PrivateFolder, sweep};
pub use self::report::CyclesAre;
pub use self::rollback::RollbackFlags;
use self::standings::Digested;
pub use self::standings::{no_status, state_config};
pub use self::state::{Entries, Opened, failing_note};
pub use self::state_errors::{
    clashing, from_edit, from_lock, from_read, from_store, is_lost, locked, missing, quoted,
    where_else,
};
use crate::change::{InputDigests, SinceBase};
use crate::diagnostic::{self, Diagnostic};
use crate::notice::Notices;
use crate::project::Problems;
use crate::project::namespaces::Generations;
use crate::project::per_stack::SharedProblem;
use crate::project::stack::StackIndex;
use crate::workspace::Workspace;

/// How to mark the root of a project.
pub const MARK_ROOT: &str = "write `orch { root = true }` to a file `orch.orch.hcl` in the root";

/// A project, and what git and the state say about it as far as they have been asked.
pub struct Context {
    /// Never dropped: the process is about to end when it is no longer needed, and dropping tens of thousands of
    /// stacks would cost a tenth of the time of a listing.
    pub(crate) workspace: ManuallyDrop<Workspace>,
    /// What is wrong with all that has been read.
    pub problems: Problems,
    /// Where notices go.
    pub notices: Notices,
    pub git: GitState,
    /// The state, once it has been opened.
    pub state: Option<Opened>,
    /// The recorded keys of the stacks that `moved` blocks move, by their keys now.
    pub relocated: BTreeMap<String, String>,
    /// The generations of the stacks, once they have been found.
    pub generations: Arc<Generations>,
    /// The digests of all stacks, once they have been computed.
    digested: Option<Digested>,
    /// Whether to fetch applied commits that this clone lacks.
    pub fetches_seen: bool,
    /// The arguments of each `git fetch` that was run to compare HEAD with the applied commits.
    fetched: BTreeSet<Vec<String>>,
    /// The digests that a plan rests on, once they have been computed.
    pub input_digests: Option<Rc<InputDigests>>,
    /// The inputs that policies of a module asked to keep, with the names of the policies.
    pub release_samples: Vec<(String, Box<RawValue>)>,
}

impl Deref for Context {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl DerefMut for Context {
    fn deref_mut(&mut self) -> &mut Workspace {
        &mut self.workspace
    }
}

impl Context {
    /// Returns the context of a project.
    pub fn new(workspace: Workspace, problems: Problems, git: GitState, notices: Notices) -> Self {
        Context {
            workspace: ManuallyDrop::new(workspace),
            problems,
            notices,
            git,
            state: None,
            relocated: BTreeMap::new(),
            generations: Arc::default(),
            digested: None,
            fetches_seen: false,
            fetched: BTreeSet::new(),
            input_digests: None,
            release_samples: Vec::new(),
        }
    }

    /// Returns the project and the problems, so that both can be used at once.
    pub fn parts(&mut self) -> (&mut Workspace, &mut Problems) {
        (&mut self.workspace, &mut self.problems)
    }

    /// Adds the files that problems point into, so that these can be drawn.
    pub fn settle_problems(&mut self) {
        self.problems.settle(&mut self.workspace.project.sources);
    }

    /// Sorts the problems by their places.
    pub fn sort_problems(&mut self) {
        diagnostic::sort(
            &mut self.problems.diagnostics,
            &self.workspace.project.sources,
        );
    }

    /// Gives what changes are measured from.
    pub fn give_base(&self, base: &SinceBase) {
        let (base, reason) = match base {
            SinceBase::Commit(base) => (base.commit.short(), base.reason.clone()),
            SinceBase::Applied(base) => ("applied", base.to_string()),
        };
        self.notices.base(base, &reason);
    }

    /// Adds the problems of stacks, each with the stacks that have it.
    pub fn add_shared(&mut self, problems: Vec<SharedProblem>) {
        for SharedProblem { diagnostic, stacks } in problems {
            let note = format!("evaluated for {}", self.names(&stacks));
            self.problems.diagnostics.push(diagnostic.note(note));
        }
    }

    /// Gives problems of stacks that end the command.
    pub fn give_shared(&self, problems: Vec<SharedProblem>) {
        let with_stacks = problems
            .into_iter()
            .map(|SharedProblem { diagnostic, stacks }| {
                diagnostic.note(format!("evaluated for {}", self.names(&stacks)))
            });
        let diagnostics: Vec<Diagnostic> = with_stacks.collect();
        self.notices
            .diagnostics(&diagnostics, &self.project.sources);
    }
}

impl Workspace {
    /// Returns the path of the first stack and the number of the others.
    pub fn names(&self, stacks: &[StackIndex]) -> String {
        let first = &self.project.stacks[stacks[0]].path;
        match stacks.len() {
            1 => format!("stack `{first}`"),
            more => format!("stack `{first}` and {} more", more - 1),
        }
    }
}
