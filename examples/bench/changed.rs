//! `list --changed` and `why`, held against what it cannot do without: `list`, and what git takes to compare
//! two commits and to look through the working tree.
#![expect(clippy::print_stdout, reason = "that is its result")]

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::history::{import, mark};
use crate::measure::Job;
use crate::options;
use crate::programs::Programs;
use crate::repository::{Options, Shape, file_name, generate};
use crate::table::{self, Figures, Row, print_growth, print_growth_header};

/// The size of the repository on which figures are wanted.
const STACKS: usize = 10_000;
const COMMITS: usize = 2000;

/// The sizes between which times are compared.
const GROWTH: [usize; 2] = [1000, 10_000];

/// Where these lines are among those of [`rows`]; a pair for each set of changes follows.
const LIST: usize = 0;
const STATUS: usize = 1;
const FIRST_CHANGES: usize = 2;

/// Files that differ between a base and `HEAD`.
struct Changes {
    name: &'static str,
    files: Vec<String>,
    /// How many times the floors are good enough.
    wanted: f64,
}

/// Measures sets of changes on a large repository with a long history.
pub(crate) fn table(programs: &Programs) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let root = &directory.path().join("repository");
    let options = Options {
        commits: COMMITS,
        ..options(Shape::Tree, STACKS)
    };
    let stacks = generate(root, &options)?;
    let changes = [
        Changes {
            name: "1 file",
            files: vec![format!("{}/main.tf", stacks[STACKS / 2])],
            wanted: 1.5,
        },
        Changes {
            name: "1,000 files",
            files: stacks
                .iter()
                .step_by(STACKS / 1000)
                .map(|stack| format!("{stack}/main.tf"))
                .collect(),
            wanted: 2.0,
        },
        Changes {
            name: "a module",
            files: vec![module(0)],
            wanted: 1.5,
        },
    ];
    let bases = add_bases(root, COMMITS, &changes)?;
    println!("{STACKS} stacks, {COMMITS} commits");
    for (changes, base) in changes.iter().zip(&bases) {
        let count = changed(programs, root, base).count_lines()?;
        println!("  {count} stacks changed by {}", changes.name);
    }
    let mut rows = rows(programs, root, &changes, &bases);
    let why = format!("why {} --changed --base {}", stacks[STACKS / 2], bases[0]);
    let why = Row::job("why of a stack, 1 file", programs.orch(root, &why));
    rows.push(why.floors([FIRST_CHANGES + 1]).wanted(1.0));
    let mut figures = table::measure(&rows, 7)?;
    if programs.has_terramate {
        let terramate = changes.iter().zip(&bases).enumerate();
        let terramate: Vec<_> = terramate
            .map(|(index, (changes, base))| {
                let job = Job::new("terramate", root);
                let job = job.args(["list", "--changed", "--git-change-base", base]);
                Row::job(format!("terramate, {}", changes.name), job).floors(floors(index))
            })
            .collect();
        figures.extend(table::measure(&terramate, 1)?);
        rows.extend(terramate);
    }
    table::print(&rows, &figures);
    Ok(())
}

/// Compares the times on a small and on a large repository.
pub(crate) fn growth(programs: &Programs) -> Result<()> {
    let small = options(Shape::Tree, 0);
    let chain = |modules| Options {
        files: 1,
        modules,
        module_chain: true,
        ..small.clone()
    };
    print_growth_header("1,000", "10,000", 12);
    grow(programs, "a module of all stacks", &chain(1), |_| {
        vec![module(0)]
    })?;
    grow(programs, "the last of 20 modules", &chain(20), |_| {
        vec![module(19)]
    })?;
    let many = Options { files: 10, ..small };
    grow(programs, "10,000 → 100,000 files", &many, |stacks| {
        let names: Vec<_> = (0..many.files).map(file_name).collect();
        let files = stacks
            .iter()
            .flat_map(|stack| names.iter().map(move |name| format!("{stack}/{name}")));
        files.collect()
    })?;
    println!();
    Ok(())
}

/// Prints what becomes of the time when `files` change, on which all stacks depend.
fn grow(
    programs: &Programs,
    name: &'static str,
    options: &Options,
    files: impl Fn(&[String]) -> Vec<String>,
) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut all = Vec::new();
    for stacks in GROWTH {
        let root = &directory.path().join(stacks.to_string());
        let options = Options {
            stacks,
            commits: 1,
            ..options.clone()
        };
        let changes = [Changes {
            name,
            files: files(&generate(root, &options)?),
            wanted: 2.0,
        }];
        let bases = add_bases(root, options.commits, &changes)?;
        let count = changed(programs, root, &bases[0]).count_lines()?;
        ensure!(count == stacks, "{count} of {stacks} stacks changed");
        all.extend(rows(programs, root, &changes, &bases));
    }
    let figures = table::measure(&all, 5)?;
    let (small, large) = figures.split_at(all.len() / 2);
    let floors = |figures: &[Figures]| floors(0).map(|floor| figures[floor].time).iter().sum();
    let changed = |figures: &[Figures]| figures[FIRST_CHANGES + 1].time;
    print_growth(name, changed(small), changed(large));
    print_growth("  its floors", floors(small), floors(large));
    Ok(())
}

/// Adds to the history a commit for each set of changes, in which these files and no others differ
/// from what is in the working tree, and a last one that equals the working tree again. Returns
/// names of all but the last.
fn add_bases(root: &Path, commits: usize, changes: &[Changes]) -> Result<Vec<String>> {
    let mut parent = "refs/heads/main^0".to_owned();
    import(root, |history| {
        for index in 0..=changes.len() {
            let number = commits + 1 + index;
            history.commit("main", number, &[&parent])?;
            parent = mark(number);
            // Of a file in both sets, what is written last stays.
            for file in index
                .checked_sub(1)
                .map_or(&[][..], |last| &changes[last].files)
            {
                history.file(file, &fs::read(root.join(file))?)?;
            }
            for file in changes.get(index).map_or(&[][..], |next| &next.files) {
                let text = fs::read_to_string(root.join(file))?;
                history.file(file, format!("// Before.\n{text}").as_bytes())?;
            }
        }
        Ok(())
    })?;
    let mut bases = Vec::new();
    for (index, Changes { files, .. }) in changes.iter().enumerate() {
        let base = format!("HEAD~{}", changes.len() - index);
        let count = diff(root, &base).count_lines()?;
        ensure!(count == files.len(), "{count} files differ from {base}");
        bases.push(base);
    }
    Ok(bases)
}

/// Returns the lines of `list --changed` with each of these sets of changes, after their floors.
fn rows(programs: &Programs, root: &Path, changes: &[Changes], bases: &[String]) -> Vec<Row> {
    let status = Job::new("git", root).args(["status", "--porcelain"]);
    let mut rows = vec![
        Row::job("list", programs.orch(root, "list")),
        Row::job("git status", status),
    ];
    for (index, (changes, base)) in changes.iter().zip(bases).enumerate() {
        let name = changes.name;
        rows.push(Row::job(format!("git diff, {name}"), diff(root, base)));
        let row = Row::job(
            format!("list --changed, {name}"),
            changed(programs, root, base),
        );
        rows.push(row.floors(floors(index)).wanted(changes.wanted));
    }
    rows
}

/// Returns the floors with a set of changes.
fn floors(index: usize) -> [usize; 3] {
    [LIST, STATUS, FIRST_CHANGES + 2 * index]
}

fn diff(root: &Path, base: &str) -> Job {
    Job::new("git", root).args(["diff", "--name-only", base, "HEAD"])
}

fn changed(programs: &Programs, root: &Path, base: &str) -> Job {
    programs.orch(root, &format!("list --changed --base {base}"))
}

fn module(number: usize) -> String {
    format!("modules/module-{number:03}/main.tf")
}
