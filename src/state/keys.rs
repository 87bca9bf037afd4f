//! Reads maps whose keys are valid and unique: of two values for a key, neither is the right one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::marker::PhantomData;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, de};

use crate::printable::printable;

/// Reads a map.
pub(super) fn unique<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(UniqueKeys::checked_by(|_| true))
}

/// Reads a map that may be missing.
pub(super) fn unique_if_any<'de, D, V>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, V>>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    struct Unique<V>(BTreeMap<String, V>);
    impl<'de, V: Deserialize<'de>> Deserialize<'de> for Unique<V> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            unique(deserializer).map(Unique)
        }
    }
    let map: Option<Unique<V>> = Option::deserialize(deserializer)?;
    Ok(map.map(|map| map.0))
}

/// Reads a map by the paths of stacks.
pub(super) fn by_path<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(UniqueKeys::checked_by(is_path))
}

/// Returns whether a key may be the path of a stack: absolute, and without `.`, `..` and empty names.
pub(crate) fn is_path(key: &str) -> bool {
    let Some(names) = key.strip_prefix('/') else {
        return false;
    };
    names.is_empty()
        || names
            .split('/')
            .all(|name| !matches!(name, "" | "." | ".."))
}

struct UniqueKeys<V> {
    is_right: fn(&str) -> bool,
    value: PhantomData<V>,
}

impl<V> UniqueKeys<V> {
    fn checked_by(is_right: fn(&str) -> bool) -> Self {
        let value = PhantomData;
        UniqueKeys { is_right, value }
    }
}

impl<'de, V: Deserialize<'de>> de::Visitor<'de> for UniqueKeys<V> {
    type Value = BTreeMap<String, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(key) = access.next_key::<String>()? {
            if !(self.is_right)(&key) {
                let key = printable(&key);
                return Err(A::Error::custom(format!(
                    "`{key}` is not the path of a stack"
                )));
            }
            match map.entry(key) {
                Entry::Vacant(place) => _ = place.insert(access.next_value()?),
                Entry::Occupied(place) => {
                    let key = printable(place.key()).into_owned();
                    return Err(A::Error::custom(format!("`{key}` occurs twice")));
                }
            }
        }
        Ok(map)
    }
}
