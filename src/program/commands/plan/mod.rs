//! `orch plan`

pub(super) mod shown;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use orch::command::plan::{Planned, Tools};
use orch::command::select::{MissingStacks, SelectionRequest};
use orch::context::RollbackFlags;
use orch::driver::steering;
use orch::error::Error;
use orch::exit::ExitStatus;
use orch::path::{ProjectPath, StackPath};
use orch::plan::entry::{PlanMode, PlanOptions};
use orch::plan::planner::{self, Ask, NewPlan, Planner, warn_of_left_behind};
use orch::plan::{Outlook, PlannedFollowUps, SavedPolicies, archive};
use orch::printable::{first_of, printable};
use orch::report::{JsonDocument, write_plan_json};
use orch::run::safeguard::Disabled;
use orch::run::schedule::OnError;
use orch::selection::select::{Query, Selection};

use super::follow_flags::FollowFlags;
use super::format::{PlanFormat, PlanFormatArgs};
use super::run::jobs;
use super::selection_flags::{SEE_SELECTION, SelectArgs};
use super::terminal::PlanTerminal;
use super::{CommandContext, CyclesAre, ReadStatus, working_directory};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// The hint about stacks that fail to plan.
pub(super) const LEAVE_OUT: &str = "to leave out the failed stacks and those that run after them, add `--on-error skip-dependents`";

const PLAN_EXAMPLES: &str = "\
Examples:
  orch plan                                  plan all stacks
  orch plan -j 8 --changed                   only changed stacks
  orch plan --match prod/network --full      ask the tool even if nothing has changed
  orch plan --refresh-only                   show drift
  orch plan --match sandbox --destroy        plan a destroy
  orch plan -o plan                          for `orch apply plan`
  orch plan --format json
  orch plan --format markdown > comment.md   for a pull request
  orch plan -- -target=aws_instance.web      add words to each `terraform plan`";

/// Show the changes of an apply, over all stacks
///
/// Asks the tool of each stack, such as Terraform, for its changes, and prints one plan over all
/// stacks. With a state, only stacks that differ from their last apply are asked, and removed
/// stacks are planned as deletes. No resource is changed; a tool that has never run in a stack is
/// initialized there.
///
/// `orch apply` applies the plan. See `orch help plan`.
#[derive(Debug, Args)]
#[command(after_help = PLAN_EXAMPLES, after_long_help = format!("{PLAN_EXAMPLES}\n\n{SEE_SELECTION}"))]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) modes: ModeArgs,

    /// Show drift, and plan no changes
    #[arg(long, conflicts_with_all = ["destroy", "replace"])]
    pub(crate) refresh_only: bool,

    #[command(flatten)]
    pub(crate) planning: PlanningArgs,

    /// Write the plan to a file, with the plans of the tools
    ///
    /// `orch show` prints it, and `orch apply` applies it. The plans of the tools hold secrets in
    /// clear text, so only the owner can read the file. It never counts as a change, so
    /// you need not add it to `.gitignore`. An earlier plan in FILE is removed before any tool runs.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Let an apply of the file destroy up to N stacks without asking
    #[arg(long, value_name = "N", requires = "out")]
    pub(crate) allow_destroy: Option<usize>,

    /// How to handle stacks that fail to plan [default: stop]
    ///
    /// Other stacks are still planned and shown, and the status is 1. With `-o`, `stop` writes no
    /// file; `skip-dependents` and `continue` write one without these stacks and those that run
    /// after them.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_error: Option<PlanOnErrorArg>,

    /// Exit with status 2 if an apply would change anything, or 4 if all changes are blocked
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,

    #[command(flatten)]
    pub(crate) format: PlanFormatArgs,

    #[command(flatten)]
    pub(crate) select: SelectArgs,

    #[command(flatten)]
    pub(crate) policies: FollowFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanOnErrorArg {
    /// Skip the dependents of the failed stack, and continue with the rest
    SkipDependents,
    /// Continue with the rest, even with dependents of a stack that failed during the apply
    Continue,
    /// Start nothing new; apply nothing if a stack fails to plan
    Stop,
}

impl PlanOnErrorArg {
    pub(crate) fn of(on_error: OnError) -> Self {
        match on_error {
            OnError::SkipDependents => PlanOnErrorArg::SkipDependents,
            OnError::Continue => PlanOnErrorArg::Continue,
            OnError::Stop => PlanOnErrorArg::Stop,
        }
    }

    /// Returns whether an apply leaves out the stacks that fail to plan.
    pub(crate) fn leaves_out_failed(self) -> bool {
        self != PlanOnErrorArg::Stop
    }
}

/// The mode of a plan, and the stacks that it covers.
#[derive(Debug, Args)]
pub(crate) struct ModeArgs {
    /// Destroy the resources of the selected stacks
    #[arg(long, conflicts_with = "replace")]
    pub(crate) destroy: bool,

    /// Ask the tools of all selected stacks, even if nothing has changed according to the state
    #[arg(long)]
    pub(crate) full: bool,

    /// Destroy and recreate these stacks: a path or `tag:…` (can be repeated)
    #[arg(long, value_name = "REF")]
    pub(crate) replace: Vec<String>,
}

#[derive(Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct PlanningArgs {
    /// Words to add to the `plan` of each stack
    ///
    /// They are kept in clear text, in the journal of the run and in a plan in a file: pass
    /// passwords in the environment instead.
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(crate) extra: Vec<OsString>,

    /// Run `init` in each stack that is asked, even if it ran before
    #[arg(long)]
    pub(crate) init: bool,

    /// Also plan stacks last applied from a commit that HEAD lacks, which reverts that commit
    ///
    /// See `orch help state`.
    #[arg(long)]
    pub(crate) allow_rollback: bool,

    /// Leave removed stacks as they are
    ///
    /// See `orch help removal`.
    #[arg(long)]
    pub(crate) no_removals: bool,

    /// Plan the rest if protected stacks or resources would be destroyed
    ///
    /// Without this flag, such a plan is refused. The dependencies of protected stacks are kept too.
    /// See `orch help lifecycle`.
    #[arg(long)]
    pub(crate) skip_protected: bool,

    /// Run up to N tools at once; `auto` is one for each processor [default: 1]
    #[arg(short = 'j', long, value_name = "N|auto", value_parser = jobs)]
    pub(crate) parallel: Option<NonZeroUsize>,
}

impl PlanningArgs {
    pub(super) fn jobs(&self) -> NonZeroUsize {
        self.parallel.unwrap_or(NonZeroUsize::MIN)
    }

    /// Refuses arguments that would make the tool's plan differ from the shown one.
    fn check_extra(&self) -> Result<()> {
        let mut words = self.extra.iter();
        let Some(option) = words.find_map(|word| steering(word)) else {
            return Ok(());
        };
        let instead = match option {
            "destroy" => "use `--destroy` before the `--`",
            "refresh-only" => "use `--refresh-only` before the `--`",
            "out" => "`orch plan -o FILE` writes the plans of all stacks to a file",
            _ => "`orch plan --format json` prints the plan as JSON",
        };
        let message = format!("`-{option}` cannot be passed to the tools: orch sets it");
        Err(ProgramError::usage(message).hint(instead))
    }
}

/// A request for a plan.
#[derive(Clone, Copy)]
pub(super) struct PlanningRequest<'a> {
    pub(super) select: &'a SelectArgs,
    pub(super) planning: &'a PlanningArgs,
    pub(super) options: PlanOptions,
    /// The stacks to replace, as written.
    pub(super) replace: &'a [String],
    /// Whether the plan will be applied, now or later.
    pub(super) is_kept: bool,
    /// The file for the plan: an earlier plan in it is removed once planning begins.
    pub(super) file: Option<&'a Path>,
    /// The disabled safeguards, if the plan is applied now.
    pub(super) guard: Option<&'a Disabled>,
    /// The policy settings of the apply; `None` if policies are off.
    pub(super) policies: Option<&'a SavedPolicies>,
    /// The only stacks to plan, if they are already known.
    pub(super) only: Option<&'a [StackPath]>,
    /// The JSON document that is printed, if any.
    pub(super) document: Option<JsonDocument>,
    /// Whether the apply leaves out failing stacks and those that run after them.
    pub(super) leaves_out_failed: bool,
    /// How long tools wait for the locks of their own states.
    pub(super) lock_timeout: Option<Duration>,
}

impl PlanningRequest<'_> {
    /// Returns the planner's part of the request.
    fn of_planner<'s>(&'s self, tools: &'s dyn Ask) -> planner::PlanRequest<'s> {
        let PlanningArgs {
            extra,
            init,
            allow_rollback,
            no_removals,
            skip_protected,
            ..
        } = self.planning;
        planner::PlanRequest {
            tools,
            extra,
            init: *init,
            jobs: self.planning.jobs(),
            // If a module has a new version, the stacks that call it have unchanged files.
            options: PlanOptions {
                is_full: self.options.is_full || self.select.released.is_some(),
                ..self.options
            },
            replace: self.replace,
            allow_rollback: *allow_rollback,
            no_removals: *no_removals,
            skip_protected: *skip_protected,
            fetches: self.select.fetch,
            is_release: self.select.released.is_some(),
            is_kept: self.is_kept,
            is_verification: false,
            only: self.only,
            leaves_out_failed: self.leaves_out_failed,
            lock_timeout: self.lock_timeout,
        }
    }
}

pub(super) fn planned(chdir: &[PathBuf], request: &PlanningRequest<'_>) -> Result<Planned> {
    request.planning.check_extra()?;
    let filters = SelectionRequest {
        missing: MissingStacks::Named,
        ..request.select.request_with_state(chdir)?
    };
    let reads = request
        .select
        .reads()
        .with_listing()
        .with_status(ReadStatus::Exact);
    let mut context = CommandContext::new(chdir, request.document, reads)?;
    context.check(filters.change.as_ref())?;
    if context.project.settings.state.is_none() {
        request.select.check_fetch()?;
    }
    let policies = match request.policies {
        // Their errors are shown before the plan is approved.
        Some(options) => context.apply_policies(options)?,
        None => None,
    };
    let query = context.ask(|context| context.query(filters))?;
    let selection = context.planned_selection(request, &query);
    context.check_cycles(CyclesAre::ErrorsWithin(&selection));
    // Destroyed and refreshed stacks have no conditions to check.
    if request.options.mode == PlanMode::Normal {
        context.check_conditions(selection.stacks());
    }
    let replaced = context.named_by(request.replace, &selection)?;
    let tools = Tools {
        terminal: &PlanTerminal,
    };
    let of_planner = request.of_planner(&tools);
    let recorded = context.ask(|context| {
        context
            .recorded_state(&of_planner, &selection)
            .map_err(Error::documented)
    })?;
    context.report_unless_shown(request.only.is_some())?;
    context.sweep();
    if request.only.is_none() {
        let nothing = BTreeMap::new();
        let missing = recorded
            .as_ref()
            .map_or(&nothing, |it| &it.statuses.missing);
        context.warn_of_unmatched_filters(&query, missing);
        let is_recorded = |key: &str| recorded.as_ref().is_some_and(|it| it.lacks(key));
        context.check_named(query.named.as_ref(), is_recorded)?;
    }
    let removals = context.removals(&of_planner, &query, recorded.as_ref());
    if removals.all.is_empty() {
        context.note_if_empty(&query, &selection);
    }
    if let Some(disabled) = request.guard {
        if !context.is_safe(disabled) {
            return Err(ExitStatus::Refused.into());
        }
        context.warn_if_behind(disabled)?;
    }
    if let Some(file) = request.file {
        archive::remove_earlier(file)?;
    }
    let planner = Planner {
        request: &of_planner,
        query: &query,
        selection: &selection,
        replaced: &replaced,
        recorded: recorded.as_ref(),
        is_applied_now: request.guard.is_some(),
    };
    let NewPlan {
        mut saved,
        plans,
        left_behind,
        asked,
        commits,
        removals,
        amended,
    } = planner.plan(&mut context, removals)?;
    saved.excluded = context.excluded_paths(&query);
    let document = recorded.as_ref().map(|recorded| &recorded.document);
    let document = amended.as_ref().or(document);
    let known = (&removals, document, &asked);
    saved.policies = request.policies.cloned().unwrap_or_default();
    let rollback = RollbackFlags {
        allows: request.planning.allow_rollback,
        fetches: request.select.fetch,
    };
    context.add_followups(&mut saved, policies, rollback, known)?;
    Ok(Planned {
        context: context.context,
        saved,
        plans,
        left_behind,
        asked,
        commits,
    })
}

impl CommandContext {
    fn planned_selection(&self, request: &PlanningRequest<'_>, query: &Query) -> Selection {
        let Some(paths) = request.only else {
            return self.select_silently(query);
        };
        let stacks = paths.iter();
        Selection::recorded(stacks.filter_map(|path| self.project.stacks.find(path)))
    }
}

impl PlanArgs {
    fn options(&self) -> PlanOptions {
        PlanOptions {
            mode: PlanMode::of_flags(self.modes.destroy, self.refresh_only),
            is_full: self.modes.full,
        }
    }
}

pub(super) fn plan(chdir: &[PathBuf], args: &PlanArgs) -> Result<ExitStatus> {
    let max_bytes = args.format.max_bytes()?;
    let details = args.format.details()?;
    let file = match &args.out {
        Some(file) => Some(working_directory(chdir)?.join(file)),
        None => None,
    };
    if let Some(file) = &file {
        archive::check_target(file)?;
    }
    let policies = args.policies.saved();
    let request = PlanningRequest {
        select: &args.select,
        planning: &args.planning,
        options: args.options(),
        replace: &args.modes.replace,
        is_kept: file.is_some(),
        file: file.as_deref(),
        guard: None,
        policies: Some(&policies),
        only: None,
        document: args.format.document(),
        leaves_out_failed: args.on_error.is_some_and(PlanOnErrorArg::leaves_out_failed),
        lock_timeout: None,
    };
    let planned = planned(chdir, &request)?;
    let (context, plan) = (&planned.context, &planned.saved.plan);
    let mut out = console::stdout();
    let (asked, typed) = (&planned.asked, args.out.as_deref());
    match args.format.format {
        PlanFormat::Text => shown::write_text(&mut out, plan, asked, typed, details)?,
        PlanFormat::Json => write_plan_json(&mut out, plan, &context.project, &context.problems)?,
        PlanFormat::Markdown => shown::write_markdown(&mut out, plan, asked, typed, max_bytes)?,
    }
    out.flush()?;
    shown::append_to_step_summary(plan, asked, typed);
    let has_failed = !plan.failed.is_empty();
    if has_failed && !request.leaves_out_failed {
        if file.is_some() {
            console::note("no file was written because a stack failed to plan");
            console::help(LEAVE_OUT);
        }
        return Ok(ExitStatus::Run(1));
    }
    warn_of_left_behind(&context.notices, &planned.left_behind);
    let outlook = plan.outlook();
    let followups = plan.followups.as_ref().map(PlannedFollowUps::check);
    let has_failed_policies = match followups {
        Some(Err(failed)) => {
            console::error(&failed);
            true
        }
        Some(Ok(())) | None => false,
    };
    if let Some(file) = &file {
        if asked.has_asked() {
            warn_of_rewritten(&context.rewritten_by_tools());
        }
        let mut saved = planned.saved;
        saved.allow_destroy = args.allow_destroy;
        saved.environment = Some(context.environment_of(&saved));
        saved.write(file, &planned.plans)?;
    }
    Ok(match outlook {
        _ if has_failed || has_failed_policies => ExitStatus::Run(1),
        Outlook::Changes if args.detailed_exitcode => ExitStatus::Run(2),
        Outlook::Blocked if args.detailed_exitcode => ExitStatus::Refused,
        Outlook::Changes | Outlook::Blocked | Outlook::Nothing => ExitStatus::Success,
    })
}

/// Warns of tracked files that tools have changed: the safeguards refuse to apply the plan in this
/// working tree.
fn warn_of_rewritten(files: &[ProjectPath]) {
    if files.is_empty() {
        return;
    }
    let names = files
        .iter()
        .map(|file| format!("`{}`", printable(file.relative())));
    let names = first_of(names, 1);
    console::warning(&format!(
        "planning modified the tracked file {names}: commit it and plan again, or an apply in this working tree will be refused"
    ));
}
