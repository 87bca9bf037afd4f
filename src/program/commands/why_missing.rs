//! `orch why` of a stack that is on record and not here

use std::io::Write as _;

use orch::change::{Counted, MissingStack};
use orch::path::{KeyFilter, StackPath};
use orch::plan::planner::OnRecord;
use orch::printable::printable;
use orch::report::{MissingStory, write_missing, write_missing_json};
use orch::state::document::Entry;

use super::Loaded;
use super::format::Format;
use crate::program::console;
use crate::program::error::Result;

impl Loaded {
    /// Explains the stacks that the path names if they are in the state and not here. Returns whether there are such
    /// stacks, as far as the state can be read.
    pub(super) fn why_missing(&mut self, written: &str, format: Format) -> Result<bool> {
        let is_here = || {
            let found = self.project.stacks.written(&self.directory, written);
            found.is_ok_and(|found| found.len() > 0)
        };
        if self.project.settings.state.is_none() || is_here() {
            return Ok(false);
        }
        let (directory, key) = KeyFilter::split(written);
        let Ok(directory) = self.directory.resolve(directory) else {
            return Ok(false);
        };
        let counted = Counted::default();
        let document = match self.read_and_digest(counted) {
            Ok(document) => document,
            Err(error) => {
                // The path may just be wrong.
                console::note(&format!(
                    "what is on record is unknown: {}",
                    error.message()
                ));
                return Ok(false);
            }
        };
        let is_meant = |path: &str| {
            StackPath::parse(path).is_some_and(|path| {
                let key = key.as_ref();
                *path.directory() == directory && key.is_none_or(|it| it.matches(path.key()))
            })
        };
        if !document.stacks.keys().any(|key| is_meant(key)) {
            let mut moved = self.relocated.iter();
            if let Some((now, before)) = moved.find(|(_, before)| is_meant(before)) {
                let block = StackPath::parse(before);
                let block = block.and_then(|path| self.project.moves.from(&path));
                let place = block.map(|block| self.project.sources.line(block.span));
                console::note(&printable(&format!(
                    "`{before}` is on record and was moved to `{now}`, as {} says",
                    place.unwrap_or_default()
                )));
            }
            return Ok(false);
        }
        let address = self.opened()?.backend.address();
        let standings = self.standings_in(&document, address, counted, false)?;
        let recorded = OnRecord {
            document,
            standings,
        };
        let missing = recorded.standings.missing.iter();
        let missing = missing.filter(|(key, _)| is_meant(key));
        let missing = missing.filter_map(|(key, stack)| {
            let entry = recorded.document.stacks.get(key)?;
            Some((key.as_str(), entry, stack))
        });
        let missing: Vec<(&str, &Entry, &MissingStack)> = missing.collect();
        if missing.is_empty() {
            return Ok(false);
        }
        let keys: Vec<&str> = missing.iter().map(|(key, ..)| *key).collect();
        let foreseen = self.foreseen(&recorded, &keys)?;
        let stories = missing.into_iter().zip(foreseen);
        let stories = stories.map(|((path, entry, stack), foreseen)| MissingStory {
            path,
            entry,
            stack,
            foreseen,
        });
        let stories: Vec<MissingStory<'_>> = stories.collect();
        self.report()?;
        let mut out = console::stdout();
        match format {
            Format::Text => write_missing(&mut out, &stories)?,
            Format::Json => {
                write_missing_json(&mut out, &self.project, &self.problems, &stories)?;
            }
        }
        out.flush()?;
        Ok(true)
    }
}
