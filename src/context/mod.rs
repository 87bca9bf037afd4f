//! The data of a command: project, git and state, each read once.
//!
//! Notices go to [`Notices`], which decides how they look.

mod changes;
mod empty_selection;
mod generations;
mod git;
mod moves;
mod other_tools;
mod own_files;
mod private_folder;
mod report;
mod rollback;
mod state;
mod state_errors;
mod state_snapshot;
mod statuses;
mod unmatched_filters;
pub mod upstream;
pub mod used_outputs;

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use serde_json::value::RawValue;

pub use self::changes::ChangeQuery;
pub use self::empty_selection::{missing_quotes, quoted_key};
pub use self::git::{GitReader, GitSnapshot, GitState, exact_status};
pub use self::moves::{FoundMove, follow_all, follow_moves};
pub(crate) use self::own_files::{PLAN_MARK, seal, seal_of};
pub use self::private_folder::{PLANS, PrivateFolder, sweep};
pub use self::report::CyclesAre;
pub use self::rollback::RollbackFlags;
pub use self::state::{Entries, OpenedState, failing_note};
pub use self::state_errors::{
    clashing, from_edit, from_lock, from_read, from_store, locked, lost_records, missing,
    other_copies, quoted,
};
pub use self::state_snapshot::StateSnapshot;
pub use self::statuses::{no_status, state_config};
use crate::change::ChangeBase;
use crate::diagnostic::{self, Diagnostic};
use crate::notice::Notices;
use crate::project::Problems;
use crate::project::per_stack::SharedProblem;
use crate::project::stack::StackIndex;
use crate::workspace::Workspace;

pub const MARK_ROOT: &str = "write `orch { root = true }` to a file `orch.orch.hcl` in the root";

/// A project with the parts of git and the state that have been read so far.
pub struct Context {
    /// Never dropped: when it is no longer needed, the process is about to end. Dropping tens of
    /// thousands of stacks would take a tenth of the time of a listing.
    pub(crate) workspace: ManuallyDrop<Workspace>,
    /// The problems of all files read so far.
    pub problems: Problems,
    pub notices: Notices,
    pub git: GitState,
    pub state: StateSnapshot,
    /// The inputs that a module's policies asked to keep, with the names of the policies.
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
    pub fn new(workspace: Workspace, problems: Problems, git: GitState, notices: Notices) -> Self {
        Context {
            workspace: ManuallyDrop::new(workspace),
            problems,
            notices,
            git,
            state: StateSnapshot::default(),
            release_samples: Vec::new(),
        }
    }

    /// Borrows the project and the problems at the same time.
    pub fn parts(&mut self) -> (&mut Workspace, &mut Problems) {
        (&mut self.workspace, &mut self.problems)
    }

    /// Adds the source files of the problems, so that they can be quoted.
    pub fn add_sources(&mut self) {
        self.problems.settle(&mut self.workspace.project.sources);
    }

    pub fn sort_problems(&mut self) {
        diagnostic::sort(
            &mut self.problems.diagnostics,
            &self.workspace.project.sources,
        );
    }

    pub fn report_base(&self, base: &ChangeBase) {
        let (base, reason) = match base {
            ChangeBase::Commit(base) => (base.commit.short(), base.reason.clone()),
            ChangeBase::Applied(base) => ("applied", base.to_string()),
        };
        self.notices.base(base, &reason);
    }

    pub fn add_shared(&mut self, problems: Vec<SharedProblem>) {
        for SharedProblem { diagnostic, stacks } in problems {
            let note = format!("evaluated for {}", self.names(&stacks));
            self.problems.diagnostics.push(diagnostic.note(note));
        }
    }

    /// Prints problems of stacks that end the command.
    pub fn report_shared(&self, problems: Vec<SharedProblem>) {
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
