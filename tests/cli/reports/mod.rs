//! `orch run --report`, `orch runs report` and `orch run --events`.

mod browser;
mod events;
mod files;
mod formats;
mod hostile;
mod html;
mod json;

use serde_json::Value;

use crate::support::Sandbox;

/// If all these stacks run `SCRIPT` and dependents are skipped, one succeeds with changes, one without
/// changes, one fails, one is skipped, and one succeeds without mentioning changes.
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

/// Flags of a run in which each stack has a different outcome, with the sandbox's `terraform`.
pub(super) const RUN: &str = "run -q --output none --on-error skip-dependents";

/// The command of that run.
pub(super) const PLAN: &str = "-- ../bin/terraform plan";

/// A file outside the project, as data.
pub(super) fn read_json(sandbox: &Sandbox, name: &str) -> Value {
    serde_json::from_str(&read(sandbox, name)).unwrap()
}

/// A file outside the project.
pub(super) fn read(sandbox: &Sandbox, name: &str) -> String {
    std::fs::read_to_string(sandbox.outside().join(name)).unwrap()
}
