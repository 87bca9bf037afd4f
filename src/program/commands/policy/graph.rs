//! `orch policy graph`

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use orch::exit::ExitStatus;
use orch::printable::printable;
use orch::project::Project;
use orch::project::policy::OnPolicyError;
use orch::project::stack::StackIndex;
use orch::report::{JsonDocument, PolicyArrow, PolicyGraph};
use orch::run::workflow::{NamedStack, StackNames};

use super::scenario::{EndState, Scenario};
use crate::program::commands::{CommandContext, Reads};
use crate::program::console;
use crate::program::error::Result;

/// The turn states that are evaluated.
const STATES: [EndState; 2] = [EndState::Finished, EndState::Failed];

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
    let facts = context.run_facts(&[])?;
    let project = &context.project;
    let names = StackNames::new(&project.stacks, BTreeSet::new());
    let mut scenario = Scenario::new(project, policies.worker, facts);
    let mut arrows: BTreeMap<(StackIndex, EndState, StackIndex), Vec<String>> = BTreeMap::new();
    let mut unknown: BTreeMap<(String, String), (StackIndex, &str)> = BTreeMap::new();
    let mut has_failed = false;
    for (stack, _) in project.stacks.iter() {
        for &position in policies.attached.to_stack(stack) {
            let Some(policy) = &policies.policies[position] else {
                continue;
            };
            let block = &project.policies[position];
            let name = &block.name.value;
            for state in STATES {
                let triggered_by = format!("policy/{name}");
                let asked = (policy.number, block.timeout);
                match scenario.evaluate(asked, (stack, state), Some(&triggered_by))? {
                    Ok(answer) => {
                        for wanted in answer.trigger {
                            match names.find(&wanted) {
                                NamedStack::One(to) => {
                                    let by = arrows.entry((stack, state, to)).or_default();
                                    if by.last() != Some(name) {
                                        by.push(name.clone());
                                    }
                                }
                                NamedStack::Ambiguous(..) => {
                                    let why = "that is the id of one stack and the path of another";
                                    let key = (name.clone(), wanted);
                                    unknown.entry(key).or_insert((stack, why));
                                }
                                NamedStack::Unknown => {
                                    let why = "no stack has that id or path";
                                    let key = (name.clone(), wanted);
                                    unknown.entry(key).or_insert((stack, why));
                                }
                            }
                        }
                    }
                    Err(problem) => {
                        has_failed |= block.on_error == OnPolicyError::Fail;
                        let file = block.file.value.as_str().trim_start_matches('/');
                        let path = printable(project.stacks[stack].path.as_str()).into_owned();
                        console::warning(&format!(
                            "the policy `{name}` fails when `{path}` is {}: {}",
                            state.word(),
                            problem.in_file(file)
                        ));
                    }
                }
            }
        }
    }
    for ((policy, wanted), (stack, why)) in unknown {
        let path = printable(project.stacks[stack].path.as_str()).into_owned();
        let wanted = printable(&wanted).into_owned();
        console::warning(&format!(
            "the policy `{policy}` names `{wanted}` after `{path}`, but {why}"
        ));
    }
    write(project, arrows, args.format)?;
    if has_failed {
        return Ok(ExitStatus::Run(1));
    }
    Ok(ExitStatus::Success)
}

/// Writes the graph, and warns of its loops.
fn write(
    project: &Project,
    arrows: BTreeMap<(StackIndex, EndState, StackIndex), Vec<String>>,
    format: PolicyGraphFormat,
) -> Result<()> {
    let path = |stack: StackIndex| project.stacks[stack].path.clone();
    let arrows = arrows
        .into_iter()
        .map(|((from, state, to), policies)| PolicyArrow {
            from: path(from),
            state: state.word(),
            to: path(to),
            policies,
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
