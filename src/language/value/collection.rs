//! Collections that know the size of their content.
//!
//! Elements are shared, not copied, so a few lines of configuration could describe a value that takes
//! forever to look at: a list of two lists of two lists, and so on. Each collection therefore carries the
//! weight and depth of everything in it, which evaluation limits.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use super::Value;

/// The heaviest value that evaluation accepts; see [`Value::weight`].
pub const MAX_WEIGHT: u64 = 2_000_000;

/// How deeply collections may be nested in a value.
pub const MAX_DEPTH: u16 = 200;

/// How much a collection contains, counting all levels.
#[derive(Debug, Clone, Copy)]
struct CollectionSize {
    weight: u64,
    depth: u16,
}

impl CollectionSize {
    fn of<'v>(values: impl Iterator<Item = &'v Value>) -> Self {
        let none = CollectionSize {
            weight: 1,
            depth: 0,
        };
        let inner = values.fold(none, |extent, value| CollectionSize {
            weight: extent.weight.saturating_add(value.weight()),
            depth: extent.depth.max(value.depth()),
        });
        CollectionSize {
            depth: inner.depth.saturating_add(1),
            ..inner
        }
    }
}

/// The elements of a tuple, list or set. They are cheap to clone.
#[derive(Debug, Clone)]
pub struct Items(Arc<(Vec<Value>, CollectionSize)>);

impl Items {
    pub(super) fn weight(&self) -> u64 {
        self.0.1.weight
    }

    pub(super) fn depth(&self) -> u16 {
        self.0.1.depth
    }
}

impl FromIterator<Value> for Items {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        let items: Vec<Value> = items.into_iter().collect();
        let extent = CollectionSize::of(items.iter());
        Items(Arc::new((items, extent)))
    }
}

impl Deref for Items {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0.0
    }
}

impl PartialEq for Items {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

/// The entries of an object or map, with keys in byte order, as HCL iterates over them. They are cheap
/// to clone.
#[derive(Debug, Clone)]
pub struct ObjectEntries(Arc<(BTreeMap<Arc<str>, Value>, CollectionSize)>);

impl ObjectEntries {
    pub(super) fn weight(&self) -> u64 {
        self.0.1.weight
    }

    pub(super) fn depth(&self) -> u16 {
        self.0.1.depth
    }
}

impl<K: Into<Arc<str>>> FromIterator<(K, Value)> for ObjectEntries {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value));
        entries.collect::<BTreeMap<_, _>>().into()
    }
}

impl From<BTreeMap<Arc<str>, Value>> for ObjectEntries {
    fn from(entries: BTreeMap<Arc<str>, Value>) -> Self {
        let mut extent = CollectionSize::of(entries.values());
        // A map takes more memory than a list, and each key has a place of its own.
        let keys = entries.keys().map(|key| 4 + key.len() as u64 / 8);
        extent.weight = extent.weight.saturating_add(8 + keys.sum::<u64>());
        ObjectEntries(Arc::new((entries, extent)))
    }
}

impl Deref for ObjectEntries {
    type Target = BTreeMap<Arc<str>, Value>;

    fn deref(&self) -> &BTreeMap<Arc<str>, Value> {
        &self.0.0
    }
}

impl PartialEq for ObjectEntries {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}
