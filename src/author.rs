//! Who runs `orch`, on which machine, and in which CI job.

use crate::git::{GitError, Repository};
use crate::project::host::host_variable;

/// The variables that name the user where git does not: CI providers name the user who started the
/// job, systems the user who is logged in.
const WHO: [&str; 6] = [
    "GITHUB_ACTOR",
    "GITLAB_USER_LOGIN",
    "BUILD_REQUESTEDFOR",
    "BUILDKITE_BUILD_CREATOR",
    "USER",
    "USERNAME",
];

/// The variables with the address of the job.
const ADDRESSES: [&str; 4] = [
    "CI_JOB_URL",
    "BUILDKITE_BUILD_URL",
    "CIRCLE_BUILD_URL",
    "BUILD_URL",
];

/// Who runs `orch`, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub by: String,
    pub host: String,
    /// The process id of `orch` on it.
    pub process: u32,
    /// The address of the CI job.
    pub ci: Option<String>,
}

impl Author {
    /// Returns who runs this process.
    pub fn new(repository: Option<&Repository>) -> Self {
        Author {
            by: user(repository),
            host: host(),
            process: std::process::id(),
            ci: job(host_variable),
        }
    }
}

/// Returns the name of the user, or words that say that nobody knows it: the name decides nothing.
pub fn user(repository: Option<&Repository>) -> String {
    let known = known_user(repository).ok().flatten();
    known.unwrap_or_else(|| "somebody unknown".to_owned())
}

/// Returns the name of the user, if it is known.
pub fn known_user(repository: Option<&Repository>) -> Result<Option<String>, GitError> {
    let git = |name: &str| repository.map_or(Ok(None), |it| it.config(name));
    let known = |text: &String| !text.trim().is_empty();
    let name = git("user.name")?.filter(known);
    let mail = git("user.email")?.filter(known);
    Ok(match (name, mail) {
        (Some(name), Some(mail)) => Some(format!("{name} <{mail}>")),
        (Some(who), None) | (None, Some(who)) => Some(who),
        (None, None) => {
            let mut others = WHO.iter().filter_map(|name| host_variable(name));
            others.find(known)
        }
    })
}

/// Returns the name of the account of the user; empty if it is not known.
pub fn account() -> String {
    let mut names = WHO.iter().filter_map(|name| host_variable(name));
    names
        .find(|name| !name.trim().is_empty())
        .unwrap_or_default()
}

#[cfg(unix)]
pub fn host() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
pub fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Returns whether this machine has no process with this id.
#[cfg(unix)]
pub(crate) fn has_ended(process: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let process = Pid::from_raw(process.cast_signed());
    process.is_some_and(|it| test_kill_process(it) == Err(rustix::io::Errno::SRCH))
}

/// Returns whether this machine has no process with this id, which is not known here.
#[cfg(not(unix))]
pub(crate) fn has_ended(_process: u32) -> bool {
    false
}

fn job(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let github = || {
        let server = variable("GITHUB_SERVER_URL")?;
        let repository = variable("GITHUB_REPOSITORY")?;
        let run = variable("GITHUB_RUN_ID")?;
        Some(format!("{server}/{repository}/actions/runs/{run}"))
    };
    let azure = || {
        let server = variable("SYSTEM_TEAMFOUNDATIONCOLLECTIONURI")?;
        let project = variable("SYSTEM_TEAMPROJECT")?.replace(' ', "%20");
        let build = variable("BUILD_BUILDID")?;
        Some(format!("{server}{project}/_build/results?buildId={build}"))
    };
    let bitbucket = || {
        let repository = variable("BITBUCKET_GIT_HTTP_ORIGIN")?;
        let build = variable("BITBUCKET_BUILD_NUMBER")?;
        Some(format!("{repository}/pipelines/results/{build}"))
    };
    let direct = || ADDRESSES.into_iter().find_map(variable);
    github().or_else(azure).or_else(bitbucket).or_else(direct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_job_comes_from_its_provider() {
        let address = |variables: &[(&str, &str)]| {
            job(|name| {
                let mut variables = variables.iter();
                let found = variables.find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let github = [
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_REPOSITORY", "acme/infra"),
            ("GITHUB_RUN_ID", "7"),
        ];
        assert_eq!(
            address(&github).as_deref(),
            Some("https://github.com/acme/infra/actions/runs/7")
        );
        let azure = [
            (
                "SYSTEM_TEAMFOUNDATIONCOLLECTIONURI",
                "https://dev.azure.com/acme/",
            ),
            ("SYSTEM_TEAMPROJECT", "my infra"),
            ("BUILD_BUILDID", "12"),
        ];
        assert_eq!(
            address(&azure).as_deref(),
            Some("https://dev.azure.com/acme/my%20infra/_build/results?buildId=12")
        );
        let bitbucket = [
            (
                "BITBUCKET_GIT_HTTP_ORIGIN",
                "https://bitbucket.org/acme/infra",
            ),
            ("BITBUCKET_BUILD_NUMBER", "3"),
        ];
        assert_eq!(
            address(&bitbucket).as_deref(),
            Some("https://bitbucket.org/acme/infra/pipelines/results/3")
        );
        let gitlab = [("CI_JOB_URL", "https://gitlab.com/acme/-/jobs/5")];
        assert_eq!(
            address(&gitlab).as_deref(),
            Some("https://gitlab.com/acme/-/jobs/5")
        );
        assert_eq!(address(&[("CI_JOB_URL", "")]), None);
    }
}
