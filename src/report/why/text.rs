//! The explanation of a stack as text.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{PolicyStarter, Story, flag_text};
use crate::change::{Ignored, Input};
use crate::printable::printable;
use crate::project::policy::PolicyBlock;
use crate::project::stack::{StackIndex, StackUse};
use crate::report::changes::{UNKNOWN_PATH, chain_text, file_text, ignored_text, uncounted_text};
use crate::report::reasons::{origins_text, reason_text};
use crate::report::rules::rule_lines;
use crate::selection::graph::{Origin, RelatedStack};
use crate::selection::why::Why;

/// How many lines a section has at most; JSON has all.
const MAX_LINES: usize = 30;

/// How many stacks are listed for a policy that can start a stack.
const MAX_AFTER: usize = 10;

/// Writes the explanation of a stack as text.
pub fn write_why(out: &mut impl Write, story: &Story<'_>) -> io::Result<()> {
    let path = printable(story.stack().path.as_str());
    if story.is_selected() {
        writeln!(out, "{path} is selected")?;
    } else {
        writeln!(out, "{path} is not selected")?;
    }
    let project = story.question.project;
    let reasons = story
        .question
        .selection
        .reasons(story.question.stack)
        .iter()
        .map(|reason| reason_text(reason, &project.stacks, &project.sources));
    let obstacles = story
        .why
        .obstacles
        .iter()
        .map(|obstacle| story.obstacle_text(obstacle));
    lines(out, reasons.chain(obstacles).map(SectionLine::One))?;
    inputs(out, story)?;
    uses(out, story)?;
    rules(out, story)?;
    policies(out, story)?;
    starters(out, story)?;
    let Why {
        after,
        after_through,
        before,
        before_through,
        ..
    } = story.why;
    let (title, none) = ("it runs after", "nothing runs before it");
    constraints(out, story, [title, none], after, after_through)?;
    let (title, none) = ("it runs before", "nothing runs after it");
    constraints(out, story, [title, none], before, before_through)?;
    ways(out, story)
}

fn uses(out: &mut impl Write, story: &Story<'_>) -> io::Result<()> {
    let uses = story.stack().uses.iter().filter(|it| it.kind.is_data());
    let sources = &story.question.project.sources;
    let line = |it: &StackUse| format!("{}, {} {}", it.stack, it.kind, sources.line(it.span));
    let mut uses = uses.map(line).map(SectionLine::One).peekable();
    if uses.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "\nit uses data of")?;
    lines(out, uses)
}

/// An entry of a section: one line, or a line with others that belong to it.
enum SectionLine {
    One(String),
    With(String, Vec<String>),
}

fn lines(out: &mut impl Write, lines: impl Iterator<Item = SectionLine>) -> io::Result<()> {
    let mut more = 0;
    for (number, line) in lines.enumerate() {
        match line {
            _ if number >= MAX_LINES => more += 1,
            SectionLine::One(line) => writeln!(out, "  {}", printable(&line))?,
            SectionLine::With(line, below) => {
                writeln!(out, "  {}", printable(&line))?;
                for line in below {
                    writeln!(out, "    {}", printable(&line))?;
                }
            }
        }
    }
    if more > 0 {
        writeln!(out, "  and {more} more, listed by --format json")?;
    }
    Ok(())
}

fn inputs(out: &mut impl Write, story: &Story<'_>) -> io::Result<()> {
    let inputs = &story.why.inputs;
    match story.changes() {
        None if story.question.query.recorded.is_some() => writeln!(out, "\nits inputs")?,
        None => writeln!(
            out,
            "\nits inputs (add --changed to see which have changed)"
        )?,
        Some(changes) => {
            let n_changed = inputs.iter().filter(|input| input.change.is_some()).count();
            let (all, since) = (inputs.len(), &changes.since.base);
            writeln!(
                out,
                "\nits inputs, {n_changed} of {all} changed since {since}"
            )?;
        }
    }
    // Changed inputs come first, whether they count or not.
    let mut inputs: Vec<&Input> = inputs.iter().collect();
    inputs.sort_by_key(|input| match (&input.change, input.uncounted.first()) {
        (Some(_), _) => 0,
        (None, Some(_)) => 1,
        (None, None) => 2,
    });
    let stacks = &story.question.project.stacks;
    let directory = story.stack().path.directory();
    let has_nested = stacks.at_or_below(directory).count() > stacks.at(directory.as_str()).len();
    let line = |input: &Input| {
        let place = input.location.to_string();
        let what = match chain_text(&input.chain) {
            chain if chain.is_empty() && has_nested => {
                format!("{place}, its own directory without the stacks below it")
            }
            chain if chain.is_empty() => format!("{place}, its own directory"),
            chain => format!("{place}, {chain}"),
        };
        let mut below: Vec<String> = Vec::new();
        match (&input.change, input.uncounted.first()) {
            (None, None) => {}
            (None, Some(change)) => below.push(format!(
                "differs, but does not count: {}",
                uncounted_text(change)
            )),
            (Some(file), _) => {
                let mut changed = format!("changed: {}", file_text(file));
                if !input.links.is_empty() {
                    changed += &format!(", {}", chain_text(&input.links));
                }
                below.push(changed);
            }
        }
        below.extend(ignored_text(&input.ignored));
        SectionLine::With(what, below)
    };
    let variables = story.ignored_variables.iter().map(|variable| {
        let below = ignored_text(&Ignored::All).into_iter().collect();
        SectionLine::With(chain_text(std::slice::from_ref(variable)), below)
    });
    let unknown = story.unknown_paths.iter().map(|read| {
        let below = vec![UNKNOWN_PATH.to_owned()];
        SectionLine::With(chain_text(std::slice::from_ref(read)), below)
    });
    lines(
        out,
        inputs.into_iter().map(line).chain(variables).chain(unknown),
    )
}

fn rules(out: &mut impl Write, story: &Story<'_>) -> io::Result<()> {
    let project = story.question.project;
    let rules = rule_lines(&project.rules_of(story.question.stack), project);
    if rules.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nits lifecycle rules")?;
    lines(out, rules.into_iter().map(SectionLine::One))
}

fn policies(out: &mut impl Write, story: &Story<'_>) -> io::Result<()> {
    if story.policies.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nits policies")?;
    let line = |policy: &&PolicyBlock| {
        let (name, file) = (&policy.name.value, policy.file.value.relative());
        SectionLine::One(format!("{name} ({file})"))
    };
    lines(out, story.policies.iter().map(line))
}

fn starters(out: &mut impl Write, story: &Story<'_>) -> io::Result<()> {
    if story.starters.is_empty() {
        return Ok(());
    }
    let project = story.question.project;
    writeln!(out, "\npolicies that can start it")?;
    let line = |starter: &PolicyStarter| {
        let policy = &project.policies[starter.policy];
        let (name, file) = (&policy.name.value, policy.file.value.relative());
        let mut after: Vec<String> = starter
            .after
            .iter()
            .take(MAX_AFTER)
            .map(|(stack, state)| format!("after {} {}", project.stacks[*stack].path, state.word()))
            .collect();
        if let Some(more @ 1..) = starter.after.len().checked_sub(MAX_AFTER) {
            after.push(format!("and {more} more, listed by --format json"));
        }
        SectionLine::With(format!("{name} ({file})"), after)
    };
    lines(out, story.starters.iter().map(line))
}

fn constraints(
    out: &mut impl Write,
    story: &Story<'_>,
    [title, none]: [&str; 2],
    constraints: &BTreeMap<StackIndex, Vec<Origin>>,
    through: &[RelatedStack],
) -> io::Result<()> {
    if constraints.is_empty() && through.is_empty() {
        return writeln!(out, "\n{none}");
    }
    writeln!(out, "\n{title}")?;
    let project = story.question.project;
    let line = |(&stack, origins): (&StackIndex, &Vec<Origin>)| {
        let selected = if story.question.selection.contains(stack) {
            "selected"
        } else {
            "not selected"
        };
        let path = &project.stacks[stack].path;
        SectionLine::One(format!(
            "{path}, {}, {selected}",
            origins_text(origins, &project.sources)
        ))
    };
    let line_through = |relative: &RelatedStack| {
        let path = |stack: &StackIndex| project.stacks[*stack].path.as_str();
        let via: Vec<&str> = relative.via.iter().map(path).collect();
        let (path, via) = (path(&relative.stack), via.join(" and "));
        let origins = origins_text(&relative.origins, &project.sources);
        let are = if relative.via.len() == 1 { "is" } else { "are" };
        SectionLine::With(
            format!("{path}, through {via}, which {are} not selected"),
            vec![origins],
        )
    };
    let direct = constraints.iter().map(line);
    lines(out, direct.chain(through.iter().map(line_through)))
}

fn ways(out: &mut impl Write, story: &Story<'_>) -> io::Result<()> {
    let why = story.why;
    let remedies = story.remedies();
    let ways = why.ways.iter().map(|way| story.way_text(way));
    if story.is_selected() {
        if why.ways.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nwhat would select it as well")?;
        return lines(out, ways.map(SectionLine::One));
    }
    writeln!(out, "\nwhat would select it")?;
    let remedies = remedies
        .into_iter()
        .map(|remedy| remedy.detail)
        .collect::<Vec<String>>()
        .join("; and ");
    if why.in_the_way.is_empty() {
        return lines(
            out,
            std::iter::once(remedies).chain(ways).map(SectionLine::One),
        );
    }
    let in_the_way: Vec<String> = why.in_the_way.iter().map(flag_text).collect();
    let in_the_way = format!("leaving out {}", in_the_way.join(" and "));
    if remedies.is_empty() {
        return lines(out, std::iter::once(SectionLine::One(in_the_way)));
    }
    let ways = std::iter::once(remedies).chain(ways);
    lines(
        out,
        ways.map(|way| SectionLine::One(format!("{in_the_way}, and {way}"))),
    )
}
