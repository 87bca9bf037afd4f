//! Stacks as the jobs of a CI pipeline.
//!
//! A provider limits the number of jobs in a matrix. If there are more stacks, each job gets several
//! consecutive ones. The jobs of a matrix have no order among themselves.

use std::io::{self, Write};

use serde::Serialize;

use crate::printable::first_of;

/// A provider that turns a list into jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matrix {
    /// `strategy.matrix` of GitHub Actions.
    Github,
    /// `parallel:matrix` of GitLab.
    Gitlab,
}

impl Matrix {
    /// Returns the maximum number of jobs in a matrix of the provider.
    pub fn most_jobs(self) -> usize {
        match self {
            Matrix::Github => 256,
            Matrix::Gitlab => 200,
        }
    }

    /// Returns how many stacks a job gets, at most.
    fn stacks_of_a_job(self, n_stacks: usize) -> usize {
        n_stacks.div_ceil(self.most_jobs()).max(1)
    }
}

/// Writes a matrix of these stacks on one line, from their paths as `orch list` prints them.
pub fn write_matrix(out: &mut impl Write, matrix: Matrix, stacks: &[String]) -> io::Result<()> {
    let jobs: Vec<Job> = stacks
        .chunks(matrix.stacks_of_a_job(stacks.len()))
        .map(Job::new)
        .collect();
    match matrix {
        Matrix::Github => serde_json::to_writer(&mut *out, &Github { include: &jobs })?,
        Matrix::Gitlab => {
            let jobs = jobs.iter().map(|job| Gitlab {
                stacks: &job.stacks,
            });
            serde_json::to_writer(&mut *out, &jobs.collect::<Vec<_>>())?;
        }
    }
    writeln!(out)
}

#[derive(Serialize)]
struct Github<'a> {
    include: &'a [Job],
}

#[derive(Serialize)]
struct Gitlab<'a> {
    #[serde(rename = "ORCH_STACKS")]
    stacks: &'a str,
}

#[derive(Serialize)]
struct Job {
    /// A title: the stack, or the first and the number of the others.
    name: String,
    /// The stacks, one per line, as `--stacks-from` reads them.
    stacks: String,
}

impl Job {
    fn new(stacks: &[String]) -> Self {
        Job {
            name: first_of(stacks.iter(), 1),
            stacks: stacks.join("\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn written(matrix: Matrix, n_stacks: usize) -> Value {
        let stacks: Vec<String> = (0..n_stacks).map(|number| format!("s{number}")).collect();
        let mut out = Vec::new();
        write_matrix(&mut out, matrix, &stacks).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn no_provider_gets_more_jobs_than_it_takes_and_no_stack_is_lost() {
        for matrix in [Matrix::Github, Matrix::Gitlab] {
            for n_stacks in [0, 1, 199, 200, 201, 256, 257, 512, 513, 10_000] {
                let written = written(matrix, n_stacks);
                let jobs = match matrix {
                    Matrix::Github => written["include"].as_array().unwrap(),
                    Matrix::Gitlab => written.as_array().unwrap(),
                };
                assert!(jobs.len() <= matrix.most_jobs(), "{n_stacks}");
                let name = match matrix {
                    Matrix::Github => "stacks",
                    Matrix::Gitlab => "ORCH_STACKS",
                };
                let jobs = jobs.iter().map(|job| job[name].as_str().unwrap());
                let stacks: Vec<&str> = jobs.flat_map(str::lines).collect();
                let expected: Vec<String> = (0..n_stacks).map(|n| format!("s{n}")).collect();
                assert_eq!(stacks, expected);
            }
        }
    }
}
