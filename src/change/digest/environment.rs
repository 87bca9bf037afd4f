//! The digested parts of environments: values of variables, and files that functions read for them.

use std::collections::{BTreeMap, HashSet};

use rayon::prelude::*;

use super::ignore_filter::IgnoreFilter;
use super::part::PartDigest;
use super::{Digester, Parts, finished};
use crate::project::environment::{Environments, Variable};
use crate::project::function_files::FileRead;
use crate::project::namespaces::{ProjectNamespaces, Used};
use crate::project::stack::StackIndex;
use crate::source::Span;

/// What the environment of a stack makes.
#[derive(Debug, Clone, Default)]
pub(super) struct EnvironmentDigests {
    pub(super) all: BTreeMap<String, PartDigest>,
    /// The parts of the counted variables, if some are ignored.
    pub(super) counted: BTreeMap<String, PartDigest>,
}

impl Digester<'_> {
    /// Returns the environment parts of each stack: the values, and the files that functions read.
    pub(super) fn environments(
        &self,
        stacks: &[StackIndex],
        sieves: &[Option<IgnoreFilter<'_>>],
    ) -> Vec<EnvironmentDigests> {
        let has_any = self
            .project
            .scopes
            .values()
            .any(|scope| !scope.env.is_empty());
        if !self.project.settings.environment || !has_any {
            return vec![EnvironmentDigests::default(); stacks.len()];
        }
        let namespaces = ProjectNamespaces::new(self.project, std::iter::empty()).portable();
        let basis = namespaces.basis();
        let size = stacks.len().div_ceil(rayon::current_num_threads()).max(1);
        let of_part = |(stacks, sieves): (&[StackIndex], &[Option<IgnoreFilter<'_>>])| {
            let environments = Environments::of(basis.clone().into());
            let of_stack = |(&stack, sieve): (&StackIndex, &Option<IgnoreFilter<'_>>)| {
                let (mut all, mut counted) = (Parts::new(), Parts::new());
                let sieve = sieve.as_ref().filter(|sieve| !sieve.is_idle());
                for variable in environments.variables(stack) {
                    self.add_variable(&variable, None, &mut all);
                    let name = &*variable.definition.name.text;
                    if sieve.is_some_and(|sieve| !sieve.list.variables().contains(name)) {
                        self.add_variable(&variable, sieve, &mut counted);
                    }
                }
                EnvironmentDigests {
                    all: finished(all),
                    counted: finished(counted),
                }
            };
            stacks
                .iter()
                .zip(sieves)
                .map(of_stack)
                .collect::<Vec<EnvironmentDigests>>()
        };
        let parts = stacks.par_chunks(size).zip(sieves.par_chunks(size));
        parts.flat_map_iter(of_part).collect()
    }

    fn add_variable(
        &self,
        variable: &Variable<'_>,
        sieve: Option<&IgnoreFilter<'_>>,
        parts: &mut Parts,
    ) {
        let name = format!("environment {}", variable.definition.name.text);
        let hasher = parts.entry(name).or_default();
        match &variable.value {
            Ok(Some(value)) => {
                hasher.text("value");
                hasher.text(&self.without_root(value));
            }
            Ok(None) => hasher.text("removed"),
            Err(diagnostic) => {
                hasher.text("error");
                hasher.text(&diagnostic.code.to_string());
                hasher.text(&self.without_root(&diagnostic.message));
            }
        }
        let mut reads = Vec::new();
        files_read(&variable.uses, &mut HashSet::new(), &mut reads);
        for read in reads {
            self.add_read(read, sieve, parts);
        }
    }

    /// Replaces the host path of the project.
    fn without_root(&self, text: &str) -> String {
        match self.project.root.to_str() {
            Some(root) if root.len() > 1 => text.replace(root, "${root}"),
            _ => text.to_owned(),
        }
    }
}

/// Collects the files that functions read for a value, directly or indirectly.
fn files_read<'u>(uses: &'u [Used<'_>], seen: &mut HashSet<Span>, reads: &mut Vec<&'u FileRead>) {
    for used in uses {
        match used {
            Used::Value(definition, inner) => {
                if seen.insert(definition.span()) {
                    files_read(inner, seen, reads);
                }
            }
            Used::File(read, _) => reads.push(read),
            Used::Generation(..) => {}
        }
    }
}
