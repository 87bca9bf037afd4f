//! The graph of the stacks on record, which may be gone from the tree: built from what they declared
//! when they were applied.

use std::collections::BTreeMap;

use crate::path::{KeyFilter, ProjectPath, StackPath};
use crate::project::Project;
use crate::project::stack::{Stack, StackMode, Stacks};
use crate::selection::graph::{Graph, Towards};
use crate::selection::reference::References;
use crate::source::{FileId, SourceFile, Span, Spanned};
use crate::state::document::{Document, Entry};

/// Returns for each stack on record the stacks on record that it runs right after, all by key. What is
/// declared and names nothing on record counts for nothing.
pub fn dependencies(document: &Document) -> BTreeMap<&str, Vec<&str>> {
    let mut project = Project::default();
    // Whatever a message would point at is in no file.
    let file = project.sources.add(SourceFile {
        path: ProjectPath::root(),
        text: String::new(),
    });
    let mut keys = BTreeMap::new();
    let stacks = document.stacks.iter().filter_map(|(key, entry)| {
        let path = path(key)?;
        keys.insert(path.clone(), key.as_str());
        Some(stack(path, entry, file))
    });
    let stacks: Vec<Stack> = stacks.collect();
    project.stacks = Stacks::new(stacks);
    let references = References::resolve(&project, &mut Vec::new());
    let graph = Graph::new(&project.stacks, &references);
    let key = |path: &StackPath| keys.get(path).copied();
    let dependencies = project.stacks.iter().filter_map(|(index, stack)| {
        let before = graph.relatives(index, Towards::Dependencies, |_| true);
        let before = before
            .iter()
            .filter_map(|relative| key(&project.stacks[relative.stack].path));
        Some((key(&stack.path)?, before.collect()))
    });
    dependencies.collect()
}

/// Returns the path that a key is the text of.
fn path(key: &str) -> Option<StackPath> {
    let (directory, instance) = KeyFilter::split(key);
    let directory = ProjectPath::root().resolve(directory).ok()?;
    match instance {
        None => Some(directory.into()),
        Some(KeyFilter::One(key)) => Some(StackPath::instance(directory, key)),
        Some(KeyFilter::Any) => None,
    }
}

fn stack(path: StackPath, entry: &Entry, file: FileId) -> Stack {
    let span = Span {
        file,
        start: 0,
        end: 0,
    };
    let spanned = |texts: &[String]| {
        let texts = texts.iter().cloned();
        texts.map(|value| Spanned { value, span }).collect()
    };
    Stack {
        path,
        each: None,
        id: None,
        name: entry.name.clone(),
        description: None,
        tags: spanned(&entry.tags),
        after: spanned(&entry.after),
        before: spanned(&entry.before),
        wants: Vec::new(),
        wanted_by: Vec::new(),
        watch: Vec::new(),
        driver: None,
        mode: StackMode::Manage,
        reads: Vec::new(),
        span,
    }
}
