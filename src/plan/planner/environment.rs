//! The environment that a plan depends on.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::Context;
use crate::driver::Driver;
use crate::plan::{EnvironmentSource, PlannedStack, SavedEnvironment, SavedPlan};

impl Context {
    /// Digests the current environment for comparison with the plan's.
    pub fn environment_of(&self, saved: &SavedPlan) -> SavedEnvironment {
        let entries = saved.plan.entries.iter();
        let made = entries.filter_map(|entry| Some((entry.stack.clone(), entry.generation?)));
        let generations = Arc::new(self.generations.with(made));
        let environments = self.evaluator().in_generations(generations);
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let host: BTreeMap<String, String> = std::env::vars_os()
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let source = EnvironmentSource {
            root: &self.project.root,
            environments: &environments,
            host: &host,
        };
        let stacks = saved.stacks.iter().filter_map(|it| {
            Some(PlannedStack {
                stack: self.project.stacks.find(&it.stack)?,
                driver: Driver::named(&self.project, &it.driver)?,
                inputs: it.inputs.as_ref(),
            })
        });
        match &saved.environment {
            Some(before) => before.now(source, stacks),
            None => SavedEnvironment::new(source, stacks),
        }
    }
}
