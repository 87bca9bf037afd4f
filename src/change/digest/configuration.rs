//! The canonical texts of configuration files. A file that does not parse counts by its bytes.
//!
//! This module does not know which file belongs to which stack.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use rayon::prelude::*;

use super::present::PresentFiles;
use crate::change::canonical::{canonical_body, canonical_text, text};
use crate::git::{CommitId, GitError, Repository};
use crate::language::syntax::Body;
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::discover::Listing;

/// The texts of the configuration files that count.
pub(super) type Texts<'a> = HashMap<&'a ProjectPath, Cow<'a, str>>;

pub(super) fn texts<'a>(
    project: &'a Project,
    repository: &Repository,
    head: Option<&CommitId>,
    files: &'a PresentFiles,
) -> Result<Texts<'a>, GitError> {
    let sources = project.sources.files();
    let sources: HashMap<&ProjectPath, &str> =
        sources.map(|file| (&file.path, &*file.text)).collect();
    let mut texts = Texts::new();
    let mut converted: Vec<&ProjectPath> = Vec::new();
    for file in files.iter().filter(|file| file.is_plain()) {
        // The project does not read it, so it is no configuration.
        let Some(text) = sources.get(&file.path) else {
            continue;
        };
        if !file.is_committed || file.has_content(text.as_bytes()) {
            texts.insert(&file.path, Cow::Borrowed(text));
        } else {
            // Its changes are disabled, or git converts its line endings.
            converted.push(&file.path);
        }
    }
    if let Some(head) = head.filter(|_| !converted.is_empty()) {
        let paths: Vec<ProjectPath> = converted.iter().map(|&path| path.clone()).collect();
        for (path, bytes) in converted.into_iter().zip(repository.read(head, &paths)?) {
            if let Some(text) = text(bytes) {
                texts.insert(path, Cow::Owned(text));
            }
        }
    }
    Ok(texts)
}

pub(super) struct Configuration<'a> {
    texts: &'a Texts<'a>,
    /// The syntax trees that the loader has already parsed.
    bodies: HashMap<&'a ProjectPath, &'a Body>,
    /// The canonical text by file; missing for one that does not parse.
    said: HashMap<&'a ProjectPath, String>,
}

impl<'a> Configuration<'a> {
    /// Parses the files whose syntax tree the listing lacks, on the current thread pool.
    pub(super) fn new(texts: &'a Texts<'a>, listing: &'a Listing) -> Self {
        let known = listing.whole_files();
        // A committed text may differ from the one in the working tree.
        let is_read = |path: &ProjectPath| matches!(texts.get(path), Some(Cow::Borrowed(_)));
        let configuration = Configuration {
            texts,
            bodies: known.filter(|(path, _)| is_read(path)).collect(),
            said: HashMap::new(),
        };
        let nothing = BTreeSet::new();
        let files = texts.par_iter();
        let said = files
            .filter_map(|(path, text)| {
                let said = configuration.read(path, text, &nothing)?;
                Some((*path, said))
            })
            .collect();
        Configuration {
            said,
            ..configuration
        }
    }

    /// Returns the canonical text of a file without some variables of `run.env`; `None` if the file counts by
    /// its bytes.
    pub(super) fn of(
        &self,
        path: &ProjectPath,
        left_out: &BTreeSet<String>,
    ) -> Option<Cow<'_, str>> {
        let plain = self.said.get(path)?;
        let text = self.texts.get(path)?;
        if left_out.is_empty() || !text.contains("env") {
            return Some(Cow::Borrowed(plain));
        }
        self.read(path, text, left_out).map(Cow::Owned)
    }

    fn read(&self, path: &ProjectPath, text: &str, left_out: &BTreeSet<String>) -> Option<String> {
        match self.bodies.get(path) {
            Some(body) => Some(canonical_body(body, left_out)),
            None => canonical_text(text, left_out),
        }
    }
}
