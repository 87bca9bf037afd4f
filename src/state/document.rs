//! The document: the stacks that exist, with the commits and inputs of their last applies, and the current writer.
//!
//! Within a format number, fields are only added. Unknown fields are preserved wherever they are.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::keys;
pub use super::lease::RunAction;
pub use super::lease::{Lock, OrderJob, SharedLock};
use super::rules::RecordedRules;
use crate::path::Generation;

/// The format that this program reads and writes.
pub const FORMAT: u32 = 1;

/// The highest serial: one that is always counted up never gets there.
pub(super) const MAX_SERIAL: u64 = 1_000_000_000_000_000;

/// The serial of entries that are not merged into the document yet.
pub const UNMERGED: u64 = 0;

/// A placeholder for the serial that a part of an earlier turn of the run has by now.
const KEPT: u64 = u64::MAX;

/// The mode of stacks that are only read.
pub const READ: &str = "read";

/// The failure of a turn with a condition that does not hold.
pub const CONDITION: &str = "condition";

/// The checks of an apply after which a condition failed.
pub const CHECKS_FAILED: &str = "failed";

/// Why an attempt is unknown: it applied a partial plan file of the tool.
pub const PARTIAL_PLAN: &str = "partial-plan";

/// Why an attempt is unknown: it applied a plan file that the tool could not show.
pub const UNREADABLE_PLAN: &str = "unreadable-plan";

/// Why an attempt is unknown: it applied a plan file of another configuration, or with other values of variables.
pub const OUTDATED_PLAN: &str = "outdated-plan";

/// Why an attempt is unknown: the tool used, or may have used, another backend than the recorded one.
pub const OTHER_BACKEND: &str = "other-backend";

/// The name that stands for all outputs of a stack if they are unknown.
const UNKNOWN: &str = "";

/// The failure of a turn that `orch` refused before its command began.
pub const REFUSED: &str = "refused";

/// The failure of a turn whose end was not observed.
pub const INTERRUPTED: &str = "interrupted";

/// The persistent graph of a project in one namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    pub format: u32,
    /// The project, as configured.
    pub project: String,
    /// The namespace, as configured.
    pub namespace: String,
    /// The path of the project in its repository; empty at the top.
    pub root: String,
    /// Differs from that of any other document, and never changes.
    pub lineage: String,
    /// How many times the document has been written.
    pub serial: u64,
    /// The run that writes, if one does.
    pub lock: Option<Lock>,
    /// The stacks, by the name that `orch list` prints.
    #[serde(deserialize_with = "keys::by_path")]
    pub stacks: BTreeMap<String, Entry>,
    /// The last writes, the newest last.
    #[serde(default)]
    pub history: Vec<Write>,
    /// The lower serials that are not part of its history.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abandoned: Vec<AbandonedSerials>,
    /// The keys under which renamed entries were read, by their current keys.
    #[serde(skip)]
    pub(super) keys_as_read: BTreeMap<String, String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub id: Option<String>,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub tags: Vec<String>,
    /// `after`, with paths from the project root.
    #[serde(default)]
    pub after: Vec<String>,
    /// `before`, with paths from the project root.
    #[serde(default)]
    pub before: Vec<String>,
    /// The stacks whose data it uses, and after which it therefore runs, by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<String>,
    pub applied: Option<Applied>,
    pub last: Option<Attempt>,
    pub intent: Option<Intent>,
    /// Who marked it as tainted, if anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tainted: Option<Taint>,
    /// The name of the driver that planned or applied it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The backend of its tool, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Its mode, unless it is managed: [`READ`] for a stack that is only read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Its outputs, if it has any: digests of the values. A sensitive output has a mark instead, which changes with
    /// each apply of the stack. If they are unknown: [`unknown_outputs`].
    #[serde(
        default,
        deserialize_with = "keys::unique_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub outputs: Option<BTreeMap<String, String>>,
    /// The write that merged its last update or replacement, if there was any; [`UNMERGED`] before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<u64>,
    /// The write that merged the last attempt since then that may have updated it without succeeding; [`UNMERGED`]
    /// before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<u64>,
    /// The write that merged the last apply with changes, including its creation; [`UNMERGED`] before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<u64>,
    /// The write that merged the apply that created its current generation beside another one; [`UNMERGED`] before
    /// that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<u64>,
    #[serde(default, skip_serializing_if = "Generation::is_first")]
    pub generation: Generation,
    /// Its other generations that have not been destroyed, as far as is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deposed: Vec<DeposedGeneration>,
    /// The lifecycle rules that were in force when it was applied last.
    #[serde(default, skip_serializing_if = "RecordedRules::is_empty")]
    pub lifecycle: RecordedRules,
    /// The last refresh that accepted drift since: resources may differ from its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refreshed: Option<Refreshed>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// The write that merged it; [`UNMERGED`] before that.
    pub serial: u64,
    /// The run id; none if no run of `orch` applied it.
    pub run: Option<String>,
    pub at: Timestamp,
    /// The pattern that the command matched: never its arguments.
    pub command: Option<String>,
    pub commit: Option<String>,
    /// Whether an input was not committed.
    pub dirty: bool,
    /// The newest commit known to have the same inputs.
    pub seen: Option<String>,
    /// Its inputs, if known.
    pub inputs: Option<Inputs>,
    #[serde(default)]
    pub triggers: Vec<String>,
    /// A digest of the outputs that it was applied with: of the stacks that it runs right after, without those in
    /// `inputs_used`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// For each of its `input` blocks, by name: a digest of the outputs in its value.
    #[serde(
        default,
        deserialize_with = "keys::unique",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub inputs_used: BTreeMap<String, String>,
    /// The known digests of the outputs that replace it when they change, by their names in `replace_triggered_by`.
    #[serde(
        default,
        deserialize_with = "keys::unique",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub triggered_by: BTreeMap<String, String>,
    /// The generations of other stacks that its environment used, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generations: BTreeMap<String, Generation>,
    /// The id of the plan that was applied, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The result of its conditions: [`CHECKS_FAILED`] if one failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The write that merged it; [`UNMERGED`] before that.
    pub serial: u64,
    pub action: RunAction,
    pub outcome: AttemptOutcome,
    /// Why it failed, or why it is unknown: an option like `-target`, [`PARTIAL_PLAN`], [`UNREADABLE_PLAN`],
    /// [`OUTDATED_PLAN`] or [`OTHER_BACKEND`].
    pub failure: Option<String>,
    pub run: Option<String>,
    pub at: Timestamp,
    pub commit: Option<String>,
    /// The id of the applied plan, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The run of the work order whose job it was, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptOutcome {
    Succeeded,
    /// It did not.
    Failed,
    /// The command succeeded, but may have done only a part of its work, or nothing.
    Unknown,
    /// Something that a later version knows.
    #[serde(untagged)]
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    pub action: RunAction,
    pub run: String,
    pub since: Timestamp,
    /// The id of the applied plan, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The run of the work order whose job it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    pub by: String,
    pub at: Timestamp,
    pub reason: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Why the text of a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// A later version wrote it.
    #[error(
        "its format is {0}, and this version of orch reads formats up to {FORMAT}: upgrade orch"
    )]
    Newer(u64),
    #[error("damaged: {0}")]
    Damaged(serde_json::Error),
}

impl Document {
    /// Reads a document. Fails if it is damaged, or a later version wrote it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        let document = parse(bytes, |document: &Document| document.format)?;
        if document.serial > MAX_SERIAL {
            let wrong = format!("its serial {} is above {MAX_SERIAL}", document.serial);
            return Err(Unreadable::Damaged(serde::de::Error::custom(wrong)));
        }
        Ok(document)
    }

    /// Returns the text of the document, which ends with a line break.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self)
    }

    /// Merges whole entries into the document; `None` removes one. Unmerged parts get the current serial of the
    /// document.
    pub fn merge(&mut self, stacks: &BTreeMap<String, Option<Entry>>) {
        for (key, entry) in stacks {
            match entry {
                Some(entry) => {
                    let mut entry = entry.clone();
                    entry.number(self.serial);
                    self.stacks.insert(key.clone(), entry);
                }
                None => _ = self.stacks.remove(key),
            }
        }
        for key in stacks.keys() {
            self.note_triggers(key);
        }
    }

    /// Ends every open intent of a run, because its result is unknown.
    pub fn interrupt(&mut self, run: &str, at: Timestamp) {
        for entry in self.stacks.values_mut() {
            if let Some(intent) = entry.intent.take_if(|intent| intent.run == run) {
                entry.last = Some(Attempt {
                    serial: self.serial,
                    action: intent.action,
                    outcome: AttemptOutcome::Failed,
                    failure: Some(INTERRUPTED.to_owned()),
                    run: Some(intent.run),
                    at,
                    commit: None,
                    plan: intent.plan,
                    order: intent.order,
                    other: Map::new(),
                });
            }
        }
    }

    /// Records the current outputs that replace a stack when they change. An unknown output keeps its recorded
    /// digest.
    pub(super) fn note_triggers(&mut self, key: &str) {
        let entry = self.stacks.get(key);
        let rule = entry.and_then(|entry| entry.lifecycle.replace_triggered_by.as_ref());
        let Some(rule) = rule else { return };
        let outputs: Vec<(String, String)> = rule
            .value
            .iter()
            .filter_map(|trigger| {
                let (stack, output) = trigger.rsplit_once('#')?;
                let outputs = self.stacks.get(stack)?.known_outputs()?;
                let digest = outputs.get(output).map_or("", String::as_str);
                Some((trigger.clone(), digest.to_owned()))
            })
            .collect();
        let serial = self.serial;
        let applied = self.stacks.get_mut(key).and_then(|it| it.applied.as_mut());
        let Some(applied) = applied else { return };
        for (trigger, digest) in outputs {
            if applied.serial == serial {
                applied.triggered_by.insert(trigger, digest);
            } else {
                applied.triggered_by.entry(trigger).or_insert(digest);
            }
        }
    }
}

/// Returns what is recorded as the outputs of a stack that may have changed in a run: a mark that equals no other one,
/// under a name that no output has.
pub fn unknown_outputs(run: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(UNKNOWN.to_owned(), format!("run:{run}"))])
}

/// Returns whether recorded outputs are known: see [`unknown_outputs`].
pub fn are_known(outputs: &BTreeMap<String, String>) -> bool {
    !outputs.contains_key(UNKNOWN)
}

impl Entry {
    /// Returns the digests of its outputs, if they are known.
    pub fn known_outputs(&self) -> Option<&BTreeMap<String, String>> {
        let outputs = self.outputs.as_ref();
        outputs.filter(|outputs| are_known(outputs))
    }

    /// Returns whether a run ended while it worked on the stack, so that its result is unknown.
    pub fn was_cut_off_in(&self, run: &str) -> bool {
        match (&self.intent, &self.last) {
            (Some(intent), _) => intent.run == run,
            (None, Some(last)) => {
                last.failure.as_deref() == Some(INTERRUPTED) && last.run.as_deref() == Some(run)
            }
            (None, None) => false,
        }
    }

    /// Returns the last attempt if it was part of a work order and has no known end: its run, what it did, and when that
    /// run began it or was interrupted.
    pub fn cut_off_of(&self, order: &str) -> Option<(&str, &RunAction, Timestamp)> {
        match (&self.intent, &self.last) {
            (Some(intent), _) if intent.order.as_deref() == Some(order) => {
                Some((&intent.run, &intent.action, intent.since))
            }
            (None, Some(last))
                if last.failure.as_deref() == Some(INTERRUPTED)
                    && last.order.as_deref() == Some(order) =>
            {
                Some((last.run.as_deref()?, &last.action, last.at))
            }
            _ => None,
        }
    }

    /// Returns whether the effect of its last attempt is unknown.
    pub fn is_unknown(&self) -> bool {
        let last = self.last.as_ref().filter(|_| self.intent.is_none());
        last.is_some_and(|last| last.outcome == AttemptOutcome::Unknown)
    }

    /// Sets the serial of unmerged parts.
    fn number(&mut self, serial: u64) {
        let attempts = self.serials_mut().into_iter().flatten();
        let unmerged = attempts.filter(|own| **own == UNMERGED);
        unmerged.for_each(|own| *own = serial);
        let writes = self.writes_mut().into_iter().flatten();
        let unmerged = writes.filter(|own| **own == UNMERGED);
        unmerged.for_each(|own| *own = serial);
    }

    /// Returns the entry as a later turn of the run sees it, without the serials, which it cannot know.
    #[must_use]
    pub fn as_kept(&self) -> Entry {
        let mut kept = self.clone();
        kept.number(KEPT);
        kept
    }

    /// Sets the serials of parts that an earlier turn recorded.
    pub(super) fn keep_serials(&mut self, current: Option<&Entry>) {
        self.replace_serials(KEPT, current);
    }

    /// Replaces placeholder serials by those of the merged entry, if there is one.
    fn replace_serials(&mut self, placeholder: u64, merged: Option<&Entry>) {
        let merged = merged.map(|it| (it.serials(), it.writes()));
        let (serials, writes) = merged.unwrap_or_default();
        for (own, merged) in self.serials_mut().into_iter().zip(serials) {
            if let Some(own) = own.filter(|own| **own == placeholder) {
                *own = merged.unwrap_or(UNMERGED);
            }
        }
        for (own, merged) in self.writes_mut().into_iter().zip(writes) {
            if *own == Some(placeholder) {
                *own = merged;
            }
        }
    }

    /// Returns the serial of its last attempt, adoption or refresh.
    pub fn last_serial(&self) -> Option<u64> {
        self.serials().into_iter().flatten().max()
    }

    /// Returns the serials of its attempts.
    fn serials(&self) -> [Option<u64>; 3] {
        [
            self.applied.as_ref().map(|it| it.serial),
            self.last.as_ref().map(|it| it.serial),
            self.refreshed.as_ref().map(|it| it.serial),
        ]
    }

    fn serials_mut(&mut self) -> [Option<&mut u64>; 3] {
        [
            self.applied.as_mut().map(|it| &mut it.serial),
            self.last.as_mut().map(|it| &mut it.serial),
            self.refreshed.as_mut().map(|it| &mut it.serial),
        ]
    }

    /// Returns the other serials in the entry.
    fn writes(&self) -> [Option<u64>; 4] {
        [self.changed, self.attempted, self.modified, self.made]
    }

    fn writes_mut(&mut self) -> [&mut Option<u64>; 4] {
        [
            &mut self.changed,
            &mut self.attempted,
            &mut self.modified,
            &mut self.made,
        ]
    }

    /// Returns the write that merged the last attempt that updated it, or may have.
    pub fn may_have_changed(&self) -> Option<u64> {
        self.attempted.or(self.changed)
    }

    /// Sets the serials of unmerged parts from an entry that may be the same one, merged.
    pub(super) fn number_like(&mut self, merged: &Entry) {
        self.replace_serials(UNMERGED, Some(merged));
        if let (Some(applied), Some(like)) = (&mut self.applied, &merged.applied) {
            applied.triggered_by.clone_from(&like.triggered_by);
        }
    }

    /// Returns whether this run wrote the entry last.
    pub fn is_of(&self, run: &str) -> bool {
        let intent = self.intent.as_ref().map(|intent| intent.run.as_str());
        let last = self.last.as_ref().and_then(|last| last.run.as_deref());
        intent.or(last) == Some(run)
    }

    pub fn has_succeeded(&self) -> bool {
        let last = self.last.as_ref();
        last.is_some_and(|last| last.outcome == AttemptOutcome::Succeeded)
    }
}

/// Reads JSON that has a format number.
pub(super) fn parse<T: for<'de> Deserialize<'de>>(
    bytes: &[u8],
    format: impl Fn(&T) -> u32,
) -> Result<T, Unreadable> {
    #[derive(Deserialize)]
    struct Head {
        format: u64,
    }
    match serde_json::from_slice::<T>(bytes) {
        Ok(read) if format(&read) == FORMAT => Ok(read),
        Ok(read) if format(&read) > FORMAT => Err(Unreadable::Newer(format(&read).into())),
        read => match serde_json::from_slice::<Head>(bytes) {
            // Additions of a later version may look like damage.
            Ok(head) if head.format > FORMAT.into() => Err(Unreadable::Newer(head.format)),
            _ => {
                let unknown = || serde::de::Error::custom("its format is not a number from 1");
                Err(Unreadable::Damaged(read.err().unwrap_or_else(unknown)))
            }
        },
    }
}

/// Returns JSON that ends with a line break.
pub(super) fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).expect("keys are strings, and numbers are finite");
    bytes.push(b'\n');
    bytes
}

/// A refresh that accepted drift: the tool's own state matches its resources again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refreshed {
    /// The write that merged it; [`UNMERGED`] before that.
    pub serial: u64,
    pub run: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// The version of the rules for inputs, and a digest of the settings behind them.
    pub rules: String,
    /// The digest of everything that counts.
    pub digest: String,
    /// Digests of its parts, only for explanations.
    #[serde(default)]
    pub parts: BTreeMap<String, String>,
    /// The remaining inputs without those of `ignore_changes`, if it excludes any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedInputs>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The inputs of a stack without those that its `ignore_changes` excludes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedInputs {
    /// The entries of the list, sorted.
    pub ignored: Vec<String>,
    pub digest: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A generation of a stack that is not the current one: another one has replaced it, or it has never been
/// finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeposedGeneration {
    pub generation: Generation,
    pub commit: Option<String>,
    /// The newest commit known to have the same inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Its backend, if known.
    pub backend: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Its inputs, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// The generations of other stacks that its environment used, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generations: BTreeMap<String, Generation>,
    /// Whether a user confirmed that no stack uses it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The serial that the document got.
    pub serial: u64,
    pub at: Timestamp,
    pub by: String,
    pub run: Option<String>,
    /// The action of a run, or a command of `orch state`.
    pub what: String,
    /// Why, in the user's words.
    pub reason: Option<String>,
    pub applied: usize,
    pub failed: usize,
    pub destroyed: usize,
    #[serde(default, skip_serializing_if = "WrittenStacks::is_empty")]
    pub stacks: WrittenStacks,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Write {
    /// Returns whether it may have removed the entries of stacks that exist.
    pub fn forgets(&self) -> bool {
        ["forget", "restore"].contains(&self.what.as_str())
    }
}

/// The stacks of a write, by path. All removed entries are named, because nothing else mentions them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WrittenStacks {
    /// The first of those that were applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<String>,
    /// The first of those that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destroyed: Vec<String>,
    /// Those whose entries a command has changed or added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Those whose entries a command has removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

impl WrittenStacks {
    fn is_empty(&self) -> bool {
        *self == WrittenStacks::default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbandonedSerials {
    /// The first.
    pub from: u64,
    pub to: u64,
}

impl AbandonedSerials {
    /// Returns the serials that a restored document abandoned, given a backup with a serial above them. Includes the
    /// serial of the document: another timeline may have had a document with it.
    pub(super) fn between(document: u64, backup: u64) -> Self {
        AbandonedSerials {
            from: document,
            to: backup - 1,
        }
    }

    fn contain(&self, serial: u64) -> bool {
        (self.from..=self.to).contains(&serial)
    }
}

pub(super) fn is_abandoned(abandoned: &[AbandonedSerials], serial: u64) -> bool {
    abandoned.iter().any(|serials| serials.contain(serial))
}
