//! Whether Terragrunt runs something in a directory, and which other units it runs first.

use super::names::{FileRole, Names};
use super::read;
use super::units::Units;
use crate::change::unit::{TerragruntUnit, UnitDependency, UnitTarget};
use crate::language::syntax::{Expr, ExprKind};
use crate::path::ProjectPath;

/// Reads a unit; `None` if the directory has no Terragrunt file.
pub(in crate::change::inputs) fn unit(
    units: &Units,
    directory: &ProjectPath,
) -> Option<TerragruntUnit> {
    let mut unit = TerragruntUnit {
        directory: directory.clone(),
        has_source: false,
        dependencies: Vec::new(),
    };
    read(units, directory, &mut |names| {
        // Files that functions read are no part of the unit.
        if names.visit.role != FileRole::Read {
            add(units, names, &mut unit);
        }
    })?;
    Some(unit)
}

/// Adds what one file says.
fn add(units: &Units, names: &Names, unit: &mut TerragruntUnit) {
    let body = &names.file.body;
    let mut blocks = body.blocks("terraform");
    unit.has_source |= blocks.any(|block| block.body.attribute("source").is_some());
    let mut add = |kind, path: &Expr| {
        let target = match names.text(path) {
            None => UnitTarget::Unknown,
            Some(text) => match units.locate(&text, &names.visit.directory) {
                Some(path) => UnitTarget::Inside(path),
                None => UnitTarget::Outside(text),
            },
        };
        let location = names.location(path.span);
        unit.dependencies.push(UnitDependency {
            kind,
            target,
            location,
        });
    };
    for block in body.blocks("dependency") {
        let enabled = block.body.attribute("enabled");
        let is_off = enabled.is_some_and(|it| matches!(it.value.kind, ExprKind::Bool(false)));
        if let Some(path) = block.body.attribute("config_path")
            && !is_off
        {
            add("dependency", &path.value);
        }
    }
    for block in body.blocks("dependencies") {
        let Some(paths) = block.body.attribute("paths") else {
            continue;
        };
        match &paths.value.kind {
            ExprKind::List(paths) => paths.iter().for_each(|path| add("dependencies", path)),
            _ => add("dependencies", &paths.value),
        }
    }
}
