//! The values that a unit passes to the variables of its module.

use super::names::Names;
use super::units::UnitFile;
use crate::language::syntax::{Block, ExprKind};
use crate::language::value::Value;

/// Arguments of `extra_arguments` that list files.
pub(super) const VAR_FILES: [&str; 2] = ["required_var_files", "optional_var_files"];

/// The values that the files of a unit pass, in any order.
#[derive(Default)]
pub(in crate::change::inputs) struct PassedInputs {
    /// By name; `None` for a value that cannot be determined.
    named: Vec<(Box<str>, Option<Value>)>,
    /// Whether others may be passed, by variable files or expressions.
    has_others: bool,
}

impl PassedInputs {
    /// Returns the values of a variable.
    pub(in crate::change::inputs) fn values(&self, name: &str) -> Vec<Option<Value>> {
        let named = self.named.iter().filter(|(known, _)| **known == *name);
        let values = named.map(|(_, value)| value.clone());
        let other = self.has_others.then_some(None);
        values.chain(other).collect()
    }

    /// Adds the inputs of a file.
    pub(super) fn add(&mut self, file: &UnitFile, names: &Names) {
        let terraform = file.body.blocks("terraform");
        let mut extra = terraform.flat_map(|block| block.body.blocks("extra_arguments"));
        self.has_others |= extra.any(|arguments| sets_variables(arguments, names));
        let Some(inputs) = file.body.attribute("inputs") else {
            return;
        };
        let ExprKind::Object(entries) = &inputs.value.kind else {
            self.has_others = true;
            return;
        };
        for (key, value) in entries {
            let name = match &key.kind {
                ExprKind::Variable(name) => Some(name.to_string()),
                _ => names.text(key),
            };
            match name {
                Some(name) => self.named.push((name.into(), names.value(value))),
                None => self.has_others = true,
            }
        }
    }
}

/// Returns whether arguments of Terraform may set variables.
fn sets_variables(extra: &Block, names: &Names) -> bool {
    let has_files = VAR_FILES
        .iter()
        .any(|name| extra.body.attribute(name).is_some());
    let sets = |list: &ExprKind| match list {
        ExprKind::List(items) => items.iter().any(|item| {
            let text = names.text(item);
            text.is_none_or(|text| text.trim_start_matches('-').starts_with("var"))
        }),
        _ => true,
    };
    let arguments = extra.body.attribute("arguments");
    has_files
        || extra.body.attribute("env_vars").is_some()
        || arguments.is_some_and(|list| sets(&list.value.kind))
}
