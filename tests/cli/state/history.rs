//! The history of the document: what was done to which stacks.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Output, Repository, Sandbox};

const STATE: &str = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n    driver = \"fake\"\n  }\n}\n";

/// It makes a file for each stack, and fails if the stack has a file `broken`.
const DRIVER: &str = r#"
driver "fake" {
  apply   = ["sh", "-c", "test ! -e broken && touch made"]
  destroy = ["rm", "-f", "made"]
  backend = "made ${terramate.stack.name}"
}
"#;

/// A project with stacks of these names, with everything applied.
fn applied(stacks: &str) -> Repository {
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/driver.orch.hcl", DRIVER);
    sandbox.write("/.gitignore", "made\n");
    for stack in stacks.split(' ') {
        sandbox.write(&format!("/{stack}/stack.orch.hcl"), "stack {\n}\n");
    }
    let repository = Repository::of(sandbox);
    _ = done(&repository, "state init");
    _ = done(&repository, "apply --auto-approve");
    repository
}

#[track_caller]
fn done(repository: &Repository, arguments: &str) -> Output {
    let output = repository.orch(arguments);
    assert_eq!(output.code(), 0, "{output}");
    output
}

/// Returns what the text of the history says of stacks, newest first.
fn told(repository: &Repository) -> String {
    let history = done(repository, "state history --format json").json();
    let writes = history["history"].as_array().unwrap().len();
    let text = done(repository, "state history").stdout;
    assert_eq!(text.lines().count(), writes);
    let columns = regex::Regex::new(" {2,}").unwrap();
    let line = |line: &str| {
        let columns: Vec<&str> = columns.split(line).collect();
        format!("{} {}\n", columns[2], columns[5])
    };
    text.lines().map(line).collect()
}

/// Returns the stacks of the newest write.
fn newest(repository: &Repository) -> Value {
    let history = done(repository, "state history --format json").json();
    history["history"][0]["stacks"].clone()
}

#[test]
fn history_names_the_stacks_of_runs_after_their_journals_are_gone() {
    let repository = applied("a b c d e f g");
    repository.write("/b/broken", "");
    repository.write("/c/more", "");
    repository.git("rm -q -r a");
    repository.commit();
    let failed = repository.orch("apply --auto-approve --allow-destroy=1");
    assert_eq!(failed.code(), 1, "{failed}");
    _ = done(&repository, "runs prune --keep 0");
    assert_snapshot!(told(&repository), @"
    apply 1 applied (/c), 1 failed (/b), 1 destroyed (/a)
    apply 7 applied (/a, /b, /c, /d, /e and 2 more)
    init -
    ");
    assert_eq!(
        newest(&repository),
        json!({ "applied": ["/c"], "failed": ["/b"], "destroyed": ["/a"] })
    );
}

#[test]
fn history_names_the_stacks_of_commands() {
    let repository = applied("a b c");
    _ = done(&repository, "state taint a b");
    assert_eq!(newest(&repository), json!({ "changed": ["/a", "/b"] }));
    _ = done(&repository, "state forget b");
    assert_eq!(newest(&repository), json!({ "removed": ["/b"] }));
    _ = done(&repository, "state move c d");
    assert_eq!(
        newest(&repository),
        json!({ "changed": ["/d"], "removed": ["/c"] })
    );
    _ = done(&repository, "state restore 4");
    assert_snapshot!(told(&repository), @"
    restore /d, /b, /c
    move /c, /d
    forget /b
    taint /a, /b
    apply 3 applied (/a, /b, /c)
    init -
    ");
}

#[test]
fn history_names_all_that_were_destroyed_and_the_first_that_were_applied() {
    let names: Vec<String> = (100..220).map(|number| format!("s{number}")).collect();
    let repository = applied(&names.join(" "));
    let count = |kind: &str| newest(&repository)[kind].as_array().map_or(0, Vec::len);
    assert_eq!(count("applied"), 100);
    _ = done(&repository, "destroy --auto-approve --allow-destroy=120");
    assert_eq!(count("destroyed"), 120);
    let text = told(&repository);
    assert!(
        text.starts_with("destroy 120 destroyed (/s100, /s101, /s102, /s103, /s104 and 115 more)"),
        "{text}"
    );
}

#[test]
fn history_of_earlier_versions_is_shown_without_names() {
    let repository = applied("a");
    let path = "/.orch/state/default.json";
    let mut document: Value = serde_json::from_str(&repository.read(path)).unwrap();
    document["history"][1]
        .as_object_mut()
        .unwrap()
        .remove("stacks");
    repository.write(path, document.to_string());
    assert_snapshot!(told(&repository), @"
    apply 1 applied
    init -
    ");
}
