//! `orch policy graph`

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use orch::command::policy_requests::PolicyRequests;
use orch::exit::ExitStatus;
use orch::printable::printable;
use orch::project::Project;
use orch::project::policy::OnPolicyError;
use orch::project::stack::StackIndex;
use orch::report::{JsonDocument, PolicyArrow, PolicyGraph};

use crate::program::commands::{CommandContext, Reads};
use crate::program::console;
use crate::program::error::Result;

/// Show which stacks policies name when others finish or fail
///
/// Evaluates every policy for every stack that it is attached to, as if the stack had finished and
/// as if it had failed, in a follow-up; all other stacks have finished. Warns of loops that only
/// `max_turns` would end.
#[derive(Debug, Args)]
pub(crate) struct PolicyGraphArgs {
    /// The format of the graph
    #[arg(long, value_enum, default_value_t = PolicyGraphFormat::Text)]
    format: PolicyGraphFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PolicyGraphFormat {
    /// For people
    Text,
    /// Graphviz
    Dot,
    /// For programs
    Json,
}

pub(super) fn graph(chdir: &[PathBuf], args: &PolicyGraphArgs) -> Result<ExitStatus> {
    let document = (args.format == PolicyGraphFormat::Json).then_some(JsonDocument::PolicyGraph);
    let mut context = CommandContext::new(chdir, document, Reads::CONFIGURATION)?;
    let policies = context.load_policies(|_, _| true)?;
    context.report()?;
    let requests = context.policy_requests(policies, None)?;
    let project = &context.project;
    let path = |stack: StackIndex| printable(project.stacks[stack].path.as_str()).into_owned();
    let mut has_failed = false;
    for failed in &requests.failed {
        let block = &project.policies[failed.policy];
        has_failed |= block.on_error == OnPolicyError::Fail;
        let file = block.file.value.as_str().trim_start_matches('/');
        console::warning(&format!(
            "the policy `{}` fails when `{}` is {}: {}",
            block.name.value,
            path(failed.stack),
            failed.state.word(),
            failed.problem.in_file(file)
        ));
    }
    for ((policy, wanted), (stack, why)) in &requests.unknown {
        console::warning(&format!(
            "the policy `{}` names `{}` after `{}`, but {why}",
            project.policies[*policy].name.value,
            printable(wanted),
            path(*stack)
        ));
    }
    write(project, requests, args.format)?;
    if has_failed {
        return Ok(ExitStatus::Run(1));
    }
    Ok(ExitStatus::Success)
}

/// Writes the graph, and warns of its loops.
fn write(project: &Project, requests: PolicyRequests, format: PolicyGraphFormat) -> Result<()> {
    let path = |stack: StackIndex| project.stacks[stack].path.clone();
    let names = |policies: Vec<usize>| {
        let names = policies.into_iter();
        names
            .map(|it| project.policies[it].name.value.clone())
            .collect()
    };
    let arrows = requests
        .arrows
        .into_iter()
        .map(|((from, state, to), policies)| PolicyArrow {
            from: path(from),
            state: state.word(),
            to: path(to),
            policies: names(policies),
        });
    let graph = PolicyGraph::new(arrows.collect());
    let mut out = console::stdout();
    match format {
        PolicyGraphFormat::Text => graph.write_text(&mut out)?,
        PolicyGraphFormat::Dot => graph.write_dot(&mut out)?,
        PolicyGraphFormat::Json => graph.write_json(&mut out)?,
    }
    out.flush()?;
    for chain in graph.loops() {
        console::warning(&format!("follow-ups may repeat forever: {chain}"));
        console::help(
            "only `max_turns` ends this; to end it earlier, check `input.run.triggered_by` in a policy",
        );
    }
    Ok(())
}
