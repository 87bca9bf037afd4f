//! The generations of recorded stacks.

use jiff::Timestamp;

use super::document::{
    Applied, Attempt, AttemptOutcome, DeposedGeneration, Document, Entry, RunAction, UNMERGED,
};
use crate::path::{Generation, StackPath};

/// The failure of a destroy that has left old generations.
const OLD_LEFT: &str = "old-generation-left";

impl Entry {
    /// Returns the generation that the next one gets that replaces the current one.
    pub fn next_generation(&self) -> Generation {
        let deposed = self.deposed.iter().map(|deposed| deposed.generation);
        let last = deposed.fold(self.generation, Generation::max);
        last.next()
    }

    /// Returns the current generation as the record of an old one.
    pub fn as_deposed(&self) -> DeposedGeneration {
        let applied = self.applied.as_ref();
        DeposedGeneration {
            generation: self.generation,
            commit: applied.and_then(|applied| applied.commit.clone()),
            seen: applied.and_then(|applied| applied.seen.clone()),
            backend: self.backend.clone(),
            driver: self.driver.clone(),
            inputs: applied.and_then(|applied| applied.inputs.clone()),
            generations: applied
                .map(|applied| applied.generations.clone())
                .unwrap_or_default(),
            released: false,
            other: serde_json::Map::new(),
        }
    }

    /// Returns whether it was certainly applied after a new generation of another stack, whose old one it used,
    /// became current: with the number of the new generation, or with changes. `key` is that of the other stack.
    pub fn has_left_old(&self, key: &str, other: &Entry) -> bool {
        let applied = self.applied.as_ref();
        let used = applied.and_then(|applied| applied.generations.get(key));
        let is_modified = self.modified.zip(other.made);
        used.is_some_and(|used| *used >= other.generation)
            || is_modified.is_some_and(|(modified, made)| modified >= made)
    }

    /// Records an old generation.
    pub fn depose(&mut self, deposed: DeposedGeneration) {
        self.forget_generation(deposed.generation);
        self.deposed.push(deposed);
        self.deposed.sort_by_key(|deposed| deposed.generation);
    }

    /// Drops a generation that is not the current one, if it is there.
    pub fn forget_generation(&mut self, generation: Generation) {
        self.deposed.retain(|it| it.generation != generation);
    }

    /// Returns the entry after the current generation was destroyed: `None` if it was the only one.
    pub fn without_current(&self, run: &str, at: Timestamp) -> Option<Entry> {
        (!self.deposed.is_empty()).then(|| Entry {
            intent: None,
            last: Some(Attempt {
                serial: UNMERGED,
                action: RunAction::Destroy,
                outcome: AttemptOutcome::Failed,
                failure: Some(OLD_LEFT.to_owned()),
                run: Some(run.to_owned()),
                at,
                commit: None,
                plan: None,
                order: None,
                other: serde_json::Map::new(),
            }),
            ..self.clone()
        })
    }

    pub fn without_generation(&self, generation: Generation) -> Option<Entry> {
        let mut entry = self.clone();
        entry.forget_generation(generation);
        let last = entry.last.as_ref().and_then(|last| last.failure.as_deref());
        let is_last = entry.deposed.is_empty() && last == Some(OLD_LEFT);
        (!is_last).then_some(entry)
    }

    /// Returns the entry as if an old generation were the stack, with the declarations of the stack.
    fn as_if_current(&self, deposed: &DeposedGeneration) -> Entry {
        let applied = self.applied.as_ref();
        Entry {
            id: None,
            generation: deposed.generation,
            deposed: Vec::new(),
            backend: deposed.backend.clone(),
            driver: deposed.driver.clone(),
            outputs: None,
            intent: None,
            tainted: None,
            last: None::<Attempt>,
            applied: applied.map(|applied| Applied {
                commit: deposed.commit.clone(),
                seen: deposed.seen.clone(),
                inputs: deposed.inputs.clone(),
                generations: deposed.generations.clone(),
                ..applied.clone()
            }),
            ..self.clone()
        }
    }

    /// Returns the entry of a generation, as if it were a stack of its own without an id; `None` if it is not
    /// recorded.
    pub fn of_generation(&self, generation: Generation) -> Option<Entry> {
        if generation == self.generation {
            return Some(Entry {
                id: None,
                deposed: Vec::new(),
                ..self.clone()
            });
        }
        let deposed = self.deposed.iter().find(|it| it.generation == generation)?;
        Some(self.as_if_current(deposed))
    }
}

impl Document {
    /// Returns the document in which these generations are stacks of their own. Unknown paths have no effect.
    #[must_use]
    pub fn with_generations<'s>(&self, paths: impl Iterator<Item = &'s StackPath>) -> Self {
        let mut document = self.clone();
        for path in paths {
            let entry = path.generation().and_then(|generation| {
                let current = self.stacks.get(path.current().as_str())?;
                current.of_generation(generation)
            });
            if let Some(entry) = entry {
                document.stacks.insert(path.to_string(), entry);
            }
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(number: &str) -> Generation {
        Generation::parse(number).unwrap()
    }

    fn entry(current: &str, deposed: &[&str]) -> Entry {
        let mut entry = Entry {
            generation: generation(current),
            ..Entry::default()
        };
        for number in deposed {
            entry.depose(DeposedGeneration {
                generation: generation(number),
                ..Entry::default().as_deposed()
            });
        }
        entry
    }

    #[test]
    fn a_generation_gets_a_number_that_no_other_one_has() {
        for (current, deposed, next) in
            [("1", &[][..], "2"), ("2", &["1"], "3"), ("1", &["2"], "3")]
        {
            let next = generation(next);
            assert_eq!(entry(current, deposed).next_generation(), next);
        }
    }

    #[test]
    fn each_generation_on_record_can_be_looked_at() {
        let entry = entry("2", &["3", "1"]);
        let numbers = entry.deposed.iter().map(|it| it.generation.get());
        assert_eq!(numbers.collect::<Vec<u32>>(), [1, 3]);
        for number in ["1", "2", "3"] {
            let found = entry.of_generation(generation(number)).unwrap();
            assert_eq!(found.generation, generation(number));
            assert_eq!(found.deposed, []);
        }
        assert_eq!(entry.of_generation(generation("4")), None);
    }
}
