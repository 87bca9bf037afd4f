//! What a user may ask for in a random tree.

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::globs::any_text;
use crate::model::{names, shown};
use crate::selector::{ModelChanges, ModelQuery, ModelReach, ModelStatuses};
use crate::tree::{FILTERS, TAGS, Tree, acyclic_tree, knotted_tree, relative};

fn depth() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![Just(None), (1..4_u32).prop_map(Some)]
}

fn neighbours() -> BoxedStrategy<Vec<ModelReach>> {
    let towards = || select(vec!["dependencies", "dependents"]);
    let reach = move |verb| {
        (towards(), depth()).prop_map(move |(towards, depth)| ModelReach {
            verb,
            towards,
            depth,
        })
    };
    let only = prop::collection::vec(reach("only"), 0..=1);
    let include = prop::collection::vec(reach("include"), 0..=2);
    let exclude = prop::collection::vec(reach("exclude"), 0..=2);
    let all = (only, include, exclude).prop_map(|(only, include, exclude)| {
        let mut all: Vec<ModelReach> = Vec::new();
        // Each flag at most once.
        for reach in [only, include, exclude].concat() {
            if !all
                .iter()
                .any(|other| (other.verb, other.towards) == (reach.verb, reach.towards))
            {
                all.push(reach);
            }
        }
        all
    });
    let one = select(vec!["only", "include", "exclude"]).prop_flat_map(reach);
    prop_oneof![
        3 => Just(Vec::new()),
        2 => one.prop_map(|reach| vec![reach]),
        2 => all,
    ]
    .boxed()
}

/// The lines of a list of stacks.
fn named(directory: &str, stacks: Vec<String>) -> BoxedStrategy<Option<Vec<String>>> {
    let directory = directory.to_owned();
    if stacks.is_empty() {
        return prop_oneof![3 => Just(None), 1 => Just(Some(Vec::new()))].boxed();
    }
    let line = (select(stacks), 0..6_u8).prop_map(move |(stack, how)| match how {
        0 => String::new(),
        1 if !stack.ends_with(']') => format!("{stack}/"),
        2 => format!("  {stack}\t"),
        3 => stack,
        _ => relative(&directory, &stack),
    });
    let lines = prop::collection::vec(line, 0..8);
    prop_oneof![3 => Just(None), 1 => lines.prop_map(Some)].boxed()
}

/// All flags, given in one of some directories, for stacks among some places. Boxed, since values
/// with so many parts do not fit the stack of a test.
pub(crate) fn query_among(
    directories: Vec<String>,
    places: Vec<String>,
    stacks: Vec<String>,
) -> BoxedStrategy<ModelQuery> {
    let good: Vec<&str> = FILTERS[..FILTERS.len() - 2]
        .iter()
        .copied()
        .filter(|filter| filter.split([',', ':']).all(|tag| !tag.is_empty()))
        .collect();
    let directory = prop_oneof![2 => Just("/".to_owned()), 1 => select(directories)];
    directory
        .prop_flat_map(move |directory| {
            let texts = |most| {
                prop::collection::vec(any_text(&directory, places.clone()), 1..=most).boxed()
            };
            (
                Just(directory.clone()),
                prop::bool::weighted(0.9),
                prop_oneof![3 => Just(Vec::new()), 1 => texts(3)],
                prop_oneof![3 => Just(Vec::new()), 1 => texts(2)],
                named(&directory, stacks.clone()),
                prop_oneof![
                    3 => Just(Vec::new()),
                    1 => prop::collection::vec(select(good.clone()), 1..3),
                ],
                prop_oneof![3 => Just(Vec::new()), 1 => subsequence(TAGS.to_vec(), 1..2)],
                neighbours(),
            )
        })
        .prop_map(
            |(directory, recursive, globs, exclude, named, tags, no_tags, neighbours)| {
                let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
                ModelQuery {
                    changes: None,
                    released: None,
                    statuses: None,
                    directory,
                    recursive,
                    globs,
                    named,
                    tags: owned(tags),
                    no_tags: owned(no_tags),
                    neighbours,
                    exclude,
                }
            },
        )
        .boxed()
}

/// Leaves one filter of a query, or all: many together seldom let anything pass. The directory stays,
/// since texts are written for it.
fn with_one_filter(mut query: ModelQuery, left: usize) -> ModelQuery {
    if left < 5 {
        for filter in (0..5).filter(|&filter| filter != left) {
            match filter {
                0 => query.globs.clear(),
                1 => query.named = None,
                2 => query.tags.clear(),
                3 => query.no_tags.clear(),
                _ => query.exclude.clear(),
            }
        }
    }
    query
}

fn query(tree: &Tree) -> BoxedStrategy<ModelQuery> {
    let mut places = vec!["/".to_owned()];
    for directory in &tree.directories {
        let names = names(&directory.stack.directory);
        places.extend((1..=names.len()).map(|end| format!("/{}", names[..end].join("/"))));
    }
    let model = tree.model();
    let all = 0..model.stacks.len();
    // A line that names a directory means all its instances.
    let stacks = all.flat_map(|stack| [model.path(stack), model.directory(stack)]);
    let stacks = stacks.map(str::to_owned).collect();
    let query = query_among(places.clone(), places, stacks);
    (query, 0..10_usize)
        .prop_map(|(query, left)| with_one_filter(query, left))
        .boxed()
}

/// Adds a query to each tree.
pub(crate) fn with_query(
    tree: impl Strategy<Value = Tree>,
) -> impl Strategy<Value = (Tree, ModelQuery)> {
    tree.prop_flat_map(|tree| (Just(tree.clone()), query(&tree)))
}

/// Adds what has changed, half of the time, or else what policies name, half of that time.
pub(crate) fn with_changes(
    scene: impl Strategy<Value = (Tree, ModelQuery)>,
) -> impl Strategy<Value = (Tree, ModelQuery)> {
    let some = || prop::collection::vec(any::<Index>(), 0..8);
    let is_on = (any::<bool>(), any::<bool>());
    (scene, is_on, some(), some(), some()).prop_map(
        |((tree, mut query), (is_on, is_released), changed, triggered, dismissed)| {
            let n = tree.model().stacks.len();
            let pick = |indices: &[Index], most: usize| {
                let indices = indices.iter().take(if n == 0 { 0 } else { most });
                indices.map(|index| index.index(n)).collect()
            };
            query.released = (!is_on && is_released).then(|| pick(&changed, 8));
            query.changes = is_on.then(|| ModelChanges {
                changed: pick(&changed, 8),
                triggered: pick(&triggered, 3),
                dismissed: pick(&dismissed, 3),
            });
            (tree, query)
        },
    )
}

/// Adds statuses of the stacks, half of the time: changes are then measured from them, or from a commit.
pub(crate) fn with_statuses(
    scene: impl Strategy<Value = (Tree, ModelQuery)>,
) -> impl Strategy<Value = (Tree, ModelQuery)> {
    const STATUSES: [&str; 4] = ["running", "failed", "pending", "applied"];
    let statuses = prop::collection::vec(select(STATUSES.to_vec()), 1..20);
    let wanted = prop_oneof![Just(Vec::new()), subsequence(STATUSES.to_vec(), 1..=3)];
    let strategy = (any::<bool>(), statuses, any::<bool>(), wanted);
    (scene, strategy).prop_map(|((tree, mut query), (is_on, statuses, changed, wanted))| {
        let n = tree.model().stacks.len();
        query.statuses = is_on.then(|| ModelStatuses {
            all: statuses.into_iter().cycle().take(n).collect(),
            changed: changed && query.changes.is_none(),
            wanted,
        });
        (tree, query)
    })
}

/// Trees and queries such that no cycle touches what is selected, though there may be some.
pub(crate) fn with_runnable_query() -> impl Strategy<Value = (Tree, ModelQuery)> {
    let queries = (with_query(knotted_tree()), any::<bool>());
    let knotted = queries.prop_map(|((tree, mut query), is_all)| {
        if is_all {
            query = ModelQuery::everything();
        }
        query.no_tags.push("knotted".to_owned());
        // Neighbours pass no filter.
        let model = tree.model();
        if !query.neighbours.is_empty() {
            for stack in model.on_cycles() {
                let path = model.path(stack);
                let literal = model.directory(stack).replace(['[', ']'], "?");
                let key = model.stacks[stack].key();
                if key.is_some() || path.contains('[') {
                    query.exclude.push(shown(&literal, key));
                    continue;
                }
                let (around, last) = path.split_at(path.len() - 1);
                query.exclude.push(match last {
                    "/" => "/".to_owned(),
                    // Only the stack at this path, and none below it.
                    last => format!("{around}[{last}]"),
                });
            }
        }
        (tree, query)
    });
    prop_oneof![with_query(acyclic_tree()), knotted]
}
