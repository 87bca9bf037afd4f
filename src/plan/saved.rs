//! A plan in a file: what `orch plan -o` writes, and `orch show` reads.
//!
//! The file has the plan, what it rests on, and the plans of the tools. It has no commands: these are the
//! tree's, so a file cannot bring any along.

mod consistency;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Plan;
use super::archive::{self, Archive, ReadError, WriteError};
use super::environment::SavedEnvironment;
use crate::driver::Outputs;
use crate::path::StackPath;
use crate::record::journal::Argument;
use crate::state::document::Inputs;

/// The format of what is in `plan.json`.
const FORMAT: u32 = 2;

/// The first format whose applies leave their progress in `.orch/applied`.
const WITH_PROGRESS: u32 = 2;

/// A plan, and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedPlan {
    format: u32,
    /// The version of `orch` that wrote it.
    pub orch: String,
    pub plan: Plan,
    /// The project whose state it rests on, if it keeps one.
    pub project: Option<SavedProject>,
    /// How many destroys may be carried out without asking.
    pub allow_destroy: Option<usize>,
    /// The words that every `plan` got.
    pub extra: Vec<Argument>,
    /// The stacks that were excluded when it was made, by path: nothing that follows may bring them in.
    #[serde(default)]
    pub excluded: Vec<StackPath>,
    /// How policies take part in its apply.
    #[serde(default)]
    pub policies: SavedPolicies,
    /// What is on record of the stacks that a run was working on, or that a killed run had left.
    #[serde(default)]
    pub unfinished: BTreeMap<StackPath, String>,
    /// What it rests on: each stack with an entry where anything is done, decided or put on record, by path.
    pub stacks: Vec<SavedStack>,
    /// The environment that it was made in; none in files of earlier versions.
    #[serde(default)]
    pub environment: Option<SavedEnvironment>,
}

/// How policies take part in an apply of a plan, unless its flags override it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPolicies {
    /// Whether none is evaluated.
    pub is_off: bool,
    /// The texts that they get.
    pub metadata: Vec<String>,
}

/// A project that keeps a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedProject {
    /// Its name.
    pub project: String,
    pub namespace: String,
    /// The lineage of the document.
    pub lineage: String,
}

/// What the entry of a stack rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedStack {
    pub stack: StackPath,
    pub driver: String,
    /// Its inputs; none outside of git.
    pub inputs: Option<Inputs>,
    /// A digest of what it runs right after.
    pub order: String,
    /// What is on record of it, as far as it matters; none if nothing is.
    pub record: Option<String>,
    /// A digest of what is on record of the stacks that it runs right after.
    pub records_before: Option<String>,
    /// Where its tool keeps its own state, if that is known.
    pub backend: Option<String>,
    /// Its outputs before anything is done, if they are known.
    pub outputs_before: Option<Outputs>,
    /// Its outputs if nothing is done, as far as they are known.
    pub outputs: Option<Outputs>,
    /// The digest of the changes that its driver has answered.
    pub changes: Option<String>,
    /// The plan of its tool among those of the file, if there is one.
    pub plan: Option<usize>,
    /// The version of its tool, if that is known.
    #[serde(default)]
    pub tool_version: Option<String>,
}

/// Why there is no saved plan.
#[derive(Debug, thiserror::Error)]
pub enum SavedPlanError {
    /// The file cannot be used.
    #[error(transparent)]
    Archive(#[from] ReadError),
    /// What is in it is not a plan.
    #[error("`plan.json` in it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    /// A later version wrote it.
    #[error("orch {orch} wrote it in format {format}, and this orch knows formats up to {FORMAT}")]
    Newer {
        format: u64,
        /// Who wrote it.
        orch: String,
    },
    /// It contradicts itself: how, in words.
    #[error("`plan.json` in it contradicts itself: {0}")]
    Inconsistent(String),
}

impl SavedPlan {
    /// Makes one of this version, of stacks by path.
    pub fn new(plan: Plan, stacks: Vec<SavedStack>) -> Self {
        SavedPlan {
            format: FORMAT,
            orch: env!("CARGO_PKG_VERSION").to_owned(),
            plan,
            project: None,
            allow_destroy: None,
            extra: Vec::new(),
            excluded: Vec::new(),
            policies: SavedPolicies::default(),
            unfinished: BTreeMap::new(),
            stacks,
            environment: None,
        }
    }

    /// Writes it with the plans of the tools, in the order in which the stacks count them.
    ///
    /// # Errors
    ///
    /// See [`archive::write`].
    pub fn write(&self, file: &Path, plans: &[PathBuf]) -> Result<(), WriteError> {
        let json = serde_json::to_vec(self).expect("a plan has only text, numbers and lists");
        archive::write(file, &json, plans)
    }

    /// Reads one, and the archive that it is in.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not a plan that this version knows, or contradicts itself.
    pub fn read(file: &Path) -> Result<(Self, Archive), SavedPlanError> {
        #[derive(Deserialize)]
        struct Head {
            format: u64,
            #[serde(default)]
            orch: String,
        }
        let archive = Archive::open(file)?;
        let json = archive.plan_json()?;
        let Head { format, orch } = serde_json::from_slice(&json)?;
        if format > u64::from(FORMAT) {
            return Err(SavedPlanError::Newer { format, orch });
        }
        let saved: SavedPlan = serde_json::from_slice(&json)?;
        consistency::check(&saved, archive.plans()).map_err(SavedPlanError::Inconsistent)?;
        Ok((saved, archive))
    }

    /// Returns whether it is known what was applied of it: applies of an earlier `orch` left that in journals only.
    pub fn has_progress(&self) -> bool {
        self.format >= WITH_PROGRESS
    }

    /// Returns the stacks that are on record under other keys than their paths, each with the key.
    pub fn moves(&self) -> Vec<(StackPath, String)> {
        let entries = self.plan.entries.iter().filter(|it| it.blocked.is_none());
        entries
            .filter_map(|entry| Some((entry.stack.clone(), entry.previous_path.clone()?)))
            .collect()
    }

    /// Returns what the entry of a stack rests on.
    pub fn stack(&self, stack: &StackPath) -> Option<&SavedStack> {
        let found = self.stacks.binary_search_by(|saved| saved.stack.cmp(stack));
        found.ok().map(|position| &self.stacks[position])
    }
}
