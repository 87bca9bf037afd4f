//! The other units that a unit depends on.

use super::names::Names;
use super::reading::Reading;
use super::units::UnitFile;
use crate::change::code_use::{CodeUse, UsedPlace};
use crate::project::discover::{TERRAGRUNT_FILE, TERRAGRUNT_JSON_FILE};
use crate::project::stack::DataKind;
use crate::source::Span;

/// Adds the `dependency` and `dependencies` blocks of a file.
pub(super) fn add(reading: &mut Reading, file: &UnitFile, names: &Names) {
    for block in file.body.blocks("dependency") {
        let is_off = block.body.attribute("enabled");
        if is_off.is_some_and(|enabled| names.is_false(&enabled.value)) {
            continue;
        }
        // A file that includes another one overrides the blocks of the same name.
        let label = block.labels.first().map(|label| &*label.text);
        if !reading.labels.insert(label.unwrap_or_default().into()) {
            continue;
        }
        if let Some(path) = block.body.attribute("config_path") {
            let texts = names.text(&path.value).map(|text| vec![text]);
            push(
                reading,
                file,
                names,
                DataKind::Dependency,
                block.kind.span,
                texts,
            );
        }
    }
    for block in file.body.blocks("dependencies") {
        let paths = block.body.attribute("paths");
        let texts = paths.map(|paths| names.texts(&paths.value));
        if let Some(texts) = texts {
            push(
                reading,
                file,
                names,
                DataKind::Dependencies,
                block.kind.span,
                texts,
            );
        }
    }
}

/// Adds the units at these paths; `None` if the paths cannot be determined.
fn push(
    reading: &mut Reading,
    file: &UnitFile,
    names: &Names,
    kind: DataKind,
    span: Span,
    texts: Option<Vec<String>>,
) {
    let places: Vec<Option<UsedPlace>> = match texts {
        None => vec![None],
        Some(texts) => texts
            .iter()
            .map(|text| {
                let text = text.trim_end_matches('/');
                let directory = [TERRAGRUNT_FILE, TERRAGRUNT_JSON_FILE]
                    .iter()
                    .find_map(|name| text.strip_suffix(name)?.strip_suffix('/'))
                    .unwrap_or(text);
                let places = names.bases();
                let places = places.filter_map(|base| reading.units.locate(directory, base));
                Some(UsedPlace::Directories(places.collect()))
            })
            .collect(),
    };
    for place in places {
        reading.node.data.push(CodeUse {
            kind,
            place,
            file: file.path.clone(),
            text: file.text.clone(),
            span,
        });
    }
}
