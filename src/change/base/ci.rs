//! The commits that a CI provider reports.
//!
//! This module turns variables and the text of the event file into facts. It does not know whether the clone
//! has the commits.
//!
//! Sources: the providers' documentation of predefined variables, and of GitHub's webhook events, which the
//! event file contains.

use serde_json::Value;

use crate::git::is_hexadecimal;

/// The facts that a provider reports about the build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiContext {
    /// The display name of the provider.
    pub provider: &'static str,
    /// The commit to compare with; `None` if the provider reports none.
    pub hint: Option<BaseHint>,
    /// The branch; `None` for a pull request or a tag.
    pub branch: Option<String>,
}

/// What to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseHint {
    Commit {
        commit: String,
        /// A description for messages.
        what: &'static str,
    },
    /// The commit at which the proposed change branched off its target.
    Target(MergeTarget),
}

/// The target of a proposed change. At least one of commit and branch is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeTarget {
    /// The last commit of the proposal. If HEAD merges it into the target, the provider created HEAD.
    pub proposal: Option<String>,
    pub commit: Option<String>,
    pub branch: Option<String>,
}

/// Why a provider's variables are ambiguous.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CiUnclear {
    /// The event file cannot be used.
    #[error(
        "GitHub Actions runs this for a `{event}`, and its event file (GITHUB_EVENT_PATH) {problem}"
    )]
    EventFile {
        event: String,
        /// The problem, to follow the name of the file.
        problem: String,
    },
}

/// Returns what the CI provider reports; `None` outside of CI.
/// `variable` looks up an environment variable, where empty means unset, and `read` reads a file.
/// Fails if the provider's report is ambiguous: a fallback would compare with another commit than
/// the provider shows.
pub fn context(
    variable: impl Fn(&str) -> Option<String>,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<Option<CiContext>, CiUnclear> {
    let variable = &|name: &str| variable(name).filter(|value| !value.is_empty());
    let is_on = |name: &str| variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    Ok(if is_on("GITHUB_ACTIONS") {
        Some(github(variable, read)?)
    } else if is_on("GITLAB_CI") {
        Some(gitlab(variable))
    } else if variable("BITBUCKET_BUILD_NUMBER").is_some() {
        Some(bitbucket(variable))
    } else if is_on("TF_BUILD") {
        Some(azure(variable))
    } else if is_on("BUILDKITE") {
        Some(buildkite(variable))
    } else {
        None
    })
}

type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the text if it is the id of a commit. All zeros mean "none", and only an id may become an argument
/// of git.
fn commit(text: Option<String>) -> Option<String> {
    text.filter(|text| {
        (7..=64).contains(&text.len())
            && is_hexadecimal(text)
            && text.bytes().any(|byte| byte != b'0')
    })
}

/// Returns the name of a branch without `refs/heads/`, if the text is one.
fn branch(text: Option<String>) -> Option<String> {
    let text = text?;
    let name = text.strip_prefix("refs/heads/").unwrap_or(&text);
    super::is_branch_name(name).then(|| name.to_owned())
}

fn exactly(name: Option<String>, what: &'static str) -> Option<BaseHint> {
    let commit = commit(name)?;
    Some(BaseHint::Commit { commit, what })
}

fn target(
    proposal: Option<String>,
    target_commit: Option<String>,
    target_branch: Option<String>,
) -> Option<BaseHint> {
    let target = MergeTarget {
        proposal: commit(proposal),
        commit: commit(target_commit),
        branch: branch(target_branch),
    };
    let is_known = target.commit.is_some() || target.branch.is_some();
    is_known.then_some(BaseHint::Target(target))
}

fn github(
    variable: Variables<'_>,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<CiContext, CiUnclear> {
    let name = variable("GITHUB_EVENT_NAME").unwrap_or_default();
    let event = || {
        let problem = |problem: String| CiUnclear::EventFile {
            event: name.clone(),
            problem,
        };
        let Some(path) = variable("GITHUB_EVENT_PATH") else {
            return Err(problem("is not set".to_owned()));
        };
        let text = read(&path).map_err(|error| problem(format!("cannot be read: {error}")))?;
        let event: Value = serde_json::from_str(&text)
            .map_err(|error| problem(format!("is not JSON: {error}")))?;
        Ok(event)
    };
    let text = |event: &Value, pointer: &str| {
        let value = event.pointer(pointer).and_then(Value::as_str);
        value.map(str::to_owned)
    };
    let is_branch = variable("GITHUB_REF_TYPE").is_none_or(|kind| kind == "branch");
    let mut built = variable("GITHUB_REF_NAME").filter(|_| is_branch);
    let hint = match &*name {
        "pull_request" | "pull_request_target" | "pull_request_review" => {
            built = None;
            // The base branch is known even without the file.
            let event = event().or_else(|unclear| match variable("GITHUB_BASE_REF") {
                Some(_) => Ok(Value::Null),
                None => Err(unclear),
            })?;
            target(
                text(&event, "/pull_request/head/sha"),
                text(&event, "/pull_request/base/sha"),
                text(&event, "/pull_request/base/ref").or_else(|| variable("GITHUB_BASE_REF")),
            )
        }
        "merge_group" => {
            built = None;
            exactly(
                text(&event()?, "/merge_group/base_sha"),
                "the commit before this entry of the merge queue",
            )
        }
        "push" => exactly(text(&event()?, "/before"), "the commit before this push"),
        _ => None,
    };
    Ok(CiContext {
        provider: "GitHub Actions",
        hint,
        branch: branch(built),
    })
}

fn gitlab(variable: Variables<'_>) -> CiContext {
    // Set in pipelines for merged results and merge trains, where GitLab created the merge at HEAD.
    let merged_into = commit(variable("CI_MERGE_REQUEST_TARGET_BRANCH_SHA"));
    let source = variable("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA");
    let target_branch = variable("CI_MERGE_REQUEST_TARGET_BRANCH_NAME");
    let diff_base = variable("CI_MERGE_REQUEST_DIFF_BASE_SHA");
    let is_merge_request = target_branch.is_some() || diff_base.is_some();
    let hint = if merged_into.is_some() {
        target(source, merged_into, target_branch)
    } else if is_merge_request {
        exactly(diff_base, "the diff base of this merge request")
            .or_else(|| target(None, None, target_branch))
    } else {
        let before = variable("CI_COMMIT_BEFORE_SHA");
        exactly(before, "the commit before this push")
    };
    CiContext {
        provider: "GitLab CI",
        hint,
        branch: branch(variable("CI_COMMIT_BRANCH")).filter(|_| !is_merge_request),
    }
}

fn bitbucket(variable: Variables<'_>) -> CiContext {
    // A pull request's pipeline merges the target into the source itself, so the merge base is the target.
    let is_pull_request = variable("BITBUCKET_PR_ID").is_some();
    let hint = target(
        None,
        variable("BITBUCKET_PR_DESTINATION_COMMIT"),
        variable("BITBUCKET_PR_DESTINATION_BRANCH"),
    );
    CiContext {
        provider: "Bitbucket Pipelines",
        hint: hint.filter(|_| is_pull_request),
        branch: branch(variable("BITBUCKET_BRANCH")).filter(|_| !is_pull_request),
    }
}

fn azure(variable: Variables<'_>) -> CiContext {
    let is_pull_request = variable("BUILD_REASON").is_some_and(|reason| reason == "PullRequest");
    let hint = target(
        variable("SYSTEM_PULLREQUEST_SOURCECOMMITID"),
        None,
        variable("SYSTEM_PULLREQUEST_TARGETBRANCH"),
    );
    let source = variable("BUILD_SOURCEBRANCH").filter(|name| name.starts_with("refs/heads/"));
    CiContext {
        provider: "Azure Pipelines",
        hint: hint.filter(|_| is_pull_request),
        branch: branch(source).filter(|_| !is_pull_request),
    }
}

fn buildkite(variable: Variables<'_>) -> CiContext {
    let is_pull_request =
        variable("BUILDKITE_PULL_REQUEST").is_some_and(|number| number != "false");
    let queued = exactly(
        variable("BUILDKITE_MERGE_QUEUE_BASE_COMMIT"),
        "the commit before this entry of the merge queue",
    );
    let is_plain = !is_pull_request && queued.is_none() && variable("BUILDKITE_TAG").is_none();
    let proposed = target(None, None, variable("BUILDKITE_PULL_REQUEST_BASE_BRANCH"));
    CiContext {
        provider: "Buildkite",
        hint: queued.or_else(|| proposed.filter(|_| is_pull_request)),
        branch: branch(variable("BUILDKITE_BRANCH")).filter(|_| is_plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const NONE: &str = "0000000000000000000000000000000000000000";

    fn known(variables: &[(&str, &str)], event: &str) -> Option<BaseHint> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let read = |_: &str| Ok(event.to_owned());
        context(variable, read).unwrap().unwrap().hint
    }

    fn github(event: &str, content: &str) -> Option<BaseHint> {
        let variables = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_EVENT_NAME", event),
            ("GITHUB_EVENT_PATH", "event.json"),
        ];
        known(&variables, content)
    }

    #[test]
    fn a_push_to_a_new_branch_has_nothing_before_it() {
        let push = |before: &str| github("push", &format!("{{\"before\": \"{before}\"}}"));
        assert_eq!(push(NONE), None);
        assert!(matches!(push(A), Some(BaseHint::Commit { commit, .. }) if commit == A));
        let gitlab = [("GITLAB_CI", "true"), ("CI_COMMIT_BEFORE_SHA", NONE)];
        assert_eq!(known(&gitlab, ""), None);
    }

    #[test]
    fn merged_results_are_compared_with_the_target_and_other_requests_with_their_diff_base() {
        let mut variables = vec![
            ("GITLAB_CI", "true"),
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", A),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
            ("CI_COMMIT_BEFORE_SHA", NONE),
        ];
        assert!(matches!(
            known(&variables, ""),
            Some(BaseHint::Commit { commit, .. }) if commit == A
        ));
        variables.push(("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", B));
        assert!(matches!(
            known(&variables, ""),
            Some(BaseHint::Target(target)) if target.commit.as_deref() == Some(B)
        ));
    }

    #[test]
    fn nothing_but_names_of_commits_and_branches_is_believed() {
        assert_eq!(github("push", r#"{"before": "--upload-pack=x"}"#), None);
        let strange = r#"{"pull_request": {"base": {"ref": "a b", "sha": "HEAD"}}}"#;
        assert_eq!(github("pull_request", strange), None);
    }

    #[test]
    fn an_event_that_cannot_be_understood_is_no_reason_to_guess() {
        let variable = |name: &str| match name {
            "GITHUB_ACTIONS" => Some("true".to_owned()),
            "GITHUB_EVENT_NAME" => Some("push".to_owned()),
            "GITHUB_EVENT_PATH" => Some("event.json".to_owned()),
            _ => None,
        };
        let unclear = |text: &str| context(variable, |_| Ok(text.to_owned())).is_err();
        assert!(unclear("{"));
        assert!(!unclear("{}"));
    }
}
