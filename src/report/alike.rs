//! Groups equal items in lists that would be too long otherwise.

use std::collections::HashMap;
use std::hash::Hash;

use crate::printable::first_of;

/// How many equal items are listed one by one.
const MOST: usize = 5;

/// How many items of a longer group are named.
const NAMED: usize = 3;

/// Returns items in order, each by itself. Many equal ones form a group at the position of the
/// first.
pub(super) fn alike<T, K: Hash + Eq>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<Vec<T>> {
    let mut groups: HashMap<K, Vec<(usize, T)>> = HashMap::new();
    for (position, item) in items.into_iter().enumerate() {
        groups.entry(key(&item)).or_default().push((position, item));
    }
    let mut told: Vec<Vec<(usize, T)>> = Vec::new();
    for group in groups.into_values() {
        if group.len() > MOST {
            told.push(group);
        } else {
            told.extend(group.into_iter().map(|item| vec![item]));
        }
    }
    told.sort_unstable_by_key(|group| group[0].0);
    let items = told.into_iter();
    items
        .map(|group| group.into_iter().map(|(_, item)| item).collect())
        .collect()
}

/// Returns the name of one item, or the names of the first of many and the number of the others.
pub(super) fn names<T>(group: &[T], name: impl Fn(&T) -> String) -> String {
    first_of(group.iter().map(name), NAMED)
}

#[cfg(test)]
mod tests {
    use super::{alike, names};

    #[test]
    fn many_alike_stand_together_where_the_first_is() {
        let numbers = [1, 2, 10, 3, 20, 4, 5, 6, 30];
        let told = alike(numbers, |number| *number < 10);
        assert_eq!(told, [vec![1, 2, 3, 4, 5, 6], vec![10], vec![20], vec![30]]);
        let told: Vec<String> = told
            .iter()
            .map(|it| names(it, ToString::to_string))
            .collect();
        assert_eq!(told, ["1, 2, 3 and 3 more", "10", "20", "30"]);
    }
}
