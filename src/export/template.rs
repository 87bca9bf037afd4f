//! The template: a YAML file with what every job of a pipeline has, such as its image, runner, permissions
//! and secrets. Nothing of that is invented.

use yaml_serde::{Mapping, Value};

use super::limits::Engine;
use super::yaml;

/// How many dependencies a template may add to each job.
const MOST_NEEDS: usize = 10;

/// Buildkite: the key with the artifacts of a step.
pub(super) const ARTIFACT_PATHS: &str = "artifact_paths";

#[derive(Debug, Clone, Default)]
pub struct Template {
    /// The keys of each job.
    pub(super) job: Mapping,
    /// The environment of each job.
    pub(super) environment: Mapping,
    /// GitHub: the steps before that of `orch`.
    pub(super) steps: Vec<Value>,
    /// GitHub: the keys of the workflow.
    pub(super) workflow: Mapping,
    /// GitLab: the jobs of other pipelines whose artifacts each job gets.
    pub(super) needs: Vec<Value>,
    /// GitLab: the artifacts of each job.
    pub(super) artifacts: Mapping,
    /// The files among the artifacts of each job.
    pub(super) artifact_paths: Vec<Value>,
}

#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("it is not valid YAML: {0}")]
    Yaml(#[from] yaml_serde::Error),
    #[error("it is not a mapping of the keys of a job")]
    NoMapping,
    #[error("`{0}` is not a {1}")]
    Kind(String, &'static str),
    #[error("`{0}` cannot be set: orch sets it for each job")]
    Reserved(&'static str),
    #[error("a key in it is a list or a mapping")]
    Key,
    #[error("make has no template")]
    Make,
    #[error("`runs-on` is missing: GitHub starts no job without it")]
    NoRunner,
    #[error(
        "`needs` may only name jobs of other pipelines, with `pipeline` or `project`, at most {MOST_NEEDS}"
    )]
    Needs,
}

impl Template {
    pub fn parse(engine: Engine, text: &str) -> Result<Self, TemplateError> {
        let content = yaml_serde::from_str(text)?;
        if !yaml::has_scalar_keys(&content) {
            return Err(TemplateError::Key);
        }
        let mut job = match content {
            Value::Mapping(job) => job,
            Value::Null => Mapping::new(),
            _ => return Err(TemplateError::NoMapping),
        };
        for key in reserved(engine) {
            if job.contains_key(*key) {
                return Err(TemplateError::Reserved(key));
            }
        }
        let mut template = Template::default();
        match engine {
            Engine::Gitlab => {
                template.environment = mapping(&mut job, "variables")?;
                template.artifacts = mapping(&mut job, "artifacts")?;
                template.artifact_paths = sequence(&mut template.artifacts, "paths")?;
                template.needs = sequence(&mut job, "needs")?;
                let is_other = |need: &Value| {
                    let keys = ["pipeline", "project"];
                    keys.iter().any(|key| need.get(*key).is_some())
                };
                if template.needs.len() > MOST_NEEDS || !template.needs.iter().all(is_other) {
                    return Err(TemplateError::Needs);
                }
            }
            Engine::Github => {
                template.environment = mapping(&mut job, "env")?;
                template.steps = sequence(&mut job, "steps")?;
                template.workflow = mapping(&mut job, "workflow")?;
                if template.workflow.contains_key("jobs") {
                    return Err(TemplateError::Reserved("workflow.jobs"));
                }
            }
            Engine::Buildkite => {
                template.environment = mapping(&mut job, "env")?;
                template.artifact_paths = match job.shift_remove(ARTIFACT_PATHS) {
                    Some(path @ Value::String(_)) => vec![path],
                    Some(paths) => {
                        job.insert(ARTIFACT_PATHS.into(), paths);
                        sequence(&mut job, ARTIFACT_PATHS)?
                    }
                    None => Vec::new(),
                };
            }
            Engine::Make => return Err(TemplateError::Make),
        }
        template.job = job;
        Ok(template)
    }

    /// Checks that jobs can start with it.
    pub fn check(&self, engine: Engine) -> Result<(), TemplateError> {
        if engine == Engine::Github && !self.job.contains_key("runs-on") {
            return Err(TemplateError::NoRunner);
        }
        Ok(())
    }

    /// Returns how many jobs of other pipelines each job waits for.
    pub fn n_needs(&self) -> usize {
        self.needs.len()
    }
}

/// Returns the keys of a job that `orch` sets, and those that would change when it runs.
fn reserved(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::Gitlab => &[
            "dependencies",
            "except",
            "only",
            "parallel",
            "rules",
            "run",
            "script",
            "stage",
            "trigger",
            "when",
        ],
        Engine::Github => &["if", "name", "needs", "strategy", "uses", "with"],
        Engine::Buildkite => &[
            "allow_dependency_failure",
            "block",
            "command",
            "commands",
            "depends_on",
            "group",
            "id",
            "identifier",
            "if",
            "input",
            "key",
            "label",
            "matrix",
            "name",
            "parallelism",
            "steps",
            "trigger",
            "wait",
        ],
        Engine::Make => &[],
    }
}

fn mapping(job: &mut Mapping, key: &str) -> Result<Mapping, TemplateError> {
    match job.shift_remove(key) {
        Some(Value::Mapping(mapping)) => Ok(mapping),
        None | Some(Value::Null) => Ok(Mapping::new()),
        Some(_) => Err(TemplateError::Kind(key.to_owned(), "mapping")),
    }
}

fn sequence(job: &mut Mapping, key: &str) -> Result<Vec<Value>, TemplateError> {
    match job.shift_remove(key) {
        Some(Value::Sequence(sequence)) => Ok(sequence),
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(_) => Err(TemplateError::Kind(key.to_owned(), "list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(engine: Engine, text: &str) -> String {
        Template::parse(engine, text).unwrap_err().to_string()
    }

    #[test]
    fn a_template_cannot_change_when_a_job_runs() {
        let problems = [
            problem(Engine::Gitlab, "when: manual"),
            problem(Engine::Gitlab, "needs: [build]"),
            problem(Engine::Gitlab, "variables: [A]"),
            problem(Engine::Github, "if: always()"),
            problem(Engine::Github, "workflow: {jobs: {}}"),
            problem(Engine::Buildkite, "key: a"),
            problem(Engine::Make, "a: b"),
            problem(Engine::Gitlab, "- a"),
        ];
        insta::assert_snapshot!(problems.join("\n"), @"
        `when` cannot be set: orch sets it for each job
        `needs` may only name jobs of other pipelines, with `pipeline` or `project`, at most 10
        `variables` is not a mapping
        `if` cannot be set: orch sets it for each job
        `workflow.jobs` cannot be set: orch sets it for each job
        `key` cannot be set: orch sets it for each job
        make has no template
        it is not a mapping of the keys of a job
        ");
    }

    #[test]
    fn an_empty_template_is_none() {
        let template = Template::parse(Engine::Gitlab, "# nothing\n").unwrap();
        assert!(template.job.is_empty());
    }
}
