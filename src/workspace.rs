//! The project that a command works in: its stacks, what they refer to, their order, and where the user is in it.
//!
//! Knows neither git nor the state.

use std::path::PathBuf;

use crate::path::ProjectPath;
use crate::project::discover::{Listing, RootRule};
use crate::project::{Problems, Project};
use crate::selection::graph::Graph;
use crate::selection::made_first;
use crate::selection::reference::References;

/// A project that was read, whatever is wrong with it.
#[derive(Debug)]
pub struct Workspace {
    /// The configuration and the stacks.
    pub project: Project,
    /// What stacks refer to in `after`, `before`, `wants` and others.
    pub references: References,
    /// The order of all stacks.
    pub graph: Graph,
    /// The files that may be inputs, if they were asked for.
    pub listing: Listing,
    /// The working directory.
    pub directory: ProjectPath,
    /// How the root was found.
    pub rule: RootRule,
}

/// The project around a directory, which has not been read.
#[derive(Debug)]
pub struct LocatedProject {
    pub root: PathBuf,
    /// How the root was found.
    pub rule: RootRule,
    pub directory: ProjectPath,
}

impl LocatedProject {
    /// Returns whether anything marks the root. If not, the root is the working directory, and nothing is kept there.
    pub fn is_marked(&self) -> bool {
        self.rule != RootRule::WorkingDirectory
    }

    /// Reads the project, and its listing if `lists` is set.
    ///
    /// # Errors
    ///
    /// If no threads can be started. Everything else that is wrong is added to `problems`.
    pub fn load(
        self,
        lists: bool,
        problems: &mut Problems,
    ) -> Result<Workspace, rayon::ThreadPoolBuildError> {
        let LocatedProject {
            root,
            rule,
            directory,
        } = self;
        let (mut project, listing) = if lists {
            Project::load_with_listing(&root, problems)?
        } else {
            (Project::load(&root, problems)?, Listing::default())
        };
        let references = References::resolve(&project, &mut problems.diagnostics);
        let graph = Graph::new(&project.stacks, &references);
        made_first::extend(&mut project, &graph, &mut problems.diagnostics);
        Ok(Workspace {
            project,
            references,
            graph,
            listing,
            directory,
            rule,
        })
    }
}
