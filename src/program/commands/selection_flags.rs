//! The flags that say which stacks a command acts on.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args, ValueEnum};

/// Where the help says how the flags work together.
pub(crate) const SEE_SELECTION: &str =
    "`orch help selection` explains how the flags that select stacks work together.";

/// Which stacks a command acts on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectArgs {
    /// Only stacks that have changed since the base
    ///
    /// A stack has changed if a file has changed that lies in it, or that it watches, imports, links
    /// to or uses in its Terraform or Terragrunt files. What is not committed counts as well.
    ///
    /// The base is the commit that the CI provider names; else, on the default branch at the tip of
    /// the remote, the first parent of HEAD; else the merge base of HEAD and the default branch. If
    /// the base cannot be known, orch refuses. See `orch help changes`.
    #[arg(short, long)]
    pub(crate) changed: bool,

    /// With --changed, compare with exactly this revision, not with a merge base
    #[arg(
        short = 'B',
        long,
        value_name = "REV",
        visible_alias = "git-change-base",
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    pub(crate) base: Option<String>,

    /// With --changed, run the `git fetch` that is needed to know the base
    #[arg(long)]
    pub(crate) fetch: bool,

    /// With --changed, let these files count, whatever the configuration says
    #[arg(long, value_enum, value_name = "WHAT,…", value_delimiter = ',')]
    pub(crate) enable_change_detection: Vec<ChangeSource>,

    /// With --changed, do not let these files count, whatever the configuration says
    #[arg(long, value_enum, value_name = "WHAT,…", value_delimiter = ',')]
    pub(crate) disable_change_detection: Vec<ChangeSource>,

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
    /// `*`, `?` and `[…]` match within a name, `**` across names, `{a,b}` either of two. `prod/**` means
    /// prod and all below it; so does `prod`, which is no glob. A path is relative to the current
    /// directory, or to the project root if it starts with `/`.
    #[arg(long = "match", value_name = "GLOB")]
    pub(crate) globs: Vec<String>,

    /// Exclude stacks whose path matches, whatever selects them (can be repeated)
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,

    /// Only stacks that a file names, one path per line; `-` reads standard input
    ///
    /// Paths are relative to the current directory, as `list` prints them, or to the project root if
    /// they start with `/`. A path that is not a stack is an error; stacks outside of the current
    /// directory are left out. orch reads the list before anything else. If the list came from standard
    /// input, a command that runs afterwards finds nothing more there.
    #[arg(long, value_name = "FILE")]
    pub(crate) stacks_from: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) neighbours: NeighbourArgs,
}

impl SelectArgs {
    /// Returns the first flag that has a meaning only with `--changed`.
    pub(crate) fn flag_of_changed(&self) -> Option<&'static str> {
        let flags = [
            ("--base", self.base.is_some()),
            ("--fetch", self.fetch),
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

/// The group of the flags that select stacks by the graph, also by Terramate's names.
pub(crate) const NEIGHBOURS: &str = "neighbours";

/// Which stacks around those that are selected.
///
/// `-h` does not show the names that only users of Terramate know.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(
    next_help_heading = "Selection by the graph",
    group = ArgGroup::new(NEIGHBOURS).multiple(true)
)]
pub(crate) struct NeighbourArgs {
    /// Add what runs before the selected stacks, at most DEPTH steps away
    ///
    /// A step is one constraint of the order: nesting, `after` or `before`. In Terramate, where the flag
    /// is called --include-all-dependencies, only data that stacks share counts (`input` blocks,
    /// Terragrunt's `dependency`). The same holds for all flags below.
    #[arg(
        long,
        value_name = "DEPTH",
        group = NEIGHBOURS,
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) include_dependencies: Option<Depth>,

    /// Add what runs after the selected stacks, at most DEPTH steps away
    ///
    /// Terramate's --include-all-dependents.
    #[arg(
        long,
        value_name = "DEPTH",
        group = NEIGHBOURS,
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) include_dependents: Option<Depth>,

    /// Select what runs before the selected stacks instead of them, at most DEPTH steps away
    ///
    /// Terramate's --only-all-dependencies.
    #[arg(
        long,
        value_name = "DEPTH",
        groups = ["only", NEIGHBOURS],
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) only_dependencies: Option<Depth>,

    /// Select what runs after the selected stacks instead of them, at most DEPTH steps away
    ///
    /// Terramate's --only-all-dependents.
    #[arg(
        long,
        value_name = "DEPTH",
        groups = ["only", NEIGHBOURS],
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) only_dependents: Option<Depth>,

    /// Take away what runs before any selected stack, at most DEPTH steps away
    ///
    /// Terramate's --exclude-all-dependencies.
    #[arg(
        long,
        value_name = "DEPTH",
        group = NEIGHBOURS,
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) exclude_dependencies: Option<Depth>,

    /// Take away what runs after any selected stack, at most DEPTH steps away
    ///
    /// Terramate's --exclude-all-dependents.
    #[arg(
        long,
        value_name = "DEPTH",
        group = NEIGHBOURS,
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) exclude_dependents: Option<Depth>,

    /// The same as --include-dependencies=1
    #[arg(long, hide_short_help = true, group = NEIGHBOURS)]
    pub(crate) include_direct_dependencies: bool,

    /// The same as --include-dependents=1
    #[arg(long, hide_short_help = true, group = NEIGHBOURS)]
    pub(crate) include_direct_dependents: bool,

    /// The same as --only-dependencies=1
    #[arg(long, hide_short_help = true, groups = ["only", NEIGHBOURS])]
    pub(crate) only_direct_dependencies: bool,

    /// The same as --only-dependents=1
    #[arg(long, hide_short_help = true, groups = ["only", NEIGHBOURS])]
    pub(crate) only_direct_dependents: bool,

    #[command(flatten)]
    pub(crate) terramate: TerramateNeighbourArgs,
}

/// Terramate's names of these flags, which there follow the data that stacks share.
#[derive(Debug, Args)]
pub(crate) struct TerramateNeighbourArgs {
    #[arg(long, hide = true, group = NEIGHBOURS, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) include_all_dependencies: Option<Depth>,

    #[arg(long, hide = true, group = NEIGHBOURS, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) include_output_dependencies: Option<Depth>,

    #[arg(long, hide = true, group = NEIGHBOURS, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) include_all_dependents: Option<Depth>,

    #[arg(long, hide = true, groups = ["only", NEIGHBOURS], num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) only_all_dependencies: Option<Depth>,

    #[arg(long, hide = true, groups = ["only", NEIGHBOURS], num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) only_output_dependencies: Option<Depth>,

    #[arg(long, hide = true, groups = ["only", NEIGHBOURS], num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) only_all_dependents: Option<Depth>,

    #[arg(long, hide = true, group = NEIGHBOURS, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) exclude_all_dependencies: Option<Depth>,

    #[arg(long, hide = true, group = NEIGHBOURS, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) exclude_all_dependents: Option<Depth>,
}

/// How many steps to go; any number if absent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Depth(pub(crate) Option<NonZeroU32>);

impl Depth {
    /// One step.
    pub(crate) const ONE: Depth = Depth(Some(NonZeroU32::MIN));
}

impl FromStr for Depth {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" {
            return Ok(Depth(None));
        }
        let depth = text.parse();
        depth
            .map(|depth| Depth(Some(depth)))
            .map_err(|_| "a number of steps from 1 on, or `all`")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChangeSource {
    /// Files that git does not know
    GitUntracked,
    /// What differs from HEAD
    GitUncommitted,
}
