//! The persistent graph of `CFNgin`: `{"stack": ["its dependency"]}`, by name.

use std::collections::{BTreeMap, BTreeSet};

use super::keys;

/// The graph, by the names of stacks.
pub type CfnginGraph = BTreeMap<String, Vec<String>>;

/// Why a graph cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CfnginError {
    #[error("not a persistent graph of CFNgin, which is an object of lists of names: {0}")]
    NoGraph(serde_json::Error),
    /// A name may mean several stacks.
    #[error("several stacks have the name `{name}`: {}", list(.stacks))]
    Ambiguous { name: String, stacks: Vec<String> },
}

fn list(stacks: &[String]) -> String {
    let stacks: Vec<String> = stacks.iter().map(|stack| format!("`{stack}`")).collect();
    stacks.join(", ")
}

/// Reads a graph. Fails if the text is not one, or has a name twice.
pub fn read(text: &[u8]) -> Result<CfnginGraph, CfnginError> {
    let mut text = serde_json::Deserializer::from_slice(text);
    let graph = keys::unique(&mut text).and_then(|graph| text.end().map(|()| graph));
    graph.map_err(CfnginError::NoGraph)
}

/// Returns the key of the stack that each name means; none for names that mean nothing. Fails if
/// one of the names may mean several stacks.
pub fn keys<'a>(
    names: &BTreeSet<&'a str>,
    stacks: impl IntoIterator<Item = (String, &'a str)>,
) -> Result<BTreeMap<&'a str, String>, CfnginError> {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (key, name) in stacks {
        if names.contains(name) {
            found.entry(name).or_default().push(key);
        }
    }
    let single = |(name, mut stacks): (&'a str, Vec<String>)| match stacks.len() {
        1 => Ok((name, stacks.remove(0))),
        _ => Err(CfnginError::Ambiguous {
            name: name.to_owned(),
            stacks,
        }),
    };
    found.into_iter().map(single).collect()
}

/// Writes dependencies by key as a graph by name. Fails if two stacks have the same name.
pub fn graph(
    dependencies: &BTreeMap<&str, Vec<&str>>,
    name: impl Fn(&str) -> String,
) -> Result<CfnginGraph, CfnginError> {
    let mut graph = CfnginGraph::new();
    let mut keys: BTreeMap<String, &str> = BTreeMap::new();
    for (key, before) in dependencies {
        let own = name(key);
        if let Some(other) = keys.insert(own.clone(), key) {
            return Err(CfnginError::Ambiguous {
                name: own,
                stacks: vec![other.to_owned(), (*key).to_owned()],
            });
        }
        graph.insert(own, before.iter().map(|key| name(key)).collect());
    }
    Ok(graph)
}
