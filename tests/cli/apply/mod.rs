//! `orch apply` and `orch destroy`: what is carried out, in which order, and what is recorded.

mod approval;
mod bad_tools;
mod built_in;
mod carried_out;
mod conditional;
mod destroy;
mod drift;
mod drift_followed;
mod engines;
mod environment;
mod file;
mod followed;
mod foreseen;
mod hidden;
mod inputs;
mod job_exclusion;
mod job_followups;
mod job_results;
mod jobs;
mod left_out;
mod partial;
mod progress;
mod recorded;
mod resources;
mod resume;
mod runs;
mod stale;
mod tampered;
mod terraform;
mod terragrunt;
mod together;
mod tool;
mod unselected;
mod waiting;

use std::fs;

use serde_json::Value;

use crate::support::{Repository, Sandbox};

/// What the drivers run: it manages one file of the folder `world` for each stack. What is wanted stands in
/// the file `want` of the stack, and in its input `id`; the file `uses` names a stack whose file it needs
/// besides. A file of the folder `hooks` comes first, if there is one for the step and the stack.
const TOOL: &str = r#"
world=$ORCH_ROOT/../world
name=$ORCH_STACK_NAME
echo "$1 $ORCH_ACTION $name" >> "$ORCH_ROOT/../log"
hook=$ORCH_ROOT/../hooks/$1-$name
[ ! -e "$hook" ] || . "$hook"
answers() {
  echo "$1" > "$ORCH_ANSWER"
  exit 2
}
case $1 in
plan)
  if [ "$ORCH_ACTION" = delete ]; then
    [ -e "$world/$name" ] || { echo '{"exists":false}' > "$ORCH_ANSWER"; exit 0; }
    answers '{"remove":1}'
  fi
  wanted=$(cat want)$TF_VAR_id
  [ ! -e uses ] || wanted=$wanted:$(cat "$world/$(cat uses)") || exit 1
  printf %s "$wanted" > "$ORCH_PLAN_FILE"
  echo "would make $wanted"
  [ -e "$world/$name" ] || answers '{"exists":false,"add":1}'
  [ "$wanted" = "$(cat "$world/$name")" ] || answers '{"change":1}'
  ;;
apply) cat "$ORCH_PLAN_FILE" > "$world/$name" ;;
destroy) rm -f "$world/$name" ;;
outputs) printf '{"id":"%s"}' "$(cat "$world/$name")" ;;
esac
"#;

/// The drivers: `mute` prints no outputs, and `blind` cannot say what it would do.
const DRIVERS: &str = r#"
orch {
  config {
    driver = "fake"
  }
}

driver "fake" {
  plan        = ["sh", "${terramate.root.path.fs.absolute}/tool", "plan"]
  apply       = ["sh", "${terramate.root.path.fs.absolute}/tool", "apply"]
  destroy     = ["sh", "${terramate.root.path.fs.absolute}/tool", "destroy"]
  outputs     = ["sh", "${terramate.root.path.fs.absolute}/tool", "outputs"]
  may_replace = true
}

driver "mute" {
  plan    = ["sh", "${terramate.root.path.fs.absolute}/tool", "plan"]
  apply   = ["sh", "${terramate.root.path.fs.absolute}/tool", "apply"]
  destroy = ["sh", "${terramate.root.path.fs.absolute}/tool", "destroy"]
}

driver "blind" {
  apply = ["sh", "-c", "echo blind > $ORCH_ROOT/../world/$ORCH_STACK_NAME"]
}
"#;

const STATE: &str = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";

const DOCUMENT: &str = "/.orch/state/default.json";

/// The files of a project with these stacks: each with the lines of its block. A stack wants `1`.
fn prepared(stacks: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.write("/drivers.orch.hcl", DRIVERS);
    sandbox.write("/tool", TOOL);
    for directory in ["world", "hooks"] {
        fs::create_dir(sandbox.outside().join(directory)).unwrap();
    }
    for (path, lines) in stacks {
        declare(&sandbox, path, lines);
        sandbox.write(&format!("{path}/want"), "1");
    }
    sandbox
}

/// A project that keeps no state.
fn project(stacks: &[(&str, &str)]) -> Repository {
    Repository::of(prepared(stacks))
}

/// A project that keeps one, with nothing recorded.
fn with_state(stacks: &[(&str, &str)]) -> Repository {
    let sandbox = prepared(stacks);
    sandbox.write("/state.orch.hcl", STATE);
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    repository
}

/// A project that keeps a state, with everything applied.
fn applied(stacks: &[(&str, &str)]) -> Repository {
    let repository = with_state(stacks);
    done(&repository, "apply --auto-approve");
    log(&repository);
    repository
}

/// Writes the block of a stack.
fn declare(sandbox: &Sandbox, path: &str, lines: &str) {
    let block = format!("stack {{\n  {lines}\n}}\n");
    sandbox.write(&format!("{path}/stack.orch.hcl"), block);
}

/// Changes what a stack wants, and commits.
fn want(repository: &Repository, path: &str, wanted: &str) {
    repository.write(&format!("{path}/want"), wanted);
    repository.commit();
}

/// Writes what a step of a stack does first.
fn hook(sandbox: &Sandbox, step: &str, name: &str, script: &str) {
    let path = sandbox
        .outside()
        .join("hooks")
        .join(format!("{step}-{name}"));
    fs::write(path, script).unwrap();
}

/// Removes it.
fn unhook(sandbox: &Sandbox, step: &str, name: &str) {
    let path = sandbox
        .outside()
        .join("hooks")
        .join(format!("{step}-{name}"));
    fs::remove_file(path).unwrap();
}

/// Returns the steps that have run since the last look: each with its action and the name of its stack.
fn log(sandbox: &Sandbox) -> Vec<String> {
    let path = sandbox.outside().join("log");
    let text = fs::read_to_string(&path).unwrap_or_default();
    _ = fs::remove_file(path);
    text.lines().map(str::to_owned).collect()
}

/// Returns the same without `plan` and `outputs`: what has been changed.
fn acts(sandbox: &Sandbox) -> Vec<String> {
    let mut all = log(sandbox);
    all.retain(|step| step.starts_with("apply") || step.starts_with("destroy"));
    all
}

/// Returns what exists of a stack.
fn world(sandbox: &Sandbox, name: &str) -> Option<String> {
    fs::read_to_string(sandbox.outside().join("world").join(name)).ok()
}

/// Runs `orch`, which succeeds, and returns all that it says.
#[track_caller]
fn done(sandbox: &Sandbox, arguments: &str) -> String {
    let output = sandbox.orch(arguments);
    assert_eq!(output.code(), 0, "{output}");
    output.to_string()
}

/// Runs `orch`, which ends with this status and says this on stderr; returns all that it says.
#[track_caller]
fn fails(sandbox: &Sandbox, arguments: &str, code: i32, said: &str) -> String {
    let output = sandbox.orch(arguments);
    assert_eq!(output.code(), code, "{output}");
    assert!(output.stderr.contains(said), "{said}: {output}");
    output.to_string()
}

/// Returns what is recorded of a stack.
fn entry(sandbox: &Sandbox, key: &str) -> Value {
    let document: Value = serde_json::from_str(&sandbox.read(DOCUMENT)).unwrap();
    document["stacks"][key].clone()
}

/// Changes the document.
fn change_document(sandbox: &Sandbox, change: impl FnOnce(&mut Value)) {
    let mut document: Value = serde_json::from_str(&sandbox.read(DOCUMENT)).unwrap();
    change(&mut document);
    sandbox.write(DOCUMENT, document.to_string());
}

/// Asserts that an apply leaves neither a lock nor plans behind.
#[track_caller]
fn assert_tidy(sandbox: &Sandbox) {
    let plans = fs::read_dir(sandbox.path("/.orch/plans"));
    assert_eq!(plans.map_or(0, Iterator::count), 0, "plans are left");
    let state = fs::read_dir(sandbox.path("/.orch/state"));
    let names = state.into_iter().flatten().flatten();
    let left = names.filter(|name| name.file_name().to_string_lossy().contains("lock"));
    for lock in left {
        let text = fs::read_to_string(lock.path()).unwrap_or_default();
        assert!(text.trim().is_empty(), "{lock:?}: {text}");
    }
}
