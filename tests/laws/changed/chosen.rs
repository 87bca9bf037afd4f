//! What has changed, together with all other flags.

use std::io::Write;
use std::process::Stdio;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use super::asked::{Asked, Expected};
use super::generate::{Scene, any_scene};
use super::repository::Repository;
use super::rules::{Tree, place_of};
use super::{config, repository};
use crate::model::{Each, Model, ModelStack, Set};
use crate::query::query_among;
use crate::selector::{ModelChanges, ModelQuery};

const PLACES: [&str; 9] = [
    "/",
    "/a",
    "/a/n",
    "/a/n/d",
    "/a-b",
    "/ab",
    "/s p",
    "/mods/x",
    "/libs/common",
];

/// Flags, before it is known which stacks there are.
#[derive(Debug, Clone)]
struct Flags {
    query: ModelQuery,
    directory: Option<Index>,
    named: Vec<Index>,
}

fn any_flags() -> impl Strategy<Value = Flags> {
    let places = PLACES.map(str::to_owned).to_vec();
    // Written at the root, texts lead out of no directory.
    let query = query_among(vec!["/".to_owned()], places.clone(), places);
    let directory = prop::option::weighted(0.3, any::<Index>());
    let named = prop::collection::vec(any::<Index>(), 0..6);
    (query, directory, named).prop_map(|(mut query, directory, named)| {
        // No stack has tags.
        query.tags.clear();
        Flags {
            query,
            directory,
            named,
        }
    })
}

impl Flags {
    /// The query, among stacks.
    fn query(self, model: &Model, changed: Set) -> ModelQuery {
        let Flags {
            mut query,
            directory,
            named,
        } = self;
        let path = |index: &Index| model.path(index.index(model.stacks.len())).to_owned();
        let is_empty = model.stacks.is_empty();
        if let Some(directory) = directory.filter(|_| !is_empty) {
            let stack = directory.index(model.stacks.len());
            model.directory(stack).clone_into(&mut query.directory);
        }
        let is_stack = model
            .stacks
            .iter()
            .any(|stack| stack.directory == query.directory);
        query.recursive |= !is_stack;
        query.named = query.named.map(|_| {
            if is_empty {
                Vec::new()
            } else {
                named.iter().map(path).collect()
            }
        });
        query.changes = Some(ModelChanges {
            changed,
            ..ModelChanges::default()
        });
        query
    }
}

/// What a command writes.
fn output(
    repository: &Repository,
    asked: &Asked,
    query: &ModelQuery,
    command: &[&str],
) -> (i32, String, String) {
    let mut orch = repository.orch();
    orch.arg("-C")
        .arg(format!(".{}", query.directory))
        .arg(command[0])
        .args(&asked.arguments)
        .args(query.flags())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if query.named.is_some() {
        orch.arg("--stacks-from=-");
    }
    let mut child = orch.args(&command[1..]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines = query.named.as_deref().unwrap_or_default().join("\n");
    // Whoever needs no list does not read it.
    _ = stdin.write_all(lines.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let status = output.status.code().expect("orch ends by itself");
    (status, text(output.stdout), text(output.stderr))
}

fn check(scene: &Scene, flags: Flags) -> Result<(), TestCaseError> {
    let repository = repository(scene);
    let asked = Asked::new(&repository, scene.base, scene.switches);
    let answer = asked.list(&repository);
    let base = answer.base(&repository).filter(|_| answer.status == 0);
    let Some(base) = base else {
        return Ok(());
    };
    let tree = Tree(&repository.working);
    let stack = |path: String| {
        let (directory, key) = place_of(&path);
        ModelStack {
            directory: format!("/{directory}"),
            each: key.map(|key| Each {
                key: key.to_owned(),
                value: key.to_owned(),
            }),
            ..ModelStack::default()
        }
    };
    let model = Model::new(tree.stacks().into_iter().map(stack).collect());
    let expected = Expected::new(&repository, base, scene.switches).stacks();
    let all = 0..model.stacks.len();
    let changed = all.filter(|&stack| expected.contains(&model.path(stack)[1..]));
    let query = flags.query(&model, changed.collect());
    let steps = model.steps(&query);
    let story = || format!("{query:?}\n{asked:?}\n{steps:?}\n{}", repository.story());
    let (status, text, complaint) = output(&repository, &asked, &query, &["list", "--format=json"]);
    prop_assert_eq!(status, 0, "{}\n{}", complaint, story());
    let document: Value = serde_json::from_str(&text).unwrap();
    let listed = document["stacks"].as_array().unwrap();
    let paths: Vec<&str> = listed
        .iter()
        .map(|stack| stack["path"].as_str().unwrap())
        .collect();
    let expected: Vec<&str> = steps
        .selected
        .iter()
        .map(|&stack| model.path(stack))
        .collect();
    prop_assert_eq!(&paths, &expected, "{}", story());
    for stack in listed {
        let path = stack["path"].as_str().unwrap();
        let reasons = stack["reasons"].as_array().unwrap();
        prop_assert!(!reasons.is_empty(), "{}\n{}", path, story());
        let is_changed = answer.stacks().contains(&path[1..]);
        for reason in reasons {
            let kind = reason["kind"].as_str().unwrap();
            let is_filter = !matches!(kind, "dependency" | "dependent");
            prop_assert!(is_changed || !is_filter, "{}: {}\n{}", path, kind, story());
        }
    }
    let command = ["run", "--dry-run", "--", "true"];
    let (status, text, complaint) = output(&repository, &asked, &query, &command);
    prop_assert_eq!(status, 0, "{}\n{}", complaint, story());
    let mut run: Vec<&str> = text
        .lines()
        .map(|line| line.strip_suffix(": true").unwrap())
        .collect();
    run.sort_unstable();
    let mut expected = expected;
    expected.sort_unstable();
    // A name may have what is not written as it is.
    prop_assert_eq!(run, expected, "{}", story());
    Ok(())
}

proptest! {
    #![proptest_config(config(4))]

    #[test]
    fn what_has_changed_goes_together_with_all_flags(scene in any_scene(), flags in any_flags()) {
        check(&scene, flags)?;
    }
}
