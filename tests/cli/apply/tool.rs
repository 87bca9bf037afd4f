//! A `terraform` of our own: each stack has one resource, which somebody may change by hand.

use std::fs;

use serde_json::Value;

use super::{STATE, declare, done};
use crate::support::{Repository, Sandbox};

/// What is wanted stands in the file `main.tf` of a stack, what exists in the file `real` of its folder beside the
/// project, and what the tool knows in `known`. A file of the folder `hooks` comes first, if there is one for the
/// command and the stack.
const TERRAFORM: &str = r#"#!/bin/sh
name=$ORCH_STACK_NAME
world=$ORCH_ROOT/../world/$name
mkdir -p "$world"
echo "$name: $*" >> "$ORCH_ROOT/../log"
hook=$ORCH_ROOT/../hooks/$1-$name
[ ! -e "$hook" ] || . "$hook"
real=$(cat "$world/real" 2> /dev/null)
known=$(cat "$world/known" 2> /dev/null)
changes() { printf '"%s":[{"address":"x.y","mode":"managed","change":{"actions":["%s"],"after":{},"after_sensitive":{}}}]' "$1" "$2"; }
case $1 in
init) mkdir -p .terraform ;;
plan)
  for word; do
    case $word in
    -out=*) out=${word#-out=} ;;
    -refresh-only) refreshes=1 ;;
    esac
  done
  list=
  if [ -n "$refreshes" ]; then
    if [ -n "$known" ] && [ -z "$real" ]; then
      list=$(changes resource_drift delete)
    elif [ "$known" != "$real" ]; then
      list=$(changes resource_drift update)
    fi
  elif [ -z "$real" ]; then
    list=$(changes resource_changes create)
  elif [ "$real" != "$(cat main.tf)" ]; then
    list=$(changes resource_changes update)
  fi
  prior=
  [ -z "$real" ] || prior='"prior_state":{"values":{"root_module":{"resources":[{"mode":"managed"}]}}},'
  echo "{$prior\"format_version\":\"1.2\",\"planned_values\":{}${list:+,$list}}" > "$out"
  [ -z "$list" ] || exit 2
  ;;
show)
  for word; do :; done
  if [ "$word" = -json ]; then
    printf '{"format_version":"1.0","values":{"outputs":{"id":{"sensitive":false,"value":"%s"}},"root_module":{"resources":[' "$known"
    [ -z "$known" ] || printf '{"address":"x.y","values":{"id":"%s","key":"hunter2"},"sensitive_values":{"key":true}}' "$known"
    echo ']}}}'
  else
    cat "$word"
  fi
  ;;
apply)
  for word; do :; done
  if grep -q resource_drift "$word"; then
    [ -n "$real" ] && cp "$world/real" "$world/known" || rm -f "$world/known"
  else
    cp main.tf "$world/real"
    cp main.tf "$world/known"
  fi
  ;;
output) printf '{"id":{"value":"%s"}}' "$known" ;;
esac
"#;

/// A project with these stacks, each with the lines of its block, whose state is kept; nothing is applied.
pub(super) fn project(stacks: &[(&str, &str)]) -> Repository {
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", ".terraform/\n");
    let path = "orch {\n  config {\n    run {\n      env {\n        PATH = \"${terramate.root.path.fs.absolute}/bin:${env.PATH}\"\n      }\n    }\n  }\n}\n";
    sandbox.write("/path.orch.hcl", path);
    sandbox.write_program("/bin/terraform", TERRAFORM);
    for directory in ["world", "hooks"] {
        fs::create_dir(sandbox.outside().join(directory)).unwrap();
    }
    for (path, lines) in stacks {
        declare(&sandbox, path, lines);
        sandbox.write(&format!("{path}/main.tf"), "# 1\n");
    }
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    repository
}

/// The same, with everything applied.
pub(super) fn applied(stacks: &[(&str, &str)]) -> Repository {
    let repository = project(stacks);
    done(&repository, "apply --auto-approve");
    super::log(&repository);
    repository
}

#[test]
fn apply_refuses_to_replan_if_the_backend_is_unknown() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    for stack in ["a", "b"] {
        repository.write(&format!("/{stack}/main.tf"), "# 2\n");
    }
    repository.commit();
    // `/b` is planned again after `/a`.
    let damage = "echo { > ../b/.terraform/terraform.tfstate\n";
    super::hook(&repository, "apply", "a", damage);
    let why = "the backend of its tool is unknown, and the plan was made with `local b/terraform.tfstate@default`";
    super::fails(&repository, "apply --auto-approve", 1, why);
    assert_eq!(world(&repository, "b", "real").as_deref(), Some("# 1\n"));
}

#[test]
fn policies_fail_on_unreadable_plans() {
    let repository = project(&[("/a", ""), ("/b", "")]);
    let policy = "package list\ntrigger[\"/b\"] { count(input.run.changes) == 0; input.stack.id == \"/a\" }\n";
    super::followed::attach(&repository, "list", policy);
    repository.commit();
    let damage = "for word; do :; done\necho nonsense > \"${word%/*}/show.json\"\n";
    super::hook(&repository, "apply", "a", damage);
    let output = repository.orch("apply --auto-approve --match a");
    let problem = "the planned changes are unknown: the output of `show -json` is not a plan";
    assert!(output.to_string().contains(problem), "{output}");
    assert_ne!(output.code(), 0, "{output}");
    assert_eq!(world(&repository, "b", "real"), None);
}

#[test]
fn policies_see_values_after_the_apply_and_only_they_cost_a_command() {
    let repository = project(&[("/a", ""), ("/b", "")]);
    let policy = r#"
package keep
import rego.v1
flag contains flag if {
    some change in input.run.changes
    flag := sprintf("%s %s", [change.phase, json.marshal(change.entity.data)])
}
"#;
    repository.write("/a/keep.rego", policy);
    let block = "policy \"trigger\" \"keep\" { file = \"keep.rego\" }\n";
    repository.write("/a/keep.orch.hcl", block);
    repository.commit();
    let said = done(&repository, "apply --auto-approve");
    let states = |name: &str| {
        let line = format!("{name}: show -json");
        super::log(&repository)
            .iter()
            .filter(|it| **it == line)
            .count()
    };
    assert_eq!(states("a"), 1, "{said}");
    assert_eq!(states("b"), 0);
    let shown = repository.orch("runs show --format json").to_string();
    let of_apply = r##"apply {\"id\":\"# 1\",\"key\":\"(sensitive)\",\"values\":{\"id\":\"# 1\",\"key\":\"(sensitive)\"}}"##;
    assert!(shown.contains(of_apply), "{shown}");
    assert!(shown.contains(r#"plan {\"values\":{}}"#), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
    // The stack was applied, even if its values are unknown.
    repository.write("/a/main.tf", "# 2\n");
    repository.commit();
    let no_state = "for word; do :; done\n[ \"$word\" != -json ] || exit 3\n";
    super::hook(&repository, "show", "a", no_state);
    let output = repository.orch("apply --auto-approve");
    let problem = "the applied changes are unknown: the output of `show -json` is not a state";
    assert!(output.to_string().contains(problem), "{output}");
    assert_eq!(output.code(), 1, "{output}");
    assert_eq!(recorded(&repository, "/a")["last"]["outcome"], "succeeded");
}

/// What exists of a stack, or what the tool knows of it: `real`, `known`.
pub(super) fn world(sandbox: &Sandbox, stack: &str, what: &str) -> Option<String> {
    let place = sandbox.outside().join("world").join(stack).join(what);
    fs::read_to_string(place).ok()
}

/// Changes by hand what exists of a stack; nothing removes it.
pub(super) fn by_hand(sandbox: &Sandbox, stack: &str, content: Option<&str>) {
    let place = sandbox.outside().join("world").join(stack).join("real");
    match content {
        Some(content) => fs::write(place, content).unwrap(),
        None => fs::remove_file(place).unwrap(),
    }
}

/// Returns what is recorded of a stack.
pub(super) fn recorded(sandbox: &Sandbox, stack: &str) -> Value {
    super::entry(sandbox, stack)
}
