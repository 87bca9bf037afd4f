//! The runs of work orders, whose jobs ran on any machine: their results are in the store of the state, or the engine
//! has handed them on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;

use jiff::Timestamp;

use crate::author::host;
use crate::context::{Context, from_store};
use crate::error::{Error, ErrorContext as _, Result};
use crate::export::{OrderedTask, WorkOrder};
use crate::folder::GuardedFolder;
use crate::plan::Purpose;
use crate::record::journal::{
    Direction, FORMAT, Header, OutcomeRecord, RunStatus, Runs, Word, arguments,
};
use crate::record::results::{
    LocalResults, MergeFacts, OrderOutline, RunCopy, StoredOrder, TurnResult,
};
use crate::state::backend::Backend;
use crate::state::document::{
    Attempt, AttemptOutcome, Document, Entry, INTERRUPTED, Intent, RunAction,
};
use crate::state::results::{ResultFiles, ResultName};

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
                self.fetch_from(&store, run, &mut document, None)?;
            }
        }
        Ok(())
    }

    /// Brings the run of a work order to this machine, as far as its jobs have sent results, or the state knows of it.
    /// Returns whether any job has begun.
    ///
    /// # Errors
    ///
    /// If the store or the state cannot be read, or the run cannot be written.
    pub fn fetch_order_run(&mut self, order: &WorkOrder) -> Result<bool> {
        let run = &order.run;
        match self.results_store()? {
            Some(_) if self.runs().is_some_and(|here| done(&here, run).is_some()) => Ok(true),
            Some(store) => {
                let files = self.fetch_from(&store, run, &mut None, Some(order))?;
                Ok(files.is_some())
            }
            None => Ok(false),
        }
    }

    /// Like [`Self::fetch_order_run`], with this store, even if only answers of policies can still change. Returns the
    /// files in the store, or `None` if no job has begun. Reads the state into `document` once, after it has found the
    /// order. Without the work order, it does not find a run whose jobs sent nothing.
    pub(super) fn fetch_from(
        &mut self,
        store: &Backend,
        run: &str,
        document: &mut Option<Document>,
        work_order: Option<&WorkOrder>,
    ) -> Result<Option<ResultFiles>> {
        let damaged = || damaged(run);
        let order = match store.order(run).map_err(from_store)? {
            Some(order) => Some(StoredOrder::parse(&order).context(damaged())?),
            None => work_order
                .map(|order| self.recorded_order(store, order))
                .transpose()?
                .flatten(),
        };
        let Some(order) = order else {
            return Ok(None);
        };
        // Before the results: a job sends them before it gives back the lock.
        let document = match document {
            _ if !order.outline.is_recorded => None,
            Some(document) => Some(&*document),
            None => Some(&*document.insert(self.opened()?.read_once()?)),
        };
        let mut files = store.result_files(run).map_err(from_store)?;
        let mut facts = MergeFacts {
            has_ended: match document {
                Some(document) => document.order() != Some(run),
                None => files.has_end(),
            },
            is_evaluated: files.has_open_claim(),
            latest: begun(&files, &order),
        };
        let folder = GuardedFolder::create(&self.project.root).map_err(Error::external)?;
        let local = LocalResults::open(folder, run).map_err(Error::external)?;
        let read = |names: Vec<String>| read(&local, store, &order, names);
        let mut results = read(files.results())?;
        if let Some(document) = document {
            let outdated = outdated(document, &order, &results);
            results.retain(|(name, _)| !outdated.contains(name));
            files.leave_out(&outdated);
        }
        add_killed(&files, &order, &mut results);
        let answers = match order.outline.policies {
            Some(_) => read(files.answers())?,
            None => Vec::new(),
        };
        if let Some(document) = document {
            add_recorded(&mut facts, document, &order, &results);
        }
        let mut done = files.done();
        for latest in &facts.latest {
            done.remove(&latest.turn);
        }
        results.extend(read(done.into_values().collect())?);
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

    /// Returns the run of a work order whose jobs could not send it, if the state knows of it.
    fn recorded_order(
        &mut self,
        store: &Backend,
        order: &WorkOrder,
    ) -> Result<Option<StoredOrder>> {
        if self.project.settings.state.is_none() {
            return Ok(None);
        }
        let document = self.opened()?.read_once()?;
        let entries = document.stacks.values();
        let known = entries.filter_map(|entry| RecordedTurn::of_entry(entry, &order.run));
        let Some(at) = known.map(|recorded| recorded.at).min() else {
            return Ok(None);
        };
        let of_finish: Vec<OsString> = std::env::args_os().skip(1).collect();
        let apply = ["orch", Purpose::Apply.command()].map(OsString::from);
        let (command, plan, eval, reverse) = match &order.task {
            OrderedTask::Plan { id, .. } => (arguments(&apply), Some(id.clone()), false, false),
            OrderedTask::Command {
                words,
                eval,
                reverse,
                ..
            } => (words.clone(), None, *eval, *reverse),
        };
        let header = Header {
            format: FORMAT,
            run: order.run.clone(),
            orch: env!("CARGO_PKG_VERSION").to_owned(),
            at,
            host: host(),
            process: std::process::id(),
            arguments: arguments(&of_finish),
            directory: self.directory.to_string(),
            resumes: None,
            command,
            purpose: plan.is_some().then(|| Purpose::Apply.word().to_owned()),
            plan,
            script: Vec::new(),
            eval,
            order: Vec::new(),
            edges: Vec::new(),
            left_out: Vec::new(),
            turns: Vec::new(),
            direction: Word::Known(if reverse {
                Direction::Reverse
            } else {
                Direction::Forward
            }),
            settings: order.settings.clone(),
            base: None,
            head: order.commit.clone(),
            uncommitted: None,
            policies: None,
            graph: order.graph.clone(),
            environment: Vec::new(),
            part_of: None,
        };
        let stored = StoredOrder::new(order.outline(true), header);
        // For other machines, if possible now.
        _ = store.put_order(&order.run, &stored.to_bytes());
        Ok(Some(stored))
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

/// Returns the attempts that have begun after all results of their turns.
fn begun(files: &ResultFiles, order: &StoredOrder) -> Vec<TurnResult> {
    let begun = files.latest().begun.into_values();
    begun.filter_map(|name| attempt(order, name)).collect()
}

/// Returns an attempt of which only the mark of its beginning is in the store.
fn attempt(order: &StoredOrder, ResultName { turn, attempt }: ResultName) -> Option<TurnResult> {
    let since = Timestamp::from_second(i64::from(attempt));
    let since = since.expect("every u32 of seconds is a timestamp");
    let is_known = turn < order.outline.turns.len();
    is_known.then(|| order.outline.begun("", turn, since))
}

/// Adds the attempts of killed jobs that later ones have replaced, and removes those that have ended after all.
fn add_killed(files: &ResultFiles, order: &StoredOrder, results: &mut Vec<(String, TurnResult)>) {
    let ended = results.iter().filter(|(_, it)| it.has_ended());
    let ended: HashSet<_> = ended.map(|(_, it)| (it.turn, it.run.clone())).collect();
    results.retain(|(_, it)| it.has_ended() || !ended.contains(&(it.turn, it.run.clone())));
    let killed = files.killed().into_iter();
    results.extend(killed.filter_map(|(file, name)| Some((file, attempt(order, name)?))));
    results.sort_by_key(|(file, _)| ResultName::of(file));
}

/// Returns the files of results that the state contradicts: a job sent them after it had lost the lock.
fn outdated(
    document: &Document,
    order: &StoredOrder,
    results: &[(String, TurnResult)],
) -> BTreeSet<String> {
    let turn_of = turns_by_stack(&order.outline);
    // By turn: the run of its last attempt, whether it ended, and the run of the one that has begun since.
    let mut last: HashMap<usize, (&str, bool, Option<&str>)> = HashMap::new();
    for (stack, entry) in &document.stacks {
        let of_last = entry.last.as_ref();
        let of_last = of_last.and_then(|it| RecordedTurn::of_attempt(it, &order.outline.run));
        let begun = entry.intent.as_ref().map(|intent| intent.run.as_str());
        let turn = of_last.as_ref().and_then(|it| turn_of(stack, it.action));
        if let Some((of_last, turn)) = of_last.zip(turn) {
            last.insert(turn, (of_last.run, of_last.outcome.is_some(), begun));
        }
    }
    let mut found = BTreeSet::new();
    let mut has_seen: HashSet<usize> = HashSet::new();
    for (name, result) in results {
        let Some(&(of_last, has_end, begun)) = last.get(&result.turn) else {
            continue;
        };
        let is_of_last = result.run == of_last;
        let is_later = has_seen.contains(&result.turn) && begun != Some(&*result.run);
        let is_late = !has_end && result.has_ended();
        if is_of_last && is_late || !is_of_last && is_later {
            found.insert(name.clone());
        }
        if is_of_last {
            has_seen.insert(result.turn);
        }
    }
    found
}

/// Adds what the state knows of a work order whose results lack it: the turns that have begun, and results that were
/// not sent.
fn add_recorded(
    facts: &mut MergeFacts,
    document: &Document,
    order: &StoredOrder,
    results: &[(String, TurnResult)],
) {
    let run = &order.outline.run;
    let turn_of = turns_by_stack(&order.outline);
    let known: HashSet<_> = results
        .iter()
        .map(|(_, it)| (it.turn, it.run.as_str()))
        .collect();
    for (stack, entry) in &document.stacks {
        let Some(recorded) = RecordedTurn::of_entry(entry, run) else {
            continue;
        };
        let turn = turn_of(stack, recorded.action);
        let Some(turn) = turn.filter(|turn| !known.contains(&(*turn, recorded.run))) else {
            continue;
        };
        match recorded.outcome {
            None if facts.latest.iter().any(|it| it.turn == turn) => {}
            None => {
                let begun = order.outline.begun(recorded.run, turn, recorded.at);
                facts.latest.push(begun);
            }
            Some(outcome) => {
                facts.latest.retain(|it| it.turn != turn);
                let ended = (outcome, recorded.at);
                let result = order.outline.unsent(recorded.run, turn, ended);
                facts.latest.push(result);
            }
        }
    }
}

/// Returns a function that finds the turn of a stack by what was done. The only turn of a stack may do anything.
fn turns_by_stack(outline: &OrderOutline) -> impl Fn(&str, &RunAction) -> Option<usize> {
    let mut by_stack: HashMap<&str, Vec<usize>> = HashMap::new();
    for (turn, it) in outline.turns.iter().enumerate() {
        by_stack.entry(&it.stack).or_default().push(turn);
    }
    move |stack, action| match by_stack.get(stack)?[..] {
        [only] => Some(only),
        ref turns => {
            let destroys = *action == RunAction::Destroy;
            let mut turns = turns.iter().copied();
            turns.find(|turn| outline.turns[*turn].destroys == destroys)
        }
    }
}

/// An attempt at a turn of a work order, as the state has it.
struct RecordedTurn<'d> {
    run: &'d str,
    action: &'d RunAction,
    at: Timestamp,
    /// How it ended, if it has.
    outcome: Option<OutcomeRecord>,
}

impl<'d> RecordedTurn<'d> {
    fn of_entry(entry: &'d Entry, order: &str) -> Option<Self> {
        match (&entry.intent, &entry.last) {
            (Some(intent), _) => RecordedTurn::of_intent(intent, order),
            (None, Some(last)) => RecordedTurn::of_attempt(last, order),
            (None, None) => None,
        }
    }

    fn of_intent(intent: &'d Intent, order: &str) -> Option<Self> {
        (intent.order.as_deref() == Some(order)).then_some(RecordedTurn {
            run: &intent.run,
            action: &intent.action,
            at: intent.since,
            outcome: None,
        })
    }

    fn of_attempt(last: &'d Attempt, order: &str) -> Option<Self> {
        let run = last.run.as_deref();
        let run = run.filter(|_| last.order.as_deref() == Some(order))?;
        let outcome = match last.outcome {
            AttemptOutcome::Succeeded | AttemptOutcome::Unknown => OutcomeRecord::Succeeded,
            AttemptOutcome::Failed | AttemptOutcome::Other(_) => OutcomeRecord::Failed,
        };
        Some(RecordedTurn {
            run,
            action: &last.action,
            at: last.at,
            outcome: Some(outcome).filter(|_| last.failure.as_deref() != Some(INTERRUPTED)),
        })
    }
}
