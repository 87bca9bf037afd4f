//! Flags that select the stacks of a command.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use orch::command::select::{MissingStacks, NameList, SelectionRequest, StatusKind};
use orch::command::why::without_changed;
use orch::context::ChangeQuery;
use orch::project::tag::{TagFilter, tag_problem};
use orch::release::ReleaseName;
use orch::selection::select::DirectoryMatch;

use super::neighbour_flags::NeighbourArgs;
use super::{Reads, working_directory};
use crate::program::error::{ProgramError, Result};

/// Refers to the help about combining the flags.
pub(crate) const SEE_SELECTION: &str =
    "`orch help selection` explains how the flags that select stacks work together.";

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectArgs {
    /// Only stacks that have changed since the base
    ///
    /// A stack has changed if one of its inputs has: a file in it, or a file that it watches,
    /// imports, links to, or uses in its Terraform or Terragrunt files. Uncommitted files count too.
    ///
    /// In CI, the provider names the base. Otherwise, it is the first parent of HEAD on the default
    /// branch at the tip of the remote, and elsewhere the merge base of HEAD and the default branch.
    /// If the base is unknown, orch refuses. See `orch help changes`.
    #[arg(short, long)]
    pub(crate) changed: bool,

    /// With --changed, compare with exactly this revision, not with a merge base
    ///
    /// In a project with a state, `applied` is the last apply of each stack. See `orch help state`.
    #[arg(
        short = 'B',
        long,
        value_name = "REV|applied",
        visible_alias = "git-change-base",
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    pub(crate) base: Option<String>,

    /// With --changed, run the `git fetch` that finds the base
    ///
    /// A command that reads the state, with or without --changed, also fetches applied commits that
    /// are not in this clone. They show whether a later commit was applied, and which stacks were
    /// removed.
    #[arg(long)]
    pub(crate) fetch: bool,

    /// With --changed, count these files, overriding the configuration
    #[arg(long, value_enum, value_name = "WHAT,…", value_delimiter = ',')]
    pub(crate) enable_change_detection: Vec<ChangeSource>,

    /// With --changed, do not count these files, overriding the configuration
    #[arg(long, value_enum, value_name = "WHAT,…", value_delimiter = ',')]
    pub(crate) disable_change_detection: Vec<ChangeSource>,

    /// Only stacks that policies name at the release of a module, as in 'vpc@1.3.0..1.4.0'
    ///
    /// The module needs a `module` block, both versions need tags, and policies must be attached to
    /// `module:NAME`. See `orch help releases`.
    #[arg(
        long,
        value_name = "MODULE@OLD..NEW",
        value_parser = ReleaseName::parse,
        conflicts_with = "changed"
    )]
    pub(crate) released: Option<ReleaseName>,

    /// Only stacks with one of these statuses, according to the state
    ///
    /// `pending`: never applied, or changed since. `failed`: the last attempt failed, or was interrupted.
    /// `running`: a run is working on it. `applied`: nothing has changed since it was applied. See `orch help state`.
    #[arg(long, value_enum, value_name = "WORD,…", value_delimiter = ',')]
    pub(crate) status: Vec<StatusWord>,

    /// Only stacks with these tags: `a:b` both, `a,b` either (can be repeated: either)
    #[arg(long, value_name = "FILTER")]
    pub(crate) tags: Vec<String>,

    /// Exclude stacks with any of these tags (can be repeated)
    #[arg(long, value_name = "TAG,…")]
    pub(crate) no_tags: Vec<String>,

    /// Only the stack of the current directory, not those below it
    #[arg(long)]
    pub(crate) no_recursive: bool,

    /// Only stacks whose path matches, as in 'prod/**' (can be repeated: either)
    ///
    /// `*`, `?` and `[…]` match within a name, `**` across names, `{a,b}` either of two. Both
    /// `prod/**` and `prod` match prod and everything below it. A path is relative to the current
    /// directory, or to the project root if it starts with `/`. In a directory with `for_each`,
    /// `'net["dev"]'` is one instance and `'net[*]'` all of them.
    #[arg(long = "match", value_name = "GLOB")]
    pub(crate) globs: Vec<String>,

    /// Exclude stacks whose path matches, even if others want them (can be repeated)
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,

    /// Only stacks in a file, one path per line; `-` reads stdin
    ///
    /// Paths are relative to the current directory, as `list` prints them, or to the project root
    /// if they start with `/`. A path that is not a stack is an error; stacks outside of the
    /// current directory are left out.
    #[arg(long, value_name = "FILE")]
    pub(crate) stacks_from: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) neighbours: NeighbourArgs,
}

impl SelectArgs {
    /// Returns the request of a command that reads the state only because of these flags.
    pub(super) fn request(&self, chdir: &[PathBuf]) -> Result<SelectionRequest> {
        self.check_fetch()?;
        self.request_with_state(chdir)
    }

    /// Returns the request of a command that may read the state anyway, and so may fetch. Reads the
    /// list of stacks before the project: its writer may take a while.
    pub(super) fn request_with_state(&self, chdir: &[PathBuf]) -> Result<SelectionRequest> {
        let change = if self.changed {
            Some(self.change_query()?)
        } else if let Some(flag) = self.flag_of_changed() {
            return Err(without_changed(flag).into());
        } else {
            None
        };
        let (tags, no_tags) = tag_filters(&self.tags, &self.no_tags)?;
        let scope = if self.no_recursive {
            DirectoryMatch::Exact
        } else {
            DirectoryMatch::Recursive
        };
        Ok(SelectionRequest {
            change,
            released: self.released.clone(),
            statuses: self.status.iter().map(|word| word.kind()).collect(),
            fetches: self.fetch,
            missing: MissingStacks::Refused,
            explains: false,
            tags,
            no_tags,
            scope,
            globs: self.globs.clone(),
            exclude: self.exclude.clone(),
            stacks_from: match &self.stacks_from {
                Some(file) => Some(read_names(chdir, file)?),
                None => None,
            },
            neighbours: self.neighbours.reaches(),
        })
    }

    /// Refuses `--fetch` if the command needs no history.
    pub(super) fn check_fetch(&self) -> Result<()> {
        if self.fetch && !self.changed && self.status.is_empty() {
            let message = "`--fetch` has no effect without `--changed` or `--status`; add `--changed` or `--status`";
            return Err(ProgramError::usage(message));
        }
        Ok(())
    }

    pub(super) fn change_query(&self) -> Result<ChangeQuery> {
        let args = self;
        let switch = |source: ChangeSource, name: &str| {
            let is_enabled = args.enable_change_detection.contains(&source);
            let is_disabled = args.disable_change_detection.contains(&source);
            match (is_enabled, is_disabled) {
                (true, true) => Err(ProgramError::usage(format!(
                    "`{name}` is in --enable-change-detection and in --disable-change-detection"
                ))),
                (false, false) => Ok(None),
                _ => Ok(Some(is_enabled)),
            }
        };
        Ok(ChangeQuery {
            base: args.base.clone(),
            fetch: args.fetch,
            untracked: switch(ChangeSource::GitUntracked, "git-untracked")?,
            uncommitted: switch(ChangeSource::GitUncommitted, "git-uncommitted")?,
        })
    }

    /// Returns the data that the selection reads.
    pub(super) fn reads(&self) -> Reads {
        let reads = if self.changed || !self.status.is_empty() {
            Reads::CHANGES
        } else if self.released.is_some() {
            Reads::INPUTS
        } else {
            Reads::CONFIGURATION
        };
        reads.with_data(self.neighbours.follow_data())
    }

    /// Returns the first flag, besides `--fetch`, that requires `--changed`.
    pub(crate) fn flag_of_changed(&self) -> Option<&'static str> {
        let flags = [
            ("--base", self.base.is_some()),
            (
                "--enable-change-detection",
                !self.enable_change_detection.is_empty(),
            ),
            (
                "--disable-change-detection",
                !self.disable_change_detection.is_empty(),
            ),
        ];
        let mut given = flags.into_iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(flag, _)| flag)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusWord {
    /// A run is working on it
    Running,
    /// The last attempt failed or was interrupted
    Failed,
    /// It was never applied, or has changed since
    Pending,
    /// Nothing has changed since it was applied
    Applied,
    /// Recorded but not in the project, and git proves that it was removed
    Removed,
    /// Recorded but not in the project, without such proof
    Absent,
}

impl StatusWord {
    pub(crate) fn kind(self) -> StatusKind {
        match self {
            StatusWord::Running => StatusKind::Running,
            StatusWord::Failed => StatusKind::Failed,
            StatusWord::Pending => StatusKind::Pending,
            StatusWord::Applied => StatusKind::Applied,
            StatusWord::Removed => StatusKind::Removed,
            StatusWord::Absent => StatusKind::Absent,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChangeSource {
    /// Untracked files
    GitUntracked,
    /// Files that differ from HEAD
    GitUncommitted,
}

fn read_names(chdir: &[PathBuf], file: &Path) -> Result<NameList> {
    let is_stdin = file.as_os_str() == "-";
    let source = if is_stdin {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    };
    let mut text = String::new();
    let read = if is_stdin {
        std::io::stdin().lock().read_to_string(&mut text).map(drop)
    } else {
        let file = working_directory(chdir)?.join(file);
        std::fs::read_to_string(file).map(|read| text = read)
    };
    read.with_context(|| format!("failed to read the list of stacks from {source}"))?;
    Ok(NameList { source, text })
}

/// Parses `--tags` and `--no-tags`.
pub(super) fn tag_filters(
    wanted: &[String],
    unwanted: &[String],
) -> Result<(Vec<TagFilter>, Vec<String>)> {
    let mut tags = Vec::new();
    for text in wanted {
        let filter = TagFilter::parse(text)
            .map_err(|bad| ProgramError::usage(format!("in --tags: {bad}")))?;
        if text.split([',', ':']).any(str::is_empty) {
            return Err(no_tag("--tags", text));
        }
        tags.push(filter);
    }
    let mut no_tags = Vec::new();
    if let Some(list) = unwanted
        .iter()
        .find(|list| list.split(',').any(str::is_empty))
    {
        return Err(no_tag("--no-tags", list));
    }
    for tag in unwanted.iter().flat_map(|list| list.split(',')) {
        if let Some(problem) = tag_problem(tag) {
            let message = format!("in --no-tags: `{tag}` is not a tag: {problem}");
            return Err(ProgramError::usage(message));
        }
        no_tags.push(tag.to_owned());
    }
    Ok((tags, no_tags))
}

/// Returns the error of a flag whose value lacks a tag, for example because of an unset shell
/// variable. It must not select all stacks.
fn no_tag(flag: &str, value: &str) -> ProgramError {
    let message = match value {
        "" => format!("the value of `{flag}` is empty"),
        value => format!("in {flag}: a tag is missing in `{value}`"),
    };
    ProgramError::usage(message).hint(match flag {
        "--no-tags" => "remove `--no-tags` to exclude no stacks by tag",
        _ => "remove `--tags` to select stacks regardless of tags",
    })
}
