use std::collections::{HashSet, VecDeque};

use super::MARK;
use super::names::{FileRole, Names, READ_CONFIG, Visit};
use super::passed::PassedInputs;
use super::units::Units;
use crate::change::cause::{InputLocation, Use, UseKind};
use crate::change::inputs::node::InputNode;
use crate::change::inputs::tree::place_read;
use crate::language::syntax::Expr;
use crate::path::ProjectPath;
use crate::source::Span;

/// Reads all files of one stack into a node.
pub(super) struct Reading<'r, 't, 'a> {
    pub(super) units: &'r Units<'t, 'a>,
    pub(super) stack: &'r ProjectPath,
    pub(super) node: InputNode<'a>,
    pub(super) open: VecDeque<Visit>,
    pub(super) seen: HashSet<ProjectPath>,
    /// The names of its `dependency` blocks.
    pub(super) labels: HashSet<Box<str>>,
    /// The values that it passes to its module, if they are collected.
    pub(super) passed: Option<PassedInputs>,
}

impl Reading<'_, '_, '_> {
    /// Adds the file that a function's argument names.
    pub(super) fn read(&mut self, function: &str, span: Span, argument: &Expr, names: &Names) {
        let role = (function == READ_CONFIG).then_some(FileRole::Read);
        match names.text(argument) {
            Some(text) => {
                self.node.has_newer |= function == MARK;
                self.input(function, span, &text, names, role);
            }
            None => self.unknown(function, span, names),
        }
    }

    /// Adds the files that match below a directory, for `fileset` or a marked glob.
    pub(super) fn set(&mut self, function: &str, span: Span, arguments: &[Expr], names: &Names) {
        let texts: Option<Vec<String>> = arguments.iter().map(|it| names.text(it)).collect();
        let (directory, pattern) = match texts.as_deref() {
            Some([directory, pattern]) => (directory.as_str(), pattern.as_str()),
            Some([glob]) => {
                let literal = glob.find(['*', '?', '{', '[']).unwrap_or(glob.len());
                let cut = glob[..literal].rfind('/').unwrap_or(0);
                (&glob[..cut], glob[cut..].trim_start_matches('/'))
            }
            _ => return self.unknown(function, span, names),
        };
        let directory = if directory.is_empty() { "." } else { directory };
        let steps = names.steps(function, span);
        self.node.has_newer = true;
        for base in names.bases() {
            if let Some(place) = self.units.locate(directory, base) {
                let touch = self.units.tree.touch_read(&place, Some(pattern));
                let location = || place_read(place, Some(pattern));
                self.node.input(&steps, touch, location);
            }
        }
    }

    /// Notes a path that only Terragrunt can evaluate.
    pub(super) fn unknown(&mut self, function: &str, span: Span, names: &Names) {
        self.node.unknown.push(Use {
            kind: UseKind::Terragrunt(function.into()),
            location: names.location(span),
        });
    }

    /// Adds a file from each directory that it may be relative to. Returns its place if it has to be read
    /// too.
    pub(super) fn input(
        &mut self,
        what: &str,
        span: Span,
        text: &str,
        names: &Names,
        role: Option<FileRole>,
    ) -> Option<ProjectPath> {
        let steps = names.steps(what, span);
        let units = self.units;
        let places: Vec<ProjectPath> = names
            .bases()
            .filter_map(|base| units.locate(text, base))
            .collect();
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
                    FileRole::Read => path.parent().unwrap_or_else(ProjectPath::root),
                    FileRole::Own | FileRole::Included | FileRole::Exposed => {
                        names.visit.directory.clone()
                    }
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
