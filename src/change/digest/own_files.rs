//! The files in the directories of stacks.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Digester;
use super::ignore_filter::IgnoreFilter;
use super::part::{PartDigest, PartHasher};
use super::present::PresentFile;
use crate::change::cause::InputLocation;
use crate::change::inputs::{links_in, owners};
use crate::path::ProjectPath;

/// The files of a directory, without those of stacks nested in it.
#[derive(Default)]
pub(super) struct OwnFiles<'a> {
    /// By path.
    pub(super) files: Vec<&'a PresentFile>,
    /// By path; their targets count.
    links: Vec<InputLocation>,
}

impl<'a> Digester<'a> {
    pub(super) fn own(&self, wanted: &HashSet<&ProjectPath>) -> HashMap<ProjectPath, OwnFiles<'a>> {
        let stacks = &self.project.stacks;
        let mut own: HashMap<ProjectPath, OwnFiles<'a>> = HashMap::new();
        // By directory of a file.
        let mut nearest: HashMap<ProjectPath, Option<ProjectPath>> = HashMap::new();
        for file in self.files.iter() {
            if file.is_repository() {
                let mut inside: Vec<&ProjectPath> = stacks
                    .at_or_below(&file.path)
                    .map(|stack| stacks[stack].path.directory())
                    .collect();
                inside.dedup();
                for directory in inside.into_iter().filter(|it| wanted.contains(it)) {
                    own.entry(directory.clone()).or_default().files.push(file);
                }
            }
            let Some(parent) = file.path.parent() else {
                continue;
            };
            let owner = nearest.entry(parent).or_insert_with_key(|parent| {
                let owner = owners(stacks, parent).first()?;
                let owner = stacks[owner].path.directory();
                wanted.contains(owner).then(|| owner.clone())
            });
            if let Some(owner) = owner {
                own.entry(owner.clone()).or_default().files.push(file);
            }
        }
        let links = self.tree.links();
        let listed = links.listed.iter();
        let listed = listed.flat_map(|&(directory, listed)| {
            let found: Vec<ProjectPath> = links_in(directory, listed).collect();
            found.into_iter().map(move |link| (directory, link))
        });
        let left_out = self.tree.listing().left_out().iter().flat_map(|directory| {
            let found = links.links_on_disk(directory).to_vec();
            found.into_iter().map(move |link| (directory, link))
        });
        let mut led: Vec<(&ProjectPath, ProjectPath)> = listed.chain(left_out).collect();
        led.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
        for (directory, link) in led {
            let owner = owners(stacks, directory).first();
            let owner = owner.map(|owner| stacks[owner].path.directory());
            if let Some(owner) = owner.filter(|owner| wanted.contains(owner)) {
                let links = &mut own.entry(owner.clone()).or_default().links;
                links.push(InputLocation::Path(link));
            }
        }
        own
    }

    /// Returns the digest of a directory's files that are not ignored.
    pub(super) fn own_part(
        &self,
        own: &OwnFiles<'a>,
        sieve: Option<&IgnoreFilter<'_>>,
    ) -> PartDigest {
        let mut hasher = PartHasher::default();
        let nothing = BTreeSet::new();
        let variables = sieve.map_or(&nothing, |sieve| sieve.list.variables());
        for file in &own.files {
            if !sieve.is_some_and(|sieve| sieve.drops(&file.path)) {
                self.places.add_canonical(file, variables, &mut hasher);
            }
        }
        for link in &own.links {
            hasher.part(&self.places.part(link, sieve));
        }
        hasher.finish()
    }
}
