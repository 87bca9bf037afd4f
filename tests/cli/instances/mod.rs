//! Stacks with several instances: `for_each`.

#[cfg(unix)]
mod changed; // which instances change, are added and removed
mod declared; // what `for_each` may be, and what it may not
mod listed; // lists, graphs, globs, the current directory
mod references; // what references to instances name, and the order that they make
#[cfg(unix)]
mod run; // commands, their environment, and what is recorded of them
#[cfg(unix)]
mod triggers; // triggers for directories and for instances
mod why; // `orch why` for one instance, and for all in a directory
mod written; // how instances are named on the command line

use crate::support::Sandbox;

/// Accounts and networks, each with the same keys, and an application after all networks.
const NETWORKS: &str = r#"
//- /account/stack.orch.hcl
stack {
  for_each = ["dev", "prod"]
  tags     = [each.key]
}
//- /net/stack.orch.hcl
stack {
  for_each = { dev = "eu-west-1", prod = "eu-north-1" }
  name     = "network ${each.key}"
  tags     = [each.key, "net"]
  after    = ["/account[\"${each.key}\"]"]
}
//- /net/dns/stack.orch.hcl
stack {
  for_each = ["dev", "test"]
}
//- /app/stack.tm
stack {
  after = ["/net"]
}
"#;

fn networks() -> Sandbox {
    Sandbox::new(NETWORKS)
}
