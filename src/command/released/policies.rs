//! The stacks that a module's policies select at a release.

use std::collections::{BTreeMap, BTreeSet};

use tracing::info;

use super::input::input;
use crate::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::error::{Error, Result};
use crate::git::Repository;
use crate::path::StackPath;
use crate::policy::PolicyOutput;
use crate::printable::printable;
use crate::project::policy::{OnPolicyError, PolicyBlock};
use crate::project::stack::StackIndex;
use crate::release::Release;
use crate::run::workflow::{NamedStack, RecordedStack, StackNames};

/// The longest name that a warning shows, in characters.
const MAX_NAME: usize = 100;

impl Context {
    /// Returns the selected stacks, each with its policies. Missing and invalid policies are added
    /// to the problems. Fails if a policy or git fails.
    pub(super) fn named_at(
        &mut self,
        release: &Release,
        repository: &Repository,
        consumers: &[(StackIndex, Option<RecordedStack>)],
    ) -> Result<BTreeMap<StackIndex, Vec<String>>> {
        let module = &release.module.name;
        let is_attached = |attached: &crate::selection::attached::PolicyAttachments,
                           position: usize| {
            attached.to_module(&module.value).contains(&position)
        };
        let mut loaded = self.load_policies(is_attached)?;
        let attached: Vec<usize> = (0..self.project.policies.len())
            .filter(|&position| is_attached(&loaded.attached, position))
            .collect();
        if attached.is_empty() {
            self.problems.diagnostics.push(unattached(release));
            return Ok(BTreeMap::new());
        }
        let input = input(release, &self.project, repository, consumers)?;
        let stacks = StackNames::new(&self.project.stacks, BTreeSet::new());
        let mut named: BTreeMap<StackIndex, Vec<String>> = BTreeMap::new();
        let (mut wrong, mut samples) = (Vec::new(), Vec::new());
        for position in attached {
            // Its problems have been reported.
            let Some(policy) = &loaded.policies[position] else {
                continue;
            };
            let block = &self.project.policies[position];
            let evaluated =
                loaded
                    .worker
                    .evaluate(policy.number, input.clone(), false, block.timeout);
            let answer = match evaluated.map_err(Error::external)? {
                Ok(answer) => answer,
                Err(problem) => {
                    let file = block.file.value.relative();
                    self.failed(block, &problem.in_file(file))?;
                    continue;
                }
            };
            let PolicyOutput {
                trigger,
                sample,
                prints,
                ..
            } = answer;
            if sample {
                let policy = block.name.value.clone();
                samples.push((policy, input.clone()));
            }
            for line in prints {
                info!(policy = block.name.value, "{}", printable(&line));
            }
            for name in trigger {
                match stacks.find(&name) {
                    NamedStack::One(stack) => {
                        let policies = named.entry(stack).or_default();
                        policies.push(block.name.value.clone());
                    }
                    NamedStack::Ambiguous(one, other) => {
                        let paths = [one, other].map(|stack| stacks.path(stack));
                        wrong.push(ambiguous(block, &name, paths));
                    }
                    NamedStack::Unknown => wrong.push(unknown(block, &name)),
                }
            }
        }
        self.problems.diagnostics.extend(wrong);
        self.release_samples.extend(samples);
        for policies in named.values_mut() {
            policies.dedup();
        }
        Ok(named)
    }

    /// Refuses to continue without the policy's answer, unless the policy may fail.
    fn failed(&self, block: &PolicyBlock, problem: &str) -> Result<()> {
        let message = format!("the policy `{}` failed: {problem}", block.name.value);
        match block.on_error {
            OnPolicyError::Ignore => {
                self.notices.warning(&message);
                Ok(())
            }
            OnPolicyError::Fail => {
                let error =
                    Error::described("failed to find the stacks that follow the release", message);
                let hint = "fix the policy, or continue without it: `on_error = \"ignore\"`";
                Err(error.refusing().hint(hint))
            }
        }
    }
}

fn unattached(release: &Release) -> Diagnostic {
    let name = &release.module.name;
    let message = format!("no policy is attached to the module `{}`", name.value);
    Diagnostic::error(Code::UnknownReference, message)
        .label(name.span, "so no stacks follow its release")
        .help(format!(
            "attach one: add `attach = [\"module:{}\"]` to a block `policy \"trigger\" \"…\"`",
            name.value
        ))
}

fn ambiguous(block: &PolicyBlock, name: &str, [one, other]: [&StackPath; 2]) -> Diagnostic {
    let message = format!(
        "the policy `{}` names `{name}`, which is the id of `{one}` and the path of `{other}`",
        block.name.value
    );
    Diagnostic::error(Code::InvalidPolicy, message)
        .label(block.name.span, "this policy")
        .help("let it name the path with a leading `/`, or change the id")
}

fn unknown(block: &PolicyBlock, name: &str) -> Diagnostic {
    let shown = name.chars().take(MAX_NAME).collect::<String>();
    let more = if shown.len() < name.len() { "…" } else { "" };
    let message = format!(
        "the policy `{}` names `{}{more}`, but no stack has that id or path",
        block.name.value,
        printable(&shown)
    );
    Diagnostic::warning(Code::UnknownReference, message)
        .label(block.name.span, "this policy")
        .help("a policy names stacks by their `id`, or by their path: `/prod/network`")
}
