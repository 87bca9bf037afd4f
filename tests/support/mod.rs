//! What the tests share: a project on disk, git, `orch` with nothing of the host around it, and what
//! is taken out of its output so that it can be compared.
//!
//! No test lives here, and nothing here knows what a test is about.

#[cfg(unix)]
mod background;
mod bucket;
mod changed;
pub(crate) mod git;
pub(crate) mod host;
mod output;
mod plan_file;
mod record;
mod redact;
mod remote;
mod repository;
mod sandbox;

#[cfg(unix)]
pub(crate) use self::background::{Background, answered_after, in_shell};
pub(crate) use self::bucket::{BucketServer, Dialect, Lost};
pub(crate) use self::changed::{changed, commit, project, why, why_changed};
#[cfg(unix)]
pub(crate) use self::host::ended;
pub(crate) use self::host::{at_once, opened, orch_program, skipped, wait_until};
pub(crate) use self::output::Output;
pub(crate) use self::plan_file::{forge_plan, plan_contents};
pub(crate) use self::record::{is_free, journal, journal_of, run_ids, said};
pub(crate) use self::redact::redact_runs;
pub(crate) use self::remote::{Checkout, Repositories};
pub(crate) use self::repository::{Repository, without_base};
pub(crate) use self::sandbox::Sandbox;
