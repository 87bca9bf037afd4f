//! Whether and how a run is put on record in the state.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use orch::change::{InputDigests, digests, trigger};
use orch::diagnostic::Diagnostic;
use orch::folder::GuardedFolder;
use orch::project::config::{BackendConfig, RecordPatterns, Recorded};
use orch::project::discover::RootRule;
use orch::project::stack::StackIndex;
use orch::project::{Problems, Project};
use orch::run::request::{BegunRun, PreparedRun};
use orch::run::run_command::RunCommand;
use orch::run::state::{StackRecord, StatePlan};
use orch::state::backend::Backend;
use orch::state::clock::SystemClock;
use orch::state::document::{Action, Document};
use orch::state::lock::{Locked, lock};
use orch::state::writer::{Ended, LocalCopy, Loss, Pauses, StateWriter};

use crate::program::commands::state::errors::{from_lock, from_read, missing};
use crate::program::commands::state::evidence::{declared, inputs, is_published};
use crate::program::commands::state::{Opened, check_binding, check_stacks};
use crate::program::commands::{Loaded, MARK_ROOT};
use crate::program::console;
use crate::program::error::{ErrorKind, ProgramError, Result};

/// Whether a run is put on record.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Put the run on record in the state, whatever its command is: as an apply, or as a destroy
    ///
    /// By default, the patterns of `record` in the configuration of the state decide. See `orch help
    /// state`.
    #[arg(
        long,
        value_enum,
        value_name = "ACTION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "apply"
    )]
    pub(crate) record: Option<RecordAs>,

    /// Do not put the run on record in the state
    #[arg(long, conflicts_with = "record")]
    pub(crate) no_record: bool,

    /// How long to wait for the lock of the state while another run holds it
    #[arg(long, value_name = "DURATION", value_parser = orch::duration::parse)]
    pub(crate) lock_timeout: Option<Duration>,
}

/// What a run is recorded as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordAs {
    /// It brings about what the configuration says
    Apply,
    /// It removes what is there
    Destroy,
}

/// A run that holds the lock of the state.
pub(super) struct KeptState {
    backend: Backend,
    locked: Locked,
    pauses: Pauses,
    plan: StatePlan,
}

/// What each turn is recorded as: the action, and the pattern or program that it is recorded by.
type Actions = Vec<Option<(Action, String)>>;

/// Takes the lock of the state, if a command of the run is recorded.
pub(super) fn take(
    loaded: &Loaded,
    args: &RecordArgs,
    run: &PreparedRun,
    command: &RunCommand,
) -> Result<Option<KeptState>> {
    let Some(block) = loaded.project.settings.state.clone() else {
        if args.record.is_some() {
            return Err(ProgramError::refused(
                "`--record` is given, and this project keeps no state",
            )
            .hint("see `orch help state`"));
        }
        return Ok(None);
    };
    if args.no_record {
        return Ok(None);
    }
    let project = &loaded.project;
    let host = |name: &str| std::env::var(name).ok();
    let wrong = |problems: Vec<Diagnostic>| {
        console::diagnostics(problems.iter(), &project.sources);
        let error = anyhow::anyhow!("the configuration of the state is wrong");
        ProgramError::new(ErrorKind::Configuration, error)
            .hint("to run without putting it on record, add `--no-record`")
    };
    let patterns = block.patterns(&host).map_err(wrong)?;
    let actions = actions(args, &patterns, run, command);
    if actions.iter().all(Option::is_none) {
        return Ok(None);
    }
    if loaded.rule == RootRule::WorkingDirectory {
        let what = "nothing marks the root of a project here, so there is no state";
        return Err(ProgramError::refused(what).hint(MARK_ROOT));
    }
    let config = block.evaluate(&host).map_err(wrong)?;
    let opened = Opened::new(project, &config)?;
    let check = |opened: &Opened, document: &Document| {
        check_binding(&opened.backend, &opened.binding, document)?;
        check_stacks(&opened.backend, project, document)
    };
    // What is refused needs no lock.
    let read = opened.backend.read().map_err(from_read)?;
    let read = read.ok_or_else(|| missing(&opened.backend.address()))?;
    check(&opened, &read.document)?;
    let evidence = Evidence::new(loaded, &opened, run, &actions)?;
    let mut recorded = actions.iter().flatten();
    let action = if recorded.any(|(action, _)| *action == Action::Apply) {
        Action::Apply
    } else {
        Action::Destroy
    };
    let locked = lock(
        &opened.backend,
        &run.id,
        &action,
        &opened.author,
        args.lock_timeout.unwrap_or_default(),
        &SystemClock::default(),
    );
    let locked = locked.map_err(from_lock)?;
    if let Some(dead) = &locked.taken_over {
        console::note(&format!(
            "run {} was killed and left the lock of the state; what it had begun counts as interrupted",
            dead.run
        ));
    }
    let records = evidence.records(project, run, actions, &locked.document);
    let checked = check(&opened, &locked.document);
    let kept = KeptState {
        pauses: match config.backend {
            BackendConfig::Local(_) => Pauses::LOCAL,
            _ => Pauses::REMOTE,
        },
        backend: opened.backend,
        plan: StatePlan::new(records),
        locked,
    };
    match checked {
        Ok(()) => Ok(Some(kept)),
        Err(error) => {
            kept.release();
            Err(error)
        }
    }
}

/// Returns what each turn is recorded as.
fn actions(
    args: &RecordArgs,
    patterns: &RecordPatterns,
    run: &PreparedRun,
    command: &RunCommand,
) -> Actions {
    let of_turn = |(turn, &stack): (usize, &StackIndex)| {
        let words: &[OsString] = command.of(stack);
        let forced = args.record.map(|record| match record {
            RecordAs::Apply => Action::Apply,
            RecordAs::Destroy => Action::Destroy,
        });
        if let Some(action) = forced {
            // Never its arguments, which may hold secrets.
            let program = std::path::Path::new(words.first()?).file_name()?;
            return Some((action, program.to_string_lossy().into_owned()));
        }
        let environment = &run.tasks[turn].environment;
        let variable = |name: &str| match environment.get(name) {
            Some(own) => own.clone(),
            None => std::env::var(name).ok(),
        };
        let (recorded, pattern) = patterns.recorded(words, variable)?;
        let action = match recorded {
            Recorded::Apply => Action::Apply,
            Recorded::Destroy => Action::Destroy,
            Recorded::Never => return None,
        };
        Some((action, pattern.to_owned()))
    };
    run.sequence.iter().enumerate().map(of_turn).collect()
}

/// What is known of the stacks of a run before its first command.
struct Evidence {
    digests: InputDigests,
    head: Option<String>,
    is_published: bool,
    triggers: Vec<trigger::AskingTrigger>,
}

impl Evidence {
    fn new(loaded: &Loaded, opened: &Opened, run: &PreparedRun, actions: &Actions) -> Result<Self> {
        let project = &loaded.project;
        let Some(repository) = &opened.repository else {
            return Err(ProgramError::refused(
                "the state needs a git repository: what is applied is recorded by its commit",
            )
            .hint("to run without the state, add `--no-record`"));
        };
        let recorded = run.sequence.iter().zip(actions);
        let recorded = recorded.filter(|(_, action)| action.is_some());
        let mut stacks: Vec<StackIndex> = recorded.map(|(&stack, _)| stack).collect();
        stacks.sort_unstable();
        let failed = "failed to read the inputs of the stacks";
        let (_, listing) =
            Project::load_with_listing(&project.root, &mut Problems::default()).context(failed)?;
        let status = repository.status().context(failed)?;
        let digests = digests(project, &listing, repository, &status, &stacks).context(failed)?;
        let head = repository.commit("HEAD").context(failed)?;
        let is_published = match &head {
            Some(head) => is_published(repository, head).context(failed)?,
            None => false,
        };
        Ok(Evidence {
            digests,
            head: head.map(|head| head.to_string()),
            is_published,
            triggers: trigger::asking(&project.root),
        })
    }

    fn records(
        &self,
        project: &Project,
        run: &PreparedRun,
        actions: Actions,
        document: &Document,
    ) -> Vec<Option<StackRecord>> {
        let record = |(stack, action): (&StackIndex, Option<(Action, String)>)| {
            let (action, command) = action?;
            let digest = self.digests.stacks.get(stack)?;
            let stack = &project.stacks[*stack];
            let key = stack.path.to_string();
            let asking = self.triggers.iter().filter(|it| it.concerns(&stack.path));
            let is_seen = self.is_published && !digest.is_dirty;
            Some(StackRecord {
                action,
                command,
                commit: self.head.clone(),
                seen: self.head.clone().filter(|_| is_seen),
                is_dirty: digest.is_dirty,
                inputs: inputs(&self.digests.rules, digest),
                triggers: asking.map(|it| it.file.to_string()).collect(),
                declared: declared(stack),
                earlier: document.stacks.get(&key).cloned(),
                key,
            })
        };
        run.sequence.iter().zip(actions).map(record).collect()
    }
}

impl KeptState {
    /// Makes a run that has begun keep the state.
    pub(super) fn begin(self, begun: BegunRun, project: &Project, run: &str) -> Result<BegunRun> {
        let folder = GuardedFolder::find(&project.root).ok().flatten();
        let copy = folder.map(|folder| LocalCopy::of(folder, run));
        let KeptState {
            backend,
            locked,
            pauses,
            plan,
        } = self;
        let begun = begun.keep_state(plan, |reports| {
            let report = move |report| reports.take(report);
            StateWriter::start(
                backend,
                locked,
                copy,
                pauses,
                SystemClock::default(),
                report,
            )
        });
        Ok(begun.context("failed to start the thread that writes the state")?)
    }

    /// Frees the lock: nothing has happened.
    pub(super) fn release(self) {
        let clock = SystemClock::default();
        let started =
            StateWriter::start(self.backend, self.locked, None, self.pauses, clock, |_| {});
        // If it cannot be freed now, the holder is dead soon, and the next run on this host takes it over.
        _ = started.map(|writer| writer.finish(None));
    }
}

/// Says what could not be put on record; returns whether anything could not.
pub(super) fn is_lost(ended: Option<&Ended>, run: &str) -> bool {
    let Some(Ended::Lost(loss)) = ended else {
        return false;
    };
    let why = match loss {
        Loss::Taken { by: Some(by) } => format!("{by} has taken the lock of the state away"),
        Loss::Taken { by: None } => "the lock of the state was taken away".to_owned(),
        Loss::Gone { problem } => format!("the state cannot be written: {problem}"),
    };
    let error = anyhow::anyhow!("not everything is on record: {why}");
    console::error(error.as_ref());
    console::note(&format!(
        "once it can be written, `orch state recover {run}` puts what is missing on record"
    ));
    true
}
