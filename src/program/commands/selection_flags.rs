//! The flags that say which stacks a command acts on.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args, ValueEnum};

/// How the flags work together: what [`orch::selection::select`] does, for `--help`.
pub(crate) const PRECEDENCE: &str = "\
Selection, step by step:
  1. all stacks of the project
  2. --changed: those that have changed or that a trigger asks for; a trigger that asks to ignore a
     stack beats both
  3. those at and below the current directory; with --no-recursive, the one at it
  4. --match, --stacks-from, --tags, --no-tags: those that pass each of them
  5. `wants`, `wanted_by`: what these want as well, whatever the steps before say of it
  6. --only-…: the neighbours in the graph of all these, instead; --include-…: the neighbours of
     what step 5 gives, as well; then --exclude-…: without the neighbours of what is left
  No step selects a stack that --exclude means; the graph leads through it all the same.";

/// Which stacks a command acts on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection", group = ArgGroup::new("since").multiple(true))]
pub(crate) struct SelectArgs {
    /// Only stacks that have changed since the base
    ///
    /// A stack has changed if a file has that lies in it, or that it watches, imports, links to or
    /// uses in its Terraform or Terragrunt files. What is not committed counts as well.
    ///
    /// The base is the commit that the CI provider names; else, on the default branch at the tip of
    /// the remote, the first parent of HEAD; else the merge base of HEAD and the default branch. If it
    /// cannot be known, orch refuses.
    #[arg(short, long, group = "since")]
    pub(crate) changed: bool,

    /// Compare with this revision: exactly with it, not with a merge base
    #[arg(
        short = 'B',
        long,
        value_name = "REV",
        visible_alias = "git-change-base",
        requires = "since",
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    pub(crate) base: Option<String>,

    /// Run the `git fetch` that is needed to know the base
    #[arg(long, requires = "since")]
    pub(crate) fetch: bool,

    /// Let these count as changed, whatever the configuration says
    #[arg(
        long,
        value_enum,
        value_name = "WHAT,…",
        value_delimiter = ',',
        requires = "since"
    )]
    pub(crate) enable_change_detection: Vec<ChangeSource>,

    /// Do not let these count as changed, whatever the configuration says
    #[arg(
        long,
        value_enum,
        value_name = "WHAT,…",
        value_delimiter = ',',
        requires = "since"
    )]
    pub(crate) disable_change_detection: Vec<ChangeSource>,

    /// Only stacks with these tags: `a:b` both, `a,b` either (can be repeated: either)
    #[arg(long, value_name = "FILTER")]
    pub(crate) tags: Vec<String>,

    /// No stacks with any of these tags (can be repeated)
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

    /// Never these stacks, whatever selects them; as in --match (can be repeated)
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,

    /// Only the stacks that a file names, or with `-` standard input, one path per line
    ///
    /// Paths are relative to the current directory, as `list` prints them, or start with `/` at the
    /// project root. What is not a stack is an error; stacks outside of the current directory are left
    /// out. The list is read before anything else. A command that runs afterwards finds standard input
    /// at its end, if the list came from there.
    #[arg(long, value_name = "FILE")]
    pub(crate) stacks_from: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) neighbours: NeighbourArgs,
}

/// Which stacks around those that are selected.
///
/// What only Terramate's users know is not shown by `-h`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(next_help_heading = "Selection by the graph")]
pub(crate) struct NeighbourArgs {
    /// And what runs before what is selected, at most DEPTH steps away
    ///
    /// A step is one constraint of the order: nesting, `after` or `before`. In Terramate, where the flag
    /// is called --include-all-dependencies, only data that stacks share counts (`input` blocks,
    /// Terragrunt's `dependency`). The same holds for all flags below.
    #[arg(
        long,
        value_name = "DEPTH",
        aliases = ["include-all-dependencies", "include-output-dependencies"],
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) include_dependencies: Option<Depth>,

    /// And what runs after what is selected, at most DEPTH steps away
    ///
    /// Terramate's --include-all-dependents.
    #[arg(
        long,
        value_name = "DEPTH",
        alias = "include-all-dependents",
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) include_dependents: Option<Depth>,

    /// Instead what runs before what is selected, at most DEPTH steps away
    ///
    /// Terramate's --only-all-dependencies.
    #[arg(
        long,
        value_name = "DEPTH",
        aliases = ["only-all-dependencies", "only-output-dependencies"],
        group = "only",
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) only_dependencies: Option<Depth>,

    /// Instead what runs after what is selected, at most DEPTH steps away
    ///
    /// Terramate's --only-all-dependents.
    #[arg(
        long,
        value_name = "DEPTH",
        alias = "only-all-dependents",
        group = "only",
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) only_dependents: Option<Depth>,

    /// Without what runs before anything selected, at most DEPTH steps away
    ///
    /// Terramate's --exclude-all-dependencies.
    #[arg(
        long,
        value_name = "DEPTH",
        alias = "exclude-all-dependencies",
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) exclude_dependencies: Option<Depth>,

    /// Without what runs after anything selected, at most DEPTH steps away
    ///
    /// Terramate's --exclude-all-dependents.
    #[arg(
        long,
        value_name = "DEPTH",
        alias = "exclude-all-dependents",
        num_args = 0..=1, require_equals = true, default_missing_value = "all"
    )]
    pub(crate) exclude_dependents: Option<Depth>,

    /// The same as --include-dependencies=1
    #[arg(long, hide_short_help = true)]
    pub(crate) include_direct_dependencies: bool,

    /// The same as --include-dependents=1
    #[arg(long, hide_short_help = true)]
    pub(crate) include_direct_dependents: bool,

    /// The same as --only-dependencies=1
    #[arg(long, hide_short_help = true, group = "only")]
    pub(crate) only_direct_dependencies: bool,

    /// The same as --only-dependents=1
    #[arg(long, hide_short_help = true, group = "only")]
    pub(crate) only_direct_dependents: bool,
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
