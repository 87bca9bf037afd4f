//! Entries that get other keys at the same time.

use std::collections::{BTreeMap, BTreeSet};

use orch::state::document::{Document, Entry};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;

const KEYS: [&str; 6] = ["/a", "/b", "/c", "/d", "/e", "/f"];

fn document(keys: &[&str]) -> Document {
    let text = json!({
        "format": 1, "project": "p", "namespace": "n", "root": "", "lineage": "l", "serial": 1,
        "lock": null, "stacks": {}, "history": [],
    });
    let mut document: Document = serde_json::from_value(text).unwrap();
    for key in keys {
        let entry = Entry {
            name: (*key).to_owned(),
            ..Entry::default()
        };
        document.stacks.insert((*key).to_owned(), entry);
    }
    document
}

/// Where each entry is afterwards: of all sets of moves after which no two entries have the same key, the
/// largest.
fn expected(keys: &[&str], moves: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let possible: Vec<(&String, &String)> = moves
        .iter()
        .filter(|(old, _)| keys.contains(&old.as_str()))
        .collect();
    let mut best: Option<(usize, BTreeMap<String, String>)> = None;
    for chosen in 0..1_usize << possible.len() {
        let of = |key: &str| {
            let mut moves = possible.iter().enumerate();
            let found = moves.find(|(n, (old, _))| chosen >> n & 1 == 1 && *old == key);
            found.map_or_else(|| key.to_owned(), |(_, (_, new))| (*new).clone())
        };
        let places: BTreeMap<String, String> = keys
            .iter()
            .map(|key| (of(key), (*key).to_owned()))
            .collect();
        let count = chosen.count_ones() as usize;
        if places.len() == keys.len() && best.as_ref().is_none_or(|(most, _)| count > *most) {
            best = Some((count, places));
        }
    }
    best.unwrap().1
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn as_many_entries_move_as_find_a_free_key(
        keys in subsequence(KEYS.to_vec(), 0..=6),
        old in subsequence(KEYS.to_vec(), 0..=6),
        new in Just(KEYS.to_vec()).prop_shuffle(),
        stranger in select(vec![false, true]),
    ) {
        // Each stack lies in one directory, so no two moves lead to the same key.
        let mut moves: BTreeMap<String, String> = old
            .iter()
            .zip(&new)
            .map(|(old, new)| ((*old).to_owned(), (*new).to_owned()))
            .collect();
        // What is not recorded does not move.
        moves.retain(|old, _| stranger || keys.contains(&old.as_str()));
        let mut document = document(&keys);
        document.rename(moves.clone());
        let found: BTreeMap<String, String> = document
            .stacks
            .iter()
            .map(|(key, entry)| (key.clone(), entry.name.clone()))
            .collect();
        prop_assert_eq!(&found, &expected(&keys, &moves), "{:?}", moves);
        let names: BTreeSet<&String> = found.values().collect();
        prop_assert_eq!(names.len(), keys.len(), "no entry is lost");
    }
}
