//! Stacks that were removed from the tree: what a plan does with them, and how an apply destroys them.

mod accidents; // what looks like a removal, and is none
mod budget; // how many stacks may be destroyed, and who says so
mod code; // the commit whose code destroys them
mod default_branch; // what it has, and jobs that are late
mod inputs; // outputs of other stacks that they need
mod instances; // keys that were removed, and directories with several instances
mod interrupted; // failures, signals, and what is left of them
mod kept; // what keeps them from being destroyed
mod last; // projects of which nothing recorded is left
mod moved; // or only alike
mod order; // before and after what they are destroyed
mod rows; // destroyed, forgotten, moved or kept
mod saved; // plans in files
mod scope; // filters, modes and flags
mod shown; // text, JSON, Markdown
mod terraform; // the real one

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Repository, Sandbox};

/// What the drivers run: it manages one file of the folder `world` for each stack, which is named after the
/// file `object` of the stack or after its path. What is wanted stands in the file `want` of the stack. A file
/// of the folder `hooks` comes first, if there is one for the step and the stack.
pub(crate) const TOOL: &str = r#"
outside='OUTSIDE'
plain() { printf %s "$1" | tr -c 'a-zA-Z0-9\n' _; }
if [ -e object ]; then name=$(cat object); else name=$(plain "${ORCH_STACK_PATH#/}"); fi
generation=
[ "${ORCH_GENERATION:-1}" = 1 ] || generation=@$ORCH_GENERATION
thing=$outside/world/$name$generation
echo "$1 $ORCH_STACK_PATH$generation" >> "$outside/log"
echo "$1 $ORCH_STACK_PATH action=$ORCH_ACTION root=$ORCH_ROOT in=$(pwd -P) want=$(cat want) greeting=$GREETING" >> "$outside/details"
hook=$outside/hooks/$1-$(plain "${ORCH_STACK_PATH#/}")
[ ! -e "$hook" ] || . "$hook"
answers() {
  echo "$1" > "$ORCH_ANSWER"
  exit 2
}
case $1 in
plan)
  if [ "$ORCH_ACTION" = delete ]; then
    [ -e "$thing" ] || { echo '{"exists":false}' > "$ORCH_ANSWER"; exit 0; }
    answers '{"remove":1}'
  fi
  printf %s "$(cat want)" > "$ORCH_PLAN_FILE"
  [ -e "$thing" ] || answers '{"exists":false,"add":1}'
  [ "$(cat want)" = "$(cat "$thing")" ] || answers '{"change":1}'
  ;;
apply) cat "$ORCH_PLAN_FILE" > "$thing" ;;
destroy) rm "$thing" ;;
outputs) printf '{"id":"%s"}' "$(cat "$thing")" ;;
esac
"#;

/// The drivers: `placed` says where its state is, `many` has one for each generation of a stack, `unasked` cannot say what it would do, and `lasting` cannot
/// destroy. The names of stacks are those of their resources.
pub(crate) const DRIVERS: &str = r#"
orch {
  config {
    driver = "make"
    run {
      env {
        GREETING = "as applied"
      }
    }
  }
}

driver "make" {
  plan    = ["sh", "${terramate.root.path.fs.absolute}/tool", "plan"]
  apply   = ["sh", "${terramate.root.path.fs.absolute}/tool", "apply"]
  destroy = ["sh", "${terramate.root.path.fs.absolute}/tool", "destroy", "${terramate.stack.name} ${tm_try(each.key, "")}"]
  outputs = ["sh", "${terramate.root.path.fs.absolute}/tool", "outputs"]

  may_replace = true
}

driver "placed" {
  plan    = ["sh", "${terramate.root.path.fs.absolute}/tool", "plan"]
  apply   = ["sh", "${terramate.root.path.fs.absolute}/tool", "apply"]
  destroy = ["sh", "${terramate.root.path.fs.absolute}/tool", "destroy"]
  backend = "place ${terramate.stack.name}"
}

driver "many" {
  plan    = ["sh", "${terramate.root.path.fs.absolute}/tool", "plan"]
  apply   = ["sh", "${terramate.root.path.fs.absolute}/tool", "apply"]
  destroy = ["sh", "${terramate.root.path.fs.absolute}/tool", "destroy"]
  outputs = ["sh", "${terramate.root.path.fs.absolute}/tool", "outputs"]
  backend = "place ${terramate.stack.name} ${terramate.stack.generation}"

  may_replace = true
}

driver "unasked" {
  apply   = ["sh", "-c", "echo blind > $ORCH_ROOT/../world/$ORCH_STACK_NAME"]
  destroy = ["sh", "${terramate.root.path.fs.absolute}/tool", "destroy", "${terramate.stack.name} ${tm_try(each.key, "")}"]
}

driver "lasting" {
  plan  = ["sh", "${terramate.root.path.fs.absolute}/tool", "plan"]
  apply = ["sh", "${terramate.root.path.fs.absolute}/tool", "apply"]
}
"#;

pub(crate) const STATE: &str =
    "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";

pub(crate) const DOCUMENT: &str = "/.orch/state/default.json";

/// The flags that approve everything.
pub(crate) const APPROVED: &str = "--auto-approve --allow-destroy=9";

/// The files of a project with these stacks: each with the lines of its block. A stack wants `1`.
pub(crate) fn prepared(stacks: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.write("/drivers.orch.hcl", DRIVERS);
    sandbox.write("/state.orch.hcl", STATE);
    let outside = sandbox.outside().to_string_lossy().into_owned();
    sandbox.write("/tool", TOOL.replace("OUTSIDE", &outside));
    for directory in ["world", "hooks"] {
        fs::create_dir(sandbox.outside().join(directory)).unwrap();
    }
    for (path, lines) in stacks {
        declare(&sandbox, path, lines);
        sandbox.write(&format!("{path}/want"), "1");
    }
    sandbox
}

/// A project with a state, and with everything applied.
pub(crate) fn applied(stacks: &[(&str, &str)]) -> Repository {
    applied_of(prepared(stacks))
}

/// The same of files.
pub(crate) fn applied_of(sandbox: Sandbox) -> Repository {
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    done(&repository, "apply --auto-approve");
    forget_log(&repository);
    repository
}

/// Writes the block of a stack.
pub(crate) fn declare(sandbox: &Sandbox, path: &str, lines: &str) {
    let block = format!("stack {{\n  {lines}\n}}\n");
    sandbox.write(&format!("{path}/stack.orch.hcl"), block);
}

/// Writes what a stack wants.
pub(crate) fn want(sandbox: &Sandbox, path: &str, wanted: &str) {
    sandbox.write(&format!("{path}/want"), wanted);
}

/// Removes directories, and commits that; returns the first characters of the commit.
#[track_caller]
pub(crate) fn remove(repository: &Repository, directories: &str) -> String {
    repository.git(&format!("rm -q -r {directories}"));
    repository.git(&format!("commit -q -m 'without {directories}'"));
    repository.git("rev-parse --short=7 HEAD").trim().to_owned()
}

/// Returns HEAD.
pub(crate) fn head(repository: &Repository) -> String {
    repository.git("rev-parse HEAD").trim().to_owned()
}

fn hook_path(sandbox: &Sandbox, step: &str, name: &str) -> PathBuf {
    let hooks = sandbox.outside().join("hooks");
    hooks.join(format!("{step}-{name}"))
}

/// Writes what a step of a stack does first.
pub(crate) fn hook(sandbox: &Sandbox, step: &str, name: &str, script: &str) {
    fs::write(hook_path(sandbox, step, name), script).unwrap();
}

/// Removes it.
pub(crate) fn unhook(sandbox: &Sandbox, step: &str, name: &str) {
    fs::remove_file(hook_path(sandbox, step, name)).unwrap();
}

pub(crate) fn taken(sandbox: &Sandbox, name: &str) -> Vec<String> {
    let path = sandbox.outside().join(name);
    let text = fs::read_to_string(&path).unwrap_or_default();
    _ = fs::remove_file(path);
    text.lines().map(str::to_owned).collect()
}

/// Returns the steps that have run since the last look: each with its stack.
pub(crate) fn log(sandbox: &Sandbox) -> Vec<String> {
    taken(sandbox, "log")
}

/// Returns the same with all that a step can tell.
pub(crate) fn details(sandbox: &Sandbox) -> Vec<String> {
    taken(sandbox, "details")
}

pub(crate) fn forget_log(sandbox: &Sandbox) {
    log(sandbox);
    details(sandbox);
}

/// Returns the same without `plan` and `outputs`: what has been changed.
pub(crate) fn acts(sandbox: &Sandbox) -> Vec<String> {
    let mut all = log(sandbox);
    all.retain(|step| step.starts_with("apply") || step.starts_with("destroy"));
    all
}

/// Returns what exists, by name.
pub(crate) fn world(sandbox: &Sandbox) -> Vec<String> {
    let files = fs::read_dir(sandbox.outside().join("world")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Makes a thing of the world vanish.
pub(crate) fn vanish(sandbox: &Sandbox, name: &str) {
    fs::remove_file(sandbox.outside().join("world").join(name)).unwrap();
}

/// Runs `orch`, which succeeds, and returns all that it says.
#[track_caller]
pub(crate) fn done(sandbox: &Sandbox, arguments: &str) -> String {
    let output = sandbox.orch(arguments);
    assert_eq!(output.code(), 0, "{output}");
    output.to_string()
}

/// Runs an apply that leaves stacks blocked, and returns all that it says.
#[track_caller]
pub(crate) fn leaves_blocked(sandbox: &Sandbox, arguments: &str) -> String {
    fails(sandbox, arguments, 4, "blocked and left unchanged")
}

/// Runs `orch`, which ends with this status and says this on stderr; returns all that it says.
#[track_caller]
pub(crate) fn fails(sandbox: &Sandbox, arguments: &str, code: i32, said: &str) -> String {
    let output = sandbox.orch(arguments);
    assert_eq!(output.code(), code, "{output}");
    assert!(output.stderr.contains(said), "{said}: {output}");
    output.to_string()
}

/// Returns what is recorded of a stack.
pub(crate) fn entry(sandbox: &Sandbox, key: &str) -> Value {
    let document: Value = serde_json::from_str(&sandbox.read(DOCUMENT)).unwrap();
    document["stacks"][key].clone()
}

/// Returns the keys that are recorded.
pub(crate) fn keys(sandbox: &Sandbox) -> Vec<String> {
    let document: Value = serde_json::from_str(&sandbox.read(DOCUMENT)).unwrap();
    document["stacks"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect()
}

/// Changes what is recorded of a stack.
pub(crate) fn change_entry(sandbox: &Sandbox, key: &str, change: impl FnOnce(&mut Value)) {
    let mut document: Value = serde_json::from_str(&sandbox.read(DOCUMENT)).unwrap();
    change(&mut document["stacks"][key]);
    sandbox.write(DOCUMENT, document.to_string());
}

/// Returns the plan: what is done with each stack with which something is done or that is blocked, and with
/// `=` what has another path recorded.
#[track_caller]
pub(crate) fn planned(sandbox: &Sandbox, arguments: &str) -> Vec<String> {
    let plan = sandbox.orch(&format!("plan --format json {arguments}"));
    let plan = plan.json();
    let entries = plan["stacks"].as_array().unwrap().iter();
    let line = |entry: &Value| {
        let path = entry["path"].as_str().unwrap();
        if let Some(why) = entry["blocked"].as_str() {
            return Some(format!("{path} blocked: {why}"));
        }
        let actions: Vec<&str> = entry["actions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap())
            .collect();
        let action = actions.join(" ");
        match entry["previous_path"].as_str() {
            Some(previous) => Some(format!("{path} = {previous} {action}")),
            None => Some(format!("{path} {action}")).filter(|_| action != "no-op"),
        }
    };
    entries.filter_map(line).collect()
}

/// Returns the operations of a plan in order: `~` for what is brought forward, `-` for what is destroyed.
#[track_caller]
pub(crate) fn operations(sandbox: &Sandbox, arguments: &str) -> Vec<String> {
    let plan = sandbox.orch(&format!("plan --format json {arguments}"));
    let plan = plan.json();
    let all = plan["operations"].as_array().unwrap().iter();
    let operation = |it: &Value| {
        let sign = if it["operation"] == "destroy" {
            "-"
        } else {
            "~"
        };
        format!("{sign}{}", it["path"].as_str().unwrap())
    };
    all.map(operation).collect()
}

/// Returns the commits that are checked out besides the working tree, as far as anything is left of them: the
/// folders, and what git knows.
pub(crate) fn checkouts(repository: &Repository) -> Vec<String> {
    let place = repository.path("/.orch/worktrees");
    let folders = fs::read_dir(place).into_iter().flatten().flatten();
    let folders = folders.map(|it| it.file_name().to_string_lossy().into_owned());
    let known = repository.git("worktree list --porcelain");
    let known = known
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "));
    folders.chain(known.skip(1).map(str::to_owned)).collect()
}

/// Asserts that neither checkouts nor plans nor locks are left.
#[track_caller]
pub(crate) fn assert_tidy(repository: &Repository) {
    assert_eq!(checkouts(repository), [""; 0], "checkouts are left");
    let plans = fs::read_dir(repository.path("/.orch/plans"));
    assert_eq!(plans.map_or(0, Iterator::count), 0, "plans are left");
    let document: Value = serde_json::from_str(&repository.read(DOCUMENT)).unwrap();
    assert_eq!(document["lock"], Value::Null, "{document}");
}
