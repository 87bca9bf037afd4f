//! Why one stack runs after another, as text and JSON.

use std::io::{self, Write};

use serde::Serialize;

use crate::printable::printable;
use crate::project::stack::StackIndex;
use crate::project::{Problems, Project};
use crate::report::document::{PathJson, write_with_problems};
use crate::report::json::OriginJson;
use crate::report::reasons::origins_text;
use crate::selection::why::ChainLink;

/// Two stacks, and the constraints between them.
pub struct OrderExplanation<'a> {
    pub project: &'a Project,
    pub later: StackIndex,
    /// The stack that it may run after.
    pub earlier: StackIndex,
    /// The constraints that order them like this, if they do.
    pub chain: Option<Vec<ChainLink>>,
    /// The constraints that order them the other way round, if they do.
    pub reverse: Option<Vec<ChainLink>>,
}

impl OrderExplanation<'_> {
    fn path(&self, stack: StackIndex) -> &str {
        self.project.stacks[stack].path.as_str()
    }
}

/// Writes why one stack runs after another, or that it does not.
pub fn write_why_after(out: &mut impl Write, ordered: &OrderExplanation<'_>) -> io::Result<()> {
    let (later, earlier) = (ordered.path(ordered.later), ordered.path(ordered.earlier));
    let (shown_later, shown_earlier) = (printable(later), printable(earlier));
    let links = match (&ordered.chain, &ordered.reverse) {
        (Some(chain), _) => {
            writeln!(out, "{shown_later} runs after {shown_earlier}")?;
            chain
        }
        (None, Some(reverse)) => {
            writeln!(
                out,
                "{shown_later} does not run after {shown_earlier}, but before it"
            )?;
            reverse
        }
        (None, None) => {
            return writeln!(
                out,
                "{shown_later} does not run after {shown_earlier}: nothing orders the two"
            );
        }
    };
    for link in links {
        let line = format!(
            "{} runs after {}, {}",
            ordered.path(link.later),
            ordered.path(link.earlier),
            origins_text(&[link.origin], &ordered.project.sources)
        );
        writeln!(out, "  {}", printable(&line))?;
    }
    Ok(())
}

pub fn write_why_after_json(
    out: &mut impl Write,
    ordered: &OrderExplanation<'_>,
    problems: &Problems,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct WhyAfterJson<'a> {
        stacks: [PathJson<'a>; 2],
        path: &'a str,
        after: &'a str,
        runs_after: bool,
        runs_before: bool,
        /// From the stack to the other one, or the other way round if it runs before that.
        chain: Vec<LinkJson<'a>>,
    }
    #[derive(Serialize)]
    struct LinkJson<'a> {
        path: &'a str,
        runs_after: &'a str,
        #[serde(flatten)]
        origin: OriginJson<'a>,
    }
    let OrderExplanation {
        project,
        later,
        earlier,
        chain,
        reverse,
    } = ordered;
    let link = |link: &ChainLink| LinkJson {
        path: ordered.path(link.later),
        runs_after: ordered.path(link.earlier),
        origin: OriginJson::new(&link.origin, &project.sources),
    };
    let links = chain.as_ref().or(reverse.as_ref());
    let document = WhyAfterJson {
        stacks: [*later, *earlier].map(|stack| PathJson::new(&project.stacks[stack].path)),
        path: ordered.path(*later),
        after: ordered.path(*earlier),
        runs_after: chain.is_some(),
        runs_before: reverse.is_some(),
        chain: links.into_iter().flatten().map(link).collect(),
    };
    write_with_problems(out, &document, project, problems)
}
