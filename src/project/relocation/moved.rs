//! `moved` blocks: the new paths of recorded stacks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::subtrees::Subtrees;
use super::{Kind, MOVED};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::NoNamespaces;
use crate::language::syntax::Block;
use crate::path::{ProjectPath, StackPath};
use crate::project::blocks::no_blocks;
use crate::source::{Span, Spanned};

const KIND: Kind = Kind {
    name: MOVED,
    attributes: &["from", "to"],
    place: NoNamespaces("a `moved` block"),
};

/// How many blocks of a cycle to show.
const MAX_SHOWN: usize = 8;

/// A `moved` block: stacks that were recorded at and below one path are now at and below another.
///
/// If either end is an instance, the block moves one stack: the instance, or the stack without a key.
#[derive(Debug, Clone)]
pub struct MovedBlock {
    pub from: Spanned<StackPath>,
    pub to: Spanned<StackPath>,
    pub span: Span,
}

impl MovedBlock {
    /// Returns whether it moves a single stack, and not everything below its directory.
    fn is_single(&self) -> bool {
        self.from.value.key().is_some() || self.to.value.key().is_some()
    }

    /// Returns the directories that it takes stacks from, or the stack if it is about one.
    fn takes(&self) -> Range<'_> {
        Range::of(&self.from.value, self.is_single())
    }

    fn gives(&self) -> Range<'_> {
        Range::of(&self.to.value, self.is_single())
    }
}

#[derive(Clone, Copy)]
enum Range<'b> {
    Below(&'b ProjectPath),
    One(&'b StackPath),
}

impl<'b> Range<'b> {
    fn of(path: &'b StackPath, is_single: bool) -> Self {
        if is_single {
            Range::One(path)
        } else {
            Range::Below(path.directory())
        }
    }

    /// Returns the keys of the ranges that may contain this one.
    fn places(self) -> impl Iterator<Item = &'b str> {
        let (own, directory) = match self {
            Range::Below(directory) => (None, directory),
            Range::One(stack) => (Some(stack.as_str()), stack.directory()),
        };
        let own = own.filter(|own| *own != directory.as_str());
        let directory = std::iter::once(directory.as_str()).chain(directory.ancestors());
        own.into_iter().chain(directory)
    }

    fn contains(self, other: Range<'_>) -> bool {
        match (self, other) {
            (Range::Below(outer), Range::Below(inner)) => inner.is_at_or_below(outer),
            (Range::Below(outer), Range::One(inner)) => inner.directory().is_at_or_below(outer),
            (Range::One(outer), Range::One(inner)) => outer == inner,
            (Range::One(_), Range::Below(_)) => false,
        }
    }
}

#[derive(Debug, Default)]
pub struct Moves {
    /// The blocks in the order in which they apply.
    blocks: Vec<MovedBlock>,
    /// By the text of `from`.
    by_from: HashMap<String, usize>,
}

impl Moves {
    /// Takes the blocks of all directories, in the order of their places. If they contradict each other, that is
    /// reported.
    pub(crate) fn new(mut blocks: Vec<MovedBlock>, problems: &mut Vec<Diagnostic>) -> Self {
        // Several directories may import the file.
        blocks.dedup_by(|a, b| a.span == b.span && a.from == b.from && a.to == b.to);
        let n_problems = problems.len();
        once_each(&blocks, |block| &block.from, "from", problems);
        once_each(&blocks, |block| &block.to, "to", problems);
        if problems.len() > n_problems {
            return Moves::default();
        }
        let order = match in_order(&blocks) {
            Ok(order) => order,
            Err(cycles) => {
                problems.extend(cycles);
                return Moves::default();
            }
        };
        let mut blocks: Vec<Option<MovedBlock>> = blocks.into_iter().map(Some).collect();
        let blocks: Vec<MovedBlock> = order
            .into_iter()
            .filter_map(|at| blocks[at].take())
            .collect();
        let by_from = blocks
            .iter()
            .enumerate()
            .map(|(at, block)| (block.from.value.to_string(), at));
        Moves {
            by_from: by_from.collect(),
            blocks,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns where stacks are now that were recorded at these paths; those that nothing moves are missing.
    /// It takes time linear in the sizes of the blocks and paths, apart from a logarithm, however long a
    /// chain of blocks is.
    pub fn destinations<'a>(
        &'a self,
        recorded: impl IntoIterator<Item = &'a StackPath>,
    ) -> BTreeMap<&'a StackPath, StackPath> {
        let mut subtrees = Subtrees::new(recorded);
        for block in &self.blocks {
            let (from, to) = (&block.from.value, &block.to.value);
            if block.is_single() {
                subtrees.move_one(from, to);
            } else {
                subtrees.move_all(from.directory(), to.directory());
            }
        }
        subtrees.moved()
    }

    /// Returns the block that takes a stack away from a path: that with the nearest `from`.
    pub fn from(&self, stack: &StackPath) -> Option<&MovedBlock> {
        let mut places = Range::One(stack).places();
        places.find_map(|place| {
            let block = &self.blocks[*self.by_from.get(place)?];
            block.takes().contains(Range::One(stack)).then_some(block)
        })
    }
}

/// Reports blocks that share an end with another one.
fn once_each(
    blocks: &[MovedBlock],
    end: impl Fn(&MovedBlock) -> &Spanned<StackPath>,
    name: &str,
    problems: &mut Vec<Diagnostic>,
) {
    let mut seen: HashMap<&StackPath, Span> = HashMap::new();
    for block in blocks {
        let end = end(block);
        let Some(first) = seen.get(&end.value) else {
            seen.insert(&end.value, end.span);
            continue;
        };
        let message = format!("two `{MOVED}` blocks have `{name} = \"{}\"`", end.value);
        let diagnostic =
            Diagnostic::error(Code::DuplicateDefinition, message).again(end.span, *first);
        problems.push(diagnostic.help("remove one of the blocks"));
    }
}

/// Returns the order in which blocks apply: a block before those that move its result, and before one that moves a
/// directory around its source.
///
/// If there is none: each cycle.
fn in_order(blocks: &[MovedBlock]) -> Result<Vec<usize>, Vec<Diagnostic>> {
    let mut graph: DiGraph<usize, ()> = DiGraph::new();
    for at in 0..blocks.len() {
        graph.add_node(at);
    }
    // A directory has at most one block of each kind at each end.
    let ends = |end: fn(&MovedBlock) -> &Spanned<StackPath>| {
        let blocks = blocks.iter().enumerate();
        let ends = blocks.map(|(at, block)| (end(block).value.as_str(), at));
        ends.collect::<HashMap<&str, usize>>()
    };
    let (from, to) = (ends(|block| &block.from), ends(|block| &block.to));
    let mut edge = |earlier: usize, later: usize| {
        if earlier != later {
            graph.add_edge(NodeIndex::new(earlier), NodeIndex::new(later), ());
        }
    };
    for (at, block) in blocks.iter().enumerate() {
        for place in block.gives().places() {
            if let Some(&other) = from.get(place)
                && blocks[other].takes().contains(block.gives())
            {
                edge(at, other);
            }
        }
        for place in block.takes().places() {
            if let Some(&other) = to.get(place)
                && blocks[other].gives().contains(block.takes())
            {
                edge(other, at);
            }
            if let Some(&other) = from.get(place)
                && blocks[other].takes().contains(block.takes())
            {
                edge(at, other);
            }
        }
    }
    let components = kosaraju_scc(&graph);
    let mut cycles: Vec<Diagnostic> = components
        .iter()
        .filter(|component| component.len() > 1)
        .map(|component| {
            let members: BTreeSet<usize> = component.iter().map(|node| graph[*node]).collect();
            cycle(blocks, &graph, &members)
        })
        .collect();
    if cycles.is_empty() {
        let last_first = components.iter().flatten();
        return Ok(last_first.rev().map(|node| graph[*node]).collect());
    }
    cycles.dedup();
    Err(cycles)
}

fn cycle(
    blocks: &[MovedBlock],
    graph: &DiGraph<usize, ()>,
    members: &BTreeSet<usize>,
) -> Diagnostic {
    let mut walked: Vec<usize> = Vec::new();
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut next = members.first().copied();
    while let Some(at) = next {
        if let Some(start) = places.insert(at, walked.len()) {
            walked.drain(..start);
            break;
        }
        walked.push(at);
        let later = graph.neighbors(NodeIndex::new(at)).map(|node| graph[node]);
        next = later.filter(|it| members.contains(it)).min();
    }
    // Independent of where the walk entered.
    let lowest = walked
        .iter()
        .enumerate()
        .min_by_key(|(_, at)| **at)
        .map_or(0, |(place, _)| place);
    walked.rotate_left(lowest);
    let message = format!("{} `{MOVED}` blocks form a cycle", walked.len());
    let mut diagnostic = Diagnostic::error(Code::Conflict, message);
    for &at in walked.iter().take(MAX_SHOWN) {
        let block = &blocks[at];
        let label = format!("from `{}` to `{}`", block.from.value, block.to.value);
        diagnostic = diagnostic.label(block.span, label);
    }
    if let Some(more @ 1..) = walked.len().checked_sub(MAX_SHOWN) {
        diagnostic = diagnostic.note(format!("{more} more blocks are part of it"));
    }
    diagnostic.help("to swap stacks, give each an `id` before they move: records follow the id")
}

pub(crate) fn read(
    block: &Block,
    directory: &ProjectPath,
    problems: &mut Vec<Diagnostic>,
) -> Option<MovedBlock> {
    KIND.check(block, problems);
    no_blocks(block, "a `moved` block has only `from` and `to`", problems);
    let from = KIND.location("from", block, directory, problems);
    let to = KIND.location("to", block, directory, problems);
    let (from, to) = (from?, to?);
    if from.value == to.value {
        let message = format!("`{}` is moved to itself", from.value);
        let diagnostic = Diagnostic::error(Code::InvalidValue, message)
            .label(to.span, "this is where it was")
            .label(from.span, "from here");
        problems.push(diagnostic.help("remove the block, or correct one of the paths"));
        return None;
    }
    Some(MovedBlock {
        from,
        to,
        span: block.kind.span,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::FileId;

    fn span(start: usize) -> Span {
        Span {
            file: FileId(0),
            start: u32::try_from(start).unwrap(),
            end: u32::try_from(start).unwrap() + 1,
        }
    }

    fn moves(blocks: &[(&str, &str)], problems: &mut Vec<Diagnostic>) -> Moves {
        let path = |text: &str| StackPath::parse(text).unwrap();
        let blocks = blocks
            .iter()
            .enumerate()
            .map(|(at, (from, to))| MovedBlock {
                from: Spanned {
                    value: path(from),
                    span: span(3 * at + 1),
                },
                to: Spanned {
                    value: path(to),
                    span: span(3 * at + 2),
                },
                span: span(3 * at),
            });
        Moves::new(blocks.collect(), problems)
    }

    fn answer(blocks: &[(&str, &str)], recorded: &[&str]) -> Vec<String> {
        let mut problems = Vec::new();
        let moves = moves(blocks, &mut problems);
        assert_eq!(problems, []);
        let recorded: Vec<StackPath> = recorded
            .iter()
            .map(|text| StackPath::parse(text).unwrap())
            .collect();
        let found = moves.destinations(&recorded);
        let texts = found.iter().map(|(old, new)| format!("{old} {new}"));
        texts.collect()
    }

    #[test]
    fn everything_at_and_below_goes_along() {
        for (blocks, recorded, expected) in [
            (
                &[("/a", "/b/c")][..],
                &["/a", "/a/x/y", "/ab", "/x"][..],
                &["/a /b/c", "/a/x/y /b/c/x/y"][..],
            ),
            // Chains work in one step, in any order of blocks.
            (
                &[("/b", "/c"), ("/a", "/b")],
                &["/a", "/a/x"],
                &["/a /c", "/a/x /c/x"],
            ),
            (&[("/a", "/b"), ("/b", "/c")], &["/b"], &["/b /c"]),
            // The nearest counts.
            (
                &[("/a", "/b"), ("/a/x", "/y")],
                &["/a", "/a/x", "/a/x/z"],
                &["/a /b", "/a/x /y", "/a/x/z /y/z"],
            ),
            // A chain through nested stacks.
            (
                &[("/a", "/b"), ("/b/x", "/b/y")],
                &["/a", "/a/x", "/b/x"],
                &["/a /b", "/a/x /b/y", "/b/x /b/y"],
            ),
            // A directory moves into itself: stacks that are there already are not moved.
            (
                &[("/a", "/a/b")],
                &["/a", "/a/b", "/a/b/c", "/a/x"],
                &["/a /a/b", "/a/x /a/b/x"],
            ),
            (
                &[("/", "/infra")],
                &["/", "/a", "/infra/b"],
                &["/ /infra", "/a /infra/a"],
            ),
            (
                &[("/infra", "/")],
                &["/infra", "/infra/a", "/x"],
                &["/infra /", "/infra/a /a"],
            ),
            // Instances.
            (
                &[("/a", "/b")],
                &[r#"/a["x"]"#, r#"/a["y"]"#],
                &[r#"/a["x"] /b["x"]"#, r#"/a["y"] /b["y"]"#],
            ),
            (
                &[(r#"/a["x"]"#, "/b")],
                &[r#"/a["x"]"#, r#"/a["y"]"#, "/a/c"],
                &[r#"/a["x"] /b"#],
            ),
            (&[("/a", r#"/a["x"]"#)], &["/a", "/a/c"], &[r#"/a /a["x"]"#]),
            (
                &[("/a", r#"/a["x"]"#), (r#"/a["x"]"#, r#"/b["y"]"#)],
                &["/a", "/a/c"],
                &[r#"/a /b["y"]"#],
            ),
            (
                &[("/a", "/b"), (r#"/b["x"]"#, r#"/b["y"]"#)],
                &[r#"/a["x"]"#],
                &[r#"/a["x"] /b["y"]"#],
            ),
            (&[("/a", "/b")], &[], &[]),
        ] {
            assert_eq!(answer(blocks, recorded), expected, "{blocks:?}");
        }
    }

    #[test]
    fn the_nearest_block_takes_a_stack_away() {
        let blocks = [
            ("/a", "/b"),
            ("/a/x", "/y"),
            (r#"/a["k"]"#, "/k"),
            ("/c", r#"/c["k"]"#),
        ];
        let moves = moves(&blocks, &mut Vec::new());
        let from = |text: &str| {
            let block = moves.from(&StackPath::parse(text).unwrap());
            block.map(|block| block.from.value.to_string())
        };
        for (stack, expected) in [
            ("/a", Some("/a")),
            ("/a/x/z", Some("/a/x")),
            (r#"/a["k"]"#, Some(r#"/a["k"]"#)),
            (r#"/a["l"]"#, Some("/a")),
            ("/c", Some("/c")),
            ("/c/below", None),
            ("/", None),
        ] {
            assert_eq!(from(stack).as_deref(), expected, "{stack}");
        }
    }

    #[test]
    fn blocks_that_contradict_each_other_are_reported() {
        for (blocks, expected) in [
            (
                &[("/a", "/b"), ("/a", "/c")][..],
                "two `moved` blocks have `from = \"/a\"`",
            ),
            (
                &[("/a", "/c"), ("/b", "/c")],
                "two `moved` blocks have `to = \"/c\"`",
            ),
            (
                &[("/a", "/b"), ("/b", "/a")],
                "2 `moved` blocks form a cycle",
            ),
            (
                &[("/a", "/b"), ("/b", "/c"), ("/c", "/a"), ("/z", "/a/z")],
                "3 `moved` blocks form a cycle",
            ),
            (
                &[("/a", "/b/x"), ("/b", "/a/y")],
                "2 `moved` blocks form a cycle",
            ),
            (
                &[(r#"/a["x"]"#, r#"/a["y"]"#), (r#"/a["y"]"#, r#"/a["x"]"#)],
                "2 `moved` blocks form a cycle",
            ),
        ] {
            let mut problems = Vec::new();
            assert!(moves(blocks, &mut problems).is_empty());
            let messages: Vec<&str> = problems.iter().map(|it| it.message.as_str()).collect();
            assert_eq!(messages, [expected], "{blocks:?}");
            assert!(problems[0].labels.len() >= 2, "both places are shown");
        }
    }
}
