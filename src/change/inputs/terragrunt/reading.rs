//! Reads all files of one stack into a node.

use std::collections::{HashSet, VecDeque};

use super::names::{Names, Role, Visit};
use super::units::Units;
use crate::change::cause::InputLocation;
use crate::change::inputs::node::InputNode;
use crate::language::syntax::Expr;
use crate::path::ProjectPath;
use crate::source::Span;

/// The reading of all files of one stack.
pub(super) struct Reading<'r, 't, 'a> {
    pub(super) units: &'r Units<'t, 'a>,
    pub(super) stack: &'r ProjectPath,
    pub(super) node: InputNode<'a>,
    pub(super) open: VecDeque<Visit>,
    pub(super) seen: HashSet<ProjectPath>,
}

impl Reading<'_, '_, '_> {
    /// Adds the file that the argument of a function names.
    pub(super) fn read(&mut self, function: &str, span: Span, argument: &Expr, names: &Names) {
        let role = (function == "read_terragrunt_config").then_some(Role::Read);
        if let Some(text) = names.text(argument) {
            self.input(function, span, &text, names, role);
        }
    }

    /// Adds a file that is read, from each of the directories that it may be relative to. If it
    /// is to be read as well, returns where it is.
    pub(super) fn input(
        &mut self,
        what: &str,
        span: Span,
        text: &str,
        names: &Names,
        role: Option<Role>,
    ) -> Option<ProjectPath> {
        let steps = names.steps(what, span);
        let units = self.units;
        let places = names.bases().filter_map(|base| units.locate(text, base));
        let places: Vec<ProjectPath> = places.collect();
        let mut found = None;
        for path in &places {
            let touch = units.tree.touch(path);
            let is_touched = touch.is_some();
            self.node.input(&steps, touch, || {
                let exists = |path| units.exists(path);
                let is_meant = is_touched || exists(path) || !places.iter().any(exists);
                is_meant.then(|| InputLocation::Path(path.clone()))
            });
            if let Some(role) = role
                && found.is_none()
                && units.exists(path)
            {
                let directory = match role {
                    Role::Read => path.parent().unwrap_or_else(ProjectPath::root),
                    Role::Own | Role::Included => names.visit.directory.clone(),
                };
                self.open.push_back(Visit {
                    file: path.clone(),
                    role,
                    directory,
                    steps: steps.clone(),
                });
                found = Some(path.clone());
            }
        }
        found
    }
}
