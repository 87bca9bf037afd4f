//! Trigger policies: Rego files that say what follows a finished turn.

pub(crate) mod command_graph; // `orch policy graph`, `schema` and `samples`
mod command_tests; // `orch policy test`
#[cfg(unix)]
mod followed; // `orch run --policies`
#[cfg(unix)]
mod followed_example; // the bundled example of it
#[cfg(unix)]
mod halted; // runs that are ended from outside
mod hostile; // policies that mean harm: what they are refused, and what they cost
#[cfg(unix)]
mod linted; // what is valid, but hardly meant
mod loaded; // which policies load, what they are attached to, and what they answer
mod meaning; // what policies answer where the interpreter alone answers something else
#[cfg(unix)]
mod modelled; // random workflows, against a naive model
mod modules; // what `module` blocks may say, and where
#[cfg(unix)]
mod on_record; // what they are told of the state
#[cfg(unix)]
mod released_example; // the bundled example of it
#[cfg(unix)]
mod releases; // `--released`
#[cfg(unix)]
mod reported; // reports of such runs
#[cfg(unix)]
pub(crate) mod resumed; // `orch run --resume` where policies follow
#[cfg(unix)]
mod told; // what policies are told of a run
#[cfg(unix)]
mod walks; // random workflows
mod worker; // the process in which they are evaluated
