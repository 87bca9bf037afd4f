//! `orch plan`, and the drivers that it asks.

mod asked;
mod checkouts;
mod destroyed;
mod drivers;
mod fetched;
mod hostile;
mod json;
mod markdown;
mod remembered;
mod saved;
mod terraform;

use crate::support::Sandbox;

/// A driver whose `plan` does what the file `says` in the stack says.
const FAKE: &str = r#"
driver "fake" {
  plan        = ["sh", "./says"]
  apply       = ["true"]
  destroy     = ["true"]
  may_replace = true
}
"#;

/// A project with stacks of the driver `fake`: each with what its `plan` does.
fn project(stacks: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.write("/orch.orch.hcl", FAKE);
    for (path, says) in stacks {
        let stack = "stack {\n  driver = \"fake\"\n}\n";
        sandbox.write(&format!("{path}/stack.orch.hcl"), stack);
        sandbox.write(&format!("{path}/says"), *says);
    }
    sandbox
}
