//! The runs of work orders, whose jobs ran on any machine: their results are in the store of the state, or the engine
//! has handed them on.

use jiff::Timestamp;

use crate::context::{Context, from_store};
use crate::error::{Error, ErrorContext as _, Result};
use crate::folder::GuardedFolder;
use crate::record::journal::{Event, Header, Liveness, RunStatus, Runs};
use crate::record::results::{
    LocalResults, MergeFacts, OpenTurn, RunCopy, StoredOrder, TurnResult,
};
use crate::state::backend::Backend;
use crate::state::document::Document;
use crate::state::results::ResultFiles;

impl Context {
    /// Brings the runs of work orders to this machine: all, or those whose id begins or ends with a text.
    ///
    /// # Errors
    ///
    /// If the store cannot be read, or the runs cannot be written.
    pub fn fetch_order_runs(&mut self, wanted: Option<&str>) -> Result<()> {
        let Some(store) = self.results_store()? else {
            return Ok(());
        };
        let orders = store.orders().map_err(from_store)?;
        let wanted = wanted.map(str::to_ascii_lowercase);
        let here = self.runs();
        let mut document = None;
        let is_wanted = |run: &&String| match (&wanted, &here) {
            (Some(wanted), _) => run.starts_with(wanted) || run.ends_with(wanted),
            (None, Some(here)) => !here.is_outdated(run),
            (None, None) => true,
        };
        for run in orders.iter().filter(is_wanted) {
            // Follow-ups may have run since.
            let done = here.as_ref().and_then(|here| done(here, run));
            if done.is_none_or(|it| it.policies.is_some()) {
                self.fetch_from(&store, run, &mut document)?;
            }
        }
        Ok(())
    }

    /// Brings the run of a work order to this machine, as far as its jobs have sent results. Returns whether there are
    /// any.
    ///
    /// # Errors
    ///
    /// If the store cannot be read, or the run cannot be written.
    pub fn fetch_order_run(&mut self, run: &str) -> Result<bool> {
        match self.results_store()? {
            Some(_) if self.runs().is_some_and(|here| done(&here, run).is_some()) => Ok(true),
            Some(store) => Ok(self.fetch_from(&store, run, &mut None)?.is_some()),
            None => Ok(false),
        }
    }

    /// Does the same with a store, even if nothing can change but the answers of policies. Returns the files in the
    /// store, if there are any. `document` is the state, which is read once: after the order was found in the store.
    pub(super) fn fetch_from(
        &mut self,
        store: &Backend,
        run: &str,
        document: &mut Option<Document>,
    ) -> Result<Option<ResultFiles>> {
        let damaged = || damaged(run);
        let Some(order) = store.order(run).map_err(from_store)? else {
            return Ok(None);
        };
        let order = StoredOrder::parse(&order).context(damaged())?;
        // Before the results: a job sends them before it gives back the lock.
        let of_state = if order.outline.is_recorded {
            let document = match document {
                Some(document) => document,
                None => document.insert(self.opened()?.read_once()?),
            };
            Some(facts(document, run))
        } else {
            None
        };
        let files = store.result_files(run).map_err(from_store)?;
        let mut facts = of_state.unwrap_or_else(|| MergeFacts {
            has_ended: files.has_end(),
            open: killed(&files, &order),
        });
        let folder = GuardedFolder::create(&self.project.root).map_err(Error::external)?;
        let local = LocalResults::open(folder, run).map_err(Error::external)?;
        let read = |names: Vec<String>| read(&local, store, &order, names);
        let results = read(files.results())?;
        let answers = match order.outline.policies {
            Some(_) => read(files.answers())?,
            None => Vec::new(),
        };
        if order.outline.is_recorded {
            facts.open.retain(|open| !has_ended_since(&results, open));
        }
        local
            .write(&order, results, answers, &facts)
            .map_err(Error::external)?;
        let missing: Vec<(&str, &str)> = files.runs().filter(|(run, _)| !local.has(run)).collect();
        let names: Vec<String> = missing.iter().map(|(_, file)| (*file).to_owned()).collect();
        let copies = store.read_results(run, &names).map_err(from_store)?;
        for ((follow_ups, _), copy) in missing.into_iter().zip(copies) {
            let copy = copy.map(|bytes| RunCopy::parse(&bytes)).transpose();
            if let Some(copy) = copy.context(damaged())? {
                local.add(follow_ups, &copy).map_err(Error::external)?;
            }
        }
        Ok(Some(files))
    }

    /// Refuses to end a work order while a job of it, or a command of a killed one, runs in this checkout.
    ///
    /// # Errors
    ///
    /// Also if that is unknown.
    pub fn check_jobs_ended(&self, order: &str) -> Result<()> {
        let failed = "failed to look for running jobs";
        let folder = GuardedFolder::find(&self.project.root).context(failed)?;
        let runs = folder.map(Runs::find).transpose().context(failed)?;
        let is_other = |it: &Header| !it.is_job() || it.part_of.as_deref() != Some(order);
        let running = runs.as_ref().and_then(|runs| runs.in_progress(is_other));
        let Some((run, liveness)) = running else {
            return Ok(());
        };
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
        Err(Error::refused(problem).hint(hint))
    }

    /// Marks a work order as ended that does not lock the state.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub fn end_order(&mut self, run: &str) -> Result<()> {
        match self.results_store()? {
            Some(store) => store.put_end(run).map_err(from_store),
            None => Ok(()),
        }
    }

    /// Returns the runs on this machine; `None` if there are none, or they cannot be read.
    fn runs(&self) -> Option<Runs> {
        let folder = GuardedFolder::find(&self.project.root).ok().flatten()?;
        Runs::find(folder).ok()
    }
}

/// Returns the header of a run all of whose turns have succeeded, as far as this machine knows: then nothing can change
/// but the answers of policies, and follow-ups.
fn done(here: &Runs, run: &str) -> Option<Header> {
    let brief = here.brief(run).ok()?;
    // A replaced stack may only be destroyed while the run is unfinished.
    let is_done = brief.header.is_of_work_order()
        && brief.state == RunStatus::Succeeded
        && brief.counts.succeeded == brief.stacks;
    is_done.then_some(brief.header)
}

fn damaged(run: &str) -> String {
    format!("failed to read the results of run {run}")
}

/// Reads results by the names of their files, those that are not on this machine from the store. Returns those of turns
/// of the work order.
fn read(
    local: &LocalResults,
    store: &Backend,
    order: &StoredOrder,
    names: Vec<String>,
) -> Result<Vec<(String, TurnResult)>> {
    let run = &order.outline.run;
    let find = |name: String| {
        let found = local.find(&name).map_err(Error::external)?;
        Ok((name, found))
    };
    let all = names.into_iter().map(find);
    let mut all: Vec<(String, Option<TurnResult>)> = all.collect::<Result<_>>()?;
    let missing = all.iter().filter(|(_, result)| result.is_none());
    let missing: Vec<String> = missing.map(|(name, _)| name.clone()).collect();
    let read = store.read_results(run, &missing).map_err(from_store)?;
    let missing = all.iter_mut().filter(|(_, result)| result.is_none());
    for ((_, result), bytes) in missing.zip(read) {
        let parsed = bytes.map(|bytes| TurnResult::parse(&bytes)).transpose();
        *result = parsed.context(damaged(run))?;
    }
    let all = all.into_iter().filter_map(|(name, it)| Some((name, it?)));
    let n_turns = order.outline.turns.len();
    Ok(all.filter(|(_, it)| it.turn < n_turns).collect())
}

/// Returns the turns whose latest attempt has begun and has no result.
fn killed(files: &ResultFiles, order: &StoredOrder) -> Vec<OpenTurn> {
    let killed = files.latest().killed.into_iter();
    let open = killed.filter_map(|(turn, start)| {
        Some(OpenTurn {
            stack: order.outline.turns.get(turn)?.stack.clone(),
            since: Timestamp::from_second(i64::from(start.attempt))
                .expect("every u32 of seconds is a timestamp"),
        })
    });
    open.collect()
}

/// Returns what the state knows of the run of a work order that locks it.
fn facts(document: &Document, run: &str) -> MergeFacts {
    let lock = document.lock.as_ref().filter(|lock| lock.run == run);
    let Some(shared) = lock.and_then(|lock| lock.shared.as_ref()) else {
        return MergeFacts {
            has_ended: true,
            open: Vec::new(),
        };
    };
    let intents = document.stacks.iter().filter_map(|(stack, entry)| {
        let intent = entry.intent.as_ref()?;
        let is_of_order = shared.runs.contains(&intent.run);
        is_of_order.then(|| OpenTurn {
            stack: stack.clone(),
            since: intent.since,
        })
    });
    MergeFacts {
        has_ended: false,
        open: intents.collect(),
    }
}

/// Returns whether a turn that seemed open has ended meanwhile.
fn has_ended_since(results: &[(String, TurnResult)], open: &OpenTurn) -> bool {
    let lines = results.iter().flat_map(|(_, result)| &result.lines);
    let mut ends = lines.filter(|line| line.at >= open.since);
    ends.any(|line| matches!(&line.event, Event::Ended(ended) if ended.stack == open.stack))
}
