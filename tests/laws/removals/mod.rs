//! Plans that remove stacks, against a model that decides by complete snapshots of every commit: the entries
//! as a whole, and the order of what is done. Each scene is a repository with a state, in which `orch plan` is
//! asked for several things. Few cases, since each starts many processes.

mod model;
mod order;
mod repository;
mod scene;

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};

use self::model::{Ambiguous, Answer, Expected, Model};
use self::repository::{Plan, PlanEntry, Repository};
use self::scene::{Dice, PATHS, Scene};

/// How many plans each scene sees.
const N_PLANS: usize = 5;

/// How many numbers decide about a scene and its plans.
const N_NUMBERS: usize = 600;

/// In how many scenes everything of [`COMES_ABOUT`] does.
const ENOUGH: u32 = 2000;

/// What has to come about, or the scenes say little: how stacks that are gone from the tree are told of, or how
/// that begins.
const COMES_ABOUT: [&str; 31] = [
    "delete",
    "forget",
    "HEAD is behind … it lacks the applied commit …",
    "HEAD lacks the applied commit … which is on no branch",
    "HEAD lacks the applied commit … which is on …",
    "HEAD lacks the applied commit … which is only on the local branch",
    "its backend differs from the recorded one",
    "commit … deleted it, but … has it again, and no commit deletes it after that",
    "the applied commit … does not have it",
    "the applied commit … is not in this clone",
    "it looks moved to …",
    "it was applied with inputs that were not committed",
    "its code is still there: HEAD has …",
    "its deletion is not committed",
    "its driver … has no …",
    "its driver … has no … and the … command of … which is recorded, is unknown: ",
    "its last apply was interrupted",
    "its last apply, of commit … failed",
    "no apply of it succeeded, so the code that created it is unknown",
    "no commit since … deletes it (a merge may have lost it)",
    "the configuration of its commit is wrong: ",
    "its … command also destroys … and its driver … has no …",
    "its … command also destroys … which is recorded, and its driver … has no …",
    "its … command also destroys … which … has, and its driver … has no …",
    "it has the same recorded backend as …",
    "it has the same backend as … which is in the project",
    "this version of orch cannot check whether its commit has the applied inputs",
    "… of commit … cannot be parsed",
    "… has it at commit … …",
    "… may have the same backend",
    "… runs after it, and is kept",
];

/// Returns a reason without what differs from scene to scene.
fn kind(why: &str) -> String {
    let differs = |word: &str| {
        word.contains(['/', '`']) || word.chars().any(|letter| letter.is_ascii_digit())
    };
    let words = why
        .split(' ')
        .map(|word| if differs(word) { "…" } else { word });
    words.collect::<Vec<&str>>().join(" ")
}

fn is_expected(found: &PlanEntry, expected: &Expected) -> bool {
    let is_blocked = match (&found.blocked, &expected.blocked) {
        (Some(found), Some(texts)) => texts.iter().any(|text| found.starts_with(text)),
        (None, None) => true,
        _ => false,
    };
    let is_removed = match (&found.removed, &expected.removed) {
        (Some(found), Some(by)) => by.contains(found),
        (None, None) => true,
        _ => false,
    };
    is_blocked
        && is_removed
        && found.action == expected.action
        && found.previous == expected.previous
}

fn compare(plan: &Plan, answer: &Answer) -> Result<(), String> {
    let found: Vec<&usize> = plan.entries.keys().collect();
    let expected: Vec<&usize> = answer.entries.keys().collect();
    if found != expected {
        return Err(format!("entries of {found:?}, expected {expected:?}"));
    }
    for (path, expected) in &answer.entries {
        let found = &plan.entries[path];
        if !is_expected(found, expected) {
            let path = PATHS[*path];
            return Err(format!("{path}: {found:?}\nexpected {expected:?}"));
        }
    }
    let (found, expected) = (plan.unplanned, answer.unplanned);
    if found != expected {
        return Err(format!("not planned: {found:?}, expected {expected:?}"));
    }
    let (found, expected) = (
        &plan.operations,
        answer.order.operations(&plan.not_kept_to)?,
    );
    if *found != expected {
        return Err(format!("operations {found:?}, expected {expected:?}"));
    }
    Ok(())
}

/// Compares all that is said of a scene with the model. Counts how stacks are told of that are gone.
fn check(numbers: &[u32], counts: &mut BTreeMap<String, usize>) -> Result<(), String> {
    let mut dice = Dice(numbers.iter());
    let scene = Scene::new(&mut dice);
    let repository = Repository::new(&scene);
    let Ok(model) = Model::new(&scene, &repository, &BTreeMap::new()) else {
        return Ok(());
    };
    for _ in 0..N_PLANS {
        let request = scene.request(&mut dice);
        let (plan, said) = repository.plan(&request);
        let expected = match &model {
            Some(model) => match model.answer(&request) {
                Ok(expected) => expected,
                Err(Ambiguous) => continue,
            },
            None => Err(3),
        };
        let result = match (&plan, &expected) {
            (Ok(plan), Ok(answer)) => {
                let gone = plan.entries.values().filter(|it| it.removed.is_some());
                for entry in gone {
                    let what = entry.blocked.as_deref().map(kind);
                    *counts
                        .entry(what.unwrap_or_else(|| entry.action.clone()))
                        .or_default() += 1;
                }
                compare(plan, answer)
            }
            (Err(found), Err(expected)) if found == expected => Ok(()),
            (_, expected) => Err(format!("expected {expected:?}")),
        };
        result.map_err(|differs| {
            let ids = repository.ids.iter().enumerate();
            let ids: Vec<String> = ids
                .map(|(number, id)| format!("{number} is {}", &id[..7]))
                .collect();
            let ids = ids.join(", ");
            format!("{differs}\n{request:?}\n{ids}\n{said}\n{scene:#?}")
        })?;
    }
    Ok(())
}

#[test]
fn a_plan_removes_what_all_snapshots_prove_to_be_removed_and_nothing_else() {
    let cases = ProptestConfig::default().cases / 10;
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        // Each step takes as long as a case.
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    });
    let counts = RefCell::new(BTreeMap::new());
    let numbers = prop::collection::vec(any::<u32>(), N_NUMBERS);
    let result = runner.run(&numbers, |numbers| {
        check(&numbers, &mut counts.borrow_mut()).map_err(TestCaseError::fail)
    });
    if let Err(TestError::Fail(differs, _) | TestError::Abort(differs)) = result {
        panic!("{differs}");
    }
    let counts = counts.into_inner();
    let expected = if cases < ENOUGH {
        &COMES_ABOUT[..1] // so few may lack anything else
    } else {
        &COMES_ABOUT
    };
    for what in expected {
        assert!(
            counts.keys().any(|it| it.starts_with(what)),
            "never: {what}, in {cases} scenes: {counts:#?}"
        );
    }
}
