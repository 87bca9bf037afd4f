//! The outputs that the turns of a run read for their inputs: those of each source once, until its stack has run
//! again. This module doesn't know the commands that print them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::execute::UpcomingStep;
use super::turn::TurnIndex;
use crate::language::function::from_json;
use crate::language::value::Value;

/// The largest size of the outputs of a stack.
const MAX_BYTES: u64 = 16 << 20;

/// Outputs, or why they cannot be used.
type ReadOutputs = Rc<Result<Value, String>>;

/// The outputs that turns have read, by the position of their source.
#[derive(Debug, Default)]
pub struct OutputReads {
    known: HashMap<usize, ReadOutputs>,
    /// The sources that a turn has failed to read: no other one waits for the next attempt.
    failed: HashSet<usize>,
    of_turns: BTreeMap<TurnIndex, ReadsOfTurn>,
}

#[derive(Debug, Default)]
struct ReadsOfTurn {
    attempt: u32,
    reading: Option<usize>,
    /// Whether the stack that is being read has run meanwhile.
    is_outdated: bool,
    outputs: HashMap<usize, ReadOutputs>,
}

impl OutputReads {
    /// Takes the outputs that a turn has read before a step. `file` returns the file that a source was printed to.
    pub fn take(&mut self, step: &UpcomingStep<'_>, file: impl FnOnce(usize) -> PathBuf) {
        let reads = self.of_turns.entry(step.index).or_default();
        if reads.attempt != step.attempt {
            *reads = ReadsOfTurn {
                attempt: step.attempt,
                ..ReadsOfTurn::default()
            };
        }
        if let Some(source) = reads.reading.take() {
            let read = Rc::new(read_outputs(&file(source)));
            if !std::mem::take(&mut reads.is_outdated) {
                self.known.insert(source, Rc::clone(&read));
            }
            reads.outputs.insert(source, read);
        }
    }

    /// Returns whether another turn is reading a source that a step needs.
    pub fn is_held(&self, step: &UpcomingStep<'_>, source: usize) -> bool {
        let mut others = self
            .of_turns
            .iter()
            .filter(|(turn, _)| **turn != step.index);
        let may_wait = self.find(step, source).is_none() && !self.failed.contains(&source);
        may_wait && others.any(|(_, reads)| reads.reading == Some(source))
    }

    /// Returns whether a step has to read a source; then its turn is reading it from now on.
    pub fn is_needed(&mut self, step: &UpcomingStep<'_>, source: usize) -> bool {
        let found = self.find(step, source).cloned();
        let reads = self.of_turns.entry(step.index).or_default();
        match found {
            Some(outputs) => _ = reads.outputs.insert(source, outputs),
            None => reads.reading = Some(source),
        }
        reads.reading.is_some()
    }

    pub fn reading(&self, turn: TurnIndex) -> Option<usize> {
        self.of_turns.get(&turn)?.reading
    }

    /// Returns the outputs of a source that a turn has read. The error says why they cannot be
    /// used.
    pub fn get(&self, turn: TurnIndex, source: usize) -> Result<&Value, &str> {
        let reads = self.of_turns.get(&turn);
        let outputs = reads.and_then(|reads| reads.outputs.get(&source));
        let outputs = outputs.ok_or("they were not read")?;
        outputs.as_ref().as_ref().map_err(String::as_str)
    }

    /// Takes the end of an attempt that has failed, or of a turn. Returns the source that it has failed to read.
    pub fn end(&mut self, turn: TurnIndex) -> Option<usize> {
        let source = self.of_turns.remove(&turn)?.reading?;
        self.failed.insert(source);
        Some(source)
    }

    pub fn forget(&mut self, is_of_stack: impl Fn(usize) -> bool) {
        self.known.retain(|source, _| !is_of_stack(*source));
        self.failed.retain(|source| !is_of_stack(*source));
        for reads in self.of_turns.values_mut() {
            reads.is_outdated |= reads.reading.is_some_and(&is_of_stack);
        }
    }

    /// Finds outputs that are known. A retry reads unusable ones again.
    fn find(&self, step: &UpcomingStep<'_>, source: usize) -> Option<&ReadOutputs> {
        let known = self.known.get(&source)?;
        (known.is_ok() || step.attempt == 1).then_some(known)
    }
}

/// Reads outputs that a backend has printed to a file, and removes the file: it may hold secrets.
/// The error says why they cannot be used.
pub fn read_outputs(path: &Path) -> Result<Value, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    _ = fs::remove_file(path);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("they are larger than {} MiB", MAX_BYTES >> 20));
    }
    from_json(&text).ok_or_else(|| "they are not JSON".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::ProjectPath;
    use crate::run::turn::Turn;

    const A: TurnIndex = TurnIndex::new(0);
    const B: TurnIndex = TurnIndex::new(1);
    const C: TurnIndex = TurnIndex::new(2);

    /// The reads of a run, with one source, and the folder that it is printed to.
    struct Reads(OutputReads, tempfile::TempDir);

    impl Reads {
        fn new() -> Self {
            Reads(OutputReads::default(), tempfile::tempdir().unwrap())
        }

        fn with<T>(
            &mut self,
            index: TurnIndex,
            attempt: u32,
            ask: impl FnOnce(&mut OutputReads, &UpcomingStep<'_>) -> T,
        ) -> T {
            let turn = Turn::of_command(ProjectPath::root(), &[].into());
            let step = UpcomingStep {
                index,
                turn: &turn,
                attempt,
                step: 0,
                changes: None,
            };
            self.0.take(&step, |_| self.1.path().join("outputs"));
            ask(&mut self.0, &step)
        }

        fn is_held(&mut self, turn: TurnIndex) -> bool {
            self.with(turn, 1, |reads, step| reads.is_held(step, 0))
        }

        fn is_needed(&mut self, turn: TurnIndex, attempt: u32) -> bool {
            self.with(turn, attempt, |reads, step| reads.is_needed(step, 0))
        }

        fn printed(&mut self, turn: TurnIndex, text: &str) {
            fs::write(self.1.path().join("outputs"), text).unwrap();
            self.with(turn, 1, |_, _| ());
        }

        fn has(&self, turn: TurnIndex, text: &str) -> bool {
            self.0
                .get(turn, 0)
                .is_ok_and(|it| *it == Value::string(text))
        }
    }

    #[test]
    fn turns_wait_for_the_one_that_reads_and_get_the_same() {
        let mut reads = Reads::new();
        assert!(!reads.is_held(A) && reads.is_needed(A, 1));
        assert!(reads.is_held(B));
        reads.printed(A, "\"one\"");
        assert!(!reads.is_held(B) && !reads.is_needed(B, 1));
        assert!(reads.has(A, "one") && reads.has(B, "one"));
        assert_eq!(reads.0.end(A), None);
    }

    #[test]
    fn no_turn_waits_for_a_second_attempt() {
        let mut reads = Reads::new();
        assert!(reads.is_needed(A, 1) && reads.is_held(B));
        assert_eq!(reads.0.end(A), Some(0));
        assert!(!reads.is_held(B) && reads.is_needed(B, 1));
        assert!(!reads.is_held(C));
        // A retry.
        assert!(reads.is_needed(A, 2));
    }

    #[test]
    fn outputs_are_read_again_after_their_stack_has_run() {
        let mut reads = Reads::new();
        assert!(reads.is_needed(A, 1));
        reads.0.forget(|source| source == 0);
        reads.printed(A, "\"old\"");
        assert!(reads.has(A, "old") && reads.is_needed(B, 1));
        reads.printed(B, "\"new\"");
        assert!(reads.has(B, "new") && !reads.is_needed(C, 1));
        reads.0.forget(|source| source == 0);
        assert!(reads.has(C, "new") && reads.is_needed(A, 1));
    }

    #[test]
    fn only_a_retry_reads_unusable_outputs_again() {
        let mut reads = Reads::new();
        assert!(reads.is_needed(A, 1));
        reads.printed(A, "nothing");
        assert_eq!(reads.0.get(A, 0), Err("they are not JSON"));
        assert!(!reads.is_needed(B, 1) && reads.0.get(B, 0).is_err());
        assert!(reads.is_needed(B, 2));
    }
}
