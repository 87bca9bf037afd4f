//! `orch list`

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use orch::command::select::{MissingStacks, SelectionRequest};
use orch::exit::ExitStatus;
use orch::path::StackPath;
use orch::printable::printable;
use orch::project::stack::StackIndex;
use orch::report::{
    JsonDocument, Matrix, StackList, missing_text, reason_text, write_list, write_matrix,
    write_removed,
};
use orch::run::order::RunOrder;

use super::neighbour_flags::NEIGHBOURS;
use super::selection_flags::{SEE_SELECTION, SelectArgs, StatusWord};
use super::{CommandContext, CyclesAre, Reads};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// List stacks, one per line
///
/// Paths are relative to the current directory. `run` with the same flags acts on exactly the stacks
/// that `list` prints.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(after_long_help = SEE_SELECTION)]
pub(crate) struct ListArgs {
    /// List stacks in the order of a run instead of path order
    #[arg(long, visible_alias = "run-order")]
    pub(crate) order: bool,

    /// Show why each stack is in the list
    #[arg(long)]
    pub(crate) why: bool,

    /// List the stacks that were removed since the base, instead of those that exist
    ///
    /// Only the current directory, --match and --exclude narrow the list, since only the path of
    /// such a stack is known. --base and --fetch work as with --changed. For removed stacks in the
    /// state, use `--status removed` (`orch help removal`).
    #[arg(
        long,
        conflicts_with_all = [
            "order", "why", "status", "released", "stacks_from", "tags", "no_tags", "no_recursive", NEIGHBOURS
        ]
    )]
    pub(crate) removed: bool,

    /// Exit with status 4 if no stack is selected
    #[arg(long, conflicts_with = "removed")]
    pub(crate) fail_if_empty: bool,

    /// The format of the list
    #[arg(long, value_enum, default_value_t = ListFormat::Text)]
    pub(crate) format: ListFormat,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// The value for `strategy.matrix` in a GitHub Actions workflow
    GithubMatrix,
    /// The value for `parallel:matrix` in a GitLab pipeline
    GitlabMatrix,
}

impl ListFormat {
    fn document(self) -> Option<JsonDocument> {
        (self == ListFormat::Json).then_some(JsonDocument::Stacks)
    }
}

pub(super) fn list(chdir: &[PathBuf], args: &ListArgs) -> Result<ExitStatus> {
    if args.removed {
        return list_removed(chdir, args);
    }
    let is_missing = |word: &StatusWord| matches!(word, StatusWord::Removed | StatusWord::Absent);
    if args.select.status.iter().any(is_missing)
        && !matches!(args.format, ListFormat::Text | ListFormat::Json)
    {
        let message = "removed stacks cannot be jobs: with `--status removed` or `absent`, use `--format text` or `json`";
        return Err(ProgramError::usage(message));
    }
    let explains = args.why || args.format == ListFormat::Json;
    let filters = SelectionRequest {
        missing: MissingStacks::Shown,
        explains,
        ..args.select.request(chdir)?
    };
    let mut context = CommandContext::new(chdir, args.format.document(), args.select.reads())?;
    context.check(filters.change.as_ref())?;
    let query = context.ask(|context| context.query(filters))?;
    let missing: Vec<_> = query.missing().collect();
    let selection = if missing.is_empty() {
        context.select(&query)
    } else {
        context.select_any(&query)
    };
    context.check_cycles(if args.order {
        CyclesAre::ErrorsWithin(&selection)
    } else {
        CyclesAre::Warnings
    });
    context.report()?;
    if missing.is_empty() {
        context.ask(|context| context.check_not_empty(&selection, args.fail_if_empty))?;
    }
    let listed: Vec<StackIndex> = if args.order {
        RunOrder::new(&context.graph, &selection).sequence
    } else {
        selection.stacks().collect()
    };
    let project = &context.project;
    let mut out = console::stdout();
    let path = |stack: StackIndex| project.stacks[stack].path.relative_to(&context.directory);
    let write_jobs = |out: &mut _, matrix| {
        let paths = listed.iter().map(|&stack| path(stack));
        write_matrix(out, matrix, &paths.collect::<Vec<_>>())
    };
    match args.format {
        ListFormat::Json => {
            let list = StackList {
                graph: &context.graph,
                selection: &selection,
                listed: &listed,
                statuses: query.recorded.as_ref().map(|it| &it.statuses),
                missing: &missing,
            };
            write_list(&mut out, project, &context.problems, &list)?;
        }
        ListFormat::GithubMatrix => write_jobs(&mut out, Matrix::Github)?,
        ListFormat::GitlabMatrix => write_jobs(&mut out, Matrix::Gitlab)?,
        ListFormat::Text => {
            for &stack in &listed {
                write!(out, "{}", printable(&path(stack)))?;
                if args.why {
                    let reasons = selection.reasons(stack).iter();
                    let texts: Vec<String> = reasons
                        .map(|reason| reason_text(reason, &project.stacks, &project.sources))
                        .collect();
                    write!(out, "  # {}", printable(&texts.join("; ")))?;
                }
                writeln!(out)?;
            }
            for (key, stack) in missing {
                let path = StackPath::parse(key);
                let path = path.map_or_else(
                    || key.to_owned(),
                    |path| path.relative_to(&context.directory),
                );
                let why = if args.why {
                    format!("  # {}", printable(&missing_text(stack)))
                } else {
                    String::new()
                };
                writeln!(out, "{}{why}", printable(&path))?;
            }
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// Lists the stacks of the base that the project lacks.
fn list_removed(chdir: &[PathBuf], args: &ListArgs) -> Result<ExitStatus> {
    if !matches!(args.format, ListFormat::Text | ListFormat::Json) {
        let message =
            "removed stacks cannot be jobs: with `--removed`, use `--format text` or `json`";
        return Err(ProgramError::usage(message));
    }
    let query = args.select.change_query()?;
    let mut context = CommandContext::new(chdir, args.format.document(), Reads::CHANGES)?;
    context.check(Some(&query))?;
    let (globs, exclude) = (&args.select.globs, &args.select.exclude);
    let since = context.ask(|context| context.removed_since(&query, globs, exclude))?;
    context.report()?;
    if since.removed.is_empty() {
        let base = &since.base;
        let such = if globs.is_empty() && exclude.is_empty() && context.directory.is_root() {
            ""
        } else {
            "such "
        };
        console::note(&format!("no {such}stack was removed since {base}"));
    }
    let mut out = console::stdout();
    match args.format {
        ListFormat::Json => write_removed(&mut out, &context.project, &context.problems, &since)?,
        _ => {
            for path in &since.removed {
                let path = path.relative_to(&context.directory);
                writeln!(out, "{}", printable(&path))?;
            }
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
