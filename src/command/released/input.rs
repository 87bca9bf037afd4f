//! The input of policies at a release.
//!
//! Its keys are those that existing policies use; unknown values are empty.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::{ErrorContext as _, Result};
use crate::git::Repository;
use crate::project::Project;
use crate::project::module::ModuleSource;
use crate::project::stack::StackIndex;
use crate::release::Release;
use crate::run::facts::repository_facts;
use crate::run::workflow::{RecordedStack, StackInput};

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
pub(super) fn input(
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
