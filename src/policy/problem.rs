//! Problems of policies.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::printable::printable;

/// A problem in the text of a policy, or one found while it was evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Line and column in the file, from 1.
    pub place: Option<(u32, u32)>,
    pub message: String,
}

impl Problem {
    pub fn new(message: impl Into<String>) -> Self {
        Problem {
            place: None,
            message: message.into(),
        }
    }

    pub fn at(place: (u32, u32), message: impl Into<String>) -> Self {
        Problem {
            place: Some(place),
            message: message.into(),
        }
    }

    /// Returns the problem as a printable message about this file: `a.rego:3:1: …`.
    pub fn in_file(&self, file: &str) -> String {
        let file = printable(file);
        match self.place {
            Some((line, column)) => format!("{file}:{line}:{column}: {}", printable(&self.message)),
            None => format!("{file}: {}", printable(&self.message)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Rego v1: bodies begin with `if`.
    V1,
    /// Rego v0, the language of policies before 2025.
    V0,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::V1 => "Rego v1",
            Dialect::V0 => "Rego v0",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadProblem {
    /// It is refused in either version.
    Refused(Problem),
    /// It is valid in neither version.
    Neither { v1: Problem, v0: Problem },
}

impl LoadProblem {
    /// Returns the problems, each with its version.
    pub fn problems(&self) -> Vec<(Option<Dialect>, &Problem)> {
        match self {
            LoadProblem::Refused(problem) => vec![(None, problem)],
            LoadProblem::Neither { v1, v0 } => {
                vec![(Some(Dialect::V1), v1), (Some(Dialect::V0), v0)]
            }
        }
    }
}
