//! The engines and their limits, in one table.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    Gitlab,
    Github,
    Buildkite,
    Make,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Jobs of a pipeline.
    Jobs,
    /// Jobs that one job waits for.
    Needs,
    /// Such pairs of jobs in a pipeline.
    Edges,
    /// Equal jobs of a matrix.
    Workers,
    /// Jobs in one file.
    JobsInFile,
    /// Files of a pipeline.
    Files,
    /// Bytes of one file.
    Bytes,
}

/// The most that an engine accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLimit {
    pub engine: Engine,
    pub kind: LimitKind,
    pub most: usize,
    pub source: &'static str,
    /// When the source said so.
    pub date: &'static str,
}

const fn limit(
    engine: Engine,
    kind: LimitKind,
    most: usize,
    source: &'static str,
    date: &'static str,
) -> EngineLimit {
    EngineLimit {
        engine,
        kind,
        most,
        source,
        date,
    }
}

/// All limits that are known. An engine without an entry has no such limit. Administrators may raise
/// some of them.
pub const LIMITS: [EngineLimit; 11] = {
    use Engine::{Buildkite, Github, Gitlab};
    use LimitKind::{Bytes, Edges, Files, Jobs, JobsInFile, Needs, Workers};
    [
        // The free plan of gitlab.com.
        limit(
            Gitlab,
            Jobs,
            500,
            "https://docs.gitlab.com/user/gitlab_com/",
            "2026-11",
        ),
        limit(
            Gitlab,
            Needs,
            50,
            "https://docs.gitlab.com/administration/instance_limits/",
            "2026-11",
        ),
        limit(
            Gitlab,
            Workers,
            200,
            "https://docs.gitlab.com/ci/yaml/#parallel",
            "2026-11",
        ),
        // A generated file.
        limit(
            Gitlab,
            Bytes,
            5 << 20,
            "https://docs.gitlab.com/ci/pipelines/downstream_pipelines/",
            "2026-11",
        ),
        limit(
            Github,
            Jobs,
            256,
            "https://github.com/orgs/community/discussions/69683",
            "2026-11",
        ),
        // A workflow with 4,700 failed at its start, without a message.
        limit(
            Github,
            Edges,
            2_000,
            "https://github.com/cdklabs/cdk-pipelines-github/issues/1456",
            "2026-11",
        ),
        limit(
            Github,
            Workers,
            256,
            "https://docs.github.com/en/actions/reference/limits",
            "2026-11",
        ),
        limit(
            Github,
            Bytes,
            500_000,
            "https://docs.github.com/en/actions/reference/limits",
            "2026-11",
        ),
        // Retries count.
        limit(
            Buildkite,
            Jobs,
            4_000,
            "https://buildkite.com/docs/platform/limits",
            "2026-11",
        ),
        // The limit is 500; the job that uploads a file may add others.
        limit(
            Buildkite,
            JobsInFile,
            450,
            "https://buildkite.com/docs/platform/limits",
            "2026-11",
        ),
        limit(
            Buildkite,
            Files,
            500,
            "https://buildkite.com/docs/platform/limits",
            "2026-11",
        ),
    ]
};

impl Engine {
    pub fn limit(self, kind: LimitKind) -> Option<&'static EngineLimit> {
        let mut known = LIMITS.iter();
        known.find(|limit| limit.engine == self && limit.kind == kind)
    }

    /// Returns how long a job takes to start, roughly: a checkout, and the providers of a tool.
    pub fn start(self) -> Duration {
        match self {
            Engine::Gitlab | Engine::Github | Engine::Buildkite => Duration::from_secs(45),
            Engine::Make => Duration::from_millis(50),
        }
    }

    /// Returns the most that the engine accepts, if it has such a limit.
    pub(super) fn most(self, kind: LimitKind) -> Option<usize> {
        self.limit(kind).map(|limit| limit.most)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::Gitlab => "GitLab",
            Engine::Github => "GitHub Actions",
            Engine::Buildkite => "Buildkite",
            Engine::Make => "make",
        })
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LimitKind::Jobs => "jobs in a pipeline",
            LimitKind::Needs => "jobs that one job waits for",
            LimitKind::Edges => "dependencies between the jobs of a pipeline",
            LimitKind::Workers => "jobs in a matrix",
            LimitKind::JobsInFile => "jobs in a file",
            LimitKind::Files => "files in a pipeline",
            LimitKind::Bytes => "bytes in a file",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_listed_once_with_its_source() {
        for limit in &LIMITS {
            assert_eq!(limit.engine.limit(limit.kind), Some(limit));
            assert!(limit.source.starts_with("https://"), "{limit:?}");
            assert_eq!(limit.date.len(), 7, "{limit:?}");
        }
    }
}
