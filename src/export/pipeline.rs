//! A pipeline as text. One file beside this one writes it for each engine.

use super::limits::{Engine, LimitKind};
use super::shape::{ExportError, Shape, check};
use super::{buildkite, github, gitlab, make};

/// The files of a pipeline, in the order in which the engine gets them.
#[derive(Debug)]
pub struct Pipeline {
    pub files: Vec<String>,
}

impl Pipeline {
    pub fn new(shape: &Shape<'_>) -> Result<Self, ExportError> {
        shape.template.check(shape.engine)?;
        let files = match shape.engine {
            Engine::Gitlab => vec![gitlab::write(shape)?],
            Engine::Github => vec![github::write(shape)?],
            Engine::Buildkite => buildkite::write(shape)?,
            Engine::Make => vec![make::write(shape)],
        };
        let longest = files.iter().map(String::len).max().unwrap_or(0);
        check(shape.engine, LimitKind::Files, files.len())?;
        check(shape.engine, LimitKind::Bytes, longest)?;
        Ok(Pipeline { files })
    }
}
