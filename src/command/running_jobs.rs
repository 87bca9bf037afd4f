//! The jobs of a work order that are still running: `orch finish` waits for them, and a job for its own earlier run.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::job::code;
use crate::context::{Context, from_lock, from_store};
use crate::duration::local_time;
use crate::error::{Error, ErrorContext as _, Result};
use crate::export::{OrderedJob, WorkOrder};
use crate::folder::GuardedFolder;
use crate::notice::Notices;
use crate::printable::printable;
use crate::record::journal::{Header, Liveness, RunLock, Runs};
use crate::state::backend::Backend;
use crate::state::clock::SystemClock;
use crate::state::job_lease::{JobLease, LeaseAttempt, RunningJob};
use crate::state::lock::{LockError, UnlockError, Unlocking, heard, unlock};

const WAITING: &str = "waiting for the jobs of the work order to end";

const UNTIL_KILLED: &str = "wait until it has ended, or 2m if it was killed";

/// How often to look whether they have ended.
const INTERVAL: Duration = Duration::from_millis(500);

/// Looks again while something runs, for as long as `wait`. Returns what it saw last. `note` is called before it waits.
fn await_end<T>(
    wait: Duration,
    mut look: impl FnMut() -> T,
    is_running: impl Fn(&T) -> bool,
    note: impl FnOnce(&T),
) -> T {
    let begun = Instant::now();
    let mut seen = look();
    if is_running(&seen) && !wait.is_zero() {
        note(&seen);
    }
    while is_running(&seen) && begun.elapsed() < wait {
        thread::sleep(INTERVAL);
        seen = look();
    }
    seen
}

/// Waits for the runs in this checkout that a job cannot run beside: an earlier run of it, also while only its commands
/// are left, and runs outside of its work order. Returns the time that is left.
pub fn await_others(
    root: &Path,
    notices: &Notices,
    order: &WorkOrder,
    job: &OrderedJob,
    wait: Duration,
) -> Duration {
    let begun = Instant::now();
    let own = job
        .turns
        .iter()
        .map(|&turn| order.turns[turn].stack.as_str());
    let own: BTreeSet<&str> = own.collect();
    let is_beside = |it: &Header| {
        let has_common = it.order.iter().any(|stack| own.contains(stack.as_str()));
        is_job_of(it, &order.run) && !has_common
    };
    let note = |run: &str| {
        let run = printable(run);
        notices.note(&format!("waiting for run {run} and its commands to end"));
    };
    let look = || match running(root, is_beside) {
        Ok(None) => Ok(outlived(root)),
        found => found,
    };
    // The job looks again when it begins, and is refused if a run is left or unknown.
    _ = await_end(
        wait,
        look,
        |seen| matches!(seen, Ok(Some(_))),
        |seen| seen.iter().flatten().for_each(|(run, _)| note(run)),
    );
    wait.saturating_sub(begun.elapsed())
}

fn is_job_of(run: &Header, order: &str) -> bool {
    run.is_job() && run.part_of.as_deref() == Some(order)
}

/// Returns a run that may be in progress in this checkout, ignoring some.
fn running(
    root: &Path,
    is_ignored: impl Fn(&Header) -> bool,
) -> Result<Option<(String, Liveness)>> {
    let failed = "failed to look for running jobs";
    let folder = GuardedFolder::find(root).context(failed)?;
    let runs = folder.map(Runs::find).transpose().context(failed)?;
    let running = runs.as_ref().and_then(|runs| runs.in_progress(is_ignored));
    Ok(running.map(|(run, liveness)| (run.to_owned(), liveness)))
}

/// Returns a killed run, other than a job, whose commands still hold its lock.
fn outlived(root: &Path) -> Option<(String, Liveness)> {
    let folder = GuardedFolder::find(root).ok()??;
    RunLock::held_by(&folder).map(|run| (run, Liveness::Outlived))
}

/// Describes a job that may be running on any machine.
fn elsewhere(what: &str, running: &RunningJob) -> Error {
    let host = printable(&running.host);
    let heard = heard(running.silence, Timestamp::now());
    let heard = heard.map_or_else(String::new, |heard| {
        format!(", last heartbeat at {}", local_time(heard))
    });
    Error::refused(format!("{what} may still be in progress on {host}{heard}"))
}

/// Returns the error that a job of a work order may be running in this checkout.
fn still_running(run: &str, liveness: Liveness) -> Error {
    let problem = match liveness {
        Liveness::Outlived => format!(
            "orch was killed during run {run}, a job of the work order, but a process that it started is still running"
        ),
        Liveness::Unknown => {
            format!("run {run}, which may be a job of the work order, may still be in progress")
        }
        Liveness::Alive | Liveness::Gone => {
            format!("run {run}, a job of the work order, is still in progress")
        }
    };
    let fix = if liveness == Liveness::Unknown {
        format!(
            "make `.orch/runs/{run}/journal.jsonl` readable, or remove `.orch/runs/{run}` if that run has ended"
        )
    } else {
        "wait until it has ended".to_owned()
    };
    let hint = format!("{fix}, then run `orch finish` again");
    Error::refused(problem).hint(hint)
}

impl Context {
    /// Takes the lease of a job whose command the state does not record. `None` if no other machine sees the results.
    ///
    /// # Errors
    ///
    /// If another run of the job may still be in progress after `wait`, or the store fails.
    pub fn lease(
        &self,
        order: &WorkOrder,
        job: &OrderedJob,
        wait: Duration,
    ) -> Result<Option<JobLease>> {
        let number = order.jobs.iter().position(|it| it.id == job.id);
        let number = number.context("the job is in its work order")?;
        let take = || match self.shared_results()? {
            Some(store) => store
                .take_lease(&order.run, number)
                .map(Some)
                .map_err(from_store),
            None => Ok(None),
        };
        let taken = await_end(
            wait,
            take,
            |seen| matches!(seen, Ok(Some(LeaseAttempt::Held(_)))),
            |_| {
                self.notices
                    .note("waiting for another run of this job to end");
            },
        );
        match taken? {
            None => Ok(None),
            Some(LeaseAttempt::Taken(lease)) => Ok(Some(lease)),
            Some(LeaseAttempt::Held(running)) => {
                let problem = elsewhere("another run of the job", &running);
                Err(problem.hint(format!("{UNTIL_KILLED}, then run the job again")))
            }
        }
    }

    /// Opens the store with the results of work orders if other machines see it.
    fn shared_results(&self) -> Result<Option<Backend>> {
        if self.has_results() && !self.hands_results_on()? {
            self.results_store()
        } else {
            Ok(None)
        }
    }

    /// Refuses to end a work order while a job of it, or a command of a killed one, runs in this checkout after `wait`,
    /// or a job that the state does not record runs on another machine.
    ///
    /// # Errors
    ///
    /// Also if that is unknown.
    pub fn check_jobs_ended(&self, order: &str, wait: Duration) -> Result<()> {
        let begun = Instant::now();
        let root = &self.project.root;
        let running = await_end(
            wait,
            || running(root, |it| !is_job_of(it, order)),
            |seen| matches!(seen, Ok(Some(_))),
            |_| self.notices.note(WAITING),
        );
        let Some((run, liveness)) = running? else {
            return self.check_leases(order, wait.saturating_sub(begun.elapsed()));
        };
        Err(still_running(&run, liveness))
    }

    fn check_leases(&self, order: &str, wait: Duration) -> Result<()> {
        let Some(store) = self.shared_results()? else {
            return Ok(());
        };
        let running = await_end(
            wait,
            || store.running_job(order),
            |seen| matches!(seen, Ok(Some(_))),
            |_| self.notices.note(WAITING),
        );
        let Some(running) = running.map_err(from_store)? else {
            return Ok(());
        };
        let problem = elsewhere("a job of the work order", &running);
        Err(problem.hint(format!("{UNTIL_KILLED}, then run `orch finish` again")))
    }

    /// Frees the lock of a work order whose jobs have ended.
    ///
    /// # Errors
    ///
    /// If a job may still be running after `wait`, or a command of a killed one in this checkout; the order locked the
    /// state with another secret; or the state cannot be read or written.
    pub fn free_order(&mut self, order: &WorkOrder, secret: &str, wait: Duration) -> Result<()> {
        let notices = self.notices.clone();
        let root = self.project.root.clone();
        let opened = self.opened()?;
        let clock = SystemClock::default();
        let free = || {
            let here = running(&root, |it| !is_job_of(it, &order.run))?;
            let unlocking = Unlocking {
                code: code(order, secret),
                force: false,
                reason: None,
                // Only the secret is checked.
                dry_run: here.is_some(),
            };
            let unlocked = unlock(&opened.backend, &unlocking, &opened.author, &clock);
            let unlocked = match unlocked {
                Err(UnlockError::WrongCode(held)) => match held.lock {
                    Some(lock) if lock.run == order.run => {
                        return Err(from_lock(LockError::OtherSecret(Box::new(lock))));
                    }
                    // The order never had it.
                    _ => Ok(()),
                },
                // Or the last job has freed it.
                Ok(_) | Err(UnlockError::NotLocked) => Ok(()),
                Err(error) => Err(error),
            };
            Ok((here, unlocked))
        };
        let (here, unlocked) = await_end(
            wait,
            free,
            |seen| match seen {
                Ok((here, unlocked)) => {
                    here.is_some() || matches!(unlocked, Err(UnlockError::Alive(_)))
                }
                Err(_) => false,
            },
            |_| notices.note(WAITING),
        )?;
        if let Some((run, liveness)) = here {
            return Err(still_running(&run, liveness));
        }
        unlocked.map_err(|error| match error {
            UnlockError::Lock(error) => from_lock(error),
            UnlockError::Damaged(lock, damage) => from_lock(LockError::Damaged(lock, damage)),
            UnlockError::Alive(_) | UnlockError::WrongCode(_) | UnlockError::NotLocked => {
                Error::refused(
                    "a job of the work order may still be running: its last heartbeat is recent",
                )
                .hint("wait until it has ended, then run `orch finish` again")
            }
        })
    }
}
