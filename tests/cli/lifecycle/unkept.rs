//! Rules that are not carried out yet: no plan is made that they are about.

use insta::assert_snapshot;

use crate::removals::{acts, done, fails, planned, prepared};
use crate::support::Repository;

#[test]
fn stacks_with_conditions_about_outputs_are_not_planned() {
    let about = |condition: &str, kind: &str| {
        format!(
            "lifecycle {{\n    {kind} {{\n      condition = {condition}\n      error_message = \"m\"\n    }}\n  }}"
        )
    };
    let after = about("true", "postcondition");
    let of_others = about("stacks[\"/net\"].outputs.id != \"\"", "precondition");
    let repository = Repository::of(prepared(&[
        ("/app", &after),
        ("/db", &of_others),
        ("/net", ""),
    ]));
    done(&repository, "state init");
    assert_snapshot!(fails(&repository, "plan", 4, "cannot be checked"), @"
    [stderr]
    error: the `postcondition` of `/app` cannot be checked
     --> app/stack.orch.hcl:3:5
      |
    3 |     postcondition {
      |     ^^^^^^^^^^^^^ this version of orch checks only preconditions, and without outputs
      |
      = help: leave the stack out with `--exclude`, or take the condition out

    error: the `precondition` of `/db` cannot be checked
     --> db/stack.orch.hcl:3:5
      |
    3 |     precondition {
      |     ^^^^^^^^^^^^ this version of orch checks only preconditions, and without outputs
      |
      = help: leave the stack out with `--exclude`, or take the condition out

    [exit status 4]
    ");
    fails(
        &repository,
        "apply --auto-approve",
        4,
        "the `postcondition` of `/app` cannot be checked",
    );
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(
        planned(&repository, "--exclude app --exclude db"),
        ["/net create"]
    );
    // Nothing is checked of what is destroyed.
    done(&repository, "plan --destroy");
}
