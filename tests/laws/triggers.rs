//! Which stacks are replaced since others change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use orch::plan::triggers::{TriggerFacts, TriggerOutlook, triggered};
use orch::project::stack::{StackIndex, Stacks};
use orch::project::{Problems, Project};
use orch::selection::graph::Graph;
use orch::selection::reference::References;
use proptest::prelude::*;

/// How many stacks lie in a directory. Its last one may name the others by their tag.
const IN_DIRECTORY: usize = 3;

/// What a stack names: all of it comes before.
#[derive(Debug, Clone)]
enum Named {
    One(usize),
    Output(usize),
    Directory(usize),
    Tag(usize),
}

#[derive(Debug, Clone)]
struct Node {
    triggers: Vec<Named>,
    after: Vec<usize>,
    has_tag: bool,
    course: TriggerOutlook,
    is_on_record: bool,
    changed: Option<u64>,
    applied: u64,
    /// Of which stacks the output differs.
    differs: BTreeSet<usize>,
}

fn node() -> impl Strategy<Value = Node> {
    let named = prop_oneof![
        3 => (0..12_usize).prop_map(Named::One),
        1 => (0..12_usize).prop_map(Named::Output),
        1 => (0..4_usize).prop_map(Named::Directory),
        2 => (0..4_usize).prop_map(Named::Tag),
    ];
    let course = prop_oneof![
        2 => Just(TriggerOutlook::Unchanged),
        6 => Just(TriggerOutlook::Open),
        1 => Just(TriggerOutlook::Work),
        1 => Just(TriggerOutlook::Changes),
    ];
    (
        prop::collection::vec(named, 0..3),
        prop::collection::vec(0..12_usize, 0..2),
        any::<bool>(),
        course,
        prop::bool::weighted(0.8),
        prop::option::of(0..4_u64),
        0..4_u64,
        prop::collection::btree_set(0..12_usize, 0..4),
    )
        .prop_map(
            |(triggers, after, has_tag, course, is_on_record, changed, applied, differs)| Node {
                triggers,
                after,
                has_tag,
                course,
                is_on_record,
                changed,
                applied,
                differs,
            },
        )
}

/// The stacks of a project. What comes later is left out of what a stack names.
fn nodes() -> impl Strategy<Value = Vec<Node>> {
    prop::collection::vec(node(), 1..12).prop_map(|mut nodes| {
        for (number, node) in nodes.iter_mut().enumerate() {
            let directory = number / IN_DIRECTORY;
            let is_last = number % IN_DIRECTORY == IN_DIRECTORY - 1;
            node.after.retain(|&other| other < number);
            node.triggers.retain(|named| match *named {
                Named::One(other) | Named::Output(other) => other < number,
                Named::Directory(other) => other < directory,
                Named::Tag(other) => other < directory || other == directory && is_last,
            });
        }
        nodes
    })
}

fn path(number: usize) -> String {
    format!("/d{}/s{number:02}", number / IN_DIRECTORY)
}

/// Returns the other stacks that one of the triggers of a stack names.
fn members(nodes: &[Node], number: usize, named: &Named) -> Vec<usize> {
    let all = 0..nodes.len();
    let in_directory = |directory: usize| move |it: &usize| *it / IN_DIRECTORY == directory;
    match *named {
        Named::One(other) | Named::Output(other) => vec![other],
        Named::Directory(directory) => all.filter(in_directory(directory)).collect(),
        Named::Tag(tag) => all
            .filter(in_directory(tag))
            .filter(|&it| nodes[it].has_tag && it != number)
            .collect(),
    }
}

/// Decides stack by stack: the fired ones, and the open ones.
fn model(nodes: &[Node]) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let (mut fired, mut open) = (BTreeSet::new(), BTreeSet::new());
    let mut courses: Vec<TriggerOutlook> = Vec::new();
    let mut before: Vec<BTreeSet<usize>> = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        let named = node.triggers.iter().map(|it| members(nodes, number, it));
        let nearest: Vec<usize> = named.flatten().chain(node.after.iter().copied()).collect();
        let mut all: BTreeSet<usize> = nearest.iter().copied().collect();
        for &other in &nearest {
            all.extend(&before[other]);
        }
        let has_work =
            |it: &usize| matches!(courses[*it], TriggerOutlook::Work | TriggerOutlook::Changes);
        let mut course = node.course;
        if course == TriggerOutlook::Open && !all.iter().any(has_work) {
            course = TriggerOutlook::Unchanged;
        }
        let mut is_fired = false;
        let mut is_open = false;
        for named in node.triggers.iter().filter(|_| node.is_on_record) {
            for member in members(nodes, number, named) {
                if let Named::Output(_) = named {
                    is_fired |= node.differs.contains(&member);
                    is_open |= matches!(
                        courses[member],
                        TriggerOutlook::Changes | TriggerOutlook::Open
                    );
                } else {
                    let is_past = nodes[member].changed.is_some_and(|it| it > node.applied);
                    is_fired |= courses[member] == TriggerOutlook::Changes || is_past;
                    is_open |= courses[member] == TriggerOutlook::Open;
                }
            }
        }
        if is_fired {
            fired.insert(number);
            course = TriggerOutlook::Changes;
        } else if is_open {
            open.insert(number);
            if course == TriggerOutlook::Unchanged {
                course = TriggerOutlook::Open;
            }
        }
        courses.push(course);
        before.push(all);
    }
    (fired, open)
}

/// What the random stacks say.
struct Answers<'a> {
    nodes: &'a [Node],
    numbers: BTreeMap<StackIndex, usize>,
}

impl Answers<'_> {
    fn node(&self, stack: StackIndex) -> &Node {
        &self.nodes[self.numbers[&stack]]
    }
}

impl TriggerFacts for Answers<'_> {
    fn outlook(&self, stack: StackIndex) -> TriggerOutlook {
        self.node(stack).course
    }

    fn may_be_replaced(&self, stack: StackIndex) -> bool {
        self.node(stack).is_on_record
    }

    fn changed(&self, stack: StackIndex) -> Option<u64> {
        self.node(stack).changed
    }

    fn applied(&self, stack: StackIndex) -> Option<u64> {
        Some(self.node(stack).applied)
    }

    fn output_differs(&self, from: StackIndex, named: StackIndex, _output: &str) -> bool {
        self.node(from).differs.contains(&self.numbers[&named])
    }
}

fn project(nodes: &[Node]) -> (tempfile::TempDir, Project) {
    let folder = tempfile::tempdir().unwrap();
    for (number, node) in nodes.iter().enumerate() {
        let directory = folder.path().join(&path(number)[1..]);
        fs::create_dir_all(&directory).unwrap();
        let named = node.triggers.iter().map(|named| match *named {
            Named::One(other) => format!("{:?}", path(other)),
            Named::Output(other) => format!("{:?}", path(other) + "#out"),
            Named::Directory(directory) => format!("\"/d{directory}\""),
            Named::Tag(tag) => format!("\"tag:t{tag}\""),
        });
        let named: BTreeSet<String> = named.collect();
        let named: Vec<String> = named.into_iter().collect();
        let after: BTreeSet<String> = node
            .after
            .iter()
            .map(|&it| format!("{:?}", path(it)))
            .collect();
        let after: Vec<String> = after.into_iter().collect();
        let tags = if node.has_tag {
            format!("\"t{}\"", number / IN_DIRECTORY)
        } else {
            String::new()
        };
        let text = format!(
            "stack {{\n  tags = [{tags}]\n  after = [{}]\n  lifecycle {{\n    replace_triggered_by = [{}]\n  }}\n}}\n",
            after.join(", "),
            named.join(", ")
        );
        fs::write(directory.join("stack.tm"), text).unwrap();
    }
    let mut problems = Problems::default();
    let project = Project::load(folder.path(), &mut problems).unwrap();
    assert!(
        problems.diagnostics.is_empty(),
        "{:?}",
        problems.diagnostics
    );
    (folder, project)
}

fn numbers(stacks: &Stacks) -> BTreeMap<StackIndex, usize> {
    let number = |path: &str| path.rsplit('s').next().unwrap().parse().unwrap();
    let all = stacks.iter();
    all.map(|(stack, it)| (stack, number(it.path.as_str())))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stacks_are_triggered_as_one_after_the_other_tells(nodes in nodes()) {
        let (_folder, project) = project(&nodes);
        // A tag or a directory may be carried by nobody.
        let references = References::resolve(&project, &mut Vec::new());
        let graph = Graph::new(&project.stacks, &references);
        let answers = Answers { nodes: &nodes, numbers: numbers(&project.stacks) };
        let found = triggered(&project.stacks, &graph, &references, &answers);
        let number = |stack: &StackIndex| answers.numbers[stack];
        let (fired, open) = model(&nodes);
        prop_assert_eq!(found.fired.keys().map(number).collect::<BTreeSet<_>>(), fired);
        prop_assert_eq!(found.open.keys().map(number).collect::<BTreeSet<_>>(), open);
        for (stack, trigger) in &found.fired {
            let node = &nodes[number(stack)];
            let named = node.triggers.iter().flat_map(|it| members(&nodes, number(stack), it));
            prop_assert!(named.collect::<Vec<_>>().contains(&number(&trigger.stack)));
        }
    }
}
