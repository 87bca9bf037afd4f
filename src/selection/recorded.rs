//! The graph of recorded stacks, which may be missing from the project: built from their declarations at the
//! time of their apply.

use std::collections::BTreeMap;

use crate::path::{ProjectPath, StackPath};
use crate::project::Project;
use crate::project::stack::{DataKind, Stack, StackIndex, StackMode, StackUse, Stacks};
use crate::selection::graph::{Graph, SearchDirection};
use crate::selection::reference::References;
use crate::source::{FileId, SourceFile, Span, Spanned};
use crate::state::document::{Document, Entry};

/// The recorded stacks, each at the path that is its key, and the stacks that each ran after.
pub struct RecordedStacks<'d> {
    /// In path order.
    stacks: Stacks,
    /// Built from their declarations. A reference to a stack that is not recorded has no effect.
    pub graph: Graph,
    keys: BTreeMap<StackPath, &'d str>,
}

impl<'d> RecordedStacks<'d> {
    /// Builds the graph. The other stacks declare nothing, and are only named by recorded ones; one at the
    /// path of a recorded stack is left out.
    pub fn new<'s>(document: &'d Document, others: impl IntoIterator<Item = &'s Stack>) -> Self {
        let mut project = Project::default();
        // The declarations are in no file that a message could point at.
        let file = project.sources.add(SourceFile {
            path: ProjectPath::root(),
            text: String::new(),
        });
        let mut keys = BTreeMap::new();
        let mut stacks = Vec::new();
        for (key, entry) in &document.stacks {
            if let Some(path) = StackPath::parse(key) {
                keys.insert(path.clone(), key.as_str());
                let stack = stack(path, &entry.name, &entry.tags, Some(entry), file);
                stacks.push(Box::new(stack));
            }
        }
        let others = others
            .into_iter()
            .filter(|other| !keys.contains_key(&other.path));
        stacks.extend(others.map(|other| {
            let tags: Vec<String> = other.tags().map(str::to_owned).collect();
            Box::new(stack(other.path.clone(), &other.name, &tags, None, file))
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

    /// Returns the stacks in path order, each with its key; `None` if it is not recorded.
    pub fn iter(&self) -> impl Iterator<Item = (StackIndex, &StackPath, Option<&'d str>)> {
        let stacks = self.stacks.iter();
        stacks.map(|(index, stack)| (index, &stack.path, self.key(index)))
    }

    /// Returns the key of a stack; `None` if it is not recorded.
    pub fn key(&self, stack: StackIndex) -> Option<&'d str> {
        self.keys.get(&self.stacks[stack].path).copied()
    }
}

/// Returns for each recorded stack the recorded stacks that it runs right after, by key. A reference to a
/// stack that is not recorded has no effect.
pub fn dependencies(document: &Document) -> BTreeMap<&str, Vec<&str>> {
    let recorded = RecordedStacks::new(document, []);
    let searches = recorded
        .graph
        .searches(SearchDirection::Dependencies, |_| true);
    let dependencies = recorded.iter().filter_map(|(index, _, key)| {
        let before = searches.from(index);
        let before = before
            .iter()
            .filter_map(|relative| recorded.key(relative.stack));
        Some((key?, before.collect()))
    });
    dependencies.collect()
}

/// Returns the keys of a cycle of recorded stacks that contains one of `among`, if there is one: each runs
/// before the next, and the last before the first.
pub fn cycle_among<'d>(document: &'d Document, among: &[String]) -> Option<Vec<&'d str>> {
    let recorded = RecordedStacks::new(document, []);
    let cycles = recorded.graph.cycles();
    let cycles = cycles.iter().flat_map(|found| &found.cycles);
    let mut keys = cycles.map(|cycle| {
        let hops = cycle.hops.iter();
        hops.filter_map(|hop| recorded.key(hop.from))
            .collect::<Vec<&str>>()
    });
    keys.find(|keys| keys.iter().any(|key| among.iter().any(|it| it == key)))
}

/// Returns a stack as recorded; without an entry, one without declarations.
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
    let uses = entry.into_iter().flat_map(|entry| &entry.uses);
    let uses = uses.filter_map(|used| {
        Some(StackUse {
            // The record does not have the kind, which messages about removed stacks do not need.
            kind: DataKind::Input,
            stack: StackPath::parse(used)?,
            orders: true,
            span,
        })
    });
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
        uses: uses.collect(),
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
