//! Which entry recorded belongs to which stack.

use std::collections::{BTreeMap, BTreeSet};

use super::super::scene::{Block, Record, Snapshot, is_at_or_below};
use super::Model;

/// Which entry belongs to which stack: the one with its id, else the one at its path, unless both have an id.
pub(super) fn pairs(tree: &Snapshot, record: &Record) -> BTreeMap<usize, usize> {
    let mut keys = BTreeMap::new();
    for (path, content) in tree.iter().enumerate() {
        let Some(id) = content.block().and_then(Block::id) else {
            continue;
        };
        if let Some((&key, _)) = record.iter().find(|(_, entry)| entry.id == Some(id)) {
            keys.insert(path, key);
        }
    }
    for (path, content) in tree.iter().enumerate() {
        let (Some(block), Some(entry)) = (content.block(), record.get(&path)) else {
            continue;
        };
        let is_free = !keys.contains_key(&path) && !keys.values().any(|&key| key == path);
        if is_free && (block.id().is_none() || entry.id.is_none()) {
            keys.insert(path, path);
        }
    }
    keys
}

impl Model<'_> {
    /// Returns what is recorded once stacks have the entries that they were found at, and all the paths that
    /// they have now.
    pub(super) fn amended(&self, moves: &BTreeMap<usize, usize>) -> Record {
        let keys = |wanted: &BTreeMap<usize, usize>, record: &Record| -> Record {
            // From the old key to the new one.
            let mut new: BTreeMap<usize, usize> =
                wanted.iter().map(|(path, key)| (*key, *path)).collect();
            loop {
                let taken = new
                    .iter()
                    .find(|(_, to)| record.contains_key(*to) && !new.contains_key(*to));
                let Some(taken) = taken.map(|(from, _)| *from) else {
                    break;
                };
                new.remove(&taken);
            }
            let follow = |names: &BTreeSet<usize>| -> BTreeSet<usize> {
                let mut now = BTreeSet::new();
                for &name in names {
                    let moving: Vec<usize> = new
                        .keys()
                        .copied()
                        .filter(|&it| is_at_or_below(it, name))
                        .collect();
                    let mut staying = record
                        .keys()
                        .filter(|it| is_at_or_below(**it, name) && !new.contains_key(*it));
                    if moving.is_empty() || staying.next().is_some() {
                        now.insert(name);
                    }
                    now.extend(moving.iter().map(|it| new[it]));
                }
                now
            };
            let renamed = record.iter().map(|(key, entry)| {
                let mut entry = entry.clone();
                if !new.is_empty() {
                    entry.after = follow(&entry.after);
                    entry.before = follow(&entry.before);
                }
                (new.get(key).copied().unwrap_or(*key), entry)
            });
            renamed.collect()
        };
        let record = keys(
            &self
                .keys
                .iter()
                .filter(|(path, key)| path != key)
                .map(|(a, b)| (*a, *b))
                .collect(),
            &self.scene.record,
        );
        let mut record = record;
        for (path, key) in moves {
            if let Some(entry) = record.get_mut(key) {
                entry.id = self.block(*path).id();
            }
        }
        keys(moves, &record)
    }
}
