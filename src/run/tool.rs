//! Questions to the tool of a command: the effect of the plan file that it applies, before it starts; and its
//! backend, afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::execute::{ProgramFinder, Task};
use crate::driver::{
    StepRole, backend_of_tool, digest_of_file, read_tool_plan, variables_with_words,
};
use crate::project::environment::{Environment, lookup};
use crate::project::tool_options::TERRAGRUNT;
use crate::project::tool_use::ToolUse;
use crate::state::document::{OUTDATED_PLAN, PARTIAL_PLAN, UNREADABLE_PLAN};

#[derive(Debug, Clone)]
pub struct AppliedPlan {
    /// The file as the command names it.
    pub name: String,
    /// The command that shows it; `None` if only a script knows.
    question: Option<Question>,
    answer: Option<PlanAnswer>,
}

#[derive(Debug, Clone)]
struct Question {
    show: Task,
    directory: PathBuf,
    file: PathBuf,
}

#[derive(Debug, Clone, Default)]
pub struct PlanAnswer {
    /// Whether it destroys all or a part of the stack, if that is known.
    pub destroys: Option<bool>,
    /// Why its effect is unknown, if it is.
    pub unknown: Option<&'static str>,
    digest: Option<String>,
}

impl AppliedPlan {
    /// Returns the plan file that a command applies, given its applies and destroys; `None` if it applies none.
    pub fn of(uses: &[ToolUse], task: &Task) -> Option<Self> {
        let with_file = uses.iter().find(|it| it.plan_file().is_some())?;
        let name = with_file.plan_file()?.to_owned();
        let question = || {
            let [only] = uses else {
                return None;
            };
            let mut show = task.clone();
            show.arguments = only.show()?;
            show.environment.extend(of_wrapper(only));
            if !only.is_direct {
                let path = lookup(&show.environment, "PATH");
                show.name = only.program.clone().into();
                let mut finder = ProgramFinder::new(&show.name);
                let path = path.as_deref().map(AsRef::as_ref);
                show.program = finder.find(&task.directory, path).ok()?;
            }
            for variable in variables_with_words(StepRole::Show) {
                show.environment.insert((*variable).to_owned(), None);
            }
            let directory = only.directory(&task.directory);
            let file = directory.join(&name);
            Some(Question {
                show,
                directory,
                file,
            })
        };
        let question = question();
        Some(AppliedPlan {
            name,
            question,
            answer: None,
        })
    }

    /// Asks the tools for the effects of plan files, several at a time.
    pub fn ask_all(plans: &mut [Option<AppliedPlan>]) {
        plans.par_iter_mut().flatten().for_each(|plan| {
            plan.answer = Some(plan.ask());
        });
    }

    /// Returns whether it destroys all or a part of the stack, as far as is known.
    pub fn destroys(&self) -> Option<bool> {
        self.answer.as_ref()?.destroys
    }

    /// Returns the effect of the file. Asks the tool unless it was asked before. Fails if the file
    /// has changed since.
    pub(super) fn confirmed(&self) -> Result<PlanAnswer, String> {
        let Some(answer) = &self.answer else {
            return Ok(self.ask());
        };
        let file = self.question.as_ref().map(|question| &question.file);
        let now = file.and_then(|file| fs::read(file).ok());
        if now.map(|content| digest_of_file(&content)) == answer.digest {
            Ok(answer.clone())
        } else {
            Err("its plan file has changed since the run began".to_owned())
        }
    }

    fn ask(&self) -> PlanAnswer {
        let unreadable = PlanAnswer {
            unknown: Some(UNREADABLE_PLAN),
            ..PlanAnswer::default()
        };
        let Some(question) = &self.question else {
            return unreadable;
        };
        let content = fs::read(&question.file);
        let digest = content.as_ref().ok().map(|it| digest_of_file(it));
        let unreadable = PlanAnswer {
            digest,
            ..unreadable
        };
        let (Ok(content), Ok(shown)) = (content, question.show.output()) else {
            return unreadable;
        };
        let variable = |name: &str| lookup(&question.show.environment, name);
        match read_tool_plan(&content, &shown, &question.directory, &variable) {
            Ok(plan) => PlanAnswer {
                destroys: Some(plan.destroys),
                unknown: if !plan.is_whole {
                    Some(PARTIAL_PLAN)
                } else if !plan.destroys && !plan.is_current {
                    Some(OUTDATED_PLAN)
                } else {
                    None
                },
                ..unreadable
            },
            Err(destroys) => PlanAnswer {
                destroys,
                ..unreadable
            },
        }
    }
}

/// The backend that a command configures for Terraform or `OpenTofu` in a stack.
#[derive(Debug, Clone)]
pub struct ToolPlace {
    root: PathBuf,
    directory: PathBuf,
    environment: Environment,
}

impl ToolPlace {
    /// Returns the places of the applies and destroys in a command.
    pub fn all(uses: &[ToolUse], task: &Task, root: &Path) -> Vec<Self> {
        let uses = uses.iter().filter(|it| it.tool != TERRAGRUNT);
        let place = |it: &ToolUse| {
            let own = task.environment.clone().into_iter();
            ToolPlace {
                root: root.to_owned(),
                directory: it.directory(&task.directory),
                environment: own.chain(of_wrapper(it)).collect(),
            }
        };
        uses.map(place).collect()
    }

    /// Returns the backend with its workspace, as recorded; `None` if it is not known.
    pub(super) fn backend(&self) -> Option<String> {
        let variable = |name: &str| lookup(&self.environment, name);
        backend_of_tool(&self.root, &self.directory, &variable)
    }
}

/// Returns the variables that a command sets for its tool.
fn of_wrapper(it: &ToolUse) -> impl Iterator<Item = (String, Option<String>)> {
    let variables = it.variables.iter().cloned();
    variables.map(|(name, value)| (name, Some(value)))
}
