//! The runs of work orders, whose jobs ran on any machine: their results are in the store of the state, or the engine
//! has handed them on.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::context::{Context, from_store};
use crate::error::{Error, ErrorContext as _, Result};
use crate::folder::GuardedFolder;
use crate::record::journal::{Event, Runs};
use crate::record::results::{LocalResults, MergeFacts, OpenTurn, StoredOrder, TurnResult};
use crate::state::backend::Backend;
use crate::state::document::Document;
use crate::state::store::StoreError;

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
        let is_wanted = |run: &&String| {
            let wanted = wanted.as_ref();
            wanted.is_none_or(|it| run.starts_with(it) || run.ends_with(it))
        };
        for run in orders.iter().filter(is_wanted) {
            if !self.is_done(run) {
                self.fetch_from(&store, run)?;
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
            Some(_) if self.is_done(run) => Ok(true),
            Some(store) => self.fetch_from(&store, run),
            None => Ok(false),
        }
    }

    /// Does the same with a store, even if nothing can change but the answers of policies.
    pub(super) fn fetch_from(&mut self, store: &Backend, run: &str) -> Result<bool> {
        let damaged = || format!("failed to read the results of run {run}");
        let Some(order) = store.order(run).map_err(from_store)? else {
            return Ok(false);
        };
        let order = StoredOrder::parse(&order).context(damaged())?;
        // Before the results: a job sends them before it gives back the lock.
        let mut facts = if order.outline.is_recorded {
            facts(&self.opened()?.read_once()?, run)
        } else {
            MergeFacts {
                has_ended: store.has_end(run).map_err(from_store)?,
                open: killed(store, run, &order).map_err(from_store)?,
            }
        };
        let names = store.results(run).map_err(from_store)?;
        let folder = GuardedFolder::create(&self.project.root).map_err(Error::external)?;
        let local = LocalResults::open(folder, run).map_err(Error::external)?;
        let mut results = Vec::new();
        for name in names {
            let file = name.file();
            let result = match local.find(&file).map_err(Error::external)? {
                Some(result) => result,
                None => match store.result(run, name).map_err(from_store)? {
                    Some(bytes) => TurnResult::parse(&bytes).context(damaged())?,
                    None => continue,
                },
            };
            if result.turn < order.outline.turns.len() {
                results.push((file, result));
            }
        }
        facts.open.retain(|open| !has_ended_since(&results, open));
        if order.outline.policies.is_some() {
            add_answers(&mut results, store, run)?;
        }
        local
            .write(&order, results, &facts)
            .map_err(Error::external)?;
        Ok(true)
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

    /// Returns whether all turns of a run have succeeded, as far as this machine knows: then nothing can change but
    /// the answers of policies.
    fn is_done(&self, run: &str) -> bool {
        let runs = GuardedFolder::find(&self.project.root).ok().flatten();
        let brief = runs.and_then(|folder| Runs::find(folder).ok()?.brief(run).ok());
        brief.is_some_and(|brief| {
            brief.header.is_of_work_order() && brief.counts.succeeded == brief.stacks
        })
    }
}

/// Adds the answers of policies to the latest results of turns.
fn add_answers(results: &mut [(String, TurnResult)], store: &Backend, run: &str) -> Result<()> {
    let turns = results.iter_mut().map(|(_, result)| (result.turn, result));
    // The names are in order, so the last result of a turn remains.
    let mut latest: HashMap<usize, &mut TurnResult> = turns.collect();
    for answers in store.answers(run).map_err(from_store)? {
        let damaged = || format!("failed to read the answers of policies in run {run}");
        let answers = TurnResult::parse(&answers).context(damaged())?;
        if let Some(result) = latest.get_mut(&answers.turn) {
            result.lines.extend(answers.lines);
        }
    }
    Ok(())
}

/// Returns the turns whose latest attempt has begun and has no result.
fn killed(store: &Backend, run: &str, order: &StoredOrder) -> Result<Vec<OpenTurn>, StoreError> {
    let killed = store.latest_attempts(run)?.killed;
    let open = killed.into_iter().filter_map(|(turn, start)| {
        Some(OpenTurn {
            stack: order.outline.turns.get(turn)?.stack.clone(),
            since: Timestamp::from_second(i64::from(start.attempt))
                .expect("every u32 of seconds is a timestamp"),
        })
    });
    Ok(open.collect())
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
