//! Stacks with several instances: `for_each`.

#[cfg(unix)]
mod changed; // which instances change, are added and removed
