//! The `terraform` block: the module that Terragrunt runs, and files of variables.

use super::Reading;
use super::names::Names;
use crate::change::InputPlace;
use crate::change::inputs::extract;
use crate::change::inputs::terraform::absent_module;
use crate::change::inputs::tree::{Absent, MAX_PATH_BYTES};
use crate::language::syntax::{Block, ExprKind};

/// Arguments of `extra_arguments` that list files.
const VAR_FILES: [&str; 2] = ["required_var_files", "optional_var_files"];

impl Reading<'_, '_, '_> {
    /// Takes in the files of variables.
    pub(super) fn extra_arguments(&mut self, terraform: &Block, names: &Names) {
        for arguments in terraform.body.blocks("extra_arguments") {
            self.arguments(arguments, names);
            for name in VAR_FILES {
                let list = arguments.body.attribute(name);
                if let Some(ExprKind::List(files)) = list.map(|list| &list.value.kind) {
                    for file in files {
                        self.read(name, file.span, file, names);
                    }
                }
            }
        }
    }

    /// Takes in the files of variables that are arguments of Terraform.
    fn arguments(&mut self, extra: &Block, names: &Names) {
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
                self.input("arguments", argument.span, file, names, None);
            }
        }
    }

    /// Takes in the module that Terragrunt runs.
    pub(super) fn source(&mut self, terraform: &Block, names: &Names) {
        let Some(source) = terraform.body.attribute("source") else {
            return;
        };
        let Some(text) = names.text(&source.value) else {
            return;
        };
        // `?ref=…` means nothing for a directory, and `//` parts what is copied from what is run.
        let path = text.split('?').next().unwrap_or_default();
        let is_local = extract::is_local(path) || path.starts_with('/');
        if !is_local || path.len() > MAX_PATH_BYTES {
            return;
        }
        let span = source.value.span;
        let steps = names.steps("terraform.source", span);
        let mut absent = None;
        let mut modules = Vec::new();
        for base in names.bases() {
            let Some(directory) = self.units.locate(path, base) else {
                // Another directory of the machine is none of our business.
                if !path.starts_with('/') || self.units.is_in_repository(path) {
                    absent = absent.or(Some(Absent::Outside));
                }
                continue;
            };
            let module = self.units.tree.module(&directory);
            absent = absent.or(module.directory.as_ref().err().copied());
            modules.push((directory, module));
        }
        let any = modules.iter().any(|(_, module)| module.directory.is_ok());
        for (place, module) in modules {
            let is_meant = module.touch.is_some() || module.directory.is_ok() || !any;
            let place = || is_meant.then_some(InputPlace::Path(place));
            self.node.module(steps.clone(), &module, place);
        }
        if let Some(absent) = absent.filter(|_| !any) {
            let file = names.file;
            let diagnostic = absent_module(&text, absent, Some(span), &file.path);
            let problems = self.units.tree.problems;
            problems.add(&file.path, &file.text, diagnostic);
        }
    }
}
