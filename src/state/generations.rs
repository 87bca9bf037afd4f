//! The generations of stacks on record: which there are, and what is known of each.

use jiff::Timestamp;

use super::document::{
    Applied, Attempt, AttemptOutcome, Deposed, Document, Entry, RunAction, UNMERGED,
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

    /// Returns the current generation as it is kept once another one has taken its place.
    pub fn as_deposed(&self) -> Deposed {
        let applied = self.applied.as_ref();
        Deposed {
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

    /// Returns whether it was certainly applied after the current generation of another stack took the place of an
    /// older one, which it used: with the number of that generation, or with changes. `key` is that of the other stack.
    pub fn has_left_old(&self, key: &str, other: &Entry) -> bool {
        let applied = self.applied.as_ref();
        let used = applied.and_then(|applied| applied.generations.get(key));
        let is_modified = self.modified.zip(other.made);
        used.is_some_and(|used| *used >= other.generation)
            || is_modified.is_some_and(|(modified, made)| modified >= made)
    }

    /// Keeps a generation that is not the current one.
    pub fn depose(&mut self, deposed: Deposed) {
        self.forget_generation(deposed.generation);
        self.deposed.push(deposed);
        self.deposed.sort_by_key(|deposed| deposed.generation);
    }

    /// Drops a generation that is not the current one, if it is there.
    pub fn forget_generation(&mut self, generation: Generation) {
        self.deposed.retain(|it| it.generation != generation);
    }

    /// Returns what stays on record once a run has destroyed the current generation: nothing, if it was the only
    /// one. Else the stack has not been destroyed wholly.
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
                other: serde_json::Map::new(),
            }),
            ..self.clone()
        })
    }

    /// Returns what stays on record once a generation has been destroyed that is not the current one.
    pub fn without_generation(&self, generation: Generation) -> Option<Entry> {
        let mut entry = self.clone();
        entry.forget_generation(generation);
        let last = entry.last.as_ref().and_then(|last| last.failure.as_deref());
        let is_last = entry.deposed.is_empty() && last == Some(OLD_LEFT);
        (!is_last).then_some(entry)
    }

    /// Returns the entry as if a generation that is not the current one were the stack: what it declares is what
    /// the stack does.
    fn as_if_current(&self, deposed: &Deposed) -> Entry {
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

    /// Returns what is on record of a generation, as if it were a stack of its own, which has no id; `None` if
    /// nothing is.
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
    /// Returns the document in which these generations of stacks are stacks of their own. The paths of others
    /// change nothing.
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
            entry.depose(Deposed {
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
