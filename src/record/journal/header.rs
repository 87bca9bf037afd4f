//! The first line of a journal: the purpose and the circumstances of a run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::change::{Baseline, ChangeBase};
use crate::project::config::RecordKind;

/// The format of the journals that are written here. Within a number, things are only ever added.
pub const FORMAT: u32 = 1;

/// The purpose of a run that plans unapproved follow-ups of an apply. It belongs to the apply, which is still the
/// last run.
pub const PLAN_FOLLOW_UPS: &str = "plan_followups";

/// The purpose and the circumstances of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`] at the time.
    pub format: u32,
    /// The run id, which is also the name of its folder.
    pub run: String,
    pub orch: String,
    pub at: Timestamp,
    pub host: String,
    pub process: u32,
    /// The arguments of `orch`, including the flags that select stacks.
    pub arguments: Vec<Argument>,
    /// Where that was typed, as a path of the project.
    pub directory: String,
    pub resumes: Option<String>,
    pub command: Vec<Argument>,
    /// The purpose of the run, if it is not only its command: `plan`, `apply` or [`PLAN_FOLLOW_UPS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The plan that it applies, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The labels of the script, if it runs one: `command` is then the one that runs it. The commands of each stack
    /// are not recorded, since they may be secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub script: Vec<Argument>,
    /// Whether they are templates. Their values in each stack are not recorded, since they may be
    /// secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub eval: bool,
    /// The stacks, in the sequence of a serial run: reversed for a reverse run.
    pub order: Vec<String>,
    /// The constraints, in the direction of the run: pairs of an earlier and a later stack, each by its position in
    /// `order`. Positions beyond its end are intermediate nodes that run nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<(usize, usize)>,
    /// Those of them that this run leaves out, because only failed stacks were wanted.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// The stack of each turn that the run begins with, by number, if a stack has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<String>,
    pub direction: Word<Direction>,
    pub settings: SettingsRecord,
    /// The base of changes, if only changed stacks were selected.
    pub base: Option<BaseRecord>,
    /// The commit of HEAD, if there is one.
    pub head: Option<String>,
    /// The files that differed from HEAD or were untracked. Absent in journals of earlier versions, and if git
    /// failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<Vec<UncommittedFile>>,
    /// The settings of the policies that follow the run, if any do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<PoliciesRecord>,
    /// The digest of the project's graph.
    pub graph: String,
    /// The names of the variables that commands get, sorted. Values may be secret.
    pub environment: Vec<String>,
    /// The run of the work order that it is a job of or whose follow-ups it runs, or itself if it is that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
}

impl Header {
    /// Returns whether it is the run of a work order, made of the results of its jobs.
    pub fn is_of_work_order(&self) -> bool {
        self.part_of.as_ref() == Some(&self.run)
    }

    /// Returns whether it is a job of a work order; a run of follow-ups resumes another run.
    pub fn is_job(&self) -> bool {
        self.part_of.is_some() && self.resumes.is_none() && !self.is_of_work_order()
    }
}

/// How policies see the turns of a run: they deploy, accept drift, or are tasks.
pub const TRACKED: &str = "tracked";
pub const DRIFT: &str = "drift";
pub const TASK: &str = "task";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoliciesRecord {
    /// The first run of the workflow: this one, unless it resumes another one.
    pub workflow: String,
    /// How policies see the turns: [`TRACKED`], [`DRIFT`] or [`TASK`].
    #[serde(rename = "as")]
    pub kind: String,
    /// The command of follow-ups, if it is not the command of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followup: Option<String>,
    /// The value of `--metadata`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata: Vec<String>,
    /// The stacks that never follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
    pub digests: BTreeMap<String, String>,
    /// The same as [`Header::turns`], for journals of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<String>,
    /// Who requested the turns of the header, if not the run itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedRecord>,
}

/// An initial turn of a run that replaces one of an earlier run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRecord {
    pub stack: String,
    /// Who requested it, if known: `policy/retry`, or a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether it is the turn of another run that did not end; else it is one that is run again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows: bool,
}

/// A word of a journal, which a later `orch` may have written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Word<T> {
    Known(T),
    Other(String),
}

impl<T: Copy> Word<T> {
    /// Returns its meaning. The error is the word, if only a later `orch` knows it.
    pub fn known(&self) -> Result<T, &str> {
        match self {
            Word::Known(meaning) => Ok(*meaning),
            Word::Other(word) => Err(word),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Along the constraints.
    Forward,
    /// Against them: the same sequence from its end.
    Reverse,
}

/// What a failure does to the rest of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnError {
    /// Nothing new starts.
    Stop,
    /// All its transitive dependents are skipped; the rest runs.
    SkipDependents,
    /// Everything else runs.
    Continue,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncommittedFile {
    pub path: String,
    /// The id of the git blob with its content: zeros if the file was removed; `None` if it is not a file or was not
    /// read.
    pub blob: Option<String>,
    /// Whether it is executable; `None` if it is not a regular file, was not looked at, or an earlier
    /// `orch` wrote the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SettingsRecord {
    pub on_error: Word<OnError>,
    pub jobs: usize,
    #[serde(default)]
    pub limits: Vec<TagLimitRecord>,
    pub timeout_ms: Option<u64>,
    pub run_timeout_ms: Option<u64>,
    /// How long a command has to end after its interrupt.
    pub grace_ms: Option<u64>,
    /// How often a failed command is tried again.
    pub retries: Option<u32>,
    /// Retry after these exit statuses.
    #[serde(default)]
    pub retry_on_exit: Vec<i32>,
    /// Retry after output that matches these patterns.
    #[serde(default)]
    pub retry_on_output: Vec<String>,
    /// The time before the second attempt.
    pub retry_backoff_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_exit_codes: Option<Vec<i32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes_exit_codes: Option<Vec<i32>>,
    /// Whether the exit status of the run shows whether there are changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detailed_exit_code: bool,
    /// Whether the state records the run, if a flag says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<Word<RecordKind>>,
    /// Whether inputs become variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
}

/// How a run shares outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    On,
    /// Where there are no outputs, mocks take their place.
    WithMocks,
}

/// At most this many stacks with a tag run at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TagLimitRecord {
    pub tag: String,
    pub at_once: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BaseRecord {
    /// The commit; none if the base is the applied state.
    pub commit: Option<String>,
    pub reason: String,
}

impl BaseRecord {
    pub fn of(since: &Baseline) -> Self {
        match &since.base {
            ChangeBase::Commit(base) => BaseRecord {
                commit: Some(base.commit.to_string()),
                reason: base.reason.clone(),
            },
            ChangeBase::Applied(base) => BaseRecord {
                commit: None,
                reason: base.to_string(),
            },
        }
    }
}

/// A word of a command line: a string, or if it is not Unicode, the numbers that it consists of
/// (bytes on Unix).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument(pub OsString);

/// Returns words as a journal has them.
pub fn arguments<'w>(words: impl IntoIterator<Item = &'w OsString>) -> Vec<Argument> {
    words.into_iter().cloned().map(Argument).collect()
}

impl Serialize for Argument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => units(&self.0).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            Units(Vec<u16>),
        }
        Ok(Argument(match Written::deserialize(deserializer)? {
            Written::Text(text) => text.into(),
            Written::Units(units) => {
                from_units(units).ok_or_else(|| D::Error::custom("not the bytes of an argument"))?
            }
        }))
    }
}

#[cfg(unix)]
fn units(word: &OsStr) -> Vec<u16> {
    use std::os::unix::ffi::OsStrExt as _;
    word.as_bytes().iter().copied().map(u16::from).collect()
}

#[cfg(unix)]
fn from_units(units: Vec<u16>) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt as _;
    let bytes: Result<Vec<u8>, _> = units.into_iter().map(u8::try_from).collect();
    bytes.ok().map(OsString::from_vec)
}

#[cfg(windows)]
fn units(word: &OsStr) -> Vec<u16> {
    use std::os::windows::ffi::OsStrExt as _;
    word.encode_wide().collect()
}

#[cfg(windows)]
fn from_units(units: Vec<u16>) -> Option<OsString> {
    use std::os::windows::ffi::OsStringExt as _;
    Some(OsString::from_wide(&units))
}
