//! `orch policy samples`

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use orch::exit::ExitStatus;
use orch::folder::GuardedFolder;
use orch::record::journal::{FindError, Runs};
use orch::record::samples::{Sample, Samples};
use serde_json::json;

use crate::program::commands::find_project;
use crate::program::commands::format::Format;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// List the inputs that were kept because a policy answered `sample = true`
///
/// `orch policy eval NAME --sample ID` evaluates a policy with one of them. They are in the folder
/// of the run, which only its owner can read, and are removed with the run.
#[derive(Debug, Args)]
pub(crate) struct SamplesArgs {
    /// `last`, `last~1`, or a unique beginning or end of a run id
    #[arg(value_name = "RUN", default_value = "last", hide_default_value = true)]
    run: String,

    /// The format of the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(super) fn samples(chdir: &[PathBuf], args: &SamplesArgs) -> Result<ExitStatus> {
    let (run, samples) = of_run(chdir, &args.run)?;
    let samples = samples.list().context("the samples cannot be read")?;
    let mut out = console::stdout();
    if args.format == Format::Json {
        let samples: Vec<_> = samples
            .iter()
            .map(|sample| {
                json!({
                    "id": format!("{run}.{sample}"), "turn": sample.turn, "policy": sample.policy,
                })
            })
            .collect();
        let document = json!({"format": 1, "run": run, "samples": samples});
        serde_json::to_writer_pretty(&mut out, &document).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        for sample in &samples {
            writeln!(out, "{run}.{sample}")?;
        }
    }
    out.flush()?;
    if samples.is_empty() {
        console::note("no input of this run was kept: no policy answered `sample = true`");
    }
    Ok(ExitStatus::Success)
}

/// Returns the input with a listed id, whose run may be abbreviated.
pub(super) fn read(chdir: &[PathBuf], id: &str) -> Result<String> {
    let unknown = || {
        let message = "the id of a sample is `RUN.TURN.POLICY`; `orch policy samples` lists them";
        ProgramError::usage(message)
    };
    let (run, sample) = id.split_once('.').ok_or_else(unknown)?;
    let sample = Sample::parse(sample).ok_or_else(unknown)?;
    let (run, samples) = of_run(chdir, run)?;
    let input = samples
        .read(&sample)
        .context("the sample cannot be read")?
        .ok_or_else(|| {
            let error = ProgramError::usage(format!("no sample `{run}.{sample}`"));
            error.hint("`orch policy samples RUN` lists the samples of a run")
        })?;
    Ok(String::from_utf8(input).context("the sample is not UTF-8")?)
}

fn of_run(chdir: &[PathBuf], wanted: &str) -> Result<(String, Samples)> {
    let root = find_project(chdir)?.root;
    let place = GuardedFolder::find(&root).context("no runs can be read")?;
    let no_runs = || ProgramError::refused(FindError::NoRuns.to_string());
    let place = place.ok_or_else(no_runs)?;
    let runs = Runs::find(place.clone()).context("no runs can be read")?;
    let run = match runs.id(wanted) {
        Ok(run) => run.to_owned(),
        Err(FindError::NoRuns) => return Err(no_runs()),
        Err(error) => return Err(ProgramError::usage(error.to_string())),
    };
    let samples = Samples::of_run(place, &run);
    Ok((run, samples))
}
