//! The graph of the stacks on record, which may be gone from the tree: built from what they declared
//! when they were applied.

use std::collections::BTreeMap;

use crate::path::{ProjectPath, StackPath};
use crate::project::Project;
use crate::project::stack::{Stack, StackIndex, StackMode, Stacks};
use crate::selection::graph::{Graph, Towards};
use crate::selection::reference::References;
use crate::source::{FileId, SourceFile, Span, Spanned};
use crate::state::document::{Document, Entry};

/// The stacks on record, each at the path that is its key, and what each ran after.
#[derive(Debug)]
pub struct RecordedStacks<'d> {
    /// The stacks, in path order.
    stacks: Stacks,
    /// What they declared. What names nothing on record counts for nothing.
    pub graph: Graph,
    /// The key of each stack; none for one that is not on record.
    keys: BTreeMap<StackPath, &'d str>,
}

impl<'d> RecordedStacks<'d> {
    /// Builds the graph. It has further stacks as well, which declare nothing and are only named by others;
    /// one at whose path another stack is on record is left out.
    pub fn new<'s>(document: &'d Document, others: impl IntoIterator<Item = &'s Stack>) -> Self {
        let mut project = Project::default();
        // Whatever a message would point at is in no file.
        let file = project.sources.add(SourceFile {
            path: ProjectPath::root(),
            text: String::new(),
        });
        let mut keys = BTreeMap::new();
        let mut stacks = Vec::new();
        for (key, entry) in &document.stacks {
            if let Some(path) = StackPath::parse(key) {
                keys.insert(path.clone(), key.as_str());
                stacks.push(stack(path, &entry.name, &entry.tags, Some(entry), file));
            }
        }
        let others = others.into_iter();
        let others = others.filter(|other| !keys.contains_key(&other.path));
        stacks.extend(others.map(|other| {
            let tags: Vec<String> = other.tags().map(str::to_owned).collect();
            stack(other.path.clone(), &other.name, &tags, None, file)
        }));
        project.stacks = Stacks::new(stacks);
        let references = References::of_record(&project);
        let graph = Graph::new(&project.stacks, &references);
        RecordedStacks {
            stacks: project.stacks,
            graph,
            keys,
        }
    }

    /// Returns the stacks in path order, each with its key; none for one that is not on record.
    pub fn iter(&self) -> impl Iterator<Item = (StackIndex, &StackPath, Option<&'d str>)> {
        let stacks = self.stacks.iter();
        stacks.map(|(index, stack)| (index, &stack.path, self.key(index)))
    }

    /// Returns the key of a stack; none for one that is not on record.
    pub fn key(&self, stack: StackIndex) -> Option<&'d str> {
        self.keys.get(&self.stacks[stack].path).copied()
    }
}

/// Returns for each stack on record the stacks on record that it runs right after, all by key. What is
/// declared and names nothing on record counts for nothing.
pub fn dependencies(document: &Document) -> BTreeMap<&str, Vec<&str>> {
    let recorded = RecordedStacks::new(document, []);
    let searches = recorded.graph.searches(Towards::Dependencies, |_| true);
    let dependencies = recorded.iter().filter_map(|(index, _, key)| {
        let before = searches.from(index);
        let before = before
            .iter()
            .filter_map(|relative| recorded.key(relative.stack));
        Some((key?, before.collect()))
    });
    dependencies.collect()
}

/// Returns the keys of stacks on record that run after each other in a cycle, of which one of `among` is part, if there
/// is one: each runs before the next, and the last before the first.
pub fn cycle_among<'d>(document: &'d Document, among: &[String]) -> Option<Vec<&'d str>> {
    let recorded = RecordedStacks::new(document, []);
    let cycles = recorded.graph.cycles();
    let cycles = cycles.iter().flat_map(|knot| &knot.cycles);
    let mut keys = cycles.map(|cycle| {
        let hops = cycle.hops.iter();
        hops.filter_map(|hop| recorded.key(hop.from))
            .collect::<Vec<&str>>()
    });
    keys.find(|keys| keys.iter().any(|key| among.iter().any(|it| it == key)))
}

/// Returns a stack as it was recorded; without an entry, one that declares nothing.
fn stack(
    path: StackPath,
    name: &str,
    tags: &[String],
    entry: Option<&Entry>,
    file: FileId,
) -> Stack {
    let span = Span {
        file,
        start: 0,
        end: 0,
    };
    let spanned = |texts: &[String]| {
        let texts = texts.iter().cloned();
        texts.map(|value| Spanned { value, span }).collect()
    };
    let declared = |texts: fn(&Entry) -> &Vec<String>| {
        let texts = entry.map(texts);
        spanned(texts.map_or(&[], Vec::as_slice))
    };
    Stack {
        path,
        each: None,
        id: None,
        name: name.to_owned(),
        description: None,
        tags: spanned(tags),
        after: declared(|entry| &entry.after),
        before: declared(|entry| &entry.before),
        wants: Vec::new(),
        wanted_by: Vec::new(),
        watch: Vec::new(),
        driver: None,
        mode: StackMode::Manage,
        labels: Vec::new(),
        autodeploy: false,
        lifecycle: None,
        reads: Vec::new(),
        span,
    }
}
