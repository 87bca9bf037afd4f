//! A digest of the graph, to detect changes.

use std::collections::{BTreeSet, HashMap};

use crate::project::stack::Stacks;
use crate::selection::reference::{ReferenceKind, ReferenceTarget, References};

/// Returns a digest of all stacks of a project and their constraints. It is the same on every machine, and
/// independent of the files and lines that declare them.
///
/// It covers the declared references and the stacks that they name, not the graph that is built from them,
/// which may differ between versions.
pub fn digest(stacks: &Stacks, references: &References) -> String {
    // No path contains a NUL.
    let mut lines: BTreeSet<String> = stacks
        .iter()
        .map(|(_, stack)| format!("stack\0{}\0\n", stack.path))
        .collect();
    // Thousands of stacks may name the same group of thousands.
    let mut groups: HashMap<&ReferenceTarget, String> = HashMap::new();
    for reference in &references.list {
        let kind = reference.kind;
        if matches!(kind, ReferenceKind::Wants | ReferenceKind::WantedBy) {
            continue;
        }
        let from = &stacks[reference.from].path;
        let group = groups.entry(&reference.target).or_insert_with(|| {
            let mut members = String::new();
            if matches!(reference.target, ReferenceTarget::Enclosing(_)) {
                members += "enclosing\0";
            }
            for member in references.members(&reference.target, stacks) {
                members += &format!("{}\0", stacks[member].path);
            }
            sha1(&members)
        });
        lines.insert(format!("{kind}\0{from}\0{group}\n"));
    }
    sha1(&lines.into_iter().collect::<String>())
}

fn sha1(text: &str) -> String {
    let digest = git2::Oid::hash_object(git2::ObjectType::Blob, text.as_bytes());
    digest.expect("texts can be digested").to_string()
}
