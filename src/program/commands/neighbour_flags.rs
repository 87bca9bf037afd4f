//! Flags that select stacks by the graph of the order, and Terramate's, which follow data.

use std::num::NonZeroU32;
use std::str::FromStr;

use clap::{ArgGroup, Args};
use orch::selection::graph::SearchDirection;
use orch::selection::select::{NeighbourChoice, Reach, ReachBy};

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
    /// The help hides Terramate's flags.
    #[command(
        next_help_heading = "Selection by the graph",
        group = ArgGroup::new(NEIGHBOURS).multiple(true)
    )]
    struct NeighbourArgs {
        /// Add the stacks that run before the selected ones, at most DEPTH steps away
        ///
        /// A step is one constraint of the order: nesting, `after`, `before`, or data that orders
        /// stacks. Terramate's --include-all-dependencies and the like follow only data: `input`
        /// blocks, Terragrunt's `dependency` blocks, and `terraform_remote_state`.
        include_dependencies in ANY,

        /// Add the stacks that run after the selected ones, at most DEPTH steps away
        include_dependents in ANY,

        /// Replace the selected stacks by those that run before them
        ///
        /// At most DEPTH steps away.
        only_dependencies in ONLY,

        /// Replace the selected stacks by those that run after them
        ///
        /// At most DEPTH steps away.
        only_dependents in ONLY,

        /// Remove the stacks that run before any selected one, at most DEPTH steps away
        exclude_dependencies in ANY,

        /// Remove the stacks that run after any selected one, at most DEPTH steps away
        exclude_dependents in ANY,

        ;

        #[command(flatten)]
        terramate: TerramateNeighbourArgs,
    }
}

depth_flags! {
    /// Terramate's flags, which follow the data that stacks use of each other.
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

        ;

        #[arg(long, hide = true, groups = ANY)]
        include_direct_dependencies: bool,
        #[arg(long, hide = true, groups = ANY)]
        include_direct_dependents: bool,
        #[arg(long, hide = true, groups = ONLY)]
        only_direct_dependencies: bool,
        #[arg(long, hide = true, groups = ONLY)]
        only_direct_dependents: bool,
    }
}

impl NeighbourArgs {
    /// Returns whether a flag follows data.
    pub(super) fn follow_data(&self) -> bool {
        self.reaches().iter().any(|it| it.by == ReachBy::Data)
    }

    /// Returns the requested neighbours.
    pub(super) fn reaches(&self) -> Vec<Reach> {
        use NeighbourChoice::{Exclude, Include, Only};
        use ReachBy::{Data, Order};
        use SearchDirection::{Dependencies, Dependents};
        let one = |flag: bool| flag.then_some(Depth::ONE);
        let theirs = &self.terramate;
        #[rustfmt::skip] // a table
        let flags = [
            (Only, Order, Dependencies, self.only_dependencies),
            (Only, Order, Dependents, self.only_dependents),
            (Include, Order, Dependencies, self.include_dependencies),
            (Include, Order, Dependents, self.include_dependents),
            (Exclude, Order, Dependencies, self.exclude_dependencies),
            (Exclude, Order, Dependents, self.exclude_dependents),
            (Only, Data, Dependencies, theirs.only_all_dependencies),
            (Only, Data, Dependencies, theirs.only_output_dependencies),
            (Only, Data, Dependencies, one(theirs.only_direct_dependencies)),
            (Only, Data, Dependents, theirs.only_all_dependents),
            (Only, Data, Dependents, one(theirs.only_direct_dependents)),
            (Include, Data, Dependencies, theirs.include_all_dependencies),
            (Include, Data, Dependencies, theirs.include_output_dependencies),
            (Include, Data, Dependencies, one(theirs.include_direct_dependencies)),
            (Include, Data, Dependents, theirs.include_all_dependents),
            (Include, Data, Dependents, one(theirs.include_direct_dependents)),
            (Exclude, Data, Dependencies, theirs.exclude_all_dependencies),
            (Exclude, Data, Dependents, theirs.exclude_all_dependents),
        ];
        let given = flags.into_iter().filter_map(|(verb, by, towards, depth)| {
            let Depth(depth) = depth?;
            Some(Reach {
                verb,
                by,
                towards,
                depth,
            })
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
