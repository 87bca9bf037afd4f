//! Whether the default branch, as this clone knows it, still has stacks that HEAD removed: HEAD may be an
//! unmerged branch, or the job may be late.

use std::collections::{BTreeMap, HashMap};

use super::at_commit::{CommitContent, Remainder};
use super::proof::{NoProof, ProvenRemoval, RemovedBy};
use super::range::holdings;
use super::similarity::{self, RemovedEntry, Similarity, destinations};
use crate::change::base::{self, BaseQuery, BaseUnknown, DefaultTip, Remedy};
use crate::change::error::ChangeError;
use crate::change::present::CurrentProject;
use crate::git::{CommitId, CommitTree, Holds, Repository};
use crate::path::{ProjectPath, StackPath};
use crate::project::{Problems, Project};
use crate::state::document::{Document, Entry};

pub(super) struct RemovedFromHead<'e> {
    pub(super) key: &'e str,
    pub(super) entry: &'e Entry,
    /// Its path, and the path to which a `moved` block of HEAD moves it.
    pub(super) places: Vec<StackPath>,
    pub(super) removal: ProvenRemoval,
}

/// The default branch, if HEAD is not at its tip.
struct DefaultBranch<'p> {
    present: CurrentProject<'p>,
    tip: DefaultTip,
    /// Whether HEAD is an ancestor of the branch.
    is_behind: bool,
}

/// Returns why removed stacks are not removed on the default branch, by key.
pub(super) fn still_there<'e>(
    present: CurrentProject<'_>,
    head: &CommitId,
    document: &Document,
    removed: &[RemovedFromHead<'e>],
) -> Result<Vec<(&'e str, NoProof)>, ChangeError> {
    if removed.is_empty() {
        return Ok(Vec::new());
    }
    let repository = present.repository;
    let query = BaseQuery::of(&present.project.settings);
    let all = |why: NoProof| {
        let keys = removed.iter().map(|stack| stack.key);
        Ok(keys.map(|key| (key, why.clone())).collect())
    };
    let tip = match base::default_tip(repository, &query) {
        Ok(tip) if tip.commit != *head => tip,
        Ok(_) => return Ok(Vec::new()),
        Err(BaseUnknown::Git(error)) => return Err(error.into()),
        Err(BaseUnknown::Refused { problem, remedy }) => {
            return all(NoProof::NoDefaultBranch { problem, remedy });
        }
        Err(BaseUnknown::Unclear(problem)) => {
            let remedy = Remedy::Advice("set `config.git.default_branch`".to_owned());
            let problem = problem.to_string();
            return all(NoProof::NoDefaultBranch { problem, remedy });
        }
    };
    let own = Repository::open(&present.project.root)?;
    let tree = CommitTree::new(own, tip.commit.clone());
    let project = Project::load_tree(&present.project.root, &tree, &mut Problems::default())?;
    if let Some(broken) = project.broken.first() {
        return all(NoProof::Broken(Some(tip.commit), broken.clone()));
    }
    let is_behind = repository.is_ancestor(head, &tip.commit)?;
    let branch = DefaultBranch {
        present,
        tip,
        is_behind,
    };
    let mut found = branch.by_place(removed)?;
    found.extend(branch.moved(&project, document, removed)?);
    Ok(found)
}

impl DefaultBranch<'_> {
    fn has(&self, place: ProjectPath) -> NoProof {
        NoProof::OnDefaultBranch {
            tip: self.tip.clone(),
            place,
            is_behind: self.is_behind,
        }
    }

    /// Returns the stacks of which the branch still has files at their paths.
    fn by_place<'e>(
        &self,
        removed: &[RemovedFromHead<'e>],
    ) -> Result<Vec<(&'e str, NoProof)>, ChangeError> {
        let places = removed.iter().flat_map(|stack| &stack.places);
        let mut directories: Vec<ProjectPath> = places.map(|it| it.directory().clone()).collect();
        directories.sort_unstable();
        directories.dedup();
        let commit = std::slice::from_ref(&self.tip.commit);
        let holds = holdings(self.present.repository, commit, &directories)?;
        let holds: HashMap<&ProjectPath, Holds> =
            directories.iter().zip(holds[0].iter().copied()).collect();
        let there = holds
            .iter()
            .filter(|(_, it)| **it != Holds::NoDirectory)
            .map(|(directory, _)| (*directory).clone())
            .collect();
        let at_tip = CommitContent::read(self.present, &self.tip.commit, there)?;
        let mut found = Vec::new();
        for stack in removed {
            for path in &stack.places {
                let holds = holds[path.directory()];
                if holds == Holds::Nothing && stack.removal.by.leaving().is_some() {
                    // The files may belong to another stack now.
                    continue;
                }
                let why = match at_tip.rest(path, holds) {
                    Ok(_) => continue,
                    Err(
                        Remainder::Stack(file)
                        | Remainder::Other(
                            NoProof::CodeStillThere(file) | NoProof::NoLongerForEach(file),
                        ),
                    ) => self.has(file),
                    Err(Remainder::Other(why)) => why,
                };
                found.push((stack.key, why));
            }
        }
        Ok(found)
    }

    /// Returns the stacks that the branch has at another path: by id, by a `moved` block, or by similar
    /// content.
    fn moved<'e>(
        &self,
        project: &Project,
        document: &Document,
        removed: &[RemovedFromHead<'e>],
    ) -> Result<Vec<(&'e str, NoProof)>, ChangeError> {
        let stacks = project.stacks.iter().map(|(_, stack)| stack);
        let by_id: HashMap<String, &ProjectPath> = stacks
            .filter_map(|stack| {
                let id = stack.id.as_ref()?.value.to_ascii_lowercase();
                Some((id, stack.path.directory()))
            })
            .collect();
        let paths = removed.iter().map(|stack| &stack.places[0]);
        let moves = project.moves.destinations(paths);
        let mut found = Vec::new();
        for stack in removed {
            let id = stack.entry.id.as_ref().map(|id| id.to_ascii_lowercase());
            let by_id = id.and_then(|id| by_id.get(&id).copied());
            let by_block = moves
                .get(&stack.places[0])
                .filter(|to| project.stacks.find(to).is_some());
            if let Some(directory) = by_id.or(by_block.map(StackPath::directory)) {
                found.push((stack.key, self.has(directory.clone())));
            }
        }
        let destinations = destinations(&project.stacks, document);
        let path = |key: &str| {
            let stack = removed.iter().find(|stack| stack.key == key);
            stack.map(|stack| stack.places[0].clone())
        };
        for (seen, stacks) in by_applied_commit(removed) {
            let commits = (seen, &self.tip.commit);
            let looks =
                similarity::moved(self.present.repository, commits, &stacks, &destinations)?;
            found.extend(looks.into_iter().filter_map(|(key, likeness)| {
                let why = match likeness {
                    Similarity::Moved(to) => self.has(to),
                    Similarity::Unknown => NoProof::TooManyFiles(path(key)?),
                };
                Some((key, why))
            }));
        }
        Ok(found)
    }
}

/// Returns the stacks that a commit has deleted, by the commit that was applied.
fn by_applied_commit<'r, 'e>(
    removed: &'r [RemovedFromHead<'e>],
) -> BTreeMap<&'r CommitId, Vec<RemovedEntry<'e>>> {
    let mut by_seen: BTreeMap<&CommitId, Vec<RemovedEntry<'e>>> = BTreeMap::new();
    for stack in removed {
        if let (Some(seen), RemovedBy::Commit(_)) = (&stack.removal.seen, &stack.removal.by) {
            let directory = stack.places[0].directory().clone();
            let of_seen = by_seen.entry(seen).or_default();
            of_seen.push((stack.key, directory, stack.entry));
        }
    }
    by_seen
}
