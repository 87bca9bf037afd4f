//! Inputs of policies that a policy asked to store.
//!
//! Each is a file in the folder of its run, which only the owner can read. This module doesn't know the content.

use std::fmt;

use serde_json::value::RawValue;

use crate::folder::{GuardedFolder, Unusable};

pub const MAX_SAMPLES: usize = 100;

const EXTENSION: &str = ".json";

/// The subject of a sample: an evaluation, of which a turn has one for each policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    /// The number of the turn in its run, from 1; 0 for evaluations before the first.
    pub turn: u32,
    pub policy: String,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn, self.policy)
    }
}

impl Sample {
    /// Reads the output of [`Display`](fmt::Display); `None` if it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let (turn, policy) = text.split_once('.')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let sample = Sample {
            turn: turn.parse().ok()?,
            policy: policy.to_owned(),
        };
        // It becomes the name of a file.
        let is_valid = !policy.is_empty() && policy.chars().all(is_name);
        (is_valid && sample.to_string() == text).then_some(sample)
    }
}

#[derive(Debug, Clone)]
pub struct Samples {
    place: GuardedFolder,
    folder: String,
}

impl Samples {
    pub fn of_run(place: GuardedFolder, run: &str) -> Self {
        let folder = format!("runs/{run}/samples");
        Samples { place, folder }
    }

    /// Stores an input, and returns whether it was stored: their number is limited.
    pub fn write(&self, sample: &Sample, input: &RawValue) -> Result<bool, Unusable> {
        if self.list()?.len() >= MAX_SAMPLES {
            return Ok(false);
        }
        self.place.make_directory(&self.folder)?;
        self.place
            .replace(&self.file(sample), input.get().as_bytes())?;
        Ok(true)
    }

    pub fn remove(&self, sample: &Sample) -> Result<(), Unusable> {
        self.place.remove(&self.file(sample))
    }

    pub fn list(&self) -> Result<Vec<Sample>, Unusable> {
        let files = self.place.list(&self.folder)?;
        let mut samples: Vec<Sample> = files
            .iter()
            .filter_map(|file| {
                let name = file.rsplit('/').next()?;
                Sample::parse(name.strip_suffix(EXTENSION)?)
            })
            .collect();
        samples.sort_unstable();
        Ok(samples)
    }

    /// Returns the input, as JSON, if it was stored.
    pub fn read(&self, sample: &Sample) -> Result<Option<Vec<u8>>, Unusable> {
        self.place.read(&self.file(sample))
    }

    fn file(&self, sample: &Sample) -> String {
        format!("{}/{sample}{EXTENSION}", self.folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(turn: u32, policy: &str) -> Sample {
        let policy = policy.to_owned();
        Sample { turn, policy }
    }

    fn samples() -> (tempfile::TempDir, Samples) {
        let root = tempfile::tempdir().unwrap();
        let place = GuardedFolder::create(root.path()).unwrap();
        (root, Samples::of_run(place, "r"))
    }

    fn input(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn what_is_written_is_listed_in_the_order_of_the_turns_and_read_back() {
        let (_root, samples) = samples();
        assert_eq!(samples.list().unwrap(), []);
        for (turn, policy) in [(10, "b"), (2, "c"), (2, "a")] {
            let kept = samples.write(&sample(turn, policy), &input(&turn.to_string()));
            assert!(kept.unwrap());
        }
        let all = [sample(2, "a"), sample(2, "c"), sample(10, "b")];
        assert_eq!(samples.list().unwrap(), all);
        assert_eq!(samples.read(&sample(10, "b")).unwrap().unwrap(), b"10");
        assert_eq!(samples.read(&sample(10, "a")).unwrap(), None);
    }

    #[test]
    fn only_so_many_are_kept() {
        let (_root, samples) = samples();
        let kept =
            (1..=120).filter(|&turn| samples.write(&sample(turn, "p"), &input("{}")).unwrap());
        assert_eq!(kept.count(), MAX_SAMPLES);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_a_sample() {
        use std::os::unix::fs::PermissionsExt as _;
        let (root, samples) = samples();
        samples.write(&sample(1, "p"), &input("{}")).unwrap();
        let file = root.path().join(".orch/runs/r/samples/1.p.json");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn names_that_are_no_samples_are_refused() {
        for text in [
            "", "1", "1.", ".p", "01.p", "+1.p", "1.p/q", "1...", "1.p.q", "x.p",
        ] {
            assert_eq!(Sample::parse(text), None, "{text}");
        }
        assert_eq!(Sample::parse("7.try-again"), Some(sample(7, "try-again")));
    }
}
