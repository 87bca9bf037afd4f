//! The `terraform` block: the module that Terragrunt runs, and variable files.

use super::names::Names;
use super::passed::VAR_FILES;
use super::reading::Reading;
use crate::change::call::{CallVersion, ModuleCall};
use crate::change::cause::InputLocation;
use crate::change::inputs::extract;
use crate::change::inputs::terraform::absent_module;
use crate::change::inputs::tree::NoModule;
use crate::language::syntax::{Block, ExprKind};
use crate::path::ProjectPath;

pub(super) fn extra_arguments(reading: &mut Reading, terraform: &Block, names: &Names) {
    for arguments in terraform.body.blocks("extra_arguments") {
        self::arguments(reading, arguments, names);
        for name in VAR_FILES {
            let list = arguments.body.attribute(name);
            if let Some(ExprKind::List(files)) = list.map(|list| &list.value.kind) {
                for file in files {
                    reading.read(name, file.span, file, names);
                }
            }
        }
    }
}

/// Adds variable files among Terraform's arguments.
fn arguments(reading: &mut Reading, extra: &Block, names: &Names) {
    let list = extra.body.attribute("arguments");
    let Some(ExprKind::List(arguments)) = list.map(|list| &list.value.kind) else {
        return;
    };
    for argument in arguments {
        let text = names.text(argument).unwrap_or_default();
        let option = text.trim_start_matches('-');
        if option.len() < text.len()
            && let Some(file) = option.strip_prefix("var-file=")
        {
            reading.input("arguments", argument.span, file, names, None);
        }
    }
}

pub(super) fn source(reading: &mut Reading, terraform: &Block, names: &Names) {
    let Some(source) = terraform.body.attribute("source") else {
        return;
    };
    let Some(text) = names.text(&source.value) else {
        return reading.unknown("terraform.source", source.value.span, names);
    };
    // `?ref=…` has no meaning for a directory, and `//` separates the copied directory from the one that
    // runs.
    let path = text.split('?').next().unwrap_or_default();
    let is_local = extract::is_local(path) || path.starts_with('/');
    let span = source.value.span;
    // An including file overrides the source of the included one, and is visited first.
    let is_first = reading.node.calls.is_empty() && reading.node.edges.is_empty();
    if !is_local && reading.units.tree.takes_calls && is_first {
        reading.node.calls.push(ModuleCall {
            name: "terraform.source".into(),
            source: text.as_str().into(),
            is_open: false,
            version: CallVersion::Any,
            location: names.location(span),
        });
    }
    if !is_local || path.len() > ProjectPath::MAX_BYTES {
        return;
    }
    let steps = names.steps("terraform.source", span);
    let mut absent = None;
    let mut modules = Vec::new();
    for base in names.bases() {
        let Some(directory) = reading.units.locate(path, base) else {
            // Other directories of the machine do not matter.
            if !path.starts_with('/') || reading.units.is_in_repository(path) {
                absent = absent.or(Some(NoModule::Outside));
            }
            continue;
        };
        let module = reading.units.tree.module(&directory);
        absent = absent.or(module.directory.as_ref().err().copied());
        modules.push((directory, module));
    }
    let any = modules.iter().any(|(_, module)| module.directory.is_ok());
    for (location, module) in modules {
        let is_meant = module.touch.is_some() || module.directory.is_ok() || !any;
        let location = || is_meant.then_some(InputLocation::Path(location));
        reading.node.module(None, steps.clone(), &module, location);
    }
    if let Some(absent) = absent.filter(|_| !any) {
        let file = names.file;
        let diagnostic = absent_module(&text, absent, Some(span), &file.path);
        let problems = reading.units.tree.problems;
        problems.add(&file.path, &file.text, diagnostic);
    }
}
