//! What a built-in tool is told, with a stand-in for `terraform`.

use super::{STATE, done, fails, log};
use crate::support::{Repository, Sandbox};

/// Notes its steps with its data directory, and changes a lock file that exists when it gets ready.
const TERRAFORM: &str = r#"#!/bin/sh
data=${TF_DATA_DIR-.terraform}
echo "$1 $ORCH_STACK_PATH $data" >> "$ORCH_ROOT/../log"
for word in "$@"; do
  case $word in -out=*) file=${word#-out=} ;; esac
  last=$word
done
case $1 in
init)
  mkdir -p "$data"
  [ ! -e .terraform.lock.hcl ] || echo of this platform >> .terraform.lock.hcl
  ;;
plan)
  cp main.tf "$file"
  exit 2
  ;;
show)
  cat <<END
{"format_version":"1.2","complete":true,
 "resource_changes":[{"address":"t.r","mode":"managed","change":{"actions":["create"]}}],
 "prior_state":{"values":{"root_module":{"resources":[]}}}}
END
  ;;
apply) cp "$last" "$data/made" ;;
output) echo '{}' ;;
esac
"#;

/// Where programs are looked up, and a workspace for each instance.
const ENVIRONMENT: &str = r#"
orch {
  config {
    run {
      env {
        PATH         = "${terramate.root.path.fs.absolute}/../bin:${env.PATH}"
        TF_WORKSPACE = tm_try(each.key, null)
      }
    }
  }
}
"#;

/// A project with a stack, `/net`, and these lines in its block.
fn project(state: &str, lines: &str) -> Repository {
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", state);
    sandbox.write("/environment.orch.hcl", ENVIRONMENT);
    sandbox.write("/.gitignore", ".terraform\n");
    sandbox.write_program("/../bin/terraform", TERRAFORM);
    super::declare(&sandbox, "/net", lines);
    sandbox.write("/net/main.tf", "# wanted\n");
    sandbox.write("/net/.terraform.lock.hcl", "# committed\n");
    let repository = Repository::of(sandbox);
    if !state.is_empty() {
        done(&repository, "state init");
    }
    repository
}

#[test]
fn apply_ignores_a_lock_file_that_init_changes() {
    for state in ["", STATE] {
        let repository = project(state, "");
        let planned = repository.orch("plan -o ../saved");
        assert_eq!(planned.code(), 0, "{planned}");
        let told = "warning: planning modified the tracked file `net/.terraform.lock.hcl`";
        assert!(planned.stderr.contains(told), "{planned}");
        // Nothing more changes in it.
        let again = done(&repository, "plan -o ../saved");
        assert!(!again.contains("warning"), "{again}");
        fails(&repository, "apply ../saved", 4, "net/.terraform.lock.hcl");
        repository.git("checkout -q net");
        done(&repository, "apply ../saved");
        assert_eq!(repository.read("/net/.terraform/made"), "# wanted\n");
    }
    // The same in one go, in a checkout where nothing is initialised.
    for state in ["", STATE] {
        let repository = project(state, "");
        done(&repository, "apply --auto-approve");
        assert_eq!(repository.read("/net/.terraform/made"), "# wanted\n");
    }
}

#[test]
fn apply_refuses_a_plan_older_than_a_committed_lock_file() {
    let repository = project("", "");
    done(&repository, "plan -o ../saved");
    repository.commit();
    let said = "/net: net/.terraform.lock.hcl differs";
    fails(&repository, "apply ../saved", 4, said);
}

#[test]
fn apply_gives_each_instance_its_own_data_directory() {
    let repository = project("", "for_each = [\"blue\", \"green\"]");
    done(&repository, "plan -o ../saved");
    repository.git("checkout -q net");
    log(&repository);
    done(&repository, "apply ../saved");
    let expected: Vec<String> = ["blue", "green"]
        .iter()
        .flat_map(|key| {
            let step = move |step| format!("{step} /net[\"{key}\"] .terraform/{key}");
            ["show", "apply", "output"].map(step)
        })
        .collect();
    assert_eq!(log(&repository), expected);
    for key in ["blue", "green"] {
        let made = repository.read(&format!("/net/.terraform/{key}/made"));
        assert_eq!(made, "# wanted\n", "{key}");
    }
}
