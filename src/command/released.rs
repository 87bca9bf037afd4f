//! `--released`: the stacks that policies select when a module gets a new version.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::value::RawValue;
use tracing::info;

use crate::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::error::{Error, ErrorContext as _, Result};
use crate::git::Repository;
use crate::path::StackPath;
use crate::policy::PolicyOutput;
use crate::printable::{count, printable};
use crate::project::Project;
use crate::project::module::ModuleSource;
use crate::project::policy::{OnPolicyError, PolicyBlock};
use crate::project::stack::StackIndex;
use crate::release::{Release, ReleaseName, consumers, open_repository};
use crate::run::facts::repository_facts;
use crate::run::workflow::{NamedStack, RecordedStack, StackInput, StackNames};
use crate::selection::select::ReleasedQuery;

impl Context {
    /// Returns the stacks that policies select at a release. Fails if there is no such release, if
    /// the state or git cannot be read, or if a policy fails.
    pub(super) fn released(&mut self, name: &ReleaseName) -> Result<ReleasedQuery> {
        let repository = open_repository(&self.project)?;
        let release = Release::find(name, &self.project, &repository)?;
        let mut problems = std::mem::take(&mut self.problems);
        let consumers = consumers(&release, &self.project, &self.listing, &mut problems);
        self.problems = problems;
        let mut consumers = consumers.context("failed to find the calls of the module")?;
        let module = &release.module.name.value;
        let old = &release.old.version;
        let mut records = BTreeMap::new();
        if consumers.is_empty() {
            self.notices
                .note(&format!("no call of `{module}` resolves to {old}"));
        } else if self.project.settings.state.is_some() {
            records = self.read_on_record()?;
            // A failed first apply may have created nothing of the module.
            let is_applied =
                |stack: &StackIndex| records.get(stack).is_some_and(|it| it.is_applied);
            let all = consumers.len();
            consumers.retain(|stack, _| is_applied(stack));
            let unapplied = all - consumers.len();
            if unapplied > 0 {
                let not_counted = match unapplied {
                    1 => "1 has never been applied and does not count".to_owned(),
                    more => format!("{more} have never been applied and do not count"),
                };
                self.notices.note(&format!(
                    "of {} whose calls of `{module}` resolve to {old}, {not_counted}",
                    count(all, "stack")
                ));
            }
        }
        let stacks: Vec<(StackIndex, Option<RecordedStack>)> = consumers
            .keys()
            .map(|stack| (*stack, records.get(stack).cloned()))
            .collect();
        Ok(ReleasedQuery {
            module: module.clone(),
            old: old.to_string(),
            new: release.new.version.to_string(),
            named: self.named_at(&release, &repository, &stacks)?,
            consumers,
        })
    }
}

/// The input of policies. Its keys are those that existing policies use; unknown values are empty.
#[derive(Serialize)]
struct Input<'a> {
    module: Module<'a>,
    stacks: Vec<StackInput>,
}

#[derive(Serialize)]
struct Module<'a> {
    administrative: bool,
    branch: &'a str,
    labels: &'a [String],
    current_version: String,
    id: &'a str,
    name: &'a str,
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    project_root: &'a str,
    repository: &'a str,
    space: Space,
    terraform_version: Option<&'a str>,
    worker_pool: WorkerPool,
}

#[derive(Serialize)]
struct Space {
    id: &'static str,
    labels: [&'static str; 0],
    name: &'static str,
}

#[derive(Serialize)]
struct WorkerPool {
    id: &'static str,
    labels: [&'static str; 0],
    name: &'static str,
    public: bool,
}

/// Returns the module and the stacks that use its old version, with their records.
fn input(
    release: &Release,
    project: &Project,
    repository: &Repository,
    consumers: &[(StackIndex, Option<RecordedStack>)],
) -> Result<Box<RawValue>> {
    let facts = repository_facts(project, repository)?;
    let stack = |(stack, record): &(StackIndex, Option<RecordedStack>)| {
        let mut input = StackInput::new(&project.stacks[*stack], &facts);
        if let Some(record) = record {
            record.clone().tell(&mut input);
        }
        input
    };
    let module = &release.module;
    let input = Input {
        module: Module {
            administrative: false,
            branch: &facts.tracked_branch,
            labels: &module.labels,
            current_version: release.new.version.to_string(),
            id: &module.name.value,
            name: &module.name.value,
            namespace: &facts.namespace,
            project_root: match &module.source.value {
                ModuleSource::Directory(path) => path.relative(),
                ModuleSource::Address(address) => &address.directory,
            },
            repository: &facts.repository,
            space: Space {
                id: "",
                labels: [],
                name: "",
            },
            terraform_version: None,
            worker_pool: WorkerPool {
                id: "",
                labels: [],
                name: "",
                public: true,
            },
        },
        stacks: consumers.iter().map(stack).collect(),
    };
    let input = serde_json::value::to_raw_value(&input);
    input.context("failed to write the input of policies")
}

/// The longest name that a warning shows, in characters.
const MAX_NAME: usize = 100;

impl Context {
    /// Returns the selected stacks, each with its policies. Missing and invalid policies are added
    /// to the problems. Fails if a policy or git fails.
    fn named_at(
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
