//! What continuous integration says about the commits it builds.
//!
//! Pure: variables and the event file come in as values, what a provider knows goes out. Whether
//! any of these commits is present in the clone is not known here.
//!
//! Sources: the documentation of each provider's predefined variables, and of GitHub's webhook
//! events, which is what the event file holds.

use serde_json::Value;

use crate::git::is_hexadecimal;

/// What a provider knows about the base of what it builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knowledge {
    /// The provider, for people.
    pub provider: &'static str,
    /// What to compare with; `None` if the provider does not know.
    pub comparison: Option<Comparison>,
    /// The branch that is built, where no pull request is.
    pub branch: Option<String>,
}

/// What to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// Exactly this commit.
    Commit {
        /// Its name.
        commit: String,
        /// What it is, for people.
        what: &'static str,
    },
    /// Where the change that is proposed left the branch that it is proposed for.
    Target(Target),
}

/// What a change is proposed for. One of commit and branch is known at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The last commit of the proposal. If HEAD merges it into the target, the provider made HEAD.
    pub proposal: Option<String>,
    /// The commit that the target was at.
    pub commit: Option<String>,
    /// The name of the target branch.
    pub branch: Option<String>,
}

/// Why nothing can be concluded from what a provider says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// The file that describes what happened cannot be used.
    #[error(
        "GitHub Actions runs this for a `{event}`, and its event file (GITHUB_EVENT_PATH) {problem}"
    )]
    EventFile {
        /// The name of the event.
        event: String,
        /// What is wrong with the file, going on from its name.
        problem: String,
    },
}

/// Reads what the provider that runs us says; `None` where none does.
///
/// `variable` looks up the environment, where empty counts as unset, and `read` reads a file.
///
/// # Errors
///
/// If the provider says that it knows but cannot be understood: falling back would compare with
/// another commit than the provider shows.
pub fn knowledge(
    variable: impl Fn(&str) -> Option<String>,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<Option<Knowledge>, Unclear> {
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

/// Returns a commit name if the text is one that is not all zeros, which stands for "none". Nothing
/// else may become an argument of git.
fn commit(text: Option<String>) -> Option<String> {
    text.filter(|text| {
        (7..=64).contains(&text.len())
            && is_hexadecimal(text)
            && text.bytes().any(|byte| byte != b'0')
    })
}

/// Returns a branch name if the text is one, without `refs/heads/`.
fn branch(text: Option<String>) -> Option<String> {
    let text = text?;
    let name = text.strip_prefix("refs/heads/").unwrap_or(&text);
    super::is_branch_name(name).then(|| name.to_owned())
}

fn exactly(name: Option<String>, what: &'static str) -> Option<Comparison> {
    let commit = commit(name)?;
    Some(Comparison::Commit { commit, what })
}

fn target(
    proposal: Option<String>,
    target_commit: Option<String>,
    target_branch: Option<String>,
) -> Option<Comparison> {
    let target = Target {
        proposal: commit(proposal),
        commit: commit(target_commit),
        branch: branch(target_branch),
    };
    let is_known = target.commit.is_some() || target.branch.is_some();
    is_known.then_some(Comparison::Target(target))
}

fn github(
    variable: Variables<'_>,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<Knowledge, Unclear> {
    let name = variable("GITHUB_EVENT_NAME").unwrap_or_default();
    let event = || {
        let problem = |problem: String| Unclear::EventFile {
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
    let comparison = match &*name {
        "pull_request" | "pull_request_target" | "pull_request_review" => {
            built = None;
            // The base branch is known without the file as well.
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
    Ok(Knowledge {
        provider: "GitHub Actions",
        comparison,
        branch: branch(built),
    })
}

fn gitlab(variable: Variables<'_>) -> Knowledge {
    // Set in pipelines for merged results and merge trains, where HEAD is a merge that GitLab made.
    let merged_into = commit(variable("CI_MERGE_REQUEST_TARGET_BRANCH_SHA"));
    let source = variable("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA");
    let target_branch = variable("CI_MERGE_REQUEST_TARGET_BRANCH_NAME");
    let diff_base = variable("CI_MERGE_REQUEST_DIFF_BASE_SHA");
    let is_merge_request = target_branch.is_some() || diff_base.is_some();
    let comparison = if merged_into.is_some() {
        target(source, merged_into, target_branch)
    } else if is_merge_request {
        exactly(diff_base, "the diff base of this merge request")
            .or_else(|| target(None, None, target_branch))
    } else {
        let before = variable("CI_COMMIT_BEFORE_SHA");
        exactly(before, "the commit before this push")
    };
    Knowledge {
        provider: "GitLab CI",
        comparison,
        branch: branch(variable("CI_COMMIT_BRANCH")).filter(|_| !is_merge_request),
    }
}

fn bitbucket(variable: Variables<'_>) -> Knowledge {
    // The pipeline of a pull request merges the target into the source itself, so the merge base is
    // the target.
    let is_pull_request = variable("BITBUCKET_PR_ID").is_some();
    let comparison = target(
        None,
        variable("BITBUCKET_PR_DESTINATION_COMMIT"),
        variable("BITBUCKET_PR_DESTINATION_BRANCH"),
    );
    Knowledge {
        provider: "Bitbucket Pipelines",
        comparison: comparison.filter(|_| is_pull_request),
        branch: branch(variable("BITBUCKET_BRANCH")).filter(|_| !is_pull_request),
    }
}

fn azure(variable: Variables<'_>) -> Knowledge {
    let is_pull_request = variable("BUILD_REASON").is_some_and(|reason| reason == "PullRequest");
    let comparison = target(
        variable("SYSTEM_PULLREQUEST_SOURCECOMMITID"),
        None,
        variable("SYSTEM_PULLREQUEST_TARGETBRANCH"),
    );
    let source = variable("BUILD_SOURCEBRANCH").filter(|name| name.starts_with("refs/heads/"));
    Knowledge {
        provider: "Azure Pipelines",
        comparison: comparison.filter(|_| is_pull_request),
        branch: branch(source).filter(|_| !is_pull_request),
    }
}

fn buildkite(variable: Variables<'_>) -> Knowledge {
    let is_pull_request =
        variable("BUILDKITE_PULL_REQUEST").is_some_and(|number| number != "false");
    let queued = exactly(
        variable("BUILDKITE_MERGE_QUEUE_BASE_COMMIT"),
        "the commit before this entry of the merge queue",
    );
    let is_plain = !is_pull_request && queued.is_none() && variable("BUILDKITE_TAG").is_none();
    let proposed = target(None, None, variable("BUILDKITE_PULL_REQUEST_BASE_BRANCH"));
    Knowledge {
        provider: "Buildkite",
        comparison: queued.or_else(|| proposed.filter(|_| is_pull_request)),
        branch: branch(variable("BUILDKITE_BRANCH")).filter(|_| is_plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const NONE: &str = "0000000000000000000000000000000000000000";

    fn known(variables: &[(&str, &str)], event: &str) -> Option<Comparison> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let read = |_: &str| Ok(event.to_owned());
        knowledge(variable, read).unwrap().unwrap().comparison
    }

    fn github(event: &str, content: &str) -> Option<Comparison> {
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
        assert!(matches!(push(A), Some(Comparison::Commit { commit, .. }) if commit == A));
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
            Some(Comparison::Commit { commit, .. }) if commit == A
        ));
        variables.push(("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", B));
        assert!(matches!(
            known(&variables, ""),
            Some(Comparison::Target(target)) if target.commit.as_deref() == Some(B)
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
        let unclear = |text: &str| knowledge(variable, |_| Ok(text.to_owned())).is_err();
        assert!(unclear("{"));
        assert!(!unclear("{}"));
    }
}
