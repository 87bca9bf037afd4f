//! The project of a command: stacks, references, order, and the working directory.
//!
//! It knows neither git nor the state.

use std::path::PathBuf;

use crate::change::{ChangeError, add_code_uses};
use crate::path::ProjectPath;
use crate::project::config::OrderFrom;
use crate::project::discover::{Listing, RootRule};
use crate::project::{Problems, Project, ignored_inputs};
use crate::selection::graph::Graph;
use crate::selection::reference::References;
use crate::selection::{create_before_destroy, data};

/// A project that was read, valid or not.
pub struct Workspace {
    pub project: Project,
    /// The references in `after`, `before`, `wants` and the like.
    pub references: References,
    pub graph: Graph,
    /// The files that may be inputs, if requested.
    pub listing: Listing,
    pub directory: ProjectPath,
    pub rule: RootRule,
}

/// The project around a directory, before it is read.
pub struct LocatedProject {
    pub root: PathBuf,
    pub rule: RootRule,
    pub directory: ProjectPath,
}

impl LocatedProject {
    /// Returns whether anything marks the root. If not, the root is the working directory, and no
    /// state is kept.
    pub fn is_marked(&self) -> bool {
        self.rule != RootRule::WorkingDirectory
    }

    /// Reads the project, with its listing if `lists` is set, and with all data that stacks use of
    /// each other if `finds_data` is set: otherwise only what orders them. Fails if no threads can
    /// be started. All other problems are added to `problems`.
    pub fn load(
        self,
        lists: bool,
        finds_data: bool,
        problems: &mut Problems,
    ) -> Result<Workspace, ChangeError> {
        let LocatedProject {
            root,
            rule,
            directory,
        } = self;
        let (mut project, mut listing) = if lists || finds_data {
            Project::load_with_listing(&root, problems)?
        } else {
            (Project::load(&root, problems)?, Listing::default())
        };
        ignored_inputs::check(&project, problems);
        data::add_inputs(&mut project, &mut problems.diagnostics);
        if finds_data {
            data::add_expressions(&mut project);
        }
        let order_from = project.settings.order_from;
        if finds_data || order_from != OrderFrom::default() {
            if !lists && !finds_data {
                (_, listing) = Project::load_with_listing(&root, &mut Problems::default())?;
            }
            add_code_uses(&mut project, &listing, order_from, finds_data, problems)?;
        }
        let references = References::resolve(&project, &mut problems.diagnostics);
        let graph = Graph::new(&project.stacks, &references);
        create_before_destroy::extend(&mut project, &graph, &mut problems.diagnostics);
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
