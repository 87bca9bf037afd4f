//! The outputs that the turns of a run read for their inputs: those of each source once, until its stack has run
//! again. This module doesn't know the commands that print them.

use std::collections::{BTreeMap, HashMap};
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
    /// For all turns.
    known: HashMap<usize, ReadOutputs>,
    of_turns: BTreeMap<TurnIndex, ReadsOfTurn>,
}

/// The reads of a turn in its latest attempt.
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
        self.find(step, source).is_none() && others.any(|(_, reads)| reads.reading == Some(source))
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

    /// Returns the source that a turn is reading.
    pub fn reading(&self, turn: TurnIndex) -> Option<usize> {
        self.of_turns.get(&turn)?.reading
    }

    /// Returns the outputs of a source that a turn has read.
    ///
    /// # Errors
    ///
    /// Why they cannot be used.
    pub fn get(&self, turn: TurnIndex, source: usize) -> Result<&Value, &str> {
        let reads = self.of_turns.get(&turn);
        let outputs = reads.and_then(|reads| reads.outputs.get(&source));
        let outputs = outputs.ok_or("they were not read")?;
        outputs.as_ref().as_ref().map_err(String::as_str)
    }

    /// Takes the end of a turn. Returns the source that it was reading.
    pub fn end(&mut self, turn: TurnIndex) -> Option<usize> {
        self.of_turns.remove(&turn)?.reading
    }

    /// Forgets the sources of a stack that has run.
    pub fn forget(&mut self, is_of_stack: impl Fn(usize) -> bool) {
        self.known.retain(|source, _| !is_of_stack(*source));
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
///
/// # Errors
///
/// Why they cannot be used.
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
