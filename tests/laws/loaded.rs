//! A tree as the library sees it, translated to the model's terms.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::PathBuf;

use orch::change::base::{Base, BaseRule};
use orch::change::trigger::{Trigger, TriggerKind};
use orch::change::{
    AppliedBase, Baseline, ChangeBase, ChangeCause, ChangedFiles, Changes, CountedStates, Pending,
    StackStatus, StackStatuses, StatusKind, UncountedFiles,
};
use orch::diagnostic::{Diagnostic, RenderStyle, render};
use orch::git::{ChangedFile, CommitId, FileChange, FileState};
use orch::path::ProjectPath;
use orch::project::stack::StackIndex;
use orch::project::tag::TagFilter;
use orch::project::{Problems, Project};
use orch::selection::graph::{Graph, SearchDirection};
use orch::selection::reference::References;
use orch::selection::select::{
    DirectoryMatch, NamedStacks, NeighbourChoice, PathFilter, Query, Reach, ReachBy, RecordedQuery,
    ReleasedQuery, Selection, select,
};
use orch::source::Span;
use tempfile::TempDir;

use crate::model::{Model, Set};
use crate::selector::{ModelChanges, ModelQuery, ModelReach, ModelStatuses};
use crate::support::host::folder;
use crate::tree::{Tree, write};

/// The files of the triggers of each stack that is dismissed.
pub(crate) const DISMISSING: [&str; 2] = ["ignore-1", "ignore-2"];

pub(crate) struct Loaded {
    _directory: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) model: Model,
    pub(crate) project: Project,
    pub(crate) references: References,
    /// What is wrong with references.
    pub(crate) problems: Vec<Diagnostic>,
    pub(crate) graph: Graph,
}

impl Loaded {
    pub(crate) fn new(tree: &Tree) -> Self {
        let directory = folder();
        let root = directory.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        write(&root, &tree.files());
        let mut problems = Problems::default();
        let project = Project::load(&root, &mut problems).unwrap();
        assert!(problems.errors.is_empty(), "{:?}", problems.errors);
        let shown: Vec<String> = problems
            .diagnostics
            .iter()
            .map(|diagnostic| render(diagnostic, &project.sources, RenderStyle::Plain))
            .collect();
        assert!(shown.is_empty(), "{}", shown.concat());
        let mut problems = Vec::new();
        let references = References::resolve(&project, &mut problems);
        let graph = Graph::new(&project.stacks, &references);
        let model = tree.model();
        let paths = project.stacks.iter().map(|(_, stack)| stack.path.as_str());
        let expected: Vec<&str> = (0..model.stacks.len()).map(|i| model.path(i)).collect();
        assert_eq!(paths.collect::<Vec<_>>(), expected, "the stacks");
        Loaded {
            _directory: directory,
            root,
            model,
            project,
            references,
            problems,
            graph,
        }
    }

    /// The library's name of a stack of the model.
    pub(crate) fn index(&self, stack: usize) -> StackIndex {
        let found = self.project.stacks.named(self.model.path(stack));
        found.expect("all stacks of the model are loaded")
    }

    /// The model's name of a stack of the library.
    pub(crate) fn number(&self, index: StackIndex) -> usize {
        let path = self.project.stacks[index].path.as_str();
        let found = (0..self.model.stacks.len()).find(|&stack| self.model.path(stack) == path);
        found.expect("all loaded stacks are in the model")
    }

    pub(crate) fn numbers(&self, indices: impl IntoIterator<Item = StackIndex>) -> Vec<usize> {
        indices
            .into_iter()
            .map(|index| self.number(index))
            .collect()
    }

    /// The query in the library's terms.
    pub(crate) fn query(&self, query: &ModelQuery) -> Query {
        let directory = ProjectPath::root().resolve(&query.directory).unwrap();
        let filter = |text: &String| PathFilter::new(&directory, text).unwrap();
        let named = query.named.as_ref().map(|_| {
            let all = 0..self.model.stacks.len();
            let lines = all.filter_map(|stack| {
                let line = self.model.line(query, stack)?;
                Some((self.index(stack), line))
            });
            NamedStacks {
                source: "a list".to_owned(),
                lines: lines.collect(),
                missing: std::collections::BTreeMap::new(),
            }
        });
        let reach = |reach: &ModelReach| Reach {
            by: ReachBy::Order,
            verb: match reach.verb {
                "only" => NeighbourChoice::Only,
                "include" => NeighbourChoice::Include,
                _ => NeighbourChoice::Exclude,
            },
            towards: match reach.towards {
                "dependencies" => SearchDirection::Dependencies,
                _ => SearchDirection::Dependents,
            },
            depth: reach.depth.and_then(NonZeroU32::new),
        };
        Query {
            changed: query.changes.as_ref().map(|changes| self.changes(changes)),
            released: query.released.as_ref().map(|named| self.released(named)),
            recorded: query.statuses.as_ref().map(|it| self.recorded(it)),
            scope: if query.recursive {
                DirectoryMatch::Recursive
            } else {
                DirectoryMatch::Exact
            },
            globs: query.globs.iter().map(filter).collect(),
            named,
            tags: query
                .tags
                .iter()
                .map(|filter| TagFilter::parse(filter).unwrap())
                .collect(),
            no_tags: query.no_tags.clone(),
            neighbours: query.neighbours.iter().map(reach).collect(),
            exclude: query.exclude.iter().map(filter).collect(),
            directory,
        }
    }

    /// A release at which a policy names these stacks.
    fn released(&self, named: &Set) -> ReleasedQuery {
        let named = named
            .iter()
            .map(|&stack| (self.index(stack), vec!["p".to_owned()]));
        ReleasedQuery {
            module: "m".to_owned(),
            old: "1.0.0".to_owned(),
            new: "1.1.0".to_owned(),
            consumers: BTreeMap::new(),
            named: named.collect(),
        }
    }

    /// Changes of these stacks; each rests on a file in the stack's directory.
    fn changes(&self, changes: &ModelChanges) -> Changes {
        let file = |stack: usize, name: &str| {
            self.project.stacks[self.index(stack)]
                .path
                .directory()
                .join(name)
        };
        let trigger = |stack: usize, kind: TriggerKind, name: &str| Trigger {
            kind,
            reason: "because".to_owned(),
            file: file(stack, name),
            state: FileState::Committed,
        };
        let triggered = |&stack: &usize| {
            let trigger = trigger(stack, TriggerKind::Changed, "trigger");
            (self.index(stack), trigger)
        };
        let dismissed = |&stack: &usize| {
            let trigger = |name: &&str| trigger(stack, TriggerKind::IgnoreChange, name);
            (self.index(stack), DISMISSING.iter().map(trigger).collect())
        };
        let cause = |&stack: &usize| {
            let file = ChangedFile {
                path: file(stack, "changed"),
                change: FileChange::Modified,
                state: FileState::Committed,
            };
            let chain = Vec::new();
            (self.index(stack), ChangeCause { file, chain })
        };
        Changes {
            since: Baseline {
                base: ChangeBase::Commit(Base {
                    commit: CommitId::new("abc").unwrap(),
                    rule: BaseRule::Named,
                    reason: "because".to_owned(),
                }),
                removed: Vec::new(),
                outside: false,
            },
            stacks: changes.changed.iter().map(cause).collect(),
            triggered: changes.triggered.iter().map(triggered).collect(),
            dismissed: changes.dismissed.iter().map(dismissed).collect(),
            files: ChangedFiles::default(),
            uncounted: UncountedFiles::default(),
        }
    }

    /// Statuses of all stacks.
    fn recorded(&self, statuses: &ModelStatuses) -> RecordedQuery {
        let status = |(stack, word): (usize, &&'static str)| {
            let status = match *word {
                "running" => StackStatus::Running,
                "failed" => StackStatus::Failed("because"),
                "pending" => StackStatus::Pending(Pending::NeverApplied),
                _ => StackStatus::Applied,
            };
            (self.index(stack), status)
        };
        let wanted = statuses.wanted.iter().map(|word| match *word {
            "running" => StatusKind::Running,
            "failed" => StatusKind::Failed,
            "pending" => StatusKind::Pending,
            _ => StatusKind::Applied,
        });
        RecordedQuery {
            counted: CountedStates::default(),
            statuses: StackStatuses {
                base: AppliedBase {
                    address: "a place".to_owned(),
                    lineage: "a lineage".to_owned(),
                    serial: 1,
                },
                stacks: statuses.all.iter().enumerate().map(status).collect(),
                ignored: BTreeMap::new(),
                missing: BTreeMap::new(),
            },
            changed: statuses.changed,
            wanted: wanted.collect(),
        }
    }

    pub(crate) fn select(&self, query: &ModelQuery) -> Selection {
        let query = self.query(query);
        select(&self.project.stacks, &self.references, &self.graph, &query)
    }

    pub(crate) fn selected(&self, selection: &Selection) -> Set {
        self.numbers(selection.stacks()).into_iter().collect()
    }

    /// The directory of the file of a span, and the text there.
    pub(crate) fn text(&self, span: Span) -> (String, &str) {
        let file = self.project.sources.file(span.file);
        let directory = file.path.parent().expect("a file lies in a directory");
        (directory.to_string(), &file.text[span.range()])
    }

    /// Returns whether the model has the constraint with just this origin.
    pub(crate) fn is_declared(
        &self,
        from: usize,
        to: usize,
        origin: &orch::selection::graph::Origin,
    ) -> bool {
        let (directory, text) = self.text(origin.span);
        self.model.constraints().iter().any(|constraint| {
            constraint.from == from
                && constraint.to == to
                && constraint.kind == origin.kind.to_string()
                && self.model.directory(constraint.declared_by) == directory
                && constraint.written == text
        })
    }
}
