//! Loads the policies of the project into a worker.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use crate::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::error::{Error, Result};
use crate::policy::{LoadProblem, MAX_BYTES, PolicyNumber, PolicyOutline, Worker};
use crate::printable::printable;
use crate::project::policy::PolicyBlock;
use crate::run::own_process::{WORKER, own_process};
use crate::selection::attached::PolicyAttachments;

pub struct LoadedPolicies {
    pub worker: Worker,
    pub attached: PolicyAttachments,
    /// The requested and loaded policies, by their position in the project.
    pub policies: Vec<Option<LoadedPolicy>>,
}

pub struct LoadedPolicy {
    pub number: PolicyNumber,
    pub outline: PolicyOutline,
    /// The digest of its text and its `attach`.
    pub digest: String,
}

/// Returns a worker: this program, started once more.
pub fn worker() -> Result<Worker> {
    Ok(Worker::new(own_process(WORKER)?))
}

impl Context {
    /// Loads the policies that are attached to stacks. Errors are added to the problems.
    pub fn load_policies_of_stacks(&mut self) -> Result<LoadedPolicies> {
        self.load_policies(|attached, position| attached.policies_of_stacks().contains(&position))
    }

    /// Loads the wanted policies, by their position in the project. Errors are added to the problems.
    pub fn load_policies(
        &mut self,
        is_wanted: impl Fn(&PolicyAttachments, usize) -> bool,
    ) -> Result<LoadedPolicies> {
        let (workspace, problems) = self.parts();
        let (project, diagnostics) = (&workspace.project, &mut problems.diagnostics);
        let attached = PolicyAttachments::resolve(project, diagnostics);
        let mut worker = worker()?;
        let mut policies = Vec::new();
        for (position, policy) in project.policies.iter().enumerate() {
            if !is_wanted(&attached, position) {
                policies.push(None);
                continue;
            }
            let file = policy.file.value.to_host(&project.root);
            let name = policy.file.value.as_str().trim_start_matches('/');
            let message = format!("the policy `{}` cannot be loaded", policy.name.value);
            let wrong = Diagnostic::error(Code::InvalidPolicy, message);
            let text = match read(&file, Some(&project.root)) {
                Ok(text) => text,
                Err(problem) => {
                    diagnostics.push(wrong.label(policy.file.span, problem));
                    policies.push(None);
                    continue;
                }
            };
            match load(&mut worker, name, &text, policy.timeout)? {
                Ok((number, outline)) => policies.push(Some(LoadedPolicy {
                    number,
                    outline,
                    digest: digest(policy, &text),
                })),
                Err(problem) => {
                    let mut wrong = wrong.label(policy.file.span, "this file");
                    for said in problem_lines(name, &problem) {
                        wrong = wrong.note(said);
                    }
                    diagnostics.push(wrong);
                    policies.push(None);
                }
            }
        }
        Ok(LoadedPolicies {
            worker,
            attached,
            policies,
        })
    }
}

fn digest(policy: &PolicyBlock, text: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(text);
    for entry in policy.attach.iter().flatten() {
        digest.update([0]);
        digest.update(&entry.value);
    }
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest.finalize())
}

/// Loads one policy. Fails if the worker cannot be started.
pub fn load(
    worker: &mut Worker,
    file: &str,
    text: &str,
    timeout: Duration,
) -> Result<crate::policy::Loaded> {
    worker.load(file, text, timeout).map_err(Error::external)
}

pub fn problem_lines(file: &str, problem: &LoadProblem) -> Vec<String> {
    let problems = problem.problems().into_iter();
    problems
        .map(|(dialect, problem)| match dialect {
            Some(dialect) => format!("as {dialect}: {}", problem.in_file(file)),
            None => problem.in_file(file),
        })
        .collect()
}

/// Reads the file of a policy, which must not lie outside of `root`. The error is a label.
pub fn read(file: &Path, root: Option<&Path>) -> Result<String, String> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => format!("it cannot be read: {error}"),
    };
    let real: PathBuf = dunce::canonicalize(file).map_err(unreadable)?;
    if root.is_some_and(|root| !real.starts_with(root)) {
        let real = real.to_string_lossy();
        return Err(format!(
            "a link leads out of the project: `{}`",
            printable(&real)
        ));
    }
    // Reading a pipe would block forever.
    if !real.metadata().map_err(unreadable)?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let file = File::open(&real).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let most = MAX_BYTES as u64 + 1;
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > MAX_BYTES {
        return Err(format!("it is larger than {} KiB", MAX_BYTES >> 10));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}
