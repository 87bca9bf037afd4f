//! The digest of what a stack depends on differs between two states if and only if the stack has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use orch::change::{CurrentProject, UncommittedChanges, digests, stack_statuses};
use orch::git;
use orch::project::{Problems, Project};
use orch::state::document::Document;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use super::asked::{Asked, Expected};
use super::generate::{Scene, WantedBase, any_scene};
use super::rules::Tree;
use super::{ON, config, repository};

/// The digests by stack path.
type Digests = BTreeMap<String, Digest>;

#[derive(Debug, PartialEq)]
struct Digest {
    rules: String,
    text: String,
    is_dirty: bool,
}

fn digests_at(root: &Path) -> Digests {
    let mut problems = Problems::default();
    let (project, listing) = Project::load_with_listing(root, &mut problems).unwrap();
    let repository = git::Repository::open(root).unwrap();
    let status = repository.status().unwrap();
    let found = digests(&project, &listing, &repository, &status, &mut problems).unwrap();
    let stacks = found.stacks.into_iter().map(|(stack, input)| {
        let path = project.stacks[stack].path.to_string();
        let digest = Digest {
            rules: input.inputs.rules,
            text: input.inputs.digest,
            is_dirty: input.is_dirty,
        };
        (path, digest)
    });
    stacks.collect()
}

/// The stacks that are not as they were applied, if these were applied at a commit.
fn pending(root: &Path, was: &Digests, commit: &str) -> BTreeSet<String> {
    let entry = |(stack, was): (&String, &Digest)| {
        let entry = json!({ "applied": {
            "serial": 1, "at": "2026-01-02T03:04:05Z", "commit": commit, "dirty": was.is_dirty,
            "inputs": { "rules": was.rules, "digest": was.text },
        } });
        (stack.clone(), entry)
    };
    let entries: serde_json::Map<String, Value> = was.iter().map(entry).collect();
    let document = json!({
        "format": 1, "project": "p", "namespace": "n", "root": "", "lineage": "l", "serial": 1,
        "lock": null, "stacks": entries,
    });
    let document: Document = serde_json::from_value(document).unwrap();
    let mut problems = Problems::default();
    let (project, listing) = Project::load_with_listing(root, &mut problems).unwrap();
    let repository = git::Repository::open(root).unwrap();
    let uncommitted = UncommittedChanges {
        status: repository.status().unwrap(),
        ..UncommittedChanges::default()
    };
    let status = &uncommitted.status;
    let now = digests(&project, &listing, &repository, status, &mut problems).unwrap();
    let present = CurrentProject {
        project: &project,
        listing: &listing,
        repository: &repository,
        uncommitted: &uncommitted,
        host: &[],
    };
    let found = stack_statuses(present, &now, &document, String::new(), false).unwrap();
    let path = |stack| project.stacks[stack].path.to_string();
    found.changed().map(path).collect()
}

fn check(scene: &Scene, n: usize) -> Result<(), TestCaseError> {
    let repository = repository(scene);
    if Tree(&repository.working).inputs().is_err() {
        return Ok(());
    }
    // A checkout of the base lacks what git ignores, which modules may lie in.
    if repository
        .working
        .keys()
        .any(|file| file.ends_with(".gitignore"))
    {
        return Ok(());
    }
    let base = n % repository.commits.len();
    let asked = Asked::new(&repository, WantedBase::Commit(base), ON);
    let answer = asked.list(&repository);
    prop_assert_eq!(answer.status, 0);
    let before = repository.root.parent().unwrap().join("before");
    let commit = &repository.commits[base].id;
    let place = before.to_str().unwrap();
    repository.git(&["worktree", "add", "-q", "--detach", place, commit]);
    let was = digests_at(&before.join(scene.setting.directory));
    let now = digests_at(&repository.root);
    let story = || format!("{answer:#?}\n{was:#?}\n{now:#?}\n{}", repository.story());
    let changed = answer.paths();
    let pending = pending(&repository.root, &was, commit);
    let expected = Expected::new(&repository, base, ON);
    let tree = Tree(&repository.working);
    // What such a file names counts in the digest, whether or not that has changed.
    let ignores_any = expected.files.keys().any(|file| tree.is_ignored(file));
    // Git tells what commits have done to a file, even if it is on disk again as the base has it.
    let (then, today) = (&repository.commits[base].files, &repository.working);
    let comes_back = expected
        .files
        .keys()
        .any(|file| then.get(file) == today.get(file));
    for (stack, here) in &now {
        let Some(earlier) = was.get(stack) else {
            prop_assert!(pending.contains(stack), "{stack} is new\n{}", story());
            continue;
        };
        let is_changed = changed.contains(stack);
        if here.rules != earlier.rules {
            // Then the commit decides.
            prop_assert_eq!(
                pending.contains(stack),
                is_changed,
                "{}\n{}",
                stack,
                story()
            );
            continue;
        }
        let differs = here.text != earlier.text;
        prop_assert_eq!(pending.contains(stack), differs, "{}", stack);
        // What a new stack takes over, or a removed one leaves, no longer belongs to the same stack.
        let below = format!("{stack}/");
        let nested = |of: &Digests| -> Vec<String> {
            let paths = of.keys();
            paths
                .filter(|path| path.starts_with(&below))
                .cloned()
                .collect()
        };
        let has_other_nested = nested(&was) != nested(&now);
        prop_assert!(
            !is_changed || differs || comes_back || has_other_nested,
            "{stack} has changed\n{}",
            story()
        );
        prop_assert!(
            is_changed || !differs || ignores_any || has_other_nested,
            "{stack} has not\n{}",
            story()
        );
    }
    Ok(())
}

proptest! {
    // The same scenes each time: rare ones differ rightly in ways that are not told apart yet.
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..config(6) })]

    #[test]
    fn a_digest_differs_if_and_only_if_the_stack_has_changed(scene in any_scene(), n in any::<prop::sample::Index>()) {
        check(&scene, n.index(1000))?;
    }
}
