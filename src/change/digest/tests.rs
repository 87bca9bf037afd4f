use super::*;

fn part(number: usize) -> PartDigest {
    let mut hasher = PartHasher::default();
    hasher.text(&number.to_string());
    hasher.finish()
}

/// Returns the digests of modules with these uses, one of them with changed content.
fn digests_with(uses: &[Vec<usize>], changed: Option<usize>) -> Vec<PartDigest> {
    let content = |node| match changed {
        Some(changed) if changed == node => part(uses.len()),
        _ => part(node),
    };
    let nodes: Vec<PartDigest> = (0..uses.len()).map(content).collect();
    modules(&nodes, |node| uses[node].iter().copied())
}

/// Returns the modules whose digest changes with the content of one.
fn affected(uses: &[Vec<usize>], changed: usize) -> Vec<usize> {
    let before = digests_with(uses, None);
    let after = digests_with(uses, Some(changed));
    let nodes = 0..uses.len();
    nodes.filter(|&node| before[node] != after[node]).collect()
}

#[test]
fn a_module_has_the_digest_of_all_behind_it() {
    // 0 uses 1 and 2, which form a cycle; these use 3; 4 uses 3 and is unused.
    let uses = [vec![1, 2], vec![2], vec![1, 3], vec![], vec![3]];
    assert_eq!(affected(&uses, 0), [0]);
    assert_eq!(affected(&uses, 1), [0, 1, 2]);
    assert_eq!(affected(&uses, 2), [0, 1, 2]);
    assert_eq!(affected(&uses, 3), [0, 1, 2, 3, 4]);
    assert_eq!(affected(&uses, 4), [4]);
    let digests = digests_with(&uses, None);
    assert_eq!(digests[1], digests[2]);
}

#[test]
fn a_chain_of_modules_may_be_long() {
    const LENGTH: usize = 20_000;
    let forward: Vec<Vec<usize>> = (0..LENGTH)
        .map(|node| {
            (node + 1 < LENGTH)
                .then_some(node + 1)
                .into_iter()
                .collect()
        })
        .collect();
    let backward: Vec<Vec<usize>> = (0..LENGTH)
        .map(|node| node.checked_sub(1).into_iter().collect())
        .collect();
    assert_eq!(affected(&forward, LENGTH - 1).len(), LENGTH);
    assert_eq!(affected(&forward, 0), [0]);
    assert_eq!(affected(&backward, 0).len(), LENGTH);
    assert_eq!(affected(&backward, LENGTH - 1), [LENGTH - 1]);
}
