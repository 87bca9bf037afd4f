//! Random histories of stacks that are made anew before the old ones are destroyed, with failures and kills:
//! whatever exists is recorded, what is current is never destroyed, and in the end each stack exists once.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use serde_json::Value;

use super::old_generations::tell;
use crate::removals::{
    APPROVED, DOCUMENT, applied_of, done, forget_log, hook, planned, prepared, unhook, want, world,
};
use crate::support::Repository;

const STACKS: [&str; 4] = ["app", "db", "net", "web"];

/// What a step does instead of what it should.
#[derive(Debug, Clone, Copy)]
enum Accident {
    /// It fails before it has done anything.
    Fails,
    /// It does its work, and fails then.
    FailsLate,
    /// It and `orch` are killed.
    Kills,
    /// It does its work, and then both are killed.
    KillsLate,
}

/// One apply, after what happens before it.
#[derive(Debug, Clone)]
struct Episode {
    wanted: Option<Index>,
    tainted: Option<Index>,
    replaced: Vec<&'static str>,
    selected: Option<Vec<&'static str>>,
    accident: Option<(&'static str, Index, Accident)>,
    jobs: usize,
}

fn episode() -> impl Strategy<Value = Episode> {
    use Accident::{Fails, FailsLate, Kills, KillsLate};
    let accident = (
        select(vec!["plan", "apply", "destroy"]),
        any::<Index>(),
        select(vec![Fails, FailsLate, Kills, KillsLate]),
    );
    let selected = subsequence(STACKS.to_vec(), 1..4);
    (
        prop::option::weighted(0.3, any::<Index>()),
        prop::option::weighted(0.2, any::<Index>()),
        subsequence(STACKS.to_vec(), 0..4),
        prop::option::weighted(0.3, selected),
        prop::option::weighted(0.7, accident),
        1..4_usize,
    )
        .prop_map(
            |(wanted, tainted, replaced, selected, accident, jobs)| Episode {
                wanted,
                tainted,
                replaced,
                selected,
                accident,
                jobs,
            },
        )
}

/// The script of a hook: what the tool does itself is at hand as `act`.
fn script(accident: Accident) -> String {
    let act = "case $1 in\napply) cat \"$ORCH_PLAN_FILE\" > \"$thing\" ;;\ndestroy) rm \"$thing\" ;;\nesac\n";
    let kill = "kill -9 $PPID\nkill -9 $$\n";
    match accident {
        Accident::Fails => "exit 1\n".to_owned(),
        Accident::FailsLate => format!("{act}exit 1\n"),
        Accident::Kills => kill.to_owned(),
        Accident::KillsLate => format!("{act}{kill}"),
    }
}

/// Returns the generations recorded of each stack: the current one, and the others.
fn recorded(repository: &Repository) -> BTreeMap<String, (u64, BTreeSet<u64>)> {
    let document: Value = serde_json::from_str(&repository.read(DOCUMENT)).unwrap();
    let number = |value: &Value| value["generation"].as_u64().unwrap_or(1);
    let stacks = document["stacks"].as_object().unwrap().iter();
    stacks
        .map(|(key, entry)| {
            let deposed = entry["deposed"].as_array().cloned().unwrap_or_default();
            let all = (number(entry), deposed.iter().map(number).collect());
            (key[1..].to_owned(), all)
        })
        .collect()
}

/// Returns the generations of each stack that exist.
fn existing(repository: &Repository) -> BTreeMap<String, BTreeSet<u64>> {
    let mut existing: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for thing in world(repository) {
        let (name, generation) = thing.split_once('@').unwrap_or((&thing, "1"));
        let all = existing.entry(name.to_owned()).or_default();
        all.insert(generation.parse().unwrap());
    }
    existing
}

/// Has whoever waits for what `orch` prints wait for all that it has started too: if it is killed, what runs beside
/// the one that kills it goes on, and the next `orch` would rightly refuse to begin.
fn outlast(repository: &Repository, orch: &mut Command) {
    let mut shell = Command::new("sh");
    repository.isolate(&mut shell);
    shell.args(["-c", "exec \"$0\" \"$@\" 3>&1"]);
    shell.arg(orch.get_program()).args(orch.get_args());
    if let Some(directory) = orch.get_current_dir() {
        shell.current_dir(directory);
    }
    *orch = shell;
}

fn run(episodes: &[Episode]) -> Result<(), TestCaseError> {
    let many = "driver = \"many\"";
    let first = format!("{many}\n  lifecycle {{\n    create_before_destroy = true\n  }}");
    let files = prepared(&[
        ("/net", many),
        ("/db", &first),
        ("/app", &format!("after = [\"/net\", \"/db\"]\n  {first}")),
        ("/web", &format!("after = [\"/app\"]\n  {many}")),
    ]);
    tell(&files, "/app", &["/net", "/db"]);
    tell(&files, "/web", &["/app", "/net", "/db"]);
    let repository = applied_of(files);
    for (number, episode) in episodes.iter().enumerate() {
        if let Some(index) = &episode.wanted {
            want(
                &repository,
                &format!("/{}", index.get(&STACKS)),
                &format!("{number}"),
            );
            repository.commit();
        }
        if let Some(index) = &episode.tainted {
            let stack = index.get(&STACKS);
            // One that was destroyed to be made anew is not, if `orch` was killed in between.
            if recorded(&repository).contains_key(*stack) {
                done(&repository, &format!("state taint /{stack}"));
            }
        }
        let hooked = episode.accident.map(|(step, index, accident)| {
            let stack = *index.get(&STACKS);
            hook(&repository, step, stack, &script(accident));
            (step, stack)
        });
        let mut arguments = format!("apply {APPROVED} -j {}", episode.jobs);
        let selected = episode.selected.as_deref().unwrap_or(&STACKS);
        if episode.selected.is_some() {
            let flags = selected.iter().map(|stack| format!(" --match {stack}"));
            arguments.extend(flags);
        }
        let replaced = episode.replaced.iter().filter(|it| selected.contains(it));
        arguments.extend(replaced.map(|stack| format!(" --replace /{stack}")));
        let output = repository.orch_with(&arguments, |orch| outlast(&repository, orch));
        if let Some((step, stack)) = hooked {
            unhook(&repository, step, stack);
        }
        forget_log(&repository);
        let (recorded, existing) = (recorded(&repository), existing(&repository));
        for (stack, existing) in &existing {
            let (current, deposed) = recorded.get(stack).cloned().unwrap_or_default();
            let unknown: Vec<&u64> = existing
                .iter()
                .filter(|it| **it != current && !deposed.contains(it))
                .collect();
            // What a run had begun when it was killed is in its own record, which the next one finds.
            let is_killed = repository.read(DOCUMENT).contains("\"lock\":{");
            prop_assert!(
                unknown.is_empty() || is_killed,
                "{stack} {unknown:?} {output}"
            );
        }
        // What a killed run has recorded is beside the document until its lock is taken away.
        if repository.read(DOCUMENT).contains("\"lock\":{") {
            let document: Value = serde_json::from_str(&repository.read(DOCUMENT)).unwrap();
            let code = document["lock"]["code"].as_str().unwrap();
            done(&repository, &format!("state unlock --force {code}"));
        }
    }
    let text = done(&repository, &format!("apply {APPROVED}"));
    prop_assert_eq!(planned(&repository, ""), [""; 0], "{}", text);
    let recorded = recorded(&repository);
    for (stack, existing) in existing(&repository) {
        let (current, deposed) = &recorded[&stack];
        prop_assert_eq!(existing, BTreeSet::from([*current]), "{} {}", stack, text);
        prop_assert!(deposed.is_empty(), "{stack} {deposed:?} {text}");
    }
    prop_assert_eq!(recorded.len(), STACKS.len());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(6),
        max_shrink_iters: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn generations_end_with_one_after_any_failures(episodes in prop::collection::vec(episode(), 1..6)) {
        run(&episodes)?;
    }
}
