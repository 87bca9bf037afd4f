//! `orch run --report`, `orch runs report`, and `orch run --events`: what happened, for others.

mod events;
mod files;
mod formats;
mod hostile;
mod html;
mod json;

use serde_json::Value;

use crate::support::Sandbox;

/// Stacks of which, if all run `SCRIPT` and dependents are skipped, one each succeeds with changes,
/// without, fails and is skipped, and one more says nothing of changes.
pub(super) fn mixed() -> Sandbox {
    let sandbox = Sandbox::layout(
        "
        changed
        fails
        skipped after /fails
        succeeds
        unchanged",
    );
    sandbox.write_program("/bin/terraform", SCRIPT);
    sandbox
}

const SCRIPT: &str = r#"#!/bin/sh
case $ORCH_STACK_PATH in
  /changed) echo "Plan: 3 to add, 1 to change, 0 to destroy." ;;
  /fails) echo "about to fail"; echo "no such bucket" >&2; exit 3 ;;
  /unchanged) echo "No changes. Your infrastructure matches the configuration." ;;
esac
"#;

/// Flags of a run in which everything has its outcome, with `terraform` of the sandbox.
pub(super) const RUN: &str = "run -q --output none --on-error skip-dependents";

/// The command of it.
pub(super) const PLAN: &str = "-- ../bin/terraform plan";

/// A file outside of the project, as data.
pub(super) fn read_json(sandbox: &Sandbox, name: &str) -> Value {
    serde_json::from_str(&read(sandbox, name)).unwrap()
}

/// A file outside of the project.
pub(super) fn read(sandbox: &Sandbox, name: &str) -> String {
    std::fs::read_to_string(sandbox.outside().join(name)).unwrap()
}
