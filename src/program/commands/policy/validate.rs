//! `orch policy validate`

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use orch::exit::ExitStatus;
use orch::printable::count;
use orch::report::{JsonDocument, ValidPolicy, write_policies};

use crate::program::commands::format::Format;
use crate::program::commands::{CommandContext, Reads};
use crate::program::console;
use crate::program::error::Result;

/// Load every policy of the project, and show where each is attached
///
/// A policy is parsed as Rego v1, then as Rego v0; if both fail, both errors are shown.
#[derive(Debug, Args)]
pub(crate) struct PolicyValidateArgs {
    /// The format of the policies
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(super) fn validate(chdir: &[PathBuf], args: &PolicyValidateArgs) -> Result<ExitStatus> {
    let document = args.format.document(JsonDocument::Policies);
    let mut context = CommandContext::new(chdir, document, Reads::CONFIGURATION)?;
    let policies = context.load_policies(|_, _| true)?;
    context.lint_policies(&policies);
    context.report()?;
    let stacks = &context.project.stacks;
    let mut valid = Vec::new();
    for (position, (block, policy)) in context
        .project
        .policies
        .iter()
        .zip(&policies.policies)
        .enumerate()
    {
        let Some(policy) = policy else {
            continue;
        };
        let attached = &policies.attached;
        let of_stacks = stacks.iter();
        let of_stacks =
            of_stacks.filter(|(stack, _)| attached.to_stack(*stack).contains(&position));
        let modules = attached.modules();
        valid.push(ValidPolicy {
            name: &block.name.value,
            file: block.file.value.as_str(),
            dialect: policy.outline.dialect,
            stacks: of_stacks.map(|(_, stack)| &stack.path).collect(),
            modules: modules
                .filter(|module| attached.to_module(module).contains(&position))
                .collect(),
        });
    }
    let mut out = console::stdout();
    let is_json = args.format == Format::Json;
    write_policies(
        &mut out,
        is_json,
        &valid,
        &context.project,
        &context.problems,
    )?;
    out.flush()?;
    if context.problems.diagnostics.is_empty() {
        console::note(&format!("no problems found: {}", policies_of(valid.len())));
    }
    Ok(ExitStatus::Success)
}

fn policies_of(number: usize) -> String {
    match number {
        0 => "the project has no policy".to_owned(),
        1 => count(1, "policy"),
        more => format!("{more} policies"),
    }
}
