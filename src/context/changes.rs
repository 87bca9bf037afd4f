//! Finds the base of `--changed`, and the files and stacks that differ from it.

use std::sync::Arc;

use super::Context;
use crate::change::base::{self, Base, BaseQuery, BaseUnknown, Remedy, ci};
use crate::change::{self, Changes, CountedStates, SwitchedOff};
use crate::error::{Error, ErrorContext as _, Result};
use crate::project::Problems;
use crate::project::host::host_variable;

#[derive(Clone)]
pub struct ChangeQuery {
    pub base: Option<String>,
    pub fetch: bool,
    pub untracked: Option<bool>,
    pub uncommitted: Option<bool>,
}

impl ChangeQuery {
    pub fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }
}

/// Returns the kind of changes that is switched off: by the flag, else by the setting.
fn switched_off(query: Option<bool>, setting: bool) -> Option<SwitchedOff> {
    match query {
        Some(is_on) => (!is_on).then_some(SwitchedOff::Flag),
        None => (!setting).then_some(SwitchedOff::Configuration),
    }
}

impl Context {
    /// Returns which kinds of uncommitted changes count.
    pub fn counted(&self, query: Option<&ChangeQuery>) -> CountedStates {
        let settings = &self.workspace.project.settings;
        let asked = |of: fn(&ChangeQuery) -> Option<bool>| query.and_then(of);
        CountedStates {
            untracked: switched_off(asked(|query| query.untracked), settings.untracked),
            uncommitted: switched_off(asked(|query| query.uncommitted), settings.uncommitted),
        }
    }

    /// Finds the changes since a base, and adds warnings to `problems`.
    pub fn find_changes(
        &mut self,
        base: Base,
        query: &ChangeQuery,
        problems: &mut Problems,
    ) -> Result<Changes> {
        let counted = self.counted(Some(query));
        // If uncommitted changes do not count, git's status is not needed.
        let is_needed = counted.untracked.is_none() || counted.uncommitted.is_none();
        if let Err(error) = &self.known_git()?.status
            && is_needed
        {
            let what = "failed to read the status of the working tree";
            return Err(Error::described(what, Arc::clone(error)));
        }
        let changes =
            self.with_present(counted, |present| change::find(present, base, problems))?;
        changes.context("failed to find changes")
    }

    /// Finds the base. Fetches missing commits if the flags allow that.
    pub fn base(&mut self, query: &ChangeQuery) -> Result<Base, BaseUnknown> {
        let git = self.git.read(&self.workspace.project.root)?;
        let ci = match query.base {
            Some(_) => None,
            None => ci::context(host_variable, |file| {
                std::fs::read_to_string(file).map_err(|error| error.to_string())
            })?,
        };
        let base_query = BaseQuery {
            revision: query.base.clone(),
            ci,
            ..BaseQuery::of(&self.workspace.project.settings)
        };
        let mut deepened = 0;
        let mut previous = None;
        loop {
            let unknown = match base::find(&git.repository, &base_query) {
                Ok(base) => return Ok(base),
                Err(unknown) => unknown,
            };
            let BaseUnknown::Refused { problem, remedy } = unknown else {
                return Err(unknown);
            };
            let Some(arguments) = remedy.fetch(deepened).filter(|_| query.fetch) else {
                return Err(BaseUnknown::Refused { problem, remedy });
            };
            // A fetch that did not help is not repeated.
            if previous.as_ref() == Some(&arguments) {
                let advice = "fetching did not help: name another base with `--base REV`";
                let remedy = Remedy::Advice(advice.to_owned());
                return Err(BaseUnknown::Refused { problem, remedy });
            }
            self.notices
                .note(&format!("running `{}`", base::fetch_command(&arguments)));
            if remedy.is_deepening() {
                deepened += 1;
            }
            git.repository.fetch(&arguments)?;
            previous = Some(arguments);
        }
    }
}
