//! Flags that select stacks by the graph, with `orch`'s and Terramate's names.

use std::num::NonZeroU32;
use std::str::FromStr;

use clap::{ArgGroup, Args};
use orch::selection::graph::SearchDirection;
use orch::selection::select::{NeighbourChoice, Reach};

/// The group of all these flags.
pub(crate) const NEIGHBOURS: &str = "neighbours";

/// The groups of flags that can be used together.
const ANY: [&str; 1] = [NEIGHBOURS];

/// The groups of mutually exclusive flags.
const ONLY: [&str; 2] = ["only", NEIGHBOURS];

/// Declares flags that take an optional number of steps, each with its groups, followed by other
/// fields.
macro_rules! depth_flags {
    (
        $(#[$of_struct:meta])*
        struct $name:ident {
            $( $(#[$of_flag:meta])* $flag:ident in $groups:ident, )*
            $( ; $($other:tt)* )?
        }
    ) => {
        #[derive(Debug, Default, Args)]
        $(#[$of_struct])*
        pub(crate) struct $name {
            $(
                $(#[$of_flag])*
                #[arg(
                    long,
                    value_name = "DEPTH",
                    groups = $groups,
                    num_args = 0..=1, require_equals = true, default_missing_value = "all"
                )]
                $flag: Option<Depth>,
            )*
            $( $($other)* )?
        }
    };
}

depth_flags! {
    /// Flags that select stacks by the graph.
    ///
    /// `-h` hides Terramate's names.
    #[command(
        next_help_heading = "Selection by the graph",
        group = ArgGroup::new(NEIGHBOURS).multiple(true)
    )]
    struct NeighbourArgs {
        /// Add the stacks that run before the selected ones, at most DEPTH steps away
        ///
        /// A step is one constraint of the order: nesting, `after` or `before`. In Terramate, where
        /// the flag is called --include-all-dependencies, only data that stacks share counts
        /// (`input` blocks, Terragrunt's `dependency`). The same holds for all flags below.
        include_dependencies in ANY,

        /// Add the stacks that run after the selected ones, at most DEPTH steps away
        ///
        /// Terramate's --include-all-dependents.
        include_dependents in ANY,

        /// Replace the selected stacks by those that run before them
        ///
        /// At most DEPTH steps away. Terramate's --only-all-dependencies.
        only_dependencies in ONLY,

        /// Replace the selected stacks by those that run after them
        ///
        /// At most DEPTH steps away. Terramate's --only-all-dependents.
        only_dependents in ONLY,

        /// Remove the stacks that run before any selected one, at most DEPTH steps away
        ///
        /// Terramate's --exclude-all-dependencies.
        exclude_dependencies in ANY,

        /// Remove the stacks that run after any selected one, at most DEPTH steps away
        ///
        /// Terramate's --exclude-all-dependents.
        exclude_dependents in ANY,

        ;

        /// The same as --include-dependencies=1
        #[arg(long, hide_short_help = true, groups = ANY)]
        include_direct_dependencies: bool,

        /// The same as --include-dependents=1
        #[arg(long, hide_short_help = true, groups = ANY)]
        include_direct_dependents: bool,

        /// The same as --only-dependencies=1
        #[arg(long, hide_short_help = true, groups = ONLY)]
        only_direct_dependencies: bool,

        /// The same as --only-dependents=1
        #[arg(long, hide_short_help = true, groups = ONLY)]
        only_direct_dependents: bool,

        #[command(flatten)]
        terramate: TerramateNeighbourArgs,
    }
}

depth_flags! {
    /// Terramate's names of these flags. In Terramate, they follow the data that stacks share.
    struct TerramateNeighbourArgs {
        #[arg(hide = true)]
        include_all_dependencies in ANY,
        #[arg(hide = true)]
        include_output_dependencies in ANY,
        #[arg(hide = true)]
        include_all_dependents in ANY,
        #[arg(hide = true)]
        only_all_dependencies in ONLY,
        #[arg(hide = true)]
        only_output_dependencies in ONLY,
        #[arg(hide = true)]
        only_all_dependents in ONLY,
        #[arg(hide = true)]
        exclude_all_dependencies in ANY,
        #[arg(hide = true)]
        exclude_all_dependents in ANY,
    }
}

impl NeighbourArgs {
    /// Returns the requested neighbours, each with Terramate's name if the user gave that name.
    pub(super) fn reaches(&self) -> Vec<(Reach, Option<&'static str>)> {
        use NeighbourChoice::{Exclude, Include, Only};
        use SearchDirection::{Dependencies, Dependents};
        let one = |flag: bool| flag.then_some(Depth::ONE);
        let theirs = &self.terramate;
        #[rustfmt::skip] // a table
        let flags = [
            (Only, Dependencies, self.only_dependencies, None),
            (Only, Dependents, self.only_dependents, None),
            (Include, Dependencies, self.include_dependencies, None),
            (Include, Dependents, self.include_dependents, None),
            (Exclude, Dependencies, self.exclude_dependencies, None),
            (Exclude, Dependents, self.exclude_dependents, None),
            (Only, Dependencies, theirs.only_all_dependencies, Some("--only-all-dependencies")),
            (Only, Dependencies, theirs.only_output_dependencies, Some("--only-output-dependencies")),
            (Only, Dependencies, one(self.only_direct_dependencies), Some("--only-direct-dependencies")),
            (Only, Dependents, theirs.only_all_dependents, Some("--only-all-dependents")),
            (Only, Dependents, one(self.only_direct_dependents), Some("--only-direct-dependents")),
            (Include, Dependencies, theirs.include_all_dependencies, Some("--include-all-dependencies")),
            (Include, Dependencies, theirs.include_output_dependencies, Some("--include-output-dependencies")),
            (Include, Dependencies, one(self.include_direct_dependencies), Some("--include-direct-dependencies")),
            (Include, Dependents, theirs.include_all_dependents, Some("--include-all-dependents")),
            (Include, Dependents, one(self.include_direct_dependents), Some("--include-direct-dependents")),
            (Exclude, Dependencies, theirs.exclude_all_dependencies, Some("--exclude-all-dependencies")),
            (Exclude, Dependents, theirs.exclude_all_dependents, Some("--exclude-all-dependents")),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(verb, towards, depth, name)| {
                let Depth(depth) = depth?;
                let reach = Reach {
                    verb,
                    towards,
                    depth,
                };
                Some((reach, name))
            });
        given.collect()
    }
}

/// A number of steps; unlimited if absent.
#[derive(Debug, Clone, Copy)]
struct Depth(Option<NonZeroU32>);

impl Depth {
    const ONE: Depth = Depth(Some(NonZeroU32::MIN));
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
