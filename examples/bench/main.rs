//! Measures `orch` on synthetic repositories, against floors measured in the same run.
//!
//! ```sh
//! cargo build --release && cargo run --release --example bench -- --quick
//! ```
//!
//! Without `--quick` there is also a repository of 100,000 stacks, for which some 5 GB must be free
//! in the temporary directory. Nothing is asserted; the wanted figures stand beside the measured:
//! of `list` and `list --order` on 10,000 stacks, of `run` on 1,000. Memory should stay below 120 MB
//! on 10,000 stacks.
//! Where a `terramate` is on the `PATH`, its times are printed too, for the smaller repositories.
#![expect(clippy::print_stdout, reason = "this is a program of its own")]

mod floor;
mod measure;
#[path = "../generate/repository.rs"]
mod repository;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::measure::{Job, medians, peak_memory};
use crate::repository::{Options, Shape, generate};

/// Up to this size something is run in each stack, and Terramate does not take too long.
const SMALL: usize = 1000;

/// Where these lines are in every table.
const FLOOR: usize = 0;
const LIST: usize = 1;
const LIST_ORDER: usize = 2;

/// The sizes between which times are compared.
const GROWTH: [usize; 2] = [10_000, 100_000];

/// Measures `orch` on synthetic repositories
#[derive(Debug, Parser)]
struct Args {
    /// Leave out the repository of 100,000 stacks
    #[arg(long)]
    quick: bool,

    /// Only repositories of these sizes, and no graphs
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,

    /// Be the floor of reading commands
    #[arg(long, hide = true, value_name = "DIR")]
    floor: Option<PathBuf>,

    /// Be the floor of `run`
    #[arg(long, hide = true, value_name = "LIST")]
    spawn_floor: Option<PathBuf>,

    /// Run a program and print its peak memory
    #[arg(long, hide = true, num_args = 1.., allow_hyphen_values = true)]
    peak_memory: Vec<OsString>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(root) = &args.floor {
        return floor::walk(root);
    }
    if let Some(list) = &args.spawn_floor {
        return floor::spawn(list);
    }
    if !args.peak_memory.is_empty() {
        return measure::print_peak_memory(&args.peak_memory);
    }
    let bench = Bench::new()?;
    let sizes = match &*args.sizes {
        [] if args.quick => &[100, 1000, 10_000],
        [] => &[100, 1000, 10_000, 100_000][..],
        sizes => sizes,
    };
    let mut grown = Vec::new();
    for &size in sizes {
        let times = bench.tree(size)?;
        if GROWTH.contains(&size) {
            grown.push(times);
        }
    }
    if let [small, large] = &*grown {
        println!("10,000 → 100,000 stacks, wanted at most 12 times the time:");
        for (small, large) in small.iter().zip(large) {
            let factor = large.time.as_secs_f64() / small.time.as_secs_f64();
            println!("  {:<28}{factor:>10.1}", small.name);
        }
        println!();
    }
    if args.sizes.is_empty() {
        bench.graph("chain of 10,000", Shape::Chain, 10_000, &[])?;
        bench.graph(
            "5,000 after a directory of 5,000",
            Shape::Bipartite,
            5000,
            &[],
        )?;
        bench.graph(
            "300 in layers of 20",
            Shape::Layers,
            300,
            &["--no-tags", "skip"],
        )?;
    }
    Ok(())
}

/// How long a command took.
struct Timed {
    name: &'static str,
    time: Duration,
}

/// A line of a table.
struct Row {
    name: &'static str,
    job: Job,
    /// The line of its floor; floors have none.
    floor: Option<usize>,
    /// How many times the floor is good enough.
    wanted: Option<f64>,
}

/// The programs involved.
struct Bench {
    orch: PathBuf,
    /// This program, which is also the floors.
    own: PathBuf,
    has_terramate: bool,
}

impl Bench {
    fn new() -> Result<Self> {
        let own = std::env::current_exe()?;
        let target = own.parent().and_then(Path::parent);
        let target = target.context("Cargo puts examples into a directory of their own")?;
        let orch = target.join(format!("orch{}", std::env::consts::EXE_SUFFIX));
        ensure!(
            orch.is_file(),
            "there is no {}; run `cargo build --release` first",
            orch.display()
        );
        let mut terramate = Command::new("terramate");
        terramate.arg("--version").stdout(Stdio::null());
        let has_terramate = terramate.status().is_ok_and(|status| status.success());
        Ok(Bench {
            orch,
            own,
            has_terramate,
        })
    }

    /// Measures all commands on a repository as it could be.
    fn tree(&self, stacks: usize) -> Result<Vec<Timed>> {
        let directory = tempfile::tempdir()?;
        let root = &directory.path().join("repository");
        let stack_directories = generate(root, &options(Shape::Tree, stacks))?;
        println!("{stacks} stacks");
        let mut rows = self.reading(root, &[]);
        rows[LIST].wanted = Some(2.0);
        rows[LIST_ORDER].wanted = Some(2.5);
        let is_small = stacks <= SMALL;
        if is_small && self.has_terramate {
            let terramate = |name, arguments: &[&str]| Row {
                name,
                job: Job::new("terramate", root).args(arguments),
                floor: Some(FLOOR),
                wanted: None,
            };
            rows.push(terramate("terramate list", &["list"]));
            rows.push(terramate(
                "terramate list --run-order",
                &["list", "--run-order"],
            ));
        }
        if is_small {
            let list = directory.path().join("list");
            let mut text = String::new();
            for stack in &stack_directories {
                text += &format!("{}\n", root.join(stack).display());
            }
            fs::write(&list, text)?;
            rows.push(Row {
                name: "floor of run: a bare loop",
                job: Job::new(&self.own, root).args([OsStr::new("--spawn-floor"), list.as_ref()]),
                floor: None,
                wanted: None,
            });
            rows.push(Row {
                name: "run -- true",
                job: Job::new(&self.orch, root).args(["run", "--", "true"]),
                floor: Some(rows.len() - 1),
                wanted: Some(1.3),
            });
        }
        let rounds = match stacks {
            ..=1000 => 11,
            1001..=10_000 => 7,
            _ => 3,
        };
        self.table(root, &rows, rounds)
    }

    /// Measures the reading commands on a graph that is hard for some algorithms.
    fn graph(&self, name: &str, shape: Shape, stacks: usize, selection: &[&str]) -> Result<()> {
        let directory = tempfile::tempdir()?;
        let root = &directory.path().join("repository");
        let options = Options {
            files: 0,
            modules: 0,
            ..options(shape, stacks)
        };
        generate(root, &options)?;
        println!("{}", [&[name], selection].concat().join(" "));
        self.table(root, &self.reading(root, selection), 5)?;
        Ok(())
    }

    /// Returns the lines of the commands that only read, after that of their floor.
    fn reading(&self, root: &Path, selection: &[&str]) -> Vec<Row> {
        let floor = Row {
            name: "floor: walk and read",
            job: Job::new(&self.own, root).args([OsStr::new("--floor"), root.as_ref()]),
            floor: None,
            wanted: None,
        };
        let orch = |name: &'static str| Row {
            name,
            job: Job::new(&self.orch, root)
                .args(name.split(' '))
                .args(selection),
            floor: Some(FLOOR),
            wanted: None,
        };
        vec![floor, orch("list"), orch("list --order"), orch("graph")]
    }

    /// Measures and prints the lines of a table.
    fn table(&self, root: &Path, rows: &[Row], rounds: usize) -> Result<Vec<Timed>> {
        let runs: Vec<_> = rows.iter().map(|row| || row.job.run()).collect();
        let walk = || floor::walk(root);
        let mut steps: Vec<&dyn Fn() -> Result<()>> = vec![&walk];
        steps.extend(runs.iter().map(|run| run as &dyn Fn() -> Result<()>));
        let times = medians(&steps, rounds)?;
        let (walk, times) = times.split_first().context("the walk was timed")?;
        println!(
            "  {:<28}{:>10}{:>10}{:>8}{:>8}{:>10}",
            "", "ms", "floor ms", "ratio", "wanted", "peak MB"
        );
        println!("  {:<28}{}", "the same walk, no process", ms(*walk));
        for (row, &time) in rows.iter().zip(times) {
            let mut line = format!("  {:<28}{}", row.name, ms(time));
            match row.floor.map(|floor| times[floor]) {
                Some(floor) => {
                    let ratio = time.as_secs_f64() / floor.as_secs_f64();
                    line += &format!("{}{ratio:>8.2}", ms(floor));
                }
                None => line += &format!("{:>18}", ""),
            }
            line += &match row.wanted {
                Some(wanted) => format!("{wanted:>8.1}"),
                None => format!("{:>8}", ""),
            };
            if let Some(memory) = peak_memory(&self.own, &row.job)? {
                line += &format!("{memory:>10.1}");
            }
            println!("{line}");
        }
        println!();
        Ok(rows
            .iter()
            .zip(times)
            .map(|(row, &time)| Timed {
                name: row.name,
                time,
            })
            .collect())
    }
}

fn options(shape: Shape, stacks: usize) -> Options {
    Options {
        stacks,
        files: 5,
        depth: 4,
        references: 2,
        modules: 20,
        commits: 0,
        shape,
        seed: 1,
    }
}

fn ms(time: Duration) -> String {
    format!("{:>10.1}", time.as_secs_f64() * 1000.0)
}
