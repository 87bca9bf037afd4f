//! The entries of the state under the keys that `moved` blocks give them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::path::StackPath;
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::state::document::Document;

/// A contradiction between a `moved` block and the state. The last field is the place of the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveConflict {
    /// The first was moved to the second, and both are recorded.
    Both(String, String, String),
    /// Both were moved to the same stack.
    Same(String, String, String),
    /// The first was moved to the second, whose id belongs to the third.
    OtherId(String, String, String, String),
}

impl fmt::Display for MoveConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MoveConflict::Both(from, to, place) => {
                write!(f, "{place} moves `{from}` to `{to}`, but both are recorded")
            }
            MoveConflict::Same(first, second, place) => write!(
                f,
                "{place} and other blocks move `{first}` and `{second}` to the same path, and both are recorded"
            ),
            MoveConflict::OtherId(from, to, owner, place) => write!(
                f,
                "{place} moves `{from}` to `{to}`, but its recorded id is that of `{owner}`"
            ),
        }
    }
}

impl MoveConflict {
    /// Returns the recorded stack that was moved.
    pub fn from(&self) -> &str {
        match self {
            MoveConflict::Both(from, ..)
            | MoveConflict::Same(from, ..)
            | MoveConflict::OtherId(from, ..) => from,
        }
    }
}

/// Moves entries to where `moved` blocks say that their stacks are, together with what other entries say of
/// them.
///
/// An entry moves only to the path of a stack of the project. It stays if a stack of the project is at its own
/// path and the new one is on record: then the block has done its work, and that stack is a new one.
/// Fails without changing anything if blocks contradict the record.
pub fn relocate(project: &Project, document: &mut Document) -> Result<(), Vec<MoveConflict>> {
    if project.moves.is_empty() {
        return Ok(());
    }
    let moves = Relocation::new(project, document).found()?;
    let mut keys = BTreeMap::new();
    for (old, (new, stack)) in moves {
        // The entry belongs to this stack now, whatever its id was.
        let id = project.stacks[stack].id.as_ref();
        if let (Some(id), Some(entry)) = (id, document.stacks.get_mut(&old)) {
            entry.id = Some(id.value.clone());
        }
        keys.insert(old, new);
    }
    document.rename(keys);
    Ok(())
}

/// The entries that may have to move.
struct Relocation<'a> {
    project: &'a Project,
    document: &'a Document,
    /// The stack of the project by id.
    by_id: HashMap<String, StackIndex>,
    /// The key of the entry by id.
    recorded_ids: HashMap<String, &'a str>,
}

/// The moves by old key: the new key and its stack.
type Found = BTreeMap<String, (String, StackIndex)>;

impl<'a> Relocation<'a> {
    fn new(project: &'a Project, document: &'a Document) -> Self {
        let with_id = project.stacks.iter().filter_map(|(index, stack)| {
            let id = stack.id.as_ref()?;
            Some((id.value.to_ascii_lowercase(), index))
        });
        let mut recorded_ids: HashMap<String, &str> = HashMap::new();
        for (key, entry) in &document.stacks {
            if let Some(id) = &entry.id {
                recorded_ids.entry(id.to_ascii_lowercase()).or_insert(key);
            }
        }
        Relocation {
            project,
            document,
            by_id: with_id.collect(),
            recorded_ids,
        }
    }

    fn found(&self) -> Result<Found, Vec<MoveConflict>> {
        let stacks = &self.project.stacks;
        let recorded: Vec<StackPath> = self
            .document
            .stacks
            .keys()
            .filter_map(|key| StackPath::parse(key))
            .collect();
        let mut found: Found = BTreeMap::new();
        let mut clashes = Vec::new();
        let mut by_target: HashMap<String, String> = HashMap::new();
        for (old, new) in self.project.moves.destinations(&recorded) {
            let Some(target) = stacks.find(&new) else {
                continue;
            };
            match self.owner(old.as_str()) {
                // Its id already moves it.
                Some(owner) if owner == target => {}
                Some(owner) => {
                    let owner = stacks[owner].path.to_string();
                    let (old, new) = (old.to_string(), new.to_string());
                    let place = self.place(&old);
                    clashes.push(MoveConflict::OtherId(old, new, owner, place));
                    continue;
                }
                None => {}
            }
            if let Some(other) = self.entry_of(target).filter(|other| *other != old.as_str()) {
                let (old, other) = (old.to_string(), other.to_owned());
                let place = self.place(&old);
                clashes.push(MoveConflict::Both(old, other, place));
                continue;
            }
            if let Some(first) = by_target.insert(new.to_string(), old.to_string()) {
                let place = self.place(&first);
                clashes.push(MoveConflict::Same(first, old.to_string(), place));
            }
            found.insert(old.to_string(), (new.to_string(), target));
        }
        // An entry that is not moved may keep another from moving, which is not moved either then.
        let is_taken = |new: &String, found: &Found| {
            self.document.stacks.contains_key(new) && !found.contains_key(new)
        };
        let taken = found.iter().filter(|(_, (new, _))| is_taken(new, &found));
        let mut open: Vec<String> = taken.map(|(old, _)| old.clone()).collect();
        while let Some(old) = open.pop() {
            let Some((new, _)) = found.remove(&old) else {
                continue;
            };
            let path = StackPath::parse(&old);
            if path.is_none_or(|path| stacks.find(&path).is_none()) {
                clashes.push(MoveConflict::Both(old.clone(), new, self.place(&old)));
            }
            open.extend(by_target.get(&old).cloned());
        }
        if clashes.is_empty() {
            return Ok(found);
        }
        clashes.sort_by(|a, b| a.from().cmp(b.from()));
        Err(clashes)
    }

    fn owner(&self, key: &str) -> Option<StackIndex> {
        let id = self.document.stacks.get(key)?.id.as_ref()?;
        self.by_id.get(&id.to_ascii_lowercase()).copied()
    }

    fn entry_of(&self, stack: StackIndex) -> Option<&'a str> {
        let id = self.project.stacks[stack]
            .id
            .as_ref()?
            .value
            .to_ascii_lowercase();
        self.recorded_ids.get(&id).copied()
    }

    fn place(&self, key: &str) -> String {
        let path = StackPath::parse(key);
        let block = path.and_then(|path| self.project.moves.from(&path));
        block.map_or_else(String::new, |block| self.project.sources.line(block.span))
    }
}
