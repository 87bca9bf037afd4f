//! Plan files: `orch plan -o` writes them, `orch apply` and `orch show` read them.
//!
//! A file contains the plan, the facts that it depends on, and the tools' plans. It contains no
//! commands: these come from the working tree, so a file cannot inject any.

mod consistency;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Plan;
use super::archive::{self, Archive, ArchiveReadError};
use super::environment::SavedEnvironment;
use crate::driver::Outputs;
use crate::error::Error;
use crate::path::StackPath;
use crate::record::journal::Argument;
use crate::state::document::Inputs;

/// The format of `plan.json`.
const FORMAT: u32 = 2;

/// The first format whose applies record their progress in `.orch/applied`.
const WITH_PROGRESS: u32 = 2;

/// A plan and the facts that it depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedPlan {
    format: u32,
    /// The version of `orch` that wrote it.
    pub orch: String,
    pub plan: Plan,
    pub project: Option<SavedProject>,
    /// How many destroys may run without asking.
    pub allow_destroy: Option<usize>,
    pub extra: Vec<Argument>,
    /// The excluded stacks, by path: no follow-up may include them.
    #[serde(default)]
    pub excluded: Vec<StackPath>,
    #[serde(default)]
    pub policies: SavedPolicies,
    /// The marks of stacks in a run that was in progress or killed.
    #[serde(default)]
    pub unfinished: BTreeMap<StackPath, String>,
    /// The stacks with an entry that acts, decides or records, by path.
    pub stacks: Vec<SavedStack>,
    /// The environment that it was made in; `None` in files of earlier versions.
    #[serde(default)]
    pub environment: Option<SavedEnvironment>,
}

/// How an apply uses policies, unless its flags override it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPolicies {
    /// Whether no policies run.
    pub is_off: bool,
    /// The values of `--metadata`.
    pub metadata: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedProject {
    pub project: String,
    pub namespace: String,
    pub lineage: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedStack {
    pub stack: StackPath,
    pub driver: String,
    /// `None` outside of git.
    pub inputs: Option<Inputs>,
    /// A digest of its direct predecessors.
    pub order: String,
    /// Its relevant recorded facts; `None` if it is not recorded.
    pub record: Option<String>,
    /// A digest of its direct predecessors' recorded facts.
    pub records_before: Option<String>,
    pub backend: Option<String>,
    /// Its outputs before the apply, if known.
    pub outputs_before: Option<Outputs>,
    /// Its outputs if nothing is done, as far as known.
    pub outputs: Option<Outputs>,
    /// The digest of the changes in its driver's answer.
    pub changes: Option<String>,
    /// The index of its tool's plan in the file, if there is one.
    pub plan: Option<usize>,
    #[serde(default)]
    pub tool_version: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum SavedPlanError {
    #[error(transparent)]
    Archive(#[from] ArchiveReadError),
    #[error("`plan.json` in damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    #[error(
        "it has format {format}, written by orch {orch}; this orch reads formats up to {FORMAT}"
    )]
    Newer {
        format: u64,
        /// The version that wrote it.
        orch: String,
    },
    /// It contradicts itself, for this reason.
    #[error("`plan.json` in it contradicts itself: {0}")]
    Inconsistent(String),
}

impl SavedPlan {
    /// Makes a plan of this version; `stacks` are by path.
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

    /// Writes it with the tools' plans, in the order of their indices.
    pub fn write(&self, file: &Path, plans: &[PathBuf]) -> Result<(), Error> {
        let json = serde_json::to_vec(self).expect("a plan has only text, numbers and lists");
        archive::write(file, &json, plans)
    }

    /// Fails if the file is unreadable, is no plan that this version knows, or contradicts itself.
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

    /// Returns whether its progress is known: an earlier `orch` left it in journals only.
    pub fn has_progress(&self) -> bool {
        self.format >= WITH_PROGRESS
    }

    /// Returns the stacks that are recorded under other keys than their paths, each with its key.
    pub fn moves(&self) -> Vec<(StackPath, String)> {
        let entries = self.plan.entries.iter().filter(|it| it.blocked.is_none());
        entries
            .filter_map(|entry| Some((entry.stack.clone(), entry.previous_path.clone()?)))
            .collect()
    }

    pub fn stack(&self, stack: &StackPath) -> Option<&SavedStack> {
        let found = self.stacks.binary_search_by(|saved| saved.stack.cmp(stack));
        found.ok().map(|position| &self.stacks[position])
    }
}
