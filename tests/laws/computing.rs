//! Runs whose commands compute from what the commands before them have computed, so that a wrong
//! order gives a wrong number. Few cases, since each starts processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use proptest::prelude::*;
use proptest::sample::select;

use crate::loaded::Loaded;
use crate::model::{Model, Set, names};
use crate::query::with_runnable_query;
use crate::selector::ModelQuery;
use crate::support::orch_program;
use crate::tree::without_errors;

/// Computes the number of a stack from its own and the results listed in `before`, and adds it to
/// what is there: a stack that runs twice has another number. The instances in a directory have
/// files of their own.
const COMPUTE: &str = r#"set -e
own="-$ORCH_STACK_KEY"
sum=$(cat "number$own")
while read -r other; do
  sum=$(( (sum * 31 + $(cat "$other")) % 1000003 ))
done < "before$own"
if [ -e "result$own" ]; then sum=$(( sum + $(cat "result$own") )); fi
echo "$sum" > "result.new$own"
mv "result.new$own" "result$own"
"#;

/// The result of every selected stack, as the script would have it.
fn results(model: &Model, selected: &Set, before: &BTreeMap<usize, Set>) -> BTreeMap<usize, u64> {
    let mut results = BTreeMap::new();
    let number = |stack: usize| model.path(stack).len() as u64 + stack as u64;
    while results.len() < selected.len() {
        for &stack in selected {
            let known = |other: &usize| results.contains_key(other);
            if !results.contains_key(&stack) && before[&stack].iter().all(known) {
                let others = before[&stack].iter();
                let sum = others.fold(number(stack), |sum, other| {
                    (sum * 31 + results[other]) % 1_000_003
                });
                results.insert(stack, sum);
            }
        }
    }
    results
}

fn directory(root: &Path, path: &str) -> PathBuf {
    let mut directory = root.to_path_buf();
    directory.extend(names(path));
    directory
}

/// A file of a stack, which the script finds by the key.
fn file(root: &Path, model: &Model, stack: usize, name: &str) -> PathBuf {
    let key = model.stacks[stack].key().unwrap_or_default();
    directory(root, model.directory(stack)).join(format!("{name}-{key}"))
}

fn run(root: &Path, query: &ModelQuery, flags: &[&str]) -> std::process::Output {
    let mut orch = Command::new(orch_program());
    orch.arg("-C").arg(directory(root, &query.directory));
    orch.arg("run").args(flags).args(query.flags());
    if let Some(lines) = &query.named {
        orch.arg("--stacks-from=-").write_stdin(lines.join("\n"));
    }
    orch.args(["--", "sh"])
        .arg(root.join("../compute.sh"))
        .output()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: ProptestConfig::default().cases.div_ceil(8),
        ..ProptestConfig::default()
    })]

    #[test]
    fn however_many_run_at_once_results_are_those_of_the_order(
        (tree, query) in with_runnable_query(),
        jobs in select(vec!["1", "2", "4", "auto"]),
        reverse in any::<bool>(),
    ) {
        let loaded = Loaded::new(&without_errors(tree));
        let (model, root) = (&loaded.model, &loaded.root);
        let selected = model.selection(&query);
        let here = model.stacks.iter().any(|stack| stack.directory == query.directory);
        prop_assume!(!selected.is_empty() && (query.recursive || here));
        let reaches = model.closure(|_| true);
        let before: BTreeMap<usize, Set> = selected
            .iter()
            .map(|&stack| {
                let is_before = |&other: &usize| {
                    if reverse { reaches[stack][other] } else { reaches[other][stack] }
                };
                (stack, selected.iter().copied().filter(is_before).collect())
            })
            .collect();
        fs::write(root.join("../compute.sh"), COMPUTE).unwrap();
        for &stack in &selected {
            let own = |name| file(root, model, stack, name);
            fs::write(own("number"), format!("{}\n", model.path(stack).len() + stack)).unwrap();
            let mut lines = String::new();
            for &other in &before[&stack] {
                lines += &file(root, model, other, "result").display().to_string();
                lines += "\n";
            }
            fs::write(own("before"), lines).unwrap();
        }
        let mut flags = vec!["-j", jobs];
        flags.extend(reverse.then_some("--reverse"));
        let output = run(root, &query, &flags);
        prop_assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for (stack, expected) in results(model, &selected, &before) {
            let result = fs::read_to_string(file(root, model, stack, "result")).unwrap();
            prop_assert_eq!(result.trim().parse::<u64>().unwrap(), expected, "{}", model.path(stack));
        }
    }
}
