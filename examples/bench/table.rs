//! Tables of times: what a line runs, and how it is printed.
#![expect(clippy::print_stdout, reason = "that is its result")]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::floor;
use crate::measure::{Job, medians, peak_memory};

/// A line of a table.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) step: Step,
    /// The lines that are its floor together; floors have none.
    pub(crate) floors: Vec<usize>,
    /// How many times the floor is good enough.
    pub(crate) wanted: Option<f64>,
}

/// What a line measures.
pub(crate) enum Step {
    Job(Job),
    /// The floor of reading commands, without a process.
    Walk(PathBuf),
}

/// What was measured for a line.
pub(crate) struct Figures {
    pub(crate) time: Duration,
    /// In MB.
    memory: Option<f64>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, step: Step) -> Self {
        Row {
            name: name.into(),
            step,
            floors: Vec::new(),
            wanted: None,
        }
    }

    pub(crate) fn job(name: impl Into<String>, job: Job) -> Self {
        Row::new(name, Step::Job(job))
    }

    pub(crate) fn floors(self, floors: impl Into<Vec<usize>>) -> Self {
        let floors = floors.into();
        Row { floors, ..self }
    }

    pub(crate) fn wanted(self, times: f64) -> Self {
        let wanted = Some(times);
        Row { wanted, ..self }
    }
}

impl Step {
    fn run(&self) -> Result<()> {
        match self {
            Step::Job(job) => job.run(),
            Step::Walk(root) => floor::walk(root),
        }
    }

    fn memory(&self) -> Result<Option<f64>> {
        match self {
            Step::Job(job) => peak_memory(job),
            Step::Walk(_) => Ok(None),
        }
    }
}

/// Measures lines, their memory first: that also warms the caches.
pub(crate) fn measure(rows: &[Row], rounds: usize) -> Result<Vec<Figures>> {
    let memories = rows.iter().map(|row| row.step.memory());
    let memories = memories.collect::<Result<Vec<_>>>()?;
    let steps: Vec<_> = rows.iter().map(|row| || row.step.run()).collect();
    let times = medians(&steps, rounds)?;
    let figures = times.into_iter().zip(memories);
    Ok(figures
        .map(|(time, memory)| Figures { time, memory })
        .collect())
}

/// Prints a table.
pub(crate) fn print(rows: &[Row], figures: &[Figures]) {
    println!(
        "  {:<28}{:>10}{:>10}{:>8}{:>8}{:>10}",
        "", "ms", "floor ms", "ratio", "wanted", "peak MB"
    );
    for (row, Figures { time, memory }) in rows.iter().zip(figures) {
        let mut line = format!("  {:<28}{}", row.name, ms(*time));
        if row.floors.is_empty() {
            line += &format!("{:>18}", "");
        } else {
            let floor = row.floors.iter().map(|&floor| figures[floor].time).sum();
            line += &format!("{}{:>8.2}", ms(floor), ratio(*time, floor));
        }
        line += &match row.wanted {
            Some(wanted) => format!("{wanted:>8.1}"),
            None => format!("{:>8}", ""),
        };
        if let Some(memory) = memory {
            line += &format!("{memory:>10.1}");
        }
        println!("{}", line.trim_end());
    }
    println!();
}

/// Prints what stands above lines of [`print_growth`].
pub(crate) fn print_growth_header(small: &str, large: &str, wanted: u32) {
    println!("{small} → {large} stacks, wanted at most {wanted} times the time:");
    println!("  {:<52}{:>10}{:>10}{:>8}", "", "ms", "ms", "factor");
}

/// Prints how much longer something takes on a larger repository.
pub(crate) fn print_growth(name: &str, small: Duration, large: Duration) {
    let factor = ratio(large, small);
    println!("  {name:<52}{}{}{factor:>8.1}", ms(small), ms(large));
}

fn ratio(time: Duration, of: Duration) -> f64 {
    time.as_secs_f64() / of.as_secs_f64()
}

fn ms(time: Duration) -> String {
    format!("{:>10.1}", time.as_secs_f64() * 1000.0)
}
