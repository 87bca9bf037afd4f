//! The files that Terragrunt reads for a stack: includes, configuration, variables, and the module that it
//! runs.
//!
//! The meaning of a file depends on the stack that reads it, so only its syntax tree is shared. Dependencies
//! on other units are no inputs: a change of another unit does not change this one.

mod dependencies;
mod names;
mod passed;
mod reading;
mod terraform;
mod units;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use self::names::{FileRole, Names, READ_CONFIG, Visit};
pub(super) use self::passed::PassedInputs;
use self::reading::Reading;
use self::units::UnitFile;
pub(super) use self::units::Units;
use super::extract::READERS;
use super::node::InputNode;
use super::tree::Tree;
use crate::change::cause::InputLocation;
use crate::language::syntax::{Block, Expr};
use crate::path::ProjectPath;
use crate::project::discover::{TERRAGRUNT_FILE, TERRAGRUNT_JSON_FILE};
use crate::source::Span;

/// The function that marks a file as read.
const MARK: &str = "mark_as_read";

/// Functions that read the file named by their first argument, besides Terraform's.
const OWN_READERS: [&str; 4] = [MARK, READ_CONFIG, "read_tfvars_file", "sops_decrypt_file"];

/// Reads the Terragrunt files of a stack; `None` if there are none.
pub(super) fn node<'a>(units: &Units<'_, 'a>, stack: &ProjectPath) -> Option<InputNode<'a>> {
    Some(read(units, stack, None)?.node)
}

/// Returns the values that the Terragrunt files of a stack pass to its module.
pub(super) fn passed_inputs(tree: &Tree, stack: &ProjectPath) -> PassedInputs {
    let units = Units::new(tree);
    let read = read(&units, stack, Some(PassedInputs::default()));
    read.and_then(|reading| reading.passed).unwrap_or_default()
}

fn read<'r, 't, 'a>(
    units: &'r Units<'t, 'a>,
    stack: &'r ProjectPath,
    passed: Option<PassedInputs>,
) -> Option<Reading<'r, 't, 'a>> {
    let listed = units.tree.listing().get(stack.as_str())?;
    let is_there = |wanted: &&str| listed.files.iter().any(|(name, _)| name == wanted);
    let own = [TERRAGRUNT_FILE, TERRAGRUNT_JSON_FILE];
    let own = own.into_iter().find(is_there)?;
    let mut reading = Reading {
        units,
        stack,
        node: InputNode::new(units.tree, stack.clone()),
        open: VecDeque::from([Visit {
            file: stack.join(own),
            role: FileRole::Own,
            directory: stack.clone(),
            steps: Vec::new(),
        }]),
        seen: HashSet::new(),
        labels: HashSet::new(),
        passed,
    };
    while let Some(visit) = reading.open.pop_front() {
        if !reading.seen.insert(visit.file.clone()) {
            continue;
        }
        let file = match visit.role {
            FileRole::Own => units.parse(&visit.file).map(Arc::new),
            FileRole::Included | FileRole::Exposed | FileRole::Read => units.shared(&visit.file),
        };
        if let Some(file) = file {
            visit_file(&mut reading, &file, &visit);
        }
    }
    Some(reading)
}

fn visit_file(reading: &mut Reading, file: &UnitFile, visit: &Visit) {
    let mut names = Names::new(reading.units, reading.stack, file, visit);
    for include in file.body.blocks("include") {
        self::include(reading, include, &mut names);
    }
    file.body
        .each_call(&mut |name, arguments| match &*name.text {
            "find_in_parent_folders" => {
                found_in_parents(reading, name.span, arguments, &names);
            }
            function @ ("fileset" | "mark_glob_as_read") => {
                reading.set(function, name.span, arguments, &names);
            }
            function if READERS.contains(&function) || OWN_READERS.contains(&function) => {
                if let Some(argument) = arguments.first() {
                    reading.read(function, name.span, argument, &names);
                }
            }
            _ => {}
        });
    for block in file.body.blocks("terraform") {
        terraform::extra_arguments(reading, block, &names);
        if visit.role.is_merged() {
            reading.node.has_source |= block.body.attribute("source").is_some();
            terraform::source(reading, block, &names);
        }
    }
    if visit.role.is_merged() && reading.units.tree.finds_data {
        dependencies::add(reading, file, &names);
        let exclude = file.body.blocks("exclude").next();
        let exclude = exclude.map(|block| names.location(block.kind.span));
        let known = &mut reading.node.exclude;
        *known = known.take().or(exclude);
    }
    reading.node.has_newer |= names.has_newer.get() || file.is_json();
    if visit.role.is_merged()
        && let Some(passed) = &mut reading.passed
    {
        passed.add(file, &names);
    }
}

/// Adds the file that `include` names, and remembers it.
fn include(reading: &mut Reading, include: &Block, names: &mut Names) {
    let Some(path) = include.body.attribute("path") else {
        return;
    };
    let Some(text) = names.text(&path.value) else {
        return reading.unknown("include", path.value.span, names);
    };
    let strategy = include.body.attribute("merge_strategy");
    let strategy = strategy.and_then(|strategy| names.text(&strategy.value));
    let role = match strategy.as_deref() {
        Some("no_merge") => FileRole::Exposed,
        _ => FileRole::Included,
    };
    let found = reading.input("include", path.value.span, &text, names, Some(role));
    if let Some(file) = found {
        let label = include.labels.first().map(|label| label.text.clone());
        names.includes.push((label.unwrap_or_default(), file));
    }
}

/// Adds the result of `find_in_parent_folders`, and its result before the change.
fn found_in_parents(reading: &mut Reading, span: Span, arguments: &[Expr], names: &Names) {
    let written = match arguments.first() {
        None => None,
        Some(argument) => match names.text(argument) {
            Some(name) => Some(name),
            None => return,
        },
    };
    let tree = reading.units.tree;
    let wanted = names::wanted(written.as_deref());
    for location in Units::parents(&names.visit.directory, &wanted) {
        let exists = reading.units.exists(&location);
        let is_directory = || location.to_host(tree.root()).is_dir();
        let changed = tree.changed().at(location.as_str()).is_some();
        if changed || exists && !is_directory() {
            let touch = tree.touch(&location);
            if touch.is_some() || tree.records {
                let steps = names.steps("find_in_parent_folders", span);
                let location = || Some(InputLocation::Path(location));
                reading.node.input(&steps, touch, location);
            }
        }
        if exists {
            break;
        }
    }
}
