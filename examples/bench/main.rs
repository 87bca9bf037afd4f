//! Measures `orch` on synthetic repositories, against floors measured in the same run.
//!
//! ```sh
//! cargo build --release && cargo run --release --example bench -- --quick
//! ```
//!
//! Without `--quick` there are also a repository of 100,000 stacks, for which some 5 GB must be free
//! in the temporary directory, and comparisons of change detection on small and large repositories.
//! Nothing is asserted; the wanted figures stand beside the measured: of `list` and `list --order`
//! on 10,000 stacks, of `run` on 1,000, of what a run prints, of the order of a plan, of pipelines, of
//! the evaluation of a policy. On 10,000 stacks
//! memory should stay below 120 MB, and below 200 MB with `--changed`.
//! Where a `terramate` is on the `PATH`, its times are printed too, for the smaller repositories and
//! for `--changed`.
#![expect(clippy::print_stdout, reason = "this is a program of its own")]

mod changed;
mod commands;
mod floor;
#[path = "../generate/history.rs"]
mod history;
mod measure;
mod pipelines;
mod plans;
#[cfg(feature = "policies")]
mod policies;
mod programs;
#[path = "../generate/repository.rs"]
mod repository;
mod runs;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use crate::programs::Programs;
use crate::repository::{Options, Shape};

/// Measures `orch` on synthetic repositories
#[derive(Debug, Parser)]
struct Args {
    /// Leave out what takes minutes
    #[arg(long)]
    quick: bool,

    /// Only these subjects
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Subject>,

    /// Only trees of these sizes
    #[arg(long, value_delimiter = ',', conflicts_with = "only")]
    sizes: Vec<usize>,

    /// The journal of a run whose durations the simulated pipelines have
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,

    /// Be the floor of reading commands
    #[arg(long, hide = true, value_name = "DIR")]
    floor: Option<PathBuf>,

    /// Be the floor of `run`
    #[arg(long, hide = true, value_name = "LIST")]
    spawn_floor: Option<PathBuf>,

    /// Print much, line by line
    #[arg(long, hide = true)]
    print_lines: bool,

    /// Print much in a single line
    #[arg(long, hide = true)]
    print_one_line: bool,

    /// Run a program and print its peak memory
    #[arg(long, hide = true, num_args = 1.., allow_hyphen_values = true)]
    peak_memory: Vec<OsString>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// All commands on repositories as they could be
    Trees,
    /// The reading commands on graphs that are hard for some algorithms
    Graphs,
    /// The reading commands on 5,000 and 10,000 stacks
    Growth,
    /// `list --changed`
    Changed,
    /// `run`
    Runs,
    /// The order of a plan, and its conditions
    Plans,
    /// The jobs of pipelines, by simulation
    Pipelines,
    /// The evaluation of policies
    #[cfg(feature = "policies")]
    Policies,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(root) = &args.floor {
        return floor::walk(root);
    }
    if let Some(list) = &args.spawn_floor {
        return floor::spawn(list);
    }
    if args.print_lines {
        return runs::print(runs::LINE);
    }
    if args.print_one_line {
        return runs::print(runs::NO_LINE);
    }
    if !args.peak_memory.is_empty() {
        return measure::print_peak_memory(&args.peak_memory);
    }
    let programs = Programs::find()?;
    let sizes = match &*args.sizes {
        [] if args.quick => &[100, 1000, 10_000],
        [] => &[100, 1000, 10_000, 100_000][..],
        sizes => sizes,
    };
    let only = match &*args.only {
        [] if !args.sizes.is_empty() => &[Subject::Trees],
        [] => Subject::value_variants(),
        only => only,
    };
    if only.contains(&Subject::Trees) {
        commands::trees(&programs, sizes)?;
    }
    if only.contains(&Subject::Graphs) {
        commands::graphs(&programs)?;
    }
    if only.contains(&Subject::Growth) {
        commands::growth(&programs)?;
    }
    if only.contains(&Subject::Changed) {
        if programs.has_git {
            changed::table(&programs)?;
            if !args.quick {
                changed::growth(&programs)?;
            }
        } else {
            println!("there is no git, so nothing is measured of `list --changed`");
        }
    }
    if only.contains(&Subject::Runs) {
        runs::tables(&programs)?;
    }
    if only.contains(&Subject::Plans) {
        plans::tables()?;
    }
    if only.contains(&Subject::Pipelines) {
        pipelines::tables(args.journal.as_deref())?;
    }
    #[cfg(feature = "policies")]
    if only.contains(&Subject::Policies) {
        policies::tables(&programs)?;
    }
    Ok(())
}

fn options(shape: Shape, stacks: usize) -> Options {
    Options {
        stacks,
        files: 5,
        depth: 4,
        references: 2,
        modules: 20,
        module_chain: false,
        commits: 0,
        shape,
        seed: 1,
    }
}
