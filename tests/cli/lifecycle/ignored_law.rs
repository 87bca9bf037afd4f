//! Random lists of `ignore_changes` and random changes, against a model that knows paths, components and names.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::removals::{done, log, prepared};
use crate::support::{Repository, Sandbox};

/// The files that are inputs of `/a`: its own, those that it watches, and those of its module.
const FILES: [&str; 9] = [
    "/a/f.txt",
    "/a/n.md",
    "/a/docs/d.md",
    "/a/docs/deep/e.txt",
    "/a/docs/deep/e.md",
    "/shared/w.md",
    "/shared/w.txt",
    "/modules/m/README.md",
    "/modules/m/x.txt",
];

const VARIABLES: [&str; 2] = ["A", "B"];

const ENTRIES: [&str; 18] = [
    "\"**/*.md\"",
    "\"*.md\"",
    "\"docs/**\"",
    "\"docs/*\"",
    "\"**/deep/*\"",
    "\"f.*\"",
    "\"/shared/*\"",
    "\"/**/*.txt\"",
    "\"/a/*.md\"",
    "\"/a/docs/**/*.md\"",
    "\"../shared/*.md\"",
    "\"shared/*\"",
    "\"a/**\"",
    "\"/modules/**\"",
    "\"/modules/*/*.md\"",
    "env.A",
    "env.B",
    "env.C",
];

/// What is done, after everything was applied.
#[derive(Debug, Clone)]
struct Episode {
    /// Whether every input is ignored, whatever the list says.
    is_all: bool,
    list: Vec<&'static str>,
    changed: Vec<&'static str>,
    variables: Vec<&'static str>,
}

fn episode() -> impl Strategy<Value = Episode> {
    let changed = prop_oneof![
        3 => subsequence(FILES.to_vec(), 0..3),
        1 => subsequence(FILES.to_vec(), 0..=FILES.len()),
    ];
    (
        prop::bool::weighted(0.1),
        subsequence(ENTRIES.to_vec(), 0..6),
        changed,
        subsequence(VARIABLES.to_vec(), 0..=1),
    )
        .prop_map(|(is_all, list, changed, variables)| Episode {
            is_all,
            list,
            changed,
            variables,
        })
}

/// Returns whether the components of a pattern match those of a path.
fn matches(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => {
            matches(rest, path) && !rest.is_empty()
                || path.split_first().is_some_and(|(_, tail)| {
                    matches(pattern, tail) || rest.is_empty() && tail.is_empty()
                })
        }
        (Some((first, rest)), Some((name, tail))) => {
            let is_one = match first.split_once('*') {
                Some((start, end)) => {
                    name.len() >= start.len() + end.len()
                        && name.starts_with(start)
                        && name.ends_with(end)
                }
                None => first == name,
            };
            is_one && matches(rest, tail)
        }
        _ => false,
    }
}

/// Returns whether an entry leaves out a file, from the point of view of `/a`.
fn leaves_out(entry: &str, file: &str) -> bool {
    let Some(glob) = entry.strip_prefix('"').and_then(|it| it.strip_suffix('"')) else {
        return false;
    };
    let from_root = match glob.strip_prefix('/') {
        Some(glob) => glob.to_owned(),
        None => match glob.strip_prefix("../") {
            Some(glob) => glob.to_owned(),
            None => format!("a/{glob}"),
        },
    };
    let pattern: Vec<&str> = from_root.split('/').collect();
    let path: Vec<&str> = file[1..].split('/').collect();
    matches(&pattern, &path)
}

fn write(repository: &Sandbox, ignored: &str, values: &[usize; 2]) {
    let lifecycle = format!("lifecycle {{\n    ignore_changes = {ignored}\n  }}");
    let watch = "watch = [\"/shared/w.md\", \"/shared/w.txt\"]";
    let block = format!("stack {{\n  {watch}\n  {lifecycle}\n}}\n");
    repository.write("/a/stack.orch.hcl", block);
    let [a, b] = values;
    let env = format!(
        "orch {{\n  config {{\n    run {{\n      env {{\n        A = \"{a}\"\n        B = \"{b}\"\n      }}\n    }}\n  }}\n}}\n"
    );
    repository.write("/env.orch.hcl", env);
}

fn run(episodes: &[Episode]) -> Result<(), TestCaseError> {
    let sandbox = prepared(&[("/a", "")]);
    for file in FILES {
        sandbox.write(file, "first");
    }
    sandbox.write(
        "/a/main.tf",
        "module \"m\" {\n  source = \"../modules/m\"\n}\n",
    );
    sandbox.write("/modules/m/main.tf", "");
    let mut values = [0, 0];
    write(&sandbox, "[]", &values);
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    for (number, episode) in episodes.iter().enumerate() {
        let ignored = if episode.is_all {
            "all".to_owned()
        } else {
            format!("[{}]", episode.list.join(", "))
        };
        write(&repository, &ignored, &values);
        repository.git("add -A");
        repository.git(&format!("commit -q --allow-empty -m rules-{number}"));
        done(&repository, "apply --auto-approve");
        log(&repository);
        let pending = || done(&repository, "list --status pending");
        prop_assert!(!pending().contains("a\n"), "it has just been applied");

        for file in &episode.changed {
            repository.write(file, format!("changed in {number}"));
        }
        for variable in &episode.variables {
            let position = VARIABLES.iter().position(|it| it == variable).unwrap();
            values[position] += 1;
        }
        write(&repository, &ignored, &values);
        repository.git("add -A");
        repository.git(&format!("commit -q --allow-empty -m changes-{number}"));
        let counted: BTreeSet<&str> =
            episode
                .changed
                .iter()
                .copied()
                .filter(|file| !episode.list.iter().any(|entry| leaves_out(entry, file)))
                .chain(
                    episode.variables.iter().copied().filter(|variable| {
                        !episode.list.contains(&format!("env.{variable}").as_str())
                    }),
                )
                .collect();
        let is_pending = !episode.is_all && !counted.is_empty();
        let said = pending();
        prop_assert_eq!(said.contains("a\n"), is_pending, "{:?} {}", episode, said);
        // The tool is asked only then.
        done(&repository, "plan");
        let asked = log(&repository);
        prop_assert_eq!(!asked.is_empty(), is_pending, "{:?} {:?}", episode, asked);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(8),
        max_shrink_iters: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn ignore_changes_ignores_exactly_the_listed_inputs(episodes in prop::collection::vec(episode(), 1..5)) {
        run(&episodes)?;
    }
}
