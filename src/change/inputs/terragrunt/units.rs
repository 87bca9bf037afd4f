//! Terragrunt files shared by stacks, and the resolution of Terragrunt's paths.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, RwLock};

use crate::change::inputs::json_body::{self, BlockKind};
use crate::change::inputs::text::{self, LineStarts};
use crate::change::inputs::tree::Tree;
use crate::language::parse::parse_whole;
use crate::language::syntax::Body;
use crate::on_disk::if_there;
use crate::path::ProjectPath;
use crate::source::FileId;

const JSON_KINDS: [BlockKind; 6] = [
    BlockKind::new("dependencies", 0),
    BlockKind::new("dependency", 1),
    BlockKind::new("exclude", 0),
    BlockKind::new("include", 1),
    BlockKind::new("locals", 0),
    BlockKind {
        inner: &[BlockKind::new("extra_arguments", 1)],
        ..BlockKind::new("terraform", 0)
    },
];

/// Reads the Terragrunt files of stacks; shared by all threads.
pub(in crate::change::inputs) struct Units<'t, 'a> {
    pub(super) tree: &'t Tree<'a>,
    /// The root on this machine as text: Terragrunt uses absolute paths.
    root: String,
    /// The root of the repository as text: the project's root or one above it.
    pub(super) repository: String,
    /// The shared files; `None` if unreadable.
    shared: RwLock<HashMap<ProjectPath, Option<Arc<UnitFile>>>>,
    /// Whether files exist that `find_in_parent_folders` could find.
    parents: RwLock<HashMap<ProjectPath, bool>>,
}

pub(super) struct UnitFile {
    pub(super) path: ProjectPath,
    pub(super) text: Arc<str>,
    pub(super) body: Body,
    pub(super) lines: LineStarts,
}

impl UnitFile {
    pub(super) fn is_json(&self) -> bool {
        is_json(&self.path)
    }
}

fn is_json(path: &ProjectPath) -> bool {
    path.basename().as_bytes().ends_with(b".json")
}

impl<'t, 'a> Units<'t, 'a> {
    pub(in crate::change::inputs) fn new(tree: &'t Tree<'a>) -> Self {
        let text = |path: &Path| path.to_string_lossy().trim_end_matches('/').to_owned();
        let mut around = tree.root().ancestors();
        let repository = around.find(|directory| directory.join(".git").exists());
        Units {
            tree,
            root: text(tree.root()),
            repository: text(repository.unwrap_or(tree.root())),
            shared: RwLock::default(),
            parents: RwLock::default(),
        }
    }

    /// Returns a file that several stacks may read, parsed once; `None` if it cannot be read.
    pub(super) fn shared(&self, path: &ProjectPath) -> Option<Arc<UnitFile>> {
        let known = self
            .shared
            .read()
            .expect("no task panics")
            .get(path)
            .cloned();
        known.unwrap_or_else(|| {
            let file = self.parse(path).map(Arc::new);
            let mut shared = self.shared.write().expect("no task panics");
            shared.insert(path.clone(), file.clone());
            file
        })
    }

    /// Parses a file; `None`, after a warning, if it cannot be read.
    pub(super) fn parse(&self, path: &ProjectPath) -> Option<UnitFile> {
        let mut buffer = Vec::new();
        let host = path.to_host(self.tree.root());
        let text = text::read(self.tree, path, &host, false, &mut buffer)?;
        let parsed = if is_json(path) {
            json_body::whole(text, &JSON_KINDS)
        } else {
            parse_whole(FileId::UNPLACED, text)
        };
        match parsed {
            Ok(body) => Some(UnitFile {
                path: path.clone(),
                text: text.into(),
                body,
                lines: LineStarts::new(text),
            }),
            Err(diagnostic) => {
                text::broken(self.tree, path, text, *diagnostic);
                None
            }
        }
    }

    /// Returns the place that a text names, relative to a directory or as an absolute path.
    pub(super) fn locate(&self, text: &str, directory: &ProjectPath) -> Option<ProjectPath> {
        if text.is_empty() || text.len() > ProjectPath::MAX_BYTES || text.starts_with('~') {
            return None;
        }
        let inside = text.strip_prefix(&*self.root);
        match inside.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(inside) => ProjectPath::root().resolve(inside).ok(),
            None if text.starts_with('/') => None,
            None => self.tree.links().resolve(directory, text),
        }
        .or_else(|| self.tree.links().resolve_by_detour(text))
    }

    /// Returns whether an absolute path begins in the repository.
    pub(super) fn is_in_repository(&self, text: &str) -> bool {
        let rest = text.strip_prefix(&*self.repository);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the path from the repository's root to the project's; empty if they are the same.
    pub(super) fn project_in_repository(&self) -> &str {
        self.root[self.repository.len()..].trim_start_matches('/')
    }

    /// Returns a place as Terragrunt writes it.
    pub(super) fn absolute(&self, path: &ProjectPath) -> String {
        if path.is_root() && !self.root.is_empty() {
            self.root.clone()
        } else {
            format!("{}{path}", self.root)
        }
    }

    /// Returns the places where `find_in_parent_folders` looks, nearest first.
    pub(super) fn parents<'p>(
        directory: &'p ProjectPath,
        names: &'p [&str],
    ) -> impl Iterator<Item = ProjectPath> + 'p {
        let places = directory.ancestors().flat_map(move |parent| {
            let parent = ProjectPath::from_normal(parent);
            names.iter().map(move |name| parent.resolve(name).ok())
        });
        places.flatten()
    }

    pub(super) fn exists(&self, path: &ProjectPath) -> bool {
        let known = self.parents.read().expect("no task panics");
        if let Some(&exists) = known.get(path) {
            return exists;
        }
        drop(known);
        let found =
            if_there(fs::metadata(path.to_host(self.tree.root()))).unwrap_or_else(|error| {
                self.tree.problems.unreadable(path, error);
                None
            });
        let exists = found.is_some();
        let mut known = self.parents.write().expect("no task panics");
        known.insert(path.clone(), exists);
        exists
    }
}
