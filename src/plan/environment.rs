//! Digests of the environment that a plan was made in. Its plan file must be applied in the same
//! environment.
//!
//! Values may be secret, so the file contains none. The digests are keyed with a random number from
//! the same file. Two files cannot be compared, and precomputed tables do not help. Whoever has the
//! file has the key and can try likely values. That adds no risk: the Terraform plans in the same
//! file contain values in clear text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::ascii::hex;
use crate::driver::{Driver, Tool, selected_workspace};
use crate::path::StackPath;
use crate::plan::commands::{DATA, WORKSPACE, usual_data};
use crate::project::command::words_of_list;
use crate::project::driver::DriverStep;
use crate::project::environment::Environments;
use crate::project::stack::StackIndex;
use crate::state::document::Inputs;

const PREFIXES: [&str; 3] = ["TF_", "TG_", "TERRAGRUNT_"];

/// Variables that may differ because they do not change the plan: logging, program paths, caches,
/// data directories, retries, and credentials, which differ between jobs. The help topic `apply`
/// lists them.
const MAY_DIFFER: [&str; 34] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "ARM_OIDC_REQUEST_TOKEN",
    "ARM_OIDC_REQUEST_URL",
    "ARM_OIDC_TOKEN",
    "CI_JOB_TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GOOGLE_OAUTH_ACCESS_TOKEN",
    "HOME",
    "PATH",
    "TEMP",
    "TERRAGRUNT_DOWNLOAD",
    "TERRAGRUNT_NON_INTERACTIVE",
    "TERRAGRUNT_NO_COLOR",
    "TFE_TOKEN",
    "TF_APPEND_USER_AGENT",
    "TF_CLI_CONFIG_FILE",
    "TF_DATA_DIR",
    "TF_HTTP_CLIENT_PRIVATE_KEY_PEM",
    "TF_HTTP_PASSWORD",
    "TF_HTTP_USERNAME",
    "TF_INPUT",
    "TF_IN_AUTOMATION",
    "TF_PLUGIN_CACHE_DIR",
    "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE",
    "TF_PROVIDER_DOWNLOAD_RETRY",
    "TG_DOWNLOAD_DIR",
    "TG_NON_INTERACTIVE",
    "TG_NO_COLOR",
    "TMP",
    "TMPDIR",
    "VAULT_TOKEN",
];

const MAY_DIFFER_FROM: [&str; 9] = [
    "TERRAGRUNT_LOG",
    "TERRAGRUNT_PROVIDER_CACHE",
    "TF_HTTP_RETRY_",
    "TF_LOG",
    "TF_REGISTRY_",
    "TF_STATE_PERSIST_",
    "TF_TOKEN_",
    "TG_LOG",
    "TG_PROVIDER_CACHE",
];

/// The prefix of variables with arguments for single commands, and the commands that matter.
const WORDS: (&str, [&str; 3]) = ("TF_CLI_ARGS_", ["plan", "apply", "destroy"]);

/// Variables that differ between sessions.
const SURROUNDINGS: [&str; 11] = [
    "CI", "HOSTNAME", "LANG", "LOGNAME", "OLDPWD", "PWD", "RANDOM", "SHELL", "SHLVL", "TERM",
    "USER",
];

/// Prefixes of the variables in which CI providers describe a job.
const CI: [&str; 8] = [
    "BITBUCKET_",
    "BUILD_",
    "BUILDKITE",
    "CI_",
    "GITHUB_",
    "GITLAB_",
    "RUNNER_",
    "SYSTEM_",
];

/// The maximum size of a script that is searched.
const MAX_SCRIPT: u64 = 1 << 20;

/// A variable in shell syntax.
static SHELL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)").expect("it is a pattern"));

const UNIT_FILES: [&str; 2] = ["terragrunt.hcl", "terragrunt.hcl.json"];

/// A variable that a Terragrunt file reads.
static GET_ENV: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\bget_env\(\s*\\?"([A-Za-z_][A-Za-z0-9_]*)\\?""#).expect("it is a pattern")
});

/// The driver steps whose commands matter.
const STEPS: [DriverStep; 4] = [
    DriverStep::Plan,
    DriverStep::Apply,
    DriverStep::Destroy,
    DriverStep::Read,
];

/// The prefix for driver commands. It cannot clash: no variable contains a space.
const COMMAND: &str = "driver ";

type Digests = BTreeMap<String, String>;

/// The environment in which the stacks of a plan were planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedEnvironment {
    key: String,
    /// Variables of the tools in the environment of `orch`. Those of a stack override them.
    host: Digests,
    /// The stacks' own digests, deduplicated.
    sets: Vec<Digests>,
    /// The index of each stack's set, by path.
    stacks: BTreeMap<StackPath, usize>,
}

#[derive(Debug, Clone, Copy)]
pub struct EnvironmentSource<'a, 'p> {
    pub root: &'a Path,
    pub environments: &'a Environments<'p>,
    pub host: &'a BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy)]
pub struct PlannedStack<'d> {
    pub stack: StackIndex,
    pub driver: Driver<'d>,
    pub inputs: Option<&'d Inputs>,
}

impl SavedEnvironment {
    /// Digests the environments of stacks and drivers with a new key.
    pub fn new<'d>(
        source: EnvironmentSource<'_, '_>,
        stacks: impl Iterator<Item = PlannedStack<'d>>,
    ) -> Self {
        let key = [Uuid::new_v4(), Uuid::new_v4()].map(|half| half.simple().to_string());
        SavedEnvironment::with_key(key.concat(), source, stacks)
    }

    /// Digests the current environment with the same key, for comparison.
    #[must_use]
    pub fn now<'d>(
        &self,
        source: EnvironmentSource<'_, '_>,
        stacks: impl Iterator<Item = PlannedStack<'d>>,
    ) -> Self {
        SavedEnvironment::with_key(self.key.clone(), source, stacks)
    }

    fn with_key<'d>(
        key: String,
        source: EnvironmentSource<'_, '_>,
        stacks: impl Iterator<Item = PlannedStack<'d>>,
    ) -> Self {
        let digester = Digester { key: &key, source };
        let of_tools = source.host.iter().filter(|(name, _)| {
            PREFIXES.iter().any(|tool| name.starts_with(tool)) && !may_differ(name)
        });
        let host = of_tools
            .map(|(name, value)| digester.digest(name, Some(value)))
            .collect();
        let mut sets = Vec::new();
        let mut positions = BTreeMap::new();
        let mut of_stacks = BTreeMap::new();
        for planned in stacks {
            let set = digester.of_stack(&planned);
            let position = *positions.entry(set).or_insert_with_key(|set| {
                sets.push(set.clone());
                sets.len() - 1
            });
            let project = source.environments.namespaces().project();
            of_stacks.insert(project.stacks[planned.stack].path.clone(), position);
        }
        SavedEnvironment {
            key,
            host,
            sets,
            stacks: of_stacks,
        }
    }

    /// Returns the names of the variables and driver commands that differ for a stack.
    pub fn differences(&self, now: &Self, stack: &StackPath) -> BTreeSet<String> {
        let mut differing = BTreeSet::new();
        let (before, after) = (self.of(stack), now.of(stack));
        if let (Some(before), Some(after)) = (before, after) {
            differing.extend(different(before, after));
        }
        let is_own = |name: &str| {
            let mut own = [before, after].into_iter().flatten();
            own.any(|own| own.contains_key(name))
        };
        let of_host = different(&self.host, &now.host);
        differing.extend(of_host.filter(|name| !is_own(name)));
        differing.into_iter().map(described).collect()
    }

    fn of(&self, stack: &StackPath) -> Option<&Digests> {
        self.sets.get(*self.stacks.get(stack)?)
    }
}

struct Digester<'a, 'p> {
    key: &'a str,
    source: EnvironmentSource<'a, 'p>,
}

impl Digester<'_, '_> {
    /// Returns the digests of a stack: the variables that `run.env` sets and removes, those that
    /// Terragrunt files read, the workspace, and the driver's commands with the variables that they
    /// use.
    fn of_stack(&self, planned: &PlannedStack<'_>) -> Digests {
        let EnvironmentSource {
            root,
            environments,
            host,
        } = self.source;
        let PlannedStack {
            stack,
            driver,
            inputs,
        } = *planned;
        let mut set = Digests::new();
        let mut own = BTreeMap::new();
        for variable in environments.variables(stack) {
            let name = variable.definition.name.text.to_string();
            let value = variable.value.unwrap_or_default();
            if !may_differ(&name) {
                set.extend([self.digest(&name, value.as_ref())]);
            }
            own.insert(name, value);
        }
        let namespaces = environments.namespaces();
        let of_stack = namespaces.of_stack(stack);
        let directory = namespaces.project().stacks[stack]
            .path
            .directory()
            .to_host(root);
        let steps = driver.block.iter().flat_map(|block| &block.commands);
        for (step, expr) in steps.filter(|(step, _)| STEPS.contains(step)) {
            // A block that cannot be evaluated is refused before it runs.
            let words = words_of_list(expr, &of_stack).unwrap_or_default();
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            // No argument contains this character.
            set.extend([self.digest(&command_name(*step), Some(&words.join("\0")))]);
            // Unset variables do not count: they may be local to a script.
            let named = words
                .iter()
                .flat_map(|word| read_by_script(root, &directory, word))
                .filter(|name| !may_differ(name) && !is_of_surroundings(name))
                .filter_map(|name| host.get_key_value(&name))
                .filter(|(name, _)| !own.contains_key(*name));
            set.extend(named.map(|(name, value)| self.digest(name, Some(value))));
        }
        let project = namespaces.project();
        let path = &project.stacks[stack].path;
        let variable = |name: &str| match own.get(name) {
            Some(value) => value.clone(),
            None if name == DATA && !host.contains_key(DATA) => usual_data(path),
            None => host.get(name).cloned(),
        };
        if driver.tool == Some(Tool::Terragrunt) {
            let names = read_by_terragrunt(root, &directory, inputs);
            let names = names.iter().filter(|name| !may_differ(name));
            set.extend(names.map(|name| self.digest(name, variable(name).as_ref())));
        }
        if driver.selects_workspaces() {
            // An unknown one never matches.
            let unknown = || Uuid::new_v4().to_string();
            let workspace = selected_workspace(&directory, &variable).unwrap_or_else(unknown);
            set.extend([self.digest(WORKSPACE, Some(&workspace))]);
        }
        set
    }

    /// Returns a name with the digest of its value, independent of the path of the project.
    fn digest(&self, name: &str, value: Option<&String>) -> (String, String) {
        let mut hasher = Sha256::new();
        hasher.update(self.key);
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update([u8::from(value.is_some())]);
        let value = value.map_or("", String::as_str);
        hasher.update(match self.source.root.to_str() {
            Some(root) if root.len() > 1 => value.replace(root, "${root}"),
            _ => value.to_owned(),
        });
        (name.to_owned(), hex(&hasher.finalize()[..16]))
    }
}

fn may_differ(name: &str) -> bool {
    let (prefix, counted) = WORDS;
    let is_of_other_command = name
        .strip_prefix(prefix)
        .is_some_and(|command| !counted.contains(&command));
    is_of_other_command
        || MAY_DIFFER.contains(&name)
        || MAY_DIFFER_FROM
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Returns the variables that a unit's Terragrunt files read, including its inputs.
fn read_by_terragrunt(root: &Path, directory: &Path, inputs: Option<&Inputs>) -> BTreeSet<String> {
    let parts = inputs.into_iter().flat_map(|inputs| inputs.parts.keys());
    let others = parts.filter_map(|part| {
        let place = part
            .strip_prefix("terragrunt ")
            .or_else(|| part.strip_prefix("read "))?;
        Some(root.join(place.trim_start_matches('/')))
    });
    let own = UNIT_FILES.map(|name| directory.join(name));
    let mut names = BTreeSet::new();
    for file in own.into_iter().chain(others) {
        // A missing file reads no variables.
        let Ok(text) = fs::read_to_string(file) else {
            continue;
        };
        let found = GET_ENV.captures_iter(&text);
        names.extend(found.map(|found| found[1].to_owned()));
    }
    names
}

/// Returns the variables that an argument uses in shell syntax, or that the script which it names
/// uses. Only scripts of the project are read.
fn read_by_script(root: &Path, directory: &Path, word: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut add = |text: &str| {
        let found = SHELL.captures_iter(text);
        names.extend(found.map(|found| found[1].to_owned()));
    };
    add(word);
    let script = directory.join(word);
    let is_small = |it: &fs::Metadata| it.is_file() && it.len() <= MAX_SCRIPT;
    if script.starts_with(root)
        && fs::metadata(&script).is_ok_and(|it| is_small(&it))
        && let Ok(text) = fs::read_to_string(&script)
    {
        add(&text);
    }
    names
}

/// Returns whether a variable describes a command's session, not its work.
fn is_of_surroundings(name: &str) -> bool {
    SURROUNDINGS.contains(&name)
        || name.starts_with("ORCH_")
        || CI.iter().any(|ci| name.starts_with(ci))
}

fn command_name(step: DriverStep) -> String {
    format!("{COMMAND}{}", step.name())
}

fn described(name: &str) -> String {
    match name.strip_prefix(COMMAND) {
        Some(step) => format!("the command `{step}` of its driver"),
        None if name == WORKSPACE => format!("the workspace (`{WORKSPACE}`)"),
        None => format!("the variable `{name}`"),
    }
}

fn different<'a>(before: &'a Digests, now: &'a Digests) -> impl Iterator<Item = &'a str> {
    let names = before
        .keys()
        .chain(now.keys().filter(|name| !before.contains_key(*name)));
    names
        .filter(|name| before.get(*name) != now.get(*name))
        .map(String::as_str)
}

#[cfg(test)]
mod tests;
