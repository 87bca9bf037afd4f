//! Laws that hold for every project: random trees, compared with a model that is as naive as it can
//! be and shares no code with the library. Beside them, tables of what the library answers.
//!
//! `PROPTEST_CASES` sets how many trees each law sees.

#[path = "../support/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "laws need the host and git, not what transcripts need"
)]
mod support;

mod additions;
mod archive;
mod base;
#[cfg(unix)]
mod changed;
mod commands;
mod committed;
mod compared;
#[cfg(unix)]
mod computing;
mod cycles;
mod deletions;
mod exported;
mod formatted;
mod globals;
mod globs;
#[cfg(unix)]
mod killed;
mod loaded;
mod loading;
mod model;
mod moves;
mod operations;
mod order;
mod planned;
#[cfg(feature = "policies")]
mod policies;
mod query;
mod recorded;
mod references;
#[cfg(unix)]
mod removals;
mod running;
mod runs;
#[cfg(unix)]
mod safeguards;
mod selection;
mod selector;
mod state;
mod text;
mod tree;
mod triggers;
mod turns;
mod upstream;
mod used_outputs;
mod why;
