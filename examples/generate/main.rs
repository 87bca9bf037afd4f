//! Writes a synthetic repository, to measure and to try `orch` on.
//!
//! ```sh
//! cargo run --release --example generate -- big --stacks 10000 --commits 100
//! ```
//!
//! The same arguments give the same bytes.
#![expect(clippy::print_stdout, reason = "this is a program of its own")]

mod history;
mod repository;

use std::path::PathBuf;

use clap::Parser;

/// Writes a synthetic repository: stacks, the files beside them, and on request a git history
#[derive(Debug, Parser)]
struct Args {
    /// Where to; must be empty or absent
    directory: PathBuf,

    #[command(flatten)]
    options: repository::Options,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let stacks = repository::generate(&args.directory, &args.options)?;
    println!("{} stacks in {}", stacks.len(), args.directory.display());
    Ok(())
}
