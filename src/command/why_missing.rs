//! `orch why` for recorded stacks that this commit lacks.

use super::stack_arg::StackArg;
use crate::change::CountedStates;
use crate::context::Context;
use crate::error::Result;
use crate::path::StackPath;
use crate::plan::planner::{RecordedState, RemovalOutlook};
use crate::printable::printable;
use crate::report::MissingStory;

/// Recorded stacks that this commit lacks.
pub struct MissingExplanation {
    recorded: RecordedState,
    /// By key: what an apply would do.
    stacks: Vec<(String, RemovalOutlook)>,
}

impl MissingExplanation {
    /// Returns the story of each stack.
    pub fn stories(&self) -> Vec<MissingStory<'_>> {
        let RecordedState { document, statuses } = &self.recorded;
        let stories = self.stacks.iter().map(|(key, outlook)| MissingStory {
            path: key,
            entry: &document.stacks[key],
            stack: &statuses.missing[key],
            outlook: outlook.clone(),
        });
        stories.collect()
    }
}

impl Context {
    /// Explains the stacks that a path names, if they are recorded and this commit lacks them.
    pub(super) fn why_missing(&mut self, written: &str) -> Result<Option<MissingExplanation>> {
        let is_here = || {
            let found = self.project.stacks.written(&self.directory, written);
            found.is_ok_and(|found| found.len() > 0)
        };
        if self.project.settings.state.is_none() || is_here() {
            return Ok(None);
        }
        let directory = self.directory.clone();
        let arg = StackArg::new(&directory, written);
        if arg.parts().is_err() {
            return Ok(None);
        }
        let counted = CountedStates::default();
        let document = match self.read_and_digest(counted) {
            Ok(document) => document,
            Err(error) => {
                // The path may also be a typo.
                self.notices.note(&format!(
                    "the recorded stacks are unknown: {}",
                    error.message()
                ));
                return Ok(None);
            }
        };
        let is_meant = |path: &str| StackPath::parse(path).is_some_and(|path| arg.matches(&path));
        if !document.stacks.keys().any(|key| is_meant(key)) {
            let mut moved = self.state.relocated.iter();
            if let Some((now, before)) = moved.find(|(_, before)| is_meant(before)) {
                let block =
                    StackPath::parse(before).and_then(|path| self.project.moves.from(&path));
                let place = block.map(|block| self.project.sources.line(block.span));
                self.notices.note(&printable(&format!(
                    "`{before}` was moved to `{now}`, by {}",
                    place.unwrap_or_default()
                )));
            }
            return Ok(None);
        }
        let address = self.opened()?.backend.address();
        let statuses = self.statuses_in(&document, address, counted, false)?;
        let recorded = RecordedState { document, statuses };
        let missing = recorded.statuses.missing.keys();
        let missing =
            missing.filter(|key| is_meant(key) && recorded.document.stacks.contains_key(*key));
        let keys: Vec<String> = missing.cloned().collect();
        if keys.is_empty() {
            return Ok(None);
        }
        let named: Vec<&str> = keys.iter().map(String::as_str).collect();
        let outlook = self.removal_outlooks(&recorded, &named)?;
        self.report()?;
        Ok(Some(MissingExplanation {
            recorded,
            stacks: keys.into_iter().zip(outlook).collect(),
        }))
    }
}
